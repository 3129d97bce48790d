"""Paged caches: what the library's engine holds in which block during a run, and a map of it over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from inferlab.lab.kits.batching import batching_config, engine_answers, stretches
from inferlab.lab.plots.style import ACCENT, DARK, MID, STYLE, finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from transformers import PreTrainedModel

_SHADES = (DARK, MID, "#a9c6de", "#7a8b99", "#d9b38c", "#8c6d46")


@dataclass(frozen=True)
class CacheCall:
    """One call of the model during a run of the engine.

    Attributes:
        tokens: tokens that the call computes, of all its requests together.
        tables: request's number -> its block table: the blocks' ids, in the order of its tokens. Ids are the
            library's own; where they begin and which free one is taken first differs between its versions.
    """

    tokens: int
    tables: dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class PagedRun:
    """A run of the engine: the tokens that each request got, every call, and the cache as it was left."""

    answers: list[list[int]]
    calls: list[CacheCall]
    cache: object


def allocator_of(cache: Any) -> Any:
    """What keeps the block tables of full-attention layers in a paged cache of the library (5.17 to 5.24).

    Raises:
        ValueError: if the cache serves layers of several kinds, which need several tables.
    """
    allocators = getattr(cache, "cache_allocators", None)  # the other name is that of older releases
    managers = cache.group_cache_managers if allocators is None else list(allocators.values())
    if len(managers) != 1:
        raise ValueError(f"this cache has {len(managers)} groups of layers, each with tables of its own; "
                         f"expected one")
    return managers[0]


def pool_of(cache: Any, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of one layer: two views (blocks, page, kv_heads, head_dim) of the cache's memory."""
    if hasattr(cache, "cache_allocators"):  # one flat tensor, in which a block holds a page of each layer
        allocator = allocator_of(cache)
        keys, values = allocator._kv_page_views[layer]
        step = allocator.block_physical_stride // allocator.tokens_per_page
        return keys[::step], values[::step]
    page = cache.block_size
    keys, values = cache.key_cache[layer], cache.value_cache[layer]
    whole = keys.shape[0] // page * page
    return tuple(t[:whole].view(-1, page, *t.shape[1:]) for t in (keys, values))


def paged_run(
    model: PreTrainedModel, prompts: Sequence[Sequence[int]], outputs: Sequence[int], slots: int,
    page: int = 16, pages: int = 64, share: bool = False,
) -> PagedRun:
    """Let the library's engine answer requests that are there at its start; note its tables at each call.

    Args:
        model: any causal model with full attention that `generate_batch` takes.
        prompts: token ids of each request.
        outputs: how many tokens each request generates (greedy, no end token).
        slots: most requests in one call.
        page, pages: tokens in a block, and how many blocks there are.
        share: whether requests may share the blocks of a common prefix.

    Raises:
        RuntimeError: if the engine stops before every request is finished.
    """
    sizes = batching_config(slots, page=page, pages=pages, tokens=512, allow_block_sharing=share,
                            scheduler_type="prefill_first")
    calls: list[CacheCall] = []
    caches: list[Any] = []

    def note(module: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        caches.append(kwargs["cache"])
        held = {int(name): tuple(table) for name, table in allocator_of(caches[-1]).block_table.items()}
        calls.append(CacheCall(kwargs["input_ids"].shape[-1], dict(sorted(held.items()))))

    hook = model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        answers = engine_answers(model, prompts, outputs, sizes)
    finally:
        hook.remove()
    return PagedRun(answers, calls, caches[-1])


def memory_map(tables: Sequence[Mapping[int, Sequence[int]]], *, title: str) -> Figure:
    """Blocks over time: one row a block, one column a call, in the color of the request that owns it.

    Args:
        tables: for each call, request's number -> the ids of its blocks.
        title: the finding.

    Raises:
        ValueError: if no call holds a block.
    """
    used = sorted({block for held in tables for table in held.values() for block in table})
    if not used:
        raise ValueError("no block is held in any of these calls")
    with plt.style.context([STYLE, {"axes.grid": False}]):
        fig, axis = plt.subplots(figsize=(8.6, 1.2 + 0.2 * len(used)))
        for row, block in enumerate(used):
            owners = [tuple(r for r, table in held.items() if block in table) for held in tables]
            for start, end, here in stretches(owners):
                if here:
                    _owned(axis, row, start, end, here)
        axis.set(xlim=(0, len(tables)), ylim=(len(used) - 0.4, -0.6), xlabel="call of the model",
                 ylabel="physical block")
        axis.set_yticks(range(len(used)), [str(block) for block in used], fontsize=7)
        fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        fig.tight_layout()
    return finished(fig)


def _owned(axis: Axes, row: int, start: int, end: int, owners: tuple[int, ...]) -> None:
    """A stretch of time in which a block has the same owners; shared blocks are hatched and name all."""
    shared = len(owners) > 1
    shade = ACCENT if shared else _SHADES[owners[0] % len(_SHADES)]
    axis.barh(row, end - start, left=start, height=0.82, color=shade, edgecolor="white", lw=0.7,
              hatch="//" if shared else "")
    if end - start >= 2:
        ink = "black" if shade in _SHADES[2:5:2] else "white"
        axis.text((start + end) / 2, row, "+".join(map(str, owners)), ha="center", va="center", fontsize=6.5,
                  color=ink)
