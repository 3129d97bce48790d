"""Imports what labs need, in one thread, before anything is forked; shared by the sandboxed parent and the grader's."""

from __future__ import annotations

import gc
import importlib
import os
from pathlib import Path

# a parent that used more than one thread deadlocks its children, so these are set before the libraries are imported
THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMEXPR_NUM_THREADS": "1",
           "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1",
           "MPLBACKEND": "module://matplotlib_inline.backend_inline", "PYTHONDONTWRITEBYTECODE": "1",
           "CUDA_VISIBLE_DEVICES": ""}

MODULES = (
    "numpy", "torch", "matplotlib.pyplot", "matplotlib_inline.backend_inline", "pandas", "PIL.Image", "ipywidgets",
    "inferlab.trace", "inferlab.models", "inferlab.lab", "inferlab.lab.check", "inferlab.lab.setup",
    "inferlab.lab.explain",
)
CLASSES = {
    "diffusers": ("StableDiffusionPipeline", "DDIMScheduler", "EulerDiscreteScheduler", "DPMSolverMultistepScheduler",
                  "UNet2DConditionModel", "AutoencoderKL"),
    "transformers": ("CLIPTextModel", "CLIPTokenizer", "LlamaForCausalLM", "AutoTokenizer", "PreTrainedTokenizerFast",
                     "GenerationConfig", "DynamicCache"),
}


def warm() -> None:
    """Import everything, read the tables of explanations, load the bundled weights if `inferlab.models` has a `preload` for it, and stay single-threaded.

    Raises:
        RuntimeError: if an import started a thread, since children forked then could hang.
    """
    os.environ.update(THREADS | OFFLINE)
    import torch

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    for name in MODULES:
        importlib.import_module(name)
    importlib.import_module("inferlab.lab.setup").quiet()  # the libraries' import notices are not for a terminal either
    with importlib.import_module("inferlab.models.quiet").quiet():  # torchao logs which GPU kernels a machine cannot load
        for name, classes in CLASSES.items():
            module = importlib.import_module(name)
            for attribute in classes:
                getattr(module, attribute)
    importlib.import_module("inferlab.lab.explain.grade").preload()
    preload = getattr(importlib.import_module("inferlab.models"), "preload", None)
    if preload is not None:
        preload()
    threads = len(os.listdir("/proc/self/task")) if Path("/proc/self/task").is_dir() else 1
    if threads != 1:
        raise RuntimeError(f"{threads} threads are running before the fork; grading would hang")
    # After a fork torch makes its thread pool anew at whatever thread's operation comes first; a second thread that comes at the
    # same moment finds none ("Invalid thread pool!", aten/src/ATen/ParallelOpenMP.cpp). So it is made while there is one thread.
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(torch.get_num_threads()))
    gc.collect()
    gc.freeze()  # children then share these pages for longer
