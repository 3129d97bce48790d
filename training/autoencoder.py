"""Stage one: an autoencoder of scene pictures, 128x128x3 to 16x16x4 and back."""

from __future__ import annotations

import time
from pathlib import Path

import torch
import torch.nn.functional as F

from inferlab.models.scenes import render
from training.architecture import make_vae
from training.common import Learner, Scenes, compute_dtype, generator, rate_at

KL_WEIGHT = 1e-5  # enough to keep latents near one scale, too little to blur


def train_autoencoder(plan, out: Path, device: str, clock):
    """The trained AutoencoderKL in float32 on ``device``, its scaling_factor set; None if the clock ran out
    first."""
    torch.manual_seed(plan.seed)
    vae = make_vae(plan.size).to(device, memory_format=torch.channels_last)
    learner = Learner(vae, device, decay=0.998)
    learner.resume(out / "vae.pt", device)
    if learner.step < plan.vae_steps:
        _train(plan, learner, device, clock)
        learner.save(out / "vae.pt")
        print(f"vae {learner.step}/{plan.vae_steps} after {clock.seconds():.0f} s", flush=True)
        if learner.step < plan.vae_steps:
            return None
    trained = learner.average
    trained.register_to_config(scaling_factor=round(_scaling(trained, device, plan), 5))
    return trained


def _train(plan, learner: Learner, device: str, clock) -> None:
    first, vae, dtype = learner.step, learner.copy, compute_dtype(device)
    random = generator(device, plan.seed + 1000 + first)
    scenes = Scenes(generator(device, plan.seed + first), max(plan.vae_batch, 2048))
    begin = time.monotonic()
    while learner.step < plan.vae_steps and not clock.over():
        picture = (render(scenes.take(plan.vae_batch)) * 2 - 1).contiguous(memory_format=torch.channels_last)
        noise = torch.randn((len(picture), 4, 16, 16), generator=random, device=device)
        moments = vae.encode(picture.to(dtype)).latent_dist
        mean, logvar = moments.mean.float(), moments.logvar.float()
        kl = 0.5 * (mean.square() + logvar.exp() - 1 - logvar).mean()
        error = vae.decode((mean + moments.std.float() * noise).to(dtype)).sample.float() - picture
        square = error.square().mean()
        (error.abs().mean() + 4 * square + KL_WEIGHT * kl).backward()
        learner.update(rate_at(learner.step, plan.vae_steps, plan.vae_rate,
                               min(200, plan.vae_steps // 10 + 1)))
        if learner.step % 200 == 0 or learner.step == first + 5:
            pace = (time.monotonic() - begin) / (learner.step - first)
            print(f"vae {learner.step}/{plan.vae_steps} psnr {10 * torch.log10(4 / square):.1f} dB, "
                  f"{pace * 1e3:.0f} ms a step", flush=True)


@torch.no_grad()
def _scaling(vae, device: str, plan) -> float:
    """1 / the standard deviation of latents, and prints the reconstruction's PSNR on fresh scenes."""
    picture = render(Scenes(generator(device, plan.seed + 7), 64).take(min(512, 4 * plan.vae_batch))) * 2 - 1
    latents, square = [], []
    for part in picture.split(64):
        mean = vae.encode(part).latent_dist.mode()
        latents.append(mean)
        square.append(F.mse_loss(vae.decode(mean).sample.clamp(-1, 1), part))
    latents = torch.cat(latents)
    print(f"vae: {10 * torch.log10(4 / torch.stack(square).mean()):.1f} dB on fresh scenes, latents' "
          f"standard deviation "
          f"{latents.std():.3f}, per channel {[round(v, 2) for v in latents.std((0, 2, 3)).tolist()]}",
          flush=True)
    return 1 / latents.std().item()
