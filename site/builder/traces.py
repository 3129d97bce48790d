"""The trace player's page, and the traces it begins with: every bundled model, traced while the site is
built."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import inferlab
from inferlab.models import load_language_model, load_pipeline
from inferlab.trace import trace

from .templates import filled, wide_page

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
    total = hashlib.sha256(Path(__file__).read_bytes())
    for part in ("trace", "models", "weights"):
        for path in sorted((PACKAGE / part).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                total.update(path.read_bytes())
    return total.hexdigest()[:16]


def write_player(cache: Path, pages: Path) -> None:
    """Write the player's page, and its traces."""
    record(cache, pages / "_static" / "traces")
    html = filled("player", traces=[(name, title) for name, (title, _) in RECORDED.items()])
    (pages / "player.md").write_text(wide_page("Trace player", INTRO, html), "utf-8")


INTRO = """\
Every place where data crosses a boundary, in one run. What repeats from step to step is folded into one
line. Drop a file here that `t.perfetto("run.json")` wrote, or choose one of the course's models; the file
stays on your machine."""
