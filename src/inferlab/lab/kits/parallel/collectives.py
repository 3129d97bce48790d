"""Logs what the ranks of a divided model exchange."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_OPS = {"allreduce_": "all_reduce", "all_reduce": "all_reduce", "_allgather_base_": "all_gather",
        "allgather_": "all_gather",
        "all_gather_into_tensor": "all_gather", "allgather_into_tensor_coalesced_": "all_gather",
        "broadcast_": "broadcast",
        "broadcast": "broadcast", "all_to_all_single": "all_to_all",
        "reduce_scatter_tensor": "reduce_scatter", "send": "send", "recv_": "recv"}


class Collectives(TorchDispatchMode):
    """Logs every exchange between ranks with the module that made it, and when the layers computed."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.log: list[dict[str, Any]] = []
        self.inside: list[str] = []
        self.busy: list[float] = []
        self.cuda = next(model.parameters()).is_cuda
        self.hooks = []
        for name, module in model.named_modules():
            self.hooks += [module.register_forward_pre_hook(lambda *_, name=name: self._enter(name)),
                           module.register_forward_hook(self._leave)]

    def _enter(self, name: str) -> None:
        self.inside.append(name)
        self._stamp(name)

    def _leave(self, *_: Any) -> None:
        self._stamp(self.inside.pop())

    def _stamp(self, name: str) -> None:
        """The time at which a layer begins or ends; a GPU only queues its work, so it is waited for."""
        if name.rpartition(".")[0] == "model.layers":
            if self.cuda:
                torch.cuda.synchronize()
            self.busy.append(time.perf_counter())

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func.namespace in ("c10d", "_c10d_functional"):
            name = func._schema.name.partition("::")[2]
            if name in _OPS:
                self._note(_OPS[name], name, args)
        return func(*args, **(kwargs or {}))

    def _note(self, op: str, raw: str, args: tuple) -> None:
        tensors = [args[1]] if raw == "_allgather_base_" else args[0]  # that one names its output first
        for tensor in tensors if isinstance(tensors, list | tuple) else [tensors]:
            self.log.append({"op": op, "module": self.inside[-1] if self.inside else "",
                             "shape": tuple(tensor.shape),
                             "bytes": tensor.numel() * tensor.element_size()})

    def __exit__(self, *exception: Any) -> Any:
        for hook in self.hooks:
            hook.remove()
        return super().__exit__(*exception)
