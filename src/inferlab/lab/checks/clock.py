"""Stops a learner's code after some time.

The time of the check's own functions does not count, and a busy machine gives the code its time again.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator

EXTENSIONS = 3
"""How often code that got less than half of a processor is given its time again."""


class Expired(BaseException):
    """Raised by the alarm inside the code that is limited.

    It is no `Exception`, so that the code's own `except Exception` does not catch it.
    """


class Clock:
    """Limits blocks by SIGALRM. Other threads, and systems without that signal, are not limited.

    As long as the process got less than half of the wall-clock time as processor time, the time is given
    again, up to `EXTENSIONS` times. (A sleeping process cannot be told from a starved one.)
    """

    def __init__(self) -> None:
        self.seconds = self.left = self.since = self.used = 0.0
        self.extensions = 0

    @contextlib.contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Raise `Expired` in the block after `seconds`. Another timer that was running goes on afterwards."""
        if not _usable():
            yield
            return
        ours = self.seconds, self.left, self.extensions
        began, (theirs, interval) = time.monotonic(), signal.setitimer(signal.ITIMER_REAL, 0)
        handler = signal.getsignal(signal.SIGALRM)
        self.seconds, self.left, self.extensions = seconds, seconds, EXTENSIONS
        self._start()
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.seconds, self.left, self.extensions = ours
            signal.signal(signal.SIGALRM, handler if handler is not None else signal.SIG_DFL)
            if theirs:
                left = theirs - (time.monotonic() - began)
                signal.setitimer(signal.ITIMER_REAL, max(left, 0.001), interval)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Inside `limit`: a block whose time does not count."""
        if not _usable():
            yield
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.left -= time.monotonic() - self.since
        try:
            yield
        finally:
            self._start()

    def _start(self) -> None:
        self.since, self.used = time.monotonic(), time.process_time()
        signal.signal(signal.SIGALRM, self._expire)
        # again and again, so that code which swallows the first is stopped by a later one
        signal.setitimer(signal.ITIMER_REAL, max(self.left, 0.001), 1.0)

    def _expire(self, signum: int, frame: object) -> None:
        starved = time.process_time() - self.used < (time.monotonic() - self.since) / 2
        if starved and self.extensions > 0:
            self.extensions -= 1
            self.left = self.seconds
            self._start()
            return
        raise Expired


def _usable() -> bool:
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
