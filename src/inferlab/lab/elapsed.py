"""One line under a cell that takes more than three seconds: for how long it has been running.

When the cell ends, the line says for how long it ran. It is an output like any other, so a saved notebook
keeps it.
"""

from __future__ import annotations

import threading
import time
from typing import Any
from uuid import uuid4

PATIENCE = 3.0
"""Seconds after which a cell says that it is still running."""
INTERVAL = 1.0
"""Seconds between two updates of the line."""


class Elapsed:
    """Watches the cells of one IPython shell. A cell that runs others, as `submit()` does, is one cell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.running = 0
        self.done = threading.Event()
        self.watcher: threading.Thread | None = None
        shell.events.register("pre_run_cell", self.begin)
        shell.events.register("post_run_cell", self.end)
        self.begin()  # the cell that is running now began unseen

    def begin(self, _info: object = None) -> None:
        """A cell begins."""
        self.running += 1
        if self.running == 1:
            self.done = threading.Event()
            # `%%capture` swaps the shell's publisher in the middle of a cell, but not for this line
            given = (self.shell.display_pub, self.done)
            self.watcher = threading.Thread(target=_watch, args=given, daemon=True)
            self.watcher.start()

    def end(self, _result: object = None) -> None:
        """A cell has ended, with an exception or without."""
        self.running = max(self.running - 1, 0)
        if self.running == 0 and self.watcher is not None:
            self.done.set()
            self.watcher.join()  # its last line still belongs to this cell
            self.watcher = None


def show_elapsed(shell: Any) -> None:
    """Let the slow cells of a notebook say for how long they run. A second call changes nothing."""
    in_a_notebook = getattr(shell, "kernel", None) is not None
    if in_a_notebook and not isinstance(getattr(shell, "inferlab_elapsed", None), Elapsed):
        shell.inferlab_elapsed = Elapsed(shell)


def _watch(publisher: Any, done: threading.Event) -> None:
    began, line = time.monotonic(), {"display_id": uuid4().hex}
    if done.wait(PATIENCE):
        return
    shown = False
    while not done.wait(INTERVAL if shown else 0):
        text = f"running for {time.monotonic() - began:.0f} s ..."
        publisher.publish({"text/plain": text}, transient=line, update=shown)
        shown = True
    text = f"ran for {time.monotonic() - began:.0f} s"
    publisher.publish({"text/plain": text}, transient=line, update=shown)
