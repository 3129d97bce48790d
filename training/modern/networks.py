"""The shapes of the two modern bundled models: the libraries' own networks and schedulers."""

from __future__ import annotations

import torch
from diffusers import (
    AutoencoderKLWan,
    FlowMatchEulerDiscreteScheduler,
    FluxTransformer2DModel,
    UniPCMultistepScheduler,
    WanTransformer3DModel,
)
from transformers import T5Config, T5EncoderModel, T5TokenizerFast, UMT5Config, UMT5EncoderModel

TEXT_WIDTH, CLIP_WIDTH = 128, 192
TOKENS = 16  # enough for the longest caption with its end
LENGTHS = (16, 32, 64, 128, 256, 512)  # lengths that a prompt is padded to; 512 is both pipelines' default
VIDEO_CHANNELS = 16

#: Sizes of the published models and of those that the tests train for a few steps.
SIZES = {
    "bundled": {
        "flux": {"num_layers": 2, "num_single_layers": 6, "num_attention_heads": 4},
        "text_layers": 2,
        "vae": {"base_dim": 24, "decoder_base_dim": 24, "dim_mult": [1, 2, 2]},
        "wan": {"num_layers": 8, "num_attention_heads": 4, "ffn_dim": 384},
    },
    "tiny": {
        "flux": {"num_layers": 1, "num_single_layers": 1, "num_attention_heads": 1},
        "text_layers": 1,
        "vae": {"base_dim": 8, "decoder_base_dim": 8, "dim_mult": [1, 2, 2]},
        "wan": {"num_layers": 1, "num_attention_heads": 1, "ffn_dim": 32},
    },
}


def parameters_of(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def make_t5_tokenizer(words: tuple[str, ...]) -> T5TokenizerFast:
    """T5's kind of tokenizer (Unigram, </s> at the end) in which every word of a caption language is one
    token.

    The articles that begin a caption are there with a capital as well, and the letters, so that any
    lower-case text can be encoded. T5 does not fold capitals.
    """
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces += [(f"▁{word}", -1.0) for word in (*words, "A", "An")] + [("▁", -4.0)]
    pieces += [(letter, -8.0) for letter in "abcdefghijklmnopqrstuvwxyz0123456789.,'-"]
    return T5TokenizerFast(vocab=pieces, extra_ids=0, model_max_length=max(LENGTHS))


def make_t5(kind: str, vocabulary: int, size: str = "bundled") -> T5EncoderModel | UMT5EncoderModel:
    """(B, L) token ids -> (B, L, 128). ``kind`` is "t5" (FLUX's) or "umt5" (Wan's: each layer has its own
    positions)."""
    config, model = {"t5": (T5Config, T5EncoderModel), "umt5": (UMT5Config, UMT5EncoderModel)}[kind]
    made = config(
        vocab_size=vocabulary,
        d_model=TEXT_WIDTH,
        d_kv=32,
        d_ff=2 * TEXT_WIDTH,
        num_heads=4,
        num_layers=SIZES[size]["text_layers"],
        dropout_rate=0.0,
        feed_forward_proj="gated-gelu",
        relative_attention_num_buckets=32,
        relative_attention_max_distance=32,
    )
    made._attn_implementation = "eager"
    text = model(made)
    for name, parameter in text.named_parameters():
        if name.endswith("relative_attention_bias.weight"):
            parameter.data = near_words(*parameter.shape)
    return text


def near_words(buckets: int, heads: int) -> torch.Tensor:
    """(buckets, heads) biases of T5's relative positions with which the heads begin: each prefers one near
    word.

    T5 does not scale its attention. Left to begin nearly without positions, it soon attends to one word
    whatever its place; which color stands beside which shape is then lost for good.
    """
    half, exact = buckets // 2, buckets // 4
    distance = torch.tensor(
        [float(b) if b < exact else exact * 4 ** ((b - exact) / exact) for b in range(half)]
    )
    # Where the word that is attended to stands: before, then after the one that attends.
    place = torch.cat([-distance, distance])
    wanted = torch.tensor([(-1.0, 1.0, -3.0, 3.0)[head % 4] for head in range(heads)])
    return -(place[:, None] - wanted).abs().clamp(max=4.0)


def make_flux(size: str = "bundled") -> FluxTransformer2DModel:
    """Velocity of packed latents (B, 64, 16), from two streams, then one. Every block starts as the
    identity."""
    flux = FluxTransformer2DModel(
        patch_size=1,
        in_channels=16,
        attention_head_dim=32,
        joint_attention_dim=TEXT_WIDTH,
        pooled_projection_dim=CLIP_WIDTH,
        guidance_embeds=True,
        axes_dims_rope=(8, 12, 12),
        **SIZES[size]["flux"],
    )
    starts_at_zero = [flux.norm_out.linear, flux.proj_out]
    for block in flux.transformer_blocks:
        starts_at_zero += [block.norm1.linear, block.norm1_context.linear]
    starts_at_zero += [block.norm.linear for block in flux.single_transformer_blocks]
    for layer in starts_at_zero:
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    return flux


def flux_scheduler() -> FlowMatchEulerDiscreteScheduler:
    """FLUX.1-dev's: the shift grows with the number of picture tokens; for 64 it is e^0.4675, about 1.6."""
    return FlowMatchEulerDiscreteScheduler(
        num_train_timesteps=1000,
        shift=3.0,
        use_dynamic_shifting=True,
        base_shift=0.5,
        max_shift=1.15,
        base_image_seq_len=256,
        max_image_seq_len=4096,
    )


def make_video_vae(size: str = "bundled") -> AutoencoderKLWan:
    """(B, 3, 1 + 4k, H, W) in [-1, 1] <-> (B, 16, 1 + k, H/8, W/8), in the form of Wan 2.2's.

    Its first step folds 2x2 pixels into channels (``patch_size``), so that no layer runs at full resolution,
    and every change of resolution has a shortcut. ``latents_mean`` and ``latents_std`` are set after
    training.
    """
    vae = AutoencoderKLWan(
        z_dim=VIDEO_CHANNELS,
        num_res_blocks=1,
        temperal_downsample=[True, True],
        is_residual=True,
        in_channels=12,
        out_channels=12,
        patch_size=2,
        scale_factor_temporal=4,
        scale_factor_spatial=8,
        latents_mean=[0.0] * VIDEO_CHANNELS,
        latents_std=[1.0] * VIDEO_CHANNELS,
        **SIZES[size]["vae"],
    )
    with torch.no_grad():  # begin nearly without noise in the latents, or the decoder learns nothing for long
        vae.quant_conv.weight[VIDEO_CHANNELS:].zero_()
        vae.quant_conv.bias[VIDEO_CHANNELS:].fill_(-6.0)
    return vae


def make_wan(size: str = "bundled") -> WanTransformer3DModel:
    """Velocity of latents (B, 16, F, H, W), patches of 1x2x2. Modulation and cross-attention start at
    zero."""
    wan = WanTransformer3DModel(
        patch_size=(1, 2, 2),
        attention_head_dim=32,
        in_channels=VIDEO_CHANNELS,
        out_channels=VIDEO_CHANNELS,
        text_dim=TEXT_WIDTH,
        freq_dim=128,
        cross_attn_norm=True,
        qk_norm="rms_norm_across_heads",
        rope_max_seq_len=64,
        **SIZES[size]["wan"],
    )
    with torch.no_grad():
        zeros = [wan.condition_embedder.time_proj.weight, wan.condition_embedder.time_proj.bias]
        zeros += [wan.proj_out.weight, wan.proj_out.bias]
        for block in wan.blocks:
            zeros += [block.scale_shift_table, block.attn2.to_out[0].weight, block.attn2.to_out[0].bias]
        for parameter in zeros:
            parameter.zero_()
    return wan


def wan_scheduler(shift: float = 3.0) -> UniPCMultistepScheduler:
    """The scheduler that Wan's pipelines come with: UniPC over flow-matching sigmas."""
    return UniPCMultistepScheduler(
        prediction_type="flow_prediction",
        use_flow_sigmas=True,
        flow_shift=shift,
        num_train_timesteps=1000,
        solver_order=2,
    )
