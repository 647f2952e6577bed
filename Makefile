# Each target does all of its own set-up on a machine that has only Python 3.11+, pip and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# Tests run side by side: so many that compute, and so many that wait for a batch system or a daemon.
WORKERS ?= 2
WAITING ?= 6
# Bytecode is kept, whatever the caller's shell says: the tests start `headway` a thousand times, and each
# worker reads all of them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all conformance conformance-pbs conformance-lsf bench properties torture torture-short lint claims clean docs linkcheck man pictures dist deb

demo: $(VENV)/.installed
	$(BIN)/headway demo

# Without those that a smaller version stands for; `make test-all` runs these, too.
SLOW := and not slow
test: $(VENV)/.installed-test
	$(BIN)/python tests/side_by_side.py --computing $(WORKERS) --waiting $(WAITING) \
	    --marks "not benchmark and not campaign $(SLOW)" -- $(ARGS)

test-all: SLOW :=
test-all: test

# New examples for every property, so many times as many as it names (`make test` draws a third); before each
# release. A run that failed is repeated with its SEED.
EXAMPLES ?= 15
SEED ?= $(eval SEED := $(shell od -An -N4 -tu4 /dev/urandom))$(SEED)
properties: $(VENV)/.installed-test
	@echo "properties: $(EXAMPLES) times the examples, SEED=$(SEED)"
	HEADWAY_EXAMPLES=$(EXAMPLES) $(PYTEST) -m hypothesis --hypothesis-seed=$(SEED) -n $(WORKERS) $(ARGS)

# SIGKILL of headway and of a real batch system, again and again, under mixed jobs; a check of all records
# afterwards (docs/reliability.md). A run is repeated, as far as that is possible, with its SEED.
SYSTEM ?= slurm
KILLS ?= 200
torture: $(VENV)/.installed-test
	PYTHONPATH=tests:tests/integration $(BIN)/python -m torture $(SYSTEM) --kills $(KILLS) \
	    $(if $(filter-out undefined file,$(origin SEED)),--seed $(SEED)) $(ARGS)

# Three kills on each system that is there, which are part of `make test`, and ten, which are part of `make test-all`.
torture-short: $(VENV)/.installed-test
	$(PYTEST) -m "torture and not campaign" $(ARGS)

# What every adapter must show: on the clusters that the tests start, or on the PBS or LSF whose commands
# are in PATH (HEADWAY_CONFORMANCE_QUEUE and HEADWAY_CONFORMANCE_USER: see docs/operators/try.md).
conformance: $(VENV)/.installed-test
	$(BIN)/python -m pytest tests/conformance $(ARGS)

conformance-pbs: $(VENV)/.installed-test
	HEADWAY_CONFORMANCE=pbs $(BIN)/python -m pytest tests/conformance $(ARGS)

conformance-lsf: $(VENV)/.installed-test
	HEADWAY_CONFORMANCE=lsf $(BIN)/python -m pytest tests/conformance $(ARGS)

bench: $(VENV)/.installed-test
	$(BIN)/python -m pytest tests/benchmarks -m benchmark $(ARGS)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/mypy

# Which tables in docs/papers are stale; HEADWAY_TRACES is the directory of real traces. ARGS=--write makes
# those anew whose rows are there.
claims: $(VENV)/.installed
	$(BIN)/headway claims docs/papers $(ARGS)

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "headway needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; call make PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[report]'
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[report,ssh,security,test,fast,cluster,postgres,parquet,api,top,docs]'
	touch $@

# Source distribution and wheel, and whether a package index takes them.
dist: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build twine
	rm -rf dist/python
	$(BIN)/python -m build --outdir dist/python .
	$(BIN)/python -m twine check --strict dist/python/*

# The Debian package, with Debian's own tools (Debian 13; docs/operators/install.md).
deb:
	packaging/build-deb dist/debian
	lintian --fail-on error,warning dist/debian/*.changes

clean:
	rm -rf $(VENV) build dist *.egg-info demo-out out

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs,report,security]'
	touch $@

# The documentation as a site, in out/docs: pages and reference, search included. Nothing is fetched when it is read.
SPHINX := $(BIN)/sphinx-build -q -W --keep-going
docs: $(VENV)/.installed-docs
	$(SPHINX) -b html docs out/docs
	@echo "out/docs/index.html"

# Whether links to other sites lead somewhere. (Links within are part of `make docs`.)
linkcheck: $(VENV)/.installed-docs
	$(SPHINX) -b linkcheck docs out/linkcheck

# A manual page of headway and of each command: `man -l out/man/headway.1`.
man: $(VENV)/.installed-docs
	$(BIN)/python packaging/debian/manpages.py out/man

# The pictures in these pages, as a browser shows what they are of (needs Chromium): reports, and the page of a
# laboratory.
pictures: $(VENV)/.installed-test
	$(BIN)/python docs/pictures.py
	$(BIN)/python tests/page_pictures.py "$(CURDIR)/docs/images"
