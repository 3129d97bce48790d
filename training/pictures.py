"""Makes the bundled picture model, from drawing its data to the folder that ships: one command, one GPU,
resumable.

    python -m training.pictures --out runs/pictures

Two stages. The autoencoder learns to compress pictures of scenes; then the text encoder and the UNet learn
together to denoise its latents. A run that stops (``--minutes``, a killed machine) goes on from
``OUT/checkpoint.pt`` when the same command is given again. At the end ``OUT/pictures`` is the diffusers
folder and ``OUT/figures.json`` what it reached.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from training.architecture import make_tokenizer, save_pipeline
from training.autoencoder import train_autoencoder
from training.common import read_plan, run_parser
from training.denoiser import train_denoiser


@dataclass
class Plan:
    """Everything that decides what a run makes; training/README.md says what the shipped weights were made
    with."""

    size: str = "bundled"
    seed: int = 20
    vae_steps: int = 2500
    vae_batch: int = 64
    vae_rate: float = 1.5e-3
    steps: int = 6000
    batch: int = 512
    rate: float = 1.0e-3
    pool: int = 131072  # latents held on the device
    fresh: int = 64  # of them drawn and encoded anew at each step
    two: float = 0.6  # share of scenes with two things
    # chance that a caption is wrong about an attribute, so that guidance has work to do
    wrong_words: float = 0.02
    omit: float = 0.10  # chance that a caption leaves an attribute out
    empty: float = 0.10  # chance of the empty caption, for the unconditional half of guidance
    compile: bool = True


class Clock:
    """Stops a run in time: ``clock.over()`` is true once ``minutes`` have passed."""

    def __init__(self, minutes: float | None):
        self.start, self.limit = time.monotonic(), None if minutes is None else 60 * minutes

    def seconds(self) -> float:
        return time.monotonic() - self.start

    def over(self) -> bool:
        return self.limit is not None and self.seconds() > self.limit


def run(plan: Plan, out: Path, device: str, minutes: float | None = None, figures: bool = True) -> bool:
    """Trains as far as ``minutes`` allows. True when the folder in ``out`` is finished, False when more is to
    do."""
    out.mkdir(parents=True, exist_ok=True)
    clock, tokenizer = Clock(minutes), make_tokenizer()
    if device.startswith("cuda"):
        torch.backends.cudnn.benchmark = True
    vae = train_autoencoder(plan, out, device, clock)
    if vae is None:
        return False
    trained = train_denoiser(plan, out, device, clock, vae, tokenizer)
    if trained is None:
        return False
    unet, text_encoder = trained
    save_pipeline(out / "pictures", vae.cpu(), unet.cpu(), text_encoder.cpu(), tokenizer)
    print(f"saved {out / 'pictures'} after {clock.seconds():.0f} s in this run", flush=True)
    if figures:
        from training.evaluate import measure, table

        results = measure(out / "pictures", device)
        (out / "figures.json").write_text(json.dumps({"plan": asdict(plan), "figures": results}, indent=1))
        print(table(results), flush=True)
    return True


def main(arguments: list[str] | None = None) -> int:
    parser = run_parser(__doc__)
    parser.add_argument("--no-figures", action="store_true", help="do not measure fidelity at the end")
    options, plan = read_plan(parser, Plan, arguments)
    done = run(plan, options.out, options.device, options.minutes, not options.no_figures)
    print("finished" if done else "stopped in time; give the same command again to go on", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
