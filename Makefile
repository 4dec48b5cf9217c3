# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed-$(shell cat pyproject.toml setup.py 2>/dev/null | cksum | cut -d' ' -f1)

.PHONY: demo test lint types reports docs clean

$(STAMP):
	@echo "installing into $(VENV): a few minutes the first time"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	rm -f $(VENV)/.installed-* && touch $@

demo: $(STAMP)
	$(BIN)/nvprof-tools demo -o demo-report

# With the branch coverage of what turns files into figures: sources, timeline, attribution.
COVERAGE_FLOOR ?= 95
test: $(STAMP) lint types
	$(BIN)/python -m pytest -n auto --golden fixtures/golden --cov=nvprof_tools.sources --cov=nvprof_tools.timeline \
	  --cov=nvprof_tools.attribution --cov-branch --cov-report=term:skip-covered --cov-fail-under=$(COVERAGE_FLOOR) --durations=20

lint: $(STAMP)
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

reports: $(STAMP)
	$(BIN)/python tools/make_reports.py

docs: $(STAMP)
	$(BIN)/nvprof-tools tables > docs/tables.md

clean:
	rm -rf $(VENV) build dist *.egg-info demo-report

# A small CUDA prover to profile; needs nvcc. `make prover-selftest` checks its arithmetic without a GPU.
NVCC ?= $(shell command -v nvcc || echo /usr/local/cuda/bin/nvcc)
CUDA_ARCH ?= native

.PHONY: prover prover-selftest
prover: build/prover

build/prover: $(wildcard fixtures/prover/*.cu fixtures/prover/*.cuh fixtures/prover/*.hpp)
	mkdir -p build && $(NVCC) -O2 -std=c++17 -arch=$(CUDA_ARCH) -Invtx_markers/include -o $@ fixtures/prover/prover.cu

prover-selftest:
	mkdir -p build && $(CXX) -O2 -std=c++17 -o build/prover-selftest fixtures/prover/selftest.cpp && build/prover-selftest

# Damaged inputs of every kind, seeded; a failing one is kept as a regression file. See docs/reliability.md.
MINUTES ?= 20
SEED ?= 1

.PHONY: fuzz
fuzz: $(STAMP)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check atheris
	$(BIN)/python tools/fuzz.py --minutes $(MINUTES) --seed $(SEED)

# Speed of import and attribution on generated exports; see docs/performance.md. Needs 1.2 GB in BENCH_SCRATCH.
BENCH_SCRATCH ?= /tmp
BENCH_RESULTS ?= bench-results

.PHONY: bench
bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check connectorx
	$(BIN)/python -m benchmarks.speed.run --scratch $(BENCH_SCRATCH) --results $(BENCH_RESULTS)
