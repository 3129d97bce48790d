"""Takes from a forked child what a learner's code must not have: network, files, other processes, privileges.

There are two steps, around a fork. The supervisor calls `leave_namespaces`, and its next child is process 1
of a new namespace. That child calls `confine`. As root the child becomes a user of its own; as an ordinary
user it enters a user namespace. Where a container gives root no namespaces, the child calls
`confine_as_user` instead. This works on Linux only. Python 3.11 has no `os.unshare`, hence ctypes.
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
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import landlock, seccomp
from .landlock import libc
from .limits import Limits

HOME = "/home/learner"
BELOW_TMP = any(Path(p).resolve().is_relative_to("/tmp") for p in (sys.prefix, sys.base_prefix, __file__))
"""Whether interpreter or package lie below /tmp: a private /tmp would hide them, so it stays read-only."""
WRITABLE = (HOME, "/dev/shm") if BELOW_TMP else (HOME, "/tmp", "/dev/shm")
FIRST_UID = 0x70000000
"""The user id of the first slot, far above any account. Each slot has its own, so that no limit is shared."""
SHARED = ("/dev/shm", "/tmp", "/var/tmp")
"""Folders in which every user of a machine may write."""
_OF_PROC = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems",
            "/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu", "/sys/fs/cgroup")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000
_NOSUID, _NODEV, _NOEXEC, _REC, _PRIVATE = 2, 4, 8, 0x4000, 0x40000
# Bytes, and from the start of a line: a process chooses its own name, which may hold all but a line's end.
_SHARES = re.compile(rb"^Pss_(?:Anon|Shmem):\s*(\d+)", re.MULTILINE)
_STATUS = re.compile(rb"^(PPid|RssAnon|RssShmem):\s*(\d+)", re.MULTILINE)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38


def _call(name: str, *args: Any, what: str = "") -> None:
    """Call a function of the C library. Raises OSError when it reports an error."""
    if getattr(libc(), name)(*args):
        code = ctypes.get_errno()
        raise OSError(code, f"{what or name}: {os.strerror(code)}")


def first_uid() -> int:
    """The first of the user ids that kernels get as root; lower where this namespace has no ids that high."""
    ranges = [[int(n) for n in line.split()] for line in Path("/proc/self/uid_map").read_text().splitlines()]
    start, _, count = max(ranges, key=lambda r: r[2])
    return FIRST_UID if start <= FIRST_UID < start + count - 4096 else start + max(count - 4097, 1)


def die_with_parent() -> None:
    """Be killed when the parent process ends."""
    _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def leave_namespaces() -> None:
    """Put the next child into new process, network, IPC, host-name and cgroup namespaces.

    An ordinary user needs a user namespace as well.
    """
    uid, gid = os.getuid(), os.getgid()
    flags = _NEWPID | _NEWNET | _NEWIPC | _NEWUTS | _NEWCGROUP
    _call("unshare", flags if uid == 0 else flags | _NEWUSER)
    if uid != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def confine(limits: Limits, slot: int) -> None:
    """In the child: get private mounts, limits and an unprivileged user, with no way back. Raises OSError."""
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
    limit_resources(limits)
    _become(uid if root else None)
    die_with_parent()
    seccomp.install_filter()


def confine_as_user(limits: Limits, slot: int, home: str, shown: list[str]) -> None:
    """In the child, where root has no namespaces: become a user of its own that reaches no socket.

    Where the kernel has Landlock, no file is left but `home` and, to read, what is `shown`. Otherwise only
    the files' modes keep the rest from it.
    """
    os.environ.update(HOME=home, TMPDIR=home)
    os.chdir(home)
    limit_resources(limits)
    _become(first_uid() + slot)
    die_with_parent()
    if landlock.version():
        landlock.keep_only([*shown, *_OF_PROC, f"/proc/{os.getpid()}"], [home, "/dev/shm"], _DEVICES)
    seccomp.install_filter(families=())


def _become(uid: int | None) -> None:
    """Give up every right, for good, and become this user; `None` for who this process is already."""
    os.nice(5)  # the grader and the rest of the machine go first
    for capability in range(64):
        libc().prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails beyond the last capability
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _drop_capabilities()
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _call("prctl", _PR_SET_DUMPABLE, 1, 0, 0, 0)  # so that /proc/self is readable


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
    _call("mount", *encoded, ctypes.c_ulong(flags), data.encode() if data else None,
          what=f"mount {kind} on {target}")


def user_files(uid: int, folders: Iterable[str], most: int) -> tuple[int, int]:
    """How many files a user has in these folders and the bytes that they take; it stops counting at `most`
    files."""
    count, size = 0, 0
    for folder in folders:
        for here, below, names in os.walk(folder):
            for name in (*below, *names):
                with contextlib.suppress(OSError):
                    info = os.lstat(os.path.join(here, name))
                    if info.st_uid == uid:
                        count, size = count + 1, size + info.st_blocks * 512
            if count > most:
                return count, size
    return count, size


def end_user(uid: int, folders: Iterable[str]) -> None:
    """Kill every process of a user, until none is left, and remove the user's files from these folders."""
    _kill_all(200, lambda: [int(entry) for entry in os.listdir("/proc")
                            if entry.isdigit() and _runs_as(entry, uid)])
    for folder in folders:
        for here, below, names in os.walk(folder, topdown=False):
            for name in (*below, *names):
                path = os.path.join(here, name)
                with contextlib.suppress(OSError):
                    if os.lstat(path).st_uid == uid:
                        os.rmdir(path) if name in below and not os.path.islink(path) else os.unlink(path)


def _runs_as(pid: str, uid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid == uid
    except OSError:  # it has just ended
        return False


def _drop_capabilities() -> None:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def tree_memory(root: int) -> dict[int, int]:
    """Process -> bytes of anonymous and shared memory, of process `root` and all its descendants.

    Pages that a process shares with its forks count in each of them.
    """
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
    return {pid: held for pid, held in memory.items() if _descends(pid, root, parents)}


def counted_once(memory: dict[int, int]) -> int:
    """The bytes of the processes of `tree_memory`, with each shared page counted once; this is slower."""
    return sum(_proportional(pid, held) for pid, held in memory.items())


def _proportional(pid: int, otherwise: int) -> int:
    """The bytes of a process with each shared page divided among its sharers, or `otherwise` if not told."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_bytes()
    except OSError:
        return otherwise
    found = _SHARES.findall(rollup)
    return sum(int(number) for number in found) * 1024 if found else otherwise


def _descends(pid: int, root: int, parents: dict[int, int]) -> bool:
    """Whether `pid` is `root` or comes from it; `parents` has each process's parent."""
    while pid and pid != root:
        pid = parents.get(pid, 0)
    return pid == root


def end_descendants() -> None:
    """Without the sandbox: kill what this process's children left behind, until nothing is left."""
    _kill_all(100, lambda: tree_memory(os.getpid()).keys() - {os.getpid()})


def _kill_all(times: int, who: Callable[[], Collection[int]]) -> None:
    """Kill processes and what they start meanwhile, until there are none; it looks at most so many times."""
    for _ in range(times):
        left = who()
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)


def become_subreaper() -> None:
    """Without process namespaces: become the parent of what a learner's code leaves behind, so as to end it.
    """
    _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def confine_without_sandbox(limits: Limits, folder: str) -> None:
    """Do what is left of `confine` where there are no namespaces: a fresh folder and limits."""
    os.environ["HOME"] = folder
    os.chdir(folder)
    limit_resources(replace(limits, processes=resource.getrlimit(resource.RLIMIT_NPROC)[0]))
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    die_with_parent()
