"""How a check reaches what a learner made: the same narrow door at home and in grading.

A *provider* answers three questions: the value of a provided name, the text of an explanation, and whose
work it is. At home it is `LocalProvider`, which copies everything through the wire codec and limits every
call in time. In grading, `inferlab.grading.running.grader` installs a `RemoteProvider`, which asks the
learner's sandboxed kernel (`running/remote.py`). Checks are the same for both.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from . import wire
from .clock import Clock, Expired

CALL_SECONDS = 10.0
"""How long one call of a learner's function may take. Functions that the check passed in do not count."""

RUN_ALL = "run all cells from the top first (Run > Run All Cells)"
"""What to do in a kernel that has just been started: it knows nothing of what the notebook shows."""


class LearnerError(Exception):
    """The learner's code raised an exception.

    Attributes:
        name: the exception's class, as plain, short text.
        message: its text, likewise.
        where: the line of the cell that raised it; empty if unknown.
    """

    def __init__(self, name: str, message: str = "", where: str = "") -> None:
        super().__init__(name, message, where)
        self.name, self.message, self.where = clip(name, 80), clip(message, 600), clip(where, 200)

    def __str__(self) -> str:
        text = f"{self.name}: {self.message}" if self.message else self.name
        return f"{text} ({self.where})" if self.where else text


class Missing(LearnerError):
    """What the check needs is not there: no such name, or a body that still raises NotImplementedError."""

    def __init__(self, message: str = "not done yet") -> None:
        super().__init__("Missing", message)

    def __str__(self) -> str:
        return self.message


class TimeLimit(LearnerError):
    """A call took longer than it may."""

    def __init__(self, seconds: float, what: str = "the call") -> None:
        super().__init__("TimeLimit", f"{clip(what, 80)} was stopped after {seconds:g} seconds")
        self.seconds = seconds

    def __str__(self) -> str:
        return self.message


class Provider(Protocol):
    """Where a check gets what the learner made."""

    def get(self, name: str) -> Any:
        """The value of a provided name: data, or a callable over data. Raises `Missing`."""

    def explanation(self, name: str) -> str:
        """The text of the `%%explain` cell called `name`, without the magic's line; raises `Missing`."""

    def identity(self) -> tuple[str, str]:
        """The learner's name or id and the lab's full name."""


_installed: Provider | None = None


def provider(namespace: dict[str, Any]) -> Provider:
    """The grader's provider where one is installed, otherwise a local one over `namespace`."""
    return _installed if _installed is not None else LocalProvider(namespace)


@contextlib.contextmanager
def installed(remote: Provider) -> Iterator[None]:
    """Let every `Check` made inside the block ask `remote` (used by the grader process)."""
    global _installed
    before, _installed = _installed, remote
    try:
        yield
    finally:
        _installed = before


class LocalProvider:
    """Checks run in the kernel where the learner works: values are copies, calls are limited in time."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace

    def get(self, name: str) -> Any:
        """A copy of the value that the notebook has under `name`. Raises `Missing`."""
        if name not in self.namespace:
            raise Missing(f"`{name}` is not defined yet: {self._what_to_run('run the cell that defines it')}")
        try:
            return _admit(self.namespace[name], name)
        except wire.WireError as error:
            raise LearnerError("WireError", f"`{name}`: {error}") from None

    def explanation(self, name: str) -> str:
        """The text of the cell as it was run last. Raises `Missing`."""
        from inferlab.lab.explain import last_explanations

        written = last_explanations.get(name)
        if written is None or not written.body.strip():
            what = self._what_to_run("write it and run its cell")
            raise Missing(f"the explanation `{name}` is not written yet, or its cell has not run: {what}")
        return written.body

    def identity(self) -> tuple[str, str]:
        """What `start` was told; before `start`, what LEARNER says."""
        from inferlab.lab import setup

        lab = setup.current()
        return (lab.learner, lab.name) if lab is not None else (str(self.namespace.get("LEARNER", "")), "")

    def _what_to_run(self, one_cell: str) -> str:
        return one_cell if "LEARNER" in self.namespace else RUN_ALL


def _admit(value: Any, name: str) -> Any:
    """A copy of a learner's value in which each of the learner's functions is behind `_guard`."""
    return _cross(value, lambda function: _guard(function, getattr(function, "__name__", name)))


def _cross(value: Any, wrap: Callable[[Callable], Callable]) -> Any:
    table: list[Callable] = []

    def export(function: Callable) -> tuple[bool, int, str]:
        table.append(getattr(function, "inferlab_original", None) or wrap(function))
        return True, len(table) - 1, ""

    return wire.decode(wire.encode(value, export), lambda _, number, __: table[number], keep_device=True)


def _guard(function: Callable, name: str) -> Callable:
    """A learner's function as the check sees it: data in and out, limited time, errors as `LearnerError`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        raised: list[BaseException] = []
        clock = Clock()
        with clock.limit(CALL_SECONDS):
            lent = _cross((args, kwargs), lambda inner: _lend(inner, clock, raised))
            try:
                result = function(*lent[0], **lent[1])
            except Expired:
                if raised:
                    raise raised[0] from None
                raise TimeLimit(CALL_SECONDS, f"`{name}`") from None
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                if raised:  # the check's own function failed: that counts, whatever the learner's code did
                    raise raised[0] from None
                raise as_learner_error(error) from error
        if raised:
            raise raised[0]
        try:
            return _admit(result, name)
        except wire.WireError as error:
            raise LearnerError("WireError", f"what `{name}` returned: {error}") from None

    call.__name__ = call.__qualname__ = name
    return call


def _lend(function: Callable, clock: Clock, raised: list[BaseException]) -> Callable:
    """A check's function as the learner's code sees it: copies both ways, and its time does not count."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with clock.paused():
            lent = _admit((args, kwargs), "argument")
            try:
                result = function(*lent[0], **lent[1])
            except Exception as error:
                raised.append(error)
                raise
            return _cross(result, lambda inner: _lend(inner, clock, raised))

    call.__name__ = call.__qualname__ = getattr(function, "__name__", "function")
    call.inferlab_original = function  # type: ignore[attr-defined]
    return call


def as_learner_error(error: BaseException) -> LearnerError:
    """An exception of the learner's as a name and a short message; an unfinished stub becomes `Missing`."""
    if isinstance(error, LearnerError):
        return error
    if isinstance(error, NotImplementedError):
        return Missing()
    try:
        message = str(error)
    except Exception as inner:  # noqa: BLE001 - __str__ is the learner's code
        message = f"(its text could not be made: {type(inner).__name__})"
    return LearnerError(type(error).__name__, message, _where(error))


def _where(error: BaseException) -> str:
    """The innermost line of a notebook cell that the exception passed through."""
    place, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "ipykernel" in code.co_filename or code.co_filename.startswith(("<ipython-input", "<cell")):
            place = f"line {trace.tb_lineno}" + (f" of {code.co_name}" if code.co_name != "<module>" else "")
        trace = trace.tb_next
    return place


def clip(text: str, length: int) -> str:
    """Text from outside as plain, short text: control characters become spaces, the rest is cut."""
    text = str(text)[: length + 1]
    plain = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return plain if len(plain) <= length else plain[: length - 1] + "…"
