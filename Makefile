# Two commands for everybody:   make demo   ·   make test
# Each sets up what it needs in .venv, from Python (>= 3.11) and the package index alone.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

.PHONY: demo test coverage lint lock bench soak fuzz docs clean

demo: $(VENV)/run.stamp
	$(BIN)/sparserank demo

# One worker more than there are cores, since tests of the service, of Spark and of the page wait a lot; one thread of BLAS
# for each. The tests start hundreds of processes, so bytecode is kept. The kernels run once more as plain Python, which notices
# an index out of range.
test coverage: export OPENBLAS_NUM_THREADS := 1
test coverage: export OMP_NUM_THREADS := 1
test coverage: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -n auto tests/_kernels

# The same tests, with the share of the package's lines that they run. Before Python 3.12, counting lines doubles the time of
# much of the code, so `test` goes without.
coverage: export COVERAGE_CORE := $(shell $(PYTHON) -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")')
coverage: $(VENV)/dev.stamp
	rm -f .coverage .coverage.*
	$(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report= --cov-fail-under=0 $(ARGS)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -n auto --cov --cov-append --cov-report= --cov-fail-under=0 tests/_kernels
	$(BIN)/python -m coverage report

lint: $(VENV)/dev.stamp
	$(BIN)/ruff format src tests benchmarks docs
	$(BIN)/ruff check --fix src tests benchmarks docs
	$(BIN)/mypy
	$(BIN)/lint-imports

# writes a section of docs/benchmarks.md for each benchmark; some of them: make bench ARGS="bm25_search word_pairs"
bench: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.run --markdown docs/benchmarks.md $(ARGS)

# the service under load and faults, and 100,000 hostile requests; on this machine alone
soak: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.soak --markdown docs/benchmarks.md $(ARGS)

fuzz: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.soak.fuzz --markdown docs/benchmarks.md $(ARGS)

# draws the pictures of the gallery that are not there yet, then builds site/; broken links are errors
docs: export NO_MKDOCS_2_WARNING := 1
docs: $(VENV)/docs.stamp
	$(BIN)/mkdocs build --strict

# needs uv; a lock file holds names, versions and hashes, and no address
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --no-annotate --no-header -o requirements/run.txt pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --no-annotate --no-header --extra service --extra postgres -o requirements/service.txt pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --no-annotate --no-header --extra dev --extra bench --extra docs -o requirements/lock.txt pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --no-annotate --no-header --extra docs -c requirements/lock.txt -o requirements/docs.txt pyproject.toml
	echo 'hatchling>=1.26' | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-emit-find-links --no-annotate --no-header -c requirements/lock.txt -o requirements/build.txt -

clean:
	rm -rf $(VENV) build dist site .coverage .coverage.* reports

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "SparseRank needs Python 3.11 or newer; say: make PYTHON=python3.11 ...")'
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "Python lacks venv: apt-get install python3-venv"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: requirements/run.txt pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/run.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

$(VENV)/dev.stamp: requirements/lock.txt pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/lock.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@ $(VENV)/run.stamp $(VENV)/docs.stamp

$(VENV)/docs.stamp: requirements/docs.txt pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/docs.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@ $(VENV)/run.stamp
