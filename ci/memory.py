"""The most memory that a process and all below it hold at once."""

import contextlib
import threading
from collections.abc import Callable

import psutil


def resident(process: psutil.Process) -> int:
    """Bytes that a process holds; pages that processes share are counted in each."""
    return process.memory_info().rss


def shared_once(process: psutil.Process) -> int:
    """Bytes that a process holds, with its share of the pages that processes share (PSS)."""
    return process.memory_full_info().pss


class Memory(threading.Thread):
    """Looks every so many seconds, until `over` is set; `most` is in megabytes (2**20 bytes)."""

    def __init__(self, pid: int, seconds: float, size: Callable[[psutil.Process], int]) -> None:
        super().__init__(daemon=True)
        self.top, self.seconds, self.size = psutil.Process(pid), seconds, size
        self.most, self.over = 0.0, threading.Event()

    def run(self) -> None:
        """Look until it is over."""
        while not self.over.wait(self.seconds):
            with contextlib.suppress(psutil.NoSuchProcess):
                family = [self.top, *self.top.children(recursive=True)]
                self.most = max(self.most, sum(map(self._bytes, family)) / 2**20)

    def _bytes(self, process: psutil.Process) -> int:
        try:
            return self.size(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):  # it has just ended, or is of another user
            return 0
