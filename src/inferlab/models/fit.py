"""Says before a lab starts whether its model fits the device, with the bytes that it needs and what to choose instead."""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch

#: Labs up to this number work on the picture pipeline, later ones on the language model.
LAST_PICTURE_LAB = 11
#: Labs that open the draft model beside the target.
WITH_DRAFT = ("lab16",)
#: Labs that open the target in float32 on every device, and quantize it twice.
IN_FLOAT32 = ("lab17",)
#: Side of the pictures at full size, and the most that one decode of a lab holds at once: two pictures.
SIDE, PICTURES = 512, 2
#: Tokens that a language lab holds in its cache at once, all sequences together.
TOKENS = 8192
#: Handles, workspaces of the libraries and blocks that the allocator cannot fill exactly.
MARGIN = 800 * 2**20


def free_memory(device: str | torch.device) -> int:
    """Bytes that this process may still allocate on `device`.

    On CUDA: what the driver has free and what torch's allocator holds unused, but no more than is left of the limit set by
    `torch.cuda.set_per_process_memory_fraction`, which the driver knows nothing of. On a CPU: the memory available.
    """
    device = torch.device(device)
    if device.type == "cuda":
        device = torch.cuda.current_device() if device.index is None else device.index
        free, total = torch.cuda.mem_get_info(device)
        held, used = torch.cuda.memory_reserved(device), torch.cuda.memory_allocated(device)
        limit = int(total * torch.cuda.get_per_process_memory_fraction(device))
        return max(0, min(free + held - used, limit - used))
    import psutil

    return psutil.virtual_memory().available


def require(needs: Mapping[str, int], device: str | torch.device, instead: str, what: str = "the weights") -> None:
    """Raises MemoryError, before anything is allocated, when the sum of `needs` (part -> bytes) is more than is free.

    The message has every part's bytes, what is free, and `instead`: a sentence on what to choose.
    """
    needed, free = sum(needs.values()), free_memory(device)
    if needed > free:
        parts = ", ".join(f"{name} {size / 1e9:.1f}" for name, size in needs.items())
        listed = f" ({parts})" if len(needs) > 1 else ""
        raise MemoryError(f"{what} need {needed / 1e9:.1f} GB{listed} and {device} has {free / 1e9:.1f} GB free. {instead}")


def picture_needs(dtype: torch.dtype) -> dict[str, int]:
    """Part -> bytes for a picture lab at full size: each network's weights, and the peak of a decode by lab 10's formula."""
    from . import full_size

    with torch.device("meta"):
        parts = full_size.networks({})
    sizes = {name: sum(p.numel() for p in part.parameters()) * dtype.itemsize for name, part in parts.items()}
    decode = 3 * PICTURES * full_size.VAE["block_out_channels"][1] * SIDE**2 * dtype.itemsize
    return sizes | {"a decode": decode, "margin": MARGIN}


def language_needs(dtype: torch.dtype, draft: bool = False) -> dict[str, int]:
    """Part -> bytes for a language lab at full size: weights of the target (and the draft), keys and values, margin."""
    from transformers import AutoModelForCausalLM, LlamaConfig

    from .language import FULL, FULL_COMMON

    found: dict[str, int] = {}
    for size in ("target", "draft") if draft else ("target",):
        config = LlamaConfig(**FULL[size], **FULL_COMMON)
        with torch.device("meta"):
            found[size] = AutoModelForCausalLM.from_config(config, dtype=dtype).num_parameters() * dtype.itemsize
    sizes = FULL["target"]
    found["cache"] = 2 * sizes["num_hidden_layers"] * sizes["num_key_value_heads"] * sizes["head_dim"] * TOKENS * dtype.itemsize
    return found | {"margin": MARGIN}


def quantized_needs() -> dict[str, int]:
    """Part -> bytes for an int8 and an int4 copy beside the float32 target, whose embedding they share: codes of a byte each,
    for groups of 32 a scale and a zero point too; and the float tensors while the head, the largest matrix, is quantized."""
    from .language import FULL, FULL_COMMON

    sizes = FULL["target"] | FULL_COMMON
    hidden, head = sizes["hidden_size"], sizes["vocab_size"] * sizes["hidden_size"]
    heads = 2 * (sizes["num_attention_heads"] + sizes["num_key_value_heads"])
    linear = sizes["num_hidden_layers"] * hidden * (heads * sizes["head_dim"] + 3 * sizes["intermediate_size"]) + head
    return {"int8 copy": linear, "int4 copy": linear + linear // 32 * 5, "quantizing": 4 * 4 * head}


def lab_needs(lab: str, device: str | torch.device) -> dict[str, int]:
    """Part -> bytes that the lab `labNN-topic` needs with MODEL = "full" on `device`, in the dtype that it would take there.

    A `practice-topic` opens the language model.
    """
    numbered = re.match(r"lab(\d+)", lab)
    cpu = torch.device(device).type == "cpu"
    if numbered and int(numbered[1]) <= LAST_PICTURE_LAB:
        return picture_needs(torch.float32 if cpu else torch.float16)
    if lab.startswith(IN_FLOAT32):
        return language_needs(torch.float32) | quantized_needs()
    return language_needs(torch.float32 if cpu else torch.bfloat16, lab.startswith(WITH_DRAFT))


def check_lab(lab: str, model: str, device: str | torch.device) -> None:
    """Raises MemoryError if the lab with this MODEL does not fit; only "full" is large enough to ask."""
    if model == "full":
        require(lab_needs(lab, device), device, 'Choose MODEL = "bundled" (small, trained, the same lab), or a larger device.',
                f"{lab} with MODEL = \"full\" does not fit: weights and working memory")
