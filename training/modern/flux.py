"""Makes the bundled flow-matching model, a FluxPipeline for the same captions: one command, one GPU.

    python -m training.modern.flux --out runs/flux

The picture model's autoencoder and CLIP text encoder are used as they are. Two stages: a transformer and a
small T5 learn the velocity of the latents together; then guidance is distilled into the transformer's
embedding of the guidance scale, so that one pass does what two did. A run that was stopped goes on from
``OUT`` when the same command is given again; ``--begin FOLDER`` starts from exported weights instead.
``--minutes`` limits the training, the rates fall in time for it.
"""

from __future__ import annotations

import copy
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from diffusers import AutoencoderKL, FluxPipeline
from safetensors.torch import load_file
from transformers import CLIPTextModel, CLIPTokenizer

from inferlab.models.pictures import WEIGHTS as PICTURES
from inferlab.models.quiet import quiet
from inferlab.models.scenes import WORDS
from training.common import compute_dtype, generator, read_plan, run_parser
from training.denoiser import Captions, LatentPool
from training.modern.networks import (
    LENGTHS,
    TOKENS,
    flux_scheduler,
    make_flux,
    make_t5,
    make_t5_tokenizer,
    parameters_of,
)
from training.modern.passes import (
    Course,
    GradientLearner,
    Passes,
    TokenWriter,
    noised,
    padded_length,
    plain_kernels,
    sigmas,
    train,
)

PICTURE_TOKENS = 64  # 16x16 latents in patches of 2x2
RENEW = 8  # steps between two renewals of the pool


@dataclass
class Plan:
    """Everything that decides what a run makes; README.md here says what the shipped weights were made
    with."""

    size: str = "bundled"
    seed: int = 30
    steps: int = 16000
    distill_steps: int = 2500
    batch: int = 512  # captions of the shortest length; as many tokens at the others
    rate: float = 1.2e-3
    distill_rate: float = 5e-4
    decay: float = 0.9993
    shift: float = 2.0  # of the noise levels in training; the scheduler draws with about 1.6
    pool: int = 131072
    fresh: int = 256  # latents renewed every RENEW steps
    two: float = 0.6
    wrong_words: float = (
        0.05  # chance that a caption is wrong about an attribute, so that guidance has work to do
    )
    omit: float = 0.10
    empty: float = 0.10
    longest: int = max(LENGTHS)
    distill_share: float = 0.22  # of the minutes, where they are limited


class Frozen:
    """The picture model's parts that are used as they are, and the T5 tokenizer of its captions."""

    def __init__(self, device: str):
        with quiet():
            self.vae = AutoencoderKL.from_pretrained(PICTURES / "vae", shift_factor=0.0).to(device).eval()
            self.clip = CLIPTextModel.from_pretrained(PICTURES / "text_encoder").float().to(device).eval()
        self.vae = self.vae.float().requires_grad_(False)
        self.clip.requires_grad_(False)
        self.clip_tokenizer = CLIPTokenizer.from_pretrained(PICTURES / "tokenizer")
        self.t5_tokenizer = make_t5_tokenizer(WORDS)

    def pipeline(self, transformer, text) -> FluxPipeline:
        with quiet():
            made = FluxPipeline(
                scheduler=flux_scheduler(),
                vae=self.vae,
                text_encoder=self.clip,
                tokenizer=self.clip_tokenizer,
                text_encoder_2=text,
                tokenizer_2=self.t5_tokenizer,
                transformer=transformer,
            )
        made.set_progress_bar_config(disable=True)
        return made


class Batches:
    """Endless batches: noisy packed latents, their velocity and noise level, CLIP's pooled text, T5's token
    ids."""

    def __init__(self, plan: Plan, frozen: Frozen, device: str, seed: int):
        self.plan, self.device, self.random = plan, device, generator(device, seed)
        self.lengths = tuple(length for length in LENGTHS if length <= plan.longest)
        self.pool = LatentPool(plan, device, frozen.vae, generator(device, seed + 1))
        self.captions = Captions(plan, frozen.clip_tokenizer, self.random)
        self.t5 = TokenWriter(frozen.t5_tokenizer, WORDS, self.random)
        with quiet():
            self.clip = copy.deepcopy(frozen.clip).to(compute_dtype(device))

    def draw(self, step: int):
        """(latents, velocity, level, pooled, ids) for one step; the lengths of captions take turns."""
        if step % RENEW == 0:
            self.pool.renew()
        length = padded_length(step, self.lengths)
        n = max(1, self.plan.batch * (PICTURE_TOKENS + TOKENS) // (PICTURE_TOKENS + length))
        clean, scenes = self.pool.draw(n, self.random)
        level = sigmas(n, self.random, self.plan.shift)
        latents, velocity = noised(pack(clean), level, self.random)
        said = self.captions.say(scenes)
        return latents, velocity, level, self.pooled(said), self.t5.write(said, length)

    def nothing(self, n: int, length: int):
        """(pooled, ids) of n empty captions."""
        said = torch.full((1, 14), -1, device=self.device)
        return self.pooled(said).expand(n, -1), self.t5.write(said, length).expand(n, -1)

    @torch.no_grad()
    def pooled(self, said: torch.Tensor) -> torch.Tensor:
        return self.clip(self.captions.tokens(said)).pooler_output


def pack(latents: torch.Tensor) -> torch.Tensor:
    """(B, 4, 16, 16) -> (B, 64, 16), as FluxPipeline packs them."""
    return FluxPipeline._pack_latents(latents, *latents.shape)


class Velocity:
    """The two networks that learn, as one function of a batch."""

    def __init__(self, model: torch.nn.ModuleDict, device: str):
        self.transformer, self.text = model["transformer"], model["text"]
        self.places = FluxPipeline._prepare_latent_image_ids(1, 8, 8, device, torch.float32)

    def __call__(self, latents, level, pooled, ids, guidance) -> torch.Tensor:
        low = self.transformer.dtype
        # A mask of zeros hides nothing, as in the pipeline, and spares transformers the question whether it
        # does.
        mask = torch.zeros(len(ids), 1, 1, ids.shape[1], dtype=low, device=ids.device)
        text = self.text(input_ids=ids, attention_mask=mask).last_hidden_state
        return self.transformer(
            hidden_states=latents.to(low),
            timestep=level.to(low),
            guidance=guidance.to(low),
            pooled_projections=pooled.to(low),
            encoder_hidden_states=text,
            img_ids=self.places,
            txt_ids=torch.zeros(ids.shape[1], 3, device=ids.device),
            return_dict=False,
        )[0].float()


def make_model(plan: Plan, vocabulary: int, begin: Path | None) -> torch.nn.ModuleDict:
    torch.manual_seed(plan.seed)
    model = torch.nn.ModuleDict(
        {"transformer": make_flux(plan.size), "text": make_t5("t5", vocabulary, plan.size)}
    )
    if begin is not None:
        load_exported(model["transformer"], begin / "transformer" / "diffusion_pytorch_model.safetensors")
        load_exported(model["text"], begin / "text_encoder_2" / "model.safetensors")
    return model


def load_exported(module: torch.nn.Module, path: Path) -> None:
    """The weights that ``save_pretrained`` wrote; of tied ones it writes one name only."""
    missing, unexpected = module.load_state_dict(load_file(path), strict=False)
    tied = set(getattr(module, "_tied_weights_keys", None) or ())
    if unexpected or set(missing) - tied:
        raise ValueError(f"{path} does not fit: missing {missing}, unexpected {unexpected}")


def run(plan: Plan, out: Path, device: str, minutes: float | None = None, begin: Path | None = None) -> Path:
    """Trains both stages as far as ``minutes`` allow; the folder of the exported weights."""
    out.mkdir(parents=True, exist_ok=True)
    start, seconds = time.monotonic(), None if minutes is None else 60 * minutes
    if device.startswith("cuda"):
        plain_kernels()
    frozen = Frozen(device)
    model = make_model(plan, len(frozen.t5_tokenizer), begin).to(device)
    print("parameters", {name: parameters_of(part) for name, part in model.items()}, flush=True)

    learner = GradientLearner(model, device, plan.decay)
    learner.resume(out / "base.pt", device)
    batches = Batches(plan, frozen, device, plan.seed + 1000 + learner.step)
    print(f"pool of {len(batches.pool.latents)} latents after {time.monotonic() - start:.0f} s", flush=True)
    velocity = Velocity(learner.copy, device)

    def flow_loss(latents, target, level, pooled, ids):
        guidance = torch.ones(len(level), device=level.device)
        return (velocity(latents, level, pooled, ids, guidance) - target).square().mean()

    left = None if seconds is None else (seconds - (time.monotonic() - start)) * (1 - plan.distill_share)
    base = Course("flux", learner, plan.steps, plan.rate, left)
    train(base, out / "base.pt", Passes(flow_loss, learner.copies), batches.draw)
    export(out / "undistilled", learner.average, frozen)

    teacher = Velocity(copy.deepcopy(learner.average).to(compute_dtype(device)), device)
    student = GradientLearner(copy.deepcopy(learner.average).requires_grad_(True), device, decay=0.998)
    path = out / f"distilled-{learner.step}.pt"  # one that began from another base is not gone on with
    student.resume(path, device)
    guided, random = Velocity(student.copy, device), batches.random
    # No wrong words now: what they taught the teacher is there already.
    batches.captions = Captions(replace(plan, wrong_words=0.0), frozen.clip_tokenizer, random)

    def guidance_loss(latents, level, pooled, ids, scale, pooled_nothing, ids_nothing):
        with torch.no_grad():
            ones = torch.ones_like(scale)
            told = teacher(latents, level, pooled, ids, ones)
            untold = teacher(latents, level, pooled_nothing, ids_nothing, ones)
            target = untold + scale[:, None, None] * (told - untold)
        return (guided(latents, level, pooled, ids, scale) - target).square().mean()

    def with_scales(step):
        latents, _, level, pooled, ids = batches.draw(step)
        n = len(level)
        scale = 1 + 5 * torch.rand(n, generator=random, device=device)
        plain = torch.rand(n, generator=random, device=device) < 0.1
        return latents, level, pooled, ids, torch.where(plain, 1.0, scale), *batches.nothing(n, ids.shape[1])

    left = None if seconds is None else seconds - (time.monotonic() - start)
    distilled = Course("flux guidance", student, plan.distill_steps, plan.distill_rate, left)
    train(distilled, path, Passes(guidance_loss, student.copies), with_scales)
    folder = export(out / "flux", student.average, frozen)
    report = {
        "plan": asdict(plan),
        "begin": begin is not None,
        "seconds": time.monotonic() - start,
        "steps": learner.step,
        "distill_steps": student.step,
        "losses": base.history,
        "guidance_losses": distilled.history,
    }
    (out / "training.json").write_text(json.dumps(report, indent=1))
    print(f"exported {folder} after {time.monotonic() - start:.0f} s", flush=True)
    return folder


def export(folder: Path, average: torch.nn.ModuleDict, frozen: Frozen) -> Path:
    """What FluxPipeline needs besides the picture model's files, in float16: transformer, T5, tokenizer,
    scheduler, index."""
    with quiet():
        transformer, text = (copy.deepcopy(average[name]).half().cpu() for name in ("transformer", "text"))
        transformer.save_pretrained(folder / "transformer")
        text.save_pretrained(folder / "text_encoder_2")
        frozen.t5_tokenizer.save_pretrained(folder / "tokenizer_2")
        flux_scheduler().save_pretrained(folder / "scheduler")
        frozen.pipeline(transformer, text).save_config(folder)
    return folder


def main(arguments: list[str] | None = None) -> int:
    parser = run_parser(__doc__)
    parser.add_argument("--begin", type=Path, help="start from the exported weights of this folder")
    parser.add_argument(
        "--prompts", type=int, default=200, help="captions measured at the end, of each kind; 0: none"
    )
    options, plan = read_plan(parser, Plan, arguments)
    folder = run(plan, options.out, options.device, options.minutes, options.begin)
    if options.prompts:
        from training.modern.measure import measure_flux

        measure_flux(folder, options.device, options.prompts, options.out / "figures.json")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
