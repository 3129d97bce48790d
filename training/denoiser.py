"""Stage two: the text encoder and the UNet learn together to predict the noise in the autoencoder's
latents."""

from __future__ import annotations

import copy
import dataclasses
import time
from pathlib import Path

import torch

from inferlab.models.quiet import quiet
from inferlab.models.scenes import (
    BACKGROUNDS,
    COLORS,
    POSITIONS,
    RELATIONS,
    SHAPES,
    SIZES,
    SceneBatch,
    render,
)
from training.architecture import MAX_TOKENS, make_scheduler, make_text_encoder, make_unet, word_ids
from training.captions import caption_words
from training.common import Learner, Scenes, compute_dtype, generator, rate_at

LEAST_SNR, MOST_SNR, MOST_WEIGHT = 0.1, 5.0, 20.0
CHECKPOINT_SECONDS = 90.0
KINDS = {"shape": SHAPES, "color": COLORS, "size": SIZES, "relation": RELATIONS, "position": POSITIONS,
         "background": BACKGROUNDS}


def train_denoiser(plan, out: Path, device: str, clock, vae, tokenizer):
    """(UNet, text encoder), the moving averages of the trained weights; None if the clock ran out first."""
    torch.manual_seed(plan.seed + 1)
    model = torch.nn.ModuleDict({"unet": make_unet(plan.size),
                                 "text": make_text_encoder(tokenizer, plan.size)})
    model = model.to(device)
    model["unet"].to(memory_format=torch.channels_last)
    learner = Learner(model, device, decay=0.999)
    learner.resume(out / "checkpoint.pt", device)
    if learner.step < plan.steps:
        _train(plan, learner, out / "checkpoint.pt", device, clock, vae, tokenizer)
    if learner.step < plan.steps:
        return None
    return learner.average["unet"], learner.average["text"]


def _train(plan, learner: Learner, path: Path, device: str, clock, vae, tokenizer) -> None:
    first, dtype = learner.step, compute_dtype(device)
    random = generator(device, plan.seed + 2000 + first)
    pool = LatentPool(plan, device, vae, generator(device, plan.seed + 3000 + first))
    print(f"pool of {plan.pool} latents after {clock.seconds():.0f} s", flush=True)
    captions = Captions(plan, tokenizer, random)
    alphas = make_scheduler().alphas_cumprod.to(device)
    weight_of = loss_weights(alphas)
    unet, text = learner.copy["unet"], learner.copy["text"]
    if plan.compile and device.startswith("cuda"):
        unet.compile()
    begin, saved, losses = time.monotonic(), time.monotonic(), []
    while learner.step < plan.steps and not clock.over():
        pool.renew()
        clean, scenes = pool.draw(plan.batch, random)
        noisy, t, noise = noised(clean, alphas, random)
        noisy = noisy.to(dtype).contiguous(memory_format=torch.channels_last)
        hidden = text(captions.write(scenes)).last_hidden_state
        predicted = unet(noisy, t, hidden, return_dict=False)[0]
        loss = ((predicted.float() - noise).square().mean((1, 2, 3)) * weight_of[t]).mean()
        loss.backward()
        learner.update(rate_at(learner.step, plan.steps, plan.rate, min(300, plan.steps // 10 + 1)))
        losses.append(loss.detach())
        if learner.step % 200 == 0 or learner.step == first + 5:
            pace = (time.monotonic() - begin) / (learner.step - first)
            mean, losses = torch.stack(losses).mean().item(), []
            print(f"unet {learner.step}/{plan.steps} loss {mean:.4f}, {pace * 1e3:.0f} ms a step", flush=True)
        if time.monotonic() - saved > CHECKPOINT_SECONDS:
            learner.save(path)
            saved = time.monotonic()
    learner.save(path)
    print(f"unet {learner.step}/{plan.steps} after {clock.seconds():.0f} s", flush=True)


def noised(clean: torch.Tensor, alphas: torch.Tensor,
           random: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Latents (B, 4, h, w) at random timesteps: the noisy ones, their timesteps (B,), and their noise."""
    t = torch.randint(1000, (len(clean),), generator=random, device=clean.device)
    noise = torch.randn(clean.shape, generator=random, device=clean.device)
    alpha = alphas[t][:, None, None, None]
    return alpha.sqrt() * clean + (1 - alpha).sqrt() * noise, t, noise


def loss_weights(alphas: torch.Tensor) -> torch.Tensor:
    """Weight of the epsilon loss at each timestep, from the cumulative alphas (1000,).

    Hang et al. 2023 (min-SNR) weigh by min(SNR, 5) / SNR, so that the nearly clean steps do not dominate.
    What a picture holds, and where, is decided in the noisiest steps, where a wrong guess hardly shows in
    epsilon: there the SNR is taken as at least 0.1, which makes them count up to twentyfold; beyond that
        bfloat16's rounding would be all they teach.
    """
    snr = alphas / (1 - alphas)
    return (snr.clamp(LEAST_SNR, MOST_SNR) / snr).clamp(max=MOST_WEIGHT)


class LatentPool:
    """Encoded scenes on the device: filled once, a few replaced at every step, batches drawn at random."""

    picture = staticmethod(render)  # scenes to pictures (B, 3, 128, 128) in [0, 1]

    def __init__(self, plan, device: str, vae, source: torch.Generator):
        self.dtype = compute_dtype(device)
        self.device, self.fresh, self.at = device, plan.fresh, 0
        with quiet():
            self.vae = copy.deepcopy(vae).to(self.dtype)
        self.scenes_of = Scenes(source, two=plan.two)
        chunk = min(512, plan.pool)
        parts = [self._encode(self.scenes_of.take(chunk)) for _ in range(plan.pool // chunk)]
        self.latents = torch.cat([part[0] for part in parts])
        self.scenes = _join([part[1] for part in parts])

    @torch.no_grad()
    def _encode(self, scenes: SceneBatch):
        picture = (self.picture(scenes) * 2 - 1).contiguous(memory_format=torch.channels_last)
        latents = self.vae.encode(picture.to(self.dtype)).latent_dist.mode().float()
        latents = (latents * self.vae.config.scaling_factor).to(torch.float16).contiguous()
        return latents, scenes

    def renew(self) -> None:
        """Replaces the oldest few."""
        rows = torch.arange(self.at, self.at + self.fresh, device=self.device) % len(self.latents)
        self.at = (self.at + self.fresh) % len(self.latents)
        latents, scenes = self._encode(self.scenes_of.take(self.fresh))
        self.latents[rows] = latents
        for field in dataclasses.fields(SceneBatch):
            getattr(self.scenes, field.name)[rows] = getattr(scenes, field.name)

    def draw(self, n: int, random: torch.Generator):
        """n latents (n, 4, 16, 16) float32 and their scenes."""
        chosen = torch.randint(len(self.latents), (n,), generator=random, device=self.device)
        return self.latents[chosen].float(), self.scenes[chosen]


def _join(parts: list[SceneBatch]) -> SceneBatch:
    return SceneBatch(**{f.name: torch.cat([getattr(p, f.name) for p in parts])
                         for f in dataclasses.fields(SceneBatch)})


class Captions:
    """Writes captions as token ids: some attributes unsaid, a few words wrong, some captions empty."""

    def __init__(self, plan, tokenizer, random: torch.Generator):
        self.plan, self.random, device = plan, random, random.device
        self.begin, self.end = tokenizer.bos_token_id, tokenizer.eos_token_id
        self.ids = torch.cat([word_ids(tokenizer), torch.tensor([self.end])]).to(device)  # index -1: the end

    def write(self, scenes: SceneBatch) -> torch.Tensor:
        """(B, 16) int64 token ids of captions."""
        return self.tokens(self.say(scenes))

    def say(self, scenes: SceneBatch) -> torch.Tensor:
        """(B, 14) int64 word numbers of captions, -1 after the end."""
        said = caption_words(self._mistaken(scenes), omit=self.plan.omit, generator=self.random)
        dropped = torch.rand(len(scenes), generator=self.random, device=said.device) < self.plan.empty
        return torch.where(dropped[:, None], -1, said)

    def tokens(self, said: torch.Tensor) -> torch.Tensor:
        """(B, 16) int64: the begin token, the words, and end tokens up to 16, as the tokenizer pads."""
        ids = torch.full((len(said), MAX_TOKENS), self.end, device=said.device)
        ids[:, 0] = self.begin
        ids[:, 1:1 + said.shape[1]] = self.ids[said]
        return ids

    def _mistaken(self, scenes: SceneBatch) -> SceneBatch:
        """The scenes as an inattentive writer saw them: each attribute replaced at random now and then."""
        changed = {}
        for name, values in KINDS.items():
            seen = getattr(scenes, name)
            other = torch.randint(len(values), seen.shape, generator=self.random, device=seen.device)
            slip = torch.rand(seen.shape, generator=self.random, device=seen.device) < self.plan.wrong_words
            changed[name] = torch.where(slip, other, seen)
        return dataclasses.replace(scenes, **changed)
