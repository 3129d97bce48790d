"""An IPython shell without ZMQ, threads or a terminal: what a learner's cells run in when they are graded."""

from __future__ import annotations

import builtins
import signal
import subprocess
import sys

from IPython.core.error import StdinNotImplementedError
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from .capture import CapturingHook, CapturingPublisher, Recorder, Stream


class LabShell(InteractiveShell):
    """The shell; cell magics, `get_ipython()`, top-level await and inline pictures work, `input()` is refused."""

    displayhook_class = Type(CapturingHook)
    display_pub_class = Type(CapturingPublisher)

    def enable_gui(self, gui=None):
        """There is no event loop to join."""

    def ask_exit(self):
        """`exit` in a cell does not end the kernel."""

    def showtraceback(self, *args, **kwargs):
        signal.setitimer(signal.ITIMER_REAL, 0)  # the time is up once; don't interrupt the report of it
        super().showtraceback(*args, **kwargs)

    def _showtraceback(self, etype, evalue, stb):
        try:
            text = str(evalue)
        except Exception as error:  # noqa: BLE001 - __str__ is the learner's code
            text = f"(its text could not be made: {type(error).__name__})"
        self.display_pub.recorder.error(etype.__name__, text, [str(line) for line in stb])

    def system_piped(self, cmd):
        """`!command`: output is shown when the command has ended."""
        done = subprocess.run(self.var_expand(cmd, depth=1), shell=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        sys.stdout.write(done.stdout[:2**20].decode("utf-8", "replace"))
        self.user_ns["_exit_code"] = done.returncode

    system = system_piped


def make_shell() -> tuple[LabShell, Recorder]:
    """The process's one shell, its streams and displays captured; made before the fork, so it must start no thread."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "neutral"
    shell = LabShell.instance(config=config)
    recorder = Recorder()
    shell.display_pub.recorder = shell.displayhook.recorder = recorder
    sys.stdout, sys.stderr = Stream(recorder, "stdout"), Stream(recorder, "stderr")
    builtins.input = _no_input
    return shell, recorder


def _no_input(prompt: str = "") -> str:
    raise StdinNotImplementedError("nobody can answer input() while a notebook is graded")
