"""Small interactive views that need no kernel: a saved notebook and its HTML still show them."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from PIL import Image

# Only the inline handler is script. Where a page takes it out, every picture stays in view: a film strip.
_MOVE = ("const at = Number(this.value), all = this.closest('.inferlab-steps').querySelectorAll('figure');"
         "all.forEach((one, i) => {{ one.hidden = at > 0 &amp;&amp; i + 1 !== at;"
         "one.querySelector('img').style.width = at > 0 ? '{size}px' : '{small}px'; }});")


@dataclass(frozen=True)
class StepSlider:
    """Pictures of the steps of a run, side by side, and a slider that shows one of them alone and larger.

    Attributes:
        pictures: one PIL image for each step.
        labels: what stands over each picture.
        size: width of a picture that is shown alone, in CSS pixels.
    """

    pictures: tuple[Image.Image, ...]
    labels: tuple[str, ...]
    size: int

    def __repr__(self) -> str:
        return f"{len(self.pictures)} steps: {', '.join(self.labels)}"

    def _repr_html_(self) -> str:
        small, number = min(self.size, 112), len(self.pictures)
        figures = "".join(
            f'<figure style="margin:0"><figcaption>{escape(label)}</figcaption>'
            f'<img alt="step {i} of {number}, {escape(label)}" src="data:image/png;base64,{_png(picture)}" '
            f'style="width:{small}px;max-width:100%;image-rendering:pixelated"></figure>'
            for i, (label, picture) in enumerate(zip(self.labels, self.pictures, strict=True), start=1))
        slider = (f'<label>Step, 0 shows all {number}: <input type="range" min="0" max="{number}" value="0" '
                  f'oninput="{_MOVE.format(size=self.size, small=small)}"></label>')
        return (f'<div class="inferlab-steps">{slider}'
                f'<div style="display:flex;flex-wrap:wrap;gap:8px">{figures}</div></div>')


def step_slider(pictures: Sequence[Image.Image], labels: Sequence[str], size: int = 256) -> StepSlider:
    """The steps of a run side by side, with a slider that shows one step alone and larger.

    The slider works in the page: no kernel is asked when it moves.

    Args:
        pictures: one PIL image for each step.
        labels: what stands over each picture, such as ``"t = 501"``.
        size: width of the picture that is shown alone, in CSS pixels; small ones are enlarged without
            smoothing.

    Raises:
        ValueError: if there are no pictures, or not one label for each.
    """
    if not pictures or len(pictures) != len(labels):
        raise ValueError(f"{len(pictures)} pictures and {len(labels)} labels: each picture needs its label")
    return StepSlider(tuple(pictures), tuple(labels), size)


def _png(picture: Image.Image) -> str:
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG")
    return base64.b64encode(buffer.getvalue()).decode()
