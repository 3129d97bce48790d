"""Makes the figure and the numbers of the handbook's section on LoRA, from real runs of the bundled model.

    python handbook/figures/lora.py             writes handbook/figures/lab08-weights.svg, prints the numbers
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import torch
from diffusers import DDIMScheduler, StableDiffusionPipeline
from PIL import Image

matplotlib.use("svg")

from inferlab.lab.kits.pipelines.picture_rows import grid_of
from inferlab.lab.plots.style import save_svg
from inferlab.models import load_pipeline
from inferlab.models.adapters import ADAPTERS, STYLES
from inferlab.models.quiet import quiet

HERE = Path(__file__).parent
CAPTION = "a large blue square on a gray background"
SHOWN = (0.0, 0.5, 0.75, 1.0, 2.0)


@cache
def pipeline() -> StableDiffusionPipeline:
    """The bundled pipeline with both adapters loaded."""
    pipe = load_pipeline("bundled", "cpu")
    pipe.scheduler = DDIMScheduler.from_config(pipe.scheduler.config, clip_sample=False)
    pipe.set_progress_bar_config(disable=True)
    with quiet():
        for style in STYLES:
            pipe.load_lora_weights(ADAPTERS, weight_name=f"{style}.safetensors", adapter_name=style)
    return pipe


@torch.no_grad()
def picture(style: str, weight: float) -> np.ndarray:
    """One picture with one adapter at a weight, (64, 64, 3) uint8 in a few colors: the file is committed."""
    pipe = pipeline()
    pipe.set_adapters([style], [weight])
    noise = torch.randn(1, 4, 16, 16, generator=torch.Generator().manual_seed(0))
    whole = pipe(CAPTION, num_inference_steps=10, guidance_scale=4.0, latents=noise).images[0]
    return np.asarray(whole.resize((64, 64), Image.Resampling.BOX).quantize(12).convert("RGB"))


def numbers() -> dict[str, str]:
    """Every number of the handbook's section, as it stands in the text."""
    layers = [layer for name, layer in pipeline().unet.named_modules() if hasattr(layer, "lora_A")]
    matrices = sum(layer.base_layer.weight.numel() for layer in layers)
    factors = sum(factor["meadow"].weight.numel() for layer in layers
                  for factor in (layer.lora_A, layer.lora_B))
    size = (ADAPTERS / "meadow.safetensors").stat().st_size
    return {
        "projections": f"{len(layers)} projections",
        "numbers of the matrices": f"{matrices:,} numbers",
        "numbers of the factors": f"{factors:,} ({factors / matrices:.0%})",
        "bytes of the file": f"{size:,} bytes",
        "a large matrix": f"{2 * 4096 * 4096 / 2**20:.1f} MiB",
        "its factors at rank 16": f"{2 * 16 * 8192 / 2**20:.2f} MiB",
        "where nothing is saved": f"rank {4096 // 2:,} on",
    }


def draw(path: Path) -> None:
    """One scene with each adapter at five weights."""
    rows = {style: [picture(style, weight) for weight in SHOWN] for style in STYLES}
    notes = {style: [""] * len(SHOWN) for style in STYLES}
    fig = grid_of(rows, [f"s = {weight:g}" for weight in SHOWN], notes)
    fig.suptitle("A style comes late, and then at once", x=0.01, ha="left", fontsize=11, fontweight="bold")
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab08-weights.svg")
    for name, value in numbers().items():
        print(f"{name:24s} {value}")
