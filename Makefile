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

.PHONY: demo test test-slow check format docs figures dist bench clean

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
	[ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only -p no:xdist >/dev/null; \
	$(PYTEST); tests=$$?; wait $$checking; typed=$$?; cat "$$types"; rm "$$types"; \
	exit $$((tests ? tests : typed))

format: .venv/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# the site, in site/: tutorials are played first, and fail if they no longer print what they show. Its tools have an
# environment of their own, and need no JAX: the reference is read, not imported. Never --quiet, which switches strict off
docs: .venv/installed-dev .venv-docs/installed
	$(PYTEST) -m "slow or not slow" tests/test_docs.py tests/service/test_pages.py -k "tutorials or index or gallery"
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs build
	@echo "the site is in site/index.html"

# the figures of the gallery again, from its code
figures: .venv/installed-dev
	$(BIN)/python docs/gallery.py

# make dist PYTHONS="3.11 3.12 3.13": sdist and wheel, tried in empty environments, outside the checkout
PYTHONS ?=
dist:
	$(PYTHON) .ci/dist.py $(PYTHONS)

# every peer in an environment of its own, so that its pins cannot disturb ours; one that does not install is left out
PEERS := $(shell sed -n 's/^\([a-z]*\):.*/\1/p' benchmarks/peers/versions.txt)

bench: .venv/installed $(PEERS:%=peer-%)
	$(BIN)/python benchmarks/peers/bench.py $(if $(QUICK),--quick) $(BENCH)

# packages one after the other, so that torch stays the one that was asked for; "!" is without what it requires
peer-%: .venv/installed
	@pinned="$$(sed -n 's/^$*: //p' benchmarks/peers/versions.txt)"; test "$$pinned" = "$$(cat .bench/$*/installed 2>/dev/null)" || ( \
	echo "$*: installing $$pinned"; rm -rf .bench/$*; mkdir -p .bench && $(PYTHON) -m venv .bench/$* && \
	for package in $$pinned; do case $$package in !*) set -- --no-deps "$${package#!}";; *) set -- "$$package";; esac; \
	.bench/$*/bin/python -m pip install --quiet --disable-pip-version-check "$$@" >>.bench/$*.log 2>&1 || exit 1; done && \
	echo "$$pinned" >.bench/$*/installed ) || echo "$* could not be installed and is left out; why is in .bench/$*.log"

clean:
	rm -rf .venv .venv-docs .bench site dist demo .cache .pytest_cache .mypy_cache .ruff_cache

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "neuralucb needs Python 3.11 or later; call make with PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | .venv/bin/python
	$(INSTALL) -e '.[experiments]'
	touch $@

.venv/installed-dev: pyproject.toml | .venv/bin/python
	$(INSTALL) -e '.[dev]'
	touch $@ .venv/installed

.venv-docs/installed: pyproject.toml
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check $$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')
	touch $@
