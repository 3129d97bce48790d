"""Stable Diffusion 1.5, SDXL and a DiT at published sizes, random weights: real shapes, memory and speed, no download."""

from __future__ import annotations

import torch

from inferlab.models.fit import require
from inferlab.models.quiet import quiet

# The configurations published with stable-diffusion-v1-5, where they differ from the classes' defaults.
UNET = {
    "sample_size": 64, "in_channels": 4, "out_channels": 4, "layers_per_block": 2,
    "block_out_channels": (320, 640, 1280, 1280), "cross_attention_dim": 768, "attention_head_dim": 8,
}
VAE = {
    "sample_size": 512, "in_channels": 3, "out_channels": 3, "latent_channels": 4, "layers_per_block": 2,
    "block_out_channels": (128, 256, 512, 512), "norm_num_groups": 32, "scaling_factor": 0.18215,
    "down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4,
}
TEXT = {
    "vocab_size": 49408, "hidden_size": 768, "intermediate_size": 3072, "projection_dim": 768, "num_hidden_layers": 12,
    "num_attention_heads": 12, "max_position_embeddings": 77, "hidden_act": "quick_gelu",
}
SCHEDULER = {
    "num_train_timesteps": 1000, "beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear",
    "set_alpha_to_one": False, "skip_prk_steps": True, "steps_offset": 1,
}
TOKENS = 77


# SDXL's UNet and VAE, and the DiT of DiT-XL/2 at 512 pixels, as published, where they differ from the classes' defaults.
XL_UNET = {
    "sample_size": 128, "block_out_channels": (320, 640, 1280), "layers_per_block": 2, "cross_attention_dim": 2048,
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
    "transformer_layers_per_block": (1, 2, 10), "attention_head_dim": (5, 10, 20), "use_linear_projection": True,
    "addition_embed_type": "text_time", "addition_time_embed_dim": 256, "projection_class_embeddings_input_dim": 2816,
}
XL_VAE = VAE | {"sample_size": 1024, "scaling_factor": 0.13025, "force_upcast": False}
DIT = {
    "num_attention_heads": 16, "attention_head_dim": 72, "in_channels": 4, "out_channels": 8, "num_layers": 28,
    "attention_bias": True, "sample_size": 64, "patch_size": 2, "activation_fn": "gelu-approximate",
    "num_embeds_ada_norm": 1000, "norm_type": "ada_norm_zero", "norm_elementwise_affine": False,
}
INSTEAD = "Take a larger device, a smaller dtype, or the source 'bundled'."


def full_size_pipeline(device: str, dtype: torch.dtype, tokenizer_folder, seed: int = 0):
    """A StableDiffusionPipeline of 1.07 billion parameters, every one made on ``device`` in ``dtype`` from ``seed``.

    Its pictures mean nothing. CLIP's own vocabulary is not shipped: the tokenizer is the bundled one, padded to CLIP's
    77 tokens, so that every tensor has its real shape.

    Raises MemoryError, before anything is allocated, when the weights do not fit into the device's free memory.
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
    """Stable Diffusion 1.5's three networks, made on the current default device; ``token_ids`` name the special tokens."""
    from diffusers import AutoencoderKL, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel

    return {
        "unet": UNet2DConditionModel(**UNET),
        "vae": AutoencoderKL(**VAE),
        "text_encoder": CLIPTextModel(CLIPTextConfig(**TEXT, **token_ids)),
    }


def xl_networks() -> dict[str, torch.nn.Module]:
    """SDXL's UNet (2.57 billion parameters) and VAE, made on the current default device.

    The VAE's own weights need float32 in places (`force_upcast`); random ones do not, so that its float16 memory and time
    are those of the repaired VAEs in use.
    """
    from diffusers import AutoencoderKL, UNet2DConditionModel

    return {"unet": UNet2DConditionModel(**XL_UNET), "vae": AutoencoderKL(**XL_VAE)}


def dit_networks() -> dict[str, torch.nn.Module]:
    """The transformer of DiT-XL/2 for 512x512 pixels, made on the current default device: 750 million parameters, as
    diffusers gives each block an embedder of its own."""
    from diffusers import DiTTransformer2DModel

    return {"transformer": DiTTransformer2DModel(**DIT)}


def xl_pipeline(device: str, dtype: torch.dtype, seed: int = 0):
    """A StableDiffusionXLPipeline without text encoders: it is called with `xl_embeddings` instead of a prompt.

    Raises MemoryError, before anything is allocated, when the weights do not fit into the device's free memory.
    """
    with quiet():
        from diffusers import EulerDiscreteScheduler, StableDiffusionXLPipeline
    parts = made_on(xl_networks, device, dtype, seed)
    with quiet():
        return StableDiffusionXLPipeline(
            **parts, text_encoder=None, text_encoder_2=None, tokenizer=None, tokenizer_2=None,
            scheduler=EulerDiscreteScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear"),
            add_watermarker=False,
        )


def xl_embeddings(pictures: int, device: str, dtype: torch.dtype, seed: int = 0) -> dict[str, torch.Tensor]:
    """Random embeddings in the shapes of SDXL's two text encoders, as arguments of its pipeline's call."""
    generator = torch.Generator("cpu").manual_seed(seed)
    shapes = {"prompt_embeds": (pictures, TOKENS, XL_UNET["cross_attention_dim"]), "pooled_prompt_embeds": (pictures, 1280)}
    return {name: torch.randn(shape, generator=generator).to(device, dtype) for name, shape in shapes.items()}


def made_on(build, device: str, dtype: torch.dtype, seed: int = 0) -> dict[str, torch.nn.Module]:
    """What `build()` returns, with every parameter made on `device` in `dtype` from `seed`; in evaluation mode.

    Raises MemoryError, before anything is allocated, when the weights do not fit into the device's free memory.
    """
    with torch.device("meta"):
        needs = {name: sum(p.numel() for p in part.parameters()) * dtype.itemsize for name, part in build().items()}
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
