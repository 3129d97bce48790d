"""Runs submissions, and keeps what that gave: pairs a fresh kernel in the sandbox with a grader's process for
each one.

Kernels and graders are forked from two warmed parents, which have imported everything and stay alive.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import signal
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from inferlab.grading.course import write_whole
from inferlab.grading.sandbox import sandbox
from inferlab.grading.sandbox.limits import Limits
from inferlab.grading.sandbox.warm import OFFLINE, THREADS

_SLOTS = 4096
_HEADER = struct.Struct(">Q")


class GradingFailed(RuntimeError):
    """A submission could not be graded, and the learner's work is not the reason. Nothing is recorded."""


class Host:
    """Grades jobs; thread-safe, so that as many run at once as there are callers.

    Args:
        mode: "sandbox", "users" where root has no namespaces (SECURITY.md says what that does not promise),
            or "none" to run learners' code unprotected (the result then says so).
        grader: the module whose process does the jobs.

    Use it as a context manager or call `close`. The warmed parents start with the first job.
    """

    def __init__(self, mode: str = "sandbox", grader: str = "inferlab.grading.running.grader") -> None:
        if mode not in ("sandbox", "users", "none"):
            raise ValueError(f'mode is "sandbox", "users" or "none", not {mode!r}')
        self.mode, self.grader = mode, grader
        self._temporary = tempfile.TemporaryDirectory(prefix="inferlab-references-")
        self._lock = threading.Lock()
        self._kernels: sandbox.Parent | None = None
        self._graders: sandbox.Parent | None = None
        self._idle: list[tuple[socket.socket, int]] = []
        # The kernel limits the processes of a user id, so hosts that run side by side should not share one.
        self._slot = secrets.randbelow(_SLOTS)
        # The parents end with the thread that started them, so that thread must live as long as this host.
        self._spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="inferlab-host")

    def __enter__(self) -> Host:
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
        """Start both warmed parents at once and wait until they are ready.

        Raises:
            NoSandbox: if this machine cannot make the sandbox.
            GradingFailed: if a parent does not start.
        """
        with self._lock:
            if self._kernels and self._graders and not any(
                    parent[0].poll() is not None for parent in (self._kernels, self._graders)):
                return
            self._end()
            self._graders = self._spawner.submit(
                sandbox.start_parent, [sys.executable, "-m", self.grader], os.environ | THREADS | OFFLINE
            ).result()
            try:
                self._kernels = self._spawner.submit(sandbox.start_kernels, self.mode).result()
            except sandbox.NoSandbox:
                self._end()
                raise
            for what, (_, control) in (("kernels", self._kernels), ("graders", self._graders)):
                control.settimeout(600)  # a busy machine needs minutes for torch; a death is seen at once
                try:
                    report = json.loads(control.recv(2**16) or b'{"failed": "it ended at once"}')
                except OSError as error:
                    report = {"failed": f"no word from it ({type(error).__name__})"}
                if "failed" in report:
                    self._end()
                    raise GradingFailed(f"the parent of the {what} did not start: {report['failed']}")

    def run(self, job: dict[str, Any], references: Path | None = None) -> dict[str, Any]:
        """Grade one job of `make_job`; returns `grader.grade`'s result plus `unprotected`.

        Args:
            references: where the grader keeps reference values, which it computes once for each variant of
                a lab. If None, in a folder that is removed with this host.

        Raises:
            GradingFailed: if a fault of the sandbox or of ours stopped it, or a test that never ends.
            NoSandbox: if this machine cannot make the sandbox.
        """
        self.start()
        limits = Limits(**job["limits"])
        grader, pid = self._grader()
        channel, kernel_end = socket.socketpair()
        status, supervisor_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        grader.settimeout(limits.total_seconds + limits.check_seconds + 60)
        try:
            # This process closes its copies of the sockets: only then does the grader see the kernel end.
            with channel, kernel_end, status, supervisor_end:
                with self._lock:
                    self._slot = (self._slot + 1) % _SLOTS
                    socket.send_fds(_control(self._kernels), [json.dumps({
                        "op": "kernel", "limits": limits.as_dict(), "slot": self._slot}).encode()],
                        [kernel_end.fileno(), supervisor_end.fileno()])
                send_json(grader, job | {"references": str(references or self._temporary.name)},
                          [channel.fileno(), status.fileno()])
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
        return result | {"unprotected": self.mode == "none"}

    def _grader(self) -> tuple[socket.socket, int]:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    socket.send_fds(_control(self._graders), [b'{"op": "worker"}'], [theirs.fileno()])
                hello, _ = recv_json(ours)
            except (OSError, EOFError) as error:
                ours.close()
                why = type(error).__name__
                raise GradingFailed(f"no grader's process could be started ({why})") from error
        return ours, hello["pid"]


def _control(parent: sandbox.Parent | None) -> socket.socket:
    """The socket of a warmed parent. Raises `ConnectionError` where another thread has just ended it."""
    if parent is None:
        raise ConnectionError("its parent has ended")
    return parent[1]


# -- this process's hosts --------------------------------------------------------------------------
_HOSTS: dict[str, Host] = {}
_HOSTS_LOCK = threading.Lock()


def execute(job: dict[str, Any], mode: str, references: str = "") -> dict[str, Any]:
    """Run one job in this process's host. A Dask worker gets this function with the job.

    Raises `GradingFailed` or `NoSandbox`.
    """
    return shared_host(mode).run(job, Path(references) if references else None)


def shared_host(mode: str) -> Host:
    """This process's host, started once; it ends with the process."""
    with _HOSTS_LOCK:
        if mode not in _HOSTS:
            _HOSTS[mode] = Host(mode)
            atexit.register(_HOSTS[mode].close)
        return _HOSTS[mode]


def end_hosts() -> None:
    """End the hosts of this process; the next one starts afresh."""
    with _HOSTS_LOCK:
        while _HOSTS:
            _HOSTS.popitem()[1].close()


# -- what running gave -----------------------------------------------------------------------------
class Results:
    """Results on disk, one JSON file for each submission's key. A file is written whole or not at all.

    A batch that was killed goes on from here, and nothing is run twice.

    Args:
        folder: where they are kept; it is made if missing. Reference values are kept in it, too.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.references = folder / "references"
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> dict[str, Any] | None:
        """The kept result, or None. A file that a full disk or a power cut has damaged counts as none."""
        try:
            return json.loads(self._path(key).read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return None

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Keep a result in place of an earlier one."""
        write_whole(self._path(key), json.dumps(result))

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


# -- messages between a host and a grader's process ------------------------------------------------
def send_json(sock: socket.socket, value: Any, handles: Iterable[int] = ()) -> None:
    """Send one message: JSON with its length in front, and these file descriptors."""
    body = json.dumps(value).encode()
    socket.send_fds(sock, [_HEADER.pack(len(body))], [*handles])
    sock.sendall(body)


def recv_json(sock: socket.socket, handles: int = 0) -> tuple[Any, list[int]]:
    """The next message of `send_json`, and the descriptors with it. Raises `EOFError` at the end."""
    head, passed, _, _ = socket.recv_fds(sock, _HEADER.size, handles)
    head += _exactly(sock, _HEADER.size - len(head)) if head else b""
    if not head:
        raise EOFError
    return json.loads(_exactly(sock, _HEADER.unpack(head)[0])), list(passed)


def _exactly(sock: socket.socket, number: int) -> bytes:
    parts = []
    while number:
        part = sock.recv(min(number, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        number -= len(part)
    return b"".join(parts)
