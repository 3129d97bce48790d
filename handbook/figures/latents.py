"""Makes the pictures and the numbers of the handbook's section on latents, from real runs of the bundled model.

    python handbook/figures/latents.py    writes handbook/figures/lab05-noise.svg, prints the numbers
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import matplotlib
import torch

matplotlib.use("svg")

from inferlab.lab.kits.pipelines.picture_rows import grid_of
from inferlab.lab.plots.style import save_svg
from inferlab.models import load_pipeline
from inferlab.models.full_size import VAE, XL_VAE
from inferlab.models.full_transformers import FLUX_VAE
from inferlab.models.scenes import render, sample_scenes

HERE = Path(__file__).parent
SIGMAS = (0.1, 0.5, 1.0, 2.0)
ROWS = ("VAE alone", "UNet, then VAE")


def seeded(seed: int) -> torch.Generator:
    """A generator of the CPU."""
    return torch.Generator().manual_seed(seed)


def psnr(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """How close two pictures in [-1, 1] are, in decibels."""
    return float(10 * torch.log10(4 / (found - wanted).square().mean()))


class Runs:
    """The bundled pipeline and the scenes that the numbers are about."""

    def __init__(self) -> None:
        self.pipe = load_pipeline("bundled", "cpu")
        self.vae, self.scale = self.pipe.vae, self.pipe.vae.config.scaling_factor
        scenes = sample_scenes(2, seeded(18), two=0.0)  # the two of the lab
        self.pictures = render(scenes) * 2 - 1
        self.text, _ = self.pipe.encode_prompt([one.caption for one in scenes.scenes()], "cpu", 1, False)
        self.said = self.vae.encode(self.pictures).latent_dist
        others = render(sample_scenes(16, seeded(1))) * 2 - 1
        self.measured = torch.cat([self.vae.encode(part).latent_dist.mode() for part in others.split(8)])
        self.noise = torch.randn(self.said.mean.shape, generator=seeded(0))  # the lab's

    def decoded(self, latents: torch.Tensor) -> torch.Tensor:
        """The pictures of a VAE's latents, in [-1, 1]."""
        return self.vae.decode(latents).sample.clamp(-1, 1)

    def noisy(self, sigma: float) -> dict[str, torch.Tensor]:
        """The first picture from `clean + sigma * noise`, without the UNet and after one answer of it."""
        table = self.pipe.scheduler.alphas_cumprod
        row = int((((1 - table) / table).sqrt() - sigma).abs().argmin())
        latents = self.said.mode()[:1] * self.scale + sigma * self.noise[:1]
        guess = latents - sigma * self.pipe.unet(table[row].sqrt() * latents, row, self.text[:1]).sample
        return {name: self.decoded(x / self.scale) for name, x in zip(ROWS, (latents, guess), strict=True)}


@cache
@torch.no_grad()
def runs() -> tuple[Runs, list[dict[str, torch.Tensor]]]:
    """(what all numbers share, the pictures of the grid by column)."""
    made = Runs()
    return made, [made.noisy(sigma) for sigma in SIGMAS]


@torch.no_grad()
def numbers() -> dict[str, str]:
    """Every number of the handbook's section that is not cited, as it stands in the text."""
    made, _ = runs()
    few, modes = made.pictures[:1], made.said.mode()[:1]
    spread = float(made.measured.std())
    return {
        "times fewer numbers": f"{few[0].numel() // modes[0].numel()} times fewer",
        "standard deviation": f"{spread:.2f}",
        "factor of these scenes": f"{1 / spread:.3f}",
        "factor": f"{made.scale}",
        "published factors": f"{VAE['scaling_factor']}, SDXL {XL_VAE['scaling_factor']}, "
                             f"FLUX {FLUX_VAE['scaling_factor']} with a shift of {FLUX_VAE['shift_factor']}",
    }


def draw(path: Path) -> None:
    """One picture at four noise levels of its latents: decoded as they are, and after the UNet's one answer."""
    made, columns = runs()
    wanted = made.pictures[:1]
    halves = {name: [torch.nn.functional.avg_pool2d(column[name] / 2 + 0.5, 2)[0] for column in columns] for name in ROWS}
    with matplotlib.rc_context({"image.interpolation": "none"}):  # the file keeps 64x64 pixels of each, of few colors
        fig = grid_of({name: [((one * 31).round() / 31).permute(1, 2, 0).numpy() for one in row]
                       for name, row in halves.items()},
                      [f"noise {sigma:g}" for sigma in SIGMAS],
                      {name: [f"{psnr(column[name], wanted):.1f} dB" for column in columns] for name in ROWS})
        save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab05-noise.svg")
    for name, value in numbers().items():
        print(f"{name:32} {value}")
