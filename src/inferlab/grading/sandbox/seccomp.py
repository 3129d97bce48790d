"""Filters the system calls of learners' processes: no namespaces, mounts, tracing or unusual sockets.

The filter is classic BPF for x86-64 and aarch64, built by hand from a short list. Python's standard library
has none, and another library would be one more thing that a grading machine needs. See seccomp(2) and
linux/filter.h.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

from .landlock import libc

_LD, _JEQ, _JGE, _JSET, _RET, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NR, _ARCH, _ARG0 = 0, 4, 16
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS|CGROUP|UTS|IPC|USER|PID|NET
SOCKET_FAMILIES = (1, 2, 10, 16)  # unix, inet, inet6, netlink; not vsock, packet, alg, ...

# name: (x86-64, aarch64)
_DENIED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "pidfd_getfd": (438, 438), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "open_tree": (428, 428), "move_mount": (429, 429),
    "mount_setattr": (442, 442), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "shmget": (29, 194), "msgget": (68, 186),
    "semget": (64, 190), "mq_open": (240, 180), "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264), "syslog": (103, 116), "swapon": (167, 224), "swapoff": (168, 225),
    "reboot": (169, 142), "quotactl": (179, 60), "acct": (163, 89), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "personality": (135, 92), "move_pages": (279, 239), "fanotify_init": (300, 262),
}
# column above, audit number, clone, socket
_ARCHES = {"x86_64": (0, 0xC000003E, 56, 41), "aarch64": (1, 0xC00000B7, 220, 198)}
_CLONE3 = 435
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2


def supported() -> bool:
    """Whether a filter is known for this machine's processor."""
    return platform.machine() in _ARCHES


def program(families: tuple[int, ...] = SOCKET_FAMILIES) -> bytes:
    """The filter as an array of `struct sock_filter`; it allows sockets of these families."""
    column, audit, clone, sock = _ARCHES[platform.machine()]
    deny, nosys = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS
    code = [(_LD, 0, 0, _ARCH), (_JEQ, 1, 0, audit), (_RET, 0, 0, _KILL), (_LD, 0, 0, _NR)]
    code += [(_JGE, 0, 1, 0x40000000), (_RET, 0, 0, deny)]  # x32
    for numbers in _DENIED.values():
        code += [(_JEQ, 0, 1, numbers[column]), (_RET, 0, 0, deny)]
    code += [(_JEQ, 0, 1, _CLONE3), (_RET, 0, 0, nosys)]  # its flags are in memory; libc falls back to clone
    code += [(_JEQ, 0, 4, clone), (_LD, 0, 0, _ARG0), (_JSET, 0, 1, _NEW_NAMESPACES), (_RET, 0, 0, deny),
             (_RET, 0, 0, _ALLOW)]
    code += [(_JEQ, 0, 2 + len(families), sock), (_LD, 0, 0, _ARG0)]
    code += [(_JEQ, len(families) - i, 0, family) for i, family in enumerate(families)]
    code += [(_RET, 0, 0, _ERRNO | errno.EAFNOSUPPORT), (_RET, 0, 0, _ALLOW)]
    return b"".join(struct.pack("HBBI", *line) for line in code)


def install_filter(families: tuple[int, ...] = SOCKET_FAMILIES) -> None:
    """Apply the filter to this process and all it will start; needs no_new_privs. Raises OSError."""
    lines = program(families)
    buffer = ctypes.create_string_buffer(lines, len(lines))

    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    fprog = Program(len(lines) // 8, ctypes.addressof(buffer))
    if libc().prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(fprog), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")
