"""Says before a lab starts whether its full-size model fits the device, with the bytes that the lab needs."""

from __future__ import annotations

import re

import torch

from inferlab.models.device import usual_dtype
from inferlab.models.fit import require
from inferlab.models.full_size import picture_needs
from inferlab.models.full_transformers import flux_needs, wan_needs
from inferlab.models.language import language_needs, quantized_needs

#: Labs up to this number work on the picture pipeline, later ones on the language model.
LAST_PICTURE_LAB = 11
#: Labs on FLUX, and labs on Wan.
ON_FLUX, ON_WAN = ("lab07", "lab21"), ("lab20",)
#: Labs that open the draft model beside the target.
WITH_DRAFT = ("lab16",)
#: Labs that open the target in float32 on every device, and quantize it twice.
IN_FLOAT32 = ("lab17",)


def lab_needs(lab: str, device: str | torch.device) -> dict[str, int]:
    """Part -> bytes that a lab needs with MODEL = "full" on `device`, in the dtype that it takes there.

    Args:
        lab: `labNN-topic`, or `practice-topic`, which opens the language model.
        device: "cpu", "cuda", "cuda:1", ...
    """
    numbered = re.match(r"lab(\d+)", lab)
    if lab.startswith(ON_FLUX):
        return flux_needs(usual_dtype(device, torch.bfloat16))
    if lab.startswith(ON_WAN):
        return wan_needs(usual_dtype(device, torch.bfloat16))
    if numbered and int(numbered[1]) <= LAST_PICTURE_LAB:
        return picture_needs(usual_dtype(device, torch.float16))
    if lab.startswith(IN_FLOAT32):
        return language_needs(torch.float32) | quantized_needs()
    return language_needs(usual_dtype(device, torch.bfloat16), lab.startswith(WITH_DRAFT))


def check_lab(lab: str, model: str, device: str | torch.device) -> None:
    """Raises MemoryError if the lab with this MODEL does not fit; only "full" is large enough to ask."""
    if model != "full":
        return
    instead = 'Choose MODEL = "bundled" (small, trained, the same lab), or a larger device.'
    what = f'{lab} with MODEL = "full" does not fit: weights and working memory'
    require(lab_needs(lab, device), device, instead, what)
