# Start with `make demo` and `make test`. Both create a virtual environment the first time
# and are quick after that.

VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Whole files to each of several processes, which share one broker. They wait half of the time (those of
# test-fast do not), so there are more of them than the two processors of a small machine.
# tests/conftest.py puts the files that wait first.
PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder
MUTANTS := $(BIN)/python -m tools.mutation

# Compiled modules are kept, whatever the environment says: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-fast chaos mutants lint format bench pictures constraints clean

demo: $(READY)
	$(BIN)/streamer demo

test: $(READY)
	$(PYTEST) --numprocesses 4

test-fast: $(READY)  # no broker, no browser, no slow tests
	$(PYTEST) --numprocesses 2 --hypothesis-profile quick \
		-m "not chaos and not kafka and not browser and not slow"

chaos: $(READY)
	$(BIN)/python -m pytest -m chaos -s

mutants: $(READY)  # the table in CONTRIBUTING.md, row by row; those that nobody noticed are printed
	$(MUTANTS) $(filter-out %/baseline_plans.py,$(wildcard streamer/privacy/*.py)) -- tests/privacy
	$(MUTANTS) $(wildcard streamer/monitors/*.py) -- tests/monitors
	$(MUTANTS) $(patsubst %,streamer/service/%.py,pipeline resume loop progress) \
		$(patsubst %,streamer/stream/%.py,buffer closing engine fate publication schedule) \
		-- tests/service/test_pipeline.py tests/service/test_resume.py tests/service/test_loop.py \
		tests/stream
	$(MUTANTS) $(wildcard streamer/ledger/*.py) streamer/kafka/ledger_records.py \
		-- tests/ledger tests/kafka/test_ledger_records.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python -m benchmarks.suite

pictures: $(READY)  # the pictures in README.md
	$(BIN)/streamer compare --plot docs/pictures/comparison.png > /dev/null
	$(BIN)/streamer plan --plot docs/pictures/plan.png > /dev/null
	$(BIN)/python docs/pictures/outbreaks.py > /dev/null
	$(BIN)/python docs/pictures/day.py > /dev/null
	$(BIN)/python docs/pictures/page.py

constraints:  # pin the newest versions, resolved in a separate environment
	rm -rf .constraints && $(PYTHON) -m venv .constraints
	.constraints/bin/python -m pip install --quiet --disable-pip-version-check '.[plot,dev]' hatchling
	.constraints/bin/python -m pip freeze --exclude streamer > constraints.txt
	rm -rf .constraints

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "streamer needs Python 3.11 or later: install it, or name it with 'make PYTHON=/path/to/python'"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plot,dev]'
	@touch $@
