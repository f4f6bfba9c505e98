# make demo | test | test-all | check | runtime-wheel | bench | bench-operators | bench-models | schedule-fuzz | fuzz-import | fuzz-load | mutants | replay | bench-sweep | bench-tuner | bench-tuned        everything lives in .venv, made on first use
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(wildcard src/weft/native/CMakeLists.txt src/weft/native/*/*.[ch]*)
PYTEST_ARGS ?= -n 2 --dist worksteal
SEED ?= 1
.PHONY: demo test test-all check lint types toolchains runtime-wheel bench bench-operators schedule-fuzz fuzz-import fuzz-load mutants replay bench-models bench-sweep bench-passes bench-tuner bench-tuned clean

demo: $(VENV)/.installed-bench
	$(BIN)/weft demo

# Tests that compare times have the machine to themselves: they come last, one by one. One that fails is run once more, since
# neighbours of a shared machine disturb one run and a regression fails both. Only their files are collected for them: to collect
# all takes half a minute. Half of the others go to each process, so that most tests of a file share what it has imported
# and computed; who is done takes over some of the rest. What the checks and the toolchains need is fetched at once.
TIMED = $(BIN)/python -m pytest $(shell grep -rl "mark\.timed" tests --include="test_*.py")
FAILED_AGAIN = --last-failed --last-failed-no-failures none
test:
	$(MAKE) --jobs=2 --output-sync=target check toolchains
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "not slow and not timed"
	$(TIMED) -m "timed and not slow" || $(TIMED) -m "timed and not slow" $(FAILED_AGAIN)

test-all: .venv-tensorflow/.installed $(VENV)/.installed-test $(VENV)/.installed-transformers
	$(MAKE) --jobs=2 --output-sync=target check toolchains
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "not timed"
	$(TIMED) -m timed || $(TIMED) -m timed $(FAILED_AGAIN)

check: types lint

types: $(VENV)/.installed-test
	$(BIN)/mypy

lint: $(VENV)/.installed-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

toolchains:
	.ci/toolchains.sh

# Random schedules of random programs, each compared with NumPy: make schedule-fuzz N=20000 SEED=0
N ?= 20000
SEED ?= 0
JOBS ?= 2
schedule-fuzz: $(VENV)/.installed-test
	$(BIN)/python -m tests.schedule.fuzz -n $(N) --seed $(SEED) --jobs $(JOBS)

# Damaged models, imported in processes of limited memory and time (make fuzz-import FORMATS="onnx keras" INPUTS=10000; all formats
# if none is named); damaged artifacts, loaded under sanitizers
INPUTS ?= 50000
FORMATS ?=
fuzz-import: $(VENV)/.installed-test
	$(BIN)/python -m tests.frontends.fuzz $(FORMATS) -n $(INPUTS) --seed $(SEED) --jobs $(JOBS) --passes

fuzz-load: $(VENV)/.installed-test
	$(BIN)/python -m tests.runtime.artifacts.fuzz_load -n $(INPUTS)

# Bugs planted in a copy of the sources, each to be caught by a test
mutants: $(VENV)/.installed-test
	$(BIN)/python -m tests.schedule.mutants --jobs $(JOBS)

# dist/weft_runtime-*.whl: what runs saved models, without the compiler
runtime-wheel: $(BIN)/python
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist packaging/runtime

# What the compiler makes of some 800 kernels must stay as it is stored; REPLAY_ARGS=--update stores an intended change.
replay: $(VENV)/.installed-test
	$(BIN)/python -m tests.replay --jobs $(JOBS) $(REPLAY_ARGS)

bench: $(VENV)/.installed-bench
	benchmarks/run.sh $(BENCH_ARGS)
	$(MAKE) bench-operators BENCH_ARGS=

# Every operator at three sizes against ONNX Runtime, one by one, in some two minutes: the worst ten, and the geometric mean.
bench-operators: $(VENV)/.installed-test
	mkdir -p benchmarks/cache
	cd benchmarks && ../$(BIN)/python operators.py --json cache/operators.json $(BENCH_ARGS)

# The models of the README's table, into benchmarks/onnx.
bench-models:
	benchmarks/setup.sh torch
	[ -e benchmarks/onnx/manifest.json ] || (cd benchmarks && venv-torch/bin/python models.py onnx)

bench-sweep: $(VENV)/.installed-bench
	benchmarks/setup.sh ort
	benchmarks/venv-ort/bin/python benchmarks/sweep.py --seed $(SEED) $(BENCH_ARGS)

# Best found against trials for each tuner, on layers of the TVM paper (its figure 12): a picture and the figures.
bench-tuner: $(VENV)/.installed-test
	cd benchmarks && ../$(BIN)/python tuner_curves.py --json cache/tuner.json --picture cache/tuner.png $(BENCH_ARGS)

# What tuning is worth: twelve networks, tuned for five minutes each, against what the rules choose.
bench-tuned: $(VENV)/.installed-test bench-models
	cd benchmarks && ../$(BIN)/python tuned_networks.py --json cache/tuned.json $(BENCH_ARGS)

# Times every pass and keeps the figures in benchmarks/cache; BENCH_ARGS=--benchmark-compare shows them beside the last.
bench-passes: $(VENV)/.installed-bench
	$(BIN)/python -m pytest benchmarks/benchmark_passes.py --benchmark-storage=benchmarks/cache --benchmark-autosave \
	  --benchmark-columns=min,median --benchmark-sort=name $(BENCH_ARGS)

# One stamp per extra. A change of the project file or of the native sources installs (and so builds) again.
# All that is installed or pointed to is compiled on all cores, which pip does on one: where Python may not write, each import would
# do it anew. Packages have templates that aren't Python, so errors in theirs are nothing.
$(VENV)/.installed-%: pyproject.toml $(NATIVE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[$*]"
	$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	$(BIN)/python -m compileall -q -j 0 src/weft
	@touch $@

# TensorFlow, which makes the networks of its formats' tests, in an environment of its own: it has its own version of NumPy.
.venv-tensorflow/.installed:
	$(PYTHON) -m venv .venv-tensorflow
	.venv-tensorflow/bin/python -m pip install --quiet --disable-pip-version-check tensorflow-cpu==2.21.0
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Weft needs Python 3.11 or newer; say: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
