"""Prints boundaries while they happen: a step that repeats the one before it is counted, not printed again."""

import sys

from . import spec, view


class LivePrinter:
    """Called after each coarse boundary; `write` gets one line at a time (standard output by default)."""

    def __init__(self, recorder, write=None):
        self.recorder = recorder
        self.write = write or self._print
        self.last: list = []  # what the turn before this one consisted of
        self.turn: list = []  # the same for this turn
        self.held: list = []  # lines of this turn that may turn out to repeat the one before
        self.repeats = 0

    @staticmethod
    def _print(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def __call__(self, point, log, seq, parent, inputs, outputs, ns, status) -> None:
        keys = self.recorder.keys
        text = f"{'  ' * _level(log, parent)}{point.name}  {_inputs(point, keys[inputs] if inputs >= 0 else None)}"
        if outputs >= 0:
            text += f" → {view.show(view.view(keys[outputs]), 80)}"
        if status:
            text += f"  raised {self.recorder.errors[status - 1]}"
        mark = (point.id, spec.coarse(keys[inputs]) if inputs >= 0 else None, status)
        self.turn.append(mark)
        self.held.append(f"{text}  {ns / 1e6:.2f} ms")
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


def _level(log, parent) -> int:
    return 0 if parent < 0 else 1


def _inputs(point, key) -> str:
    if key is None:
        return ""
    fields = view.view_call(key, point.parameters)
    shown = {name: value for name, value in fields.items() if view.tensors(value)}
    shown = shown or {name: value for name, value in list(fields.items())[:3] if value is not None}
    return ", ".join(f"{name}={view.show(value, 60)}" for name, value in list(shown.items())[:4])
