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
