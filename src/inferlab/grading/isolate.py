"""What a forked child gives up before it runs a learner's code: other processes, network, files, privileges, plenty.

Two steps, around a fork: `leave_namespaces` in the supervisor (the next child is process 1 of a new namespace), then
`confine` in that child. As root the child becomes a user of its own; as an ordinary user it enters a user namespace.
Linux only. Python 3.11 has no `os.unshare`, hence ctypes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from . import seccomp
from .limits import Limits

HOME = "/home/learner"
# Where the interpreter or the package themselves lie below /tmp, a private /tmp would hide them: it stays read-only then.
BELOW_TMP = any(Path(p).resolve().is_relative_to("/tmp") for p in (sys.prefix, sys.base_prefix, __file__))
WRITABLE = (HOME, "/dev/shm") if BELOW_TMP else (HOME, "/tmp", "/dev/shm")
FIRST_UID = 0x70000000  # far above any account; one for each slot, so that no limit is shared

_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000
_NOSUID, _NODEV, _NOEXEC, _REC, _PRIVATE = 2, 4, 8, 0x4000, 0x40000
# Bytes, and from a line's start: a process chooses its own name, which may hold anything but a line's end.
_STATUS = re.compile(rb"^(PPid|RssAnon|RssShmem):\s*(\d+)", re.MULTILINE)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *args) -> None:
    if getattr(_libc(), name)(*args):
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def first_uid() -> int:
    """The first of the user ids that kernels get as root; lower where this namespace has no ids that high."""
    ranges = [[int(n) for n in line.split()] for line in Path("/proc/self/uid_map").read_text().splitlines()]
    start, _, count = max(ranges, key=lambda r: r[2])
    return FIRST_UID if start <= FIRST_UID < start + count - 4096 else start + max(count - 4097, 1)


def die_with_parent() -> None:
    """Be killed when the parent process ends."""
    _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def leave_namespaces() -> None:
    """New process, network, IPC, host-name and cgroup namespaces for the next child (and, as a user, a user one)."""
    uid, gid = os.getuid(), os.getgid()
    flags = _NEWPID | _NEWNET | _NEWIPC | _NEWUTS | _NEWCGROUP
    _call("unshare", flags if uid == 0 else flags | _NEWUSER)
    if uid != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def confine(limits: Limits, slot: int) -> None:
    """In the child: private mounts, resource limits, an unprivileged user, no way back. Raises OSError."""
    root = os.getuid() == 0
    uid = first_uid() + slot if root else os.getuid()
    gid = uid if root else os.getgid()
    _call("unshare", _NEWNS)
    _mount(None, "/", None, _REC | _PRIVATE)
    for folder in WRITABLE:
        _mount("tmpfs", folder, "tmpfs", _NOSUID | _NODEV,
               f"size={limits.disk_mb}m,nr_inodes=20000,mode=0700,uid={uid},gid={gid}")
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    _call("sethostname", b"lab", 3)
    os.chdir(HOME)
    os.nice(5)  # the grader and the rest of the machine go first
    limit_resources(limits)
    for capability in range(64):
        _libc().prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails beyond the last capability
    if root:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    _drop_capabilities()
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _call("prctl", _PR_SET_DUMPABLE, 1, 0, 0, 0)  # so that /proc/self is readable; there is nobody else here
    die_with_parent()
    seccomp.install()


def limit_resources(limits: Limits) -> None:
    """The limits that the kernel keeps for each process."""
    here = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    space = here + int(limits.memory_mb * 0.9) * 2**20  # a MemoryError comes before the supervisor's kill
    for kind, value in (
        (resource.RLIMIT_AS, space),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_FSIZE, limits.disk_mb * 2**20),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_MEMLOCK, 2**20),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (value, value))


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if t is None else t.encode() for t in (source, target, kind)]
    if _libc().mount(*encoded, ctypes.c_ulong(flags), data.encode() if data else None):
        code = ctypes.get_errno()
        raise OSError(code, f"mount {kind} on {target}: {os.strerror(code)}")


def _drop_capabilities() -> None:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def tree_memory(root: int) -> int:
    """Bytes of anonymous and shared memory held by process `root` and all its descendants, seen from outside."""
    parents, memory = {}, {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            status = Path(f"/proc/{entry}/status").read_bytes()
        except OSError:  # it has just ended
            continue
        fields = {name: int(number) for name, number in _STATUS.findall(status)}
        parents[int(entry)] = fields[b"PPid"]
        memory[int(entry)] = (fields.get(b"RssAnon", 0) + fields.get(b"RssShmem", 0)) * 1024
    return sum(size for pid, size in memory.items() if _descends(pid, root, parents))


def _descends(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid and pid != root:
        pid = parents.get(pid, 0)
    return pid == root


def end_descendants() -> None:
    """Without the sandbox: kill what this process's children left behind, again until nothing is left."""
    for _ in range(100):
        left = _descendants(os.getpid())
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)


def _descendants(root: int) -> list[int]:
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[int(entry)] = int(Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()[1])
            except OSError:  # it has just ended
                continue
    return [pid for pid in parents if pid != root and _descends(pid, root, parents)]


def become_subreaper() -> None:
    """Without the sandbox: processes that a learner's code leaves behind come to this one, which ends them."""
    _call("prctl", 36, 1, 0, 0, 0)


def confine_without_sandbox(limits: Limits, folder: str) -> None:
    """What is left of `confine` where there are no namespaces: a fresh folder and the kernel's limits."""
    os.environ["HOME"] = folder
    os.chdir(folder)
    limit_resources(replace(limits, processes=resource.getrlimit(resource.RLIMIT_NPROC)[0]))
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    die_with_parent()
