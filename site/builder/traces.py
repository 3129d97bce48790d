"""The trace player's page, and the traces it begins with: every bundled model, traced while the site is
built, and models at full size, which `python -m ci.gpu --parts traces` recorded on a GPU."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import inferlab
from inferlab.models import load_language_model, load_pipeline
from inferlab.trace import trace

from . import ROOT
from .digests import digest
from .templates import filled, wide_page

sys.path.insert(0, str(ROOT))
from ci.gpu.page import RESULTS, newest

PACKAGE = Path(inferlab.__file__).parent


def _pictures(guidance: float) -> Any:
    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe, memory="tensors") as t:
        pipe(
            "a red circle left of a blue square",
            num_inference_steps=10,
            guidance_scale=guidance,
            generator=torch.Generator().manual_seed(0),
        )
    return t


def _family(family: str, **more: Any) -> Any:
    pipe = load_pipeline("bundled", "cpu", family=family)
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as t:
        pipe("a red circle", num_inference_steps=4, generator=torch.Generator().manual_seed(0), **more)
    return t


def _language(assisted: bool) -> Any:
    model, tokenizer = load_language_model("bundled", "cpu")
    draft = load_language_model("bundled", "cpu", draft=True)[0] if assisted else None
    ids = tokenizer("tom has a red ball .", return_tensors="pt").input_ids
    more: dict[str, Any] = {"assistant_model": draft} if assisted else {}
    with trace(*((model, draft) if assisted else (model,))) as t:
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=16, do_sample=False, **more)
    return t


RECORDED: dict[str, tuple[str, Callable[[], Any]]] = {
    "pictures": ("Stable Diffusion, 10 guided steps", lambda: _pictures(4.0)),
    "pictures-unguided": ("Stable Diffusion, guidance off", lambda: _pictures(1.0)),
    "flux": ("FLUX, 4 steps", lambda: _family("flux")),
    "wan": ("Wan, a clip in 4 steps", lambda: _family("wan", height=96, width=96, num_frames=17)),
    "language": ("Language model, 16 tokens", lambda: _language(False)),
    "speculation": ("Language model with a draft", lambda: _language(True)),
}
"""Name -> (what it is called, how it is recorded); all of the models that come with the course."""
FULL = {
    "full-sd15": "Stable Diffusion 1.5, 512 × 512, guided",
    "full-flux": "FLUX.1-dev, 1024 × 1024",
    "full-wan": "Wan 2.1, 81 frames of 832 × 480",
    "full-language": "Llama 3 8B, 2,000 tokens in, 16 out",
}
"""File below `ci/results/traces` -> what it is called; a recorded file without a name here is a fault."""


def record(cache: Path, folder: Path) -> None:
    """The recorded traces in `folder`, as Perfetto's JSON; made once for this package's models and tracer."""
    kept = cache / f"traces-{_digest()}"
    if not kept.exists():
        making = cache / "traces-new"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        for name, (_, run) in RECORDED.items():
            with torch.no_grad():
                data = run().perfetto()
            (making / f"{name}.json").write_text(json.dumps(data, separators=(",", ":")), "utf-8")
        making.rename(kept)
    shutil.copytree(kept, folder)


def _digest() -> str:
    """Of all that a trace follows from: the tracer, the models' code and weights, and this file."""
    return digest(Path(__file__), *(PACKAGE / part for part in ("trace", "models", "weights")))


@dataclass(frozen=True)
class FullSize:
    """The recorded runs at full size: where they come from, in words, and (name, title) of each."""

    card: str
    said: str
    traces: list[tuple[str, str]]


def unpack(folder: Path, results: Path = RESULTS) -> FullSize:
    """The traces of full-size runs beside the others in `folder`.

    Raises:
        ValueError: the files, their names here, and the newest run that recorded traces do not agree.
    """
    parts, used = newest(results)
    run, told = parts["traces"][0]
    packed = {path.name.removesuffix(".json.gz"): path for path in (results / "traces").glob("*.json.gz")}
    if not set(packed) == set(FULL) == set(told):
        raise ValueError(f"traces of {run}: {sorted(told)}, files {sorted(packed)}, names {sorted(FULL)}")
    for name in FULL:
        data = gzip.decompress(packed[name].read_bytes())
        phases = [event for event in json.loads(data)["traceEvents"] if event["pid"] == 1]
        count = sum(event["ph"] in "Xi" for event in phases)
        if count != told[name]["boundaries"]:
            raise ValueError(f"{name} has {count} boundaries; {run} says {told[name]['boundaries']}")
        (folder / f"{name}.json").write_bytes(data)
    environment = dict(used)[run]
    packages = ("torch", "diffusers", "transformers")
    versions = ", ".join(f"{one} {environment['packages'][one]}" for one in packages)
    card = environment["card"]["name"].removeprefix("NVIDIA ").split()[0]
    said = f"on an {environment['card']['name']}, {environment['time'][:10]}, with {versions} (run `{run}`)"
    return FullSize(card, said, list(FULL.items()))


def write_player(cache: Path, pages: Path) -> None:
    """Write the player's page, and its traces."""
    folder = pages / "_static" / "traces"
    record(cache, folder)
    full = unpack(folder)
    groups = [
        ("the course's models", [(name, title) for name, (title, _) in RECORDED.items()]),
        (f"at full size, on an {full.card}", full.traces),
    ]
    html = filled("player", groups=groups)
    below = WHERE_FROM.format(said=full.said)
    (pages / "player.md").write_text(wide_page("Trace player", INTRO, html, below), "utf-8")


INTRO = """\
Every place where data crosses a boundary, in one run; steps that repeat are one line. Drop a file here that
`t.perfetto("run.json")` wrote: it stays on your machine."""
WHERE_FROM = """\
## Where the recorded runs come from

**The course's models** are traced on a CPU while this site is built: the weights that ship with the course.

**At full size**: the published architectures, recorded {said}, by `python -m ci.gpu --parts traces`. The
weights are random numbers made on the device. Shapes, bytes and times are real; what was drawn and written
is not. The pictures and the clip took 10 steps; for these, the PNDM scheduler of Stable Diffusion 1.5 asks
the UNet 11 times. *time* is Python's clock, and *device* the card's own, from CUDA events at a boundary's
start and end; the card works later than Python asks, and may wait in between. The timeline's lower part
shows it. [GPU numbers](gpu-numbers.md) has what else was measured there.
"""
