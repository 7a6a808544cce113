PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PARITY := .venv-parity
PEERS := .venv-bench
PORT ?= 8000
BUNDLE ?= app/demo

.DEFAULT_GOAL := help
.PHONY: help serve setup export test lint check format bench bench-servers catalogue mutation fuzz parity demo

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

serve: $(VENV)/.serve  ## install what serving needs (no torch) and serve BUNDLE on PORT
	VIT_BUNDLE=$(BUNDLE) VIT_PORT=$(PORT) $(BIN)/python -m app

setup: $(VENV)/.dev  ## install everything a developer needs into .venv

test: $(VENV)/.dev  ## run all tests
	$(BIN)/python -m pytest -n auto

export: $(VENV)/.dev  ## CHECKPOINT=file OUT=bundles/name [PRECISION=int8|fp16] [IMAGE_SIZE=N]: checkpoint to bundle
	$(BIN)/python -m export --checkpoint $(CHECKPOINT) --out $(OUT) \
		$(if $(PRECISION),--precision $(PRECISION)) $(if $(IMAGE_SIZE),--image-size $(IMAGE_SIZE))

lint: $(VENV)/.dev  ## report what ruff finds
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check: lint  ## lint, and types with mypy
	$(BIN)/mypy

format: $(VENV)/.dev  ## let ruff repair and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev $(PEERS)/openvino/.installed $(PEERS)/decoding/.installed  ## measure, and write the benchmark tables
	$(BIN)/python -m tests.benchmarks

bench-servers: $(VENV)/.dev $(patsubst %,$(PEERS)/%/.installed,bentoml litserve mlserver pytriton ray transformers)  ## install other servers, and measure them side by side with this one
	$(BIN)/python -m tests.benchmarks servers

catalogue: $(VENV)/.dev  ## send every bad or odd picture to a server, ROUNDS (100) times
	$(BIN)/python -m tests.load.catalogue $(ROUNDS)

mutation: $(VENV)/.dev  ## send pictures with changed bytes to a server for SECONDS (600)
	$(BIN)/python -m tests.load.mutation $(SECONDS)

fuzz: $(VENV)/.fuzz  ## let atheris look for ways through the decoder for ten minutes
	$(BIN)/python -m tests.load.fuzz_decode -max_total_time=600

parity: $(PARITY)/.peers  ## [PEERS="timm ..."]: compare with other libraries, network by network, and write docs/parity.md
	$(PARITY)/bin/python -m tests.parity $(PEERS)

demo: $(VENV)/.dev  ## train the demo model again (about 40 minutes on two cores) and export its bundle
	$(BIN)/python -m model.demo train
	$(BIN)/python -m export --checkpoint model/demo/shapes.safetensors --out app/demo --replace

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "pip>=25.1"

$(VENV)/.serve: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group serve
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev
	touch $@ $(VENV)/.serve

$(VENV)/.fuzz: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group fuzz
	touch $@

$(PARITY)/.peers: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(PARITY)
	$(PARITY)/bin/python -m pip install --quiet "pip>=25.1"
	$(PARITY)/bin/python -m pip install --quiet --constraint constraints.txt --group parity
	$(PARITY)/bin/python -m pip install --quiet --no-deps --group parity-peers
	touch $@

$(PEERS)/%/.installed: tests/benchmarks/requirements/%.txt
	$(PYTHON) -m venv $(PEERS)/$*
	$(PEERS)/$*/bin/python -m pip install --quiet "pip>=25.1"
	$(PEERS)/$*/bin/python -m pip install --quiet --requirement $<
	touch $@
