# The small front door: `make help` lists what there is. CMake and its presets do the work.

PRESET ?= release
BUILD := build/$(PRESET)
JOBS ?= $(shell nproc)

.DEFAULT_GOAL := build
.DELETE_ON_ERROR:
.PHONY: help setup setup-wasm build run test bench lint format asan tsan nightly peers bench-peers bench-peers-comm clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile

setup:  ## install the Debian packages that are missing (packages.txt)
	@scripts/setup.sh build

setup-wasm: | setup
	@scripts/setup.sh wasm

# Ninja configures again by itself when a CMake file changes; this is for the first time.
build/%/build.ninja: CMakePresets.json | setup
	cmake --preset $*

build: $(BUILD)/build.ninja | setup  ## build the program: build/tessera
	cmake --build $(BUILD) --parallel $(JOBS) --target tessera
	@ln -sfn $(PRESET)/tessera build/tessera

run: build  ## train a GPT on a real text on 8 local ranks; ARGS="--training.steps 50" goes to train
	scripts/run.sh $(ARGS)

test: $(BUILD)/build.ninja | setup setup-wasm  ## build and run every test
	cmake --build $(BUILD) --parallel $(JOBS)
	@ln -sfn $(PRESET)/tessera build/tessera
	ctest --test-dir $(BUILD) --parallel $(JOBS) --output-on-failure $(ARGS)

bench: $(BUILD)/build.ninja | setup  ## build and run the benchmarks of bench/
	cmake --build $(BUILD) --parallel $(JOBS) --target benchmarks tessera
	scripts/bench.sh $(BUILD) $(ARGS)

lint:  ## clang-format and clang-tidy over everything
	@scripts/setup.sh lint
	scripts/lint.sh format tidy

format:  ## lay the code out as .clang-format says
	@scripts/setup.sh lint
	scripts/lint.sh rewrite

asan: build/asan/build.ninja | setup  ## every test under AddressSanitizer and UBSan
	cmake --build build/asan --parallel $(JOBS)
	scripts/sanitize.sh asan $(ARGS)

tsan: build/tsan/build.ninja | setup  ## the tests that run ranks as threads under ThreadSanitizer
	cmake --build build/tsan --parallel $(JOBS) --target thread_tests
	scripts/sanitize.sh tsan $(ARGS)

nightly: build peers  ## what is too long for `make test`: long comparisons, with PyTorch among them
	scripts/nightly_verify.sh
	scripts/nightly_curve.sh $(ARGS)
	.venv/bin/python tests/peers/hf_round_trip.py

peers: .venv/ready  ## a Python environment with PyTorch, for benchmarks and fixtures alone
.venv/ready: tests/fixtures/requirements.txt
	@scripts/setup.sh peers
	python3 -m venv .venv
	.venv/bin/pip install --requirement tests/fixtures/requirements.txt
	@touch $@

bench-peers: build peers  ## Tessera and PyTorch on the same step, in one run
	.venv/bin/python bench/peers/step.py $(ARGS)

bench-peers-comm: build peers  ## Tessera's all-reduce, gloo's and Open MPI's, in one run
	.venv/bin/python bench/peers/all_reduce.py $(ARGS)

clean:  ## remove what was built (runs/ stays)
	rm -rf build
