# Every target sets up what it needs; on a fresh machine `make demo` is the first command.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
UV     := build/uv/bin/uv
# The certificates of the system, as pip uses them.
export UV_SYSTEM_CERTS ?= 1
# Tests start many processes, which would each compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

OLDEST    := 3.11
NEWEST    := 3.13
PYTHONS   ?= 3.11 3.12 3.13
ON_PYTHON := UV=$(UV) tests/on_python.sh
TESTS     ?= tests
SHARED    := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --durations=30
# Tests that need nothing but this checkout.
HERE      := not docker and not wheel and not browser
DEMO      ?= demo
# Time of all targets of the fuzzer together.
FUZZ_SECONDS ?= 60
# The images of docker/; say SBOM_OF="NAME ..." for others.
IMAGES    ?= keras-gru
SBOM_OF   ?= $(addprefix $(IMAGES)/,engine engine-light serving training gateway prometheus)
# Every module, the layer's contract, export and serving, foreign messages, pictures.
DEPENDENT := tests/test_import_rule.py tests/keras_gru/test_layer_contract.py \
             tests/training/sentiment/evaluation/test_pictures.py \
             tests/training/forecasting/export/test_signatures.py \
             tests/serving/engine/test_portability.py \
             tests/serving/conformance/test_protos.py tests/serving/export/test_text_targets.py
# What compares with a framework that the locked environment lacks.
INTEROP   := tests/keras_gru/convert tests/keras_gru/test_onnx_export.py tests/keras_gru/encoder/test_outputs.py \
             tests/docs/test_gru_architecture.py tests/ecosystem/test_model_shapes.py \
             tests/benchmarks/test_layer_benchmark.py

.PHONY: help setup demo test test-interop test-spark test-all test-lowest test-lowest-short test-pythons test-oldest test-newest \
        test-newest-short wheel wheel-test wheel-test-short release-check sbom docker-test pages browser-test docs robustness fuzz lint lock bench-layer bench-serving clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 21

setup: $(STAMP)  ## make .venv and install the locked dependencies

# uv takes a fraction of pip's time, but knows nothing of an index that is set up for pip alone.
$(STAMP): requirements.lock pyproject.toml
	@echo "Installing the locked dependencies in $(VENV); this takes a minute or two."
	$(PYTHON) -m venv $(VENV)
	$(MAKE) --no-print-directory $(UV)
	$(UV) pip install --quiet --python $(VENV) -r requirements.lock || \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: $(STAMP)  ## train, export, serve and query on built-in data
	@$(BIN)/python -m demo

test: $(STAMP)  ## run the tests of after each change (no GPU, no Docker); SLOW=1 adds slow ones
	$(SHARED) -m "$(HERE) and not long$(if $(SLOW),, and not slow)" tests

test-all: $(STAMP)  ## run all tests: also long trainings, exports and guides from end to end
	$(SHARED) -m "$(HERE)" tests

test-lowest: $(UV)  ## run the tests on the oldest versions that pyproject.toml allows
	$(UV) pip compile --quiet pyproject.toml --extra dev --python-version $(OLDEST) \
	    --resolution lowest-direct --no-header --output-file build/lowest.txt
	$(ON_PYTHON) $(OLDEST) build/lowest build/lowest.txt $(TESTS)

test-pythons: test-oldest test-newest  ## run demo and tests on the oldest and the newest Python

test-oldest: $(UV)
	$(ON_PYTHON) $(OLDEST) build/oldest requirements.lock $(DEMO) $(TESTS)

test-newest: $(UV)
	$(ON_PYTHON) $(NEWEST) build/newest requirements.lock $(DEMO) $(TESTS)

test-interop: $(UV)  ## run the comparisons with PyTorch, Flax, Sonnet and tf2onnx, in an environment of their own (9 GB)
	$(UV) pip compile --quiet tests/interop.txt pyproject.toml --extra dev --constraints requirements.lock \
	    --python-version $(OLDEST) --no-header --output-file build/interop.txt
	NOTHING_MISSING=1 $(ON_PYTHON) $(OLDEST) build/interop build/interop.txt $(INTEROP) \
	    -m "$(HERE) and not long"

test-spark: $(UV)  ## score with Spark, in an environment of its own (4 GB); installs Java on Debian where it is missing
	tests/docs/install_java.sh
	$(UV) pip compile --quiet tests/spark.txt pyproject.toml --extra dev --constraints requirements.lock \
	    --python-version $(OLDEST) --no-header --output-file build/spark.txt
	NOTHING_MISSING=1 $(ON_PYTHON) $(OLDEST) build/spark build/spark.txt \
	    tests/docs/test_scoring_examples.py -k spark -m long

test-lowest-short:  ## the same, of what depends on versions most
	$(MAKE) test-lowest TESTS="$(DEPENDENT)"

test-newest-short:  ## the same, on the newest Python, of what depends on versions most
	$(MAKE) test-newest TESTS="$(DEPENDENT)" DEMO=

$(UV):
	$(PYTHON) -m venv build/uv
	$(@D)/python -m pip install --quiet --disable-pip-version-check uv

# The time of the commit: whoever builds it gets the same bytes.
wheel: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1580601600)
wheel: build/release  ## build the wheel and the source distribution, and check them
	rm -rf dist
	build/release/bin/python -m build --no-isolation --outdir dist
	build/release/bin/twine check --strict dist/*
	build/release/bin/check-wheel-contents dist/*.whl
	build/release/bin/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

build/release: pyproject.toml $(UV)
	$(UV) venv --quiet --clear --python $(PYTHON) $@
	$(UV) pip install --quiet --python $@ --group release
	@touch $@

wheel-test: wheel $(STAMP)  ## use the wheel with each extra in a fresh environment
	UV=$(UV) $(BIN)/python -m pytest tests/packaging -m wheel $(WHEEL_TESTS)

wheel-test-short:  ## the same, of what needs no TensorFlow
	$(MAKE) wheel-test WHEEL_TESTS="-m 'wheel and not slow'"

release-check: $(STAMP)  ## what a release must pass: rebuilt alike, and each extra on each Python
	@test -z "$$(git status --porcelain)" || \
	    { echo "release-check: expected a tree without changes; commit them first" >&2; exit 1; }
	$(MAKE) test-all wheel
	UV=$(UV) PYTHONS="$(PYTHONS)" $(BIN)/python -m pytest tests/packaging -m "wheel or not wheel" --durations=20

sbom: build/sbom-tools  ## list the contents of the images in build/sbom, as CycloneDX
	build/sbom-tools/bin/python docker/sbom.py --to build/sbom $(SBOM_OF)

build/sbom-tools: pyproject.toml $(UV)
	$(UV) venv --quiet --clear --python $(PYTHON) $@
	$(UV) pip install --quiet --python $@ --group sbom
	@touch $@

docker-test: $(STAMP) build/sbom-tools  ## build, start and query the containers; starts a Docker Engine if none answers
	@mkdir -p build && rm -f build/docker-test.txt
	KERAS_GRU_FIGURES=$(CURDIR)/build/docker-test.txt $(BIN)/python -m pytest tests/docker -m docker
	@cat build/docker-test.txt

pages: web/node_modules  ## build the pages of the package from web/, with npm
	node web/build.mjs

web/node_modules: web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	@touch $@

browser-test: $(STAMP)  ## try the pages in Chromium; installs it on Debian where it is missing
	tests/browser/install.sh
	$(MAKE) web/node_modules
	@mkdir -p build && rm -f build/browser-test.txt
	KERAS_GRU_FIGURES=$(CURDIR)/build/browser-test.txt $(BIN)/python -m pytest tests/browser -m browser
	@cat build/browser-test.txt

docs: $(STAMP)  ## build the documentation as a site, strictly, in site/
	$(BIN)/python docs/sphinx/build_site.py

robustness: $(STAMP)  ## the long form of the tests that try to break the server; figures on screen
	@mkdir -p build && rm -f build/robustness.txt
	KERAS_GRU_ROBUSTNESS=full KERAS_GRU_FIGURES=$(CURDIR)/build/robustness.txt \
	    $(BIN)/python -m pytest tests/serving/codecs/test_hostile_codecs.py \
	    tests/serving/codecs/test_large_request.py tests/serving/client/test_limits.py \
	    tests/serving/server/test_budgets.py tests/serving/server/robustness
	@cat build/robustness.txt
	$(MAKE) --no-print-directory fuzz

fuzz: build/fuzz-tools  ## let a fuzzer look for files and requests that break a reader; FUZZ_SECONDS=600 for longer
	build/fuzz-tools/bin/python -m tests.fuzz.run --seconds $(FUZZ_SECONDS)

build/fuzz-tools: pyproject.toml requirements.lock $(UV)
	$(UV) venv --quiet --clear --python $(PYTHON) $@
	$(UV) pip install --quiet --python $@ --constraints requirements.lock --group fuzz --editable ".[tables]"
	@touch $@

lint: $(STAMP)  ## ruff, docstrings and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -q -p no:cacheprovider --noconftest tests/test_docstrings.py
	$(BIN)/mypy

bench-serving: $(STAMP)  ## the server beside the bare model, empty servers and other servers
	$(BIN)/python -m benchmarks.serving

bench-layer: $(STAMP)  ## time the layer beside Keras, and PyTorch and Flax where installed
	$(BIN)/python -m benchmarks.layer

lock: $(UV)  ## resolve requirements.lock anew for all supported Pythons
	$(UV) pip compile pyproject.toml --extra dev --extra docs --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --custom-compile-command "make lock" \
	    --output-file requirements.lock

clean:  ## remove what the targets made
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
