# demo, test and check work on a fresh machine: they make .venv when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin
# uv installs in a quarter of pip's time; where the index is one that only pip is told of, pip does it
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALL = install() { $(PIP) uv && $(BIN)/uv pip install --quiet --python $(BIN)/python "$$@" || $(PIP) --no-compile "$$@"; }; install
export JAX_PLATFORMS ?= cpu
# without bytecode every process that a test starts would compile all modules again
unexport PYTHONDONTWRITEBYTECODE
SHELL := /bin/bash

.PHONY: demo test test-slow check format clean

demo: .venv/installed
	$(BIN)/neuralucb demo --out demo

# one thread per worker process: the workers share the cores among them
PYTEST = OMP_NUM_THREADS=1 XLA_FLAGS="$${XLA_FLAGS-$$($(BIN)/python tests/compile_flags.py)}" $(BIN)/python -m pytest -n auto --dist worksteal

test: .venv/installed-dev
	$(PYTEST)

test-slow: .venv/installed-dev
	$(BIN)/python -m pytest -m slow

check: .venv/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@echo "mypy and pytest, side by side"
	@types=$$(mktemp); $(BIN)/mypy >"$$types" 2>&1 & checking=$$!; \
	$(PYTEST); tests=$$?; wait $$checking; typed=$$?; cat "$$types"; rm "$$types"; \
	exit $$((tests ? tests : typed))

format: .venv/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv demo .cache .pytest_cache .mypy_cache .ruff_cache

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "neuralucb needs Python 3.11 or later; call make with PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | .venv/bin/python
	$(INSTALL) -e '.[experiments]'
	touch $@

.venv/installed-dev: pyproject.toml | .venv/bin/python
	$(INSTALL) -e '.[dev]'
	touch $@ .venv/installed
