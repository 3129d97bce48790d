"""Fixtures of the trace tests: quiet libraries, one thread, and a look at everything a trace could leave behind."""

import gc
import logging
import sys
import types
import warnings
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
warnings.filterwarnings("ignore", category=FutureWarning)


@pytest.fixture(scope="session", autouse=True)
def quiet():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    logging.getLogger("diffusers").setLevel(logging.ERROR)
    logging.getLogger("transformers").setLevel(logging.ERROR)
    yield
    torch.set_num_threads(threads)


def class_state() -> dict:
    """The functions of every loaded class of the libraries that are traced, by identity."""
    seen: dict = {}
    waiting = [object]
    while waiting:
        for cls in type.__subclasses__(waiting.pop()):
            if cls not in seen:
                waiting.append(cls)
                ours = str(cls.__module__).partition(".")[0] in (
                    "diffusers",
                    "transformers",
                    "torch",
                    "accelerate",
                    "zoo",
                )
                kinds = (types.FunctionType, staticmethod, classmethod)
                seen[cls] = {n: id(f) for n, f in vars(cls).items() if isinstance(f, kinds)} if ours else {}
    return seen


def instance_state(*roots) -> dict:
    """The attribute names of objects, and of every module and component inside them, with their hook counts."""
    state: dict = {}
    waiting = list(roots)
    while waiting:
        part = waiting.pop()
        if id(part) in state or not hasattr(part, "__dict__"):
            continue
        state[id(part)] = {
            n: (id(v) if callable(v) else 0) for n, v in vars(part).items() if not n.startswith("__")
        }
        if isinstance(part, torch.nn.Module):
            state[id(part)]["hooks"] = len(part._forward_hooks) + len(part._forward_pre_hooks)
            waiting.extend(part.children())
        waiting.extend(getattr(part, "components", {}).values() if not isinstance(part, type) else ())
    return state


def difference(before: dict, after: dict) -> list:
    return [
        (key, name)
        for key in before
        if key in after and before[key] != after[key]
        for name in {**before[key], **after[key]}
        if before[key].get(name) != after[key].get(name)
    ]


def _ours(cls, name) -> bool:
    """Whether a class attribute is a wrapper of the tracer's, or a leftover copy of an inherited function."""
    function = vars(cls).get(name)
    function = getattr(function, "__func__", function)
    inherited = any(vars(base).get(name) is function for base in cls.__mro__[1:])
    return inherited or "inferlab/trace" in getattr(getattr(function, "__code__", None), "co_filename", "")


@pytest.fixture
def nothing_left():
    """Fails the test when the tracer left something on a class (torch.compile and transformers patch some too)."""
    before = class_state()
    yield
    gc.collect()
    changed = difference(before, class_state())
    left = [(cls, name) for cls, name in changed if name not in vars(cls) or _ours(cls, name)]
    assert not left, f"left behind: {left}"
