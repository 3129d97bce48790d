"""The hot path: one recording point per boundary, one log of integers per thread.

A record is eight integers (64 bytes) whatever the boundary carried: signatures are interned, nothing is formatted,
no tensor is kept, and nothing waits for a device.
"""

import threading
from array import array
from struct import Struct
from threading import get_ident
from time import perf_counter_ns

from . import spec

# What a point does with a call (bit flags).
OUTSIDE = 1  # record only when called from outside the component that owns the point
OPEN = 2  # record only while some boundary of this trace is open on this thread
DATA = 4  # drop the record unless a tensor, array or image crossed, or something inside was recorded
RESULT = 8  # drop the record unless something came back, or something inside was recorded

COLUMNS = 8  # seq, point, parent, inputs, outputs, start ns, end ns, status
RECORD = 8 * COLUMNS  # bytes
FULL = 128 * RECORD  # records of the short way wait in a buffer that stays in the processor's nearest cache
pack_into = Struct(f"{COLUMNS}q").pack_into
NAMED_VALUES = 48  # distinct argument values that one point may add to the table before values are left out


class Log:
    """What one thread did: closed records, and the boundary that is open now."""

    __slots__ = ("at", "count", "name", "point", "rows", "seq", "thread", "waiting")

    def __init__(self):
        self.rows = array("q")
        self.waiting, self.at = bytearray(FULL), 0  # records of the short way, and where the next one goes
        self.count = 0
        self.seq = -1
        self.point = None
        self.thread = get_ident()
        self.name = threading.current_thread().name

    def flush(self) -> None:
        """Adds the records that wait to `rows`. Only the log's own thread may: another one asks for `records`.

        The buffer is changed for an empty one first, so that a call recorded in the middle of this (by a signal's handler,
        say) finds a place.
        """
        empty = bytearray(FULL)
        full, end = self.waiting, self.at
        self.waiting, self.at = empty, 0
        self.rows.frombytes(memoryview(full)[:end])

    def records(self) -> array:
        """All records so far, for a thread that may not be the log's own."""
        rows = array("q", self.rows)
        rows.frombytes(bytes(self.waiting[: self.at]))
        return rows


class Recorder:
    """All that one trace has recorded so far, in compact form."""

    def __init__(self):
        self.logs: dict = {}
        self.points: list = []
        self.table: dict = {}
        self.keys: list = []
        # (shape, dtype, device) -> the same and the signature, for one tensor in and one out; shared by points: it stays near
        self.known_inputs: dict = {}
        self.known_outputs: dict = {}
        self._leaves: dict = {}  # a tensor's key -> the one that stands for all that are equal
        self.errors: list = []
        self.extras: dict = {}  # (thread, seq) -> {"move": ..., "kept": ..., "memory": ..., "events": ...}
        self.notes: list = []
        self.on_close = (
            None  # called after each record of a coarse point: (point, seq, parent, in, out, ns, status)
        )
        self.probe = None  # device clock and allocator, see device.py
        self._lock = threading.Lock()
        self._data: list = []

    def open_log(self) -> Log:
        log = Log()
        self.logs[log.thread] = log
        return log

    def log(self) -> Log:
        return self.logs.get(get_ident()) or self.open_log()

    def open_point(self):
        """The innermost open point of this thread, or None."""
        log = self.logs.get(get_ident())
        return None if log is None else log.point

    def intern(self, key, point) -> int:
        found = self.table.get(key)
        return self._add(key, point) if found is None else found

    def _add(self, key, point) -> int:
        with self._lock:
            point.novel += 1
            if point.novel > NAMED_VALUES:
                key = spec.coarse(key)
            found = self.table.get(key)
            if found is None:
                key = spec.shared(key, self._leaves)
                found = self.table[key] = len(self.keys)
                self.keys.append(key)
            return found

    def carries_data(self, signature: int) -> bool:
        known = self._data
        while len(known) <= signature:
            known.append(None)
        if known[signature] is None:
            known[signature] = spec.has_data(self.keys[signature])
        return known[signature]

    def note(self, text: str) -> None:
        """Adds a statement about what this trace could not see or changed; each is said once."""
        if text not in self.notes:
            self.notes.append(text)

    def error(self, error: BaseException) -> int:
        """The status of a boundary that raised; the exception itself would keep its frames alive."""
        text = f"{type(error).__name__}: {error}"[:200]
        with self._lock:
            if text not in self.errors:
                self.errors.append(text)
            return self.errors.index(text) + 1

    def inputs_of(self, point, args, kwargs) -> int:
        try:
            key = spec.call_key(args, kwargs)
            found = self.table.get(key)
            return self._add(key, point) if found is None else found
        except Exception as error:  # noqa: BLE001 - an argument's own attributes may raise anything; say so, go on
            self.note(f"the inputs of {point.name} could not be described: {type(error).__name__}: {error}")
            return self.intern(((), (), ()), point)

    def output_of(self, point, value) -> int:
        try:
            return self.intern(spec.key_of(value), point)
        except Exception as error:  # noqa: BLE001 - as above
            self.note(f"the output of {point.name} could not be described: {type(error).__name__}: {error}")
            return self.intern((spec.OPAQUE, type(value).__name__), point)


_NOTHING = (None, None, None, -1)


class _Near:
    """What the short way reads of a point: first in its memory, so that one line of the cache has it."""

    __slots__ = ("id", "known_in", "known_out", "logs", "recorder")


class Point(_Near):
    """One place where calls are recorded: a name, a kind, the component that owns it, and the rule."""

    __slots__ = ("base", "coarse", "kind", "lean", "name", "novel", "owner", "parameters", "rule", "skip")

    def __init__(self, recorder, name, kind, owner, rule=0, parameters=(), skip=1, coarse=True, base=None):
        self.recorder, self.name, self.kind, self.owner, self.rule = recorder, name, kind, owner, rule
        self.parameters, self.skip, self.coarse, self.novel = parameters, skip, coarse, 0
        self.lean = not coarse and not rule  # calls of a module may take the short way, see lean.py
        self.known_in = self.known_out = _NOTHING  # shape, dtype, device, signature: as last time
        self.logs = recorder.logs
        self.base = base or name  # the component's name, without the method
        self.id = len(recorder.points)
        recorder.points.append(self)

    def run(self, points, index, original, args, kwargs):
        """Calls `original(*args, **kwargs)` and records it; further traces of the same object nest inside."""
        recorder = self.recorder
        if index + 1 < len(points):
            original = _next(points, index + 1, original)
        log = recorder.logs.get(get_ident()) or recorder.open_log()
        above = log.point
        rule = self.rule
        if rule and (
            (rule & OUTSIDE and above is not None and above.owner == self.owner)
            or (rule & OPEN and above is None)
        ):
            return original(*args, **kwargs)
        seq = log.count
        log.count = seq + 1
        parent = log.seq
        log.seq, log.point = seq, self
        start = 0
        inputs = -1
        try:
            inputs = recorder.inputs_of(self, args[1:] if self.skip else args, kwargs)
            start = perf_counter_ns()
            output = original(*args, **kwargs)
            end = perf_counter_ns()
        except BaseException as error:
            end = perf_counter_ns()
            log.seq, log.point = parent, above
            log.rows.extend((seq, self.id, parent, inputs, -1, start or end, end, recorder.error(error)))
            raise
        log.seq, log.point = parent, above
        outputs = recorder.output_of(self, output)
        if rule and self.drops(log, seq, inputs, outputs, output):
            log.count = seq
            return output
        log.rows.extend((seq, self.id, parent, inputs, outputs, start, end, 0))
        return output

    def drops(self, log, seq, inputs, outputs, output) -> bool:
        """Whether a call turns out not to be a boundary: nothing crossed and nothing was recorded inside."""
        if log.count != seq + 1:
            return False
        if self.rule & DATA:
            recorder = self.recorder
            return not (recorder.carries_data(outputs) or (inputs >= 0 and recorder.carries_data(inputs)))
        return bool(self.rule & RESULT) and output is None


class ModulePoint(Point):
    """A point of a module inside a component: there are a thousand, so that what all have in common lies in the class."""

    __slots__ = ()
    kind, rule, skip, coarse, lean = "module", 0, 1, False, True

    def __init__(self, recorder, name, owner, parameters, base):
        self.recorder, self.logs, self.name, self.owner = recorder, recorder.logs, name, owner
        self.parameters, self.base, self.novel = parameters, base or name, 0
        self.known_in = self.known_out = _NOTHING
        points = recorder.points
        self.id = len(points)
        points.append(self)


def _next(points, index, original):
    def call(*args, **kwargs):
        return points[index].run(points, index, original, args, kwargs)

    return call


class FullPoint(Point):
    """A point that may also print live, keep tensors, and read the device's clock and allocator."""

    __slots__ = ("keep", "still")

    def __init__(self, recorder, name, kind, owner, rule=0, parameters=(), skip=1, coarse=True, base=None, keep=False):
        Point.__init__(self, recorder, name, kind, owner, rule, parameters, skip, coarse, base)
        self.keep = keep
        self.still = False  # nothing can happen in a call: the device is looked at once, not twice

    def before(self, args, kwargs):
        """What to remember of the object before the call (used by moves and by methods that change their object)."""
        return

    def after(self, before, args, output, inputs, outputs):
        """Replaces the output's signature, or returns it; may return an extra record as second value."""
        return outputs, None

    def run(self, points, index, original, args, kwargs):
        recorder = self.recorder
        if index + 1 < len(points):
            original = _next(points, index + 1, original)
        log = recorder.logs.get(get_ident()) or recorder.open_log()
        above = log.point
        rule = self.rule
        if rule and (
            (rule & OUTSIDE and above is not None and above.owner == self.owner)
            or (rule & OPEN and above is None)
        ):
            return original(*args, **kwargs)
        seq = log.count
        log.count = seq + 1
        parent = log.seq
        log.seq, log.point = seq, self
        probe = recorder.probe
        start = 0
        inputs = -1
        mark = before = kept = None
        try:
            inputs = recorder.inputs_of(self, args[1:] if self.skip else args, kwargs)
            before = self.before(args, kwargs)
            if self.keep:
                kept = _cloned((args[1:] if self.skip else args, kwargs))
            if probe is not None:
                mark = probe.enter()
            start = perf_counter_ns()
            output = original(*args, **kwargs)
            end = perf_counter_ns()
        except BaseException as error:
            end = perf_counter_ns()
            log.seq, log.point = parent, above
            status = recorder.error(error)
            if mark is not None:
                recorder.extras[(log.thread, seq)] = {"probe": probe.leave(mark)}
            log.rows.extend((seq, self.id, parent, inputs, -1, start or end, end, status))
            if recorder.on_close is not None:
                recorder.on_close(self, log, seq, parent, inputs, -1, end - (start or end), status)
            raise
        log.seq, log.point = parent, above
        extra = {}
        if mark is not None:
            extra["probe"] = probe.still(mark) if self.still else probe.leave(mark)
        outputs = recorder.output_of(self, output)
        outputs, more = self.after(before, args, output, inputs, outputs)
        if rule and more is None and self.drops(log, seq, inputs, outputs, output):
            log.count = seq
            return output
        if more is not None:
            extra.update(more)
        if self.keep:
            extra["kept"] = (*kept, _cloned(output))
        if extra:
            recorder.extras[(log.thread, seq)] = extra
        log.rows.extend((seq, self.id, parent, inputs, outputs, start, end, 0))
        if recorder.on_close is not None:
            recorder.on_close(self, log, seq, parent, inputs, outputs, end - start, 0)
        return output


def _cloned(value):
    """A copy of a value's tensors, detached, in the same containers (only asked for with `keep=`)."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        parts = [_cloned(part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if hasattr(value, "items"):
        return {name: _cloned(part) for name, part in value.items()}
    return value if isinstance(value, (str, int, float, bool, type(None))) else None


class StatefulPoint(FullPoint):
    """A method of an object that is no module (a scheduler, a processor): what it *sets* counts as its output.

    `scheduler.set_timesteps(20)` returns None; its output is shown as the `timesteps` and `sigmas` that it made.
    """

    __slots__ = ()

    def before(self, args, kwargs):
        # the values themselves, for as long as the call lasts: the id of a freed tensor may be given to its successor
        return dict(getattr(args[0], "__dict__", {})) if self.skip and args else None

    def after(self, before, args, output, inputs, outputs):
        recorder = self.recorder
        if output is not None or before is None:
            return outputs, None
        changed = [(n, v) for n, v in _state(args[0]) if before.get(n) is not v]
        if not changed:
            return outputs, None
        key = (spec.RECORD, "sets", tuple(n for n, _ in changed), tuple(spec.key_of(v) for _, v in changed))
        return recorder.intern(key, self), {"sets": True}


def _state(instance):
    for name, value in getattr(instance, "__dict__", {}).items():
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            yield name, value
