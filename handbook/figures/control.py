"""Makes the figure and the numbers of the handbook's section on control, from real runs of the bundled model.

    python handbook/figures/control.py             writes handbook/figures/lab09-lines.svg, prints the numbers
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import matplotlib
import torch
from diffusers import DDIMScheduler, StableDiffusionControlNetPipeline
from PIL import Image

matplotlib.use("svg")
from matplotlib import pyplot as plt

from inferlab.lab.plots.style import save_svg
from inferlab.models import load_pipeline
from inferlab.models.control import load_controlnet
from inferlab.models.scenes import check_pictures, outlines, sample_scenes

HERE = Path(__file__).parent
WORDS, STEPS = ["a yellow square", "an orange cross", "a red circle"], 6
RUNS = {
    "no lines": {"controlnet_conditioning_scale": 0.0},
    "lines at half scale": {"controlnet_conditioning_scale": 0.5},
    "lines": {},
    "in the first half\nof the steps": {"control_guidance_end": 0.5},
    "in the second half": {"control_guidance_start": 0.5},
}


@cache
def scene_batch():
    """The scenes whose edges are drawn; the first three are used."""
    return sample_scenes(8, torch.Generator().manual_seed(9), two=0.0, keep="test")


@cache
def pipeline() -> StableDiffusionControlNetPipeline:
    """The bundled pipeline with its ControlNet and DDIM."""
    parts = load_pipeline("bundled", "cpu").components
    parts["scheduler"] = DDIMScheduler.from_config(parts["scheduler"].config, clip_sample=False)
    pipe = StableDiffusionControlNetPipeline(**parts, controlnet=load_controlnet(parts["unet"]),
                                             requires_safety_checker=False)
    pipe.set_progress_bar_config(disable=True)
    return pipe


@cache
@torch.no_grad()
def pictures(name: str) -> torch.Tensor:
    """The three pictures of a run of `RUNS`, (3, 3, 128, 128) in [0, 1]; every run has the same noises."""
    noise = torch.randn(3, 4, 16, 16, generator=torch.Generator().manual_seed(0))
    lines = outlines(scene_batch())[:3].expand(-1, 3, -1, -1)
    return pipeline()(WORDS, image=lines, latents=noise, num_inference_steps=STEPS, guidance_scale=4.0,
                      output_type="pt", **RUNS[name]).images


def on_the_lines(name: str) -> int:
    """In how many of three pictures a shape stands within 5 pixels of the lines' center."""
    count = 0
    for verdict, x, y in zip(check_pictures(pictures(name), WORDS), scene_batch().x[:3, 0].tolist(),
                             scene_batch().y[:3, 0].tolist(), strict=True):
        count += any(((thing.x - x) ** 2 + (thing.y - y) ** 2) ** 0.5 < 5 for thing in verdict.things)
    return count


def numbers() -> dict[str, str]:
    """Every number of the handbook's section, as it stands in the text."""
    control, unet = pipeline().controlnet, dict(pipeline().unet.named_parameters())
    sizes = [(weight.numel(), name in unet and torch.equal(weight, unet[name]))
             for name, weight in control.named_parameters()]
    copied = sum(size for size, same in sizes if same) / sum(size for size, _ in sizes)
    found = {name: f"{on_the_lines(name)} of 3" for name in RUNS}
    return {"copied": f"{copied:.0%}",
            "scales": f"{found['no lines']} without lines, {found['lines at half scale']} at half the scale",
            "windows": f"{found[list(RUNS)[3]]} with lines in the first half of the steps, "
                       f"{found['in the second half']} with lines in the second"}


def small(image: torch.Tensor) -> Image.Image:
    """A picture with few pixels and colors: the file is committed."""
    whole = Image.fromarray((image.permute(1, 2, 0).numpy() * 255).round().astype("uint8"))
    return whole.resize((96, 96), Image.Resampling.BOX).quantize(12).convert("RGB")


def draw(path: Path) -> None:
    """The lines of one scene, and what one noise becomes with them in five ways."""
    lines = outlines(scene_batch())[0].expand(3, -1, -1)
    shown = {"the lines": lines} | {name: pictures(name)[0] for name in RUNS}
    fig, axes = plt.subplots(1, len(shown), figsize=(9.2, 2.3))
    for axis, (name, image) in zip(axes, shown.items(), strict=True):
        axis.imshow(small(image), interpolation="none")
        axis.set_xticks([])
        axis.set_yticks([])
        axis.set_xlabel(name, fontsize=9)
        axis.spines[:].set_visible(False)
        if name != "the lines":  # where the lines would be
            x, y = (float(value[0, 0]) * 96 / 128 for value in (scene_batch().x, scene_batch().y))
            axis.plot(x, y, "+", color="#1b3a5c", ms=9, mew=1.4)
    fig.suptitle("Lines say where, early in the loop", x=0.01, ha="left", fontsize=11, fontweight="bold")
    fig.tight_layout()
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab09-lines.svg")
    for name, value in numbers().items():
        print(f"{name:12s} {value}")
