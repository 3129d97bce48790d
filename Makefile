# Everything is one `make` word. The first one creates .venv and installs; later ones reinstall nothing.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
OUT    := ci/out
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help demo test lab release adopt notebooks notebooks-gpu bench bench-gpu bench-explanations bench-grading publish clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-20s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "InferLab needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(STAMP)  ## trace a real pipeline, release a lab, grade three sample submissions
	$(BIN)/inferlab demo

test: $(STAMP)  ## every test: unit, notebooks, grading
	$(BIN)/ruff check src tests ci training
	$(BIN)/python -m pytest

lab: $(STAMP)  ## JupyterLab, opened on the released labs
	$(BIN)/jupyter lab --notebook-dir=release $(if $(filter 0,$(shell id -u)),--allow-root)

release: $(STAMP)  ## build source/ and release/ from notebooks/
	$(BIN)/inferlab build

adopt: $(STAMP)  ## LAB=name: bring an edited source/ notebook back to notebooks/
	$(BIN)/inferlab adopt $(or $(LAB),$(error which lab? make adopt LAB=lab02-denoising-step))

notebooks: $(STAMP)  ## execute every notebook and prove every grade, or of LAB=name (ci/out/notebooks.json)
	$(BIN)/python -m ci.notebooks $(LAB) --out $(OUT)/notebooks.json

notebooks-gpu: $(STAMP)  ## execute every lab's solution on this machine's GPU (ci/out/notebooks-gpu.json)
	$(BIN)/python -m ci.gpu.notebooks --model each --out $(OUT)/notebooks-gpu.json

bench-gpu: $(STAMP)  ## floors, decode, memory, tracing, labs on this machine's GPU (a JSON in ci/results/, a handbook page)
	$(BIN)/python -m ci.gpu
	$(BIN)/python -m ci.gpu.page

bench: $(STAMP)  ## what tracing costs (ci/out/bench.json)
	$(BIN)/python ci/bench_trace.py

bench-explanations: $(STAMP)  ## how well explanations are graded (ci/out/explanations.json)
	$(BIN)/python ci/bench_explanations.py

bench-grading: $(STAMP)  ## how fast grading is (ci/out/grading.json)
	$(BIN)/python ci/bench_grading.py

publish: $(STAMP)  ## DIR=folder: the learners' public tree
	$(BIN)/inferlab publish $(or $(DIR),$(error where to? make publish DIR=../public))

clean:  ## remove .venv, learners' work of the demo, caches and benchmark results
	rm -rf $(VENV) build demo .pytest_cache .ruff_cache $(OUT)/*.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
