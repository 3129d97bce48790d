"""How the grader's process asks a learner's kernel, through the channel between them.

Nothing that the kernel says is trusted, and no question waits longer than its limit.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable
from typing import Any

from inferlab.grading.sandbox.channel import Channel, Closed, Overdue, TooLarge
from inferlab.grading.sandbox.limits import Limits
from inferlab.lab.checks import wire
from inferlab.lab.checks.clock import EXTENSIONS
from inferlab.lab.checks.learner import LearnerError, Missing, TimeLimit, clip

_KEPT = {"text/plain", "text/html", "text/markdown", "text/latex", "image/png", "image/jpeg"}
_MOST_OUTPUTS, _MOST_TEXT, _MOST_IMAGE = 400, 2**20, 4 * 2**20
_GRACE = 6.0
"""The kernel stops the learner's code when its time is up. After this many seconds more it is killed."""


class KernelDied(LearnerError):
    """The learner's kernel has ended; the message says during what and why."""

    def __init__(self, message: str) -> None:
        super().__init__("KernelDied", message)

    def __str__(self) -> str:
        return self.message


class RemoteFunction:
    """A function in the learner's kernel, which takes and gives data only."""

    def __init__(self, kernel: RemoteKernel, number: int, name: str) -> None:
        self._kernel, self._number = kernel, number
        self.__name__ = self.__qualname__ = clip(name, 80) or "function"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What it returns for these arguments, in the learner's kernel."""
        return self._kernel.call(self._number, self.__name__, args, kwargs)

    def __repr__(self) -> str:
        return f"<learner's function {self.__name__}>"


def _expired_function(*args: Any, **kwargs: Any) -> Any:
    raise LearnerError("LookupError", "a function from an earlier call, which can no longer be called")


class RemoteKernel:
    """A learner's kernel. Every method raises `KernelDied` when the kernel has ended.

    Args:
        channel_socket: the grader's end of the channel.
        status: the socket of the kernel's supervisor, which says how the kernel ended and ends it when told;
            `None` for a copy of a kernel.
        limits: see `Limits`.
    """

    def __init__(self, channel_socket: socket.socket, status: socket.socket | None, limits: Limits) -> None:
        self.channel, self.status, self.limits = Channel(channel_socket, limits.wire()), status, limits
        self.lent: dict[int, Callable] = {}
        self.next_number = self.calls = self.callbacks = 0
        self.doing, self.dead = "starting", ""
        self.output_left = limits.output_mb * 2**20

    # -- requests ----------------------------------------------------------------------------------
    def started(self) -> None:
        """Wait until the supervisor says that the sandbox is there. Raises `RuntimeError` if it cannot be."""
        if self.status is None:  # a copy of a kernel, which runs already
            return
        self.status.settimeout(30)
        report = json.loads(self.status.recv(65536) or b'{"failed": "the supervisor ended"}')
        if "failed" in report:
            raise RuntimeError(report["failed"])

    def run(self, source: str, doing: str) -> tuple[str, list]:
        """Run a cell; returns its status ("ok", "error" or "stopped") and its `harmless` outputs."""
        self.doing = doing
        allowed = min(self.limits.cell_output_kb * 1024, max(self.output_left, 0))
        reply = self._ask(("run", source, self.limits.cell_seconds, allowed), self.limits.cell_seconds, {})
        told = len(reply) == 3 and reply[0] == "ran" and reply[1] in ("ok", "error", "stopped")
        if not told or not isinstance(reply[2], list):
            raise self._die("its kernel answered nonsense")
        self.output_left -= min(len(str(reply[2])), allowed)
        return reply[1], harmless(reply[2])

    def get(self, name: str) -> Any:
        """The value of a name in the learner's namespace."""
        self.doing = f"reading `{name}`"
        return self._value(self._ask(("get", name), self.limits.call_seconds, {}))

    def call(self, number: int, name: str, args: tuple, kwargs: dict) -> Any:
        """Call a learner's function. Until it returns, it may call the functions among its arguments."""
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
        """A copy of the kernel as it is now. It ends when this kernel ends, if not before."""
        self.doing = "copying the kernel"
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self.channel.send(("fork",))
                socket.send_fds(self.channel.sock, [b"."], [theirs.fileno()])
            answer = self.channel.recv(deadline=time.monotonic() + 30)
        except (Closed, Overdue, OSError):
            raise self._die("") from None
        if answer != ("forked",):
            raise self._die("its kernel answered nonsense")
        return RemoteKernel(ours, None, self.limits)

    def close(self) -> str:
        """End the kernel if it still runs and wait for its supervisor; returns how it ended."""
        self.channel.sock.close()
        if self.status is None:
            return ""
        with contextlib.suppress(OSError):
            self.status.send(b"end")
        reason = _how_it_ended(self.status)
        self.status.close()
        return reason

    # -- the conversation --------------------------------------------------------------------------
    def _ask(self, request: tuple, seconds: float, lent: dict) -> tuple:
        if self.dead:
            raise KernelDied(self.dead)
        deadline = time.monotonic() + seconds * (1 + EXTENSIONS) + _GRACE
        failure: Exception | None = None
        try:
            self.channel.send(request, lambda f: self._lend(f, lent), deadline)
            while True:
                reply = self.channel.recv(self._resolve, deadline)
                # A test may keep all that its functions are given, so the sum is limited.
                if self.channel.received > self.limits.traffic_mb * 2**20:
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
        # Where a function of the check's failed, the check fails, even if the learner's code went on.
        if failure is not None:
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

    def _callback(self, request: tuple, lent: dict, failure: Exception | None,
                  deadline: float) -> Exception | None:
        """Run a function of the check's for the learner's code; returns the first exception of any."""
        self.callbacks += 1
        well_formed = (len(request) == 4 and type(request[1]) is int and isinstance(request[2], tuple)
                       and isinstance(request[3], dict) and all(isinstance(k, str) for k in request[3]))
        if not well_formed:
            raise self._die("its kernel answered nonsense")
        _, number, args, kwargs = request
        if self.callbacks > self.limits.callbacks:
            raise self._die(f"it called the check's functions more than {self.limits.callbacks} times")
        if number not in self.lent:
            self.channel.send(("error", "LookupError", "this function can no longer be called", ""), None,
                              deadline)
            return failure
        try:
            value = self.lent[number](*args, **kwargs)
            self.channel.send(("value", value), lambda f: self._lend(f, lent))
        except (KernelDied, Closed, Overdue):
            raise
        except Exception as error:  # noqa: BLE001
            # The learner's code only learns that it failed; the test raises it afterwards.
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
            ended = _how_it_ended(self.status)
            why = why or ended
        self.dead = f"your kernel died while {self.doing}: {why or 'it ended itself'}"
        return KernelDied(self.dead)


def _how_it_ended(status: socket.socket) -> str:
    """What a kernel's supervisor says about its end."""
    status.settimeout(10)
    try:
        while True:
            report = json.loads(status.recv(65536) or b'{"ended": "its supervisor ended"}')
            if "ended" in report:
                return report["ended"]
    except (TimeoutError, OSError) as error:
        return f"no word from its supervisor ({type(error).__name__})"


# -- what a cell showed ----------------------------------------------------------------------------
def harmless(outputs: Any) -> list[dict[str, Any]]:
    """The well-formed outputs of known kinds, without scripts, widgets and metadata; not too many or large.

    A learner's code may have sent anything as an output.
    """
    result = [c for o in outputs[:_MOST_OUTPUTS] if isinstance(o, dict) and (c := _output(o))]
    if len(outputs) > _MOST_OUTPUTS:
        result.append({"output_type": "stream", "name": "stdout",
                       "text": f"[{len(outputs) - _MOST_OUTPUTS} more outputs were dropped]\n"})
    return result


def _output(output: dict[str, Any]) -> dict[str, Any] | None:
    kind = output.get("output_type")
    if kind == "stream" and output.get("name") in ("stdout", "stderr"):
        return {"output_type": "stream", "name": output["name"], "text": _text(output.get("text"))}
    if kind in ("display_data", "execute_result") and isinstance(output.get("data"), dict):
        data = {m: _text(v, _MOST_IMAGE if m.startswith("image/") else _MOST_TEXT)
                for m, v in output["data"].items() if m in _KEPT and isinstance(v, str)}
        count = output.get("execution_count")
        cleaned = {"output_type": kind, "data": data or {"text/plain": "[not shown]"}, "metadata": {}}
        return cleaned | ({"execution_count": count if type(count) is int else None}
                          if kind == "execute_result" else {})
    if kind == "error":
        trace = output.get("traceback")
        return {"output_type": "error", "ename": _text(output.get("ename"), 200),
                "evalue": _text(output.get("evalue"), 2000),
                "traceback": [_text(t, 20_000) for t in trace[:60]] if isinstance(trace, list) else []}
    return None


def _text(value: Any, most: int = _MOST_TEXT) -> str:
    text = value if isinstance(value, str) else ""
    return text if len(text) <= most else text[:most] + "…"
