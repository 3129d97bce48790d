"""The warmed parents, of kernels and of graders: they import what labs need, in one thread, and then fork."""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from . import isolate

T = TypeVar("T")

# A parent that used more than one thread deadlocks its children. These must be set before the libraries are
# imported.
THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
           "NUMEXPR_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "TOKENIZERS_PARALLELISM": "false",
           "RAYON_NUM_THREADS": "1"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
           "DO_NOT_TRACK": "1", "MPLBACKEND": "module://matplotlib_inline.backend_inline",
           "PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": ""}
# `torch.compile` gives back the function it was given. Compiling takes a minute and a gigabyte of disk, and
# the function computes the same.
UNCOMPILED = {"TORCHDYNAMO_DISABLE": "1"}

MODULES = (
    "numpy", "torch", "matplotlib.pyplot", "matplotlib_inline.backend_inline", "pandas", "PIL.Image",
    "ipywidgets", "inferlab.trace", "inferlab.models", "inferlab.lab", "inferlab.lab.checks.check",
    "inferlab.lab.setup",
    "inferlab.lab.explain", "inferlab.lab.handin.hand_in",
)
CLASSES = {
    "diffusers": ("StableDiffusionPipeline", "DDIMScheduler", "EulerDiscreteScheduler",
                  "DPMSolverMultistepScheduler", "UNet2DConditionModel", "AutoencoderKL"),
    "transformers": ("CLIPTextModel", "CLIPTokenizer", "LlamaForCausalLM", "AutoTokenizer",
                     "PreTrainedTokenizerFast", "GenerationConfig", "DynamicCache"),
}


def warm() -> None:
    """Import everything, read the tables of explanations and the bundled weights, and stay in one thread.

    Raises:
        RuntimeError: if an import started a thread: a child that is forked then could hang.
    """
    os.environ.update(THREADS | OFFLINE | UNCOMPILED)
    import torch

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    for name in MODULES:
        importlib.import_module(name)
    importlib.import_module("inferlab.lab.setup").hide_notices()  # no notices of libraries in the terminal
    with importlib.import_module("inferlab.models.quiet").quiet():  # torchao logs missing GPU kernels
        for name, classes in CLASSES.items():
            module = importlib.import_module(name)
            for attribute in classes:
                getattr(module, attribute)
    preload = getattr(importlib.import_module("inferlab.models"), "preload", None)
    if preload is not None:
        preload()
    threads = threads_left()
    if threads != 1:
        raise RuntimeError(f"{threads} threads are running before the fork; grading would hang")
    # After a fork, torch makes a new thread pool at the first operation of any thread. A second thread that
    # comes at the same moment finds none ("Invalid thread pool!", aten/src/ATen/ParallelOpenMP.cpp). So the
    # pool is made at the fork, while there is one thread.
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(torch.get_num_threads()))
    gc.collect()
    gc.freeze()  # children share these pages for longer


def threads_left(seconds: float = 30.0) -> int:
    """How many threads run; waits at most `seconds` until there is one.

    transformers reads weights in a pool and does not wait for its threads to end
    (`convert_and_load_state_dict_in_model` in transformers/core_model_loading.py, 5.24): on a busy machine
    they are still there when it returns.
    """
    tasks, until = Path("/proc/self/task"), time.monotonic() + seconds
    while tasks.is_dir() and (count := len(os.listdir(tasks))) > 1:
        if time.monotonic() > until:
            return count
        time.sleep(0.01)
    return 1


def fork_for_every_message(control: socket.socket, sockets: int, prepare: Callable[[], T],
                           serve: Callable[..., None]) -> None:
    """Warm up and `prepare`, say so on `control`, then fork a child for every message, until the other end
    closes.

    Args:
        sockets: how many come with each message.
        serve: what a child does with what `prepare` gave, the message and its sockets. Then it ends.
    """
    isolate.die_with_parent()
    try:
        warm()
        prepared = prepare()
    except BaseException:
        control.send(json.dumps({"failed": traceback.format_exc()[-8000:]}).encode())
        raise
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children need no reaping
    control.send(json.dumps({"ready": True}).encode())
    while True:
        data, handles, _, _ = socket.recv_fds(control, 65536, sockets)
        if not data:
            return
        if os.fork() == 0:
            control.close()
            code = 1
            try:
                isolate.die_with_parent()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                serve(prepared, json.loads(data), *(socket.socket(fileno=handle) for handle in handles))
                code = 0
            finally:
                os._exit(code)
        for handle in handles:
            os.close(handle)
