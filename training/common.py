"""What both training stages share: drawing on the device, the learning rate, and checkpoints that survive a
kill."""

from __future__ import annotations

import argparse
import copy
import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import torch

from inferlab.models.quiet import quiet
from inferlab.models.scenes import SceneBatch, sample_scenes

P = TypeVar("P", bound=Any)  # a dataclass that decides what a run makes


def generator(device: str, seed: int) -> torch.Generator:
    return torch.Generator(device).manual_seed(seed)


def compute_dtype(device: str) -> torch.dtype:
    """bfloat16 on a GPU, float32 on a CPU."""
    return torch.bfloat16 if device.startswith("cuda") else torch.float32


def run_parser(what: str) -> argparse.ArgumentParser:
    """A parser of what every command that trains is told; the first line of ``what`` describes it."""
    parser = argparse.ArgumentParser(description=what.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of the run: checkpoints, weights, figures"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--minutes", type=float, help="train no longer than this")
    return parser


def read_plan(
    parser: argparse.ArgumentParser, plan: type[P], arguments: list[str] | None
) -> tuple[argparse.Namespace, P]:
    """(all options, the plan): each field of the dataclass ``plan`` is an option with its default."""
    defaults = asdict(plan())
    for name, value in defaults.items():
        kind = (lambda text: text == "True") if isinstance(value, bool) else type(value)
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=value, help=f"default: {value}")
    options = parser.parse_args(arguments)
    return options, plan(**{name: getattr(options, name) for name in defaults})


def rate_at(step: int, steps: int, peak: float, warm: int) -> float:
    """Linear warm-up over ``warm`` steps, then a cosine down to one hundredth of ``peak``."""
    if step < warm:
        return peak * (step + 1) / warm
    done = (step - warm) / max(1, steps - warm)
    return peak * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done)))


class Learner:
    """A model's weights three times: float32 for AdamW, the compute dtype for the passes, and a float32
    moving average.

    ``model`` is the float32 one; run the passes on ``copy``. Normalization runs in bfloat16 there, which
    autocast would not do, and that halves a step's time.
    """

    def __init__(self, model: torch.nn.Module, device: str, decay: float):
        self.model, self.decay, self.step = model, decay, 0
        with quiet():  # diffusers warns about a plain cast, for the sake of modules that these models lack
            self.copy = copy.deepcopy(model).to(compute_dtype(device)).train()
        self.average = copy.deepcopy(model).eval().requires_grad_(False)
        self.adam = torch.optim.AdamW(
            model.parameters(), lr=0.0, betas=(0.9, 0.99), weight_decay=0.01, fused=device.startswith("cuda"),
        )

    @torch.no_grad()
    def update(self, rate: float) -> None:
        """One step from the gradients on ``copy``: clip, AdamW, refresh the copy, move the average."""
        masters, copies = list(self.model.parameters()), list(self.copy.parameters())
        for master, low in zip(masters, copies):
            master.grad = None if low.grad is None else low.grad.to(master.dtype)
            low.grad = None
        torch.nn.utils.clip_grad_norm_(masters, 1.0)
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.step()
        torch._foreach_copy_(copies, masters)
        decay = min(self.decay, (1 + self.step) / (10 + self.step))  # early on the average follows faster
        torch._foreach_lerp_(list(self.average.parameters()), masters, 1 - decay)
        self.step += 1

    def save(self, path: Path) -> None:
        """Writes beside the old file, then replaces it, so that a kill leaves one whole checkpoint."""
        state = {"model": self.model.state_dict(), "average": self.average.state_dict(),
                 "adam": self.adam.state_dict(), "step": self.step}
        torch.save(state, path.with_suffix(".new"))
        os.replace(path.with_suffix(".new"), path)

    def resume(self, path: Path, device: str) -> None:
        """Goes on from ``path`` if it is there."""
        if path.exists():
            state = torch.load(path, map_location=device, weights_only=True)
            self.model.load_state_dict(state["model"])
            self.copy.load_state_dict(state["model"])
            self.average.load_state_dict(state["average"])
            self.adam.load_state_dict(state["adam"])
            self.step = state["step"]


class Scenes:
    """An endless supply of training scenes: drawn many at a time, handed out in slices."""

    sample = staticmethod(sample_scenes)

    def __init__(self, source: torch.Generator, block: int = 8192, two: float = 0.6):
        self.source, self.block, self.two, self.batch, self.at = source, block, two, None, 0

    def take(self, n: int) -> SceneBatch:
        if self.batch is None or self.at + n > len(self.batch):
            self.batch, self.at = self.sample(max(n, self.block), self.source, two=self.two), 0
        self.at += n
        return self.batch[self.at - n:self.at]
