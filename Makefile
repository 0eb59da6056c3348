# Every target sets up what it needs in .venv; a fresh machine needs Python 3.11+ with venv, git and make.
PYTHON ?= python3
BIN := .venv/bin
ASK ?=
# One more than the processors: tests wait for processes, clocks and hosts as often as they work.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(1 + len(os.sched_getaffinity(0)))' 2>/dev/null || echo 2)

.DEFAULT_GOAL := help
.PHONY: help setup demo test mutants check fmt bench acceptance lock

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

.venv/.ready: requirements.lock pyproject.toml
	@echo "opsthread: setting up .venv (once, about a minute)" >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: .venv/.ready  ## set up .venv

demo: .venv/.ready  ## talk to the bot about this machine; ASK="…" asks one question
	@$(BIN)/opsthread demo $(if $(ASK),--ask "$$ASK")

test: .venv/.ready  ## all tests, no service needed
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not mutants"

mutants: .venv/.ready  ## every check of the gate taken out in turn must be missed by a test
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m mutants tests/policy

acceptance: .venv/.ready  ## only the stories against real processes
	@$(BIN)/python -m pytest tests/acceptance

check: .venv/.ready  ## format, lint, types, import layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

fmt: .venv/.ready  ## format and mend what can be mended
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: .venv/.ready  ## figures of docs/benchmarks.md
	@$(BIN)/python -m bench

lock:  ## renew requirements.lock (needs uv)
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --extra dev --extra build -o requirements.lock pyproject.toml
export ASK
