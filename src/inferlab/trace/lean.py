"""The short way that module calls of an all-modules trace take: one Python frame, no table of points.

On a GPU a pipeline's call is mostly bound by the host that launches its kernels, so every microsecond here is a
microsecond of the call. This frame takes the place of `Module._wrapped_call_impl`: a traced call is no deeper than an
untraced one.
"""

import functools
from threading import get_ident
from time import perf_counter_ns

import torch
from torch import Tensor
from torch.nn import Module

from . import spec

WAITING = 128  # records that wait before they are packed together
_STOCK = Module._wrapped_call_impl
# What the stock `__call__` does may be done here only where it is what this was written for.
_KNOWN = _STOCK.__code__.co_names == ("_compiled_call_impl", "_call_impl")


def recorded_call(patch, own):
    """`__call__` of a module class while traces record it.

    `own` is the class's own `__call__`, or None where it inherits that of `Module`, which is then looked up at each call:
    torch.fx replaces it, too.
    """
    entries, lean, adopt = patch.entries, patch.lean, patch.adopt
    is_compiling, compiler = torch.compiler.is_dynamo_compiling, torch.compiler
    direct = own is None and _KNOWN

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
            # A module mostly gets what it got last time: then its signatures are compared, not looked up.
            if not kwargs and len(args) == 1 and type(args[0]) is Tensor:
                value = args[0]
                shape, dtype, device, inputs = point.known_in
                if value.shape != shape or value.dtype is not dtype or value.device != device:
                    inputs = _new_input(recorder, point, value)
            else:
                inputs = recorder.inputs_of(point, args, kwargs)
            start = perf_counter_ns()
            if direct and Module.__call__ is _STOCK and self._compiled_call_impl is None:
                output = self._call_impl(*args, **kwargs)
            else:
                output = (own or Module.__call__)(self, *args, **kwargs)
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
        pending = log.pending
        pending.append((seq, point.id, parent, inputs, outputs, start, end, 0))
        if len(pending) >= WAITING:
            log.flush()
        return output

    return traced


def _new_input(recorder, point, value) -> int:
    key = spec.tensor_key(value)
    found = recorder.intern(((key,), (), ()), point)
    point.known_in = (*key, found)  # at once: replicas of a module run in several threads
    return found


def _new_output(recorder, point, value) -> int:
    key = spec.tensor_key(value)
    found = recorder.intern(key, point)
    point.known_out = (*key, found)
    return found
