"""Starts the warmed parent of the learners' kernels inside bubblewrap, or says why that is not possible."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import inferlab

from . import seccomp
from .isolate import BELOW_TMP, HOME, first_uid
from .warm import OFFLINE, THREADS, UNCOMPILED

_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "fonts", "localtime")
_TRIAL = """import os, sys
if os.getuid() == 0:
    os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
import inferlab.grading.sandbox.limits, numpy, socket, json"""
_TRIAL_USER = _TRIAL + """
for path in sys.argv[2:]:
    try: open(path, 'rb').close()
    except OSError: continue
    raise SystemExit(f'a learner can read {path}')"""
_HELP = "install bubblewrap and allow user namespaces, or use --no-sandbox (learners' code then runs as you)"


Parent = tuple[subprocess.Popen, socket.socket]
"""A warmed process, and the socket on which it takes orders."""


class NoSandbox(RuntimeError):
    """The sandbox cannot be set up on this machine; the text says what is missing and what to do."""


def environment(home: str = HOME) -> dict[str, str]:
    """All environment variables of a learner's kernel: nothing of the host's, nothing about grading."""
    return {"HOME": home, "USER": "learner", "LOGNAME": "learner", "LANG": "C.UTF-8",
            "TMPDIR": home if BELOW_TMP else "/tmp",
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            **THREADS, **OFFLINE, **UNCOMPILED}


def command(inner: list[str]) -> list[str]:
    """The bubblewrap command that runs `inner`, which sees interpreter and package, read-only and no more."""
    shown = _shown()
    line = ["bwrap", "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-net", "--unshare-ipc",
            "--unshare-uts", "--unshare-cgroup-try", "--clearenv", "--hostname", "lab"]
    if os.getuid() != 0:
        line += ["--unshare-user"]
    for name, value in environment().items():
        line += ["--setenv", name, value]
    if BELOW_TMP:  # first, so that the shown folders come on top of it
        line += ["--tmpfs", "/tmp"]
    # bwrap makes the folders above with mode 0700 unless they are named, and the learner is another user
    for folder in sorted({p for f in [*shown, Path(HOME), Path("/etc/x")] for p in f.parents} - {Path("/")}):
        line += ["--perms", "0755", "--dir", str(folder)]
    for folder in _without_nested(shown):
        line += ["--ro-bind", str(folder), str(folder)]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        path = Path("/", name)
        if path.is_symlink():
            line += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            line += ["--ro-bind", str(path), str(path)]
    for name in _ETC:
        line += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    line += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", HOME]
    line += ["--remount-ro", "/tmp"] if BELOW_TMP else ["--tmpfs", "/tmp"]
    return [*line, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--", *inner]


def _shown() -> list[Path]:
    """The folders that a learner's code reads: the system's programs, the interpreter, the package."""
    package = Path(inferlab.__file__).resolve().parent
    return [Path("/usr"), Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), package]


def shown_paths() -> list[Path]:
    """All that a learner's code reads where there is no bubblewrap that shows it."""
    return [*_shown(), *(Path("/", name) for name in ("bin", "sbin", "lib", "lib32", "lib64")),
            *(Path("/etc", name) for name in _ETC)]


def _without_nested(folders: list[Path]) -> list[Path]:
    """The folders in order of depth, without those that lie inside another one and are shown with it."""
    kept: list[Path] = []
    for folder in sorted(set(folders), key=lambda f: len(f.parts)):
        if not any(folder.is_relative_to(k) for k in kept):
            kept.append(folder)
    return kept


def what_is_missing() -> str:
    """What this machine lacks for the sandbox, as a sentence, or an empty string."""
    if problem := _no_linux_filter():
        return problem
    if shutil.which("bwrap") is None:
        return "bubblewrap (the program bwrap) is not installed"
    trial = subprocess.run(command([sys.executable, "-c", _TRIAL, str(first_uid())]), capture_output=True,
                           text=True, check=False)
    if trial.returncode != 0:
        reason = (trial.stderr.strip().splitlines() or [f"exit code {trial.returncode}"])[-1]
        return f"bubblewrap cannot start the interpreter for an unprivileged user here ({reason})"
    return ""


def _no_linux_filter() -> str:
    if sys.platform != "linux":
        return f"the sandbox needs Linux, this is {platform.system()}"
    return "" if seccomp.supported() else f"no system-call filter is known for {platform.machine()}"


def what_users_lack(closed: Sequence[Path]) -> str:
    """What is missing to keep learners apart as users only, as a sentence, or an empty string.

    `closed` are files that no learner may read; it is tried whether one can.
    """
    if problem := _no_linux_filter():
        return problem
    if os.getuid() != 0:
        return "only root can make every learner a user of their own"
    line = [sys.executable, "-c", _TRIAL_USER, str(first_uid()), *map(str, closed)]
    trial = subprocess.run(line, capture_output=True, text=True, check=False, cwd="/")
    if trial.returncode != 0:
        return (trial.stderr.strip().splitlines() or [f"exit code {trial.returncode}"])[-1]
    return ""


def start_kernels(mode: str) -> Parent:
    """Start the warmed parent of kernels; returns its process and the socket that `zygote.main` serves.

    Args:
        mode: "sandbox", "users" where root has no namespaces, or "none" to run learners' code unprotected.

    Raises:
        NoSandbox: if mode is "sandbox" or "users" and this machine cannot do it.
    """
    problem = {"sandbox": what_is_missing, "users": lambda: what_users_lack(())}.get(mode, str)()
    if problem:
        raise NoSandbox(f"{problem}. To grade, {_HELP}.")
    inner = [sys.executable, "-m", "inferlab.grading.sandbox.zygote", mode]
    if mode == "sandbox":
        return start_parent(command(inner), None, subprocess.DEVNULL)
    return start_parent(inner, environment(os.path.expanduser("~")), subprocess.DEVNULL)


def start_parent(line: list[str], env: dict[str, str] | None, stdout: int | None = None) -> Parent:
    """Start a warmed parent, which finds the number of its socket at the end of its command line."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        return subprocess.Popen([*line, str(theirs.fileno())], pass_fds=[theirs.fileno()],
                                stdin=subprocess.DEVNULL, stdout=stdout, env=env), ours
