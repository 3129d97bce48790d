"""Stage one of the video model: an autoencoder of clips, 17 frames of 96x96 to 5 of 12x12 and back."""

from __future__ import annotations

from pathlib import Path

import torch

from inferlab.models.clips import render_clips
from inferlab.models.clips.draw import ClipBatch, sample_clips
from training.common import Scenes, compute_dtype, generator
from training.modern.measure import FRAMES, SIDE
from training.modern.passes import Course, GradientLearner, Passes, train
from training.modern.whole import decode_whole, encode_whole

KL_WEIGHT = 1e-4  # enough to keep the latents' scale and a little noise in them, too little to blur
SQUARE_WEIGHT = 8.0  # of the squared error beside the absolute one


class Films(Scenes):
    """The same supply of moving scenes."""

    sample = staticmethod(sample_clips)


def frames_last(model: torch.nn.Module) -> torch.nn.Module:
    """Convolutions' weights with the channels innermost, which is how a GPU likes them."""
    for parameter in model.parameters():
        layout = {4: torch.channels_last, 5: torch.channels_last_3d}.get(parameter.ndim)
        if layout is not None:
            parameter.data = parameter.data.contiguous(memory_format=layout)
    return model


def train_vae(plan, vae, out: Path, device: str, seconds: float | None):
    """(the moving average of the trained autoencoder in float32, its Course). Goes on from ``OUT/vae.pt``."""
    learner = GradientLearner(frames_last(vae).to(device), device, decay=0.998)
    learner.resume(out / "vae.pt", device)
    learning, dtype = learner.copy, compute_dtype(device)

    def loss_of(clips: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        mean, logvar = (t.float() for t in encode_whole(learning, clips.to(dtype)))
        latents = (
            (mean + (0.5 * logvar).exp() * noise).to(dtype).contiguous(memory_format=torch.channels_last_3d)
        )
        error = decode_whole(learning, latents).float() - clips
        kl = 0.5 * (mean.square() + logvar.exp() - 1 - logvar).mean()
        return error.abs().mean() + SQUARE_WEIGHT * error.square().mean() + KL_WEIGHT * kl

    films = Films(generator(device, plan.seed + 100 + learner.step), plan.block, plan.two)
    random = generator(device, plan.seed + 200 + learner.step)
    course = Course("wan vae", learner, plan.vae_steps, plan.vae_rate, seconds)

    def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        clips = render_clips(films.take(plan.vae_batch), SIDE, FRAMES) * 2 - 1
        clips = clips.contiguous(memory_format=torch.channels_last_3d)
        noise = torch.randn((len(clips), 16, 5, SIDE // 8, SIDE // 8), generator=random, device=device)
        return clips, noise

    train(course, out / "vae.pt", Passes(loss_of, learner.copies), batch, every=200)
    return learner.average, course


@torch.no_grad()
def encoded(vae, films: ClipBatch) -> torch.Tensor:
    """float16 latents (B, 16, 5, 12, 12) of clips, the means as the autoencoder gives them."""
    clips = (render_clips(films, SIDE, FRAMES) * 2 - 1).to(next(vae.parameters()).dtype)
    return encode_whole(vae, clips.contiguous(memory_format=torch.channels_last_3d))[0].half().contiguous()


def set_scale(vae, latents: torch.Tensor) -> None:
    """``latents_mean`` and ``latents_std`` of the configuration, by channel, from latents (B, 16, F, H,
    W)."""
    mean, std = (t.tolist() for t in (latents.float().mean((0, 2, 3, 4)), latents.float().std((0, 2, 3, 4))))
    vae.register_to_config(latents_mean=[round(v, 5) for v in mean], latents_std=[round(v, 5) for v in std])
