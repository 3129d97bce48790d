"""A decode step issued kernel by kernel, and as one CUDA graph: how to leave the launch-bound regime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from inferlab.lab.kits.memory.peaks import seconds

RECORDED = {
    "card": "NVIDIA H200", "run": "gpu-20261128T1115Z-h200",
    "model": "Llama 3 8B's architecture, bfloat16, 256 tokens in the cache",
    "floor": 3.54e-3,
    "steps": {"eager, growing cache": 74.28e-3, "eager, static cache": 53.03e-3,
              "CUDA graph, static cache": 7.94e-3},
}
"""One run of `make bench-gpu` (seconds of a decode step at batch 1), for machines without a GPU; a test holds
it against the run's file."""

WARM = 3


def decode_steps(model: Any, context: int = 128, calls: int = 6) -> dict[str, float]:
    """Seconds of one decode step behind `context` tokens, batch 1, with the model's own code.

    Args:
        model: a causal language model of `transformers`, on a CPU or a CUDA device.
        context: tokens in the cache before the first step.
        calls: steps in a chain that is waited for only at its end; the shorter of two chains counts.

    Returns:
        "eager, growing cache" and "eager, static cache"; on CUDA also "CUDA graph, static cache", the static
        step captured once and replayed.

    Raises:
        RuntimeError: on CUDA, if the replayed step's logits are not those of the eager one (up to rounding).
    """
    from transformers import DynamicCache, StaticCache

    device = model.device
    ids = torch.arange(context, device=device).remainder(min(500, model.config.vocab_size))[None]
    token, place = ids[:, -1:].clone(), torch.tensor([[context]], device=device)
    room = context + 2 * WARM + 2 * calls + 2

    def behind(cache: Any) -> Any:
        model(ids, None, None, cache, logits_to_keep=1)
        return cache

    def shortest(step: Callable[[], Any]) -> float:
        return min(seconds(lambda: [step() for _ in range(calls)], device) for _ in range(2)) / calls

    def static() -> tuple[Callable[[], torch.Tensor], dict[str, torch.Tensor]]:
        cache, out = behind(StaticCache(config=model.config, max_cache_len=room)), {}

        # always the same place: what is captured may depend on no number of the host
        def step() -> torch.Tensor:
            out["logits"] = model(token, None, place, cache).logits
            return out["logits"]

        return step, out

    with torch.no_grad():
        growing = behind(DynamicCache(config=model.config))
        eager, _ = static()
        for _ in range(WARM):
            model(token, None, None, growing)
            eager()
        found = {"eager, growing cache": shortest(lambda: model(token, None, None, growing))}
        want = eager().clone()
        found["eager, static cache"] = shortest(eager)
        if device.type == "cuda":
            step, out = static()
            graph = captured(step)
            graph.replay()
            apart = float((out["logits"] - want).float().norm() / want.float().norm())
            if not apart < 1e-2:
                raise RuntimeError(f"the replayed step's logits are {apart:.3f} away from the eager step's, "
                                   f"relative")
            found["CUDA graph, static cache"] = shortest(graph.replay)
    return found


def captured(step: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    """All kernels of `step` as one CUDA graph. It runs `WARM` times on another stream first, as capturing
    wants it; the capture itself runs nothing.

    What is captured must have its memory and its compiled kernels, and may read no value on the host.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph
