"""Pipelines with one fault that raises nothing, for the lab that asks a learner to find it in a trace: nine variants."""

from __future__ import annotations

import copy

import torch

from .faults import _optional
from .identity import scattered

FAULTS = ("dtype/text_encoder", "dtype/unet", "dtype/vae", "shape/tokenizer", "shape/latents", "shape/vae",
          "loop/early", "loop/sparse", "loop/twice")
TOKENS = 12


def damaged(pipe, variant: int):
    """A pipeline of the same class with one component damaged; ``pipe`` itself and its weights are left as they were.

    Args:
        pipe: a ``StableDiffusionPipeline`` in float32 on the CPU.
        variant: 0 to 8, which fault. Each belongs to one of three kinds: tensors of another dtype, tensors of another
            shape, a loop of another length.

    Returns:
        A pipeline that runs without an error; what it shares with ``pipe`` is everything but the damaged component.

    Raises:
        ValueError: if the variant does not exist, or ``pipe`` is not in float32.
    """
    faults = scattered(FAULTS)
    if not 0 <= variant < len(faults):
        raise ValueError(f"variant is 0 to {len(faults) - 1}, not {variant}")
    if pipe.unet.dtype != torch.float32:
        raise ValueError(f"start from a pipeline in float32: this one is in {pipe.unet.dtype}")
    fault = faults[variant]
    parts = dict(pipe.components)
    if fault == "shape/latents":
        broken = _pipeline(pipe, parts)
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
        "loop/twice": ("scheduler", lambda part: _cut(part, lambda timesteps: timesteps.repeat_interleave(2))),
    }[fault]
    parts[name] = copy.deepcopy(parts[name])
    mend(parts[name])
    return _pipeline(pipe, parts)


def _pipeline(pipe, parts: dict):
    broken = type(pipe)(**parts, **_optional(pipe))
    broken.set_progress_bar_config(disable=True)
    return broken


def _lower(module, args, output):
    """A forward hook: every floating tensor that comes out is rounded to bfloat16."""
    if isinstance(output, torch.Tensor):
        return output.to(torch.bfloat16)
    if isinstance(output, tuple):
        return tuple(value.to(torch.bfloat16) for value in output)
    for key, value in output.items():
        if isinstance(value, torch.Tensor):
            output[key] = value.to(torch.bfloat16)
    return output


def _cropped(module, args, output):
    """A forward hook: the lower half of the picture is lost."""
    return output[..., : output.shape[-2] // 2, :]


def _cut(scheduler, keep) -> None:
    """Give the scheduler a ``set_timesteps`` that keeps something else than it computed."""
    base = type(scheduler)
    inner = base.set_timesteps

    def set_timesteps(self, num_inference_steps, device=None):
        previous = self.timesteps  # kept until the end: a trace tells new tensors from old ones by their identity
        inner(self, num_inference_steps, device=device)
        self.timesteps = keep(self.timesteps)
        del previous

    scheduler.__class__ = type(base.__name__, (base,), {"__module__": base.__module__, "set_timesteps": set_timesteps})
