# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export OMP_NUM_THREADS := 1
export PYTHONDONTWRITEBYTECODE :=  # compiled once, not by every process of the tests

.PHONY: demo test test-fast check bench bench-reliability docs paper-liu clean
.DEFAULT_GOAL := demo

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[test,cluster]"
	@touch $@

demo: $(VENV)/.installed  ## five schemes on one cell, and a report of them
	$(BIN)/edgesim run scenarios/demo.yaml --out runs/make-demo --fresh
	$(BIN)/edgesim report runs/make-demo --out runs/make-demo/report

test: $(VENV)/.installed  ## the whole test suite, on two processes
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-fast: $(VENV)/.installed  ## without the slow tests: for every save
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

check: $(VENV)/.installed  ## lint, format, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.docs  ## the documentation with the API reference as a site, in site/
	NO_MKDOCS_2_WARNING=1 PATH="$(abspath $(BIN)):$$PATH" $(BIN)/mkdocs build --quiet

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[docs]"
	@touch $@

bench: $(VENV)/.installed  ## ratios measured in one run; never part of the tests
	$(BIN)/python benchmarks/rounds.py
	$(BIN)/python benchmarks/allocators.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/reports.py

bench-reliability: $(VENV)/.installed  ## flipped bits, kills, signals: make bench-reliability FLIPS=250 KILLS=60 SIGNALS=60
	$(BIN)/python benchmarks/reliability.py $(or $(FLIPS),20)
	$(BIN)/python benchmarks/reliability_signals.py --kills $(or $(KILLS),6) --signals $(or $(SIGNALS),6)

paper-liu: $(VENV)/.installed  ## Liu's table and figures on MNIST and Fashion-MNIST (EDGESIM_DATA); hours
	$(BIN)/edgesim run scenarios/papers/liu-table1.yaml --out runs/paper-liu/table1 --quiet
	$(BIN)/edgesim report runs/paper-liu/table1 --out runs/paper-liu/report-table1
	$(BIN)/edgesim run scenarios/papers/liu-discrepancies.yaml --out runs/paper-liu/discrepancies --quiet
	$(BIN)/edgesim report runs/paper-liu/discrepancies --out runs/paper-liu/report-discrepancies
	for figure in fig3 fig4 fig5 fig6; do \
	  $(BIN)/edgesim sweep scenarios/papers/liu-$$figure.yaml --out runs/paper-liu/$$figure && \
	  $(BIN)/edgesim report runs/paper-liu/$$figure --out runs/paper-liu/report-$$figure || exit 1; \
	done

clean:
	rm -rf $(VENV) runs build *.egg-info
