"""What a trace could leave behind: the state of the libraries' classes and of objects, before and after."""

import types

import torch


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
                    "tests",
                )
                kinds = (types.FunctionType, staticmethod, classmethod)
                seen[cls] = {n: id(f) for n, f in vars(cls).items() if isinstance(f, kinds)} if ours else {}
    return seen


def instance_state(*roots) -> dict:
    """The attribute names of objects, and of every module and component inside them, with their hook
    counts."""
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


def is_ours(cls, name) -> bool:
    """Whether a class attribute is a wrapper of the tracer's, or a leftover copy of an inherited function."""
    function = vars(cls).get(name)
    function = getattr(function, "__func__", function)
    inherited = any(vars(base).get(name) is function for base in cls.__mro__[1:])
    return inherited or "inferlab/trace" in getattr(getattr(function, "__code__", None), "co_filename", "")
