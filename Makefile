# Every target sets up what it needs. A fresh machine needs Python 3.11 or newer, and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Commands and tests start in a third of the time where Python keeps what it has compiled.
unexport PYTHONDONTWRITEBYTECODE

PACE   ?= fast
# Tests wait for processes and sockets for a third of their time: one worker more than processors.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
in_parallel = $(if $(filter-out 1,$(WORKERS)),-n $(WORKERS) --dist $(1))
# Real tests go in the order of their file, and a file's tests share a control plane.
REAL = tests/real -p no:randomly $(call in_parallel,loadfile --no-loadscope-reorder)

.DEFAULT_GOAL := help
.PHONY: help demo test test-quick test-explore test-faults-small test-faults test-real test-real-long test-mutations test-model real-binaries check format bench bench-real lock clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## Show all of it on an embedded cluster; PACE=slow for an audience
	@$(BIN)/replant demo --pace $(PACE)

test: $(READY) ## Run the tests in parallel and in random order; WORKERS=1 for one process
	$(BIN)/python -m pytest $(call in_parallel,worksteal)

test-quick: $(READY) ## Run the tests of pure packages and a workflow of each command, in a minute
	$(BIN)/python -m pytest --quick $(call in_parallel,worksteal)

test-explore: $(READY) ## Run the property tests with new examples, 2,000 of each
	$(BIN)/python -m pytest -m hypothesis --hypothesis-profile=explore $(call in_parallel,worksteal)

test-faults-small: $(READY) ## Every fault at every write of a switch of 4 nodes, and samples of other goals
	$(BIN)/python -m tests.faults small

test-faults: $(READY) ## Every fault at every write of a migration of 20 nodes, an hour of one core
	$(BIN)/python -m tests.faults 20-nodes

test-real: $(READY) real-binaries ## Run the tests on real Kubernetes (Linux, root, Go; the first time builds it)
	$(BIN)/python -m pytest $(REAL) -m "not long"

test-real-long: $(READY) real-binaries ## The same, with what is too long for every run
	$(BIN)/python -m pytest $(REAL)

test-mutations: $(READY) ## Plant faults in the product, one at a time: a test must catch each
	$(BIN)/python -m tests.mutations

test-model: $(READY) ## Change each rule of the model: a record of real controllers must notice
	$(BIN)/python -m tests.mutations.model

real-binaries: $(READY) ## Build real Kubernetes for these tests, if it is not there
	$(BIN)/python -m tests.real.ground.programs

check: $(READY) ## Check format, lint, types and layers
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## Format the code and mend what the linter can
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(READY) ## Measure speed and memory, as ratios against a floor
	$(BIN)/python -m benchmarks.translate
	$(BIN)/python -m benchmarks.scan
	$(BIN)/python -m benchmarks.plan
	$(BIN)/python -m benchmarks.sandbox
	$(BIN)/python -m benchmarks.apply
	$(BIN)/python -m benchmarks.drivers
	$(BIN)/python -m benchmarks.gardener

bench-real: $(READY) real-binaries ## Measure conversions on real controllers, beside what others do
	$(BIN)/python -m benchmarks.convert

lock: $(READY) ## Pin the newest versions of all dependencies
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --generate-hashes --no-header --no-annotate --upgrade \
	  --python-version 3.11 pyproject.toml --group dev --output-file requirements.lock

clean: ## Remove everything that make has made
	rm -rf $(VENV) replant-demo-report.html dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Replant needs Python 3.11 or newer; say which with make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q src
	@touch $@
