"""Keeps what running a submission gave, by the job's hash, so that a killed batch goes on and nothing runs twice."""

from __future__ import annotations

import atexit
import json
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

from .host import Host
from .plan import job_key

_hosts: dict[str, Host] = {}
_lock = threading.Lock()


class Results:
    """Results on disk, one JSON file a job; a file appears complete or not at all.

    Args:
        folder: where they lie; made if missing. Reference values lie beside them.
        mode: "sandbox" or "none"; results of the two are kept apart.
    """

    def __init__(self, folder: Path, mode: str = "sandbox"):
        self.folder, self.mode = folder, mode
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, job: dict[str, Any]) -> dict[str, Any] | None:
        """The kept result of a job, or None; a file that a full disk or a power cut left damaged is dropped."""
        try:
            return json.loads(self._path(job).read_text("utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            self.forget(job)
            return None

    def put(self, job: dict[str, Any], result: dict[str, Any]) -> None:
        """Keep a result."""
        handle, temporary = tempfile.mkstemp(dir=self.folder, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(result, file)
        os.replace(temporary, self._path(job))

    def forget(self, job: dict[str, Any]) -> None:
        """Drop a kept result, so that the job runs again."""
        self._path(job).unlink(missing_ok=True)

    def compute(self, job: dict[str, Any]) -> dict[str, Any]:
        """The kept result, or a fresh one, which is then kept. Raises `host.GradingFailed` or `sandbox.NoSandbox`."""
        result = self.get(job)
        if result is None:
            result = shared_host(self.mode).run(job, self.folder / "references")
            self.put(job, result)
        return result

    def _path(self, job: dict[str, Any]) -> Path:
        return self.folder / f"{job_key(job, self.mode)}.json"


def shared_host(mode: str) -> Host:
    """This process's host, started once; it ends with the process."""
    with _lock:
        if mode not in _hosts:
            _hosts[mode] = Host(mode)
            atexit.register(_hosts[mode].close)
        return _hosts[mode]
