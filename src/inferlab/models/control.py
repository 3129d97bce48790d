"""The bundled ControlNet: lines along edges say where shapes stand (see training/README.md)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .pictures import WEIGHTS
from .quiet import quiet

if TYPE_CHECKING:
    from diffusers import ControlNetModel, UNet2DConditionModel

CONTROL = WEIGHTS.parent / "control"
EMBEDDING = (8, 16, 32, 64)  # channels of the network that brings lines (3, 128, 128) to the latents' 16x16


def copy_encoder(unet: UNet2DConditionModel) -> ControlNetModel:
    """A new ControlNet for ``unet``: a copy of its encoder, whose zero convolutions let nothing through."""
    with quiet():
        from diffusers import ControlNetModel

        return ControlNetModel.from_unet(unet, conditioning_embedding_out_channels=EMBEDDING)


def load_controlnet(unet: UNet2DConditionModel, folder: str | Path = CONTROL) -> ControlNetModel:
    """The trained ControlNet for the bundled UNet, on its device and in its dtype.

    ``folder`` holds the parts that learned. All others are copied from ``unet``, as for the training.
    Raises ValueError for a UNet of another shape, FileNotFoundError for a folder without the parts.
    """
    from safetensors.torch import load_file

    learned = load_file(Path(folder) / "learned.safetensors")
    control = copy_encoder(unet)
    own = control.state_dict()
    strange = [name for name, tensor in learned.items()
               if name not in own or own[name].shape != tensor.shape]
    if strange:
        raise ValueError(f"this ControlNet is for the bundled UNet, not this one: {strange[0]} does not fit")
    control.load_state_dict(learned, strict=False)
    with quiet():  # a cast warns of modules that stay in float32, also where there are none
        return control.to(device=unet.device, dtype=unet.dtype).eval()
