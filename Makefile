# Two commands: `make demo` trains a policy, prints it and writes a report about it; `make test` runs
# everything CI runs. Both set up .venv first; nothing but Python 3.11 or newer and make is needed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Extras, and their packages that pip would compile for minutes where no wheel fits this Python.
COMPILED := bullet:pybullet box2d:box2d,pygame

.PHONY: setup browser compilers demo test lint docs bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; \
	sys.exit(0 if v >= (3, 11) else f"moie needs Python 3.11 or newer, {sys.executable} is {v[0]}.{v[1]}; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	@chosen=mujoco,swarm,study,studio,export,dev; for pair in $(COMPILED); do \
		extra=$${pair%%:*}; packages=$$(echo $${pair#*:} | tr , ' '); \
		if $(PIP) install --dry-run --no-deps --only-binary :all: --constraint constraints.txt $$packages \
			> /dev/null 2>&1; then chosen=$$chosen,$$extra; \
		else echo "left out: moie[$$extra], pip finds no wheel of $$packages for $$($(BIN)/python --version);" \
			"to compile it: $(BIN)/pip install -c constraints.txt -e '.[$$extra]'"; fi; \
	done; \
	echo "installing moie[$$chosen] into $(VENV)"; \
	$(PIP) install --constraint constraints.txt --editable ".[$$chosen]"
	@touch $(STAMP)

DEMO_RUN ?= runs/demo
# PyBullet's pole on a cart; MuJoCo's where PyBullet was left out.
demo: setup
	@if [ -e $(DEMO_RUN)/run.json ]; then \
		$(BIN)/moie resume $(DEMO_RUN); \
	elif $(BIN)/python -c 'import importlib.util as u; exit(u.find_spec("pybullet") is None)'; then \
		$(BIN)/moie train inverted-pendulum --algorithm crisp --experts 5 --iterations 80 --seed 3 --out $(DEMO_RUN); \
	else \
		$(BIN)/moie train InvertedPendulum-v5 --algorithm crisp --experts 5 --iterations 80 --seed 0 --out $(DEMO_RUN); \
	fi
	@echo
	@$(BIN)/moie show $(DEMO_RUN)
	@echo
	@$(BIN)/moie evaluate $(DEMO_RUN)
	@echo
	@$(BIN)/moie explain $(DEMO_RUN)
	@echo "the run is in $(DEMO_RUN); open the report in a browser"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A test opens the report in Chromium. Where it is missing and may not be installed, that test says so.
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable
browser:
	@for name in $(BROWSERS); do command -v $$name > /dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ]; then as_root=; else as_root="sudo -n"; fi; \
	echo "installing Chromium for the test of the report"; \
	{ $$as_root apt-get update -qq && $$as_root apt-get install -y -qq chromium; } > /dev/null 2>&1 \
		|| echo "Chromium could not be installed"

# Tests compile exports to C, check them against MISRA C, and run those to JavaScript. Those that need
# clang or cppcheck are skipped where these are missing.
compilers:
	@wanted=; for pair in gcc:gcc node:nodejs clang:clang cppcheck:cppcheck; do \
		command -v $${pair%%:*} > /dev/null || wanted="$$wanted $${pair#*:}"; \
	done; [ -z "$$wanted" ] && exit 0; \
	if [ "$$(id -u)" = 0 ]; then as_root=; else as_root="sudo -n"; fi; \
	echo "installing$$wanted for the tests of exports"; \
	{ $$as_root apt-get update -qq && $$as_root apt-get install -y -qq $$wanted; } > /dev/null 2>&1 \
		|| echo "could not be installed:$$wanted"

# More processes than a small machine has cores: some always wait for a simulator, a browser or Ray.
test: lint browser compilers
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

docs: setup
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html in a browser; its search works with '$(BIN)/mkdocs serve' only"

bench: setup
	$(BIN)/python benchmarks/learner.py
	$(BIN)/python benchmarks/sampling.py
	$(BIN)/python benchmarks/study.py
	$(BIN)/python benchmarks/export.py

clean:
	rm -rf $(VENV) build dist site src/*.egg-info
