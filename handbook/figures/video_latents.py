"""Makes the diagram and the numbers of the handbook's section on video latents, from real runs of the bundled model.

    python handbook/figures/video_latents.py    writes handbook/figures/lab20-reach.svg, prints the numbers
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import matplotlib
import torch

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.colors import ListedColormap, LogNorm

from inferlab.lab.plots.style import save_svg
from inferlab.models import load_pipeline
from inferlab.models.clips import render_clips, sample_clips
from inferlab.trace import trace

HERE = Path(__file__).parent
FRAMES, SIDE = 33, 96


@cache
def pipeline():
    """The bundled video pipeline, on the CPU."""
    return load_pipeline("bundled", "cpu", family="wan")


@cache
@torch.no_grad()
def reach() -> tuple[torch.Tensor, torch.Tensor]:
    """How much each frame changes, in levels of 255, when one latent frame becomes another clip's: twice (latents, frames).

    First what the VAE alone does with it; then the same changes in noise, which goes through one call of the transformer before.
    """
    pipe = pipeline()
    clips = render_clips(sample_clips(2, torch.Generator().manual_seed(5))) * 2 - 1
    there_and_back = torch.cat([clips, clips.flip(2)[:, :, 1:]], 2)
    mine, others = pipe.vae.encode(there_and_back).latent_dist.mode()
    noise, other_noise = torch.randn(2, *mine.shape, generator=torch.Generator().manual_seed(0))
    words, _ = pipe.encode_prompt("a red circle moves left on a white background", do_classifier_free_guidance=False,
                                  max_sequence_length=16)
    mean, std = (torch.tensor(v).view(1, -1, 1, 1, 1) for v in (pipe.vae.config.latents_mean, pipe.vae.config.latents_std))

    def guess(state: torch.Tensor) -> torch.Tensor:
        """The clip that one call of the transformer sees in pure noise."""
        velocity = pipe.transformer(state[None], torch.tensor([999.0]), words, return_dict=False)[0]
        return pipe.vae.decode((state[None] - velocity) * std + mean).sample[0]

    found = []
    for decode, state, foreign in ((lambda z: pipe.vae.decode(z[None]).sample[0], mine, others), (guess, noise, other_noise)):
        plain, rows = decode(state), []
        for j in range(state.shape[1]):
            other = state.clone()
            other[:, j] = foreign[:, j]
            rows.append((decode(other) - plain).abs().mean((0, 2, 3)) * 127.5)
        found.append(torch.stack(rows))
    return found[0], found[1]


@cache
@torch.no_grad()
def decoded(frames: int) -> tuple[int, int]:
    """(bytes of the largest output of one of its layers, bytes that the cache holds at the end) of a clip."""
    vae = pipeline().vae
    kept: list[int] = []
    clear = vae.clear_cache

    def noting() -> None:
        kept.append(sum(slot.nbytes for slot in getattr(vae, "_feat_map", ()) if isinstance(slot, torch.Tensor)))
        clear()

    vae.clear_cache = noting
    with trace(vae, depth="decoder*") as run:
        vae.decode(torch.zeros(1, 16, 1 + (frames - 1) // 4, SIDE // 8, SIDE // 8))
    del vae.clear_cache
    inside = [b.bytes_out for b in run.boundaries if b.name.startswith("decoder")]
    return max(inside), kept[-1]


@cache
@torch.no_grad()
def published() -> int:
    """Bytes of the largest output of a layer of Wan 2.1's decoder at 480x832 in 32 bits: shapes only, no numbers."""
    from diffusers import AutoencoderKLWan

    with torch.device("meta"):
        vae = AutoencoderKLWan()
        with trace(vae, depth="decoder*") as run:
            vae.decode(torch.zeros(1, 16, 2, 60, 104))
    return max(b.bytes_out for b in run.boundaries if b.name.startswith("decoder"))


def tokens(frames: int, height: int, width: int) -> int:
    """Tokens of a clip."""
    return (1 + (frames - 1) // 4) * (height // 16) * (width // 16)


def numbers() -> dict[str, str]:
    """Every number of the handbook's section that is not cited, as it stands in the text."""
    wan = tokens(81, 480, 832)
    largest, kept = decoded(17)
    assert (largest, kept) == decoded(29), "neither grows with the clip"
    return {
        "tokens of 81 frames of 480x832": f"{wan:,} tokens",
        "their scores, 12 heads of 16 bits": f"{12 * wan**2 * 2 / 2**30:.1f} GiB",
        "largest tensor": f"{largest / 2**20:.1f} MiB",
        "cache": f"{kept / 2**20:.1f} MiB",
        "largest tensor of Wan 2.1 at 480x832": f"{published() / 2**30:.1f} GiB",
    }


def draw(path: Path) -> None:
    """Which frames change with which latent frame: the VAE's staircase, and the transformer's full square."""
    fig, axes = plt.subplots(2, 1, figsize=(6.6, 4.6), sharex=True)
    shades = ListedColormap(plt.get_cmap("Blues")(torch.linspace(0.2, 1, 256).numpy()))  # so that white is no change
    titles = ("The VAE's decoder: this frame and later ones", "Transformer, then decoder: every frame")
    for axis, seen, title, what in zip(axes, reach(), titles, ("latent frame", "noise of latent frame"), strict=True):
        shown = axis.imshow(seen.where(seen > 0, torch.nan).numpy(), cmap=shades, norm=LogNorm(0.05, 60, clip=True),
                            aspect="auto", interpolation="nearest")
        shown.set_rasterized(True)
        axis.set_yticks(range(0, len(seen), 2))
        axis.set_ylabel(f"{what}\nthat is changed")
        axis.set_title(title, loc="left", fontsize=11, fontweight="bold")
        for edge in range(0, FRAMES, 4):
            axis.axvline(edge + 0.5, color="0.8", lw=0.6)
    axes[1].set_xticks(range(0, FRAMES, 4))
    axes[1].set_xlabel("frame of the clip; grey lines: a decoder call ends")
    fig.colorbar(shown, ax=axes, label="mean change, in levels of 255", fraction=0.05)
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab20-reach.svg")
    for name, value in numbers().items():
        print(f"{name:40s} {value}")
