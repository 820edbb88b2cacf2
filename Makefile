# Every target sets up .venv by itself. PYTHON picks the interpreter (3.11 or newer).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Tests of the compiled kernels, for runs with numba's compiler off, or with its checks of array bounds on.
KERNEL_TESTS := tests/test_support_quadratic.py tests/test_support_smooth.py tests/test_support_piecewise.py \
	tests/test_newton.py tests/test_window_points.py tests/test_windows.py tests/test_predictors.py

.PHONY: run demo test test-slow test-oldest coverage bench lint docs clean

run: $(READY)  ## the main job: the paper's experiments, small; report in out/report.html
	$(BIN)/likeset reproduce --quick --out out

demo: $(READY)  ## three example studies in out/demo.db, and the page on them
	mkdir -p out
	$(BIN)/likeset demo out/demo.db

test: $(READY)  ## linters and all tests, side by side
	@$(MAKE) --no-print-directory lint & linters=$$!; \
	$(BIN)/python -m pytest -n 2 --dist worksteal -q; tests=$$?; \
	wait $$linters && exit $$tests

test-slow: $(READY)  ## statistical tests that take minutes
	$(BIN)/python -m pytest -n 2 -q -m slow
# Numba's cache does not tell kernels with checks from those without: they get a folder of their own.
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/out/checked-kernels $(BIN)/python -m pytest -n 2 -q $(KERNEL_TESTS)

test-oldest:  ## the tests with the oldest versions that pyproject.toml allows, in .venv-oldest
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c tests/oldest.txt -e ".[test]"
# Old packages warn about new ones that they use: here warnings are no errors.
	NUMBA_CACHE_DIR=$(CURDIR)/out/oldest-kernels .venv-oldest/bin/python -m pytest -n 2 -q -W default tests

coverage: $(READY)  ## lines run by the tests, kernels included (uncompiled, so this takes long); out/coverage/index.html
	$(BIN)/python -m pytest -n 2 -q --cov=likeset --cov-report= tests
# Uncompiled, 1 / 0 and overflow are Python's errors and not inf, so a few tests fail here: what counts is which lines ran.
	-NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 -q -W ignore::RuntimeWarning --cov=likeset --cov-append \
		--cov-report=term:skip-covered --cov-report=html:out/coverage $(KERNEL_TESTS)

bench: $(READY)  ## speed and memory against CVXPY; writes out/bench/engine.json
	$(BIN)/python -m benchmarks

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell

docs: $(READY)  ## runs every example of the pages and builds the site: out/site/index.html
	$(BIN)/python -m pytest -q docs README.md CONTRIBUTING.md
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs out/site

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $(READY)

clean:
	rm -rf $(VENV) .venv-oldest out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
