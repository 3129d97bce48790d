"""Takes from a process, for good, all files but a few: Linux's Landlock, which needs no namespace and no
right.

See landlock(7) and linux/landlock.h. The system calls have one number on every architecture.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""ABI version -> how many rights to files it knows; from version 5 on there are 16."""
_EXECUTE, _WRITE, _READ, _READ_DIR, _TRUNCATE = 1, 2, 4, 8, 1 << 14
_DEVICES = 1 << 6 | 1 << 11
"""Making character and block devices."""
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE
_TCP, _TCP_SINCE = 3, 4
_SCOPES, _SCOPES_SINCE = 3, 6
"""No signals and no abstract sockets out of the domain."""


def version() -> int:
    """The kernel's version of Landlock; 0 where it has none."""
    return max(0, libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)))


def keep_only(readable: Iterable[str | Path], writable: Iterable[str | Path],
              devices: Iterable[str | Path] = ()) -> None:
    """Deny this process and all that it will start every file that is not below one of these.

    Paths that do not exist are left out. Needs no_new_privs. Raises `OSError`, also where the kernel has no
    Landlock.
    """
    known = version()
    if not known:
        raise OSError("this kernel has no Landlock")
    every = (1 << _RIGHTS.get(known, 16)) - 1
    given = struct.pack("QQQ", every, _TCP if known >= _TCP_SINCE else 0,
                        _SCOPES if known >= _SCOPES_SINCE else 0)
    size = 8 if known < _TCP_SINCE else 16 if known < _SCOPES_SINCE else 24
    rules = _checked(_CREATE_RULESET, ctypes.create_string_buffer(given, 24), ctypes.c_size_t(size),
                     ctypes.c_uint32(0))
    try:
        for paths, rights in ((readable, _EXECUTE | _READ | _READ_DIR), (writable, every & ~_DEVICES),
                              (devices, _READ | _WRITE)):
            for path in paths:
                _allow(rules, path, rights & every)
        _checked(_RESTRICT_SELF, rules, ctypes.c_uint32(0))
    finally:
        os.close(rules)


def _allow(rules: int, path: str | Path, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(f"/proc/self/fd/{handle}"):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, handle)
        _checked(_ADD_RULE, rules, ctypes.c_int(_PATH_BENEATH), ctypes.create_string_buffer(rule, len(rule)),
                 ctypes.c_uint32(0))
    finally:
        os.close(handle)


def libc() -> ctypes.CDLL:
    """The C library, which tells of its errors."""
    return ctypes.CDLL(None, use_errno=True)


def _checked(number: int, *arguments: object) -> int:
    result = libc().syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"landlock: {os.strerror(code)}")
    return result
