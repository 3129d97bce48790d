"""The IPython shell that runs a learner's cells in grading: without ZMQ, threads or a terminal."""

from __future__ import annotations

import asyncio
import builtins
import selectors
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from IPython.core.error import StdinNotImplementedError
from IPython.core.interactiveshell import InteractiveShell
from matplotlib_inline.backend_inline import configure_inline_support
from traitlets import Type
from traitlets.config import Config

from inferlab.lab.checks.clock import Expired

from .capture import CapturingHook, CapturingPublisher, OutputRecorder, Stream

OUT_OF_TIME = "the cell was stopped: its time was up"
"""What a stopped cell shows in place of its traceback's last line."""


class LabShell(InteractiveShell):
    """The shell. Magics, `get_ipython()`, top-level `await` and inline plots work; `input()` is refused."""

    displayhook_class = Type(CapturingHook)
    display_pub_class = Type(CapturingPublisher)
    stopped = False
    """Whether the time of the cell that runs is up."""

    def start_loop(self) -> None:
        """Make the event loop in which cells and calls run, as they do in a notebook server's kernel.

        It polls, because a forked copy of a kernel would share an epoll instance with the original. The list
        of folders for `%cd -` begins here, too: the shell was made elsewhere.
        """
        self.user_ns["_dh"][:] = [Path.cwd()]
        self.loop = asyncio.SelectorEventLoop(selectors.PollSelector())
        asyncio.set_event_loop(self.loop)
        self.loop_runner = self.loop.run_until_complete

    def should_run_async(self, raw_cell: str, **kwargs: Any) -> bool:
        """Whether IPython must start the loop for a cell: always, except for a cell that another one runs."""
        return not self.loop.is_running() or super().should_run_async(raw_cell, **kwargs)

    def enable_gui(self, gui: str | None = None) -> None:
        """Do nothing: there is no window system."""

    def ask_exit(self) -> None:
        """Do nothing: `exit` in a cell does not end the kernel."""

    def showtraceback(self, *args: Any, **kwargs: Any) -> None:
        """Report the exception that ended a cell."""
        signal.setitimer(signal.ITIMER_REAL, 0)  # no second `Expired`, which would interrupt this report
        super().showtraceback(*args, **kwargs)

    def _showtraceback(self, etype: type, evalue: BaseException, stb: list[str]) -> None:
        """Record an exception. IPython calls this where a terminal would print."""
        try:
            text = str(evalue)
        except Exception as error:  # noqa: BLE001 - __str__ is the learner's code
            text = f"(its text could not be made: {type(error).__name__})"
        name = etype.__name__
        if issubclass(etype, Expired):
            self.stopped, name, text = True, "TimeLimit", OUT_OF_TIME
        self.display_pub.recorder.error(name, text, [str(line) for line in stb])

    def system_piped(self, cmd: str) -> None:
        """Run `!command`. Its output is shown when it has ended."""
        done = subprocess.run(self.var_expand(cmd, depth=1), shell=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        sys.stdout.write(done.stdout[:2**20].decode("utf-8", "replace"))
        self.user_ns["_exit_code"] = done.returncode

    system = system_piped


def make_shell() -> tuple[LabShell, OutputRecorder]:
    """The process's one shell and the recorder of its outputs; made before the fork, it starts no thread."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "neutral"
    shell = LabShell.instance(config=config)
    recorder = OutputRecorder()
    shell.display_pub.recorder = shell.displayhook.recorder = recorder
    sys.stdout, sys.stderr = Stream(recorder, "stdout"), Stream(recorder, "stderr")
    builtins.input = _no_input
    configure_inline_support(shell, "inline")  # there was no shell yet when pyplot was imported
    return shell, recorder


def _no_input(prompt: object = "") -> str:
    raise StdinNotImplementedError("nobody can answer input() while a notebook is graded")
