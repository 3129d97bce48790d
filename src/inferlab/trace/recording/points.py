"""A point records the calls of one module or method: what happens around a call, and the kinds of points."""

from collections.abc import Callable, Iterable, Iterator
from threading import get_ident
from time import perf_counter_ns
from typing import Any

import torch
from torch.nn import Module

from . import discover, signature
from .recorder import Log, Recorder

# Which calls a point records (bit flags).
OUTSIDE = 1  # only calls from outside the component that owns the point
OPEN = 2  # only calls while some boundary of this trace is open on this thread
DATA = 4  # only calls that a tensor, array or image crossed, or inside which something was recorded
RESULT = 8  # only calls that returned something, or inside which something was recorded

_NOTHING = (None, None, None, -1)


class _Near:
    """The fields that the short call reads.

    A base class's slots lie before those of its subclasses. Here these five lie together, and one line of the
    processor's cache holds them.
    """

    __slots__ = ("id", "known_in", "known_out", "logs", "recorder")


class Point(_Near):
    """One place where calls are recorded.

    name, kind   as `Boundary` has them
    owner        the component or pipeline that it belongs to ("component:unet"); see OUTSIDE
    rule         which calls are recorded: a sum of OUTSIDE, OPEN, DATA and RESULT; 0 records all
    parameters   (name, kind) of the function's parameters, without `self`
    skip         1 where the first argument is `self`, else 0
    base         the component's name, without the method
    keep         whether the tensors are cloned and kept
    """

    __slots__ = ("base", "idle", "keep", "kind", "name", "novel", "owner", "parameters", "rule", "skip")
    # Printed live, timed on the device, and reads the allocator; all do but the inner modules of depth="all".
    coarse = True
    short = False  # whether the calls may take the short way, see short_call.py

    def __init__(
        self,
        recorder: Recorder,
        name: str,
        kind: str,
        owner: str,
        rule: int = 0,
        parameters: Iterable = (),
        skip: int = 1,
        base: str = "",
        keep: bool = False,
    ) -> None:
        self.name, self.kind, self.owner, self.rule = name, kind, owner, rule
        self.parameters, self.skip, self.base, self.keep = parameters, skip, base or name, keep
        # True for a function that only hands a value back: the device is read once for its calls.
        self.idle = False
        self._join(recorder)

    def _join(self, recorder: Recorder) -> None:
        self.recorder, self.logs, self.novel = recorder, recorder.logs, 0
        self.known_in: tuple = _NOTHING  # shape, dtype, device and signature of the last call's one tensor
        self.known_out: tuple = _NOTHING
        self.id = len(recorder.points)
        recorder.points.append(self)

    def before(self, args: tuple, kwargs: dict) -> signature.Value:
        """What to remember of the object before the call; `after` gets it back."""

    def after(self, before: signature.Value, args: tuple, output: signature.Value, outputs: int) -> tuple:
        """(the output's signature, further entries of the record or None)."""
        return outputs, None

    def drops(self, log: Log, seq: int, inputs: int, outputs: int, output: signature.Value) -> bool:
        """Whether a call turns out not to be a boundary: nothing crossed, and nothing was recorded inside."""
        if log.count != seq + 1:
            return False
        if self.rule & DATA:
            recorder = self.recorder
            return not (recorder.carries_data(outputs) or (inputs >= 0 and recorder.carries_data(inputs)))
        return bool(self.rule & RESULT) and output is None

    def run(
        self, points: tuple, index: int, original: Callable, args: tuple, kwargs: dict
    ) -> signature.Value:
        """Calls `original(*args, **kwargs)`, records the call and returns what it returned.

        `points` are those of all open traces of the object, `index` is this one's place: the others nest
        inside.
        """
        recorder = self.recorder
        if index + 1 < len(points):
            original = _next(points, index + 1, original)
        log = recorder.logs.get(get_ident()) or recorder.open_log()
        above, rule = log.point, self.rule
        if rule and (
            (rule & OUTSIDE and above is not None and above.owner == self.owner)
            or (rule & OPEN and above is None)
        ):
            return original(*args, **kwargs)
        seq, parent = log.count, log.seq
        log.count = seq + 1
        log.seq, log.point = seq, self
        probe: Any = recorder.probe if self.coarse else None
        extra: dict = {}
        mark: Any = None
        before: signature.Value = None
        start, inputs = 0, -1
        try:
            given = args[1:] if self.skip else args
            inputs = recorder.inputs_of(self, given, kwargs)
            before = self.before(args, kwargs)
            if self.keep:
                extra["kept"] = (*_cloned((given, kwargs)), None)
            if probe is not None:
                mark = probe.enter()
            start = perf_counter_ns()
            output = original(*args, **kwargs)
            end = perf_counter_ns()
        except BaseException as error:
            end = perf_counter_ns()
            log.seq, log.point = parent, above
            extra = {} if mark is None else {"probe": probe.leave(mark)}
            self._close(
                log, (seq, self.id, parent, inputs, -1, start or end, end, recorder.error(error)), extra
            )
            raise
        log.seq, log.point = parent, above
        if mark is not None:
            extra["probe"] = probe.idle(mark) if self.idle else probe.leave(mark)
        outputs, more = self.after(before, args, output, recorder.output_of(self, output))
        if rule and more is None and self.drops(log, seq, inputs, outputs, output):
            log.count = seq
            return output
        if more is not None:
            extra.update(more)
        if self.keep:
            extra["kept"] = (*extra["kept"][:2], _cloned(output))
        self._close(log, (seq, self.id, parent, inputs, outputs, start, end, 0), extra)
        return output

    def _close(self, log: Log, record: tuple, extra: dict) -> None:
        recorder = self.recorder
        if extra:
            recorder.extras[(log.thread, record[0])] = extra
        log.rows.extend(record)
        if self.coarse and recorder.on_close is not None:
            recorder.on_close(self, record)


def _next(points: tuple, index: int, original: Callable) -> Callable:
    def call(*args: signature.Value, **kwargs: signature.Value) -> signature.Value:
        return points[index].run(points, index, original, args, kwargs)

    return call


def _cloned(value: signature.Value) -> Any:
    """A copy of a value's tensors, detached, in the same containers (only asked for with `keep=`)."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        parts = [_cloned(part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if hasattr(value, "items"):
        return {name: _cloned(part) for name, part in value.items()}
    return value if isinstance(value, (str, int, float, bool, type(None))) else None


class ModulePoint(Point):
    """A module inside a component. There are a thousand, so that what all of them share lies in the class."""

    __slots__ = ()
    kind, rule, skip, keep, idle = "module", 0, 1, False, False
    coarse, short = False, True

    def __init__(
        self, recorder: Recorder, name: str, owner: str, parameters: Iterable, base: str | None
    ) -> None:
        self.name, self.owner, self.parameters, self.base = name, owner, parameters, base or name
        self._join(recorder)


class ForwardPoint(Point):
    """`unet.forward(x)` by name: recorded as a call of `unet`, and noted."""

    __slots__ = ()

    def before(self, args: tuple, kwargs: dict) -> None:
        """Adds the note. Only calls by name get here: inside `unet(x)` the component is open (OUTSIDE)."""
        self.recorder.note(
            f"{self.name}.forward(...) was called by its name: recorded as a call of {self.name}, "
            "but hooks on the module did not run"
        )


class StatefulPoint(Point):
    """A method of a scheduler or processor: what it *sets* counts as its output.

    `scheduler.set_timesteps(20)` returns None; its output is shown as the `timesteps` and `sigmas` that it
    made.
    """

    __slots__ = ()

    def before(self, args: tuple, kwargs: dict) -> dict | None:
        """The object's attributes, held until the call ends: a freed tensor's place may be given away."""
        return dict(getattr(args[0], "__dict__", {})) if self.skip and args else None

    def after(self, before: dict | None, args: tuple, output: signature.Value, outputs: int) -> tuple:
        """The signature of the tensors that the call set, where it returned nothing."""
        if output is not None or before is None:
            return outputs, None
        changed = [(n, v) for n, v in _tensors_held(args[0]) if before.get(n) is not v]
        if not changed:
            return outputs, None
        names, values = zip(*changed, strict=True)
        key = (signature.RECORD, "sets", names, tuple(map(signature.key_of, values)))
        # Nobody reads "sets". The entry keeps `run` from dropping the call, which returned None.
        return self.recorder.intern(key, self), {"sets": True}


def _tensors_held(instance: signature.Value) -> Iterator[tuple]:
    for name, value in getattr(instance, "__dict__", {}).items():
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            yield name, value


class PipelinePoint(Point):
    """A pipeline's call: looks first for parts that were swapped in or given new hooks since the last one."""

    __slots__ = ("refresh",)

    def __init__(
        self, recorder: Recorder, name: str, owner: str, parameters: Iterable, refresh: Callable[[], None]
    ) -> None:
        super().__init__(recorder, name, "pipeline", owner, parameters=parameters)
        self.refresh = refresh

    def before(self, args: tuple, kwargs: dict) -> None:
        """Puts points on the new parts."""
        self.refresh()


class CachePoint(Point):
    """A KV cache's method: recorded when tensors go in, or when it changes the cache and returns nothing."""

    __slots__ = ()

    def drops(self, log: Log, seq: int, inputs: int, outputs: int, output: signature.Value) -> bool:
        """Whether the call only read something."""
        return log.count == seq + 1 and output is not None and not self.recorder.carries_data(inputs)


class AssignmentPoint:
    """`__setattr__` of a traced pipeline: records nothing; a part that is swapped in gets its points."""

    def __init__(self, refresh: Callable[[], None]) -> None:
        self.refresh = refresh

    def run(self, points: tuple, index: int, original: Callable, args: tuple, kwargs: dict) -> None:
        """Sets the attribute `args[1]` of the pipeline `args[0]` to `args[2]`."""
        if index + 1 < len(points):
            points[index + 1].run(points, index + 1, original, args, kwargs)
        else:
            original(*args, **kwargs)
        value = args[2] if len(args) > 2 else None
        if isinstance(value, Module) or discover.is_worker(value) or discover.is_pipeline(value):
            self.refresh()
