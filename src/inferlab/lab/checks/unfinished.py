"""Lets a demonstration wait for the reader: it shows something of theirs once they have written it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def when_written(*names: str) -> Iterator[None]:
    """Run a demonstration that calls the reader's functions, or say which of them are not written yet.

    Only an exercise's own ``raise NotImplementedError()`` is waited for; every other error is shown as it is.

    Args:
        names: the functions that the block calls, for the line that is printed.
    """
    try:
        yield
    except NotImplementedError:
        written = "are written" if len(names) > 1 else "is written"
        quoted = " and ".join(f"`{name}`" for name in names)
        print(f"Once {quoted} {written}, run this cell again to see it at work.")
