# Each target sets up what it needs. `uv` is used where there is one, else python3 with venv and pip.
# Both take their package index from your own settings (pip.conf, uv.toml, environment).

PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: install demo test check bench prove clean

install: $(READY)

# The requirements are those of requirements.lock, each checked against its hash.
$(READY): requirements.lock pyproject.toml
	@echo "Installing recrawl and what it needs into .venv: about a minute the first time."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "recrawl needs Python 3.11 or newer; name one: make install PYTHON=python3.12")'
ifdef UV
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv
	$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
else
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
endif
	@touch $(READY)

demo: $(READY)
	$(BIN)/recrawl demo

test: $(READY)
	$(BIN)/pytest -n auto --dist worksteal -m "not prove"

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/test_docs.py

bench: $(READY)
	$(BIN)/python -m benchmarks.crawl
	$(BIN)/python -m benchmarks.cost
	$(BIN)/python -m benchmarks.clean
	$(BIN)/python -m benchmarks.ingest

prove: $(READY)
	$(BIN)/pytest -m prove

# Databases (*.db) are yours, and stay.
clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +
