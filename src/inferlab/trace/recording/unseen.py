"""Finds the calls that a trace cannot record, so that a note can say so."""

import sys
import weakref
from collections.abc import Callable
from typing import Any

from torch.nn import Module, TransformerEncoderLayer

from . import patches
from .recorder import COLUMNS, Recorder

_COMPILER = "torch._dynamo.eval_frame"


class Watch:
    """What one trace keeps an eye on, to note what it could not see.

    compiled   names of boundaries that run compiled code and have their note
    fusable    names of modules that torch may run as one fused operation
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.compiled: set[str] = set()
        self.fusable: set[str] = set()
        # (component's name, weak reference, ids of its modules when the trace began)
        self._trees: list[tuple] = []
        self._compiler_watched = False

    def say_compiled(self, name: str) -> None:
        """Notes that a boundary runs compiled code."""
        self.compiled.add(name)
        self.recorder.note(
            f"{name} is compiled: its call is one boundary, what happens inside its graph is not seen"
        )

    def component(self, name: str, module: Module) -> None:
        """Remembers which modules a component has."""
        self._trees.append((name, weakref.ref(module), module_ids(module)))
        if may_fuse(module):
            self.fusable.add(name)

    def compiler(self) -> "patches.Patch | None":
        """The patch for this trace's `CompiledCallPoint`; None without a compiler, or the second time."""
        if self._compiler_watched:
            return None
        module = sys.modules.get(_COMPILER)
        self._compiler_watched = callable(vars(module).get("_callback_from_stance")) if module else False
        return (
            patches.acquire(module, "_callback_from_stance", "attribute") if self._compiler_watched else None
        )

    def finish(self) -> None:
        """Adds the notes that only the end of the block can tell."""
        for name, reference, before in self._trees:
            module = reference()
            new = 0 if module is None else len(module_ids(module) - before)
            if new:
                self.recorder.note(
                    f"{name} got {new} new module{'s' if new > 1 else ''} inside the block (a LoRA or other "
                    "adapter, or replaced layers): their calls are not recorded; "
                    "begin a trace after the change to see them"
                )
        self._trees.clear()
        if not self._compiler_watched and _COMPILER in sys.modules:
            self.recorder.note(
                "torch.compile came into use inside the block: calls from compiled functions are not seen"
            )
        fused = fused_calls(self.recorder, self.fusable) if self.fusable else []
        if fused:
            self.recorder.note(
                f"{', '.join(fused[:4])}{', …' if len(fused) > 4 else ''} ran as one fused operation "
                "(torch's fast path of TransformerEncoderLayer in eval mode): the modules "
                "inside were not called"
            )


class CompiledCallPoint:
    """Notes that a function which `torch.compile` made ran: what its graph calls passes every wrapper by.

    It sits on the function that torch calls at the start of each compiled call.
    """

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def run(self, points: tuple, index: int, original: Callable, args: tuple, kwargs: dict) -> Any:
        """Adds the note and calls on; `args[0]` is the compiler's callback, or no function."""
        recorder = self.watch.recorder
        above = recorder.open_point()
        if callable(args[0]) and (above is None or above.name not in self.watch.compiled):
            name = _compiled_function()
            recorder.note(f"{name} is compiled: the traced parts that it calls inside its graph are not seen")
        if index + 1 < len(points):
            return points[index + 1].run(points, index + 1, original, args, kwargs)
        return original(*args, **kwargs)


def _compiled_function() -> str:
    """The name of the compiled function that is being called, from the frame of torch's wrapper around it."""
    frame = sys._getframe(2)
    while frame.f_back is not None and "fn" not in frame.f_locals:
        frame = frame.f_back
    name = getattr(frame.f_locals.get("fn"), "__qualname__", "a function")
    return name.rpartition("<locals>.")[2]


def module_ids(root: Module) -> set[int]:
    """The ids of all modules in a tree; costs about a tenth of a microsecond a module."""
    seen, level = {id(root)}, [root]
    while level:
        level = [
            part
            for module in level
            for part in module._modules.values()
            if part is not None and id(part) not in seen
        ]
        seen.update(map(id, level))
    return seen


def may_fuse(module: Module) -> bool:
    """Whether torch may run a module as one fused operation that never calls the modules inside it."""
    return isinstance(module, TransformerEncoderLayer)


def fused_calls(recorder: Recorder, fusable: set[str]) -> list[str]:
    """Which of the modules with these names ran without calling any of their recorded parts."""
    points = {point.id: point.name for point in recorder.points if point.name in fusable}
    # A module that is itself the target has the name of its class, and its parts have no prefix.
    with_parts = {
        name
        for name in fusable
        if any(p.name != name and (p.name.startswith(f"{name}.") or p.base == name) for p in recorder.points)
    }
    fused: dict[str, None] = {}
    for log in recorder.logs.values():
        rows = log.records()
        parents = set(rows[2::COLUMNS])
        for at in range(0, len(rows), COLUMNS):
            name = points.get(rows[at + 1])
            if name in with_parts and rows[at] not in parents and not rows[at + COLUMNS - 1]:
                fused[name] = None
    return list(fused)
