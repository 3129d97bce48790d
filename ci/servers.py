"""Servers of one's own, which may be killed and started anew: PostgreSQL, a Dask scheduler with workers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

QUIET: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
SERVER_USER: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
"""PostgreSQL refuses to run as root."""


class Failed(RuntimeError):
    """Something that should hold does not."""


def free_port() -> int:
    """A port on which nobody listens now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def until(holds: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until something holds. Raises `Failed` when it takes longer."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {seconds:g} s")
        time.sleep(0.1)


class Postgres:
    """A PostgreSQL server of one's own, with `settings` such as "fsync=off"; a context manager.

    Its programs (initdb, postgres) must be on the PATH.
    """

    def __init__(self, folder: Path, *settings: str) -> None:
        self.data, self.port = folder, free_port()
        self.settings = [word for one in ("listen_addresses=127.0.0.1", *settings) for word in ("-c", one)]
        folder.mkdir()
        if SERVER_USER:
            shutil.chown(folder, SERVER_USER["user"], SERVER_USER["group"])
        subprocess.run(["initdb", "-D", folder, "-U", "grader", "--auth=trust", "-E", "UTF8"], check=True,
                       cwd="/", **QUIET, **SERVER_USER)
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> Postgres:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start the server, also after a kill, and wait until it answers."""
        def answers() -> bool:
            if self.process is None or self.process.poll() is not None:
                self.process = subprocess.Popen(
                    ["postgres", "-D", self.data, "-p", str(self.port), "-k", self.data, *self.settings],
                    cwd="/", **QUIET, **SERVER_USER)
            return subprocess.run(["pg_isready", "-h", "127.0.0.1", "-p", str(self.port)], check=False,
                                  **QUIET).returncode == 0

        until(answers, 60, "PostgreSQL starts")

    def kill(self) -> None:
        """Kill the server; its other processes see that and end."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def database(self, name: str) -> str:
        """A new, empty database; returns its address."""
        subprocess.run(["createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "grader", name],
                       check=True)
        return f"postgresql+psycopg://grader@127.0.0.1:{self.port}/{name}"


class Cluster:
    """A Dask scheduler and workers, each a process, one submission at a time in each; a context manager."""

    def __init__(self, workers: int) -> None:
        self.count, self.started = workers, 0
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.scheduler: subprocess.Popen | None = None
        self.workers: list[subprocess.Popen] = []

    def __enter__(self) -> Cluster:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start the scheduler and all workers, and wait for them."""
        port = self.address.rpartition(":")[2]
        self.scheduler = self._dask("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
        for _ in range(self.count):
            self.start_worker()
        from distributed import Client

        with Client(self.address, timeout=60) as client:
            client.wait_for_workers(self.count, timeout=60)

    def start_worker(self) -> None:
        """Start one more worker."""
        self.started += 1
        self.workers.append(self._dask("worker", self.address, "--nthreads", "1", "--no-nanny",
                                       "--no-dashboard", "--memory-limit", "0", "--name",
                                       f"worker-{self.started}"))

    def kill_worker(self) -> None:
        """Kill one worker, with what it is running."""
        self._kill(self.workers.pop(0))

    def kill(self) -> None:
        """Kill all of it."""
        for process in [*self.workers, *([self.scheduler] if self.scheduler else [])]:
            self._kill(process)
        self.workers, self.scheduler = [], None

    def kill_scheduler(self) -> None:
        """Kill the scheduler alone."""
        self._kill(self.scheduler)

    def megabytes(self) -> float:
        """What a worker and all below it hold now, on average; shared pages are counted once."""
        held = 0
        for top in [psutil.Process(worker.pid) for worker in self.workers]:
            held += sum(one.memory_full_info().pss for one in [top, *top.children(recursive=True)])
        return held / len(self.workers) / 2**20

    @staticmethod
    def _kill(process: subprocess.Popen | None) -> None:
        if process is not None:
            process.kill()
            process.wait()

    @staticmethod
    def _dask(*arguments: str) -> subprocess.Popen:
        return subprocess.Popen([Path(sys.executable).parent / "dask", *arguments], cwd="/tmp", **QUIET)
