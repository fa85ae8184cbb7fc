# Two commands: `make demo` trains a policy and prints it; `make test` runs everything CI runs.
# Both set up .venv first; nothing but Python 3.11 and make is needed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test lint bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; \
	sys.exit(0 if v >= (3, 11) else f"moie needs Python 3.11 or newer, {sys.executable} is {v[0]}.{v[1]}; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[bullet,box2d,mujoco,dev]'
	@touch $(STAMP)

DEMO_RUN ?= runs/demo
demo: setup
	@if [ -e $(DEMO_RUN)/run.json ]; then \
		$(BIN)/moie resume $(DEMO_RUN); \
	else \
		$(BIN)/moie train inverted-pendulum --experts 5 --iterations 80 --seed 4 --out $(DEMO_RUN); \
	fi
	@echo
	@$(BIN)/moie show $(DEMO_RUN)
	@echo
	@$(BIN)/moie evaluate $(DEMO_RUN)
	@echo
	@echo "the run is in $(DEMO_RUN)"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

bench: setup
	$(BIN)/python benchmarks/learner.py
	$(BIN)/python benchmarks/sampling.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info
