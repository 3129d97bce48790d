"""Counts the bytes of all live tensors by watching every operation (`trace(..., memory="tensors")`).

Slow (about ten microseconds an operation), but it works without a CUDA allocator: what it counts is the
storages of tensors that operations return, not the scratch space inside an operation, and not tensors that
existed before.
"""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Watch(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.live = 0  # bytes
        self.peaks: list[int] = []  # highest value so far of each open boundary
        self.known: dict = {}

    def __torch_dispatch__(
        self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        output = function(*args, **(kwargs or {}))
        for value in tree_leaves(output):
            if isinstance(value, torch.Tensor):
                self._count(value, (args, kwargs))
        return output

    def _count(self, tensor: torch.Tensor, given: tuple) -> None:
        if not _has_storage(tensor):
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.known:
            return
        # A storage that goes in and comes out was there before: a weight's transpose in a linear layer.
        old = any(
            isinstance(a, torch.Tensor) and _has_storage(a) and a.untyped_storage()._cdata == key
            for a in tree_leaves(given)
        )
        size = 0 if old else storage.nbytes()
        self.known[key] = weakref.ref(storage, lambda _: self._forget(key, size))
        self.live += size
        if self.peaks and self.live > self.peaks[-1]:
            self.peaks[-1] = self.live

    def _forget(self, key: int, size: int) -> None:
        if self.known.pop(key, None) is not None:
            self.live -= size


def _has_storage(tensor: torch.Tensor) -> bool:
    return tensor.device.type != "meta" and tensor.layout is torch.strided


class TensorBytesProbe:
    """Live bytes before and after each coarse boundary, and the highest in between."""

    def __init__(self, inner: Any = None) -> None:
        self.inner = inner
        self.watch = _Watch()
        self.watch.__enter__()

    def enter(self) -> tuple:
        """What is live before a call."""
        self.watch.peaks.append(self.watch.live)
        return (self.watch.live, self.inner.enter() if self.inner else None)

    def leave(self, mark: tuple) -> dict:
        """What is live after it, with the highest value in between."""
        held, inner = mark
        peak = self.watch.peaks.pop()
        if self.watch.peaks:
            self.watch.peaks[-1] = max(self.watch.peaks[-1], peak)
        result = self.inner.leave(inner) if self.inner else {}
        now = self.watch.live
        result["memory"] = {
            "before": held,
            "after": now,
            "change": now - held,
            "peak": peak,
            "peak_exact": True,
            "counted": "live tensors made in this block",
        }
        return result

    idle = leave

    def close(self) -> None:
        """Stops watching."""
        self.watch.__exit__(None, None, None)
        if self.inner:
            self.inner.close()
