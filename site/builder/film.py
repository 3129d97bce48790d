"""Draws a picture with the bundled model while the site is built, and writes a sentence with the bundled
language model; keeps what stands in the latents at every step, and in the cache after every token."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from inferlab.models import language, pictures

from .digests import digest

CAPTION = "a large red circle left of a small blue square"
STEPS, SEED, GUIDANCE = 10, 7, 4.0
PROMPT = "Scene: a large red circle, a small blue square and a small green ring. Then the"
NEW, BEST = 9, 5
LAYER, HEAD = 5, 0
"""Whose part of the cache is shown."""
LOW, ZERO, HIGH = ((90, 169, 240), (20, 27, 38), (255, 155, 87))
"""Colors of a number from -2.2 standard deviations through 0 to 2.2."""


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


@dataclass(frozen=True)
class Sentence:
    """A run in words.

    Attributes:
        prompt: its tokens.
        calls: for each call of the model, the likeliest next tokens and their probabilities; the first one is
            taken.
        columns: of the cache's picture, one for each token that went in.
        layers: of the model.
        bytes_per_token: that the whole cache grows by.
    """

    prompt: list[str]
    calls: list[list[tuple[str, float]]]
    columns: int
    layers: int
    bytes_per_token: int


def film(cache: Path, folder: Path) -> Film:
    """The run's pictures in `folder`: `latents-0.png` ... and `guess-0.webp` ...; made once for these
    weights.

    Args:
        cache: where they are kept between builds.
        folder: where the site's pages find them; made by this.
    """
    return Film(**_kept(cache / f"film-{digest(Path(__file__), pictures.WEIGHTS)}", _draw, folder))


def sentence(cache: Path, folder: Path) -> Sentence:
    """The run in words, and `cache.png` in `folder`; made once for these weights. For `cache` and `folder`
    see `film`."""
    return Sentence(**_kept(cache / f"sentence-{digest(Path(__file__), language.WEIGHTS)}", _write, folder))


def _kept(kept: Path, run: Callable[[Path], Film | Sentence], folder: Path) -> dict[str, Any]:
    """What `run` made, now or in an earlier build; its pictures lie in `folder` then."""
    if not (kept / "made.json").exists():
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        made = run(kept)
        (kept / "made.json").write_text(json.dumps(made.__dict__), "utf-8")
    shutil.copytree(kept, folder, ignore=shutil.ignore_patterns("made.json"), dirs_exist_ok=True)
    return json.loads((kept / "made.json").read_text("utf-8"))


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


def _draw(folder: Path) -> Film:
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


def _write(folder: Path) -> Sentence:
    from transformers import DynamicCache

    model, tokenizer = language.load_language_model("bundled", "cpu")
    ids = tokenizer(PROMPT, return_tensors="pt").input_ids
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        made = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=NEW,
            do_sample=False,
            output_scores=True,
            return_dict_in_generate=True,
            **language.cache_argument(cache),
        )
    calls = []
    for scores in made.scores:
        best = scores[0].softmax(-1).topk(BEST)
        calls.append([(tokenizer.decode([one]), round(float(p), 4)) for p, one in zip(*best, strict=True)])
    keys, values = (part[0, HEAD].T for part in (cache.layers[LAYER].keys, cache.layers[LAYER].values))
    between = torch.zeros(2, keys.shape[1])
    _colored(torch.cat([keys / keys.std(), between, values / values.std()])).save(
        folder / "cache.png", optimize=True
    )
    parts = [part for layer in cache.layers for part in (layer.keys, layer.values)]
    held = sum(part.numel() * part.element_size() for part in parts)
    columns = keys.shape[1]
    prompt = [tokenizer.decode([one]) for one in ids[0]]
    return Sentence(prompt, calls, columns, len(cache.layers), held // columns)


def _colored(values: torch.Tensor) -> Image.Image:
    """(height, width) in standard deviations as a picture."""
    share = (values / 2.2).clamp(-1, 1)[None]
    low, zero, high = (torch.tensor(color)[:, None, None] / 255 for color in (LOW, ZERO, HIGH))
    return _picture(zero + share.clamp(min=0) * (high - zero) - share.clamp(max=0) * (low - zero))


def _picture(values: torch.Tensor) -> Image.Image:
    """(3, height, width) in [0, 1] as a picture."""
    return Image.fromarray((values.permute(1, 2, 0) * 255).round().to(torch.uint8).numpy())
