# Each target does all of its own set-up on a machine that has only Python 3.11+, pip and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# Tests run side by side: many of them wait for a real batch system.
WORKERS ?= 4
# What pytest answers when ARGS select no test.
NONE := 5

.PHONY: demo test conformance conformance-pbs conformance-lsf bench lint clean picture

demo: $(VENV)/.installed
	$(BIN)/headway demo

test: $(VENV)/.installed-test
	$(PYTEST) -m "not benchmark and not alone" -n $(WORKERS) --dist loadfile $(ARGS) || [ $$? -eq $(NONE) ]
	$(PYTEST) -m alone $(ARGS) || [ $$? -eq $(NONE) ]

# What every adapter must show: on the clusters that the tests start, or on the PBS or LSF whose commands
# are in PATH (HEADWAY_CONFORMANCE_QUEUE and HEADWAY_CONFORMANCE_USER: see docs/operators.md).
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

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "headway needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; call make PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info demo-out out

# The README's picture: the demo's report as a browser shows it (needs Chromium).
picture: $(VENV)/.installed
	$(BIN)/headway demo --out out/picture
	chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
	    --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars \
	    --user-data-dir="$$(mktemp -d)" --window-size=1300,1560 \
	    --screenshot="$(CURDIR)/docs/images/report.png" "file://$(CURDIR)/out/picture/report.html"
