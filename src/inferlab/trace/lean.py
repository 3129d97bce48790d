"""The short way that module calls of an all-modules trace take: one Python frame, no table of points.

On a GPU a pipeline's call is mostly bound by the host that launches its kernels, so every microsecond here is a
microsecond of the call. This frame takes the place of `Module._wrapped_call_impl` and, for a module without hooks, of
`Module._call_impl`, too: a traced call is no deeper than an untraced one.
"""

import functools
from threading import get_ident
from time import perf_counter_ns

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.modules import module as _stock

from . import spec
from .record import FULL, RECORD, pack_into

_STOCK = Module._wrapped_call_impl
_STOCK_IMPL = Module._call_impl
# What the stock functions do may be done here only where they are what this was written for; else they are called.
_KNOWN = _STOCK.__code__.co_names == ("_compiled_call_impl", "_call_impl")
_HOOKS = ("_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks")
_GLOBAL_HOOKS = (
    "_global_backward_pre_hooks",
    "_global_backward_hooks",
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
)
_KNOWN_IMPL = _KNOWN and _STOCK_IMPL.__code__.co_names[:13] == (
    *("torch", "_C", "_get_tracing_state", "_slow_forward", "forward"),
    *_HOOKS,
    *_GLOBAL_HOOKS,
)


def recorded_call(patch, own):
    """`__call__` of a module class while traces record it.

    `own` is the class's own `__call__`, or None where it inherits that of `Module`, which is then looked up at each call:
    torch.fx replaces it, too.
    """
    entries, lean, adopt = patch.entries, patch.lean, patch.adopt
    is_compiling, compiler = torch.compiler.is_dynamo_compiling, torch.compiler
    direct = own is None and _KNOWN
    bare = direct and _KNOWN_IMPL and patch.holder._call_impl is _STOCK_IMPL
    tracing = torch._C._get_tracing_state
    # dictionaries that torch fills and empties, but never replaces
    all_back, all_before_back, all_after, all_before = (getattr(_stock, n, None) for n in (
        "_global_backward_hooks", "_global_backward_pre_hooks", "_global_forward_hooks", "_global_forward_pre_hooks"))

    @functools.wraps(own or Module.__call__)
    def traced(self, *args, **kwargs):
        if is_compiling() or compiler._is_compiling_flag:  # as torch.compiler.is_compiling(), a frame shorter
            return (own or Module.__call__)(self, *args, **kwargs)
        point = lean.get(id(self))
        if point is None:
            original = own or Module.__call__
            points = entries.get(id(self)) or adopt(self)
            if points is None:
                return original(self, *args, **kwargs)
            return points[0].run(points, 0, original, (self, *args), kwargs)
        recorder = point.recorder
        log = recorder.logs.get(get_ident()) or recorder.open_log()
        seq = log.count
        log.count = seq + 1
        parent, above = log.seq, log.point
        log.seq, log.point = seq, point
        start = 0
        inputs = -1
        try:
            if not direct or Module.__call__ is not _STOCK or self._compiled_call_impl is not None:
                call = functools.partial(own or Module.__call__, self)
            elif (
                not bare
                or self._forward_hooks
                or self._forward_pre_hooks
                or self._backward_hooks
                or self._backward_pre_hooks
                or all_after
                or all_before
                or all_back
                or all_before_back
                or Module._call_impl is not _STOCK_IMPL
                or tracing() is not None
            ):
                call = self._call_impl
            else:
                call = self.forward
            # A module mostly gets what it got last time: then its signatures are compared, not looked up.
            if not kwargs and len(args) == 1 and type(args[0]) is Tensor:
                value = args[0]
                shape, dtype, device, inputs = point.known_in
                if value.shape != shape or value.dtype is not dtype or value.device != device:
                    inputs = _new_input(recorder, point, value)
                start = perf_counter_ns()
                output = call(value)
            else:
                inputs = recorder.inputs_of(point, args, kwargs)
                start = perf_counter_ns()
                output = call(*args, **kwargs)
            end = perf_counter_ns()
        except BaseException as error:
            end = perf_counter_ns()
            log.seq, log.point = parent, above
            log.rows.extend((seq, point.id, parent, inputs, -1, start or end, end, recorder.error(error)))
            raise
        log.seq, log.point = parent, above
        if type(output) is Tensor:
            shape, dtype, device, outputs = point.known_out
            if output.shape != shape or output.dtype is not dtype or output.device != device:
                outputs = _new_output(recorder, point, output)
        else:
            outputs = recorder.output_of(point, output)
        at = log.at
        if at == FULL:
            log.flush()
            at = log.at
        log.at = at + RECORD
        pack_into(log.waiting, at, seq, point.id, parent, inputs, outputs, start, end, 0)
        return output

    return traced


def _new_input(recorder, point, value) -> int:
    found = recorder.intern(((spec.tensor_key(value),), (), ()), point)
    key = recorder.keys[found][0][0]
    point.known_in = recorder.known.setdefault(found, (*key, found))  # at once: replicas run in several threads
    return found


def _new_output(recorder, point, value) -> int:
    found = recorder.intern(spec.tensor_key(value), point)
    point.known_out = recorder.known.setdefault(found, (*recorder.keys[found], found))
    return found
