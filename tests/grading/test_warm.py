"""The warmed parents fork only with one thread, and wait for those that a library leaves behind."""

import subprocess
import sys

COUNT = """
import threading, time
from inferlab.grading.sandbox.warm import threads_left
threading.Thread(target=time.sleep, args=({sleeps},), daemon=True).start()
print(threads_left({waits}))
"""


def left(sleeps: float, waits: float) -> int:
    program = COUNT.format(sleeps=sleeps, waits=waits)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_a_thread_that_is_about_to_end_is_waited_for():
    assert left(sleeps=0.5, waits=30) == 1


def test_a_thread_that_stays_is_counted():
    assert left(sleeps=60, waits=0.3) == 2
