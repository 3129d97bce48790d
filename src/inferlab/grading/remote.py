"""The grader's end of the channel: asks a learner's kernel, believes nothing, and gives up in time."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable
from typing import Any

from ..lab import wire
from ..lab.clock import EXTENSIONS
from ..lab.learner import LearnerError, Missing, TimeLimit, clip
from .channel import Channel, Closed, Overdue, TooLarge
from .limits import Limits

_GRACE = 3.0  # the kernel stops its own code in time; this much later it is stopped from outside


class KernelDied(LearnerError):
    """The learner's kernel has ended; the message says during what and why."""

    def __init__(self, message: str):
        super().__init__("KernelDied", message)

    def __str__(self) -> str:
        return self.message


class RemoteFunction:
    """A learner's function: data in, data out."""

    def __init__(self, kernel: RemoteKernel, number: int, name: str):
        self._kernel, self._number = kernel, number
        self.__name__ = self.__qualname__ = clip(name, 80) or "function"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._kernel.call(self._number, self.__name__, args, kwargs)

    def __repr__(self) -> str:
        return f"<learner's function {self.__name__}>"


def _expired_function(*args: Any, **kwargs: Any) -> Any:
    raise LearnerError("LookupError", "a function from an earlier call, which can no longer be called")


class RemoteKernel:
    """A running kernel; every method raises `KernelDied` once it is gone.

    Args:
        channel_socket: the grader's end of the channel.
        status: the socket on which the kernel's supervisor reports and takes the order to kill it.
        limits: see `Limits`.
    """

    def __init__(self, channel_socket: socket.socket, status: socket.socket | None, limits: Limits):
        self.channel, self.status, self.limits = Channel(channel_socket, limits.wire()), status, limits
        self.lent: dict[int, Callable] = {}
        self.next_number = self.calls = self.callbacks = 0
        self.doing, self.dead = "starting", ""
        self.output_left = limits.output_mb * 2**20

    # -- requests ------------------------------------------------------------------------------------------------------
    def started(self) -> None:
        """Wait until the supervisor says that the sandbox is up; raises RuntimeError if it could not be set up."""
        self.status.settimeout(30)
        report = json.loads(self.status.recv(65536) or b'{"failed": "the supervisor ended"}')
        if "failed" in report:
            raise RuntimeError(report["failed"])

    def run(self, source: str, doing: str) -> tuple[str, list]:
        """Run a cell; returns its status ("ok" or "error") and its outputs, as the kernel told them (untrusted)."""
        self.doing = doing
        allowed = min(self.limits.cell_output_kb * 1024, max(self.output_left, 0))
        reply = self._ask(("run", source, self.limits.cell_seconds, allowed), self.limits.cell_seconds, {})
        if len(reply) != 3 or reply[0] != "ran" or reply[1] not in ("ok", "error") or not isinstance(reply[2], list):
            raise self._die("its kernel answered nonsense")
        self.output_left -= min(len(str(reply[2])), allowed)
        return reply[1], reply[2]

    def get(self, name: str) -> Any:
        """The value of a name in the learner's namespace."""
        self.doing = f"reading `{name}`"
        return self._value(self._ask(("get", name), self.limits.call_seconds, {}))

    def call(self, number: int, name: str, args: tuple, kwargs: dict) -> Any:
        """Call a learner's function; the functions in its arguments can be called back until it returns."""
        self.calls += 1
        if self.calls > self.limits.calls:
            raise LearnerError("TooManyCalls", f"more than {self.limits.calls} calls in one submission")
        self.doing = f"calling `{name}`"
        seconds = self.limits.call_seconds
        lent: dict[int, Callable] = {}
        try:
            return self._value(self._ask(("call", number, args, kwargs, seconds), seconds, lent))
        finally:
            for key in lent:
                self.lent.pop(key, None)

    def fork(self) -> RemoteKernel:
        """A copy of the kernel as it is now; it ends with this one at the latest."""
        self.doing = "copying the kernel"
        ours, theirs = socket.socketpair()
        with theirs:
            self.channel.send(("fork",))
            socket.send_fds(self.channel.sock, [b"."], [theirs.fileno()])
        if self.channel.recv(deadline=time.monotonic() + 30) != ("forked",):
            raise self._die("its kernel answered nonsense")
        return RemoteKernel(ours, None, self.limits)

    def close(self) -> str:
        """End the kernel if it still runs and wait for its supervisor; returns how it ended."""
        self.channel.sock.close()
        if self.status is None:
            return ""
        with contextlib.suppress(OSError):
            self.status.send(b"end")
        reason = self._ended()
        self.status.close()
        return reason

    # -- the conversation ----------------------------------------------------------------------------------------------
    def _ask(self, request: tuple, seconds: float, lent: dict) -> tuple:
        if self.dead:
            raise KernelDied(self.dead)
        deadline = time.monotonic() + seconds * (1 + EXTENSIONS) + _GRACE
        failure: Exception | None = None
        try:
            self.channel.send(request, lambda f: self._lend(f, lent), deadline)
            while True:
                reply = self.channel.recv(self._resolve, deadline)
                if self.channel.received > self.limits.traffic_mb * 2**20:  # a test may keep what its functions get
                    raise self._die(f"it handed over more than {self.limits.traffic_mb} MB in all")
                if not isinstance(reply, tuple) or not reply or not isinstance(reply[0], str):
                    raise self._die("its kernel answered nonsense")
                if reply[0] != "callback":
                    break
                began = time.monotonic()
                failure = self._callback(reply, lent, failure, deadline)
                deadline += time.monotonic() - began
        except Overdue:
            raise self._die("it did not stop when its time was up") from None
        except TooLarge as error:
            raise self._die(str(error)) from None
        except Closed:
            raise self._die("") from None
        except wire.WireError as error:
            if not self.channel.reading:  # what the check passes in cannot cross: a fault of the test
                raise
            raise self._die(f"its kernel answered nonsense ({error})") from None
        if failure is not None:  # what the check's own function said counts, whatever the learner's code made of it
            raise failure
        return reply

    def _value(self, reply: tuple) -> Any:
        if reply[0] == "value" and len(reply) == 2:
            return reply[1]
        if reply[0] == "error" and len(reply) == 4 and all(isinstance(t, str) for t in reply):
            _, kind, message, where = reply
            if kind == "Missing":
                raise Missing(message)
            if kind == "TimeLimit":
                error = TimeLimit(self.limits.call_seconds)
                error.message = clip(message, 300)
                raise error
            raise LearnerError(kind, message, where)
        raise self._die("its kernel answered nonsense")

    def _callback(self, request: tuple, lent: dict, failure: Exception | None, deadline: float) -> Exception | None:
        """Run a function that the check passed in; returns the first exception that one of them raised."""
        self.callbacks += 1
        well_formed = (len(request) == 4 and type(request[1]) is int and isinstance(request[2], tuple)
                       and isinstance(request[3], dict) and all(isinstance(k, str) for k in request[3]))
        if not well_formed:
            raise self._die("its kernel answered nonsense")
        _, number, args, kwargs = request
        if self.callbacks > self.limits.callbacks:
            raise self._die(f"it called the check's functions more than {self.limits.callbacks} times")
        if number not in self.lent:
            self.channel.send(("error", "LookupError", "this function can no longer be called", ""), None, deadline)
            return failure
        try:
            value = self.lent[number](*args, **kwargs)
            self.channel.send(("value", value), lambda f: self._lend(f, lent))
        except (KernelDied, Closed, Overdue):
            raise
        except Exception as error:  # noqa: BLE001 - told to the learner's code as a fact, raised in the test afterwards
            self.channel.send(("error", "CallbackError", "the function did not accept these arguments", ""))
            return failure or error
        return failure

    def _lend(self, function: Callable, lent: dict) -> tuple[bool, int, str]:
        if isinstance(function, RemoteFunction) and function._kernel is self:
            return False, function._number, ""
        self.next_number += 1
        self.lent[self.next_number] = lent[self.next_number] = function
        return True, self.next_number, getattr(function, "__name__", "function")

    def _resolve(self, theirs: bool, number: int, name: str) -> Callable:
        if theirs:
            return RemoteFunction(self, number, name)
        return self.lent.get(number, _expired_function)

    def _die(self, why: str) -> KernelDied:
        """Make sure that the kernel is dead, and say so."""
        self.channel.sock.close()
        if self.status is not None:
            if why:
                with contextlib.suppress(OSError):
                    self.status.send(b"end")
            ended = self._ended()
            why = why or ended
        self.dead = f"your kernel died while {self.doing}: {why or 'it ended itself'}"
        return KernelDied(self.dead)

    def _ended(self) -> str:
        self.status.settimeout(10)
        try:
            while True:
                report = json.loads(self.status.recv(65536) or b'{"ended": "its supervisor ended"}')
                if "ended" in report:
                    return report["ended"]
        except (TimeoutError, OSError) as error:
            return f"no word from its supervisor ({type(error).__name__})"
