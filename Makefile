# Two commands do all the set-up: make rehearse runs the main job, make test runs the tests.
REGION ?= southcentralus
UV_VERSION := 0.13.8
PYTHON ?= python3
UV := .bootstrap/bin/uv
RUN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup system binaries engines azurite check docs test test-fast rehearse bench bench-page format clean
.DELETE_ON_ERROR:

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(f"Python 3.11 or later is needed, this is {sys.version.split()[0]}; set PYTHON=/path/to/python3.11" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "Python has no ensurepip; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@echo "set-up: making .bootstrap (uv $(UV_VERSION))"
	@rm -rf .bootstrap && $(PYTHON) -m venv .bootstrap && .bootstrap/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

.venv/.synced: uv.lock pyproject.toml | $(UV)
	@echo "set-up: installing the pinned packages into .venv (about 500 MB; uv keeps as much again in its cache)"
	@UV_PYTHON="$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(UV) sync --frozen --quiet
	@touch $@

setup: .venv/.synced ## Create the virtual environment with every pinned package

system: ## Install the Debian packages that tests use (as root on Debian; elsewhere list them)
	@sh tests/system-packages.sh

binaries: setup ## Find or build the programs of a real control plane (10 minutes and 8 GB of disk, once)
	@$(RUN)/gpufleet binaries

engines: binaries # the former name, for one release

rehearse: setup ## Rehearse a region in process: make rehearse REGION=dev
	@$(RUN)/gpufleet rehearse "$(REGION)"

check: setup ## Format, lint, types, layers, schema, documentation
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy
	$(RUN)/lint-imports --no-cache
	$(RUN)/gpufleet schema --check
	cd playbooks && PATH="$(CURDIR)/$(RUN):$$PATH" ../$(RUN)/ansible-lint --offline
	$(RUN)/pytest -q -n 0 --no-header tests/docs/test_links.py tests/docs/test_code_blocks.py tests/docs/test_plain_words.py tests/docs/test_site.py

docs: setup ## Build the documentation into out/docs; its search works without a server
	$(RUN)/zensical build --clean --strict
	@echo "open out/docs/index.html"

tests/azurite/node_modules/.package-lock.json: tests/azurite/package-lock.json
	@if command -v npm >/dev/null; then echo "set-up: installing Azurite (about 370 MB) below tests/azurite"; npm --prefix tests/azurite ci --ignore-scripts --no-audit --no-fund --silent; \
	else echo "set-up: without Node.js, tests of backups will be skipped"; fi

azurite: tests/azurite/node_modules/.package-lock.json

test: setup system binaries azurite ## Run every test
	$(RUN)/pytest -m "not alone" || failed=1; \
	echo "tests that need the machine for themselves:"; \
	$(RUN)/pytest -m alone -n 0 || failed=1; exit $${failed:-0}

FAST := boot cni components docs manifests plan security services stacks rehearsal/azure rehearsal/checks rehearsal/program rehearsal/report

test-fast: setup ## Run the tests that need no binaries, in under 3 minutes
	$(RUN)/pytest -m "not alone and not binaries" $(addprefix tests/,$(FAST))

bench: setup ## Measure speed and memory
	$(RUN)/python -m bench.rehearse
	$(RUN)/python -m bench.azure_model
	$(RUN)/python -m bench.arm
	$(RUN)/python -m bench.cluster
	$(RUN)/python -m bench.network
	$(RUN)/python -m bench.pulumi
	$(RUN)/python -m bench.rotation
	$(RUN)/python -m bench.journal

bench-page: setup ## Render docs/benchmarks.md from recorded results
	$(RUN)/python -m bench.page

format: setup ## Format the code
	$(RUN)/ruff format .
	$(RUN)/ruff check --fix .

clean: ## Remove the files that set-up and runs created
	rm -rf .venv .bootstrap out .mypy_cache .pytest_cache .ruff_cache .hypothesis .cache
