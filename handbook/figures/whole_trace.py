"""Makes the diagram and the numbers of the handbook's section on the whole trace, from a real run of the bundled pipeline.

    python handbook/figures/whole_trace.py            writes handbook/figures/lab11-components.svg, prints the numbers
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import matplotlib
import torch

matplotlib.use("svg")
from inferlab.lab.kits.pipelines.stages import component_graph
from inferlab.lab.plots.style import save_svg
from inferlab.models import load_pipeline
from inferlab.models.pictures import WEIGHTS
from inferlab.trace import trace

HERE = Path(__file__).parent
STEPS = 4


@cache
def runs():
    """(pipeline, trace with guidance 4.0, trace with guidance off) of the bundled pipeline on the CPU, four steps each."""
    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    traces = []
    for guidance in (4.0, 1.0):
        with trace(pipe) as t, torch.no_grad():
            pipe("a red circle", num_inference_steps=STEPS, guidance_scale=guidance, generator=torch.Generator().manual_seed(0))
        traces.append(t)
    return pipe, *traces


def numbers() -> dict[str, str]:
    """Every number of the handbook's section, as it stands in the text."""
    pipe, guided, plain = runs()
    index = json.loads((WEIGHTS / "model_index.json").read_text())
    into, out = guided["vae.decode"][0].bytes_in, guided["vae.decode"][0].bytes_out
    direct = [row for row in guided.rows() if row["level"] == 1]
    millions = {name: sum(p.numel() for p in getattr(pipe, name).parameters()) / 1e6 for name in ("text_encoder", "unet", "vae")}
    shapes = {row["where"]: row for row in guided.diff(plain, slower=float("inf")).rows() if row["name"] == "unet"}
    latents, pixels = 4 * 64 * 64 * 2, 3 * 512 * 512 * 2  # Stable Diffusion 1.5 at 512x512, 16 bits a value
    return {
        "entries of model_index.json that load": f"{sum(isinstance(e, list) and e[0] is not None for e in index.values())} components",
        "boundaries of the call": f"{len(direct)} boundaries",
        "of which in the loop": f"{sum(row['step'] is not None for row in direct)} of them",
        "bytes into the VAE": f"{into:,} bytes",
        "bytes out of the VAE": f"{out:,} bytes",
        "their ratio": f"{out // into} times",
        "ratio for Stable Diffusion 1.5": f"{pixels // latents} again",
        "latents of Stable Diffusion 1.5": f"{latents // 1024} KiB",
        "picture of Stable Diffusion 1.5": f"{pixels / 2**20:g} MiB",
        "UNet input, guided": f"{shapes['inputs.sample']['before']}",
        "UNet input, plain": f"{shapes['inputs.sample']['after']}",
        "weights of the text encoder": f"{millions['text_encoder']:.1f} million",
        "weights of the UNet": f"{millions['unet']:.1f} million",
        "weights of the VAE": f"{millions['vae']:.1f} million",
    }


def draw(path: Path) -> None:
    """The component graph of the guided run."""
    fig = component_graph(runs()[1].rows(), title="Four steps of the bundled pipeline, drawn from their trace")
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab11-components.svg")
    for name, value in numbers().items():
        print(f"{name:40s} {value}")
