"""Runs submissions: keeps the warmed parents alive, pairs a fresh kernel with a grader for each, bounds the time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from . import sandbox
from .limits import Limits
from .warm import OFFLINE, THREADS
from .worker import recv_json, send_json

_SLOTS = 4096


class GradingFailed(RuntimeError):
    """A submission could not be graded for a reason that is not the learner's; nothing is recorded for it."""


class Host:
    """Grades jobs; thread-safe, so that as many run at once as there are callers.

    Args:
        mode: "sandbox", or "none" to run learners' code unprotected (the result then says so).

    Use it as a context manager or call `close`. The warmed parents start with the first job.
    """

    def __init__(self, mode: str = "sandbox"):
        if mode not in ("sandbox", "none"):
            raise ValueError(f'mode is "sandbox" or "none", not {mode!r}')
        self.mode = mode
        self._temporary = tempfile.TemporaryDirectory(prefix="inferlab-references-")
        self._lock = threading.Lock()
        self._kernels: tuple[subprocess.Popen, socket.socket] | None = None
        self._graders: tuple[subprocess.Popen, socket.socket] | None = None
        self._idle: list[tuple[socket.socket, int]] = []
        self._slot = 0
        # the parents are told to die with the thread that started them, so that thread must live as long as this host
        self._spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="inferlab-host")

    def __enter__(self) -> Host:  # noqa: PYI034
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process that this host started."""
        with self._lock:
            self._end()
        self._spawner.shutdown()
        self._temporary.cleanup()

    def _end(self) -> None:
        for sock, _ in self._idle:
            sock.close()
        self._idle.clear()
        for pair in (self._kernels, self._graders):
            if pair is not None:
                pair[1].close()
                pair[0].kill()
                pair[0].wait()
        self._kernels = self._graders = None

    def start(self) -> None:
        """Start both warmed parents, side by side, and wait until they are ready. Raises `sandbox.NoSandbox`."""
        with self._lock:
            if self._kernels is not None and self._kernels[0].poll() is None and self._graders[0].poll() is None:
                return
            self._end()
            self._graders = self._spawner.submit(_start_graders).result()
            try:
                self._kernels = self._spawner.submit(sandbox.start, self.mode).result()
            except sandbox.NoSandbox:
                self._end()
                raise
            for what, (_, control) in (("kernels", self._kernels), ("graders", self._graders)):
                control.settimeout(180)
                try:
                    report = json.loads(control.recv(2**16) or b'{"failed": "it ended at once"}')
                except OSError as error:
                    report = {"failed": f"no word from it ({type(error).__name__})"}
                if "failed" in report:
                    self._end()
                    raise GradingFailed(f"the parent of the {what} did not start: {report['failed']}")

    def run(self, job: dict[str, Any], references: Path | None = None) -> dict[str, Any]:
        """Grade one job of `plan.make_job`; returns `worker.grade`'s result plus `unprotected`.

        Args:
            references: a folder of the grader's own for reference values; one that lasts as long as this host if None.

        Raises:
            GradingFailed: if the sandbox, a test that never ends or a fault of ours stopped it.
        """
        self.start()
        limits = Limits(**job["limits"])
        grader, pid = self._grader()
        channel, kernel_end = socket.socketpair()
        status, supervisor_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        grader.settimeout(limits.total_seconds + limits.check_seconds + 60)
        try:
            with channel, kernel_end, status, supervisor_end:  # closed here: the grader must see it when the kernel ends
                with self._lock:
                    self._slot = (self._slot + 1) % _SLOTS
                    socket.send_fds(self._kernels[1], [json.dumps({
                        "op": "kernel", "limits": limits.as_dict(), "slot": self._slot}).encode()],
                        [kernel_end.fileno(), supervisor_end.fileno()])
                body = json.dumps(job | {"references": str(references or self._temporary.name)}).encode()
                socket.send_fds(grader, [len(body).to_bytes(8, "big")], [channel.fileno(), status.fileno()])
                grader.sendall(body)
            result, _ = recv_json(grader)
        except (OSError, EOFError) as error:
            with contextlib.suppress(ProcessLookupError):  # it may have ended already
                os.kill(pid, signal.SIGKILL)
            grader.close()
            raise GradingFailed(f"the grader's process did not answer ({type(error).__name__})") from error
        with self._lock:
            self._idle.append((grader, pid))
        if "failed" in result:
            raise GradingFailed(result["failed"])
        return result | {"unprotected": self.mode != "sandbox"}

    def _grader(self) -> tuple[socket.socket, int]:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    socket.send_fds(self._graders[1], [b'{"op": "worker"}'], [theirs.fileno()])
                hello, _ = recv_json(ours)
            except (OSError, EOFError) as error:
                ours.close()
                raise GradingFailed(f"no grader's process could be started ({type(error).__name__})") from error
        return ours, hello["pid"]


def _start_graders() -> tuple[subprocess.Popen, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "inferlab.grading.worker", str(theirs.fileno())], pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL, env=os.environ | THREADS | OFFLINE)
    return process, ours


__all__ = ["GradingFailed", "Host", "send_json"]
