"""A video VAE's passes over a whole clip at once, for training, in diffusers' own numbers.

``AutoencoderKLWan`` reads one frame, then four at a time, and keeps what its causal convolutions need in a
cache. Without the cache it leaves out the steps in time; here they are done on all frames, the first one
apart.
"""

from __future__ import annotations

from contextlib import contextmanager

import torch
from diffusers.models.autoencoders.autoencoder_kl_wan import WanResample, patchify, unpatchify


def _resample(self, x: torch.Tensor, feat_cache=None, feat_idx=None) -> torch.Tensor:
    b, c, t, h, w = x.shape
    if self.mode == "upsample3d" and t > 1:
        rest = self.time_conv(x[:, :, 1:]).reshape(b, 2, c, t - 1, h, w)
        rest = torch.stack((rest[:, 0], rest[:, 1]), 3).reshape(b, c, 2 * (t - 1), h, w)
        x = torch.cat([x[:, :, :1], rest], 2)
    t = x.shape[2]
    x = self.resample(x.permute(0, 2, 1, 3, 4).reshape(b * t, c, h, w))
    x = x.view(b, t, *x.shape[1:]).permute(0, 2, 1, 3, 4)
    if self.mode == "downsample3d" and t > 1:
        x = torch.cat([x[:, :, :1], self.time_conv(x)], 2)
    return x


@contextmanager
def whole_clips():
    """Within this block every ``WanResample`` works on whole clips."""
    original, WanResample.forward = WanResample.forward, _resample
    try:
        yield
    finally:
        WanResample.forward = original


def encode_whole(vae, clips: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and log-variance (B, 16, 1 + k, H/8, W/8) of clips (B, 3, 1 + 4k, H, W) in [-1, 1]."""
    with whole_clips():
        moments = vae.quant_conv(vae.encoder(patchify(clips, vae.config.patch_size)))
    mean, logvar = moments.chunk(2, dim=1)
    return mean, logvar.clamp(-30, 20)


def decode_whole(vae, latents: torch.Tensor) -> torch.Tensor:
    """Clips (B, 3, 1 + 4k, H, W) of latents (B, 16, 1 + k, H/8, W/8), not clamped."""
    with whole_clips():
        out = vae.decoder(vae.post_quant_conv(latents), first_chunk=True)
    return unpatchify(out, vae.config.patch_size)
