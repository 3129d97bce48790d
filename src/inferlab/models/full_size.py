"""Stable Diffusion 1.5 at its published size with seeded random weights: real shapes, memory and speed, no download."""

from __future__ import annotations

import torch

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

    with torch.device("meta"):
        needed = sum(p.numel() for model in networks(ends).values() for p in model.parameters()) * dtype.itemsize
    free = free_memory(device)
    if needed > free:
        raise MemoryError(
            f"the weights need {needed / 1e9:.1f} GB and {device} has {free / 1e9:.1f} GB free. "
            "Take a larger device, a smaller dtype, or the source 'bundled'."
        )
    before = torch.get_default_dtype()
    cuda = [torch.device(device)] if torch.device(device).type == "cuda" else []
    with torch.random.fork_rng(devices=cuda), torch.device(device):
        torch.manual_seed(seed)
        torch.set_default_dtype(dtype)
        try:
            parts = {name: model.eval() for name, model in networks(ends).items()}
        finally:
            torch.set_default_dtype(before)
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


def free_memory(device: str) -> int:
    """Bytes free on ``device`` now."""
    if torch.device(device).type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    import psutil

    return psutil.virtual_memory().available
