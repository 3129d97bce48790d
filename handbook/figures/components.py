"""Makes the diagram and the numbers of the handbook's section on components, from runs of the bundled pipeline.

    python handbook/figures/components.py             writes handbook/figures/lab06-wrong-lines.svg, prints the numbers
"""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path

import matplotlib
import torch

matplotlib.use("svg")
from diffusers import StableDiffusionPipeline
from matplotlib import pyplot as plt

from inferlab.lab.kits.pipelines.holdings import held
from inferlab.lab.kits.pipelines.misconfigured import (
    HARMLESS,
    SCHEDULER,
    TEXT,
    UNET,
    VAE,
    with_entries,
)
from inferlab.lab.plots.style import save_svg
from inferlab.models.pictures import WEIGHTS, open_folder
from inferlab.models.quiet import quiet

HERE = Path(__file__).parent
# none of these is a fault that lab 06 lets its readers look for
SHOWN = {(SCHEDULER, "num_train_timesteps"): 500, (SCHEDULER, "beta_start"): 0.00001, (VAE, "act_fn"): "gelu",
         (UNET, "act_fn"): "gelu", (TEXT, "layer_norm_eps"): 0.1}
PIXELS = 64
"""Side of a picture in the diagram: half of what the pipeline draws."""


@cache
def pictures() -> dict[str, object]:
    """Label -> picture of 128x128 pixels: as shipped, with one wrong line each, and with the harmless lines."""
    folders = {"as shipped": {}} | {
        f"{file.split('/')[0]}\n{key}\n{value}": {(file, key): value} for (file, key), value in SHOWN.items()
    } | {f"{len(HARMLESS)} other\nlines": HARMLESS}
    drawn = {}
    with tempfile.TemporaryDirectory() as room:
        for number, (label, entries) in enumerate(folders.items()):
            pipe = open_folder(with_entries(Path(room) / str(number), entries), "cpu", torch.float32)
            pipe.set_progress_bar_config(disable=True)
            drawn[label] = pipe("a large red circle left of a small blue square", num_inference_steps=8,
                                guidance_scale=4.0, height=128, width=128,
                                generator=torch.Generator().manual_seed(0)).images[0]
    return drawn


def numbers() -> dict[str, str]:
    """Every number of the handbook's section, as it stands in the text."""
    data = (WEIGHTS / "unet" / "diffusion_pytorch_model.safetensors").read_bytes()
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + n])
    header.pop("__metadata__", None)
    name, told = min(header.items(), key=lambda item: item[1]["data_offsets"])
    with quiet():
        half = StableDiffusionPipeline.from_pretrained(WEIGHTS, dtype=torch.float16)
    as_float16 = sum(held(half).values())
    parts = {name: 2 * size for name, size in held(half).items()}  # in float32
    made = pictures()
    same = [label for label, picture in made.items() if picture == made["as shipped"]]
    return {
        "length of the header": f"{n:,}",
        "tensors of the UNet's file": f"{len(header)} tensors",
        "first tensor": f"`{name}`",
        "its offsets": f"`{told['data_offsets']}`",
        "where it begins in the file": f"8 + {n:,} + {told['data_offsets'][0]:,} = {8 + n + told['data_offsets'][0]:,}",
        "bytes of weights, float16": f"{as_float16 / 1e6:.1f} MB",
        "text encoder alone": f"{parts['text_encoder'] / 1e6:.1f} MB",
        "UNet alone": f"{parts['unet'] / 1e6:.1f} MB",
        "VAE alone": f"{parts['vae'] / 1e6:.1f} MB",
        "pictures like the shipped one": f"{len(same)} of the {len(made)} pictures",
    }


def draw(path: Path) -> None:
    """A strip of the pictures, each under the one line that differs."""
    fig, axes = plt.subplots(1, len(pictures()), figsize=(10, 2.1))
    for axis, (label, picture) in zip(axes, pictures().items(), strict=True):
        axis.imshow(picture.resize((PIXELS, PIXELS)), interpolation="none")
        axis.set_title(label, fontsize=8)
        axis.set_axis_off()
    fig.tight_layout()
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab06-wrong-lines.svg")
    for name, value in numbers().items():
        print(f"{name:34s} {value}")
