"""The warmed parent of the learners' kernels: runs inside bubblewrap, forks a supervisor and a kernel a submission.

Started as `python -m inferlab.grading.zygote FD MODE`; on socket FD it answers {"op": "kernel"} messages, each with two
sockets: the kernel's channel, and one for the supervisor, which reports how the kernel ended and kills it when told.
"""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback

from . import isolate
from .limits import Limits


def main(control: socket.socket, mode: str) -> None:
    """Warm up, say so, then fork for every request until the other end closes."""
    from .shell import make_shell
    from .warm import warm

    isolate.die_with_parent()
    try:
        warm()
        shell, recorder = make_shell()
    except BaseException:
        control.send(json.dumps({"failed": traceback.format_exc()[-8000:]}).encode())
        raise
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors need no reaping
    control.send(json.dumps({"ready": True}).encode())
    while True:
        data, handles, _, _ = socket.recv_fds(control, 65536, 2)
        if not data:
            return
        request = json.loads(data)
        limits = Limits(**request["limits"])
        if os.fork() == 0:
            control.close()
            code = 1
            try:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                channel, status = (socket.socket(fileno=h) for h in handles)
                supervise(channel, status, limits, request["slot"], mode, shell, recorder)
                code = 0
            finally:
                os._exit(code)
        for handle in handles:
            os.close(handle)


def supervise(channel, status, limits: Limits, slot: int, mode: str, shell, recorder) -> None:
    """Start the kernel in namespaces of its own and watch it; says on `status` how it ended."""
    isolate.die_with_parent()
    os.setsid()
    home = isolate.HOME
    try:
        if mode == "sandbox":
            isolate.leave_namespaces()
        else:
            isolate.become_subreaper()
            home = tempfile.mkdtemp(prefix="inferlab-unprotected-")
        gate, opened = socket.socketpair()
        pid = os.fork()
    except OSError as error:
        status.send(json.dumps({"failed": f"the sandbox could not be set up: {error}"}).encode())
        return
    if pid == 0:
        status.close()
        gate.close()
        become_kernel(channel, opened, limits, slot, home, shell, recorder)
    channel.close()
    opened.close()
    problem = gate.recv(4096).decode()
    status.send(json.dumps({"failed": problem} if problem != "ok" else {"started": True}).encode())
    try:
        reason = watch(pid, status, limits)
    finally:
        if mode != "sandbox":
            isolate.end_descendants()
            shutil.rmtree(home, ignore_errors=True)
    try:
        status.send(json.dumps({"ended": reason}).encode())
    except OSError:
        return  # whoever asked is gone


def watch(pid: int, status: socket.socket, limits: Limits) -> str:
    """Wait for the kernel's end, or end it: too long, too much memory, told to, or nobody is interested any more."""
    try:
        reason = _reason_to_end(pid, status, limits)
    except BaseException:  # a fault of ours: without its supervisor the kernel would have no limits
        os.kill(pid, signal.SIGKILL)
        raise
    if reason:
        os.kill(pid, signal.SIGKILL)
    _, code = os.waitpid(pid, 0)
    if reason:
        return reason
    if os.WIFSIGNALED(code):
        number = os.WTERMSIG(code)
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        if number == signal.SIGKILL and spent.ru_utime + spent.ru_stime >= limits.cpu_seconds:
            return f"it used more than {limits.cpu_seconds} seconds of processor time"
        name = signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"
        return f"it was ended by {name}"
    return f"it ended itself with code {os.WEXITSTATUS(code)}"


def _reason_to_end(pid: int, status: socket.socket, limits: Limits) -> str:
    """Wait until the kernel has ended ("") or must be ended (why)."""
    deadline = time.monotonic() + limits.total_seconds
    base = isolate.tree_memory(pid)
    handle = os.pidfd_open(pid)
    while True:
        ready, _, _ = select.select([handle, status], [], [], 0.05)
        if handle in ready:
            return ""
        if status in ready:
            return "it was stopped"
        if time.monotonic() > deadline:
            return f"it ran for more than {limits.total_seconds:g} seconds in all"
        if isolate.tree_memory(pid) > base + limits.memory_mb * 2**20:
            return f"it used more than {limits.memory_mb} MB of memory"


def become_kernel(channel, opened, limits: Limits, slot: int, home: str, shell, recorder) -> None:
    """In the child: give everything up, then serve the channel; never returns."""
    from .kernel import Kernel

    code = 1
    try:
        try:
            _only_keep(channel.fileno(), opened.fileno())
            if home == isolate.HOME:
                isolate.confine(limits, slot)
            else:
                isolate.confine_without_sandbox(limits, home)
            opened.send(b"ok")
        except BaseException as error:
            opened.send(f"the sandbox could not be set up: {type(error).__name__}: {error}".encode())
            raise
        opened.close()
        Kernel(channel, limits.wire(), shell, recorder).serve()
        code = 0
    finally:
        os._exit(code)


def _only_keep(*handles: int) -> None:
    """Close every descriptor but these; standard input, output and error go nowhere."""
    nowhere = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    last = 3
    for handle in sorted(handles):
        os.closerange(last, handle)
        last = handle + 1
    os.closerange(last, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
