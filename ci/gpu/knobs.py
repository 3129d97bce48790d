"""Memory knobs of whole pipelines: peak and time with each, at several sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .measure import allocated, fresh, reset_peak, seconds

KNOBS = ("plain", "vae slicing", "vae tiling", "model offload", "group offload")


def turn_on(pipe, knob: str, device: str) -> None:
    """Turns one knob on; offloading needs the pipeline on the CPU first.

    Raises ValueError for a name that is not one of KNOBS.
    """
    if knob == "vae slicing":
        pipe.vae.enable_slicing()
    elif knob == "vae tiling":
        pipe.vae.enable_tiling()
    elif knob == "model offload":
        pipe.enable_model_cpu_offload(device=device)
    elif knob == "group offload":
        pipe.enable_group_offload(torch.device(device), torch.device("cpu"), offload_type="leaf_level", use_stream=True,
                                  non_blocking=True)
    elif knob != "plain":
        raise ValueError(f"a knob is one of {', '.join(KNOBS)}, not {knob!r}")


def measure_knobs(make: Callable[[], Any], call: Callable[[Any, int], Any], sides, device: str, found: dict[str, Any],
                  say: Callable[[dict], None], knobs=KNOBS) -> dict[str, Any]:
    """Rows of (side, knob): the allocator's highest bytes in a call, weights included, and seconds. The first
    side is called once before, so that libraries and kernels are loaded.

    make    gives a new pipeline on `device`; each offloading knob gets one of its own
    call    runs the pipeline at a side in pixels
    """
    found |= {"rows": []}
    for knob in knobs:
        pipe = make()
        if "offload" in knob:
            pipe.to("cpu")
        turn_on(pipe, knob, device)
        for side in sides:
            row: dict[str, Any] = {"pixels": side, "knob": knob}
            try:
                if side == sides[0]:
                    call(pipe, side)  # libraries start, kernels are loaded
                fresh(device)
                reset_peak(device)
                row["seconds"] = seconds(lambda p=pipe, s=side: call(p, s), device)
                row["peak"] = allocated(device)[1]
            except torch.OutOfMemoryError as error:
                row["error"] = str(error)[:200]
            found["rows"].append(row)
            say(found)
        del pipe
        fresh(device)
    return found
