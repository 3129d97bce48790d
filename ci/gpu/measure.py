"""Times, spreads and the machine's name: what every part of the GPU benchmark measures with."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("torch", "triton", "diffusers", "transformers", "accelerate", "numpy")


def wait(device: str) -> None:
    """Until the device has done everything that was asked of it."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def seconds(run: Callable[[], Any], device: str) -> float:
    """Wall seconds of one call, the device waited for at both ends."""
    wait(device)
    began = time.perf_counter()
    run()
    wait(device)
    return time.perf_counter() - began


def spread(values: Sequence[float], digits: int = 6) -> dict[str, Any]:
    """Median, least, greatest and how many; seconds or ratios, as they come."""
    return {"median": round(statistics.median(values), digits), "min": round(min(values), digits),
            "max": round(max(values), digits), "n": len(values)}


def repeated(run: Callable[[], Any], device: str, repeats: int, warm: int = 2) -> dict[str, Any]:
    """`spread` of the seconds of `repeats` calls, each waited for, after `warm` calls that do not count."""
    for _ in range(warm):
        run()
    return spread([seconds(run, device) for _ in range(repeats)])


def chain_seconds(run: Callable[[], Any], device: str, calls: int, repeats: int, warm: int = 2) -> dict[str,
                                                                                                        Any]:
    """`spread` of the seconds of one call, from `repeats` chains of `calls` calls that are waited for only at
    the end."""

    def chain() -> None:
        for _ in range(calls):
            run()

    for _ in range(warm):
        run()
    return spread([seconds(chain, device) / calls for _ in range(repeats)], 8)


def fresh(device: str) -> None:
    """Gives back what nobody holds, so that a part begins with an empty allocator."""
    gc.collect()
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def allocated(device: str) -> tuple[int, int]:
    """(bytes allocated now, highest since `reset_peak`) of the CUDA allocator; zeros on a CPU, which has
    none."""
    if torch.device(device).type != "cuda":
        return 0, 0
    return torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)


def reset_peak(device: str) -> None:
    """Begins a new high-water mark."""
    if torch.device(device).type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def environment(device: str) -> dict[str, Any]:
    """Card, driver, versions, commit, host: what a number means nothing without."""
    found: dict[str, Any] = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "python": platform.python_version(),
        "host": {"processors": os.cpu_count(), "machine": platform.machine(), "kernel": platform.release()},
        "packages": {name: _version(name) for name in PACKAGES}, "commit": commit(),
    }
    if torch.device(device).type == "cuda":
        about = torch.cuda.get_device_properties(device)
        found["card"] = {"name": about.name, "count": torch.cuda.device_count(), "bytes": about.total_memory,
                         "multiprocessors": about.multi_processor_count, "l2_bytes": about.L2_cache_size,
                         "driver": _driver(), "cuda": torch.version.cuda}
    else:
        found["card"] = {"name": platform.processor() or platform.machine(), "count": 0}
    return found


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def commit() -> str:
    """INFERLAB_COMMIT, or the commit that is checked out; "" where there is no git or no repository."""
    given = os.environ.get("INFERLAB_COMMIT")
    if given:
        return given
    try:
        return subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                              check=True,
                              cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _driver() -> str:
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                              capture_output=True,
                              text=True, check=True, timeout=30).stdout.split("\n")[0].strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
