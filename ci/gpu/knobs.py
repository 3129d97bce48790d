"""Memory knobs of whole pipelines: peak and time with each, at several sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .measure import allocated, fresh, reset_peak, seconds, spread

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
        pipe.enable_group_offload(torch.device(device), torch.device("cpu"), offload_type="leaf_level",
                                  use_stream=True,
                                  non_blocking=True)
    elif knob != "plain":
        raise ValueError(f"a knob is one of {', '.join(KNOBS)}, not {knob!r}")


def measure_knobs(make: Callable[[], Any], call: Callable[[Any, int], Any], sides: Sequence[int], device: str,
                  found: dict[str, Any],
                  say: Callable[[dict], None], knobs: Sequence[str] = KNOBS, rounds: int = 5) -> dict[str,
                                                                                                      Any]:
    """Rows of (side, knob): the allocator's highest bytes in a call, weights included, and the spread of its
    seconds.

    The bytes come first, from a pipeline that is alone on the device. Then all pipelines are made, and each
    side is timed in `rounds` rounds: every knob once a round, each round beginning with another knob, after
    one round that does not count. So no knob is timed cold, and what drifts on the host meets all of them.

    Args:
        make: gives a new pipeline on `device`; each knob gets one of its own.
        call: runs a pipeline at a side in pixels.
    """
    found |= {"rounds": rounds, "rows": []}
    rows = {}
    for knob in knobs:
        pipe = ready(make, knob, device)
        for side in sides:
            row = rows[side, knob] = {"pixels": side, "knob": knob}
            found["rows"].append(row)
            try:
                call(pipe, side)  # libraries start, kernels are loaded
                fresh(device)
                reset_peak(device)
                call(pipe, side)
                row["peak"] = allocated(device)[1]
            except torch.OutOfMemoryError as error:
                row["error"] = str(error)[:200]
            say(found)
        del pipe
        fresh(device)
    pipes = {knob: ready(make, knob, device) for knob in knobs}
    for side in sides:
        timed: dict[str, list[float]] = {knob: [] for knob in knobs if "peak" in rows[side, knob]}
        for number in range(rounds + 1):
            order = list(timed)[number % len(timed):] + list(timed)[:number % len(timed)]
            for knob in order:
                one = seconds(lambda p=pipes[knob], s=side: call(p, s), device)
                if number:
                    timed[knob].append(one)
        for knob, values in timed.items():
            rows[side, knob]["seconds"] = spread(values, 4)
        say(found)
    return found


def ready(make: Callable[[], Any], knob: str, device: str) -> Any:
    """A pipeline of `make` with one knob on."""
    pipe = make()
    if "offload" in knob:
        pipe.to("cpu")
    turn_on(pipe, knob, device)
    return pipe
