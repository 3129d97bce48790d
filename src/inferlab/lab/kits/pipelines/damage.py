"""Pipelines with one of nine faults that raise nothing, for the lab that finds them in a trace."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from inferlab.lab.identity import of_variant

from .mislabeled import rebuilt

FAULTS = ("dtype/text_encoder", "dtype/unet", "dtype/vae", "shape/tokenizer", "shape/latents", "shape/vae",
          "loop/early", "loop/sparse", "loop/twice")
TOKENS = 12


def damaged(pipe: Any, variant: int) -> Any:
    """A pipeline of the same class with one damaged component; ``pipe`` and its weights stay as they were.

    Args:
        pipe: a ``StableDiffusionPipeline`` in float32 on the CPU.
        variant: 0 to 8, which fault. Each belongs to one of three kinds: tensors of another dtype, tensors of
            another shape, a loop of another length.

    Returns:
        A pipeline that runs without an error; what it shares with ``pipe`` is everything but the damaged
        component.

    Raises:
        ValueError: if the variant does not exist, or ``pipe`` is not in float32.
    """
    fault = of_variant(variant, FAULTS)
    if pipe.unet.dtype != torch.float32:
        raise ValueError(f"start from a pipeline in float32: this one is in {pipe.unet.dtype}")
    parts = dict(pipe.components)
    if fault == "shape/latents":
        broken = rebuilt(pipe, parts)
        broken.vae_scale_factor *= 2
        return broken
    name, mend = {
        "dtype/text_encoder": ("text_encoder", lambda part: part.register_forward_hook(_lower)),
        "dtype/unet": ("unet", lambda part: part.register_forward_hook(_lower)),
        "dtype/vae": ("vae", lambda part: part.decoder.register_forward_hook(_lower)),
        "shape/tokenizer": ("tokenizer", lambda part: setattr(part, "model_max_length", TOKENS)),
        "shape/vae": ("vae", lambda part: part.decoder.register_forward_hook(_cropped)),
        "loop/early": ("scheduler", lambda part: _cut(part, lambda timesteps: timesteps[:-1])),
        "loop/sparse": ("scheduler", lambda part: _cut(part, lambda timesteps: timesteps[::2])),
        "loop/twice": ("scheduler",
                       lambda part: _cut(part, lambda timesteps: timesteps.repeat_interleave(2))),
    }[fault]
    parts[name] = copy.deepcopy(parts[name])
    mend(parts[name])
    return rebuilt(pipe, parts)


def _lower(module: torch.nn.Module, args: tuple, output: Any) -> Any:
    """A forward hook: every floating tensor that comes out is rounded to bfloat16."""
    if isinstance(output, torch.Tensor):
        return output.to(torch.bfloat16)
    if isinstance(output, tuple):
        return tuple(value.to(torch.bfloat16) for value in output)
    for key, value in output.items():
        if isinstance(value, torch.Tensor):
            output[key] = value.to(torch.bfloat16)
    return output


def _cropped(module: torch.nn.Module, args: tuple, output: Any) -> Any:
    """A forward hook: the lower half of the picture is lost."""
    return output[..., : output.shape[-2] // 2, :]


def _cut(scheduler: Any, keep: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Give the scheduler a ``set_timesteps`` that keeps something else than it computed."""
    base = type(scheduler)
    inner = base.set_timesteps

    def set_timesteps(self: Any, num_inference_steps: int, device: Any = None) -> None:
        # kept until the end: a trace tells new tensors from old ones by their identity
        previous = self.timesteps
        inner(self, num_inference_steps, device=device)
        self.timesteps = keep(self.timesteps)
        del previous

    scheduler.__class__ = type(base.__name__, (base,), {"__module__": base.__module__,
                                                        "set_timesteps": set_timesteps})
