"""SDXL and a DiT at their published sizes, with random weights: the benchmark measures them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from inferlab.models.full_size import TOKENS, XL_VAE, made_on
from inferlab.models.quiet import quiet

if TYPE_CHECKING:
    from diffusers import StableDiffusionXLPipeline

# SDXL's UNet and VAE, and the DiT of DiT-XL/2 at 512 pixels, as published, where they differ from the
# classes' defaults.
XL_UNET: dict[str, Any] = {
    "sample_size": 128, "block_out_channels": (320, 640, 1280), "layers_per_block": 2,
    "cross_attention_dim": 2048,
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
    "transformer_layers_per_block": (1, 2, 10), "attention_head_dim": (5, 10, 20),
    "use_linear_projection": True,
    "addition_embed_type": "text_time", "addition_time_embed_dim": 256,
    "projection_class_embeddings_input_dim": 2816,
}
DIT = {
    "num_attention_heads": 16, "attention_head_dim": 72, "in_channels": 4, "out_channels": 8,
    "num_layers": 28,
    "attention_bias": True, "sample_size": 64, "patch_size": 2, "activation_fn": "gelu-approximate",
    "num_embeds_ada_norm": 1000, "norm_type": "ada_norm_zero", "norm_elementwise_affine": False,
}


def xl_networks() -> dict[str, torch.nn.Module]:
    """SDXL's UNet (2.57 billion parameters) and VAE, made on the current default device.

    The VAE's own weights need float32 in places (`force_upcast`); random ones do not, so that its float16
    memory and time are those of the repaired VAEs in use.
    """
    from diffusers import AutoencoderKL, UNet2DConditionModel

    return {"unet": UNet2DConditionModel(**XL_UNET), "vae": AutoencoderKL(**XL_VAE)}


def dit_networks() -> dict[str, torch.nn.Module]:
    """The transformer of DiT-XL/2 for 512x512 pixels, made on the current default device: 750 million
    parameters, as diffusers gives each block an embedder of its own."""
    from diffusers import DiTTransformer2DModel

    return {"transformer": DiTTransformer2DModel(**DIT)}


def xl_pipeline(device: str, dtype: torch.dtype, seed: int = 0) -> StableDiffusionXLPipeline:
    """A StableDiffusionXLPipeline without text encoders, to be called with `xl_embeddings`.

    Raises MemoryError, before anything is allocated, when the weights do not fit into the device's free
    memory.
    """
    with quiet():
        from diffusers import EulerDiscreteScheduler, StableDiffusionXLPipeline
    parts = made_on(xl_networks, device, dtype, seed)
    with quiet():
        return StableDiffusionXLPipeline(
            **parts, text_encoder=None, text_encoder_2=None, tokenizer=None, tokenizer_2=None,
            scheduler=EulerDiscreteScheduler(beta_start=0.00085, beta_end=0.012,
                                             beta_schedule="scaled_linear"),
            add_watermarker=False,
        )


def xl_embeddings(pictures: int, device: str, dtype: torch.dtype, seed: int = 0) -> dict[str, torch.Tensor]:
    """Random embeddings in the shapes of SDXL's two text encoders, as arguments of its pipeline's call."""
    generator = torch.Generator("cpu").manual_seed(seed)
    shapes = {"prompt_embeds": (pictures, TOKENS, XL_UNET["cross_attention_dim"]),
              "pooled_prompt_embeds": (pictures, 1280)}
    return {name: torch.randn(shape, generator=generator).to(device, dtype) for name, shape in shapes.items()}
