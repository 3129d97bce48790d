"""Writes handbook/gpu-numbers.md from the newest results under ci/results/: `python -m ci.gpu.page [--check]`.

Every part of the page comes from the newest run that has that part, and says from which card and commit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from .measure import ROOT
from .vae import copies

RESULTS = ROOT / "ci" / "results"
PAGE = ROOT / "handbook" / "gpu-numbers.md"
HEAD = """\
# The course on a GPU: numbers

A number without its card, versions and spread means little. Each section names its run; the table lists the runs.
Medians are given; the runs hold least, greatest and count. Weights are random at full size: shapes, bytes and times are
real, pictures and texts are not.
"""
FOOT = """
---

This page is made by `python -m ci.gpu.page` from the runs under `ci/results/`. Do not edit it. `make bench-gpu` measures
your card and writes a run of its own; then make the page again.
"""


Runs = list[tuple[str, dict[str, Any]]]


def newest(folder: Path = RESULTS) -> tuple[dict[str, Runs], list[tuple[str, dict]]]:
    """(part -> [(run's name, data)], the runs used with their environments): for each part the newest run of each card that
    has it, the newest first.

    Rows of notebooks are merged: each (lab, model) comes from the newest run that executed it.
    """
    runs = [(path.stem, json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("gpu-*.json"))]
    runs.sort(key=lambda run: run[1]["environment"]["time"], reverse=True)
    parts: dict[str, Runs] = {}
    notebooks: dict[tuple[str, str], dict] = {}
    seen = set()
    for name, run in runs:
        for part, data in run["parts"].items():
            key = (part, run["environment"]["card"]["name"])
            if part == "knobs" and not all("rounds" in model for model in data.values() if isinstance(model, dict)):
                continue  # timed once, in one order, the first one cold: its seconds say nothing
            if part != "notebooks" and key not in seen:
                seen.add(key)
                parts.setdefault(part, []).append((name, data))
        for row in run["parts"].get("notebooks", {}).get("rows", []):
            notebooks.setdefault((row["lab"], row["model"]), row | {"run": name})
    if notebooks:
        parts["notebooks"] = [("", {"rows": [notebooks[key] for key in sorted(notebooks)]})]
    used = {name for found in parts.values() for name, _ in found} | {row["run"] for row in notebooks.values()}
    return parts, [(name, run["environment"]) for name, run in reversed(runs) if name in used]


def table(head: list[str], rows: list[list[Any]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}" if seconds < 0.1 else f"{seconds * 1e3:.0f}"


def gb(count: float) -> str:
    return f"{count / 1e9:.2f}"


def met(row: dict[str, Any]) -> str:
    return {True: "yes", False: "no"}.get(row.get("met"), "")


def runs_table(used: list[tuple[str, dict]]) -> str:
    rows = []
    for name, about in used:
        card, packages = about["card"], about["packages"]
        rows.append([name, f"{card['name']} ×{card['count']}", card.get("driver", ""), card.get("cuda", ""), packages["torch"],
                     packages["transformers"], packages["diffusers"], about["commit"]])
    return table(["run", "card", "driver", "CUDA", "torch", "transformers", "diffusers", "commit"], rows)


def trace_part(data: dict[str, Any]) -> str:
    sums, cost = data["sums"], data.get("cost")
    text = (f"Stable Diffusion 1.5 at full size, float16, {data['size']}x{data['size']} pixels, {data['steps']} steps. ")
    if cost:
        walls = cost.get("untraced") or cost["seconds"]["untraced"]
        text += f"Untraced {statistics.median(walls):.3f} s (from {min(walls):.3f} to {max(walls):.3f}: the host is shared and drifts)"
        if "untraced_again" in cost:
            again = [b / a for a, b in pairwise(walls)]
            text += (f"; one untraced run over the one before it: median {statistics.median(again):.3f}, from {min(again):.3f} to "
                     f"{max(again):.3f}, which is the noise under these ratios")
        text += ".\n\n"
        rows = [[r["name"], f"{r['ratio']:.3f}", f"{r['low']:.3f} to {r['high']:.3f}", r.get("goal", ""), met(r), r.get("boundaries", ""),
                 f"{r['us_per_boundary']:.1f}" if "us_per_boundary" in r else "", f"{r['start_ms']:.1f}" if "start_ms" in r else "",
                 r.get("rounds", cost["rounds"])] for r in cost["rows"]]
        text += table(["", "ratio", "95% interval", "goal", "met", "boundaries", "µs each", "start and end, ms", "runs"], rows)
        text += _other_ratios(cost["rows"])
    if "boundary_us" in data:
        text += "\nIn a loop of modules that do nothing, µs a boundary: " + ", ".join(
            f"{name} {value:.1f}" for name, value in data["boundary_us"].items()) + ".\n"
    if "pieces_us" in data:
        text += "\nEach piece alone, µs: " + ", ".join(f"{name} {value:.1f}" for name, value in data["pieces_us"].items()) + (
            ". A boundary reads the allocator twice, once where nothing can happen in it; torch gives its two numbers only with its whole table.\n")
    if "sum_over_call" in sums:
        text += (f"\nDevice times come from CUDA events; nothing waits inside the call. The outermost boundaries sum to "
                 f"{sums['sum_gpu_ms']:.1f} of the call's {sums['call_gpu_ms']:.1f} ms ({sums['sum_over_call']:.1%}). "
                 f"{sums['bound']['host']} boundaries are bound by the host, {sums['bound']['device']} by the device: "
                 f"{sums['bound_ms']['host']:.0f} and {sums['bound_ms']['device']:.0f} ms. The highest allocated bytes, "
                 f"{gb(sums['peak_bytes'])} GB, belong to `{sums['peak_at']}`; the allocator's own peak is "
                 f"{gb(sums['allocator_peak'])} GB.\n")
    return text


def _other_ratios(rows: list[dict[str, Any]]) -> str:
    """The same runs by other statistics, where a run has them, and what the parts of a trace add up to."""
    shown = [r for r in rows if "of_medians" in r]
    if not shown:
        return ""
    lines = [[r["name"], *(f"{x[0]:.3f} ({x[1]:.3f} to {x[2]:.3f})" for x in (r["of_medians"], r["of_quartiles"])), f"{r['cpu']:.3f}",
              f"{r['best_over_best']:.3f}", f"{r['counted']['ratio']:.3f}" if "counted" in r else ""] for r in shown]
    text = ("\n*Ratio* is the median over pairs: a traced run over the mean of the untraced ones before and after it. The same runs "
            "otherwise:\n\n" + table(["", "of medians", "of lower quartiles", "of CPU seconds, pairs", "of best runs", "counted"], lines))
    count = next((r["counted"] for r in shown if "counted" in r), None)
    if count:
        text += (f"\n*Counted* needs no runs of the call: {count['start_ms']:.1f} ms to start and end the trace, and "
                 f"{count['boundaries_ms']:.1f} ms for its boundaries at the time of one in a loop (below), over the untraced call.\n")
    return text


def floors_part(data: dict[str, Any]) -> str:
    return table(["what", "measured"], [
        ["copy, bytes read and written", f"{data['copy_bytes_per_s'] / 1e12:.2f} TB/s"],
        ["reading a matrix for one vector", f"{data['read_bytes_per_s'] / 1e12:.2f} TB/s"],
        [f"product of two {data['matrix_side']}x{data['matrix_side']} matrices, {data['dtype']}",
         f"{data['matrix_flops_per_s'] / 1e12:.0f} TFLOP/s"]])


def decode_part(data: dict[str, Any], compiled: dict[str, Any] | None) -> str:
    found, prefill = data["decode"], data["prefill"]
    rows = [*found["rows"], *((compiled or {}).get("rows", []))]
    text = (f"Llama 3 8B's architecture, bfloat16, batch 1, {found['context']} tokens in the cache. {gb(found['bytes'])} GB must move "
            f"for each token: at the measured copy bandwidth the floor is {ms(found['floor_seconds'])} ms. "
            f"Goal: {found['goal']} times the floor.\n\n")
    shown = [[r["regime"], ms(r["median"]), f"{ms(r['min'])} to {ms(r['max'])}", f"{r['over_floor']:.2f}", met(r),
              r.get("compile_seconds", ""), r.get("logits_apart", "")]
             if "median" in r else [r["regime"], r["error"].split(chr(10))[0][:120], "", "", "no", "", ""] for r in rows]
    text += table(["regime", "ms", "spread", "× floor", "met", "first call, s", "logits apart"], shown)
    if "noise" in found:
        text += (f"\n\"Logits apart\" is the relative distance from the model's own; summing in another order (the token inside the "
                 f"prompt instead of after it) moves the model's own logits by {found['noise']:.3f}.\n")
    if found.get("matvec"):
        text += "\nMatrix and vector, each in a graph of up to four different matrices:\n\n" + table(
            ["matrix", "library, TB/s", "Triton, TB/s"],
            [[name, f"{m['bytes_per_s']['library'] / 1e12:.2f}", f"{m['bytes_per_s']['triton'] / 1e12:.2f}"] for name, m in found["matvec"].items()])
    text += (f"\n**Prefill** of {prefill['tokens']:,} tokens: {prefill['flops_causal'] / 1e12:.1f} TFLOP (of attention's scores only "
             f"those under the mask), floor {ms(prefill['floor_seconds'])} ms, goal {prefill['goal']} times.\n\n")
    return text + table(["regime", "ms", "spread", "× floor", "met"], [
        [r["regime"], ms(r["median"]), f"{ms(r['min'])} to {ms(r['max'])}", f"{r['over_floor']:.2f}",
         "yes" if r["over_floor"] <= prefill["goal"] else "no"] for r in prefill["rows"]])


def skipping_part(data: dict[str, Any]) -> str:
    floor = data["floor_of_a_pass"]
    text = (f"FLUX.1's architecture, bfloat16, {data['size']}x{data['size']} pixels, {data['steps']} steps, from finished text embeddings to latents. "
            f"A pass of the transformer is {data['flops_of_a_pass'] / 1e12:.0f} TFLOP: at the measured matrix rate {ms(floor)} ms. The weights are "
            "random, so where the first-block cache skips says nothing of a trained model: its rows are the time of so many whole passes.\n\n")
    rows = []
    for r in data["rows"]:
        least = floor * r["full_passes"] if r["full_passes"] else None
        rows.append([r["name"], f"{r['median']:.2f}", f"{r['min']:.2f} to {r['max']:.2f}", f"{r['full_passes']:g}" if least else "",
                     f"{least:.2f}" if least else "", f"{r['median'] / least:.2f}" if least else "", f"{r['first']:.1f}"])
    return text + table(["", "s", "spread", "whole passes", "floor, s", "× floor", "first call, s"], rows)


def vae_part(data: dict[str, Any]) -> str:
    text = ("Stable Diffusion's decoder. *Forecast* is lab 10's formula, three maps of the last block's input: the tensors that are "
            "alive. cuDNN's convolutions work in another memory order than PyTorch's tensors and hold copies of what goes in and "
            "out besides: 4 maps, with one picture in a pass 4¾ (`ci/gpu/vae.py` says where). *Off* is the allocator's peak over "
            "the column before it, less 1; the goal is 10%.\n")
    for dtype, rows in ((data["dtype"], data["rows"]), ("float32", data.get("float32", {}).get("rows", []))):
        if not rows:
            continue
        lines = []
        for r in rows:
            if "peak" not in r:
                lines.append([r["pixels"], r["batch"], r["knob"], "does not fit", "", "", "", "", ""])
                continue
            whole = copies(r["forecast"], 1 if r["knob"] == "slicing" else r["batch"])
            lines.append([r["pixels"], r["batch"], r["knob"], gb(r["peak"]), gb(r["forecast"]), f"{r['off_by']:+.0%}", gb(whole),
                          f"{r['peak'] / whole - 1:+.0%}", f"{r['seconds']:.2f}"])
        text += f"\n{dtype}:\n\n" + table(["pixels", "pictures", "knob", "allocator, GB", "forecast, GB", "off", "with copies, GB", "off",
                                           "seconds"], lines)
    return text


def knobs_part(data: dict[str, Any]) -> str:
    text = (f"{data['pictures']} pictures, {data['steps']} steps, no guidance, float16, the whole pipeline with its weights; SDXL without "
            "text encoders. Peak in GB (allocator) of a pipeline alone on the card. Seconds of one call: the median, and in brackets the least and "
            "the greatest, of rounds in which every knob is called once, in another order each time, after a round that does not count. "
            "Model offload by components, group offload by layers on a second stream.\n\n")
    for key, title in (("sd15", "Stable Diffusion 1.5"), ("sdxl", "SDXL")):
        rows = data.get(key, {}).get("rows", [])
        if not rows:
            continue
        sides = list(dict.fromkeys(r["pixels"] for r in rows))
        cells = {(r["knob"], r["pixels"]): r for r in rows}
        text += f"\n{title}, {data[key]['rounds']} rounds:\n\n" + table(
            ["knob", *[f"{side}" for side in sides]],
            [[knob, *[_cell(cells.get((knob, side))) for side in sides]] for knob in dict.fromkeys(r["knob"] for r in rows)])
    return text


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    if "peak" not in row:
        return "does not fit"
    took = row["seconds"]
    return f"{gb(row['peak'])} GB, {took['median']:.2f} s ({took['min']:.2f} to {took['max']:.2f})"


def notebooks_part(data: dict[str, Any]) -> str:
    rows = []
    for r in data["rows"]:
        problem = r["problems"][-1] if r["problems"] else ""
        raised = next((p for p in r["problems"] if p.startswith("raised")), problem).split("\n")[0][:110]
        rows.append([r["lab"], r["model"], f"{r['points']:g} of {r['maximum'] or 0:g}", f"{r.get('seconds', 0):.0f}",
                     f"{r['held_bytes'] / 1e9:.2f}" if "held_bytes" in r else "", raised, r["run"]])
    return ("Solutions, executed through papermill with DEVICE = \"cuda\"; several at once on one card, so the seconds are no "
            "benchmark. Held: by the kernel's allocator at the end. A problem is what its run found: what was mended since shows in "
            "the next run.\n\n"
            + table(["lab", "model", "points", "s", "held, GB", "problem", "run"], rows) + "".join(
                f"\nWhat the GPU cell of {r['lab']} prints (run {r['run']}):\n\n"
                + "".join(f"    {line}\n" for text in r["printed"] for line in text.splitlines())
                for r in data["rows"] if r["model"] == "full" and any(r.get("printed", ()))))


def limits_part(data: dict[str, Any]) -> str:
    rows = [[r["gigabytes"], r["lab"], gb(sum(r["needs"].values())), "starts" if r["starts"] else "says so, nothing allocated"
             if not r["allocated_then"] else "allocated before it said so", gb(r["loaded_bytes"]) if "loaded_bytes" in r else "",
             "yes" if r["as_foretold"] else "no"] for r in data["rows"]]
    said = next((r["says"] for r in data["rows"] if not r["starts"]), None)
    text = "The allocator limited to a smaller card's size, MODEL = \"full\".\n\n" + table(
        ["limit, GB", "lab", "needs, GB", "", "weights loaded, GB", "as foretold"], rows)
    return text + (f"\nWhat a lab says:\n\n    {said}\n" if said else "")


def build_part(data: dict[str, Any]) -> str:
    return "The first row has the libraries' import in it, and what they keep on the host.\n\n" + table(["model", "seconds", "GB on the device", "GB on the host"], [
        [r["model"], f"{r['seconds']:.2f}", gb(r["bytes"]), gb(max(0, r["host_bytes"]))] for r in data["rows"]])


def parallel_part(data: dict[str, Any]) -> str:
    decode = data["decode"]
    text = (f"{data['ranks']} processes, {data['backend']}, the 8-B architecture split by heads and by the MLP's width; one step in a CUDA "
            f"graph, products by the library. Speedup {decode['speedup']:.2f}.\n\n")
    text += table(["", "ms a token", "spread", "GB of weights a card"], [
        [r["name"], ms(r["median"]), f"{ms(r['min'])} to {ms(r['max'])}", gb(r["weight_bytes_per_card"])] for r in decode["rows"]])
    return text + "\n" + table(["sum over both", "µs", "bus bandwidth, GB/s"], [
        [name, f"{r['median'] * 1e6:.1f}", f"{r['bus_bytes_per_s'] / 1e9:.1f}"] for name, r in data["exchange"].items()])


def offload_part(data: dict[str, Any]) -> str:
    kinds: dict[str, int] = {}
    for row in data.get("rows", []):
        kinds[row["kind"]] = kinds.get(row["kind"], 0) + 1
    events = " ".join(f"{what} {name}," for what, name in data["events"]).rstrip(",")
    text = f"The bundled pipeline with model offload, against a plain run: {', '.join(f'{n} {k}' for k, n in kinds.items())}. "
    # runs before moves were listed by their ends have no "order"
    order = "as they ended" if data.get("order") == "end" else "as they began: what makes room goes out inside a move in, and is out before that ends"
    text += f"Runs and moves ({order}): {events}; {data['carried_bytes'] / 1e6:.1f} MB carried in.\n"
    return text + ("\nRows that are neither of kind \"device\" nor a hook's:\n\n" + "\n".join(f"- `{row}`" for row in data["unexplained"]) + "\n"
                   if data["unexplained"] else "\nEvery row is of kind \"device\" or a hook's boundary.\n")


SECTIONS: list[tuple[str, str, Callable[[Any], str]]] = [
    ("notebooks", "Every lab on a GPU", notebooks_part), ("limits", "Cards that are too small", limits_part),
    ("build", "Full-size models, made on the device", build_part), ("floors", "What the card can do", floors_part),
    ("decode", "Decode and prefill against their floors", lambda d: ""), ("trace", "What tracing costs", trace_part),
    ("skipping", "Skipping work", skipping_part),
    ("vae", "A decode's peak, forecast and measured", vae_part), ("knobs", "Memory knobs", knobs_part),
    ("offload", "What offload leaves in a trace", offload_part), ("parallel", "Two cards", parallel_part),
]


def compiled_on(parts: dict[str, Runs], cards: dict[str, str], name: str) -> dict[str, Any] | None:
    """The compiled regimes of a run, or of the newest run on such a card: then each row says of which."""
    for run, data in sorted(parts.get("compile", []), key=lambda found: found[0] != name):
        if cards[run] == cards[name]:
            return data if run == name else {"rows": [r | {"regime": f"{r['regime']} (run {run})"} for r in data["rows"]]}
    return None


def traced_elsewhere(folder: Path, name: str) -> str:
    """What tracing cost in the other runs on the same card: other hosts and hours, and code as old as their commits."""

    def read(path: Path) -> dict[str, Any]:
        return json.loads(path.read_text("utf-8"))

    card, lines = read(folder / f"{name}.json")["environment"]["card"]["name"], []
    for path in sorted(folder.glob("gpu-*.json"), reverse=True):
        run = read(path)
        cost = run["parts"].get("trace", {}).get("cost")
        if cost and path.stem != name and run["environment"]["card"]["name"] == card:
            ratios = {r["name"]: f"{r['ratio']:.3f} ({r['low']:.3f} to {r['high']:.3f})" for r in cost["rows"]}
            lines.append([path.stem, run["environment"]["commit"], f"{cost['untraced_seconds'][0]:.3f}", ratios["default depth"],
                          ratios["all modules"], cost["rounds"]])
    head = ["run", "commit", "untraced, s", "default depth", "all modules", "rounds"]
    return "\nOther runs on such a card:\n\n" + table(head, lines) if lines else ""


def page(folder: Path = RESULTS) -> str:
    """The whole page as Markdown."""
    parts, used = newest(folder)
    cards = {name: about["card"]["name"] for name, about in used}
    text = HEAD + "\n## Runs\n\n" + runs_table(used)
    for part, title, write in SECTIONS:
        if part not in parts:
            continue
        text += f"\n## {title}\n"
        for name, data in parts[part]:
            if part == "decode":
                body = decode_part(data, compiled_on(parts, cards, name))
            else:
                body = write(data) + (traced_elsewhere(folder, name) if part == "trace" else "")
            text += (f"\n**{cards[name]}**, run {name}.\n\n" if name else "\n") + body
    return text + FOOT


def main(argv: list[str] | None = None) -> int:
    """Write the page, or with --check say whether it is current (exit 1 if not)."""
    parser = argparse.ArgumentParser(prog="python -m ci.gpu.page", description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(argv)
    text = page()
    if options.check:
        current = PAGE.exists() and PAGE.read_text("utf-8") == text
        print("current" if current else f"out of date: run python -m ci.gpu.page ({PAGE.name})")
        return 0 if current else 1
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
