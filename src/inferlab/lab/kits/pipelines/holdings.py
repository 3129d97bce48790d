"""Bytes of weights that several pipelines hold together, each network counted once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn import Module

if TYPE_CHECKING:
    from diffusers import DiffusionPipeline


def held(*pipelines: DiffusionPipeline) -> dict[str, int]:
    """Component -> bytes of the weights that these pipelines hold under its name.

    A weight that several of them hold is one object, and is counted once.
    """
    found: dict[str, int] = {}
    seen: set[int] = set()
    for pipeline in pipelines:
        for name, part in pipeline.components.items():
            if isinstance(part, Module):
                own = [weight for weight in part.parameters() if id(weight) not in seen]
                seen |= {id(weight) for weight in own}
                found[name] = found.get(name, 0) + sum(w.numel() * w.element_size() for w in own)
    return found
