"""What skips work in a FLUX run and what only moves or recomputes it: seconds of the denoising loop, beside
the floor of the FLOPs that are left."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from inferlab.models import load_pipeline

from .measure import repeated, seconds

REPEATS = 3


def measure(device: str, tiny: bool, flops_per_s: float, say: Callable[[dict[str, Any]], None]) -> None:
    """One row a way: seconds of a call from finished text embeddings to latents, and how many of its passes
    went through all blocks.

    The floor is the FLOPs of those passes over the measured matrix rate. The weights are random, so where a
    first-block cache skips says nothing of a trained model: read its row as the time of so many passes.
    """
    from diffusers import FirstBlockCacheConfig, TaylorSeerCacheConfig

    pipe = load_pipeline("bundled" if tiny else "full", device, family="flux")
    pipe.set_progress_bar_config(disable=True)
    net, steps, side = pipe.transformer, 10, 128 if tiny else 1024
    with torch.no_grad():
        embeds, pooled, _ = pipe.encode_prompt("a red circle", None, device=device)
    full = Passes(net)

    def call(count: int = steps, **more: Any) -> None:
        pipe(prompt_embeds=embeds, pooled_prompt_embeds=pooled, num_inference_steps=count, height=side,
             width=side, output_type="latent", generator=torch.Generator("cpu").manual_seed(0), **more)

    with FlopCounterMode(display=False) as counter:
        call(1)
    flops = counter.get_total_flops()
    found: dict[str, Any] = {"steps": steps, "size": side, "flops_of_a_pass": flops,
                             "floor_of_a_pass": flops / flops_per_s, "rows": []}

    def row(name: str, run: Callable[[], None] = call) -> None:
        first = seconds(run, device)
        full.count = 0
        took = repeated(run, device, REPEATS, warm=0)
        passes = full.count / REPEATS if full.count else None
        found["rows"].append({"name": name, **took, "first": round(first, 3), "full_passes": passes})
        say(found)

    row("plain")
    row("classifier-free guidance, two passes a step",
        lambda: call(negative_prompt_embeds=embeds, negative_pooled_prompt_embeds=pooled, true_cfg_scale=3.5))
    row("half of the steps", lambda: call(steps // 2))
    for name, config in {"first-block cache, threshold 0.05": FirstBlockCacheConfig(threshold=0.05),
                         "first-block cache, threshold 0.2": FirstBlockCacheConfig(threshold=0.2),
                         "TaylorSeer, every second step": TaylorSeerCacheConfig(
                             cache_interval=2, disable_cache_before_step=2)}.items():
        with cached(net, config):
            row(name)
    for backend in ("_native_flash", "_native_cudnn", "_native_math"):
        if torch.device(device).type == "cuda":
            net.set_attention_backend(backend)
            row(f"attention by {backend}")
    net.set_attention_backend("native")  # after `reset_attention_backend` the last one is still active
    full.remove()  # a hook inside would end the compiled graph
    net.compile_repeated_blocks(fullgraph=True)
    row("repeated blocks compiled")


class Passes:
    """Counts passes that reach the network's last block: a cache skips what is behind the first."""

    def __init__(self, net: Any) -> None:
        self.count = 0
        self._hook = net.single_transformer_blocks[-1].attn.to_q.register_forward_hook(self._seen)

    def _seen(self, *_: Any) -> None:
        self.count += 1

    def remove(self) -> None:
        self.count = 0
        self._hook.remove()


@contextlib.contextmanager
def cached(net: Any, config: Any) -> Iterator[None]:
    """The network with a cache, which is gone afterwards."""
    net.enable_cache(config)
    try:
        yield
    finally:
        net.disable_cache()
