"""Opens pipelines of three families, bundled, at full size without their weights, or from the hub.

"sd" is Stable Diffusion's (a UNet), "flux" FLUX.1's (a flow-matching transformer), "wan" Wan 2.1's (a video
transformer).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .device import resolve_device, usual_dtype
from .quiet import quiet

if TYPE_CHECKING:
    from diffusers import DiffusionPipeline, FluxPipeline, StableDiffusionPipeline

WEIGHTS = Path(__file__).resolve().parent.parent / "weights" / "pictures"
FLUX, WAN = WEIGHTS.parent / "flux", WEIGHTS.parent / "wan"
#: family -> the hub's checkpoint
HUB = {
    "sd": "stable-diffusion-v1-5/stable-diffusion-v1-5",
    "flux": "black-forest-labs/FLUX.1-dev",
    "wan": "Wan-AI/Wan2.1-T2V-1.3B-Diffusers",
}

_preloaded: list[DiffusionPipeline] = []


def load_pipeline(
    source: str = "bundled",
    device: str = "auto",
    dtype: torch.dtype | None = None,
    *,
    family: str = "sd",
    seed: int = 0,
) -> DiffusionPipeline:
    """A pipeline, ready to be called with a prompt.

    Args:
        source: "bundled" (small, trained by us), "full" (the published architecture at full size, seeded
            random weights; of the family "wan" also "full:14B"), "hub" (the real checkpoint) or
            "hub:owner/name" (that checkpoint).
        device: "cpu", "cuda", "cuda:1", ..., or "auto": cuda where there is one.
        dtype: of the weights; None: float32 on the CPU, elsewhere float16 ("sd") or bfloat16 ("flux", "wan").
        family: "sd" (Stable Diffusion 1.5; bundled: 128x128 pictures of colored shapes, see
            ``inferlab.models.scenes``), "flux" (FLUX.1-dev; bundled: a flow-matching model of the same
            pictures) or "wan" (Wan 2.1 text-to-video; bundled: 17 frames of 96x96, see
            ``inferlab.models.clips``).
        seed: of the random weights of "full"; the other sources have no use for it.

    Raises:
        ValueError: ``source`` or ``family`` is none of these, or this machine lacks the ``device``.
        MemoryError: the full-size weights do not fit into the device's free memory.
        ConnectionError: the hub cannot be reached, or does not give the checkpoint.
    """
    if family not in HUB:
        raise ValueError(f"family is {family!r}; expected 'sd', 'flux' or 'wan'")
    device = resolve_device(device)
    dtype = dtype or usual_dtype(device, torch.float16 if family == "sd" else torch.bfloat16)
    if source == "bundled":
        if family == "flux":
            return open_flux(FLUX, device, dtype)
        if family == "wan":
            return open_folder(WAN, device, dtype)
        if _preloaded and device == "cpu" and dtype == torch.float32:
            return _preloaded.pop()
        return open_folder(WEIGHTS, device, dtype)
    if source == "full" and family == "sd":
        from inferlab.models.full_size import full_size_pipeline

        return full_size_pipeline(device, dtype, WEIGHTS / "tokenizer", seed)
    if source == "full" or (source == "full:14B" and family == "wan"):
        from inferlab.models.full_transformers import full_flux_pipeline, full_wan_pipeline

        if family == "flux":
            return full_flux_pipeline(device, dtype, WEIGHTS / "tokenizer", FLUX / "tokenizer_2", seed)
        return full_wan_pipeline(device, dtype, WAN / "tokenizer", source[5:] or "1.3B", seed)
    if source == "hub" or source.startswith("hub:"):
        from inferlab.models.hub import fetch_pipeline

        return open_folder(fetch_pipeline(source[4:] or HUB[family]), device, dtype, bars=True)
    expected = "'bundled', 'full', 'hub' or 'hub:owner/name' (of the family 'wan' also 'full:14B')"
    raise ValueError(f"source is {source!r}; expected {expected}")


def preload() -> None:
    """Open the bundled pipeline ahead of time, for the next `load_pipeline("bundled", "cpu")` alone.

    For a process that forks: each child then has the weights at once, sharing their memory with the others.
    """
    if not _preloaded:
        _preloaded.append(open_folder(WEIGHTS, "cpu", torch.float32))


def open_flux(folder: str | Path, device: str, dtype: torch.dtype) -> FluxPipeline:
    """The bundled FluxPipeline: ``folder`` holds what is its own, the rest are the picture model's files.

    FLUX subtracts a ``shift_factor`` from latents, which the picture model's autoencoder leaves open; here
    it is 0. Called without a size, the pipeline draws 128x128.
    """
    with quiet():
        from diffusers import AutoencoderKL
        from transformers import CLIPTextModel, CLIPTokenizer

        parts = {
            "vae": AutoencoderKL.from_pretrained(WEIGHTS / "vae", shift_factor=0.0).to(dtype),
            "text_encoder": CLIPTextModel.from_pretrained(WEIGHTS / "text_encoder").to(dtype),
            "tokenizer": CLIPTokenizer.from_pretrained(WEIGHTS / "tokenizer"),
        }
    pipeline = open_folder(folder, device, dtype, **parts)
    pipeline.default_sample_size = 128 // pipeline.vae_scale_factor
    return pipeline


def open_folder(
    folder: str | Path, device: str, dtype: torch.dtype, bars: bool = False, **parts: Any
) -> StableDiffusionPipeline | DiffusionPipeline:
    """The pipeline saved in ``folder``, without a safety checker, warnings or (unless ``bars``) progress.

    ``parts`` are used in place of the folder's.
    """
    with quiet(bars):
        import diffusers
        from diffusers import DiffusionPipeline
    with quiet(bars):  # again, now that diffusers is there and has bars to hide
        # diffusers renamed torch_dtype in 0.42 and warns about the old name from then on
        named = "dtype" if tuple(map(int, diffusers.__version__.split(".")[:2])) >= (0, 42) else "torch_dtype"
        options = {named: dtype, "local_files_only": True}
        if "safety_checker" in DiffusionPipeline.load_config(folder, local_files_only=True):
            options |= {"safety_checker": None, "requires_safety_checker": False}
        pipeline = DiffusionPipeline.from_pretrained(folder, **options, **parts)
    return pipeline.to(device)
