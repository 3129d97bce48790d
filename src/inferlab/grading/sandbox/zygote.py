"""The warmed parent of the learners' kernels: it forks a supervisor and a kernel for each submission.

It is started inside bubblewrap, as `python -m inferlab.grading.sandbox.zygote MODE FD`. On socket FD it
answers {"op": "kernel"} messages. With each come two sockets: the kernel's channel, and one for the
supervisor, which reports how the kernel ended and kills it when it is told to.
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
from typing import TYPE_CHECKING, Any

from . import isolate
from .limits import Limits
from .sandbox import shown_paths
from .warm import fork_for_every_message

if TYPE_CHECKING:  # these need the libraries, which are imported when it can be said what went wrong
    from .capture import OutputRecorder
    from .shell import LabShell

MOST_FILES = 20_000
"""What a kernel may have in a folder that has no limit of its own; as many as in the other folders."""


def main(control: socket.socket, mode: str) -> None:
    """Be the warmed parent: fork a supervisor, and with it a kernel, for every request."""
    def prepare() -> tuple[LabShell, OutputRecorder]:
        from .shell import make_shell

        return make_shell()

    def serve(made: tuple[LabShell, OutputRecorder], request: dict[str, Any], channel: socket.socket,
              status: socket.socket) -> None:
        supervise(channel, status, Limits(**request["limits"]), request["slot"], mode, *made)

    fork_for_every_message(control, 2, prepare, serve)


def supervise(channel: socket.socket, status: socket.socket, limits: Limits, slot: int, mode: str,
              shell: LabShell, recorder: OutputRecorder) -> None:
    """Start the kernel in namespaces of its own and watch it; report on `status` how it ended."""
    os.setsid()
    home, uid = isolate.HOME, isolate.first_uid() + slot
    try:
        if mode == "sandbox":
            isolate.leave_namespaces()
        else:
            isolate.become_subreaper()
            home = tempfile.mkdtemp(prefix=f"inferlab-{mode}-")
        if mode == "users":
            os.chown(home, uid, uid)
        gate, opened = socket.socketpair()
        pid = os.fork()
    except OSError as error:
        status.send(json.dumps({"failed": f"the sandbox could not be set up: {error}"}).encode())
        return
    if pid == 0:
        status.close()
        gate.close()
        become_kernel(channel, opened, limits, slot, mode, home, shell, recorder)
    channel.close()
    opened.close()
    problem = gate.recv(4096).decode()
    status.send(json.dumps({"failed": problem} if problem != "ok" else {"started": True}).encode())
    try:
        # Without process namespaces, what a kernel's child leaves behind becomes this process's.
        folders = (home, "/dev/shm") if mode == "users" else ()
        reason = watch(pid, status, limits, None if mode == "sandbox" else os.getpid(), uid, folders)
    finally:
        if mode == "users":
            isolate.end_user(uid, isolate.SHARED)
        if mode != "sandbox":
            isolate.end_descendants()
            shutil.rmtree(home, ignore_errors=True)
    try:
        status.send(json.dumps({"ended": reason}).encode())
    except OSError:
        return  # whoever asked is gone


def watch(pid: int, status: socket.socket, limits: Limits, root: int | None = None, uid: int = 0,
          folders: tuple[str, ...] = ()) -> str:
    """Wait until the kernel ends, or end it when it uses too much or is told to; returns why.

    Args:
        root: the process whose descendants' memory counts, if it is not the kernel itself.
        uid: the user whose files count.
        folders: where these files count; none where each folder has a limit of its own.
    """
    try:
        reason = _reason_to_end(pid, status, limits, pid if root is None else root, uid, folders)
    except BaseException:  # a fault of ours; without its supervisor the kernel would have no limits
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


def _reason_to_end(pid: int, status: socket.socket, limits: Limits, root: int, uid: int,
                   folders: tuple[str, ...]) -> str:
    """Wait until the kernel has ended, and return "", or until it must be ended, and return why."""
    deadline = time.monotonic() + limits.total_seconds
    at_start = isolate.tree_memory(root)
    allowed = limits.memory_mb * 2**20
    most, most_once = sum(at_start.values()) + allowed, isolate.counted_once(at_start) + allowed
    handle = os.pidfd_open(pid)
    while True:
        ready, _, _ = select.select([handle, status.fileno()], [], [], 0.05)
        if handle in ready:
            return ""
        if status.fileno() in ready:
            return "it was stopped"
        if time.monotonic() > deadline:
            return f"it ran for more than {limits.total_seconds:g} seconds in all"
        held = isolate.tree_memory(root)
        if sum(held.values()) > most and isolate.counted_once(held) > most_once:
            return f"it used more than {limits.memory_mb} MB of memory"
        count, size = isolate.user_files(uid, folders, MOST_FILES)
        if count > MOST_FILES or size > limits.disk_mb * 2**20:
            return f"it wrote more than {MOST_FILES:,} files or {limits.disk_mb} MB"


def become_kernel(channel: socket.socket, opened: socket.socket, limits: Limits, slot: int, mode: str,
                  home: str, shell: LabShell, recorder: OutputRecorder) -> None:
    """In the child: give everything up, then serve the channel. This never returns."""
    from .kernel import Kernel

    code = 1
    try:
        try:
            _only_keep(channel.fileno(), opened.fileno())
            if mode == "sandbox":
                isolate.confine(limits, slot)
            elif mode == "users":
                isolate.confine_as_user(limits, slot, home, [str(path) for path in shown_paths()])
            else:
                isolate.confine_without_sandbox(limits, home)
            sys.path[0] = ""  # modules are found beside the notebook and not where the parent was started
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
    main(socket.socket(fileno=int(sys.argv[2])), sys.argv[1])
