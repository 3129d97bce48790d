"""Pipelines with a fault inside, for the labs that ask a learner to find it: a different one for each variant."""

from __future__ import annotations

import copy
from itertools import permutations

import torch

from .identity import scattered

PREDICTION_TYPES = ("epsilon", "sample", "v_prediction")


def mislabeled(pipe, variant: int):
    """A pipeline whose network predicts one thing while its scheduler expects another.

    The network is ``pipe``'s own, with its output rewritten as noise, clean sample or velocity, so it is exactly as
    good as before; only the label in the scheduler's config is wrong. ``pipe`` itself is left as it was.

    Args:
        pipe: a pipeline with a ``unet`` that predicts epsilon and a DDIM-like scheduler with ``alphas_cumprod``.
        variant: 0 to 5, which (network, scheduler) pair of different prediction types.

    Returns:
        A pipeline of the same class that shares every other component with ``pipe``.

    Raises:
        ValueError: if the variant does not exist, or ``pipe`` does not predict epsilon.
    """
    pairs = scattered(permutations(PREDICTION_TYPES, 2), "/".join)
    if not 0 <= variant < len(pairs):
        raise ValueError(f"variant is 0 to {len(pairs) - 1}, not {variant}")
    if pipe.scheduler.config.prediction_type != "epsilon":
        raise ValueError("start from a pipeline that predicts epsilon: its scheduler's prediction_type says otherwise")
    predicts, expects = pairs[variant]
    unet = copy.deepcopy(pipe.unet)
    unet.register_forward_hook(_rewriter(predicts, pipe.scheduler.alphas_cumprod.clone()), with_kwargs=True)
    scheduler = type(pipe.scheduler).from_config(pipe.scheduler.config, prediction_type=expects)
    broken = type(pipe)(**{**pipe.components, "unet": unet, "scheduler": scheduler}, **_optional(pipe))
    broken.set_progress_bar_config(disable=True)
    return broken


def _optional(pipe) -> dict:
    """Constructor arguments of a pipeline that are no components."""
    return {"requires_safety_checker": False} if "safety_checker" in pipe.components else {}


def _rewriter(predicts: str, alphas_cumprod: torch.Tensor):
    """A forward hook that turns predicted noise into ``predicts``, at the call's own timestep."""

    def rewrite(module, args, kwargs, output):
        sample = args[0] if args else kwargs["sample"]
        t = args[1] if len(args) > 1 else kwargs["timestep"]
        alpha = alphas_cumprod[torch.as_tensor(t).cpu()].to(sample.device, sample.dtype)
        alpha = alpha.reshape(-1, *[1] * (sample.ndim - 1))
        noise = output[0] if isinstance(output, tuple) else output.sample
        clean = (sample - (1 - alpha) ** 0.5 * noise) / alpha**0.5
        wanted = {"epsilon": noise, "sample": clean, "v_prediction": alpha**0.5 * noise - (1 - alpha) ** 0.5 * clean}
        if isinstance(output, tuple):
            return (wanted[predicts], *output[1:])
        output.sample = wanted[predicts]
        return output

    return rewrite
