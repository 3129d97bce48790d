"""Measures what a decode holds at its peak, with memory knobs on or off, and draws the peaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from inferlab.lab.plots.style import ACCENT, DARK, LINES, MID, STYLE, finished

THIN = (8, 16, 16, 24)
"""Channels of `thin_vae()`: a quarter of the bundled decoder's."""


def thin_vae(channels: Sequence[int] = THIN) -> Any:
    """An ``AutoencoderKL`` like the bundled one: fewer channels, fixed random weights, float32 on the CPU.

    Its pictures are noise; its shapes, tiles (16 latents a side) and ratios of memory are the real class's.
    """
    from diffusers import AutoencoderKL

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return AutoencoderKL(block_out_channels=tuple(channels), norm_num_groups=8, layers_per_block=1,
                             sample_size=128,
                             down_block_types=("DownEncoderBlock2D",) * 4,
                             up_block_types=("UpDecoderBlock2D",) * 4).eval()


def measure(run: Callable[[], Any], device: str = "cpu") -> dict[str, Any]:
    """Call ``run()`` once and say how many bytes it held at its highest, above what was there before.

    Args:
        run: what is measured, without arguments.
        device: on "cpu" the bytes of all live tensors are counted, operation by operation; on "cuda" the
            allocator's own peak is read, which has the scratch memory of kernels in it too.

    Returns:
        ``peak`` (bytes, int), ``seconds`` (of this call, which was watched: some ten microseconds an
        operation are the watching), ``how`` (one line for the reader) and ``value``, what ``run`` returned.
    """
    from inferlab.trace import trace

    cuda = torch.device(device).type == "cuda"
    values: list[Any] = []
    with trace(run, memory="peaks" if cuda else "tensors") as traced:
        took = seconds(lambda: values.append(run()), device)
    first = traced.rows()[0]["memory"]
    how = "CUDA allocator's peak" if cuda else "bytes of live tensors (CPU: no allocator to ask)"
    return {"peak": int(first["peak"] - first["before"]), "seconds": took, "how": how, "value": values[0]}


def seconds(run: Callable[[], Any], device: str | torch.device = "cpu") -> float:
    """Wall time of one call of ``run()``, waiting for the device at both ends."""
    wait = torch.cuda.synchronize if torch.device(device).type == "cuda" else (lambda: None)
    wait()
    began = time.perf_counter()
    with torch.no_grad():
        run()
    wait()
    return time.perf_counter() - began


@contextmanager
def knob(vae: Any, *names: str | None) -> Iterator[None]:
    """Turn knobs of a VAE on inside the block, and off again after it.

    Args:
        vae: an ``AutoencoderKL``.
        names: of "slicing", "tiling", "attention slicing" (what ``pipe.enable_attention_slicing()`` does to
            the components that have the method, and to no other) and "attention backend"
            (``vae.set_attention_backend``); ``None`` stands for no knob.

    Raises:
        ValueError: if there is no knob of that name.
    """
    unknown = set(names) - {"slicing", "tiling", "attention slicing", "attention backend", None}
    if unknown:
        raise ValueError(f"no knob is called {', '.join(sorted(map(str, unknown)))}")
    before = vae.use_slicing, vae.use_tiling
    vae.use_slicing, vae.use_tiling = "slicing" in names, "tiling" in names
    slices = "attention slicing" in names and hasattr(vae, "set_attention_slice")
    try:
        if slices:
            vae.set_attention_slice(1)
        if "attention backend" in names:
            _backend(vae, "_native_math")
        yield
    finally:
        vae.use_slicing, vae.use_tiling = before
        if slices:
            vae.set_attention_slice(None)
        if "attention backend" in names:
            _backend(vae, None)


def _backend(vae: Any, name: str | None) -> None:
    from inferlab.models.quiet import quiet

    # diffusers says at every call that attention backends are experimental; the lab says so in its text
    with quiet():
        # also a switch of the whole process: so it is set back, not only reset
        vae.set_attention_backend(name or "native")
        if name is None:
            vae.reset_attention_backend()


def peak_curves(peaks: Mapping[str, Mapping[int, float]], *, title: str, how: str) -> Figure:
    """Peak against the side of the picture, both axes logarithmic, one line a knob.

    Args:
        peaks: knob -> {side in pixels: peak in bytes}; up to four knobs.
        title: the finding.
        how: what was measured, for the y axis.

    Raises:
        ValueError: if there is no curve, or there are more than four.
    """
    if not 1 <= len(peaks) <= len(LINES):
        raise ValueError(f"1 to {len(LINES)} curves, not {len(peaks)}")
    with plt.style.context(STYLE):
        fig, axis = plt.subplots(figsize=(6.6, 3.6))
        sides = sorted({side for curve in peaks.values() for side in curve})
        for (name, curve), style, color in zip(peaks.items(), LINES, (DARK, MID, ACCENT, "0.4"),
                                               strict=False):
            axis.plot(list(curve), [value / 2**20 for value in curve.values()], color=color, label=name, ms=5,
                      **style)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log", base=2)
        axis.set_xticks(sides, [str(side) for side in sides])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter("{x:g}")
        axis.set_xlabel("side of the pictures (pixels)")
        axis.set_ylabel(f"peak (MiB)\n{how}", fontsize=8.5)
        axis.set_title(title)
        axis.legend(frameon=False)
        fig.tight_layout()
    return finished(fig)
