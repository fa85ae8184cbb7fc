# Two commands: `make demo` trains a policy, prints it and writes a report about it; `make test` runs
# everything CI runs. Both set up .venv first; nothing but Python 3.11 and make is needed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup browser demo test lint docs bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; \
	sys.exit(0 if v >= (3, 11) else f"moie needs Python 3.11 or newer, {sys.executable} is {v[0]}.{v[1]}; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[bullet,box2d,mujoco,study,dev]'
	@touch $(STAMP)

DEMO_RUN ?= runs/demo
demo: setup
	@if [ -e $(DEMO_RUN)/run.json ]; then \
		$(BIN)/moie resume $(DEMO_RUN); \
	else \
		$(BIN)/moie train inverted-pendulum --algorithm crisp --experts 5 --iterations 80 --seed 3 --out $(DEMO_RUN); \
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

# More processes than a small machine has cores: some always wait for a simulator, a browser or Ray.
test: lint browser
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

docs: setup
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html in a browser; its search works with '$(BIN)/mkdocs serve' only"

bench: setup
	$(BIN)/python benchmarks/learner.py
	$(BIN)/python benchmarks/sampling.py
	$(BIN)/python benchmarks/study.py

clean:
	rm -rf $(VENV) build dist site src/*.egg-info
