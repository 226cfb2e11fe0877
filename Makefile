# `make` lists what there is. Each target makes its own .venv and installs what it needs; the second time at once.
# PYTHON=/path/to/python3.12 chooses the interpreter. How it is installed: requirements/install.sh

SHELL := /bin/sh
BIN := .venv/bin
SCALE := default
DEMO := sample_workspaces/disable-cache/README.md
PINS := uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
	--no-strip-extras --annotation-style line --custom-compile-command "make pins"

.NOTPARALLEL:
.PHONY: help demo test lint types abilities units browser wheels isolation fleet examples docs bench house compare eval faults fuzz fleet-test fleet-bench \
	fleet-faults capacity pins clean runtime dev model

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r target what; do \
		printf '%-14s %s\n' "$$target" "$$what"; done

demo: runtime model  ## watch an agent do a real task, offline (two minutes the first time, for the packages)
	@test -f $(DEMO) || { echo "agentx: the demo's task is missing: $(DEMO) is not there." >&2; exit 1; }
	@command=$$(awk '/^```/ { if (inside) exit; inside = 1; next } inside { sub(/^\$$ /, ""); print; exit }' $(DEMO)); \
	case "$$command" in "agentx "*) ;; \
		*) echo "agentx: the first line of code in $(DEMO) is no agentx command." >&2; exit 1 ;; esac; \
	printf '\n$$ %s\n' "$$command"; PATH="$(CURDIR)/$(BIN):$$PATH" sh -c "$$command"

test: lint types model abilities units  ## what continuous integration runs: lint, types, abilities, tests and examples

lint: dev  ## ruff: the rules, and the formatting
	@echo "ruff"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "agentx: these files are not formatted; run $(BIN)/ruff format ." >&2; exit 1; }

types: dev  ## mypy, strict
	@echo "mypy"
	@$(BIN)/mypy --no-error-summary -p agentx

abilities: dev  ## pytest: what users can do, by their own doors alone
	@echo "abilities"
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile tests/abilities

units: dev  ## pytest: the rules of the house, the tests, the examples in docstrings, README and docs
	@sh requirements/bubblewrap.sh
	@echo "pytest"
	@$(BIN)/python -m pytest -q --doctest-modules -n 2 --dist worksteal --without-suites --ignore tests/abilities $(PYTEST)

browser: dev  ## the whole suite of the inspector in a real browser; it needs Chromium
	@$(BIN)/python -m pytest -q -n 2 tests/agentx/inspector/browser $(PYTEST)

wheels: dev  ## the whole suite of wheels: built, installed, with and without extras
	@$(BIN)/python -m pytest -q -n 2 tests/test_distribution.py tests/test_plain_install.py $(PYTEST)

isolation: dev  ## the whole suite of attacks on isolated commands
	@sh requirements/bubblewrap.sh
	@$(BIN)/python -m pytest -q -n 2 tests/agentx/quality/test_isolation.py $(PYTEST)

fleet: dev  ## the whole suite of the fleet, on SQLite; fleet-test has it on Postgres
	@$(BIN)/python -m pytest -q -n 2 tests/agentx/fleet $(PYTEST)

bench: dev  ## measure what is promised, beside peers (15 minutes; SCALE=small|year; BENCH="--beside REV")
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.txt || \
		echo "agentx: GitPython and dulwich could not be installed; measured without them." >&2
	@$(BIN)/python -m tests.bench --scale $(SCALE) $(BENCH)

house: dev  ## lines of code of each part, and files that an operation passes, beside the baseline
	@$(BIN)/python -m tests.house

compare: dev model  ## measure other products by their own interfaces (an hour; PEERS="mem0 agno" N=50 DATA=folder DOCS=1)
	@$(BIN)/python -m tests.compare $(PEERS) --n $(or $(N),50) $(if $(DATA),--data $(DATA)) $(if $(DOCS),--write-docs) $(COMPARE)

examples: dev  ## run the examples in README and docs alone
	@$(BIN)/python -m pytest -q tests/test_docs.py

# Without --quiet, which keeps mkdocs from counting warnings: --strict would then fail for nothing.
docs:  ## build the documentation site in site/; a broken link or a missing page fails
	@sh requirements/install.sh docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "open site/index.html"

eval: dev model  ## score capture, hot issues and search against labelled data (DATA=folder EVAL="locomo …" MODEL=PROVIDER/NAME DOCS=1)
	@test -n "$(DATA)" || { echo "agentx: which data? make eval DATA=folder" >&2; exit 1; }
	@$(BIN)/python -m tests.eval --data $(DATA) $(if $(MODEL),--model $(MODEL)) $(if $(DOCS),--write-docs) $(EVAL)

faults: dev  ## crashes, power cuts, full disks and many writers at once: nothing may be lost (twenty minutes; N=50 for a tenth)
	@$(BIN)/python -m pytest -q -n 2 tests/faults tests/test_fuzzing.py tests/agentx/test_state_machine.py
	@$(BIN)/python -m tests.faults --n $(or $(N),500) $(FAULTS)

fleet-test: dev  ## a fleet on Postgres: workers killed, frozen, cut off; an index on S3, with moto[s3] flask flask-cors
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { \
		echo "agentx: skipped: Postgres is not installed here (apt-get install postgresql)." >&2; exit 0; }; \
	FLEET_POSTGRES=1 $(BIN)/python -m pytest -q tests/agentx/fleet

fleet-bench: dev  ## runs per second of a fleet with 1, 2 and 3 workers, and the overhead of a run (N=workspaces RUNS=each)
	@$(BIN)/python -m tests.bench.fleet --workspaces $(or $(N),30) --runs $(or $(RUNS),5) $(FLEET)

fleet-faults: dev  ## hurt a fleet of three hosts at random: each run once, nothing lost (N=workspaces RUNS=each SEED=1; 300 × 10: 20 minutes)
	@$(BIN)/python -m tests.faults.fleet --workspaces $(or $(N),60) --runs $(or $(RUNS),10) --seed $(or $(SEED),1) $(FLEET)

capacity: dev  ## what a fleet costs, and where it saturates (MEASURE=1 measures again; DOCS=1 writes docs/capacity.md)
	@$(BIN)/python -m tests.bench.capacity $(if $(MEASURE),--measure) $(if $(DOCS),--docs)

fuzz: dev  ## look for bytes that break what reads them, with atheris, and drive the store at random (N=30 seconds each)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/fuzz.txt || \
		{ echo "agentx: atheris cannot be installed for $$($(BIN)/python -V); only the tests look for such bytes here." >&2; exit 1; }
	@$(BIN)/python -m tests.fuzz --seconds $(or $(N),30) $(FUZZ)
	@FUZZ_EXAMPLES=$(or $(N),30) $(BIN)/python -m pytest -q tests/agentx/test_state_machine.py

pins:  ## pin the newest allowed versions again (needs uv)
	@command -v uv >/dev/null || { echo "agentx: uv is missing; see https://docs.astral.sh/uv/" >&2; exit 1; }
	$(PINS) --upgrade --extra all pyproject.toml -o requirements/runtime.txt
	$(PINS) --upgrade requirements/checkout.in -c requirements/runtime.txt -o requirements/checkout.txt
	$(PINS) --upgrade --group dev -c requirements/runtime.txt -c requirements/checkout.txt -o requirements/dev.txt
	$(PINS) --upgrade --group bench -c requirements/runtime.txt -c requirements/dev.txt -o requirements/bench.txt
	$(PINS) --upgrade --group docs -c requirements/runtime.txt -c requirements/dev.txt -o requirements/docs.txt
	$(PINS) --upgrade --group fuzz -c requirements/runtime.txt -c requirements/dev.txt -o requirements/fuzz.txt

clean:  ## remove .venv and every cache
	@rm -rf .venv dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

runtime:
	@sh requirements/install.sh runtime

dev:
	@sh requirements/install.sh dev

# Search by meaning needs the embedding model; where it cannot be had, all works, by words alone.
model: runtime
	@$(BIN)/agentx models install minilm || :  # it says so itself
