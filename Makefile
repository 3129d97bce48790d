# Everything is one `make` word. The first one creates .venv and installs; later ones reinstall nothing.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SOURCE := source/.built
OUT    := ci/out
PYTEST := $(BIN)/python -m pytest
FAST   := tests/trace tests/models tests/lab tests/explain
# One worker a core, four at the most: each holds torch and the bundled models. tests/conftest.py says who shares one.
PARALLEL := -n auto --maxprocesses 4
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast lint lab release adopt notebooks notebooks-gpu bench bench-gpu bench-explanations bench-grading bench-hub bench-many publish site site-serve clean unbuilt

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-20s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "InferLab needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on -c constraints.txt -e '.[dev]'
	@touch $@

# source/, which git does not track, is built before anything else is done, from these files. Their folders are named, too: a file
# that is gone is no longer in the list. The dot keeps the folder notebooks apart from the target of that name.
TEXTS := $(shell find notebooks/. course.toml src/inferlab/grading/*.py src/inferlab/grading/authoring -not -name '*.pyc')
LABS  := $(foreach lab,$(notdir $(basename $(wildcard notebooks/*/*.py))),$(if $(wildcard notebooks/$(lab)/$(lab).py),$(lab)))
UNBUILT := $(filter-out $(wildcard source/*/*.ipynb),$(foreach lab,$(LABS),source/$(lab)/$(lab).ipynb))

# Exit code 1 says that a notebook was edited and not adopted: it stays as it is.
$(SOURCE): $(STAMP) $(TEXTS) $(if $(UNBUILT),unbuilt)
	$(BIN)/inferlab build --source || test $$? -eq 1
	@touch $@

demo: $(SOURCE)  ## trace a real pipeline, release a lab, grade three sample submissions
	$(BIN)/inferlab demo

test: lint  ## every test: style, unit, notebooks, grading
	$(PYTEST) -m timing
	$(PYTEST) -m 'not timing' $(PARALLEL)

test-fast: $(SOURCE)  ## trace, models, lab, explanations; without sandbox, notebooks, browser, clock and what is slow
	$(PYTEST) -m 'not (sandbox or notebooks or browser or slow or timing)' $(PARALLEL) $(FAST)

# ruff finds only what git tracks, apart from what is named.
lint: $(SOURCE)  ## style, types, import contracts, declared dependencies, containers, workflows; no test
	$(BIN)/ruff check . source
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/mypy
	$(BIN)/hadolint containers/Containerfile
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec containers/compose.yaml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml \
		handbook/instructors/check.yml

lab: $(SOURCE)  ## JupyterLab, opened on the list of the labs
	$(BIN)/jupyter lab release/start-here.ipynb $(if $(filter 0,$(shell id -u)),--allow-root)

release: $(STAMP)  ## build source/ and release/ from notebooks/
	$(BIN)/inferlab build
	@touch $(SOURCE)

adopt: $(STAMP)  ## LAB=name: bring an edited source/ notebook back to notebooks/
	$(BIN)/inferlab adopt $(or $(LAB),$(error which lab? make adopt LAB=lab02-denoising-step))

notebooks: $(SOURCE)  ## execute every notebook and prove every grade, or of LAB=name (ci/out/notebooks.json)
	$(BIN)/python -m ci.notebooks $(LAB) --out $(OUT)/notebooks.json

notebooks-gpu: $(SOURCE)  ## execute every lab's solution on this machine's GPU (ci/out/notebooks-gpu.json)
	$(BIN)/python -m ci.gpu.notebooks --model each --out $(OUT)/notebooks-gpu.json

bench-gpu: $(SOURCE)  ## floors, decode, memory, tracing, labs on this machine's GPU (a JSON in ci/results/, a handbook page)
	$(BIN)/python -m ci.gpu
	$(BIN)/python -m ci.gpu.page

bench: $(SOURCE)  ## what tracing costs, and what a busy machine does to the labs (ci/out/bench.json)
	$(BIN)/python -m ci.bench_trace
	$(BIN)/python ci/bench_busy.py

bench-explanations: $(SOURCE)  ## how explanations of fresh writers are graded (ci/out/explanations.json)
	$(BIN)/python -m ci.bench_explanations

bench-grading: $(SOURCE)  ## how fast grading is (ci/out/grading.json)
	$(BIN)/python -m ci.bench_grading

bench-hub: $(SOURCE)  ## every lab in twelve of a JupyterHub's kernels at once (ci/out/hub.json)
	$(BIN)/python -m ci.bench_hub

bench-many: $(SOURCE)  ## 2,000 submissions, Dask, PostgreSQL, and what is killed (ci/out/many.json)
	$(BIN)/python -m ci.bench_many

publish: $(SOURCE)  ## DIR=folder: the learners' public tree
	$(BIN)/inferlab publish $(or $(DIR),$(error where to? make publish DIR=../public))

site: $(SOURCE)  ## the course's website, into build/site
	$(BIN)/python site/build.py

site-serve: site  ## build the website and show it on http://localhost:8000
	$(BIN)/python -m http.server -d build/site 8000

clean:  ## remove .venv, learners' work of the demo, caches and benchmark results
	rm -rf $(VENV) build demo site/node_modules .pytest_cache .ruff_cache .mypy_cache .import_linter_cache $(OUT)/*.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
