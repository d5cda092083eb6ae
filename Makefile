# The verbs of the project; `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
UV := .venv/bin/uv
MANAGE := .venv/bin/python manage.py
export UV_PYTHON_DOWNLOADS := never
# Without byte code on disk every command compiles what it imports anew, for half of its time.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install run test check fmt bench

help:  ## list these targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 10

install: .venv/.stamp  ## everything into .venv, exactly as locked

run: install .env  ## migrate, prepare and serve on 127.0.0.1:$PORT (default 8000)
	@echo "Preparing …"
	@$(MANAGE) bootstrap --migrate --demo
	@exec $(MANAGE) serve --host 127.0.0.1 --drain 0

test: install  ## the whole suite on the database of DATABASE_URL (default SQLite); ARGS="-k name" narrows it
	@.venv/bin/python -m pytest -q $(ARGS)

check: install  ## lock file, style, types, layers, settings, migrations
	@$(UV) lock --check -q
	@.venv/bin/ruff check -q .
	@.venv/bin/ruff format --check -q .
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-logo
	@PAR_ENV_FILE= PAR_ENVIRONMENT=development PAR_DATA_DIR=build/check $(MANAGE) check --fail-level WARNING
	@PAR_ENV_FILE= PAR_ENVIRONMENT=development PAR_DATA_DIR=build/check $(MANAGE) makemigrations --check --dry-run

fmt: install  ## put the code into shape
	@.venv/bin/ruff check -q --fix .
	@.venv/bin/ruff format -q .

bench: install  ## measure speed against floors; writes build/bench.json
	@.venv/bin/python -m tests.benchmarks $(ARGS)

.env:
	@cp .env.example .env

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "PAR needs Python 3.11 or newer, found %s" % sys.version.split()[0])'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "python3-venv is missing: apt-get install python3-venv" >&2; exit 1; }
	@rm -rf .venv && $(PYTHON) -m venv .venv
	@.venv/bin/python -m pip install -q --disable-pip-version-check 'uv>=0.5,<1'

.venv/.stamp: $(UV) uv.lock pyproject.toml
	@echo "Installing into .venv …"
	@$(UV) sync --frozen --all-extras --no-install-project -q
	@touch $@
