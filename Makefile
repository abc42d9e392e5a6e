# Everything here works in a fresh clone: what a target needs, it installs into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CORES = $(shell $(PYTHON) -c 'import os; print(os.cpu_count() or 1)')
# Tests wait for processes about as long as they compute: two workers for each core.
WORKERS ?= $(shell expr 2 \* $(CORES))
# Each worker of the tests on a real Kubernetes has a control plane of its own, which computes, too.
PLANES ?= $(shell expr 1 + $(CORES))
# How often a failed test is tried again; CI does once, and shows which (each is a defect to look at).
RERUNS ?= 0

# How many courses of events `make simulation` tries.
SEEDS ?= 200

.PHONY: demo test simulation check bench completions reference clean cluster builtin-types control-plane test-kubernetes runner-binary

demo: $(READY)
	@$(BIN)/python examples/demo.py

# Bytecode is kept, as in an installation, also where the environment says otherwise: each process of the
# tests, and there are hundreds, and each command of a benchmark would compile what it imports.
test simulation test-kubernetes bench: export PYTHONDONTWRITEBYTECODE :=

test: $(READY)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --reruns $(RERUNS) -rsR

# Hours of virtual time each, with faults at every request.
simulation: $(READY)
	@$(BIN)/python -m tests.simulation --quiet --seeds $(SEEDS)
	@$(BIN)/python -m tests.simulation --quiet --seeds $(SEEDS) --apps

check: $(READY)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

bench: $(READY)
	@$(BIN)/python -m benchmarks $(BENCH)

completions: $(READY)
	@$(BIN)/python completions/make.py

# What the embedded control plane knows of Kubernetes' own kinds, from the Go modules that
# tests/controlplane/kubernetes/go.mod pins (needs Go).
builtin-types: $(READY)
	@$(BIN)/python -m tests.controlplane.builtin_types

# The reference pages that are made from tables in the code.
reference: $(READY)
	@$(BIN)/python docs/reference/make.py

control-plane: $(READY)
	@$(BIN)/python -m tests.controlplane

# A real control plane with Cluster API, our installation, a manager and a node, until Ctrl-C;
# CLUSTER="--images FILE" and CLUSTER=--without-manager are its options.
cluster: $(READY)
	@$(BIN)/python -m tests.kubernetes.cluster $(CLUSTER)

test-kubernetes: control-plane
	@$(BIN)/python -m pytest -n $(PLANES) --reruns $(RERUNS) -rsR -m kubernetes

runner-binary:
	@$(PYTHON) deploy/build_runner.py

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "captfctl needs Python 3.11 or later; name one with: make PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/python -m compileall -q captfctl runner
	@touch $(READY)
