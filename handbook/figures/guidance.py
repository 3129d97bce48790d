"""Makes the figure and the numbers of the handbook's section on guidance, from real runs of the bundled model.

    python handbook/figures/guidance.py             writes handbook/figures/lab03-line.svg, prints the numbers
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import matplotlib
import torch
from diffusers import DDIMScheduler, StableDiffusionPipeline
from PIL import Image

matplotlib.use("svg")
from matplotlib import pyplot as plt

from inferlab.lab.plots.style import save_svg
from inferlab.models import load_pipeline
from inferlab.models.scenes import check_pictures

HERE = Path(__file__).parent
PROMPT, COUNT, STEPS = "a red circle", 6, 6
ON_THE_LINE = (0.0, 0.5, 1.0, 4.0, 16.0)
MEASURED = (1.0, 4.0, 16.0)


@cache
def pipeline() -> StableDiffusionPipeline:
    """The bundled pipeline with DDIM."""
    pipe = load_pipeline("bundled", "cpu")
    pipe.scheduler = DDIMScheduler.from_config(pipe.scheduler.config, clip_sample=False)
    pipe.set_progress_bar_config(disable=True)
    return pipe


@cache
@torch.no_grad()
def pictures(scale: float, count: int) -> torch.Tensor:
    """`count` pictures of `PROMPT`, (count, 3, 128, 128) in [0, 1]; picture i has the same noise at every scale."""
    pipe = pipeline()
    latents = torch.randn(count, 4, 16, 16, generator=torch.Generator().manual_seed(0))
    cond, uncond = pipe.encode_prompt([PROMPT] * count, "cpu", 1, True)
    pipe.scheduler.set_timesteps(STEPS)
    for t in pipe.scheduler.timesteps:
        noise_pred = pipe.unet(latents, t, encoder_hidden_states=cond).sample
        if scale != 1:
            without = pipe.unet(latents, t, encoder_hidden_states=uncond).sample
            noise_pred = without + scale * (noise_pred - without)
        latents = pipe.scheduler.step(noise_pred, t, latents).prev_sample
    decoded = pipe.vae.decode(latents / pipe.vae.config.scaling_factor).sample
    return (decoded / 2 + 0.5).clamp(0, 1)


def measured(scale: float) -> tuple[int, str, str]:
    """(right pictures of `COUNT`, saturation, variety) at a scale, as lab 03 measures them."""
    images = pictures(scale, COUNT)
    right = sum(verdict.right for verdict in check_pictures(images, [PROMPT] * COUNT))
    saturation = float((images.amax(1) - images.amin(1)).mean())
    return right, f"{saturation:.2f}", f"{float(images.std(0).mean()):.2f}"


def numbers() -> dict[str, str]:
    """Every number of the handbook's section, as it stands in the text."""
    return {f"right at {scale:g}": f"{measured(scale)[0]} of {COUNT} at {scale:g}" for scale in MEASURED}


def draw(path: Path) -> None:
    """One picture at five places on the line, and what six pictures are like at three of them."""
    fig, axis = plt.subplots(figsize=(8.6, 3.1))
    axis.annotate("", (4.75, 0), (-0.55, 0), arrowprops={"arrowstyle": "-|>", "lw": 1.6, "color": "#1b3a5c"})
    for x, scale in enumerate(ON_THE_LINE):
        image = pictures(scale, COUNT if scale in MEASURED else 1)[0]
        whole = Image.fromarray((image.permute(1, 2, 0).numpy() * 255).round().astype("uint8"))
        small = whole.resize((96, 96), Image.Resampling.BOX).quantize(12)  # the file is committed: keep it small
        axis.imshow(small.convert("RGB"), extent=(x - 0.42, x + 0.42, 0.22, 1.06), interpolation="none", zorder=2)
        axis.plot(x, 0, "o", color="#d55e00" if scale in (0, 1) else "#1b3a5c", ms=7, zorder=3)
        name = {0: "\nwithout the prompt", 1: "\nwith the prompt"}.get(scale, "")
        axis.text(x, -0.1, f"s = {scale:g}{name}", ha="center", va="top", fontsize=9)
        if scale in MEASURED:
            right, saturation, variety = measured(scale)
            axis.text(x, -0.42, f"right {right} of {COUNT}\nsaturation {saturation}\nvariety {variety}", ha="center",
                      va="top", fontsize=9, color="0.3")
    axis.set(xlim=(-0.6, 4.8), ylim=(-0.95, 1.1), aspect="equal")
    axis.set_title("One line through two answers, and too far along it", loc="left", fontsize=11, fontweight="bold")
    axis.set_axis_off()
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab03-line.svg")
    for name, value in numbers().items():
        print(f"{name:12s} {value}")
