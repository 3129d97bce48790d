"""Pipelines with a fault inside, another for each variant, for the labs that ask to find it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import permutations
from typing import TYPE_CHECKING, Any

import torch

from inferlab.lab.identity import of_variant

if TYPE_CHECKING:
    from diffusers import DiffusionPipeline

PREDICTION_TYPES = ("epsilon", "sample", "v_prediction")


def mislabeled(pipe: DiffusionPipeline, variant: int) -> DiffusionPipeline:
    """A pipeline whose network predicts one thing while its scheduler expects another.

    The network is ``pipe``'s own, with its output rewritten as noise, clean sample or velocity, so it is
    exactly as good as before; only the label in the scheduler's config is wrong. ``pipe`` itself is left as
    it was.

    Args:
        pipe: a pipeline with a ``unet`` that predicts epsilon and a DDIM-like scheduler with
            ``alphas_cumprod``.
        variant: 0 to 5, which (network, scheduler) pair of different prediction types.

    Returns:
        A pipeline of the same class that shares every other component with ``pipe``.

    Raises:
        ValueError: if the variant does not exist, or ``pipe`` does not predict epsilon.
    """
    predicts, expects = of_variant(variant, permutations(PREDICTION_TYPES, 2), "/".join)
    if pipe.scheduler.config.prediction_type != "epsilon":
        raise ValueError("start from a pipeline that predicts epsilon: its scheduler's prediction_type says "
                         "otherwise")
    unet = copy.deepcopy(pipe.unet)
    unet.register_forward_hook(_rewriter(predicts, pipe.scheduler.alphas_cumprod.clone()), with_kwargs=True)
    scheduler = type(pipe.scheduler).from_config(pipe.scheduler.config, prediction_type=expects)
    return rebuilt(pipe, pipe.components | {"unet": unet, "scheduler": scheduler})


def rebuilt(pipe: DiffusionPipeline, parts: dict[str, Any]) -> DiffusionPipeline:
    """A pipeline of ``pipe``'s class with these components, without a progress bar."""
    checker = {"requires_safety_checker": False} if "safety_checker" in pipe.components else {}
    made = type(pipe)(**parts, **checker)
    made.set_progress_bar_config(disable=True)
    return made


def _rewriter(predicts: str, alphas_cumprod: torch.Tensor) -> Callable[..., Any]:
    """A forward hook that turns predicted noise into ``predicts``, at the call's own timestep."""

    def rewrite(module: torch.nn.Module, args: tuple, kwargs: dict[str, Any], output: Any) -> Any:
        sample = args[0] if args else kwargs["sample"]
        t = args[1] if len(args) > 1 else kwargs["timestep"]
        alpha = alphas_cumprod[torch.as_tensor(t).cpu()].to(sample.device, sample.dtype)
        alpha = alpha.reshape(-1, *[1] * (sample.ndim - 1))
        noise = output[0] if isinstance(output, tuple) else output.sample
        clean = (sample - (1 - alpha) ** 0.5 * noise) / alpha**0.5
        wanted = {"epsilon": noise, "sample": clean, "v_prediction": alpha**0.5 * noise - (1 - alpha) ** 0.5
                  * clean}
        if isinstance(output, tuple):
            return (wanted[predicts], *output[1:])
        output.sample = wanted[predicts]
        return output

    return rewrite
