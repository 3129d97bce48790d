"""Measures the course on this machine's GPU: `python -m ci.gpu`, one JSON under ci/results/ (`make
bench-gpu`).

Parts, in order, each saved as it ends: notebooks, limits, vae and offload (beside each other: bytes, not
seconds), floors, decode, trace, traces, skipping, knobs, parallel where there are two cards, and compile.
With two cards the notebooks have both, or the second one where floors and decode run, too, which wait for
the card rather than the host and go on beside them. A part that fails is recorded with its error, and the
next one goes on; the exit code is then 1.

    python -m ci.gpu --parts floors,trace       only these
    python -m ci.gpu --device cpu --model bundled --tiny --out FILE      a rehearsal without a GPU, in minutes
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from . import decode as decoding
from . import floors, knobs, limits, notebooks, offload, skipping, traces, tracing, vae
from .measure import ROOT, environment, fresh

PARTS = ("notebooks", "build", "limits", "vae", "offload", "floors", "decode", "trace", "traces", "skipping",
         "knobs", "parallel", "compile")
BESIDE_NOTEBOOKS = ("notebooks", "build", "limits", "vae", "offload")
COMPILE_SECONDS = 100  # what compiling the whole language model may take; it is not begun with less left
AFTER_ROUNDS = 40  # seconds that the trace part needs after its rounds


class Session:
    """Options, and the results so far, written to their file whenever something is added."""

    def __init__(self, options: argparse.Namespace):
        self.options, self.device, self.tiny = options, options.device, options.tiny
        self.began = time.monotonic()
        self.results: dict[str, Any] = {"environment": environment(options.device), "model": options.model,
                                        "parts": {}, "errors": {}}
        self.running: list = []

    def say(self, part: str) -> Callable[[Any], None]:
        """A function that stores a part's data so far."""

        def store(data: Any) -> None:
            self.results["parts"][part] = data
            self.save()

        return store

    def save(self) -> None:
        self.results["seconds"] = round(time.monotonic() - self.began, 1)
        self.options.out.parent.mkdir(parents=True, exist_ok=True)
        self.options.out.write_text(json.dumps(self.results, separators=(",", ":")) + "\n", "utf-8")

    def left(self) -> float:
        return self.options.budget - (time.monotonic() - self.began)


def part_limits(s: Session) -> None:
    if s.device == "cpu":
        raise RuntimeError("the allocator's limit is a GPU's: this part has nothing to do on a CPU")
    s.say("limits")(limits.limits(s.device))


def part_build(s: Session) -> None:
    s.say("build")(limits.built(s.device, s.tiny))


def part_vae(s: Session) -> None:
    pipe = _pipe(s)
    sizes = ((128, 1), (128, 2)) if s.tiny else ((512, 1), (512, 4), (768, 2), (1024, 1), (1024, 2),
                                                 (2048, 1), (2048, 2))
    found = vae.peaks(pipe.vae, sizes, s.device, s.say("vae"))
    found["attributed"] = [vae.attributed(pipe.vae, side, s.device)
                           for side in ((128,) if s.tiny else (1024,))]
    pipe.vae.to(torch.float32)
    found["float32"] = vae.peaks(pipe.vae, sizes[:2] if s.tiny
                                 else ((512, 1), (512, 2), (1024, 1), (1024, 2)), s.device, lambda _: None)
    s.say("vae")(found)


def part_offload(s: Session) -> None:
    s.say("offload")(offload.difference(s.device))


def part_floors(s: Session) -> None:
    s.say("floors")(floors.rates(s.device, s.tiny))


def part_trace(s: Session) -> None:
    pipe = _pipe(s)
    steps, size = (2, 128) if s.tiny else (20, 512)

    def call(steps=steps):
        pipe("a red circle", generator=torch.Generator("cpu").manual_seed(0), num_inference_steps=steps,
             height=size,
             width=size, output_type="np")

    call()
    found = {"steps": steps, "size": size, "sums": tracing.sums(pipe, call, s.device)}
    s.say("trace")(found)
    found["boundary_us"] = tracing.boundary_us(s.device)
    found["pieces_us"] = tracing.pieces_us(s.device, 50 if s.tiny else 2000)
    s.say("trace")(found)
    found["cost"] = cost = tracing.cost(pipe, call, s.device, 2 if s.tiny else s.options.rounds,
                                        lambda: call(2),
                                        lambda: s.left() > AFTER_ROUNDS)
    default = next(row for row in cost["rows"] if row["name"] == "default depth")
    default["counted"] = tracing.counted(default, found["boundary_us"]["parts"], cost["untraced_seconds"][0])
    s.say("trace")(found)


def part_traces(s: Session) -> None:
    traces.record(s.device, s.options.out.parent / "traces", s.tiny, s.say("traces"))


def part_skipping(s: Session) -> None:
    rate = s.results["parts"].get("floors") or floors.rates(s.device, s.tiny)
    fresh(s.device)
    skipping.measure(s.device, s.tiny, rate["matrix_flops_per_s"], s.say("skipping"))


def part_decode(s: Session) -> None:
    from inferlab.models import load_language_model

    rate = s.results["parts"].get("floors") or floors.rates(s.device, s.tiny)
    began = time.monotonic()
    model, _ = load_language_model("bundled" if s.tiny else "full", s.device)
    made = round(time.monotonic() - began, 2)
    found: dict[str, Any] = {"made_seconds": made, "parameters": model.num_parameters()}
    found["prefill"] = floors.prefill(model, rate, 64 if s.tiny else 2048, 2 if s.tiny else 12,
                                      compiled=s.device != "cpu")
    s.say("decode")(found)
    torch.compiler.reset()

    def say(rows: dict) -> None:
        found["decode"] = rows
        s.say("decode")(found)

    decoding.decode(model, rate, 16 if s.tiny else 256, say, calls=2 if s.tiny else 16)


def part_compile(s: Session) -> None:
    from inferlab.models import load_language_model

    if s.device == "cpu" or s.left() < COMPILE_SECONDS:
        s.results["errors"]["compile"] = f"not run: it needs a GPU and {COMPILE_SECONDS} s"
        return
    rate = s.results["parts"].get("floors") or floors.rates(s.device, s.tiny)
    model, _ = load_language_model("bundled" if s.tiny else "full", s.device)
    decoding.compiled(model, rate, 16 if s.tiny else 256, s.say("compile"))


def part_knobs(s: Session) -> None:
    from inferlab.models import load_pipeline

    from .published import xl_embeddings, xl_pipeline

    steps, pictures = 2, 2
    sides = (128,) if s.tiny else (512, 1024, 2048)

    def call(pipe, side, **prompt):
        given = prompt or {"prompt": ["a red circle"] * pictures}
        pipe(**given, num_inference_steps=steps, guidance_scale=1.0, height=side, width=side,
             output_type="pt",
             generator=torch.Generator("cpu").manual_seed(0))

    def make(load):
        pipe = load()
        pipe.set_progress_bar_config(disable=True)
        return pipe

    found: dict[str, Any] = {"steps": steps, "pictures": pictures, "guidance": False}
    names = knobs.KNOBS[:3] if s.device == "cpu" else knobs.KNOBS
    found["sd15"] = {}
    knobs.measure_knobs(lambda: make(lambda: load_pipeline(s.options.model, s.device)), call, sides, s.device,
                        found["sd15"], lambda _: s.say("knobs")(found), names)
    if not s.tiny:
        embeddings = xl_embeddings(pictures, s.device, torch.float16)
        found["sdxl"] = {}
        knobs.measure_knobs(lambda: make(lambda: xl_pipeline(s.device, torch.float16)),
                            lambda pipe, side: call(pipe, side, **embeddings), sides, s.device, found["sdxl"],
                            lambda _: s.say("knobs")(found), names)
    s.say("knobs")(found)


def part_parallel(s: Session) -> None:
    if s.device != "cpu" and torch.cuda.device_count() < 2:
        s.results["errors"]["parallel"] = "not run: this machine has one card"
        return
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "parallel.json"
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m",
                   "ci.gpu.parallel", "--out", str(out),
                   "--device", s.device, "--model", "bundled" if s.tiny else "full"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False,
                              timeout=max(30.0, min(200.0, s.left())))
        if done.returncode:
            raise RuntimeError(done.stderr[-2500:])
        s.say("parallel")(json.loads(out.read_text("utf-8")))


def _pipe(s: Session):
    from inferlab.models import load_pipeline

    pipe = load_pipeline(s.options.model, s.device)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def run_part(s: Session, name: str) -> None:
    """One part; whatever it raises is recorded and printed, and the others go on."""
    began = time.monotonic()
    try:
        if name == "notebooks":
            begin_notebooks(s)
        else:
            globals()[f"part_{name}"](s)
    except Exception as error:  # noqa: BLE001 - recorded, printed, and the exit code says so
        s.results["errors"][name] = f"{type(error).__name__}: {error}\n{traceback.format_exc()[-2000:]}"
        print(s.results["errors"][name], file=sys.stderr)
    fresh(s.device)
    s.results.setdefault("part_seconds", {})[name] = round(time.monotonic() - began, 1)
    s.save()
    print(f"{name}: {time.monotonic() - began:.1f} s, {s.left():.0f} s left", file=sys.stderr, flush=True)


def begin_notebooks(s: Session) -> None:
    if s.options.labs:
        jobs = [(lab, model or "bundled") for lab, _, model in (name.partition(":")
                                                                for name in s.options.labs.split(","))]
    else:
        jobs = notebooks.jobs_for(notebooks.labs(), "each" if s.options.model == "full" else s.options.model)
    beside = {"floors", "decode"} & set(s.options.parts.split(","))
    cards = (("1",) if beside else ("1", "0")) if second_card(s) else ()
    s.running = notebooks.start(jobs, s.device, s.options.out.parent / f"{s.options.out.stem}-notebooks",
                                cards)


def second_card(s: Session) -> bool:
    return s.device != "cpu" and torch.cuda.device_count() > 1


def end_notebooks(s: Session) -> None:
    if s.running:
        rows = notebooks.finish(s.running, min(s.options.notebook_seconds, s.left()))
        s.running = []
        s.say("notebooks")({"rows": rows})
        notebooks.show(rows)


def main(argv: list[str] | None = None) -> int:
    """Runs the parts; returns 1 when one failed or a notebook has a problem."""
    parser = argparse.ArgumentParser(prog="python -m ci.gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=None, help="the JSON (ci/results/gpu-TIME.json)")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--labs", default="", help="notebooks: only these, as LAB or LAB:MODEL, with "
                                                   "commas between")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--model", default="full", help="pictures: full or bundled (full)")
    parser.add_argument("--tiny", action="store_true", help="small sizes and the bundled language model: a "
                                                            "rehearsal")
    parser.add_argument("--rounds", type=int, default=20, help="interleaved rounds of the trace "
                                                               "benchmark (20)")
    parser.add_argument("--budget", type=float, default=3600.0, help="seconds in all; no part is begun "
                                                                     "after them")
    parser.add_argument("--notebook-seconds", type=float, default=600.0)
    options = parser.parse_args(argv)
    chosen = options.parts.split(",")
    if set(chosen) - set(PARTS):
        parser.error(f"parts are {', '.join(PARTS)}")
    options.out = options.out or ROOT / "ci" / "results" / time.strftime("gpu-%Y%m%dT%H%M%SZ.json",
                                                                         time.gmtime())
    session = Session(options)
    for name in [part for part in PARTS if part in chosen]:
        if name not in BESIDE_NOTEBOOKS and not (second_card(session) and name in ("floors", "decode")):
            end_notebooks(session)  # what is timed begins when they are done
        if session.left() < 5:
            session.results["errors"][name] = "not run: the time was used up"
            session.save()
            continue
        run_part(session, name)
    end_notebooks(session)
    session.save()
    bad = [row for row in session.results["parts"].get("notebooks", {}).get("rows", []) if row["problems"]]
    return 1 if session.results["errors"] or bad else 0


if __name__ == "__main__":
    sys.exit(main())
