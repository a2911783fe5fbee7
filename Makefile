PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: help install demo test check lint types imports reference build clean

help:        ## Say what there is.
	@grep -E '^[a-z]+: *.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 12

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Lamina needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

install: $(VENV)/installed ## Make the virtual environment.

demo: install ## Run the sample conversation through the whole system and ask three questions.
	$(BIN)/lamina demo

test: install ## Run the whole test suite.
	$(BIN)/pytest

lint: install ## Check style and formatting.
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: install ## Check types.
	$(BIN)/mypy
	$(BIN)/mypy tests

imports: install ## Check that imports point inwards.
	$(BIN)/lint-imports

check: lint types imports test ## Everything that CI checks, but the demo.

reference: install ## Write the generated pages of docs/.
	$(BIN)/lamina reference docs

build: install ## Build the wheel.
	rm -rf build dist
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

clean: ## Remove what was built.
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
