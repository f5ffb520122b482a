# `make run` starts the application and `make test` runs every check; each sets up what it needs.

ADDRESS ?= localhost
PORT ?= 8501

VENV := .venv
BIN := $(VENV)/bin
SUITABLE := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))
CANDIDATES := python3 python3.13 python3.12 python3.11
PYTHON := $(shell for p in $(CANDIDATES); do $$p -c '$(SUITABLE)' 2>/dev/null && echo $$p && break; done)

.PHONY: run test lint bench clean

run: $(VENV)/app-installed
	$(BIN)/streamlit run app.py --server.address $(ADDRESS) --server.port $(PORT)

test: lint
	$(BIN)/pytest --numprocesses 2 --dist loadscope --no-loadscope-reorder

lint: $(VENV)/checks-installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(VENV)/checks-installed
	for benchmark in tests/benchmarks/*.py; do $(BIN)/python $$benchmark || exit 1; done

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/app-installed: requirements.txt | $(BIN)/python
	@echo "Installing what the application needs into $(VENV); this takes a few minutes, once."
	@$(BIN)/python -m pip install --quiet -r requirements.txt
	@touch $@

$(VENV)/checks-installed: tests/requirements.txt requirements.txt | $(BIN)/python
	@echo "Installing what the checks need into $(VENV); this takes a few minutes, once."
	@$(BIN)/python -m pip install --quiet -r tests/requirements.txt
	@touch $@ $(VENV)/app-installed

$(BIN)/python:
	@test -n "$(PYTHON)" || \
	    { echo "NaNatomy needs Python 3.11, 3.12 or 3.13; none of $(CANDIDATES) is one."; exit 1; }
	@$(PYTHON) -m venv $(VENV)
