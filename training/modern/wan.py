"""Makes the bundled video model, a WanPipeline that films moving shapes from captions: one command, one GPU.

    python -m training.modern.wan --out runs/wan

Two stages. The autoencoder learns to compress clips (``wan_vae``); then the transformer and a small UMT5
learn the velocity of its latents. A run that was stopped goes on from ``OUT`` when the same command is given
again; ``--begin FOLDER`` starts from exported weights instead. ``--minutes`` limits the training, the rates
fall in time for it; ``--stage`` does one alone. ``torchrun --nproc-per-node N -m training.modern.wan --stage
transformer ...`` shares that stage among N GPUs.
"""

from __future__ import annotations

import copy
import json
import os
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch
import torch.nn.functional as F
from diffusers import WanPipeline

from inferlab.models.clips import WORDS
from inferlab.models.clips.draw import ClipBatch, join_clips
from inferlab.models.quiet import quiet
from training.captions import clip_caption_words
from training.common import compute_dtype, generator, read_plan, run_parser
from training.modern.flux import load_exported
from training.modern.networks import (
    LENGTHS,
    TOKENS,
    make_t5,
    make_t5_tokenizer,
    make_video_vae,
    make_wan,
    parameters_of,
    wan_scheduler,
)
from training.modern.passes import (
    Course,
    GradientLearner,
    Passes,
    TokenWriter,
    join_others,
    noised,
    padded_length,
    plain_kernels,
    sigmas,
    train,
)
from training.modern.wan_vae import Films, encoded, set_scale, train_vae

RENEW = 16  # steps between two renewals of the pool


@dataclass
class Plan:
    """Everything that decides what a run makes; README.md here says what the shipped weights were made
    with."""

    size: str = "bundled"
    seed: int = 40
    vae_steps: int = 8000
    vae_batch: int = 32
    vae_rate: float = 1.5e-3
    vae_share: float = 0.45  # of the minutes, where they are limited and both stages run
    steps: int = 25000
    batch: int = 320  # in each process
    rate: float = 1.2e-3
    decay: float = 0.9993
    shift: float = 2.5  # of the noise levels in training; the scheduler films with 3
    pool: int = 65536
    fresh: int = 128  # latents renewed every RENEW steps
    block: int = 4096  # scenes sampled at a time
    two: float = 0.75
    omit: float = 0.10
    empty: float = 0.10
    longest: int = max(LENGTHS)  # prompts are padded to it in one step of six, else to 16 tokens
    compile: bool = True


class FilmPool:
    """Encoded clips on the device: filled once, a few replaced now and then, batches drawn at random."""

    def __init__(self, plan: Plan, vae, device: str, seed: int):
        with quiet():
            self.vae = copy.deepcopy(vae).to(compute_dtype(device))
        self.films, self.device, self.at = Films(generator(device, seed), plan.block, plan.two), device, 0
        chunk = min(64, plan.pool)
        scenes = [self.films.take(chunk) for _ in range(plan.pool // chunk)]
        self.latents = torch.cat([encoded(self.vae, part) for part in scenes])
        self.scenes = join_clips(scenes)

    def renew(self, n: int) -> None:
        """Replaces the oldest n."""
        rows = torch.arange(self.at, self.at + n, device=self.device) % len(self.latents)
        self.at = (self.at + n) % len(self.latents)
        scenes = self.films.take(n)
        self.latents[rows] = encoded(self.vae, scenes)
        for field in fields(ClipBatch):
            getattr(self.scenes, field.name)[rows] = getattr(scenes, field.name)

    def draw(self, n: int, random: torch.Generator) -> tuple[torch.Tensor, ClipBatch]:
        """n latents (n, 16, 5, 12, 12) float32, in the transformer's scale, and their scenes."""
        chosen = torch.randint(len(self.latents), (n,), generator=random, device=self.device)
        mean, std = (
            torch.tensor(values, device=self.device).view(1, -1, 1, 1, 1)
            for values in (self.vae.config.latents_mean, self.vae.config.latents_std)
        )
        return (self.latents[chosen].float() - mean) / std, self.scenes[chosen]


class Velocity:
    """The two networks that learn, as one function of a batch."""

    def __init__(self, model: torch.nn.ModuleDict):
        self.transformer, self.text = model["transformer"], model["text"]

    def __call__(self, latents, level, ids, pads) -> torch.Tensor:
        """``ids`` (B, 16); ``pads`` (L - 16,) only says how many empty embeddings follow, as the pipeline
        adds them."""
        low = self.text.dtype
        told = (ids != 0)[:, None, None, :]
        mask = torch.zeros(told.shape, dtype=low, device=ids.device).masked_fill(~told, torch.finfo(low).min)
        text = self.text(input_ids=ids, attention_mask=mask).last_hidden_state * told[:, 0, 0, :, None]
        text = F.pad(text, (0, 0, 0, len(pads)))
        return self.transformer(
            hidden_states=latents.to(low),
            timestep=level * 1000,
            encoder_hidden_states=text,
            return_dict=False,
        )[0].float()


def train_transformer(
    plan: Plan,
    vae,
    tokenizer,
    path: Path,
    device: str,
    seconds: float | None,
    begin: Path | None,
    rank: int = 0,
):
    """(the moving averages {transformer, text} in float32, their Course). Goes on from the checkpoint
    ``path``."""
    start = time.monotonic()
    torch.manual_seed(plan.seed + 1)
    model = torch.nn.ModuleDict(
        {"transformer": make_wan(plan.size), "text": make_t5("umt5", len(tokenizer), plan.size)}
    ).to(device)
    if begin is not None and (begin / "transformer").exists():
        load_exported(model["transformer"], begin / "transformer" / "diffusion_pytorch_model.safetensors")
        load_exported(model["text"], begin / "text_encoder" / "model.safetensors")
    print("parameters", {name: parameters_of(part) for name, part in model.items()}, flush=True)
    learner = GradientLearner(model, device, plan.decay)
    learner.resume(path, device)
    if plan.compile and device.startswith("cuda"):
        for block in learner.copy["transformer"].blocks:
            block.compile(dynamic=False)
    own = 1_000_000 * rank + learner.step  # each process sees scenes of its own
    pool = FilmPool(plan, vae, device, plan.seed + 300 + own)
    print(f"pool of {len(pool.latents)} latents after {time.monotonic() - start:.0f} s", flush=True)
    random = generator(device, plan.seed + 400 + own)
    writer = TokenWriter(tokenizer, WORDS, random)
    velocity = Velocity(learner.copy)

    def loss_of(latents, target, level, ids, pads):
        return (velocity(latents, level, ids, pads) - target).square().mean()

    if seconds is not None:
        seconds -= time.monotonic() - start
    course = Course("wan", learner, plan.steps, plan.rate, seconds)

    def batch(step):
        if step % RENEW == 0:
            pool.renew(plan.fresh)
        clean, scenes = pool.draw(plan.batch, random)
        level = sigmas(plan.batch, random, plan.shift)
        latents, target = noised(clean, level, random)
        said = clip_caption_words(scenes, omit=plan.omit, generator=random)
        dropped = torch.rand(plan.batch, generator=random, device=device) < plan.empty
        ids = writer.write(torch.where(dropped[:, None], -1, said), TOKENS)
        pads = torch.zeros(padded_length(step, (TOKENS, plan.longest)) - TOKENS, device=device)
        return latents, target, level, ids, pads

    train(course, path if rank == 0 else None, Passes(loss_of, learner.copies), batch)
    return learner.average, course


def run(
    plan: Plan,
    out: Path,
    device: str,
    minutes: float | None = None,
    begin: Path | None = None,
    stage: str = "both",
    rank: int = 0,
) -> Path:
    """Trains as far as ``minutes`` allow; the folder of the exported weights, which the process of rank 0
    writes."""
    out.mkdir(parents=True, exist_ok=True)
    folder, start, seconds = out / "wan", time.monotonic(), None if minutes is None else 60 * minutes
    if device.startswith("cuda"):
        plain_kernels()
    torch.manual_seed(plan.seed)
    vae, tokenizer, report = make_video_vae(plan.size), make_t5_tokenizer(WORDS), {"plan": asdict(plan)}
    if begin is not None:
        vae = type(vae).from_pretrained(begin / "vae").float()
    if stage != "transformer":
        print("parameters", {"vae": parameters_of(vae)}, flush=True)
        share = plan.vae_share if stage == "both" else 1.0
        vae, course = train_vae(plan, vae, out, device, None if seconds is None else seconds * share)
        report |= {
            "vae_steps": course.learner.step,
            "vae_seconds": course.spent(),
            "vae_losses": course.history,
        }
        with quiet():
            set_scale(
                vae,
                encoded(
                    vae, Films(generator(device, plan.seed + 500), 64, plan.two).take(min(64, plan.pool))
                ),
            )
            copy.deepcopy(vae).half().cpu().save_pretrained(folder / "vae")
    vae = vae.to(device).eval().requires_grad_(False)
    if stage != "vae":
        left = None if seconds is None else seconds - (time.monotonic() - start)
        # A transformer that learned another autoencoder's latents is not gone on with.
        path = out / ("wan.pt" if stage == "transformer" else f"wan-{report['vae_steps']}.pt")
        average, course = train_transformer(plan, vae, tokenizer, path, device, left, begin, rank)
        report |= {"steps": course.learner.step, "seconds": course.spent(), "losses": course.history}
        if rank > 0:
            return folder
        export(folder, vae, average, tokenizer)
    (out / f"training-{stage}.json").write_text(json.dumps(report, indent=1))
    print(f"exported {folder} after {time.monotonic() - start:.0f} s", flush=True)
    return folder


def export(folder: Path, vae, average: torch.nn.ModuleDict, tokenizer) -> None:
    """A normal diffusers folder, weights in float16 safetensors."""
    with quiet():
        parts = {
            name: copy.deepcopy(module).half().cpu()
            for name, module in (
                ("vae", vae),
                ("transformer", average["transformer"]),
                ("text_encoder", average["text"]),
            )
        }
        WanPipeline(tokenizer=tokenizer, scheduler=wan_scheduler(), **parts).save_pretrained(folder)


def main(arguments: list[str] | None = None) -> int:
    parser = run_parser(__doc__)
    parser.add_argument("--begin", type=Path, help="start from the exported weights of this folder")
    parser.add_argument(
        "--stage",
        choices=("both", "vae", "transformer"),
        default="both",
        help="'transformer' takes the autoencoder from --begin",
    )
    parser.add_argument(
        "--clips", type=int, default=200, help="captions measured at the end, of each kind; 0: none"
    )
    options, plan = read_plan(parser, Plan, arguments)
    if options.stage == "transformer" and options.begin is None:
        parser.error("--stage transformer needs --begin, for the autoencoder")
    if "WORLD_SIZE" in os.environ and options.stage != "transformer":
        parser.error("only --stage transformer is shared among processes")
    device, rank = join_others(options.device)
    folder = run(plan, options.out, device, options.minutes, options.begin, options.stage, rank)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    if options.clips and rank == 0:
        from training.modern.measure import judge_vae, measure_wan

        if options.stage == "vae":
            vae = make_video_vae(plan.size).from_pretrained(folder / "vae").float().to(device).eval()
            row = judge_vae(vae, device, options.clips)
            print(row, flush=True)
            (options.out / "vae.json").write_text(json.dumps(row, indent=1))
        else:
            measure_wan(folder, device, options.clips, options.out / "figures.json")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
