"""Prints boundaries while they happen: a step that repeats the one before it is counted, not printed again."""

import sys

from . import spec, view


class LivePrinter:
    """Called after each coarse boundary; `write` gets one line at a time (standard output by default)."""

    def __init__(self, recorder, write=None):
        self.recorder = recorder
        self.write = write or self._print
        self.turn: list = []
        self.last: list = []
        self.repeats = 0
        self.number = 0

    @staticmethod
    def _print(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def __call__(self, point, log, seq, parent, inputs, outputs, ns, status) -> None:
        level = 0 if parent < 0 else 1
        keys = self.recorder.keys
        text = f"{'  ' * level}{point.name}  {_inputs(point, keys[inputs] if inputs >= 0 else None)}"
        if outputs >= 0:
            text += f" → {view.show(view.view(keys[outputs]), 80)}"
        if status:
            text += f"  raised {self.recorder.errors[status - 1]}"
        mark = (point.id, spec.coarse(keys[inputs]) if inputs >= 0 else None, status)
        self.turn.append((mark, f"{text}  {ns / 1e6:.2f} ms"))
        ends_turn = point.kind == "scheduler" and point.name.rpartition(".")[2].startswith("step")
        if ends_turn:
            self.number += 1
            marks = [m for m, _ in self.turn]
            if marks == self.last:
                self.repeats += 1
            else:
                self._flush_repeats()
                for _, line in self.turn:
                    self.write(line)
            self.last, self.turn = marks, []
        elif not self.last or mark not in self.last:
            self._flush_repeats()
            for _, line in self.turn:
                self.write(line)
            self.turn = []

    def _flush_repeats(self) -> None:
        if self.repeats:
            self.write(f"  … the same {len(self.last)} boundaries ×{self.repeats}")
        self.repeats = 0

    def close(self) -> None:
        """Prints what was held back."""
        self._flush_repeats()
        for _, line in self.turn:
            self.write(line)
        self.turn = []


def _inputs(point, key) -> str:
    if key is None:
        return ""
    fields = view.view_call(key, point.parameters)
    shown = {name: value for name, value in fields.items() if view.tensors(value)}
    shown = shown or {name: value for name, value in list(fields.items())[:3] if value is not None}
    return ", ".join(f"{name}={view.show(value, 60)}" for name, value in list(shown.items())[:4])
