"""Runs of full-size models, traced on the card: `NAME.json.gz`, which the website's player opens beside the
bundled models' traces."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from inferlab.models import load_language_model, load_pipeline
from inferlab.trace import trace

from .measure import fresh


def _picture(family: str, device: str, model: str, **options: Any) -> Any:
    pipe = load_pipeline(model, device, family=family)
    pipe.set_progress_bar_config(disable=True)

    def call(steps: int) -> Any:
        with trace(pipe) as t:
            pipe("a red circle", num_inference_steps=steps, generator=torch.Generator("cpu").manual_seed(0),
                 **options)
        return t

    call(2)  # what only a first call does
    return call(10)


def _language(device: str, model: str) -> Any:
    llama, _ = load_language_model(model, device)
    ids = torch.randint(0, llama.config.vocab_size, (1, 2000 if model == "full" else 16), device=device,
                        generator=torch.Generator(device).manual_seed(0))

    def call() -> Any:
        with trace(llama) as t:
            llama.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=16, min_new_tokens=16,
                           do_sample=False)
        return t

    call()
    return call()


TINY_CLIP = {"num_frames": 5, "height": 96, "width": 96}
#: Name -> how it is recorded. Guidance is on where a pipeline has it.
RECORDED: dict[str, Callable[[str, str], Any]] = {
    "full-sd15": lambda device, model: _picture("sd", device, model, guidance_scale=7.5),
    "full-flux": lambda device, model: _picture("flux", device, model),
    "full-wan": lambda device, model: _picture("wan", device, model,
                                               **({} if model == "full" else TINY_CLIP)),
    "full-language": _language,
}


def record(device: str, folder: Path, tiny: bool, say: Callable[[dict[str, Any]], None]) -> None:
    """Writes each trace into `folder`; tells its boundaries and milliseconds."""
    folder.mkdir(parents=True, exist_ok=True)
    told: dict[str, Any] = {}
    for name, run in RECORDED.items():
        with torch.no_grad():
            t = run(device, "bundled" if tiny else "full")
        text = json.dumps(t.perfetto(), separators=(",", ":"))
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        told[name] = {"boundaries": len(t), "ms": round(t.ms, 1)}
        say(told)
        del t
        fresh(device)
