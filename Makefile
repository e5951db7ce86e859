# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export OMP_NUM_THREADS := 1
export PYTHONDONTWRITEBYTECODE :=  # compiled once, not by every process of the tests

.PHONY: demo test test-fast test-lowest test-browser check bench bench-reliability docs paper-liu paper-controls clean
.DEFAULT_GOAL := demo

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[test,cluster]"
	@touch $@

demo: $(VENV)/.installed  ## five schemes on one cell, and a report of them
	rm -rf runs/make-demo
	$(BIN)/edgesim sweep scenarios/demo.yaml --out runs/make-demo
	$(BIN)/edgesim report runs/make-demo --out runs/make-demo/report

test: $(VENV)/.installed  ## the whole test suite, on two processes
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-fast: $(VENV)/.installed  ## without the slow tests: for every save
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-lowest: $(VENV)-lowest/.installed  ## the same with the oldest releases of all required packages but torch
	$(VENV)-lowest/bin/python -m pytest -n 2 --dist worksteal -m "not slow"

$(VENV)-lowest/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-lowest
	sed -n '/^dependencies/,/^]/s/^  "\(.*\)>=\(.*\)",/\1==\2.*/p' pyproject.toml | grep -v ^torch > $(VENV)-lowest/lowest.txt
	grep ^torch== constraints.txt >> $(VENV)-lowest/lowest.txt  # builds without CUDA are rarely kept
	$(VENV)-lowest/bin/python -m pip install --quiet -c $(VENV)-lowest/lowest.txt torch
	$(VENV)-lowest/bin/python -m pip install --quiet -c $(VENV)-lowest/lowest.txt -e ".[test,cluster]"
	@touch $@

test-browser: $(VENV)/.browser  ## the page of a report in Chromium, which it does not install
	$(BIN)/python -m pytest -rs tests/reports/test_page_in_browser.py

check: $(VENV)/.installed  ## lint, format, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks  # apart: reports.py there has the name of a package

docs: $(VENV)/.docs  ## the documentation with the API reference as a site, in site/
	NO_MKDOCS_2_WARNING=1 PATH="$(abspath $(BIN)):$$PATH" $(BIN)/mkdocs build

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[docs]"
	@touch $@

$(VENV)/.browser: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[browser]"
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

CONTROLS := runs/paper-controls
DIGITS   := learning.dataset=digits learning.model=digits-cnn learning.batch_size=32 rounds=400 evaluate.every=20 \
            learning.method.personal_lr=0.01 learning.method.global_lr=0.01 --seeds 0-2
RULES    := devices.0.model_budget=1 accounting.mask_overhead=entropy accounting.sparse_efficiency=0
RELEASED := learning.inputs=standard learning.method.arm_space=head learning.method.use_above=0.25
CLIPPED  := schemes.HeteroFL.learning.method.clip=5 schemes.FedRolex.learning.method.clip=5 \
            schemes.HeteroFL.learning.method.scaler=false schemes.HeteroFL.learning.method.masked_ce=false
FASHION  := learning.dataset=fashion-mnist learning.model=fedlps-cnn learning.samples_per_device=300 rounds=100 \
            network.bandwidth=11MHz devices.0.cpu.cycles_per_weight=29

paper-controls: $(VENV)/.installed  ## the papers' tables under other readings of what they leave open (EDGESIM_DATA)
	$(BIN)/edgesim sweep scenarios/papers/liu-fig3.yaml $(DIGITS) learning.method.rho=0,0.4,0.8,0.9 --out $(CONTROLS)/holders
	$(BIN)/edgesim sweep scenarios/papers/liu-fig3.yaml $(DIGITS) learning.method.rho=0.4,0.8,0.9 \
	  learning.method.pruned_counts=all,zeros --out $(CONTROLS)/other-means
	$(BIN)/edgesim sweep scenarios/four-papers.yaml $(RULES) --seeds 0-4 --only "Liu joint" --only FedLPS --only SpaFL \
	  --only FedAvg --out $(CONTROLS)/one-set-of-rules
	$(BIN)/edgesim sweep scenarios/papers/fedlps-table1-mnist.yaml $(RELEASED) --only "FedLPS without pull" --seeds 0-2 \
	  --out $(CONTROLS)/fedlps-released
	$(BIN)/edgesim sweep scenarios/papers/fedlps-table1-mnist.yaml learning.inputs=standard $(CLIPPED) --only FedAvg \
	  --only HeteroFL --only FedRolex --only FjORD --seeds 0-2 --out $(CONTROLS)/others-released
	$(BIN)/edgesim sweep scenarios/papers/fedmap-posterior-fmnist.yaml schemes.static.learning.method.lr=0.02,0.05 \
	  --only static --seeds 0-2 --out $(CONTROLS)/fedmap-static
	$(BIN)/edgesim sweep scenarios/tuning/alpha-fair-tuning.yaml $(FASHION) evaluate.every=10 --select best-validation \
	  learning.method.personal_lr:learning.method.global_lr='log(0.0025,0.08,6):log(0.0025,0.08,6)' --out $(CONTROLS)/alpha-tuning
	$(BIN)/edgesim sweep scenarios/alpha-fair.yaml $(FASHION) evaluate.every=5 \
	  learning.method.personal_lr=0.01 learning.method.global_lr=0.01 --seeds 0-4 --out $(CONTROLS)/alpha

clean:  ## what was installed, built and made by `make demo`; other runs stay
	rm -rf $(VENV) $(VENV)-lowest runs/make-demo build site *.egg-info
