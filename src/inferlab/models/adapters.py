"""The LoRA adapters of the bundled picture model, and adapters of the same form for any other UNet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from .pictures import WEIGHTS
from .quiet import quiet

if TYPE_CHECKING:
    from diffusers import UNet2DConditionModel

#: Two styles of the drawn scenes, rank 4 and alpha 8, trained for the bundled UNet.
ADAPTERS = WEIGHTS.parent / "lora"
STYLES = ("punched", "meadow")
#: The linear layers of an attention that have an adapter.
PROJECTIONS = ("to_q", "to_k", "to_v", "to_out.0")


def style_folder(source: str, unet: UNet2DConditionModel, room: Path) -> Path:
    """The folder with ``punched.safetensors`` and ``meadow.safetensors`` that fit a pipeline's UNet.

    Args:
        source: where the pipeline is from. For "bundled" these are the shipped adapters. Any other UNet gets
            two of random factors: bytes, shapes and calls are true then, styles are not.
        unet: the UNet that they are to fit.
        room: an empty folder for files that have to be made.
    """
    if source == "bundled":
        return ADAPTERS
    for seed, style in enumerate(STYLES):
        write_adapter(unet, room / f"{style}.safetensors", seed=seed)
    return room


def write_adapter(unet: UNet2DConditionModel, path: Path, *, rank: int = 4, alpha: int = 8,
                  projections: Sequence[str] = PROJECTIONS, seed: int = 0) -> None:
    """Writes an adapter of random factors for ``unet``, in float16, as ``load_lora_weights`` reads it.

    Args:
        unet: its linear layers whose names end with one of ``projections`` get two factors each. It has no
            adapter yet: those layers have other names.
        path: the file to write; its folder exists.
        rank: the inner axis of the factors.
        alpha: the product of the factors counts ``alpha / rank`` times.
        projections: ends of the layers' names.
        seed: of the factors.

    Raises:
        ValueError: no layer's name ends so.
    """
    with quiet():
        from diffusers import StableDiffusionPipeline
        from peft import LoraConfig
    draw = torch.Generator().manual_seed(seed)
    factors: dict[str, torch.Tensor] = {}
    for name, layer in unet.named_modules():
        if isinstance(layer, torch.nn.Linear) and name.endswith(tuple(projections)):
            down = torch.randn(rank, layer.in_features, generator=draw) / layer.in_features**0.5
            up = torch.randn(layer.out_features, rank, generator=draw) / 100
            factors |= {f"{name}.lora.down.weight": down.half(), f"{name}.lora.up.weight": up.half()}
    if not factors:
        raise ValueError(f"no linear layer's name ends with one of {', '.join(projections)}")
    settings = LoraConfig(r=rank, lora_alpha=alpha, target_modules=list(projections)).to_dict()
    StableDiffusionPipeline.save_lora_weights(
        path.parent, unet_lora_layers=factors, weight_name=path.name, safe_serialization=True,
        unet_lora_adapter_metadata=settings)
