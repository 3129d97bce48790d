"""The shape of the bundled picture model: its four networks, its tokenizer and its scheduler, and how they
become a folder."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from tokenizers import Tokenizer, models, trainers
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

from inferlab.models.quiet import quiet
from inferlab.models.scenes import WORDS

MAX_TOKENS = 16  # 14 words and the two ends
BOS, EOS = "<|startoftext|>", "<|endoftext|>"
TEXT_WIDTH = 192

#: Widths of the published model and of the one that the tests train for a few steps.
SIZES = {
    "bundled": {"vae": (32, 64, 64, 96), "unet": (96, 144), "layers": 2, "text_layers": 4},
    "tiny": {"vae": (8, 8, 8, 8), "unet": (16, 24), "layers": 1, "text_layers": 1},
}


def make_vae(size: str = "bundled") -> AutoencoderKL:
    """(B, 3, 128, 128) in [-1, 1] <-> (B, 4, 16, 16). ``scaling_factor`` is set after training, from the
    latents."""
    widths = SIZES[size]["vae"]
    return AutoencoderKL(
        in_channels=3, out_channels=3, latent_channels=4, sample_size=128,
        block_out_channels=widths, layers_per_block=1, norm_num_groups=8,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
        scaling_factor=1.0, force_upcast=False,
    )


def make_unet(size: str = "bundled") -> UNet2DConditionModel:
    """Epsilon prediction on (B, 4, 16, 16) with cross-attention to (B, 16, 192) at both resolutions."""
    widths = SIZES[size]["unet"]
    return UNet2DConditionModel(
        sample_size=16, in_channels=4, out_channels=4,
        block_out_channels=widths, layers_per_block=SIZES[size]["layers"],
        down_block_types=("CrossAttnDownBlock2D",) * len(widths),
        up_block_types=("CrossAttnUpBlock2D",) * len(widths),
        cross_attention_dim=TEXT_WIDTH, attention_head_dim=3 if size == "bundled" else 2,
        norm_num_groups=16 if size == "bundled" else 8,
    )


def make_text_encoder(tokenizer: CLIPTokenizer, size: str = "bundled") -> CLIPTextModel:
    """(B, 16) token ids -> (B, 16, 192) hidden states, causal, as in CLIP."""
    return CLIPTextModel(CLIPTextConfig(
        vocab_size=len(tokenizer), hidden_size=TEXT_WIDTH, intermediate_size=3 * TEXT_WIDTH,
        projection_dim=TEXT_WIDTH,
        num_hidden_layers=SIZES[size]["text_layers"], num_attention_heads=6,
        max_position_embeddings=MAX_TOKENS,
        hidden_act="quick_gelu",
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    ))


def make_tokenizer() -> CLIPTokenizer:
    """CLIP's byte-level BPE with a vocabulary of our own: every word of the caption language is one token.

    The first 512 ids are the bytes, inside and at the end of a word, as in CLIP, so that any text can be
    encoded.
    """
    bpe = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    # a word counts more the later it stands, so that the order of merges does not depend on a hash
    counted = [word for index, word in enumerate(WORDS) for _ in range(2 + index)]
    bpe.train_from_iterator(counted, trainers.BpeTrainer(
        vocab_size=2048, min_frequency=1, end_of_word_suffix="</w>", show_progress=False,
    ))
    learned = json.loads(bpe.to_str())["model"]
    merges = [tuple(pair) if isinstance(pair, list) else tuple(pair.split(" ")) for pair in learned["merges"]]
    alphabet = _byte_alphabet()
    tokens = alphabet + [char + "</w>" for char in alphabet] + ["".join(pair) for pair in merges] + [BOS, EOS]
    vocab = {token: index for index, token in enumerate(dict.fromkeys(tokens))}
    return CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=MAX_TOKENS)


def _byte_alphabet() -> list[str]:
    """The 256 printable characters that stand for bytes in byte-level BPE."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = [256 + n for n in range(256 - len(printable))]
    return [chr(code) for code in printable + spare]


def word_ids(tokenizer: CLIPTokenizer) -> torch.Tensor:
    """(len(WORDS),) the token of each word. Raises ValueError if a word is not exactly one token."""
    ids = []
    for word in WORDS:
        inner = tokenizer(word)["input_ids"][1:-1]
        if len(inner) != 1:
            raise ValueError(f"{word!r} is {len(inner)} tokens, expected 1: {inner}")
        ids.append(inner[0])
    return torch.tensor(ids)


def make_scheduler() -> DDIMScheduler:
    """Stable Diffusion's kind of noise schedule, with DDIM as the sampler.

    Stable Diffusion ends at beta 0.012, where alphas_cumprod is still 0.0047. A flat background fills all 256
    places of a latent, so that its mean shows through that much noise; the UNet then learns to read the
    background from the start noise instead of the caption. Ending at 0.025 leaves 4e-5, and the caption
    decides.
    """
    return DDIMScheduler(
        num_train_timesteps=1000, beta_start=0.00085, beta_end=0.025, beta_schedule="scaled_linear",
        clip_sample=False, set_alpha_to_one=False, steps_offset=1, prediction_type="epsilon",
    )


def save_pipeline(folder: Path, vae, unet, text_encoder, tokenizer) -> None:
    """Writes a normal diffusers folder, weights in float16 safetensors."""
    with quiet():
        pipeline = StableDiffusionPipeline(
            vae=vae, unet=unet, text_encoder=text_encoder, tokenizer=tokenizer, scheduler=make_scheduler(),
            safety_checker=None, feature_extractor=None, requires_safety_checker=False,
        )
        pipeline.to(torch.float16).save_pretrained(folder, safe_serialization=True)
