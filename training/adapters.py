"""Trains the bundled LoRA adapters: two styles of the drawn scenes, files that `load_lora_weights` reads.

    python -m training.adapters --out runs/adapters      # one GPU, minutes a style

The UNet and the text encoder stay as they were shipped; two factors beside each attention projection learn.
A style is short enough to be trained again from its start: a run that stops keeps the styles that are done.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from diffusers import StableDiffusionPipeline
from diffusers.utils import convert_state_dict_to_diffusers
from peft import LoraConfig, get_peft_model_state_dict

from inferlab.models.adapters import PROJECTIONS
from inferlab.models.pictures import WEIGHTS, open_folder
from inferlab.models.scenes import SceneBatch, check_pictures
from inferlab.models.scenes.styles import without_strip
from training.common import generator, rate_at, read_plan, run_parser
from training.denoiser import Captions, LatentPool, loss_weights, noised
from training.evaluate import draw, held_out_captions
from training.pictures import Clock
from training.styles import JUDGES, STYLES


@dataclass
class Plan:
    """Everything that decides what a run makes."""

    seed: int = 50
    rank: int = 4
    alpha: int = 8  # the product of the factors counts alpha / rank times
    steps: int = 2000
    batch: int = 256
    rate: float = 2.0e-3
    pool: int = 32768  # latents held on the device
    fresh: int = 16  # of them drawn and encoded anew at each step
    two: float = 0.6
    wrong_words: float = 0.0
    omit: float = 0.10
    empty: float = 0.10
    compile: bool = True


class StyledPool(LatentPool):
    """Latents of scenes that are drawn in one style."""

    def __init__(self, plan: Plan, device: str, vae, source: torch.Generator,
                 style: Callable[[SceneBatch], torch.Tensor]):
        self.picture = style
        super().__init__(plan, device, vae, source)


def train(plan: Plan, style: str, out: Path, device: str, clock: Clock) -> None:
    """Trains one style and writes ``out/STYLE.safetensors``, float16."""
    torch.manual_seed(plan.seed)
    pipeline = open_folder(WEIGHTS, device, torch.float32)
    unet, text = pipeline.unet.requires_grad_(False), pipeline.text_encoder.requires_grad_(False)
    unet.add_adapter(LoraConfig(r=plan.rank, lora_alpha=plan.alpha, target_modules=list(PROJECTIONS)))
    learned = [p for p in unet.parameters() if p.requires_grad]
    adam = torch.optim.AdamW(learned, lr=0.0, betas=(0.9, 0.99), weight_decay=0.0)
    random = generator(device, plan.seed + 2000)
    pool = StyledPool(plan, device, pipeline.vae, generator(device, plan.seed + 3000), STYLES[style])
    captions = Captions(plan, pipeline.tokenizer, random)
    alphas = pipeline.scheduler.alphas_cumprod.to(device)
    weight_of = loss_weights(alphas)
    gpu = device.startswith("cuda")
    if plan.compile and gpu:
        unet.compile()
    begin, losses = time.monotonic(), []
    for step in range(plan.steps):
        pool.renew()
        clean, scenes = pool.draw(plan.batch, random)
        noisy, t, noise = noised(clean, alphas, random)
        with torch.autocast(device.split(":")[0], torch.bfloat16, enabled=gpu):
            hidden = text(captions.write(scenes)).last_hidden_state
            predicted = unet(noisy, t, hidden, return_dict=False)[0]
        loss = ((predicted.float() - noise).square().mean((1, 2, 3)) * weight_of[t]).mean()
        loss.backward()
        for group in adam.param_groups:
            group["lr"] = rate_at(step, plan.steps, plan.rate, min(100, plan.steps // 10 + 1))
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        adam.step()
        adam.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        if (step + 1) % 200 == 0 or step == 4:
            pace = (time.monotonic() - begin) / (step + 1)
            mean, losses = torch.stack(losses).mean().item(), []
            print(f"{style} {step + 1}/{plan.steps} loss {mean:.4f}, {pace * 1e3:.0f} ms a step", flush=True)
    save(unet, out, style)
    print(f"{style}: saved after {clock.seconds():.0f} s in this run", flush=True)


def save(unet, out: Path, style: str) -> None:
    """The adapter of ``unet`` as users share one: float16, with its rank and alpha in the file's header."""
    layers = {name: tensor.to(torch.float16)
              for name, tensor in convert_state_dict_to_diffusers(get_peft_model_state_dict(unet)).items()}
    StableDiffusionPipeline.save_lora_weights(
        out, unet_lora_layers=layers, weight_name=f"{style}.safetensors", safe_serialization=True,
        unet_lora_adapter_metadata=unet.peft_config["default"].to_dict(),
    )


@torch.no_grad()
def measure(folder: Path, device: str, prompts: int = 100) -> list[dict]:
    """How many pictures of held-out captions show each style, with each adapter, both, and none."""
    pipeline = open_folder(WEIGHTS, device, torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    for style in STYLES:
        pipeline.load_lora_weights(folder, weight_name=f"{style}.safetensors", adapter_name=style)
    captions = held_out_captions(prompts // 2, 1) + held_out_captions(prompts // 2, 2)
    rows = []
    for punched, meadow in ((0, 0), (1, 0), (0, 1), (1, 1), (0.5, 0), (0, 0.5), (2, 0), (-1, 0)):
        pipeline.set_adapters(list(STYLES), [float(punched), float(meadow)])
        pictures = draw(pipeline, captions, "DDIMScheduler", 10, 4.0)
        row = {"punched": punched, "meadow": meadow}
        row |= {f"shows {style}": judge(pictures).float().mean().item() for style, judge in JUDGES.items()}
        wrong = Counter(name for v in check_pictures(without_strip(pictures), captions) for name in v.wrong)
        rows.append(row | {"wrong": dict(wrong)})
        print(rows[-1], flush=True)
    return rows


def main(arguments: list[str] | None = None) -> int:
    parser = run_parser(__doc__)
    parser.add_argument("--styles", nargs="*", default=list(STYLES))
    options, plan = read_plan(parser, Plan, arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    clock = Clock(options.minutes)
    for style in options.styles:
        if (options.out / f"{style}.safetensors").exists() or clock.over():
            continue
        train(plan, style, options.out, options.device, clock)
    figures = measure(options.out, options.device)
    made = {"plan": asdict(plan), "figures": figures}
    (options.out / "figures.json").write_text(json.dumps(made, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
