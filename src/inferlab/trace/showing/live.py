"""Prints boundaries while they happen; a step that repeats the one before it is only counted."""

import sys
from collections.abc import Callable

from inferlab.trace.reading import specs
from inferlab.trace.recording import signature
from inferlab.trace.recording.points import Point
from inferlab.trace.recording.recorder import Recorder


class LivePrinter:
    """Called after each call of a coarse point; `write` gets one line at a time (by default to stdout)."""

    def __init__(self, recorder: Recorder, write: Callable[[str], object] | None = None) -> None:
        self.recorder = recorder
        self.write = write or self._print
        self.last: list[tuple] = []  # what the step before this one consisted of
        self.turn: list[tuple] = []  # the same for this step
        self.held: list[str] = []  # lines of this step that may turn out to repeat the one before
        self.repeats = 0

    @staticmethod
    def _print(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def __call__(self, point: Point, record: tuple) -> None:
        """Takes one closed record (see `recorder.COLUMNS`)."""
        _, _, parent, inputs, outputs, start, end, status = record
        keys = self.recorder.keys
        indent = "" if parent < 0 else "  "
        text = f"{indent}{point.name}  {_inputs(point, keys[inputs]) if inputs >= 0 else ''}"
        if outputs >= 0:
            text += f" → {specs.show(specs.view(keys[outputs]), 80)}"
        if status:
            text += f"  raised {self.recorder.errors[status - 1]}"
        mark = (point.id, signature.coarse(keys[inputs]) if inputs >= 0 else None, status)
        self.turn.append(mark)
        self.held.append(f"{text}  {(end - start) / 1e6:.2f} ms")
        ends_turn = point.kind == "scheduler" and point.name.rpartition(".")[2].startswith("step")
        if ends_turn and self.last[-len(self.turn) :] == self.turn:
            self.repeats += 1
            self.held, self.turn = [], []
        elif ends_turn or mark not in self.last:
            self._flush()
        if ends_turn and self.turn:
            self.last, self.turn = self.turn, []

    def _flush(self) -> None:
        if self.repeats:
            self.write(f"  … the step before, ×{self.repeats} more")
        self.repeats = 0
        for line in self.held:
            self.write(line)
        self.held = []

    def close(self) -> None:
        """Prints what was held back."""
        self._flush()


def _inputs(point: Point, key: signature.Key) -> str:
    fields = specs.view_call(key, point.parameters)
    shown = {name: value for name, value in fields.items() if specs.tensors(value)}
    shown = shown or {name: value for name, value in list(fields.items())[:3] if value is not None}
    return ", ".join(f"{name}={specs.show(value, 60)}" for name, value in list(shown.items())[:4])
