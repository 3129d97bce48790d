"""diffusers' first-block cache: decisions for it, its memory, and an hour in which that is not emptied."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from diffusers import FirstBlockCacheConfig
from diffusers.hooks.first_block_cache import _FBC_LEADER_BLOCK_HOOK
from torch.utils.flop_counter import FlopCounterMode

from inferlab.lab.identity import scattered
from inferlab.trace import trace

# the star in front of transformer_blocks also finds single_transformer_blocks
ATTENTIONS = "transformer.*transformer_blocks.*.attn"
"""Records the attention of every block. The blocks themselves would stand in every step: a hook in front of a
skipped block hands its input on."""


def whole_steps(run: Any) -> list[int]:
    """The steps of a traced run in which the blocks after the first ran."""
    return [b.step for b in run.find("transformer.transformer_blocks.1.attn")]


def leader(transformer: Any) -> Any:
    """The hook of the first block, which decides for all: None where no first-block cache is enabled.

    Its ``state_manager._state_cache`` holds a state for each kind of pass, "cond" and "uncond".
    """
    registry = getattr(next(iter(transformer.transformer_blocks)), "_diffusers_hook", None)
    return registry.get_hook(_FBC_LEADER_BLOCK_HOOK) if registry else None


@contextmanager
def first_block_cache(transformer: Any, threshold: float) -> Iterator[Any]:
    """Within the block the library's first-block cache is on; gives the hook that decides (:func:`leader`).

    Args:
        transformer: a denoiser with ``enable_cache`` and ``transformer_blocks``, no cache enabled.
        threshold: of ``FirstBlockCacheConfig``.
    """
    transformer.enable_cache(FirstBlockCacheConfig(threshold=threshold))
    try:
        yield leader(transformer)
    finally:
        transformer.disable_cache()


def held_bytes(transformer: Any) -> int:
    """Bytes of all tensors that an enabled first-block cache keeps now, over all passes."""
    states = leader(transformer).state_manager._state_cache.values()
    return sum(t.nbytes for s in states if s.head_block_residual is not None
               for t in (s.head_block_residual, *s.head_block_output, *s.tail_block_residuals))


@contextmanager
def skipping(transformer: Any, steps: Collection[int]) -> Iterator[None]:
    """Within the block, runs of one pass a step use the kept residuals at these steps, and at no others.

    Args:
        transformer: a denoiser with ``enable_cache`` and ``transformer_blocks``, no cache enabled.
        steps: numbers of the loop's turns, from 1. The first cannot be skipped: nothing is kept yet.

    Raises:
        ValueError: if step 1 is among them.
    """
    if 1 in steps:
        raise ValueError("the first step has nothing to reuse")
    turn = 0
    with first_block_cache(transformer, 0.0) as hook:

        def decide(residual: torch.Tensor) -> bool:
            nonlocal turn
            turn = 1 if hook.state_manager.get_state().head_block_residual is None else turn + 1
            return turn not in steps

        hook._should_compute_remaining_blocks = decide
        yield


def decoded(pipe: Any, latents: torch.Tensor) -> Any:
    """The picture of the packed latents of a square picture of the pipeline's own size."""
    side = pipe.default_sample_size * pipe.vae_scale_factor
    grid = pipe._unpack_latents(latents, side, side, pipe.vae_scale_factor)
    grid = grid / pipe.vae.config.scaling_factor + pipe.vae.config.shift_factor
    return pipe.image_processor.postprocess(pipe.vae.decode(grid).sample)[0]


def latent_error(got: torch.Tensor, exact: torch.Tensor) -> float:
    """How far latents are from the whole run's, as a share of their size."""
    return float((got - exact).float().norm() / exact.float().norm())


def cached_run(transformer: Any, threshold: float, draw: Callable[..., torch.Tensor], prompt: str
               ) -> tuple[torch.Tensor, int]:
    """The latents of ``draw(prompt, callback_on_step_end=...)`` with the cache, and the bytes it held."""
    held = []

    def note(*_: Any) -> dict:
        held.append(held_bytes(transformer))
        return {}

    with first_block_cache(transformer, threshold):
        latents = draw(prompt, callback_on_step_end=note)
    return latents, max(held)


def measured(pipe: Any, draw: Callable[[str], torch.Tensor], thresholds: Collection[float],
             prompts: Collection[str]) -> dict[float, list[tuple[int, float]]]:
    """For each threshold one (number of whole steps, error of ``draw(prompt)``) for each prompt."""
    found: dict[float, list[tuple[int, float]]] = {threshold: [] for threshold in thresholds}
    for prompt in prompts:
        exact = draw(prompt)
        for threshold in thresholds:
            with first_block_cache(pipe.transformer, threshold), trace(pipe, depth=ATTENTIONS) as run:
                got = draw(prompt)
            found[threshold].append((len(whole_steps(run)), latent_error(got, exact)))
    return found


def operation_shares(pipe: Any, draw: Callable[..., torch.Tensor], prompt: str, threshold: float
                     ) -> dict[str, tuple[float, float]]:
    """What three speed-ups compute inside ``draw`` and elsewhere, as shares of the plain ``draw(prompt)``.

    Args:
        pipe: a ``FluxPipeline``.
        draw: gets a prompt, a number of steps or the pipeline's ``prompt_embeds``; texts of 64 tokens.
        prompt: what is drawn.
        threshold: of the first-block cache.
    """
    def encode() -> Any:
        return pipe.encode_prompt(prompt, None, pipe._execution_device, max_sequence_length=64)

    plain = operations(lambda: draw(prompt))
    with first_block_cache(pipe.transformer, threshold):
        cached = operations(lambda: draw(prompt))
    vectors, pooled, _ = encode()
    ready = operations(lambda: draw(None, prompt_embeds=vectors, pooled_prompt_embeds=pooled))
    return {"first-block cache": (cached / plain, 0.0),
            "six steps": (operations(lambda: draw(prompt, 6)) / plain, 0.0),
            "text beforehand": (ready / plain, operations(encode) / plain)}


def compiled_blocks(transformer: Any, work: Callable[[], torch.Tensor]) -> tuple[int, torch.Tensor]:
    """``work()`` with blocks whose operations the compiler's front half captured and then runs unchanged.

    Returns:
        How many graphs it captured, and what ``work`` returned. Afterwards the blocks are as they were.
    """
    import torch._dynamo.utils

    counters = torch._dynamo.utils.counters
    torch._dynamo.reset()
    counters.clear()
    transformer.compile_repeated_blocks(backend="eager")
    try:
        result = work()
    finally:
        for part in transformer.modules():
            part._compiled_call_impl = None
    return counters["stats"]["unique_graphs"], result


def operations(work: Callable[[], object]) -> int:
    """The floating point operations of matrix products, convolutions and attentions in ``work()``."""
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


SERVICE_THRESHOLD = 0.3
"""With this threshold of the first-block cache, the two prompts of a pair are alike at the first step."""

_PAIRS = (
    ("a red circle left of a blue square", "a blue square left of a red circle"),
    ("a green circle left of a yellow square", "a blue square left of a red circle"),
    ("a yellow triangle", "a green triangle"),
    ("a red square", "a red circle"),
)
_OTHERS = ("a small white ring", "a large yellow square above a small blue triangle",
           "a blue ring above a red triangle")


def stopped_hour(variant: int) -> list[tuple[str, int | None]]:
    """Five requests as (prompt, the step after which it is stopped, or None).

    Args:
        variant: 0 to 7.

    Raises:
        ValueError: if the variant does not exist.
    """
    if not 0 <= variant < 8:
        raise ValueError(f"variant is 0 to 7, not {variant}")
    number = scattered(range(8), "service {}".format)[variant]
    stopped, poisoned = _PAIRS[number // 2]
    pair: list[tuple[str, int | None]] = [(stopped, 1), (poisoned, None)]
    first, second, third = _OTHERS
    if number % 2:
        return [(first, 4), (second, None), *pair, (third, None)]
    return [*pair, (first, None), (second, 4), (third, None)]


def run_hour(service: Any, requests: Collection[tuple[str, int | None]]) -> dict[int, dict[str, Any]]:
    """Draws one request after the other, some of them stopped after a step, and logs each.

    Args:
        service: a pipeline with a first-block cache.
        requests: of :func:`stopped_hour`.

    Returns:
        Number of the request -> its prompt, how many steps it made, and which of them were whole.
    """
    log = {}
    for number, (prompt, stop_after) in enumerate(requests):

        def stop(_: Any, step: int, timestep: Any, inputs: Any, after: int | None = stop_after) -> dict:
            if step + 1 == after:
                raise KeyboardInterrupt
            return {}

        with trace(service, depth=ATTENTIONS) as run, suppress(KeyboardInterrupt):
            service(prompt, num_inference_steps=10, max_sequence_length=64, output_type="latent",
                    generator=torch.Generator().manual_seed(0), callback_on_step_end=stop)
        log[number] = {"prompt": prompt, "steps": len(run.find("scheduler.step")), "whole": whole_steps(run)}
    return log
