"""What the card can do: bytes copied and read a second, products a second; and a prefill held against
them."""

from __future__ import annotations

from typing import Any

import torch

from inferlab.lab.kits.decode.roofline import call_cost

from .measure import chain_seconds, fresh, repeated


def rates(device: str, tiny: bool = False) -> dict[str, Any]:
    """Copy and read bandwidth in bytes/s and the matrix rate in FLOP/s, on random data, medians of chained
    calls.

    A copy counts the bytes read and the bytes written. The buffers are far larger than the L2 cache.
    """
    dtype = torch.float32 if torch.device(device).type == "cpu" else torch.bfloat16
    moved, copy, read = _bandwidth(device, dtype, tiny)
    fresh(device)  # the buffers are gone
    side = 256 if tiny else 8192
    a, b = torch.randn(2, side, side, device=device, dtype=dtype)
    matrix = chain_seconds(lambda: a @ b, device, 10, 3 if tiny else 9)
    return {
        "dtype": str(dtype).removeprefix("torch."), "copied_bytes": 2 * moved, "copy_seconds": copy,
        "copy_bytes_per_s": 2 * moved / copy["median"], "read_bytes": moved, "read_seconds": read,
        "read_bytes_per_s": moved / read["median"], "matrix_side": side, "matrix_seconds": matrix,
        "matrix_flops_per_s": 2 * side**3 / matrix["median"],
    }


def _bandwidth(device: str, dtype: torch.dtype, tiny: bool) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Bytes of a buffer, seconds of copying it, and of reading it."""
    count = 2**20 if tiny else 2**32  # values: 8 GiB in bfloat16
    source = torch.randn(count // 64, device=device, dtype=dtype).repeat(64)
    target = torch.empty_like(source)
    copy = chain_seconds(lambda: target.copy_(source), device, 4, 3 if tiny else 9)
    rows = source.view(-1, 4096)
    vector = torch.randn(4096, device=device, dtype=dtype)
    read = chain_seconds(lambda: rows @ vector, device, 4, 3 if tiny else 9)
    return source.nbytes, copy, read


@torch.no_grad()
def prefill(model, rate: dict[str, Any], tokens: int, repeats: int = 12, compiled: bool = False) -> dict[str,
                                                                                                         Any]:
    """One prompt of `tokens` random tokens through the whole model, eager and compiled, beside the floor of
    its FLOPs.

    The floor is FLOPs over the measured matrix rate. Only the last position goes through `lm_head`, as in
    `generate`.
    """
    from transformers import DynamicCache

    device = str(model.device)
    ids = torch.randint(0, model.config.vocab_size, (1, tokens), device=device,
                        generator=torch.Generator(device).manual_seed(0))
    cost = call_cost(model.config, tokens, itemsize=model.dtype.itemsize)
    # a kernel that knows the mask leaves half of the scores out
    causal = cost.linear_flops + cost.attention_flops // 2

    def run() -> None:
        model(ids, None, None, DynamicCache(config=model.config), logits_to_keep=1)

    floor = causal / rate["matrix_flops_per_s"]
    rows = {"eager": repeated(run, device, repeats)}
    if compiled:
        parts = [part for layer in model.model.layers for part in (layer.mlp, layer.input_layernorm,
                                                                   layer.post_attention_layernorm)]
        try:
            for part in parts:  # alike in every layer: compiled once, found in the cache by the others
                part.forward = torch.compile(type(part).forward.__get__(part), dynamic=False)
            rows["norms and MLPs compiled"] = repeated(run, device, repeats, warm=3)
        finally:
            for part in parts:
                del part.forward
    return {"tokens": tokens, "flops": cost.flops, "flops_causal": causal, "floor_seconds": floor,
            "goal": 1.5,
            "rows": [{"regime": name, **found, "over_floor": found["median"] / floor}
                     for name, found in rows.items()]}
