# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export OMP_NUM_THREADS := 1

.PHONY: demo test check bench clean
.DEFAULT_GOAL := demo

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[test]"
	@touch $@

demo: $(VENV)/.installed  ## five schemes on one cell, and a report of them
	$(BIN)/edgesim run scenarios/demo.yaml --out runs/make-demo --fresh
	$(BIN)/edgesim report runs/make-demo --out runs/make-demo/report

test: $(VENV)/.installed  ## the whole test suite
	$(BIN)/python -m pytest

check: $(VENV)/.installed  ## lint and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

bench: $(VENV)/.installed  ## ratios measured in one run; never part of the tests
	$(BIN)/python benchmarks/rounds.py
	$(BIN)/python benchmarks/solvers.py
	$(BIN)/python benchmarks/training.py

clean:
	rm -rf $(VENV) runs build *.egg-info
