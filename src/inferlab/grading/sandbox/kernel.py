"""The learner's end of the channel: runs a learner's cells and calls their functions, inside the sandbox.

The other end trusts nothing that comes from here. These are the requests and their replies:

    ("run", source, seconds, output_limit)     ("ran", "ok" or "error" or "stopped", outputs)
    ("get", name)                              ("value", data) or ("error", name, message, where)
    ("call", number, args, kwargs, seconds)    the same; before it may come ("callback", number, args, kwargs)
    ("fork",) with a socket                    ("forked",); a copy of the kernel answers on that socket
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from typing import Any

from inferlab.lab.checks import wire
from inferlab.lab.checks.clock import Clock, Expired
from inferlab.lab.checks.learner import LearnerError, Missing, TimeLimit, as_learner_error

from .capture import OutputRecorder
from .channel import Channel, Closed
from .shell import OUT_OF_TIME, LabShell

TASK_SECONDS = 1.0
"""How long the tasks of a cell may go on after its last line."""


class CallbackError(RuntimeError):
    """A function that a check passed in did not accept its arguments."""


class Kernel:
    """Serves one channel until it closes."""

    def __init__(self, sock: socket.socket, limits: wire.WireLimits, shell: LabShell,
                 recorder: OutputRecorder) -> None:
        self.channel, self.shell, self.recorder = Channel(sock, limits), shell, recorder
        self.table: dict[int, Callable] = {}
        self.numbers: dict[int, int] = {}
        self.timer = Clock()
        self.copies: list[int] = []
        shell.start_loop()

    def serve(self) -> None:
        """Answer requests until the other end closes the connection."""
        while True:
            try:
                request = self.channel.recv(self._resolve)
            except Closed:
                return
            self._answer(request)

    def _answer(self, request: tuple) -> None:
        if request[0] == "fork":
            self._fork()
            return
        reply: tuple
        try:
            if request[0] == "run":
                reply = ("ran", *self._run(*request[1:]))
            elif request[0] == "get":
                reply = ("value", self._get(request[1]))
            else:
                reply = ("value", self._call(*request[1:]))
            self.channel.send(reply, self._export)
        except wire.WireError as error:
            self._error(LearnerError("WireError", str(error)))
        except LearnerError as error:
            self._error(error)

    def _error(self, error: LearnerError) -> None:
        kind = type(error).__name__ if isinstance(error, Missing | TimeLimit) else error.name
        self.channel.send(("error", kind, error.message, error.where))

    # -- the requests ----------------------------------------------------------------------------------------
    def _run(self, source: str, seconds: float, output_limit: int) -> tuple[str, list]:
        self.recorder.begin(output_limit)
        self.shell.stopped = success = False
        try:
            with self.timer.limit(seconds):
                success = self.shell.run_cell(source, store_history=True).success
                self._finish_tasks()
        except Expired:  # in what the cell has left to the loop; IPython reports it for the cell's own code
            self.shell.stopped = True
            self.recorder.error("TimeLimit", OUT_OF_TIME, [])
        status = "stopped" if self.shell.stopped else "ok" if success else "error"
        outputs = self.recorder.end()
        if self.shell.stopped:
            self._cancel_tasks()
        return status, outputs

    def _finish_tasks(self) -> None:
        """Give the tasks that a cell has started a little time. At home they have it between two cells."""
        tasks = asyncio.all_tasks(self.shell.loop)
        if tasks:
            self.shell.loop.run_until_complete(asyncio.wait(tasks, timeout=TASK_SECONDS))

    def _cancel_tasks(self) -> None:
        """End what a stopped cell has left in the loop, so that no later cell goes on with it."""
        tasks = asyncio.all_tasks(self.shell.loop)
        for task in tasks:
            task.cancel()
        with contextlib.suppress(Expired), self.timer.limit(TASK_SECONDS):
            if tasks:
                self.shell.loop.run_until_complete(asyncio.wait(tasks, timeout=TASK_SECONDS))

    def _get(self, name: str) -> Any:
        if name not in self.shell.user_ns:
            raise Missing(f"`{name}` is not defined")
        return self.shell.user_ns[name]

    def _call(self, number: int, args: tuple, kwargs: dict, seconds: float) -> Any:
        function = self.table[number]
        self.recorder.begin(0)  # what a function prints while it is checked is not kept
        try:
            with self.timer.limit(seconds):
                return self._in_loop(lambda: function(*args, **kwargs))
        except Expired:
            raise TimeLimit(seconds, f"`{getattr(function, '__name__', 'the call')}`") from None
        except Closed:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a learner's code raises, it crosses as text
            raise as_learner_error(error) from None

    def _in_loop(self, work: Callable[[], Any]) -> Any:
        """What `work()` gives, with the shell's event loop running meanwhile."""
        if self.shell.loop.is_running():  # a call inside a call
            return work()

        async def run() -> Any:
            return work()

        return self.shell.loop.run_until_complete(run())

    def _fork(self) -> None:
        _, (handle,), _, _ = socket.recv_fds(self.channel.sock, 1, 1)
        self.copies = [pid for pid in self.copies if os.waitpid(pid, os.WNOHANG)[0] == 0]
        pid = os.fork()
        if pid == 0:
            self.copies = []
            self.channel.sock.close()
            self.channel.sock = socket.socket(fileno=handle)
            return
        self.copies.append(pid)
        os.close(handle)
        self.channel.send(("forked",))

    # -- functions, both ways --------------------------------------------------------------------------------
    def _export(self, function: Callable) -> tuple[bool, int, str]:
        lent = getattr(function, "inferlab_number", None)
        if type(lent) is int:
            return False, lent, ""
        number = self.numbers.setdefault(id(function), len(self.numbers))
        self.table[number] = function  # kept alive, so its id stays its own
        name = getattr(function, "__name__", "")
        return True, number, name if isinstance(name, str) else ""

    def _resolve(self, theirs: bool, number: int, name: str) -> Callable:
        if not theirs:
            return self.table[number]

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._callback(number, args, kwargs)

        call.__name__ = call.__qualname__ = name or "function"
        vars(call)["inferlab_number"] = number
        return call

    def _callback(self, number: int, args: tuple, kwargs: dict) -> Any:
        with self.timer.paused():
            self.channel.send(("callback", number, args, kwargs), self._export)
            while True:
                message = self.channel.recv(self._resolve)
                if message[0] == "value":
                    return message[1]
                if message[0] == "error":
                    raise CallbackError(message[2])
                self._answer(message)  # the check's function called one of ours
