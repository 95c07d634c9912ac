# Every target sets up what it needs; on a fresh machine `make demo` is the first command.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: help setup demo test docker-test robustness lint lock bench-layer bench-serving clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 15

setup: $(STAMP)  ## make .venv and install the locked dependencies

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: $(STAMP)  ## train, export, serve and query on built-in data
	@$(BIN)/python demo.py

test: $(STAMP)  ## run the tests (no GPU, no Docker needed)
	$(BIN)/python -m pytest -n auto --dist loadfile

docker-test: $(STAMP)  ## build, start and query the containers; starts a Docker Engine if none answers
	@mkdir -p build && rm -f build/docker-test.txt
	KERAS_GRU_FIGURES=$(CURDIR)/build/docker-test.txt $(BIN)/python -m pytest tests/docker -m docker
	@cat build/docker-test.txt

robustness: $(STAMP)  ## the long form of the tests that try to break the server; figures on screen
	@mkdir -p build && rm -f build/robustness.txt
	KERAS_GRU_ROBUSTNESS=full KERAS_GRU_FIGURES=$(CURDIR)/build/robustness.txt \
	    $(BIN)/python -m pytest tests/serving/test_hostile_codecs.py \
	    tests/serving/test_hostile_requests.py tests/serving/test_faults.py \
	    tests/serving/test_swaps_under_load.py
	@cat build/robustness.txt

lint: $(STAMP)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench-serving: $(STAMP)  ## the server beside the bare model, empty servers and other servers
	$(BIN)/python -m benchmarks.serving

bench-layer: $(STAMP)  ## time the layer beside Keras, and PyTorch and Flax where installed
	$(BIN)/python -m benchmarks.layer

lock: $(STAMP)  ## resolve requirements.lock anew for all supported Pythons
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.10 \
	    --no-emit-index-url --generate-hashes --custom-compile-command "make lock" --output-file requirements.lock

clean:  ## remove what the targets made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
