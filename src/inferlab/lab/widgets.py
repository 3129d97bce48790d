"""Small interactive views. They move without the kernel, so that a saved notebook still answers."""

from __future__ import annotations

import io
from collections.abc import Sequence

import ipywidgets
from PIL import Image


def step_slider(pictures: Sequence[Image.Image], labels: Sequence[str], size: int = 256) -> ipywidgets.VBox:
    """A slider over the steps of a run, showing the picture of each step.

    The slider and the pictures are linked in the browser: no kernel is asked when the slider moves.

    Args:
        pictures: one PIL image for each step.
        labels: what stands over each picture, such as ``"t = 501"``.
        size: side of the picture shown, in CSS pixels; small pictures are enlarged without smoothing.

    Raises:
        ValueError: if there are no pictures, or not one label for each.
    """
    if not pictures or len(pictures) != len(labels):
        raise ValueError(f"{len(pictures)} pictures and {len(labels)} labels: each picture needs its label")
    pages = [
        ipywidgets.VBox([ipywidgets.Label(label), ipywidgets.Image(value=_png(picture, size), format="png", width=size)])
        for picture, label in zip(pictures, labels, strict=True)
    ]
    stack = ipywidgets.Stack(pages, selected_index=0)
    slider = ipywidgets.IntSlider(0, 0, len(pages) - 1, description="step")
    ipywidgets.jslink((slider, "value"), (stack, "selected_index"))
    return ipywidgets.VBox([slider, stack])


def _png(picture: Image.Image, size: int) -> bytes:
    if picture.width < size:
        picture = picture.resize((size, size * picture.height // picture.width), Image.Resampling.NEAREST)
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG")
    return buffer.getvalue()
