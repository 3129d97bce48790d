"""Stable Diffusion 1.5 at its published size, with random weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .fit import MARGIN, require
from .quiet import quiet

if TYPE_CHECKING:
    from diffusers import StableDiffusionPipeline

# The configurations published with stable-diffusion-v1-5, where they differ from the classes' defaults.
UNET: dict[str, Any] = {
    "sample_size": 64, "in_channels": 4, "out_channels": 4, "layers_per_block": 2,
    "block_out_channels": (320, 640, 1280, 1280), "cross_attention_dim": 768, "attention_head_dim": 8,
}
VAE: dict[str, Any] = {
    "sample_size": 512, "in_channels": 3, "out_channels": 3, "latent_channels": 4, "layers_per_block": 2,
    "block_out_channels": (128, 256, 512, 512), "norm_num_groups": 32, "scaling_factor": 0.18215,
    "down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4,
}
XL_VAE = VAE | {"sample_size": 1024, "scaling_factor": 0.13025, "force_upcast": False}
TEXT: dict[str, Any] = {
    "vocab_size": 49408, "hidden_size": 768, "intermediate_size": 3072, "projection_dim": 768,
    "num_hidden_layers": 12, "num_attention_heads": 12, "max_position_embeddings": 77,
    "hidden_act": "quick_gelu",
}
SCHEDULER: dict[str, Any] = {
    "num_train_timesteps": 1000, "beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear",
    "set_alpha_to_one": False, "skip_prk_steps": True, "steps_offset": 1,
}
TOKENS = 77
#: Side of a picture in pixels, and how many pictures one decode holds at once.
SIDE, PICTURES = 512, 2

INSTEAD = "Take a larger device, a smaller dtype, or the source 'bundled'."


def full_size_pipeline(
    device: str, dtype: torch.dtype, tokenizer_folder: str | Path, seed: int = 0
) -> StableDiffusionPipeline:
    """A StableDiffusionPipeline of 1.07 billion parameters, made on ``device`` in ``dtype`` from ``seed``.

    Its pictures mean nothing. CLIP's own vocabulary is not shipped: the tokenizer is the bundled one, padded
    to CLIP's 77 tokens, so that every tensor has its real shape.

    Raises MemoryError, before anything is allocated, when the weights do not fit into the device's free
    memory.
    """
    with quiet():
        from diffusers import PNDMScheduler, StableDiffusionPipeline
        from transformers import CLIPTokenizer

        tokenizer = CLIPTokenizer.from_pretrained(tokenizer_folder, model_max_length=TOKENS)
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id}

    parts = made_on(lambda: networks(ends), device, dtype, seed)
    with quiet():
        return StableDiffusionPipeline(
            **parts, tokenizer=tokenizer, scheduler=PNDMScheduler(**SCHEDULER),
            safety_checker=None, feature_extractor=None, requires_safety_checker=False,
        )


def networks(token_ids: dict[str, int]) -> dict[str, torch.nn.Module]:
    """Stable Diffusion 1.5's three networks on the default device; ``token_ids`` name the special tokens."""
    from diffusers import AutoencoderKL, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel

    return {
        "unet": UNet2DConditionModel(**UNET),
        "vae": AutoencoderKL(**VAE),
        "text_encoder": CLIPTextModel(CLIPTextConfig(**TEXT, **token_ids)),
    }


def made_on(
    build: Callable[[], dict[str, torch.nn.Module]], device: str, dtype: torch.dtype, seed: int = 0
) -> dict[str, torch.nn.Module]:
    """What `build()` returns, every parameter made on `device` in `dtype` from `seed`; in evaluation mode.

    Raises MemoryError, before anything is allocated, when the weights do not fit into the device's free
    memory.
    """
    with torch.device("meta"):
        needs = {name: sum(p.numel() for p in part.parameters()) * dtype.itemsize
                 for name, part in build().items()}
    require(needs, device, INSTEAD)
    before = torch.get_default_dtype()
    cuda = [torch.device(device)] if torch.device(device).type == "cuda" else []
    with torch.random.fork_rng(devices=cuda), torch.device(device):
        torch.manual_seed(seed)
        torch.set_default_dtype(dtype)
        try:
            return {name: part.eval() for name, part in build().items()}
        finally:
            torch.set_default_dtype(before)


def picture_needs(dtype: torch.dtype) -> dict[str, int]:
    """Part -> bytes that Stable Diffusion 1.5 needs: each network's weights, one decode's peak, a margin.

    A decode holds three copies of the decoder's widest activation for `PICTURES` pictures of `SIDE` pixels a
    side.
    """
    with torch.device("meta"):
        parts = networks({})
    sizes = {name: sum(p.numel() for p in part.parameters()) * dtype.itemsize for name, part in parts.items()}
    decode = 3 * PICTURES * VAE["block_out_channels"][1] * SIDE**2 * dtype.itemsize
    return sizes | {"a decode": decode, "margin": MARGIN}
