"""Gives a lab its language model: bundled, full-size architecture with random weights, or from the hub."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .device import resolve_device, usual_dtype
from .fit import MARGIN, require
from .quiet import quiet

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

WEIGHTS = Path(__file__).parent.parent / "weights" / "language"
TOKENIZER = "tokenizer"  # one for both sizes

#: Published architectures: that of Llama 3 8B, and for the draft Qwen2.5 0.5B's sizes with Llama's layers and
#: vocabulary.
FULL: dict[str, dict[str, Any]] = {
    "target": {
        "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": False,
    },
    "draft": {
        "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2, "head_dim": 64, "tie_word_embeddings": True,
    },
}
FULL_COMMON: dict[str, Any] = {
    "vocab_size": 128256, "max_position_embeddings": 8192,
    "rope_parameters": {"rope_type": "default", "rope_theta": 500_000.0},
}
#: Tokens whose keys and values are in the cache at once, over all sequences.
CACHED_TOKENS = 8192

#: What `hub` downloads when the source names no checkpoint: two of one family, so that one tokenizer serves
#: both.
HUB = {"target": "Qwen/Qwen2.5-1.5B-Instruct", "draft": "Qwen/Qwen2.5-0.5B-Instruct"}
HUB_FILES = ["*.json", "*.safetensors", "merges.txt", "*.model", "*.jinja"]


def load_language_model(
    source: str = "bundled", device: str = "auto", draft: bool = False, dtype: torch.dtype | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A causal language model in evaluation mode and its tokenizer.

    Args:
        source: "bundled" (trained by us, speaks the language of `inferlab.models.stories`), "full" (a
            published architecture at full size with seeded random weights made on the device; its text means
            nothing), "hub", or "hub:owner/name" (that checkpoint).
        device: "cpu", "cuda", "cuda:1", ..., or "auto": cuda where there is one.
        draft: the smaller model of the same tokenizer, for speculative decoding.
        dtype: dtype of the weights; None: float32 on the CPU, else float16 for the bundled model and bfloat16
            for others.

    Raises:
        ValueError: `source` is none of these, or this machine lacks the `device`.
        FileNotFoundError: the bundled weights are not there.
        MemoryError: the full-size model is larger than the device's free memory.
        ConnectionError: the hub cannot be reached and holds the checkpoint nowhere locally.
    """
    size = "draft" if draft else "target"
    device = resolve_device(device)
    if source == "bundled":
        model, tokenizer = _bundled(size, device, dtype)
    elif source == "full":
        model, tokenizer = _full(size, device, dtype)
    elif source == "hub" or source.startswith("hub:"):
        model, tokenizer = _hub(source[4:] or HUB[size], device, dtype)
    else:
        raise ValueError(f"source is {source!r}; expected 'bundled', 'full', 'hub' or 'hub:owner/name'")
    return model.eval(), tokenizer


def _bundled(size: str, device: str, dtype: torch.dtype | None) -> tuple[PreTrainedModel,
                                                                         PreTrainedTokenizerBase]:
    with quiet():
        from transformers import AutoModelForCausalLM, AutoTokenizer

        dtype = dtype or usual_dtype(device, torch.float16)
        if not (WEIGHTS / size / "model.safetensors").exists():
            raise FileNotFoundError(
                f"this installation has no bundled language model ({WEIGHTS / size}). Make it with "
                "`python -m training.language` in the repository (a GPU, minutes), or take the source "
                "'full' or 'hub'."
            )
        model = AutoModelForCausalLM.from_pretrained(WEIGHTS / size, dtype=dtype)
        return model.to(device), AutoTokenizer.from_pretrained(WEIGHTS / TOKENIZER)


def _full(size: str, device: str, dtype: torch.dtype | None) -> tuple[PreTrainedModel,
                                                                      PreTrainedTokenizerBase]:
    from transformers import AutoTokenizer, LlamaConfig

    tokenizer = AutoTokenizer.from_pretrained(WEIGHTS / TOKENIZER)
    config = LlamaConfig(
        **FULL[size], **FULL_COMMON, bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    dtype = dtype or usual_dtype(device, torch.bfloat16)
    return random_model(config, device, dtype), tokenizer


def random_model(config: PretrainedConfig, device: str, dtype: torch.dtype, seed: int = 0) -> PreTrainedModel:
    """The causal model of `config` with seeded random weights, every one made on `device` in `dtype`.

    Raises MemoryError before anything is allocated if the device's free memory is smaller than the weights.
    """
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        needed = AutoModelForCausalLM.from_config(config, dtype=dtype).num_parameters() * dtype.itemsize
    require({"weights": needed}, device, "Take a larger device, a smaller dtype, draft=True, or the source "
                                         "'bundled'.")
    devices = [device] if torch.device(device).type == "cuda" else []
    with torch.random.fork_rng(devices=devices), torch.device(device):
        torch.manual_seed(seed)
        return AutoModelForCausalLM.from_config(config, dtype=dtype)


def language_needs(dtype: torch.dtype, draft: bool = False) -> dict[str, int]:
    """Part -> bytes that the full-size target (and the draft) needs: weights, cache, a margin."""
    from transformers import AutoModelForCausalLM, LlamaConfig

    found: dict[str, int] = {}
    for size in ("target", "draft") if draft else ("target",):
        config = LlamaConfig(**FULL[size], **FULL_COMMON)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, dtype=dtype)
        found[size] = model.num_parameters() * dtype.itemsize
    sizes = FULL["target"]
    # keys and values
    per_token = 2 * sizes["num_hidden_layers"] * sizes["num_key_value_heads"] * sizes["head_dim"]
    found["cache"] = per_token * CACHED_TOKENS * dtype.itemsize
    return found | {"margin": MARGIN}


def quantized_needs() -> dict[str, int]:
    """Part -> bytes for an int8 and an int4 copy beside the full-size float32 target, and for making them.

    Both copies share the target's embedding. A code takes one byte. For every 32 codes, the int4 copy has a
    scale and a zero point too (5 bytes). While the head, the largest matrix, is quantized, four float32
    tensors of its size exist.
    """
    sizes = FULL["target"] | FULL_COMMON
    hidden, head = sizes["hidden_size"], sizes["vocab_size"] * sizes["hidden_size"]
    heads = 2 * (sizes["num_attention_heads"] + sizes["num_key_value_heads"])
    layer = hidden * (heads * sizes["head_dim"] + 3 * sizes["intermediate_size"])
    linear = sizes["num_hidden_layers"] * layer + head
    return {"int8 copy": linear, "int4 copy": linear + linear // 32 * 5, "quantizing": 4 * 4 * head}


def _hub(name: str, device: str, dtype: torch.dtype | None) -> tuple[PreTrainedModel,
                                                                     PreTrainedTokenizerBase]:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        # from_pretrained retries for most of a minute when there is no network; this gives up at once
        folder = snapshot_download(name, allow_patterns=HUB_FILES, etag_timeout=10)
    except LocalEntryNotFoundError as error:
        raise ConnectionError(
            f"{name!r} is not on this machine and the hub cannot be reached. Without a network, take the "
            f"source 'bundled' "
            "(small, trained, offline) or 'full' (real sizes, random weights)."
        ) from error
    except HfHubHTTPError as error:
        raise ConnectionError(f"the hub does not give {name!r} ({error}). Take another checkpoint, "
                              f"'bundled' or 'full'.") from error
    dtype = dtype or usual_dtype(device, torch.bfloat16)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    return model.to(device), AutoTokenizer.from_pretrained(folder)


def cache_argument(cache: Any) -> dict[str, Any]:
    """`cache` as an argument named as the installed transformers has it: "cache" or "past_key_values".

    `model.generate(**inputs, **cache_argument(cache))` runs without a warning on both. (A forward call needs
    no name: `model(input_ids, None, None, cache)`. The older library silently ignores a `cache=` that it does
    not know.)
    """
    from transformers import LlamaForCausalLM

    named = "cache" in inspect.signature(LlamaForCausalLM.forward).parameters
    return {"cache" if named else "past_key_values": cache}
