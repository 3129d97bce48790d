"""Makes the diagram and the numbers of the handbook's section on the transformer denoiser, from real runs of the bundled model.

    python handbook/figures/transformer_denoiser.py    writes handbook/figures/lab07-attention.svg, prints the numbers
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import matplotlib
import torch

matplotlib.use("svg")
from matplotlib import pyplot as plt

from inferlab.lab.kits.pipelines.block_parts import block_parts
from inferlab.lab.plots.style import ACCENT, save_svg
from inferlab.models import load_pipeline
from inferlab.trace import trace

HERE = Path(__file__).parent
PROMPT = "a large red circle left of a small blue square"
TEXT, STEPS = 16, 4
BLOCK = "transformer.transformer_blocks.1"


@cache
@torch.no_grad()
def run():
    """(pipeline, trace) of one picture of the bundled model: four steps, 16 text tokens, the second block's tensors kept."""
    pipe = load_pipeline("bundled", "cpu", family="flux")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe, depth=BLOCK, keep=BLOCK) as recorded:
        pipe(PROMPT, num_inference_steps=STEPS, max_sequence_length=TEXT, generator=torch.Generator().manual_seed(7))
    return pipe, recorded


@torch.no_grad()
def attention() -> torch.Tensor:
    """Attention of the second double block at the second step, mean of the heads: (tokens, tokens), each row adds up to 1."""
    pipe, recorded = run()
    parts, given = block_parts(pipe.transformer.transformer_blocks[1]), recorded.find(BLOCK, step=2)[0].kept.inputs
    tokens = {"text": given["encoder_hidden_states"], "picture": given["hidden_states"]}
    projected = []
    for stream, x in tokens.items():
        shift, scale, *_ = parts[stream]["modulation"](given["temb"])
        projected.append(parts[stream]["qkv"]((1 + scale) * parts[stream]["norm"](x) + shift))
    q, k = (parts["rotate"](torch.cat([t, p], dim=1), *given["image_rotary_emb"]).transpose(1, 2)
            for t, p in list(zip(*projected, strict=True))[:2])
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1).mean(1)[0]


def levels(tokens: int) -> str:
    """The noise levels of four steps for a picture of so many tokens, as FLUX's pipeline asks its scheduler for them."""
    from diffusers.pipelines.flux.pipeline_flux import calculate_shift

    scheduler = type(run()[0].scheduler).from_config(run()[0].scheduler.config)
    scheduler.set_timesteps(sigmas=[1 - k / STEPS for k in range(STEPS)], mu=calculate_shift(tokens))
    return ", ".join(f"{s:.2f}" for s in scheduler.sigmas.tolist()[:-1]) + ", 0"


def score_mib(side: int, text: int, heads: int, item: int) -> float:
    """MiB of one attention's scores for a square picture."""
    return heads * ((side // 16) ** 2 + text) ** 2 * item / 2**20


def numbers() -> dict[str, str]:
    """Every number of the handbook's section that is not cited, as it stands in the text."""
    pipe, recorded = run()
    into = recorded["transformer"].inputs["hidden_states"].shape
    config = pipe.transformer.config
    seen = attention()
    return {
        "tokens of the bundled model": f"{into[1]} tokens of {into[2]} numbers",
        "tokens at 1024": f"{(1024 // 16) ** 2:,} tokens",
        "tokens at 2048": f"{(2048 // 16) ** 2:,}",
        "blocks": f"{config.num_layers} double and {config.num_single_layers} single",
        "share of the text that the picture reads": f"{float(seen[TEXT:, :TEXT].sum(1).mean()):.0%}",
        "scores at 1024": f"{score_mib(1024, 512, 24, 2):,.0f} MiB",
        "scores at 2048": f"{score_mib(2048, 512, 24, 2) / 1024:.1f} GiB",
        "levels at 128": levels(64),
        "levels at 1024": levels(4096),
    }


def draw(path: Path) -> None:
    """One attention over text and picture, from a run; the quarters have names."""
    seen = attention()
    fig, axis = plt.subplots(figsize=(6.4, 5.4))
    shown = axis.imshow(seen.clamp(max=float(seen.flatten().quantile(0.97))).numpy(), cmap="Blues", interpolation="nearest")
    shown.set_rasterized(True)
    for line in (axis.axhline, axis.axvline):
        line(TEXT - 0.5, color=ACCENT, lw=1.5)
    middle, end = (TEXT - 1) / 2, len(seen)
    ticks = [middle, TEXT + (end - TEXT - 1) / 2]
    axis.set_xticks(ticks, [f"{TEXT} text tokens", f"{end - TEXT} picture tokens"])
    axis.set_yticks(ticks, ["text asks", "picture asks"], rotation=90, va="center")
    axis.tick_params(length=0)
    axis.set_xlabel("key: the token that is looked at")
    axis.set_ylabel("query: the token that looks")
    axis.set_title("Text and picture stand in one attention", loc="left", fontsize=11, fontweight="bold")
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab07-attention.svg")
    for name, value in numbers().items():
        print(f"{name:40s} {value}")
