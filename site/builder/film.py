"""Draws a picture with the bundled model while the site is built, and keeps what stands in its latents at
every step."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from inferlab.models.pictures import WEIGHTS

CAPTION = "a large red circle left of a small blue square"
STEPS, SEED, GUIDANCE = 10, 7, 4.0


@dataclass(frozen=True)
class Film:
    """A run in pictures.

    Attributes:
        caption: what was asked for.
        timesteps: of each step.
        shape: of the latents.
    """

    caption: str
    timesteps: list[int]
    shape: list[int]


def film(cache: Path, folder: Path) -> Film:
    """The run's pictures in `folder`: `latents-0.png` ... and `guess-0.webp` ...; made once for these
    weights.

    Args:
        cache: where they are kept between builds.
        folder: where the site's pages find them; made by this.
    """
    kept = cache / f"film-{_digest()}"
    if not (kept / "film.json").exists():
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        made = _run(kept)
        (kept / "film.json").write_text(json.dumps(made.__dict__), "utf-8")
    shutil.copytree(kept, folder, ignore=shutil.ignore_patterns("film.json"))
    return Film(**json.loads((kept / "film.json").read_text("utf-8")))


def _digest() -> str:
    """Of everything that the pictures follow from: the weights, and this file."""
    total = hashlib.sha256(Path(__file__).read_bytes())
    for path in sorted(WEIGHTS.rglob("*")):
        if path.is_file():
            total.update(path.read_bytes())
    return total.hexdigest()[:16]


@contextmanager
def _watched(scheduler: Any, seen: list[tuple[torch.Tensor, torch.Tensor]]) -> Iterator[None]:
    """Notes what goes into each step, and the clean latents that the step guesses; DDIM's step keeps no
    state."""
    step = scheduler.step

    def watching(noise: torch.Tensor, timestep: Any, latents: torch.Tensor, *args: Any, **more: Any) -> Any:
        guess = step(noise, timestep, latents, *args, **{**more, "return_dict": True}).pred_original_sample
        seen.append((latents, guess))
        return step(noise, timestep, latents, *args, **more)

    scheduler.step = watching
    try:
        yield
    finally:
        del scheduler.step


def _run(folder: Path) -> Film:
    from inferlab.models import load_pipeline

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    with torch.no_grad(), _watched(pipe.scheduler, seen):
        last = pipe(
            CAPTION,
            num_inference_steps=STEPS,
            guidance_scale=GUIDANCE,
            output_type="latent",
            generator=torch.Generator().manual_seed(SEED),
        ).images
        seen.append((last, last))
        for number, (latents, guess) in enumerate(seen):
            colors = ((latents[0, :3] + 3) / 6).clamp(0, 1)
            _picture(colors).save(folder / f"latents-{number}.png", optimize=True)
            pixels = pipe.vae.decode(guess / pipe.vae.config.scaling_factor).sample[0]
            _picture((pixels / 2 + 0.5).clamp(0, 1)).save(
                folder / f"guess-{number}.webp", quality=82, method=6
            )
    return Film(CAPTION, [int(t) for t in pipe.scheduler.timesteps], list(last.shape))


def _picture(values: torch.Tensor) -> Image.Image:
    """(3, height, width) in [0, 1] as a picture."""
    return Image.fromarray((values.permute(1, 2, 0) * 255).round().to(torch.uint8).numpy())
