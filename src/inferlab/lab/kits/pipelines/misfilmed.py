"""WanPipelines with one fault in time that keeps a clip's shape, for the lab that finds it in a trace."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from inferlab.lab.identity import scattered
from inferlab.trace import trace

from .misbuilt import Values, of_own_class, tensors_in
from .mislabeled import rebuilt

if TYPE_CHECKING:
    from diffusers import AutoencoderKLWan, WanPipeline, WanTransformer3DModel

#: fault -> (the boundary at which it can first be seen, which of its calls, the first frame that it spoils)
MISFILMED = {
    "one noise for all frames": ("prepare_latents", 0, 0),
    "no order in time": ("transformer.rope", 0, 0),
    "frames apart in attention": ("transformer.blocks.0", 0, 0),
    "cache of the clip before": ("vae.decoder", 0, 0),
    "cache reset in every call": ("vae.decoder", 1, 1),
    "cache one frame short": ("vae.decoder", 2, 5),
    "latent frame dropped": ("vae.decoder", 2, 5),
    "frames backwards": ("video_processor.postprocess_video", 0, 0),
    "frame dropped": ("video_processor.postprocess_video", 0, 5),
}


def misfilmed(pipe: WanPipeline, variant: int) -> WanPipeline:
    """A pipeline of the same class with one fault inside; ``pipe`` itself and its weights stay as they were.

    Args:
        pipe: a ``WanPipeline`` whose VAE folds pixels (``patch_size``), such as the bundled one.
        variant: 0 to 8, which of the faults in ``MISFILMED``.

    Returns:
        A pipeline that runs without an error. Clips of 9 frames or more show each fault; "cache of the clip
        before" is seen from the second clip on, and needs clips of one size.

    Raises:
        ValueError: if the variant does not exist.
    """
    faults = scattered(MISFILMED)
    if not 0 <= variant < len(faults):
        raise ValueError(f"variant is 0 to {len(faults) - 1}, not {variant}")
    fault = faults[variant]
    place = MISFILMED[fault][0]
    parts = dict(pipe.components)
    if place.startswith("transformer"):
        parts["transformer"] = copy.deepcopy(pipe.transformer)
        _TRANSFORMER[fault](parts["transformer"])
    elif place.startswith("vae"):
        parts["vae"] = of_own_class(copy.deepcopy(pipe.vae), {"_decode": _decode_with(fault)})
    broken = rebuilt(pipe, parts)
    if place.startswith("video_processor"):
        own = {"postprocess_video": _postprocess_with(_ORDER[fault])}
        broken.video_processor = of_own_class(copy.deepcopy(broken.video_processor), own)
    return of_own_class(broken, {"prepare_latents": _one_noise} if place == "prepare_latents" else {})


WATCHED = ["prepare_latents", "transformer.rope", "transformer.blocks.0", "vae.decoder",
           "video_processor.postprocess_video"]


def second_clip(pipe: WanPipeline) -> tuple[Any, torch.Tensor, Values[tuple[str, int]]]:
    """Two clips of 9 frames; of the second its trace, its frames (9, 96, 96, 3), and what came out where."""
    asked: dict[str, Any] = {"num_inference_steps": 3, "guidance_scale": 1.0, "num_frames": 9, "height": 96,
                             "width": 96, "max_sequence_length": 16}
    with torch.no_grad():
        pipe("a blue square falls on a black background", generator=torch.Generator().manual_seed(0), **asked)
        with trace(pipe, depth=WATCHED, keep=WATCHED) as run:
            pipe("a red circle moves left on a white background", output_type="pt",
                 generator=torch.Generator().manual_seed(1), **asked)
    calls: dict[str, int] = {}
    values: Values[tuple[str, int]] = []
    for b in (b for b in run.boundaries if hasattr(b, "kept")):
        values.append(((b.name, calls.get(b.name, 0)), tensors_in(b.kept.outputs)))
        calls[b.name] = calls.get(b.name, 0) + 1
    return run, values[-1][1][0][0].permute(0, 2, 3, 1), values


def _one_noise(self: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    latents: torch.Tensor = super(type(self), self).prepare_latents(*args, **kwargs)
    return latents[:, :, :1].repeat(1, 1, latents.shape[2], 1, 1)


def _stop_time(transformer: WanTransformer3DModel) -> None:
    """A hook: in the rotary table every token has the place in time of the first one."""
    features = transformer.rope.t_dim

    def hook(module: Any, args: Any, tables: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        still = [table.clone() for table in tables]
        for table in still:
            table[..., :features] = table[:, :1, :, :features]
        return tuple(still)

    transformer.rope.register_forward_hook(hook)


def _part_frames(transformer: WanTransformer3DModel) -> None:
    """Hooks: self-attention gets the latent frames as rows of a batch, so that none sees another."""
    frames: list[int] = []
    transformer.rope.register_forward_pre_hook(lambda module, args: frames.__setitem__(slice(None), [
        args[0].shape[2] // module.patch_size[0]]))

    def apart(module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        tokens, *middle, rotary = args
        batch = len(tokens)
        rotary = tuple(t.unflatten(1, (frames[0], -1))[0].repeat(batch, 1, 1, 1) for t in rotary)
        return tokens.unflatten(1, (frames[0], -1)).flatten(0, 1), *middle, rotary

    def together(module: Any, args: Any, mixed: torch.Tensor) -> torch.Tensor:
        return mixed.unflatten(0, (-1, frames[0])).flatten(1, 2)

    for block in transformer.blocks:
        block.attn1.register_forward_pre_hook(apart)
        block.attn1.register_forward_hook(together)


def _decode_with(fault: str) -> Callable[..., Any]:
    """`AutoencoderKLWan._decode` with a fault in how it keeps or hands on what a call needs."""
    from diffusers.models.autoencoders.autoencoder_kl_wan import unpatchify
    from diffusers.models.autoencoders.vae import DecoderOutput

    before: dict[int, torch.Tensor] = {}  # what the convolutions had kept at the end of the last clip

    def _decode(self: AutoencoderKLWan, z: torch.Tensor, return_dict: bool = True) -> Any:
        self.clear_cache()
        slots, latents = self._feat_map, self.post_quant_conv(z)
        made, doubling = [], set()
        for i in range(z.shape[2]):
            # an upsampler in time leaves a word in its slot at the first call: its state is never touched
            doubling |= {k for k, slot in enumerate(slots) if isinstance(slot, str)}
            kept = {k: slot for k, slot in enumerate(slots) if slot is not None and k not in doubling}
            if fault == "cache of the clip before" and i == 0:
                kept = before
            elif fault == "cache reset in every call":
                kept = dict.fromkeys(kept)
            elif fault == "cache one frame short":
                kept = {k: frames[:, :, -1:] for k, frames in kept.items()}
            for k, frames in kept.items():
                slots[k] = frames
            at = 1 if fault == "latent frame dropped" and i == 2 else i
            self._conv_idx = [0]
            made.append(self.decoder(latents[:, :, at:at + 1], feat_cache=slots, feat_idx=self._conv_idx,
                                     first_chunk=i == 0))
        before.update((k, slot) for k, slot in enumerate(slots) if slot is not None and k not in doubling)
        self.clear_cache()
        clip = unpatchify(torch.cat(made, 2), self.config.patch_size).clamp(-1, 1)
        return DecoderOutput(sample=clip) if return_dict else (clip,)

    return _decode


def _postprocess_with(order: Callable[[list[int]], list[int]]) -> Callable[..., Any]:
    """`VideoProcessor.postprocess_video` of the frames (axis 2) in another order."""

    def postprocess_video(self: Any, video: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        frames = order(list(range(video.shape[2])))
        return super(type(self), self).postprocess_video(video[:, :, frames], *args, **kwargs)

    return postprocess_video


_TRANSFORMER = {"no order in time": _stop_time, "frames apart in attention": _part_frames}
_ORDER: dict[str, Callable[[list[int]], list[int]]] = {
    "frames backwards": lambda frames: frames[::-1],
    "frame dropped": lambda frames: [4 if frame == 5 else frame for frame in frames],
}
