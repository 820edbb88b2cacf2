# Every target sets up .venv by itself. PYTHON picks the interpreter (3.11 or newer).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run test test-slow bench lint docs clean

run: $(READY)  ## the main job: the paper's experiments, small; report in out/report.html
	$(BIN)/likeset reproduce --quick --out out

test: $(READY) lint  ## all tests
	$(BIN)/python -m pytest -n 2 -q

test-slow: $(READY)  ## statistical tests that take minutes
	$(BIN)/python -m pytest -n 2 -q -m slow

bench: $(READY)  ## speed and memory against CVXPY; writes out/bench/engine.json
	$(BIN)/python -m benchmarks

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)  ## the pages in docs/ are plain Markdown; this runs every example in them
	$(BIN)/python -m pytest -q docs README.md CONTRIBUTING.md

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $(READY)

clean:
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
