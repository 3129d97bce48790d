"""Counts a pipeline's hidden steps without the tracer: by the interpreter's own profile hook, from the call
stack."""

import collections
import sys
import types

import torch

from inferlab.trace.recording import discover

_WRAPPERS = (
    "decorate_context",
    "wrapper",
    "wrapped",
    "inner",
    "_wrapped_call_impl",
    "_call_impl",
    "new_forward",
)
_NOT_STEPS = (
    "check_",
    "maybe_free",
    "maybe_convert",
    "_maybe_convert",
    "progress_bar",
    "_execution",
    "upcast",
    "enable_",
    "eval",
)


_NESTED = ("preprocess", "postprocess")  # a processor calls these itself for each clip of a video


def _is_property(value, name) -> bool:
    found = getattr(type(value), name, None)
    return isinstance(found, property) or not callable(found)


def hidden_steps(pipe, run) -> collections.Counter:
    """name -> calls of what the pipeline calls directly: its own methods, and methods of what it holds.

    Counts calls whose caller is code of the pipeline (a method of it, or a function of its file) and whose
    `self` is a part of it, and what a processor does for each clip; modules count by their forward. Copies of
    a scheduler count as the scheduler.
    """
    parts: dict = {}
    pipes = {id(pipe): ""}

    def collect(holder, prefix):
        for name, part in discover.parts(holder).items():
            if id(part) not in parts:
                parts[id(part)] = (prefix + name, part)
                if discover.is_pipeline(part):
                    pipes[id(part)] = prefix + name
                    collect(part, f"{prefix}{name}.")

    collect(pipe, "")
    schedulers = {type(part): name for name, part in parts.values() if discover.is_scheduler(part)}
    counts: collections.Counter = collections.Counter()

    def on_call(frame, event, _):
        code = frame.f_code
        if event != "call" or not code.co_varnames or code.co_varnames[0] != "self" or code.co_flags & 0x20:
            return
        me, name = frame.f_locals.get("self"), code.co_name
        if name in _WRAPPERS or (name.startswith("__") and name != "__call__") or name.startswith(_NOT_STEPS):
            return
        back = frame.f_back
        while back is not None and back.f_code.co_name in _WRAPPERS:
            back = back.f_back
        if back is None:
            return
        caller = back.f_locals.get("self")
        from_pipeline = id(caller) in pipes or "/pipelines/" in back.f_code.co_filename
        if id(me) in pipes:
            if (
                name != "__call__"
                and id(caller) in pipes
                and not _is_property(me, name)
                and _defined_here(me, name)
            ):
                counts[f"{pipes[id(me)]}.{name}".lstrip(".")] += 1
        elif id(me) in parts and (name in _NESTED if caller is me else from_pipeline):
            part_name, part = parts[id(me)]
            if isinstance(part, torch.nn.Module):
                if name == "forward":
                    counts[part_name] += 1
                elif (
                    not name.startswith("_")
                    and not _is_property(part, name)
                    and name in ("encode", "decode", "generate")
                ):
                    counts[f"{part_name}.{name}"] += 1
            elif name == "__call__":
                counts[part_name] += 1
            elif not name.startswith("_") and not _is_property(part, name):
                counts[f"{part_name}.{name}"] += 1
        elif (
            type(me) in schedulers
            and from_pipeline
            and not name.startswith("_")
            and not _is_property(me, name)
        ):
            counts[f"{schedulers[type(me)]}.{name}"] += 1

    sys.setprofile(on_call)
    try:
        run()
    finally:
        sys.setprofile(None)
    return counts


def _defined_here(pipe, name) -> bool:
    """Whether a method that returned something belongs to the pipeline's own file (mixins are plumbing)."""
    found = getattr(type(pipe), name, None)
    return (
        (isinstance(found, types.FunctionType)
        and "/pipelines/" in found.__code__.co_filename)
        or hasattr(found, "__wrapped__")
    )
