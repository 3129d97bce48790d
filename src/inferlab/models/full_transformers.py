"""FLUX.1-dev and Wan 2.1 at published sizes, random weights: real shapes, memory and speed, no download."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from inferlab.models.fit import MARGIN
from inferlab.models.full_size import TEXT, TOKENS, made_on
from inferlab.models.quiet import quiet

if TYPE_CHECKING:
    from diffusers import FluxPipeline, WanPipeline

# The published configurations, where they differ from the classes' defaults.
FLUX = {"guidance_embeds": True}
FLUX_VAE: dict[str, Any] = {
    "sample_size": 1024,
    "latent_channels": 16,
    "layers_per_block": 2,
    "block_out_channels": (128, 256, 512, 512),
    "norm_num_groups": 32,
    "scaling_factor": 0.3611,
    "shift_factor": 0.1159,
    "use_quant_conv": False,
    "use_post_quant_conv": False,
    "force_upcast": True,
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
}
FLUX_SCHEDULER: dict[str, Any] = {
    "shift": 3.0,
    "use_dynamic_shifting": True,
    "base_shift": 0.5,
    "max_shift": 1.15,
    "base_image_seq_len": 256,
    "max_image_seq_len": 4096,
}
#: Both text encoders have this size; Wan's has a larger vocabulary.
XXL: dict[str, Any] = {
    "d_model": 4096,
    "d_kv": 64,
    "d_ff": 10240,
    "num_layers": 24,
    "num_heads": 64,
    "feed_forward_proj": "gated-gelu",
    "dropout_rate": 0.0,
}
T5_WORDS, UMT5_WORDS = 32128, 256384
WAN = {"1.3B": {"num_attention_heads": 12, "num_layers": 30, "ffn_dim": 8960}, "14B": {}}
WAN_SHIFT = 3.0  # of the flow schedule, as published for 480 lines
PROMPT = 512  # tokens that both pipelines pad a prompt to
#: Wan's frames in pixels, as published for 480 lines; its decoder makes so many of them at once, and at full
#: size its widest activation has so many channels.
WAN_SIZE, WAN_FRAMES, WAN_CHANNELS = (480, 832), 4, 192


def flux_networks(token_ids: dict[str, int]) -> dict[str, torch.nn.Module]:
    """FLUX.1-dev's four networks on the default device; ``token_ids`` name CLIP's special tokens."""
    from diffusers import AutoencoderKL, FluxTransformer2DModel
    from transformers import CLIPTextConfig, CLIPTextModel, T5Config, T5EncoderModel

    return {
        "transformer": FluxTransformer2DModel(**FLUX),
        "text_encoder_2": T5EncoderModel(T5Config(vocab_size=T5_WORDS, **XXL)),
        "text_encoder": CLIPTextModel(CLIPTextConfig(**TEXT, **token_ids)),
        "vae": AutoencoderKL(**FLUX_VAE),
    }


def wan_networks(size: str) -> dict[str, torch.nn.Module]:
    """Wan 2.1's three text-to-video networks, "1.3B" or "14B", made on the current default device."""
    from diffusers import AutoencoderKLWan, WanTransformer3DModel
    from transformers import UMT5Config, UMT5EncoderModel

    return {
        "transformer": WanTransformer3DModel(**WAN[size]),
        "text_encoder": UMT5EncoderModel(UMT5Config(vocab_size=UMT5_WORDS, **XXL)),
        "vae": AutoencoderKLWan(),
    }


def flux_needs(dtype: torch.dtype) -> dict[str, int]:
    """Part -> bytes that FLUX.1-dev needs: each network's weights, one decode's peak, a margin.

    A decode holds three copies of the decoder's widest activation at the picture's full size.
    """
    with torch.device("meta"):
        parts = flux_networks({})
    sizes = {name: sum(p.numel() for p in part.parameters()) * dtype.itemsize for name, part in parts.items()}
    decode = 3 * FLUX_VAE["block_out_channels"][1] * FLUX_VAE["sample_size"] ** 2 * dtype.itemsize
    return sizes | {"a decode": decode, "margin": MARGIN}


def wan_needs(dtype: torch.dtype, size: str = "1.3B") -> dict[str, int]:
    """Part -> bytes that Wan 2.1 needs for text to video: each network's weights, a decode, a margin.

    The decoder works through a clip of any length in pieces. A piece holds three copies of its widest
    activation.
    """
    with torch.device("meta"):
        parts = wan_networks(size)
    sizes = {name: sum(p.numel() for p in part.parameters()) * dtype.itemsize for name, part in parts.items()}
    decode = 3 * WAN_FRAMES * WAN_CHANNELS * WAN_SIZE[0] * WAN_SIZE[1] * dtype.itemsize
    return sizes | {"a decode": decode, "margin": MARGIN}


def full_flux_pipeline(
    device: str, dtype: torch.dtype, clip_tokenizer: Path, t5_tokenizer: Path, seed: int = 0
) -> FluxPipeline:
    """A FluxPipeline of 16.9 billion parameters, every one made on ``device`` in ``dtype`` from ``seed``.

    Its pictures mean nothing. The vocabularies are the bundled ones, padded to the published lengths of
    prompts.

    Raises MemoryError, before anything is allocated, when the weights do not fit into the device's free
    memory.
    """
    with quiet():
        from diffusers import FlowMatchEulerDiscreteScheduler, FluxPipeline
        from transformers import CLIPTokenizer, T5TokenizerFast

        clip = CLIPTokenizer.from_pretrained(clip_tokenizer, model_max_length=TOKENS)
        t5 = T5TokenizerFast.from_pretrained(t5_tokenizer, model_max_length=PROMPT)
    ends = {
        "bos_token_id": clip.bos_token_id,
        "eos_token_id": clip.eos_token_id,
        "pad_token_id": clip.pad_token_id,
    }
    parts = made_on(lambda: flux_networks(ends), device, dtype, seed)
    with quiet():
        return FluxPipeline(
            **parts,
            tokenizer=clip,
            tokenizer_2=t5,
            scheduler=FlowMatchEulerDiscreteScheduler(**FLUX_SCHEDULER),
        )


def full_wan_pipeline(
    device: str, dtype: torch.dtype, tokenizer: Path, size: str = "1.3B", seed: int = 0
) -> WanPipeline:
    """A WanPipeline whose transformer has 1.4 or 14.3 billion parameters, with UMT5 and the VAE, made alike.

    Raises MemoryError, before anything is allocated, when the weights do not fit into the device's free
    memory.
    """
    with quiet():
        from diffusers import UniPCMultistepScheduler, WanPipeline
        from transformers import T5TokenizerFast

        words = T5TokenizerFast.from_pretrained(tokenizer, model_max_length=PROMPT)
    parts = made_on(lambda: wan_networks(size), device, dtype, seed)
    scheduler = UniPCMultistepScheduler(
        prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=WAN_SHIFT
    )
    with quiet():
        return WanPipeline(**parts, tokenizer=words, scheduler=scheduler)
