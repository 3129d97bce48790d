"""Which device a model is put on, and in which dtype where nobody chose one."""

from __future__ import annotations

import re

import torch


def resolve_device(device: str) -> str:
    """`"auto"` as the device that is there: "cuda" or "cpu". Another device is checked and returned.

    Raises:
        ValueError: if there is no such device, or this machine does not have it.
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        return device
    found = re.fullmatch(r"cuda(?::(\d+))?", device) if isinstance(device, str) else None
    if found is None:
        raise ValueError(f"the device is auto, cpu, cuda or cuda:N, not {device!r}")
    have = torch.cuda.device_count()
    if int(found[1] or 0) >= have:
        raise ValueError(f"the device is {device!r}, but torch sees {have} CUDA device(s) here: "
                         'use "auto" or "cpu"')
    return device


def usual_dtype(device: str | torch.device, on_gpu: torch.dtype) -> torch.dtype:
    """float32 on a CPU, `on_gpu` elsewhere."""
    return torch.float32 if torch.device(device).type == "cpu" else on_gpu
