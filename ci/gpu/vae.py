"""A decode's peak, predicted from shapes as lab 10 does and read from the allocator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from inferlab.lab.kits.memory.peaks import knob
from inferlab.trace import trace

from .measure import allocated, fresh, reset_peak, seconds

GOAL = 0.10


def forecast(vae, batch: int, side: int, slicing: bool, tiling: bool) -> int:
    """Lab 10's formula: three maps of the last block's input at the largest pass; `side` in latents."""
    if slicing:
        batch = 1
    if tiling:
        side = min(side, vae.tile_latent_min_size)
    return 3 * batch * vae.config.block_out_channels[1] * (8 * side) ** 2 * vae.dtype.itemsize


def with_copies(vae, batch: int, side: int, slicing: bool, tiling: bool) -> int:
    """The forecast for CUDA, where cuDNN's convolutions work in another memory order than PyTorch's.

    In units of lab 10's map (the last block's input): its first convolution finds the residual and its own
    input (2), makes half a map, and copies both into its order (1 1/2): 4 maps. With one picture in a pass
    also the convolution of the last upsampling works on copies: 1 3/4 maps are there, one is made, two are
    copies: 4 3/4.
    """
    return copies(forecast(vae, batch, side, slicing, tiling), 1 if slicing else batch)


def copies(three_maps: int, in_pass: int) -> int:
    """`with_copies` from lab 10's forecast and the number of pictures in a pass."""
    return round(three_maps / 3 * (4.75 if in_pass == 1 else 4.0))


@torch.no_grad()
def peaks(vae, sizes, device: str, say: Callable[[dict], None]) -> dict[str, Any]:
    """Rows of (pixels, batch, knob): forecast, allocator's peak above what was there, and the seconds of a
    second decode.

    sizes   pairs (side of the picture in pixels, batch)
    """
    found: dict[str, Any] = {"goal": GOAL, "dtype": str(vae.dtype).removeprefix("torch."), "rows": []}
    for pixels, batch in sizes:
        latents = torch.randn(batch, 4, pixels // 8, pixels // 8, device=device, dtype=vae.dtype)
        for name in (None, "slicing", "tiling"):
            with knob(vae, name):
                row: dict[str, Any] = {"pixels": pixels, "batch": batch, "knob": name or "plain"}
                try:
                    vae.decode(latents)
                    fresh(device)
                    before, _ = allocated(device)
                    reset_peak(device)
                    row["seconds"] = seconds(lambda given=latents: vae.decode(given).sample, device)
                    row["peak"] = allocated(device)[1] - before
                    row["forecast"] = forecast(vae, batch, pixels // 8, name == "slicing", name == "tiling")
                    if row["peak"]:
                        row["with_copies"] = with_copies(vae, batch, pixels // 8, name == "slicing",
                                                         name == "tiling")
                        row["copies_off_by"] = row["peak"] / row["with_copies"] - 1
                    if row["peak"]:
                        row["off_by"] = row["peak"] / row["forecast"] - 1
                        row["met"] = abs(row["off_by"]) <= GOAL
                except torch.OutOfMemoryError as error:
                    row["error"] = str(error)[:200]
                found["rows"].append(row)
                say(found)
                fresh(device)
    return found


@torch.no_grad()
def attributed(vae, pixels: int, device: str) -> dict[str, Any]:
    """Which module's call makes the peak: the highest peaks of one traced decode, above what was there
    before."""
    latents = torch.randn(1, 4, pixels // 8, pixels // 8, device=device, dtype=vae.dtype)
    with trace(vae, depth="decoder*", memory="peaks") as t:
        vae.decode(latents)
    read = [(b.memory["peak"], b.memory["before"], b.name) for b in t.boundaries if b.memory]
    if not read:
        return {"pixels": pixels, "highest": []}
    ground = read[0][1]
    highest = sorted(((peak - ground, before - ground, name) for peak, before, name in read),
                     reverse=True)[:25]
    return {"pixels": pixels, "map_bytes": vae.config.block_out_channels[1] * pixels**2 * vae.dtype.itemsize,
            "highest": [{"name": n, "peak": p, "before": b} for p, b, n in highest]}
