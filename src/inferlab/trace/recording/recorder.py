"""Holds what a trace has recorded: a log of integers for each thread, and one table of signatures.

A record is eight integers (64 bytes), whatever the boundary carried. Signatures are interned: equal ones
share one number. Nothing is formatted while the model runs, no tensor is kept, and no device is waited for.
"""

import threading
from array import array
from struct import Struct
from threading import get_ident
from typing import Any, TypeAlias

from . import signature

Point: TypeAlias = Any  # a `points.Point`; that module imports this one

COLUMNS = 8  # seq, point, parent, inputs, outputs, start ns, end ns, status
RECORD_BYTES = 8 * COLUMNS
FULL = 128 * RECORD_BYTES  # of records that wait, so few that they stay in the processor's nearest cache
NAMED_VALUES = 48  # distinct argument values that one point may add to the table before values are left out
pack_into = Struct(f"{COLUMNS}q").pack_into


class Log:
    """What one thread did: the records of closed boundaries, and which boundary is open now."""

    __slots__ = ("at", "count", "name", "point", "rows", "seq", "thread", "waiting")

    def __init__(self) -> None:
        self.rows = array("q")
        self.waiting, self.at = bytearray(FULL), 0  # records of the short call, and where the next one goes
        self.count = 0
        self.seq = -1
        self.point: Point | None = None
        self.thread = get_ident()
        self.name = threading.current_thread().name

    def flush(self) -> None:
        """Adds the records that wait to `rows`. Only the log's own thread may; others ask for `records`.

        The buffer is changed for an empty one first. A call that is recorded in the middle of this, by the
        handler of a signal for example, then finds a place.
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

    def __init__(self) -> None:
        self.logs: dict[int, Log] = {}  # thread -> its log
        self.points: list[Point] = []
        self.numbers: dict = {}  # signature's key -> its number
        self.keys: list = []  # number -> key
        # Tensor's key -> (shape, dtype, device, number), for one tensor in and for one tensor out.
        self.known_inputs: dict = {}
        self.known_outputs: dict = {}
        # A tensor's key -> the first key that was equal to it. All signatures hold that first one.
        self._leaves: dict = {}
        self.errors: list[str] = []
        self.extras: dict = {}  # (thread, seq) -> {"probe": ..., "move": ..., "kept": ..., "sets": ...}
        self.notes: list[str] = []
        # Called as on_close(point, record) when the call of a coarse point ends. COLUMNS says what the record
        # holds.
        self.on_close: Any = None
        self.probe: Any = None  # reads the device's clock and allocator, see cuda_probe.py
        self._lock = threading.Lock()
        self._data: list[bool | None] = []

    def open_log(self) -> Log:
        """A new log for the thread that asks."""
        log = Log()
        self.logs[log.thread] = log
        return log

    def open_point(self) -> Point | None:
        """The point of the innermost open boundary of this thread."""
        log = self.logs.get(get_ident())
        return None if log is None else log.point

    def intern(self, key: signature.Key, point: Point) -> int:
        """The number of a signature, which `point` saw."""
        found = self.numbers.get(key)
        return self._add(key, point) if found is None else found

    def _add(self, key: signature.Key, point: Point) -> int:
        with self._lock:
            point.novel += 1
            if point.novel > NAMED_VALUES:
                key = signature.coarse(key)
            found = self.numbers.get(key)
            if found is None:
                key = signature.shared(key, self._leaves)
                found = self.numbers[key] = len(self.keys)
                self.keys.append(key)
            return found

    def carries_data(self, number: int) -> bool:
        """Whether the signature with this number holds a tensor, an array or an image."""
        known = self._data
        while len(known) <= number:
            known.append(None)
        answer = known[number]
        if answer is None:
            answer = known[number] = signature.has_data(self.keys[number])
        return answer

    def note(self, text: str) -> None:
        """Adds a statement about what this trace could not see or changed; each is said once."""
        if text not in self.notes:
            self.notes.append(text)

    def error(self, error: BaseException) -> int:
        """The status of a boundary that raised. The exception itself would keep frames alive."""
        text = f"{type(error).__name__}: {error}"[:200]
        with self._lock:
            if text not in self.errors:
                self.errors.append(text)
            return self.errors.index(text) + 1

    def inputs_of(self, point: Point, args: tuple, kwargs: dict) -> int:
        """The number that the signature of a call's arguments has in `keys`."""
        try:
            key = signature.call_key(args, kwargs)
            found = self.numbers.get(key)
            return self._add(key, point) if found is None else found
        except Exception as error:  # noqa: BLE001 - an argument's own attributes may raise anything; say so, go on
            self.note(f"the inputs of {point.name} could not be described: {type(error).__name__}: {error}")
            return self.intern(((), (), ()), point)

    def output_of(self, point: Point, value: signature.Value) -> int:
        """The number that the signature of a call's output has in `keys`."""
        try:
            return self.intern(signature.key_of(value), point)
        except Exception as error:  # noqa: BLE001 - as above
            self.note(f"the output of {point.name} could not be described: {type(error).__name__}: {error}")
            return self.intern((signature.OPAQUE, type(value).__name__), point)
