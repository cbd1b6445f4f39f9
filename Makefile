# Every target does its own set-up: the first one run makes .venv here, and installs into nothing else.

PYTHON ?= python3
VENV := .venv
SEED ?= 1
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV_READY := $(VENV)/.ready-dev
DOCS_READY := $(VENV)/.ready-docs
SPARK_READY := $(VENV)/.ready-spark
comma := ,

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-spark soak check docs fmt clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(SPARK_READY) ## Watch replicas survive a partition and crashes, and check every promise
	@rm -rf build/demo && mkdir -p build
	@$(BIN)/covey demo --keep build/demo --spark --seconds 0.8 # what is shown stays, to be read while Spark works

test: $(DEV_READY) ## Run every test
	$(BIN)/pytest -n 2 --dist worksteal -m "not spark"
	$(BIN)/pytest -m spark

test-fast: $(DEV_READY) ## Run the tests that take seconds, for daily work
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow and not live and not spark"

test-spark: $(DEV_READY) ## Run the tests of the analysis, in one Java process
	$(BIN)/pytest -m spark

soak: $(READY) ## Trouble a live cluster for twenty minutes, then check its trace: make soak SEED=7 (as root: the network too)
	@$(BIN)/python -m covey.lab.soak --minutes 20 --seed $(SEED)

check: $(DEV_READY) ## Formatting, lint, types, layers, and the rules of the house
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/tidy

docs: $(DOCS_READY) ## Build the documentation as a site in build/site; a broken link fails
	@$(BIN)/python -m docs.configuration_tables
	@$(BIN)/python -m docs.counter_tables
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open build/site/index.html"

fmt: $(DEV_READY) ## Format the code, and mend what lint can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove the virtual environment and every cache
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests examples docs -type d -name __pycache__ -prune -exec rm -rf {} +

# Redone when the dependencies change. $(1) is what to install beside Covey itself: a first look needs nothing more.
define set-up
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	  $(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { \
	    echo "Covey needs Python 3.11, 3.12 or 3.13, but $(PYTHON) is: $$($(PYTHON) --version 2>&1 || true)" >&2; \
	    echo "Name another one like this: make PYTHON=python3.12 $(or $(MAKECMDGOALS),help)" >&2; \
	    exit 1; }; \
	  echo "Setting up $(VENV) (once)"; \
	  $(PYTHON) -m venv $(VENV) || { \
	    echo "Could not make a virtual environment; on Debian and Ubuntu, install the package python3-venv." >&2; \
	    exit 1; }; }
	$(if $(1),@echo "Installing $(1) into $(VENV) (once; Spark is large: a minute or two)")
	@$(BIN)/python -m pip install --quiet -e '.$(1)'
	@$(BIN)/python -m compileall -q src
	@touch $(READY) $@
endef

$(READY): pyproject.toml
	$(call set-up,)

$(SPARK_READY): pyproject.toml
	$(call set-up,[spark])

$(DEV_READY): pyproject.toml
	$(call set-up,[dev$(comma)spark])
	@touch $(SPARK_READY)

$(DOCS_READY): $(READY)
	@$(BIN)/python -m pip install --quiet -e '.[docs]'
	@touch $@
