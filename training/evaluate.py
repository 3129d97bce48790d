"""Measures how often the picture model draws what its caption says, by the automatic checker, on held-out
captions.

    python -m training.evaluate [FOLDER] [--prompts 200] [--device cpu] [--only "DDIM 20 steps"]
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

import torch

from inferlab.models.pictures import WEIGHTS, open_folder
from inferlab.models.scenes import check_pictures, sample_scenes

#: name -> (scheduler, steps, guidance)
SETTINGS = {
    "DDIM 20 steps, guidance 4": ("DDIMScheduler", 20, 4.0),
    "Euler 20 steps, guidance 4": ("EulerDiscreteScheduler", 20, 4.0),
    "DPM-Solver++(2M) 20 steps, guidance 4": ("DPMSolverMultistepScheduler", 20, 4.0),
    "DDIM 20 steps, guidance 1": ("DDIMScheduler", 20, 1.0),
    "DDIM 20 steps, guidance 2": ("DDIMScheduler", 20, 2.0),
    "DDIM 20 steps, guidance 8": ("DDIMScheduler", 20, 8.0),
    "DDIM 2 steps, guidance 4": ("DDIMScheduler", 2, 4.0),
    "DDIM 5 steps, guidance 4": ("DDIMScheduler", 5, 4.0),
    "DDIM 10 steps, guidance 4": ("DDIMScheduler", 10, 4.0),
    "DDIM 50 steps, guidance 4": ("DDIMScheduler", 50, 4.0),
}


def held_out_captions(n: int, things: int, seed: int = 777) -> list[str]:
    """n different captions of held-out scenes with one or two things, every attribute said."""
    scenes = sample_scenes(8 * n, torch.Generator().manual_seed(seed), two=float(things == 2),
                           keep="test").scenes()
    captions = list(dict.fromkeys(scene.caption for scene in scenes))
    if len(captions) < n:
        raise ValueError(f"only {len(captions)} different held-out captions, asked for {n}")
    return captions[:n]


@torch.no_grad()
def draw(pipeline, captions: list[str], scheduler: str, steps: int, guidance: float, batch: int = 100,
         seed: int = 0):
    """Pictures (B, 3, 128, 128) in [0, 1] on the pipeline's device; picture i starts from CPU seed ``seed +
    i``."""
    import diffusers

    # Starts from the folder's own scheduler each time, so that one setting leaves nothing behind for the
    # next.
    pipeline.scheduler = getattr(diffusers, scheduler).from_config(pipeline.scheduler.config)
    pictures = []
    for start in range(0, len(captions), batch):
        part = captions[start:start + batch]
        seeds = [torch.Generator().manual_seed(seed + start + i) for i in range(len(part))]
        pictures.append(pipeline(part, num_inference_steps=steps, guidance_scale=guidance, generator=seeds,
                                 output_type="pt").images.float())
    return torch.cat(pictures)


def measure(folder: Path = WEIGHTS, device: str = "cpu", prompts: int = 200, only: str = "",
            seed: int = 0) -> list[dict]:
    """One row a setting: shares of right pictures for one and two things, and which attributes were wrong."""
    rows = []
    pipeline = open_folder(folder, device, torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    for name, setting in SETTINGS.items():
        if only not in name:
            continue
        begin, row = time.monotonic(), {"setting": name, "prompts": prompts, "device": device}
        for things in (1, 2):
            captions = held_out_captions(prompts, things)
            verdicts = check_pictures(draw(pipeline, captions, *setting, seed=seed), captions)
            row[f"things_{things}"] = sum(v.right for v in verdicts) / prompts
            row[f"wrong_{things}"] = dict(Counter(name for v in verdicts for name in v.wrong))
        row["both"] = (row["things_1"] + row["things_2"]) / 2
        row["seconds"] = round(time.monotonic() - begin, 1)
        rows.append(row)
        print(f"{name}: {row['things_1']:.1%} {row['things_2']:.1%} {row['wrong_1']} {row['wrong_2']} "
              f"{row['seconds']} s", flush=True)
    return rows


def table(rows: list[dict]) -> str:
    """The rows as a Markdown table."""
    lines = ["| setting | one thing | two things | both |", "|---|---|---|---|"]
    lines += [f"| {r['setting']} | {r['things_1']:.1%} | {r['things_2']:.1%} | {r['both']:.1%} |"
              for r in rows]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=WEIGHTS)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--prompts", type=int, default=200, help="captions with one thing, and as many "
                                                                 "with two")
    parser.add_argument("--only", default="", help="only settings whose name contains this")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the rows here")
    options = parser.parse_args(arguments)
    rows = measure(options.folder, options.device, options.prompts, options.only, options.seed)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    print(table(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
