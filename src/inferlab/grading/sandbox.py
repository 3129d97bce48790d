"""Starts the warmed parent of the learners' kernels inside bubblewrap, or says why it cannot."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import inferlab

from . import seccomp
from .isolate import BELOW_TMP, HOME, first_uid
from .warm import OFFLINE, THREADS

_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "fonts", "localtime")
_TRIAL = """import os, sys
if os.getuid() == 0:
    os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
import inferlab.grading.limits, numpy, socket, json"""
_HELP = "install bubblewrap and allow user namespaces, or grade with --no-sandbox (learners' code then runs as you)"


class NoSandbox(RuntimeError):
    """The sandbox cannot be set up on this machine; the text says what is missing and what to do."""


def environment(home: str = HOME) -> dict[str, str]:
    """The whole environment of a learner's kernel: nothing of the host's, nothing about grading."""
    return {"HOME": home, "USER": "learner", "LOGNAME": "learner", "LANG": "C.UTF-8", "TMPDIR": home if BELOW_TMP else "/tmp",
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin", **THREADS, **OFFLINE}


def command(inner: list[str]) -> list[str]:
    """The bubblewrap command that runs `inner` with the interpreter and the package, read-only, and nothing else."""
    package = Path(inferlab.__file__).resolve().parent
    shown = [Path("/usr"), Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), package]
    line = ["bwrap", "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-net", "--unshare-ipc",
            "--unshare-uts", "--unshare-cgroup-try", "--clearenv", "--hostname", "lab"]
    if os.getuid() != 0:
        line += ["--unshare-user"]
    for name, value in environment().items():
        line += ["--setenv", name, value]
    if BELOW_TMP:  # first, so that what is shown comes on top of it
        line += ["--tmpfs", "/tmp"]
    # folders on the way are made 0700 by bwrap unless they are named, and the learner is another user
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


def _without_nested(folders: list[Path]) -> list[Path]:
    """The folders in order of depth, without those that lie inside another (and so are shown with it)."""
    kept: list[Path] = []
    for folder in sorted(set(folders), key=lambda f: len(f.parts)):
        if not any(folder.is_relative_to(k) for k in kept):
            kept.append(folder)
    return kept


def missing() -> str:
    """What this machine lacks for the sandbox, as a sentence, or an empty string."""
    if sys.platform != "linux":
        return f"the sandbox needs Linux, this is {platform.system()}"
    if shutil.which("bwrap") is None:
        return "bubblewrap (the program bwrap) is not installed"
    if not seccomp.supported():
        return f"no system-call filter is known for {platform.machine()}"
    trial = subprocess.run(command([sys.executable, "-c", _TRIAL, str(first_uid())]), capture_output=True, text=True,
                           check=False)
    if trial.returncode != 0:
        reason = (trial.stderr.strip().splitlines() or [f"exit code {trial.returncode}"])[-1]
        return f"bubblewrap cannot start the interpreter for an unprivileged user here ({reason})"
    return ""


def start(mode: str) -> tuple[subprocess.Popen, socket.socket]:
    """Start the warmed parent; returns its process and the control socket (see `zygote.main`).

    Args:
        mode: "sandbox", or "none" to run learners' code unprotected.

    Raises:
        NoSandbox: if mode is "sandbox" and this machine cannot do it.
    """
    problem = missing() if mode == "sandbox" else ""
    if problem:
        raise NoSandbox(f"{problem}. To grade, {_HELP}.")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        inner = [sys.executable, "-m", "inferlab.grading.zygote", str(theirs.fileno()), mode]
        line = command(inner) if mode == "sandbox" else inner
        process = subprocess.Popen(
            line, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            env=None if mode == "sandbox" else environment(os.path.expanduser("~")))
    return process, ours
