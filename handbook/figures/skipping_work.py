"""Makes the diagram and the numbers of the handbook's section on skipped work, from runs of the bundled model.

    python handbook/figures/skipping_work.py             writes handbook/figures/lab21-steps.svg, prints the numbers
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import matplotlib
import torch
from diffusers import FirstBlockCacheConfig

matplotlib.use("svg")
from matplotlib import pyplot as plt

from inferlab.lab.kits.pipelines.step_cache import skipping
from inferlab.lab.plots.style import save_svg
from inferlab.models import load_pipeline
from inferlab.trace import trace

HERE = Path(__file__).parent
STEPS, THRESHOLDS = 10, (0.15, 0.2, 0.3, 0.5)
PROMPTS = ("a green circle above a red square", "a yellow triangle")


@cache
def runs() -> tuple[dict[int, float], dict[str, dict[float, tuple[list[int], float]]]]:
    """The error of one skipped step, by step; for each prompt and threshold the whole steps and the error."""
    pipe = load_pipeline("bundled", "cpu", family="flux")
    pipe.set_progress_bar_config(disable=True)
    network = pipe.transformer

    def draw(prompt: str) -> torch.Tensor:
        with torch.no_grad():
            return pipe(prompt, num_inference_steps=STEPS, max_sequence_length=64, output_type="latent",
                        generator=torch.Generator().manual_seed(0)).images

    full = {prompt: draw(prompt) for prompt in PROMPTS}

    def error(got: torch.Tensor, prompt: str) -> float:
        return float((got - full[prompt]).norm() / full[prompt].norm())

    one = {}
    for step in range(2, STEPS + 1):
        with skipping(network, {step}):
            one[step] = error(draw(PROMPTS[0]), PROMPTS[0])
    found: dict[str, dict[float, tuple[list[int], float]]] = {prompt: {} for prompt in PROMPTS}
    for prompt in PROMPTS:
        for threshold in THRESHOLDS:
            network.enable_cache(FirstBlockCacheConfig(threshold=threshold))
            with trace(pipe, depth="transformer.transformer_blocks.1.attn") as run:
                got = draw(prompt)
            network.disable_cache()
            whole = [b.step for b in run.find("transformer.transformer_blocks.1.attn")]
            found[prompt][threshold] = whole, error(got, prompt)
    return one, found


def numbers() -> dict[str, str]:
    """Every number of the handbook's section, as it stands in the text."""
    one, found = runs()
    made = {
        "error of step 2 skipped": f"{one[2]:.3f}",
        "cheapest": f"{min(one.values()):.3f}",
        "error of the last step skipped": f"{one[STEPS]:.3f}",
        "bytes, FLUX.1-dev": f"{(3 * 4096 + 2 * 512) * 3072 * 2 / 2**20:.0f} MiB",
    }
    for prompt, rows in found.items():
        for threshold, (whole, error) in rows.items():
            if threshold in (0.2, 0.3):
                made[f"{prompt}, {threshold}"] = f"{len(whole)} whole steps, error {error:.3f}"
    return made


def draw(path: Path) -> None:
    """Two panels: the error of one skipped step over the steps, and which steps each threshold left whole."""
    one, found = runs()
    fig, (curve, grid) = plt.subplots(1, 2, figsize=(10, 3.9), width_ratios=(1, 1.35))
    curve.plot(list(one), list(one.values()), "o-", color="#1b3a5c")
    curve.set(xlabel="the one step that was skipped", ylabel="error of the last latents", yscale="log",
              xticks=range(2, STEPS + 1))
    curve.set_title("The middle is cheap, the last step is not", loc="left", fontsize=11, fontweight="bold")
    rows = [(f"{threshold}", *found[prompt][threshold], color) for threshold in THRESHOLDS
            for prompt, color in zip(PROMPTS, ("#1b3a5c", "#d55e00"), strict=True)]
    for height, (_, whole, error, color) in enumerate(reversed(rows)):
        for step in range(1, STEPS + 1):
            grid.add_patch(plt.Rectangle((step - 0.42, height - 0.36), 0.84, 0.72, edgecolor=color, lw=1,
                                         facecolor=color if step in whole else "none"))
        grid.text(STEPS + 0.75, height, f"{error:.3f}", va="center", color=color, fontsize=9)
    grid.text(STEPS + 0.75, len(rows) - 0.2, "error", fontsize=9)
    grid.set(xlim=(0.3, STEPS + 2), ylim=(-0.7, len(rows) + 0.2), xticks=range(1, STEPS + 1), xlabel="step",
             ylabel="threshold", yticks=range(len(rows)))
    grid.set_yticklabels([label for label, *_ in reversed(rows)])
    grid.set_title("Filled: all blocks ran", loc="left", fontsize=11, fontweight="bold")
    grid.tick_params(length=0)
    for axis in (curve, grid):
        axis.spines[["top", "right"]].set_visible(False)
    fig.tight_layout()
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab21-steps.svg")
    for name, value in numbers().items():
        print(f"{name:44s} {value}")
