"""The grader's process: holds the tests, asks a learner's kernel through the channel, and answers with plain JSON.

`python -m inferlab.grading.worker FD` is a warmed parent; for every {"op": "worker"} message on FD it forks a worker
that serves jobs on the socket passed along. Trusted code only: nothing of a learner's is ever run or unpickled here.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from ..lab import learner, references
from ..lab.learner import LearnerError, Missing
from . import isolate
from .fingerprint import package_fingerprint
from .limits import Limits
from .outputs import clean
from .remote import KernelDied, RemoteKernel
from .testcell import run_test

_HEADER = struct.Struct(">Q")


def send_json(sock: socket.socket, value: Any) -> None:
    """One length-framed JSON message."""
    body = json.dumps(value).encode()
    sock.sendall(_HEADER.pack(len(body)) + body)


def recv_json(sock: socket.socket, handles: int = 0) -> tuple[Any, list[int]]:
    """The next message of `send_json` and the descriptors passed with it; raises EOFError at the end."""
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


class RemoteProvider:
    """What `Check` asks in grading: the names that the exercises declare, and the explanations' text."""

    def __init__(self, kernel: RemoteKernel, job: dict[str, Any]):
        self.kernel, self.job = kernel, job
        self.known: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        if name not in self.job["provides"]:
            raise RuntimeError(f"no exercise of this lab provides `{name}`")
        return self.kernel.get(name)

    def explanation(self, name: str) -> str:
        text = self.job["explanations"].get(name, "")
        if not text.strip():
            raise Missing(f"the explanation `{name}` is not written yet")
        return text

    def identity(self) -> tuple[str, str]:
        return self.job["learner"], self.job["lab"]


def grade(job: dict[str, Any], kernel: RemoteKernel) -> dict[str, Any]:
    """Run one submission in the order of its notebook.

    `job` is made by `plan.make_job`; the result holds, all plain JSON: `cells` (index -> outputs of the learner's code
    cell), `checks` (grade_id -> what `run_test` returned), `died` (why the kernel ended early, or ""), `seconds` (all of it)
    and of these `ready_seconds` (until the kernel was there), `learner_seconds` and `test_seconds`.
    """
    limits, began = Limits(**job["limits"]), time.monotonic()
    result: dict[str, Any] = {"cells": {}, "checks": {}, "died": "", "seconds": 0.0, "ready_seconds": 0.0,
                              "learner_seconds": 0.0, "test_seconds": 0.0}
    references.keep_in(Path(job["references"]) if job["references"] else None, job["lab"] + package_fingerprint())
    kernel.started()
    with learner.installed(RemoteProvider(kernel, job)):
        ready = time.monotonic()
        for cell in job["cells"]:
            start = time.monotonic()
            if cell["kind"] == "run":
                result["cells"][str(cell["index"])] = run_cell(kernel, cell)
                result["learner_seconds"] += time.monotonic() - start
            else:
                result["checks"][cell["grade_id"]] = run_test(
                    cell["source"], cell["grade_id"], cell["points"], limits.check_seconds)
                result["test_seconds"] += time.monotonic() - start
    result["died"] = kernel.dead
    result["ready_seconds"] = ready - began
    result["seconds"] = round(time.monotonic() - began, 3)
    return result


def run_cell(kernel: RemoteKernel, cell: dict[str, Any]) -> dict[str, Any]:
    """Run one of the learner's cells; returns its `status` and `outputs`, cleaned, whatever the kernel did."""
    if kernel.dead:
        return {"status": "skipped", "outputs": []}
    try:
        status, outputs = kernel.run(cell["source"], cell["doing"])
    except KernelDied as death:
        return {"status": "died", "outputs": [
            {"output_type": "error", "ename": "KernelDied", "evalue": str(death), "traceback": [str(death)]}]}
    except LearnerError as error:
        return {"status": "error", "outputs": [
            {"output_type": "error", "ename": error.name, "evalue": error.message, "traceback": [str(error)]}]}
    return {"status": status, "outputs": clean(outputs)}


def _serve_job(job: dict[str, Any], kernel: RemoteKernel) -> dict[str, Any]:
    if job.get("kind") == "prove":
        from .prove import prove

        return prove(job, kernel)
    return grade(job, kernel)


def serve(sock: socket.socket) -> None:
    """Grade jobs one after another until the host closes the connection."""
    send_json(sock, {"pid": os.getpid()})
    while True:
        try:
            job, handles = recv_json(sock, 2)
        except EOFError:
            return
        channel, status = (socket.socket(fileno=h) for h in handles)
        kernel = RemoteKernel(channel, status, Limits(**job["limits"]))
        try:
            result = _serve_job(job, kernel)
        except Exception:  # noqa: BLE001 - reported to the instructor by the host
            result = {"failed": traceback.format_exc()}
        finally:
            kernel.close()
        send_json(sock, result)


def main(control: socket.socket) -> None:
    """Warm up, then fork a worker for every request."""
    from .warm import warm

    isolate.die_with_parent()
    try:
        warm()
    except BaseException:
        control.send(json.dumps({"failed": traceback.format_exc()[-8000:]}).encode())
        raise
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    control.send(json.dumps({"ready": True}).encode())
    while True:
        data, handles, _, _ = socket.recv_fds(control, 65536, 1)
        if not data:
            return
        if os.fork() == 0:
            control.close()
            code = 1
            try:
                isolate.die_with_parent()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                serve(socket.socket(fileno=handles[0]))
                code = 0
            finally:
                os._exit(code)
        os.close(handles[0])


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
