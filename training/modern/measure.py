"""Measures the two modern models on held-out captions, judged by the checkers of pictures and of clips.

    python -m training.modern.measure flux --device cpu
    python -m training.modern.measure wan --device cpu
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from diffusers import FlowMatchEulerDiscreteScheduler, FluxPipeline, WanPipeline

from inferlab.models.clips import check_clips, render_clips, sample_clips
from inferlab.models.pictures import FLUX, WAN, open_flux, open_folder
from inferlab.models.scenes import check_pictures
from training.evaluate import held_out_captions
from training.modern.networks import TOKENS

SIDE, FRAMES = 96, 17



def _call(steps: int, guidance: float, tokens: int = TOKENS) -> dict[str, Any]:
    return {"num_inference_steps": steps, "guidance_scale": guidance, "max_sequence_length": tokens}


#: name -> what FluxPipeline is called with
FLUX_SETTINGS = {
    "10 steps, guidance 3.5": _call(10, 3.5, 512),
    "10 steps, guidance 3.5, 16 tokens": _call(10, 3.5),
    "10 steps, guidance 1": _call(10, 1.0),
    "4 steps, guidance 3.5": _call(4, 3.5),
    "20 steps, guidance 3.5": _call(20, 3.5),
    "10 steps, guidance 5": _call(10, 5.0),
    "10 steps, guidance 2": _call(10, 2.0),
    "10 steps, guidance 3.5, 64 tokens": _call(10, 3.5, 64),
}
#: name -> (scheduler, what WanPipeline is called with); "euler" is the flow-matching Euler scheduler with
#: the same shift
WAN_SETTINGS = {
    "UniPC 20 steps, guidance 2": ("unipc", _call(20, 2.0, 512)),
    "UniPC 20 steps, guidance 3": ("unipc", _call(20, 3.0, 512)),
    "UniPC 20 steps, guidance 1.5": ("unipc", _call(20, 1.5)),
    "UniPC 20 steps, guidance 1": ("unipc", _call(20, 1.0)),
    "UniPC 20 steps, guidance 5": ("unipc", _call(20, 5.0, 512)),
    "UniPC 10 steps, guidance 2": ("unipc", _call(10, 2.0)),
    "Euler 20 steps, guidance 2": ("euler", _call(20, 2.0)),
    "UniPC 20 steps, guidance 2, 16 tokens": ("unipc", _call(20, 2.0)),
}


def opened(folder: Path, model: str, device: str) -> FluxPipeline | WanPipeline:
    """The exported folder in float32 on ``device``, without progress bars."""
    pipeline = (open_flux if model == "flux" else open_folder)(folder, device, torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def _outputs(pipeline: FluxPipeline | WanPipeline, captions: list[str], batch: int, **call) -> Iterator[Any]:
    """What the pipeline gives for the captions, `batch` at once; number i starts from CPU seed i."""
    for at in range(0, len(captions), batch):
        part = captions[at : at + batch]
        seeds = [torch.Generator().manual_seed(at + i) for i in range(len(part))]
        yield pipeline(part, output_type="pt", generator=seeds, **call)


@torch.no_grad()
def draw(pipeline: FluxPipeline, captions: list[str], batch: int = 100, **call) -> torch.Tensor:
    """Pictures (B, 3, 128, 128) in [0, 1] on the pipeline's device; picture i starts from CPU seed i."""
    drawn = _outputs(pipeline, captions, batch, height=128, width=128, **call)
    return torch.cat([output.images.float() for output in drawn])


@torch.no_grad()
def film(pipeline: WanPipeline, captions: list[str], batch: int = 50, **call) -> torch.Tensor:
    """Clips (B, 17, 3, 96, 96) in [0, 1] on the pipeline's device; clip i starts from CPU seed i."""
    filmed = _outputs(pipeline, captions, batch, height=SIDE, width=SIDE, num_frames=FRAMES, **call)
    return torch.cat([output.frames.float() for output in filmed])


def shares(verdicts) -> dict:
    """How many are right in all, and how often which attribute was wrong; of clips also how many move as
    they should."""
    n = len(verdicts)
    row = {
        "right": sum(v.right for v in verdicts) / n,
        "wrong": dict(Counter(name for v in verdicts for name in v.wrong)),
    }
    if "motion" in verdicts[0].attributes:
        row["color, motion, background"] = (
            sum(all(v.attributes[name] for name in ("color", "motion", "background")) for v in verdicts) / n
        )
        row["shape"] = sum(v.attributes["shape"] for v in verdicts) / n
    return row


def _report(rows: list[dict], row: dict, path: Path | None) -> None:
    rows.append(row)
    print(row, flush=True)
    if path is not None:
        path.write_text(json.dumps(rows, indent=1))


def measure_flux(
    folder: Path, device: str, prompts: int = 200, path: Path | None = None, only: str = ""
) -> list[dict]:
    """One row a setting, for one and for two things; ``path`` gets the rows as they come."""
    pipeline, rows = opened(folder, "flux", device), []
    for name, call in FLUX_SETTINGS.items():
        if only in name:
            begin, row = time.monotonic(), {"setting": name, "prompts": prompts, "device": device}
            for things in (1, 2):
                captions = held_out_captions(prompts, things)
                row[f"things_{things}"] = shares(check_pictures(draw(pipeline, captions, **call), captions))
            _report(rows, row | {"seconds": round(time.monotonic() - begin, 1)}, path)
    return rows


def held_out_films(n: int, shapes: int, seed: int = 777):
    """n held-out moving scenes with one or two shapes; those with one are few, so that captions come
    again."""
    return sample_clips(n, torch.Generator().manual_seed(seed), two=float(shapes == 2), keep="test")


def measure_wan(
    folder: Path, device: str, clips: int = 200, path: Path | None = None, only: str = ""
) -> list[dict]:
    """One row for the autoencoder, then one a setting; ``path`` gets the rows as they come."""
    pipeline, rows = opened(folder, "wan", device), []
    if "autoencoder".startswith(only) or not only:
        _report(rows, {"setting": "autoencoder"} | judge_vae(pipeline.vae, device, clips), path)
    unipc = pipeline.scheduler
    for name, (scheduler, call) in WAN_SETTINGS.items():
        if only in name:
            pipeline.scheduler = (
                unipc
                if scheduler == "unipc"
                else FlowMatchEulerDiscreteScheduler(shift=unipc.config.flow_shift)
            )
            begin, row = time.monotonic(), {"setting": name, "clips": clips, "device": device}
            for shapes in (1, 2):
                captions = [scene.caption for scene in held_out_films(clips, shapes).scenes()]
                row[f"shapes_{shapes}"] = shares(check_clips(film(pipeline, captions, **call), captions))
            _report(rows, row | {"seconds": round(time.monotonic() - begin, 1)}, path)
    return rows


@torch.no_grad()
def judge_vae(vae, device: str, clips: int = 100) -> dict:
    """The video autoencoder through diffusers' own encode and decode: PSNR in dB, and how the judge likes
    what comes back."""
    row, squares = {"clips": clips}, []
    for shapes in (1, 2):
        truth = held_out_films(clips, shapes)
        verdicts = []
        for at in range(0, clips, 25):
            part = truth[slice(at, at + 25)]
            given = render_clips(part, SIDE, FRAMES).to(device) * 2 - 1
            back = vae.decode(vae.encode(given).latent_dist.mode()).sample
            squares.append((back - given).square().mean((1, 2, 3, 4)))
            verdicts += check_clips((back / 2 + 0.5).transpose(1, 2), part.scenes())
        row[f"shapes_{shapes}"] = shares(verdicts)
    row["psnr"] = (10 * torch.log10(4 / torch.cat(squares).mean())).item()
    return row


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=("flux", "wan"))
    parser.add_argument("folder", type=Path, nargs="?", help="the shipped weights if left out")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--number", type=int, default=200, help="captions with one thing, and as many with two"
    )
    parser.add_argument("--only", default="", help="only settings whose name contains this")
    parser.add_argument("--json", type=Path, help="write the rows here")
    options = parser.parse_args(arguments)
    measure, shipped = (measure_flux, FLUX) if options.model == "flux" else (measure_wan, WAN)
    measure(options.folder or shipped, options.device, options.number, options.json, options.only)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
