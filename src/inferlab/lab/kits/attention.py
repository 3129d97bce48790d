"""What the lab on attention kernels records: the arguments of `scaled_dot_product_attention`, what each
operation reads and writes, and how often matrix products multiply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode


class SdpaCalls(TorchFunctionMode):
    """Within the block, every call of `scaled_dot_product_attention` is noted in `calls`, in order.

    Each entry is a dict of its arguments by name, with `query`, `key`, `value` and the result `output`.
    Nothing is copied and nothing is changed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[dict[str, Any]] = []

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is torch.nn.functional.scaled_dot_product_attention:
            named = dict(zip(("query", "key", "value"), args, strict=False))
            self.calls.append(named | (kwargs or {}) | {"output": result})
        return result


@dataclass(frozen=True)
class Operation:
    """One operation that made a tensor: its name, the bytes of the tensors it was given and of those it
    made, and the shape of the largest one that it made."""

    name: str
    read: int
    written: int
    shape: tuple[int, ...]


class Moved(TorchDispatchMode):
    """Within the block, every operation that makes a tensor is noted in `operations`; a view makes none."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[Operation] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        held = {x.untyped_storage().data_ptr() for x in given}
        made = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor)
                and x.untyped_storage().data_ptr() not in held and x.numel()]
        if made:
            largest = max(made, key=torch.Tensor.numel)
            self.operations.append(Operation(func.__name__.split(".")[0], _bytes(given), _bytes(made),
                                             tuple(largest.shape)))
        return result

    @property
    def bytes(self) -> int:
        """Bytes read and written by all operations together."""
        return sum(one.read + one.written for one in self.operations)


def _bytes(tensors: list[torch.Tensor]) -> int:
    return sum(x.numel() * x.element_size() for x in tensors)


def multiplications(work: Callable[[], object]) -> int:
    """How often the matrix products in ``work()`` multiply: half of their floating point operations."""
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops() // 2


def walk(step: Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor]], scores: torch.Tensor,
         v: torch.Tensor, block: int) -> torch.Tensor:
    """All blocks of keys through ``step(top, total, out, scores, v)``, from the beginning: the last ``out``.

    Args:
        step: returns the next (top, total, out).
        scores: (heads, queries, keys).
        v: (heads, keys, width).
        block: keys in a block; the last one may be shorter.
    """
    top = torch.full((*scores.shape[:2], 1), -torch.inf)
    total, out = torch.zeros_like(top), torch.zeros(*scores.shape[:2], v.shape[-1])
    for some, values in zip(scores.split(block, -1), v.split(block, 1), strict=True):
        top, total, out = step(top, total, out, some, values)
    return out


def scored(rows: torch.Tensor, k: torch.Tensor, v: torch.Tensor, first: int, begin: int, causal: bool
           ) -> tuple[torch.Tensor, torch.Tensor]:
    """A block of queries against a block of keys: the scores, and the values for every query head.

    Args:
        rows: (heads, queries, width), float32; the first is query number ``first``.
        k: (kv_heads, keys, width); the first is key number ``begin``.
        v: like ``k``.
        causal: whether keys after a query get ``-inf`` as their score.

    Returns:
        Scaled scores (heads, queries, keys) and values (heads, keys, width), float32.
    """
    k, v = (x.float().repeat_interleave(len(rows) // len(x), 0) for x in (k, v))
    scores = rows @ k.mT * rows.shape[-1] ** -0.5
    if causal:
        seen = torch.arange(begin, begin + k.shape[1]) <= torch.arange(first, first + rows.shape[1])[:, None]
        scores = scores.where(seen, -torch.inf)
    return scores, v


def with_fetches(one_pass: Callable[..., tuple[torch.Tensor, torch.Tensor]], q: torch.Tensor,
                 k: torch.Tensor, v: torch.Tensor, block: int, causal: bool
                 ) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
    """``one_pass(q, fetch, keys, block, causal)``: (out, lse, how many numbers each fetch read)."""
    fetched: list[int] = []

    def fetch(start: int, stop: int) -> tuple[torch.Tensor, torch.Tensor]:
        fetched.append(2 * k[:, start:stop].numel())
        return k[:, start:stop], v[:, start:stop]

    return *one_pass(q, fetch, k.shape[1], block, causal), fetched


def tried(step: Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor]], q: torch.Tensor,
          k: torch.Tensor, v: torch.Tensor) -> str:
    """What a step gives for values of 1, and how many rows of this attention it gets wrong, as one line."""
    scores, v = scored(q, k, v, 0, 0, causal=False)
    ones = walk(step, scores, torch.ones_like(v), 64)
    wrong = (walk(step, scores, v, 64) - scores.softmax(-1) @ v).abs().amax(-1) > 1e-4
    return (f"{step.__name__:15} values of 1 give {ones.min():.2f} to {ones.max():.2f};"
            f" {wrong.float().mean():.0%} of the rows are wrong")
