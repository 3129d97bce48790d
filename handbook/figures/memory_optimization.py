"""Makes the diagram and the numbers of the handbook's section on memory optimization.

    python handbook/figures/memory_optimization.py            writes handbook/figures/lab10-knobs.svg, prints the numbers
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle

from inferlab.lab.plots.style import save_svg

HERE = Path(__file__).parent
SD_CHANNELS = 256
"""Channels that enter the last block of Stable Diffusion's decoder: block_out_channels[1] of (128, 256, 512, 512)."""


def decode_bytes(batch: int, side: int, value_bytes: int = 2, channels: int = SD_CHANNELS) -> int:
    """Bytes of the three widest maps of one decoder pass over pictures of side x side pixels."""
    return 3 * batch * channels * side * side * value_bytes


def tile_starts(side: int, tile: int = 64, overlap: float = 0.25) -> list[int]:
    """Where the tiles of AutoencoderKL begin along one axis of `side` latents."""
    return list(range(0, side, int(tile * (1 - overlap))))


def overlap_work(side: int, tile: int = 64) -> float:
    """Latents that all tiles decode together, as a multiple of the latents there are."""
    return (sum(min(tile, side - at) for at in tile_starts(side, tile)) / side) ** 2


def numbers() -> dict[str, str]:
    """Every computed number of the handbook's section, as it stands in the text."""
    return {
        "two pictures of 2048": f"{decode_bytes(2, 2048) / 1e9:.1f} GB",
        "one picture of 2048": f"{decode_bytes(1, 2048) / 1e9:.1f} GB",
        "two tiles of 512": f"{decode_bytes(2, 512) / 1e9:.1f} GB",
        "tiles of a 2048 picture": f"{len(tile_starts(256)) ** 2} tiles",
        "work with overlaps": f"{overlap_work(256):.2f} times",
    }


def draw(path: Path) -> None:
    """What one decoder pass takes of a batch of two latents: everything, one picture, one tile of both."""
    fig, axes = plt.subplots(1, 3, figsize=(7.6, 2.5))
    for axis, title in zip(axes, ("plain: all of it", "slicing: one picture", "tiling: one tile, both pictures"), strict=True):
        for layer, (shift, name) in enumerate(((0.45, "picture 2"), (0.0, "picture 1"))):
            taken = title.startswith("plain") or (title.startswith("slicing") and name == "picture 1")
            axis.add_patch(Rectangle((shift, shift), 2, 2, fc="#5b8db8" if taken else "white", ec="#1b3a5c", lw=1.3,
                                     zorder=3 * layer + 1))
            if title.startswith("tiling"):
                for at in (0.5, 1.0, 1.5):
                    axis.plot([shift, shift + 2], [shift + at] * 2, color="0.75", lw=0.8, zorder=3 * layer + 2)
                    axis.plot([shift + at] * 2, [shift, shift + 2], color="0.75", lw=0.8, zorder=3 * layer + 2)
                axis.add_patch(Rectangle((shift, shift + 1.34), 0.66, 0.66, fc="#d55e00", ec="#1b3a5c", lw=1.3, hatch="//",
                                         zorder=3 * layer + 3))
        axis.set(xlim=(-0.1, 2.6), ylim=(-0.1, 2.6), aspect="equal")
        axis.set_title(title, loc="left", fontsize=10, fontweight="bold")
        axis.set_axis_off()
    fig.tight_layout()
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab10-knobs.svg")
    for name, value in numbers().items():
        print(f"{name:26s} {value}")
