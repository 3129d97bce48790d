"""Trains the bundled ControlNet: lines along edges say where shapes stand, the caption what they are.

    python -m training.control --out runs/control        # one GPU, minutes; resumable

The ControlNet is `ControlNetModel.from_unet`, a copy of the bundled UNet's encoder. Only what `LEARNED` names
learns, and only that is written: the rest is the encoder's, and `inferlab.models.control.load_controlnet`
copies it again.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from diffusers import StableDiffusionControlNetPipeline
from safetensors.torch import save_file

from inferlab.models.control import copy_encoder, load_controlnet
from inferlab.models.pictures import WEIGHTS, open_folder
from inferlab.models.scenes import check_pictures, outlines, sample_scenes
from training.common import Learner, compute_dtype, generator, rate_at, read_plan, run_parser
from training.denoiser import CHECKPOINT_SECONDS, Captions, LatentPool, loss_weights, noised
from training.pictures import Clock

#: Parts of the copy that learn: what is new in it, and the first block's convolutions.
LEARNED = ("controlnet_cond_embedding.", "controlnet_down_blocks.", "controlnet_mid_block.", "conv_in.",
           "down_blocks.0.resnets.")


@dataclass
class Plan:
    """Everything that decides what a run makes."""

    seed: int = 60
    steps: int = 5000
    batch: int = 256
    rate: float = 1.0e-3
    pool: int = 65536  # latents held on the device
    fresh: int = 32  # of them drawn and encoded anew at each step
    two: float = 0.6
    wrong_words: float = 0.0
    omit: float = 0.50  # the lines, not the words, say where things stand and how large they are
    empty: float = 0.20
    compile: bool = True


def run(plan: Plan, out: Path, device: str, minutes: float | None = None) -> bool:
    """Trains as far as ``minutes`` allows. True when ``out`` is finished, False when more is to do."""
    out.mkdir(parents=True, exist_ok=True)
    clock = Clock(minutes)
    torch.manual_seed(plan.seed)
    pipeline = open_folder(WEIGHTS, device, torch.float32)
    dtype = compute_dtype(device)
    control = copy_encoder(pipeline.unet)
    for name, parameter in control.named_parameters():
        parameter.requires_grad_(name.startswith(LEARNED))
    learner = Learner(control.to(device), device, decay=0.999)
    learner.resume(out / "checkpoint.pt", device)
    unet = pipeline.unet.requires_grad_(False).to(dtype)
    text = pipeline.text_encoder.requires_grad_(False).to(dtype)
    random = generator(device, plan.seed + 2000 + learner.step)
    pool = LatentPool(plan, device, pipeline.vae, generator(device, plan.seed + 3000 + learner.step))
    captions = Captions(plan, pipeline.tokenizer, random)
    alphas = pipeline.scheduler.alphas_cumprod.to(device)
    weight_of = loss_weights(alphas)
    if plan.compile and device.startswith("cuda"):
        unet.compile()
        learner.copy.compile()
    begin, saved, losses, first = time.monotonic(), time.monotonic(), [], learner.step
    while learner.step < plan.steps and not clock.over():
        pool.renew()
        clean, scenes = pool.draw(plan.batch, random)
        noisy, t, noise = noised(clean, alphas, random)
        noisy = noisy.to(dtype)
        lines = outlines(scenes).expand(-1, 3, -1, -1).to(dtype)
        hidden = text(captions.write(scenes)).last_hidden_state
        down, middle = learner.copy(noisy, t, hidden, controlnet_cond=lines, return_dict=False)
        predicted = unet(noisy, t, hidden, down_block_additional_residuals=down,
                         mid_block_additional_residual=middle, return_dict=False)[0]
        loss = ((predicted.float() - noise).square().mean((1, 2, 3)) * weight_of[t]).mean()
        loss.backward()
        learner.update(rate_at(learner.step, plan.steps, plan.rate, min(200, plan.steps // 10 + 1)))
        losses.append(loss.detach())
        if learner.step % 200 == 0 or learner.step == first + 5:
            pace = (time.monotonic() - begin) / (learner.step - first)
            mean, losses = torch.stack(losses).mean().item(), []
            print(f"control {learner.step}/{plan.steps} loss {mean:.4f}, {pace * 1e3:.0f} ms a step",
                  flush=True)
        if time.monotonic() - saved > CHECKPOINT_SECONDS:
            learner.save(out / "checkpoint.pt")
            saved = time.monotonic()
    learner.save(out / "checkpoint.pt")
    save(learner.average, out / "control")  # also of an unfinished run: to be looked at
    if learner.step < plan.steps:
        return False
    figures = measure(out / "control", device)
    (out / "figures.json").write_text(json.dumps({"plan": asdict(plan), "figures": figures}, indent=1))
    return True


def save(control, folder: Path) -> None:
    """What the copy learned, float16, and its configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: tensor.to(torch.float16).contiguous().cpu()
             for name, tensor in control.state_dict().items() if name.startswith(LEARNED)}
    save_file(state, folder / "learned.safetensors", {"format": "pt"})
    control.save_config(folder)


@torch.no_grad()
def measure(folder: Path, device: str, prompts: int = 200) -> list[dict]:
    """On held-out scenes: the share of right pictures, and how many pixels things stand from their lines."""
    scenes = sample_scenes(prompts, torch.Generator().manual_seed(778), two=0.5, keep="test")
    captions = [scene.caption for scene in scenes.scenes()]
    bare = [replace(scene, relation=None, position=None,
                    things=tuple(replace(thing, size=None) for thing in scene.things)).caption
            for scene in scenes.scenes()]
    lines = outlines(scenes).expand(-1, 3, -1, -1).to(device)
    pipeline = open_folder(WEIGHTS, device, torch.float32)
    guided = StableDiffusionControlNetPipeline(
        **pipeline.components | {"controlnet": load_controlnet(pipeline.unet, folder)},
        requires_safety_checker=False,
    )
    guided.set_progress_bar_config(disable=True)
    rows = []
    for name, words, scale in (("caption and lines", captions, 1.0), ("lines, places unsaid", bare, 1.0),
                               ("places unsaid, no lines", bare, 0.0), ("lines alone", [""] * prompts, 1.0),
                               ("lines at half scale", bare, 0.5)):
        seeds = [torch.Generator().manual_seed(i) for i in range(prompts)]
        pictures = guided(words, image=lines, num_inference_steps=10, guidance_scale=4.0, generator=seeds,
                          controlnet_conditioning_scale=scale, output_type="pt").images.float()
        verdicts = check_pictures(pictures, captions)
        away = [min(((thing.x - x) ** 2 + (thing.y - y) ** 2) ** 0.5 for thing in verdict.things)
                for verdict, count, xs, ys in zip(verdicts, scenes.count.tolist(), scenes.x.tolist(),
                                                  scenes.y.tolist(), strict=True) if verdict.things
                for x, y in list(zip(xs, ys, strict=True))[:count]]
        wrong: dict[str, int] = {}
        for verdict in verdicts:
            for attribute in verdict.wrong:
                wrong[attribute] = wrong.get(attribute, 0) + 1
        rows.append({"setting": name, "right": sum(v.right for v in verdicts) / prompts, "wrong": wrong,
                     "pixels from the lines": sorted(away)[len(away) // 2],
                     "within 3 pixels": sum(a < 3 for a in away) / max(1, len(away))})
        print(rows[-1], flush=True)
    return rows


def main(arguments: list[str] | None = None) -> int:
    parser = run_parser(__doc__)
    options, plan = read_plan(parser, Plan, arguments)
    done = run(plan, options.out, options.device, options.minutes)
    print("finished" if done else "stopped in time; give the same command again to go on", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
