# Everything a newcomer needs: `make demo` and `make test`. Both set up their own
# virtual environment the first time and are quick after that.

VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test chaos lint format bench clean

demo: $(READY)
	$(BIN)/streamer compare

test: $(READY)
	$(BIN)/python -m pytest

chaos: $(READY)
	$(BIN)/python -m pytest -m chaos -s

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/monitor.py
	$(BIN)/python benchmarks/step.py
	$(BIN)/python benchmarks/journal.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "streamer needs Python 3.11 or later: install it, or name it with 'make PYTHON=/path/to/python'"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plot,dev]'
	@touch $@
