"""The short call: where every call of a traced module enters. Inner modules are recorded in this one frame.

On a GPU a pipeline's call mostly waits for the host that launches its kernels, so every microsecond here is a
microsecond of the call. Between two boundaries the kernels' launches fill the processor's caches, so touching
memory costs most. All module classes therefore share one function, one table of points and one code object,
and a point holds first what is read of it. The function takes the place of `Module._wrapped_call_impl` and,
for a module without hooks, of `Module._call_impl`, too: the traced call of an inner module is no deeper than
an untraced one. All other calls go on to `Point.run`.
"""

import functools
from collections.abc import Callable
from threading import get_ident
from time import perf_counter_ns
from typing import Any, TypeAlias

import torch.jit._trace as _jit
from torch import Tensor, compiler
from torch.compiler import is_dynamo_compiling
from torch.nn import Module
from torch.nn.modules import module as _stock

from . import signature
from .recorder import FULL, RECORD_BYTES, pack_into

Patch: TypeAlias = Any  # a `patches.Patch`; that module imports this one
Point: TypeAlias = Any  # a `points.ModulePoint`
_STOCK = Module._wrapped_call_impl
_STOCK_IMPL = Module._call_impl
# Whether the stock functions are the ones that this was written for: only then may their work be done here.
KNOWN = _STOCK.__code__.co_names == ("_compiled_call_impl", "_call_impl")
_HOOKS = ("_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks")
_GLOBAL_HOOKS = (
    "_global_backward_pre_hooks",
    "_global_backward_hooks",
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
)
_known_impl = KNOWN and _STOCK_IMPL.__code__.co_names[:13] == (
    *("torch", "_C", "_get_tracing_state", "_slow_forward", "forward"),
    *_HOOKS,
    *_GLOBAL_HOOKS,
)
# `Module._slow_forward`, which jit's tracing takes, is `forward` unless this table names the modules for it.
KNOWN_IMPL = _known_impl and hasattr(_jit, "_trace_module_map")
# Dictionaries that torch fills and empties, but never replaces.
_all_before_back, _all_back, _all_after, _all_before = (getattr(_stock, name, None) for name in _GLOBAL_HOOKS)

POINTS: dict[int, Point] = {}  # id(module) -> its point, of every module whose calls take the short way
PATCHES: dict[type, Patch] = {}  # class -> its patch, of every class whose `__call__` is `short_call` now


def recorded_call(patch: Patch) -> Callable:
    """`__call__` of a module class while traces record it.

    It is `short_call`, or a function of its own for a class that has another `__call__` or `_call_impl` than
    `Module`. Sets `patch.short` to the table of the short way, or leaves it None.
    """
    holder = patch.holder
    own = holder.__call__
    # `own` is `short_call` where a base class is traced already.
    if holder is not Module and own in (Module.__call__, short_call):
        usual = holder._call_impl is _STOCK_IMPL and holder._compiled_call_impl is None
        if usual and KNOWN_IMPL and not any(hasattr(holder, name) for name in _HOOKS):
            patch.short = POINTS
            PATCHES[holder] = patch
            return short_call
        own = None
    return _other_call(patch, own)


def forget(patch: Patch) -> None:
    """Takes the points of a removed patch off the short way."""
    if patch.holder in PATCHES and PATCHES[patch.holder] is patch:
        del PATCHES[patch.holder]
        for key in patch.entries:
            POINTS.pop(key, None)


def _other_call(patch: Patch, own: Callable | None) -> Callable:
    """A wrapper of `own`, the class's own `__call__`.

    None stands for the `__call__` of `Module`, which is looked up at each call, because torch.fx replaces it,
    too.
    """
    entries, adopt = patch.entries, patch.adopt

    @functools.wraps(own or Module.__call__)
    def traced(self: Module, *args: signature.Value, **kwargs: signature.Value) -> signature.Value:
        original = own or Module.__call__
        if is_dynamo_compiling() or compiler._is_compiling_flag:
            return original(self, *args, **kwargs)
        points = entries.get(id(self)) or adopt(self)
        if points is None:
            return original(self, *args, **kwargs)
        return points[0].run(points, 0, original, (self, *args), kwargs)

    return traced


def _full_call(self: Module, args: tuple, kwargs: dict) -> signature.Value:
    """A call of a module that is not in the table.

    Either it has a point of another kind, as every component has, or several traces record it, or none does.
    """
    patches = (PATCHES[cls] for cls in type(self).__mro__ if cls in PATCHES)
    points = next((patch.entries.get(id(self)) or patch.adopt(self) for patch in patches), None)
    if not points:
        return Module.__call__(self, *args, **kwargs)
    return points[0].run(points, 0, Module.__call__, (self, *args), kwargs)


@functools.wraps(Module.__call__)
def short_call(self: Module, *args: Any, **kwargs: Any) -> Any:
    """Calls the module as `Module.__call__` does, and records the call at the module's point."""
    if is_dynamo_compiling() or compiler._is_compiling_flag:  # torch.compiler.is_compiling()
        return Module.__call__(self, *args, **kwargs)
    point = POINTS.get(id(self))
    if point is None:
        return _full_call(self, args, kwargs)
    log = point.logs.get(get_ident()) or point.recorder.open_log()
    seq = log.count
    log.count = seq + 1
    parent, above = log.seq, log.point
    log.seq, log.point = seq, point
    start = 0
    inputs = -1
    try:
        held = self.__dict__
        if (
            held["_forward_hooks"]
            or held["_forward_pre_hooks"]
            or held["_backward_hooks"]
            or held["_backward_pre_hooks"]
            or "_compiled_call_impl" in held
            or _all_after
            or _all_before
            or _all_back
            or _all_before_back
            or _jit._trace_module_map is not None
            or Module.__call__ is not _STOCK
            or Module._call_impl is not _STOCK_IMPL
        ):
            inputs = point.recorder.inputs_of(point, args, kwargs)
            call = functools.partial(Module.__call__, self)
            start = perf_counter_ns()
            output = call(*args, **kwargs)
        elif kwargs or len(args) != 1 or type(args[0]) is not Tensor:
            inputs = point.recorder.inputs_of(point, args, kwargs)
            start = perf_counter_ns()
            output = self.forward(*args, **kwargs)
        else:
            # A module mostly gets what it got last time: then its signatures are compared, not looked up.
            value = args[0]
            shape, dtype, device, inputs = point.known_in
            try:
                if value.shape != shape or value.dtype is not dtype or value.device != device:
                    inputs = _new_input(point, value)
            except RuntimeError:  # a nested tensor has no shape
                inputs = point.recorder.inputs_of(point, args, kwargs)
            start = perf_counter_ns()
            output = self.forward(value)
        end = perf_counter_ns()
    except BaseException as error:
        end = perf_counter_ns()
        log.seq, log.point = parent, above
        log.rows.extend((seq, point.id, parent, inputs, -1, start or end, end, point.recorder.error(error)))
        raise
    log.seq, log.point = parent, above
    if type(output) is Tensor:
        shape, dtype, device, outputs = point.known_out
        try:
            if output.shape != shape or output.dtype is not dtype or output.device != device:
                outputs = _new_output(point, output)
        except RuntimeError:
            outputs = point.recorder.output_of(point, output)
    else:
        outputs = point.recorder.output_of(point, output)
    at = log.at
    if at == FULL:
        log.flush()
        at = log.at
    log.at = at + RECORD_BYTES
    pack_into(log.waiting, at, seq, point.id, parent, inputs, outputs, start, end, 0)
    return output


def _new_input(point: Point, value: Tensor) -> int:
    key, recorder = signature.tensor_key(value), point.recorder
    known = recorder.known_inputs.get(key)
    if known is None:
        found = recorder.intern(((key,), (), ()), point)
        known = recorder.known_inputs.setdefault(key, (*recorder.keys[found][0][0], found))
    point.known_in = known  # one assignment: replicas run in several threads
    return known[3]


def _new_output(point: Point, value: Tensor) -> int:
    key, recorder = signature.tensor_key(value), point.recorder
    known = recorder.known_outputs.get(key)
    if known is None:
        found = recorder.intern(key, point)
        known = recorder.known_outputs.setdefault(key, (*recorder.keys[found], found))
    point.known_out = known
    return known[3]
