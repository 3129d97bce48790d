"""FluxPipelines with one fault that changes values and no shape, for the lab that finds it in a trace."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from inferlab.lab.identity import of_variant
from inferlab.trace import trace

from .mislabeled import rebuilt

if TYPE_CHECKING:
    from diffusers import FluxPipeline

#: fault -> where it can first be seen
MISBUILT = {
    "rows and columns exchanged": "_prepare_latent_image_ids",
    "no positions": "_prepare_latent_image_ids",
    "positions of the picture first": "transformer.pos_embed",
    "streams exchanged": "transformer.transformer_blocks.0",
    "no shift": "scheduler.set_timesteps",
    "another base schedule": "scheduler.set_timesteps",
    "no pooled text": "transformer.time_text_embed",
    "patches unpacked in another order": "_unpack_latents",
}


def misbuilt(pipe: FluxPipeline, variant: int) -> FluxPipeline:
    """A pipeline of the same class with one fault inside; ``pipe`` itself and its weights stay as they were.

    Args:
        pipe: a ``FluxPipeline``; its transformer embeds guidance, its scheduler shifts dynamically.
        variant: 0 to 7, which of the faults in ``MISBUILT``.

    Returns:
        A pipeline that runs without an error and whose tensors have the healthy shapes, as long as a prompt
        has as many tokens as the picture. It shares with ``pipe`` all but the component that is at fault.

    Raises:
        ValueError: if the variant does not exist.
    """
    fault = of_variant(variant, MISBUILT)
    parts = dict(pipe.components)
    method: dict[str, Any] = {}
    if MISBUILT[fault].startswith("transformer"):
        parts["transformer"] = copy.deepcopy(pipe.transformer)
        _TRANSFORMER[fault](parts["transformer"])
    elif MISBUILT[fault].startswith("scheduler"):
        another = {"set_timesteps": _TIMESTEPS[fault]}
        parts["scheduler"] = of_own_class(copy.deepcopy(pipe.scheduler), another)
    else:
        own: Any = _METHODS[fault]
        method = {MISBUILT[fault]: staticmethod(own)}
    broken = rebuilt(pipe, parts)
    broken.default_sample_size = pipe.default_sample_size
    return of_own_class(broken, method)


WATCHED = ["_prepare_latent_image_ids", "scheduler.set_timesteps", "transformer.time_text_embed",
           "transformer.pos_embed", "transformer.transformer_blocks.*", "_unpack_latents"]

Place = TypeVar("Place")
#: one run's boundaries in order (by name, or by name and call), each with the tensors that came out of it
Values = list[tuple[Place, list[torch.Tensor]]]


def recorded(pipe: FluxPipeline) -> tuple[Any, Any, Values[str]]:
    """A run of four steps: its trace, which kept values, its picture, and what came out of each boundary."""
    with torch.no_grad(), trace(pipe, depth=WATCHED, keep=WATCHED) as run:
        picture = pipe("a large red circle left of a small blue square", num_inference_steps=4,
                       guidance_scale=3.5, max_sequence_length=64,
                       generator=torch.Generator().manual_seed(0)).images[0]
    values = [(b.name, tensors_in(b.kept.outputs)) for b in run.boundaries if hasattr(b, "kept")]
    # a scheduler's noise levels are an attribute, not an output
    return run, picture, [(name, [pipe.scheduler.sigmas] if name == "scheduler.set_timesteps" else found)
                          for name, found in values]


def first_difference(healthy: Values[Place], sick: Values[Place]) -> tuple[Place, torch.Tensor, torch.Tensor]:
    """The first boundary whose tensors differ, and its first two tensors that do.

    Raises:
        ValueError: if all values are equal.
    """
    for (place, good), (_, bad) in zip(healthy, sick, strict=True):
        for one, other in zip(good, bad, strict=True):
            if not torch.equal(one, other):
                return place, one, other
    raise ValueError("all values are equal")


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors inside a value, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in tensors_in(item)] if isinstance(value, list | tuple) else []


def of_own_class(thing: Any, methods: dict[str, Any]) -> Any:
    """`thing` itself, made an instance of a class of the same name that has these methods besides."""
    base = type(thing)
    thing.__class__ = type(base.__name__, (base,), {"__module__": base.__module__, **methods})
    return thing


def _unshifted(self: Any, num_inference_steps: Any = None, device: Any = None, sigmas: Any = None,
               mu: Any = None) -> None:
    super(type(self), self).set_timesteps(num_inference_steps, device, sigmas, mu=0.0)


def _own_base(self: Any, num_inference_steps: Any = None, device: Any = None, sigmas: Any = None,
              mu: Any = None) -> None:
    super(type(self), self).set_timesteps(num_inference_steps or len(sigmas), device, mu=mu)


def _columns_first(batch_size: int, height: int, width: int, device: Any, dtype: Any) -> torch.Tensor:
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    ids = torch.stack([torch.zeros_like(rows), columns, rows], dim=-1)
    return ids.reshape(-1, 3).to(device=device, dtype=dtype)


def _no_ids(batch_size: int, height: int, width: int, device: Any, dtype: Any) -> torch.Tensor:
    return torch.zeros(height * width, 3, device=device, dtype=dtype)


def _places_before_channels(latents: torch.Tensor, height: int, width: int,
                            vae_scale_factor: int) -> torch.Tensor:
    """As `_unpack_latents`, but a token's numbers are taken for 4 places of channels, not channels of 4."""
    rows, columns = int(height) // (vae_scale_factor * 2), int(width) // (vae_scale_factor * 2)
    batch, _, numbers = latents.shape
    latents = latents.reshape(batch, rows, columns, 2, 2, numbers // 4).permute(0, 5, 1, 3, 2, 4)
    return latents.reshape(batch, numbers // 4, 2 * rows, 2 * columns)


def _roll_positions(transformer: Any) -> None:
    """Hooks: the rotary table begins with the picture's positions, while the tokens begin with the text's."""
    text: list[int] = []

    def note(module: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        text[:] = [len(kwargs["txt_ids"])]

    transformer.register_forward_pre_hook(note, with_kwargs=True)
    transformer.pos_embed.register_forward_hook(
        lambda module, args, output: tuple(table.roll(-text[0], 0) for table in output))


def _exchange_streams(transformer: Any) -> None:
    """A hook: the first block returns picture and text where its caller expects text and picture."""
    transformer.transformer_blocks[0].register_forward_hook(lambda module, args, output: output[::-1])


def _drop_pooled(transformer: Any) -> None:
    """A hook on the embedder of the pooled text: it adds nothing to what modulates the blocks."""
    embedder = transformer.time_text_embed.text_embedder
    embedder.register_forward_hook(lambda module, args, output: torch.zeros_like(output))


_TRANSFORMER = {
    "positions of the picture first": _roll_positions,
    "streams exchanged": _exchange_streams,
    "no pooled text": _drop_pooled,
}
_TIMESTEPS = {"no shift": _unshifted, "another base schedule": _own_base}
_METHODS = {
    "rows and columns exchanged": _columns_first,
    "no positions": _no_ids,
    "patches unpacked in another order": _places_before_channels,
}
