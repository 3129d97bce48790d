"""Opens text-to-image pipelines: the bundled one, Stable Diffusion 1.5 at full size without its weights, or a hub's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from inferlab.models.quiet import quiet

if TYPE_CHECKING:
    from diffusers import DiffusionPipeline, StableDiffusionPipeline

WEIGHTS = Path(__file__).resolve().parent.parent / "weights" / "pictures"
HUB = "stable-diffusion-v1-5/stable-diffusion-v1-5"

_preloaded: list[DiffusionPipeline] = []


def load_pipeline(
    source: str = "bundled", device: str = "auto", dtype: torch.dtype | None = None, *, seed: int = 0
) -> DiffusionPipeline:
    """A text-to-image pipeline, ready to be called with a prompt.

    Args:
        source: "bundled" (trained by us: 128x128 pictures of colored shapes, see ``inferlab.models.scenes``), "full"
            (Stable Diffusion 1.5's architecture at full size, seeded random weights), "hub" (the real Stable Diffusion
            1.5) or "hub:owner/name" (that checkpoint).
        device: "cpu", "cuda", "cuda:1", ..., or "auto": cuda where there is one.
        dtype: of the weights; None: float32 on the CPU, float16 elsewhere.
        seed: of the random weights of "full"; the other sources have no use for it.

    Raises:
        ValueError: ``source`` is none of these, or ``device`` is a GPU that this machine lacks.
        MemoryError: the full-size weights do not fit into the device's free memory.
        ConnectionError: the hub cannot be reached, or does not give the checkpoint.
    """
    device = resolve_device(device)
    dtype = dtype or (torch.float32 if torch.device(device).type == "cpu" else torch.float16)
    if source == "bundled":
        if _preloaded and device == "cpu" and dtype == torch.float32:
            return _preloaded.pop()
        return open_folder(WEIGHTS, device, dtype)
    if source == "full":
        from inferlab.models.full_size import full_size_pipeline

        return full_size_pipeline(device, dtype, WEIGHTS / "tokenizer", seed)
    if source == "hub" or source.startswith("hub:"):
        from inferlab.models.hub import fetch_pipeline

        return open_folder(fetch_pipeline(source[4:] or HUB), device, dtype, bars=True)
    raise ValueError(f"source is {source!r}; expected 'bundled', 'full', 'hub' or 'hub:owner/name'")


def preload() -> None:
    """Open the bundled pipeline ahead of time: the next `load_pipeline("bundled", "cpu")` gets it, the one after is opened anew.

    For a process that forks: each child then has the weights at once, sharing their memory with the others.
    """
    if not _preloaded:
        _preloaded.append(open_folder(WEIGHTS, "cpu", torch.float32))


def resolve_device(device: str) -> str:
    """"auto" -> "cuda" where there is a GPU, else "cpu". Raises ValueError for a GPU that is not there."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {device!r}, but torch sees no GPU here; use 'auto' or 'cpu'")
    return device


def open_folder(
    folder: str | Path, device: str, dtype: torch.dtype, bars: bool = False
) -> StableDiffusionPipeline | DiffusionPipeline:
    """The pipeline saved in ``folder``, without a safety checker; no warnings, and no progress bars unless ``bars``."""
    with quiet(bars):
        import diffusers
        from diffusers import DiffusionPipeline
    with quiet(bars):  # again, now that diffusers is there and has bars to hide
        # diffusers renamed torch_dtype in 0.42 and warns about the old name from then on
        named = "dtype" if tuple(map(int, diffusers.__version__.split(".")[:2])) >= (0, 42) else "torch_dtype"
        options = {named: dtype, "local_files_only": True}
        if "safety_checker" in DiffusionPipeline.load_config(folder, local_files_only=True):
            options |= {"safety_checker": None, "requires_safety_checker": False}
        pipeline = DiffusionPipeline.from_pretrained(folder, **options)
    return pipeline.to(device)
