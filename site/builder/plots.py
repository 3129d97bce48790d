"""The plots of the page of GPU numbers, drawn from `ci/results` while the site is built. The page's tables
have their numbers, from the same runs."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inferlab.lab.kits.decode.roofline import call_cost
from inferlab.models.language import FULL, FULL_COMMON

from . import ROOT
from .drawing import Axis, Mark, Row, Words, field_plot, figure, rows_plot, ticks_of
from .templates import raw

sys.path.insert(0, str(ROOT))
from ci.gpu.page import Runs, compiled_on, newest
from ci.gpu.vae import copies

T, G = 1e12, 1e9


@dataclass(frozen=True)
class Found:
    """The newest runs: part -> (run, data), and each run's card."""

    parts: dict[str, Runs]
    cards: dict[str, str]

    def of(self, part: str) -> list[tuple[str, Any]]:
        """(card, data) of a part, one for each card; "H100" of "NVIDIA H100 80GB HBM3"."""
        return [
            (self.cards[run].removeprefix("NVIDIA ").split()[0], data)
            for run, data in self.parts.get(part, [])
        ]


def value(mark: Mark) -> float:
    """What a list of marks is sorted by."""
    return mark.value


def roofline(found: Found) -> str:
    """Rates against FLOP a byte: each card's roof, and decode and prefill below it."""
    config, decodes = FULL["target"] | FULL_COMMON, dict(found.of("decode"))
    axes = (
        Axis("FLOP for each byte", 0.4, 5000, [1, 10, 100, 1000], "{:,g}"),
        Axis("TFLOP/s", 0.12, 1500, [1, 10, 100, 1000], "{:,g}"),
    )
    lines, marks, words, said = [], [], [], ""
    for series, (card, floors) in enumerate(found.of("floors")):
        roof, slope = floors["matrix_flops_per_s"] / T, floors["copy_bytes_per_s"] / T
        corner = (roof / slope, roof)
        lines += [
            (f"roof series-{series}", (axes[0].low, slope * axes[0].low), corner),
            (f"roof series-{series}", corner, (axes[0].high, roof)),
        ]
        one, prefill = decodes[card]["decode"], decodes[card]["prefill"]
        step, many = call_cost(config, 1, one["context"]), call_cost(config, prefill["tokens"], 0)
        calls = {
            "decode": (step.flops, one["bytes"], one["rows"]),
            "prefill": (prefill["flops_causal"], many.bytes, prefill["rows"]),
        }
        for what, (flops, moved, rows) in calls.items():
            for row in rows:
                if "median" in row:
                    rate = flops / row["median"] / T
                    name = f"{what}, {row['regime']}, {card}: {rate:.3g} TFLOP/s"
                    marks.append(Mark(rate, series, name, x=flops / moved))
        if not series:
            said = (
                f"A decode step has {step.flops / one['bytes']:.1f} FLOP to do for each byte that it reads; "
                f"from {corner[0]:.0f} on, the {card} would be bound by its arithmetic."
            )
            slowest = {
                what: min((m for m in marks if m.name.startswith(what)), key=value)
                for what in ("decode", "prefill")
            }
            words = [
                Words(1.5 * slowest["decode"].x, 2 * slowest["decode"].value, "decode, batch 1"),
                Words(slowest["prefill"].x, slowest["prefill"].value / 2.6, "prefill", "middle"),
            ]
    drawn = (
        "Slope: what a copy in memory reaches. Roof: what a large matrix product reaches. The distance from "
        "a mark up to its line is time lost."
    )
    return figure(
        said, drawn, field_plot(said, marks, axes, [card for card, _ in found.of("floors")], lines, words)
    )


def against_floors(found: Found) -> str:
    """Decode's and prefill's regimes as multiples of their floors, the slowest first."""
    rows: dict[str, Row] = {}
    cards = [card for card, _ in found.of("decode")]
    for series, (run, data) in enumerate(found.parts["decode"]):
        compiled = (compiled_on(found.parts, found.cards, run) or {"rows": []})["rows"]
        for part, more in (("decode", compiled), ("prefill", [])):
            for r in [*data[part]["rows"], *more]:
                if "median" not in r:
                    continue
                regime = "prefill, " * (part == "prefill") + r["regime"].split(" (run ")[0]
                row = rows.setdefault(regime, Row(regime, data[part]["goal"]))
                took, times = f"{r['median'] * 1e3:.3g} ms", r["over_floor"]
                row.said.append((series, took))
                row.marks.append(
                    Mark(
                        times,
                        series,
                        f"{regime}, {cards[series]}: {took}, {times:.2f} × its floor",
                        (times * r["min"] / r["median"], times * r["max"] / r["median"]),
                    )
                )
    shown = sorted(rows.values(), key=lambda row: (row.goal, -max(map(value, row.marks))))
    first = [row.marks[0] for row in shown if row.marks[0].series == 0 and not row.name.startswith("prefill")]
    slowest, quickest = max(first, key=value), min(first, key=value)
    said = (
        f"A token of an 8-B model takes the {cards[0]} {slowest.value:.0f} times its floor if every kernel "
        f"is launched alone, and {quickest.value:.2f} times at best."
    )
    drawn = (
        "The floor of a decode step is its bytes over the copy's rate, that of prefill its FLOP over the "
        "matrix product's. Lines: from the quickest to the slowest run."
    )
    most = max(mark.spread[1] for row in shown for mark in row.marks if mark.spread)
    axis = Axis("times the floor", 0.95, 1.02 * most, ticks_of(1, most), "{:g}×")
    return figure(said, drawn, rows_plot(said, shown, axis, cards, "goal"))


def one_vector(found: Found) -> str:
    """Bytes a second of a matrix times one vector: the library's, and Triton's."""
    card, data = found.of("decode")[0]
    copy = dict(found.of("floors"))[card]["copy_bytes_per_s"] / T
    rows, parts = [], {"triton": [], "library": []}
    for name, matrix in data["decode"]["matvec"].items():
        row = Row(name, copy)
        for series, (who, reached) in enumerate(parts.items()):
            rate = matrix["bytes_per_s"][who] / T
            reached.append(rate / copy)
            row.said.append((series, f"{rate:.2f}"))
            row.marks.append(Mark(rate, series, f"{name}, {who}, {card}: {rate:.2f} TB/s"))
        rows.append(row)
    library, triton = (f"{min(p):.0%} to {max(p):.0%}" for p in (parts["library"], parts["triton"]))
    said = (
        f"A matrix times one vector is bound by reading it. The library's product reaches {library} of the "
        f"rate of a copy on the {card}, a kernel made for it {triton}."
    )
    axis = Axis("TB/s", 0, 1.03 * copy, range(math.ceil(copy)), log=False)
    svg = rows_plot(said, rows, axis, ["Triton", "library"], "a copy")
    return figure(said, "The matrices of a decode step, rows by columns, bfloat16.", svg)


def tracing(found: Found) -> str:
    """What a trace adds to a picture's time."""
    cards, rows = found.of("trace"), dict[str, Row]()
    for series, (card, data) in enumerate(cards):
        for r in data["cost"]["rows"]:
            more, low, high = (100 * (r[key] - 1) for key in ("ratio", "low", "high"))
            row = rows.setdefault(r["name"], Row(r["name"], 100 * (r["goal"] - 1) if "goal" in r else None))
            row.said.append((series, f"+{more:.1f}%"))
            row.marks.append(Mark(more, series, f"{r['name']}, {card}: ratio {r['ratio']:.3f}", (low, high)))
    parts, modules, profiler = (
        rows[name].marks[0].value for name in ("default depth", "all modules", "torch.profiler with shapes")
    )
    said = (
        f"On the {cards[0][0]} a trace adds {parts:.1f}% to the time of a picture, a trace of all modules "
        f"{modules:.0f}%, torch.profiler {profiler:.0f}%."
    )
    drawn = "Stable Diffusion 1.5, 20 steps, medians over pairs of runs. Lines: 95% intervals."
    marks = [mark for row in rows.values() for mark in row.marks]
    low = min(map(value, marks)) / 2
    high = 1.1 * max(mark.spread[1] for mark in marks if mark.spread)
    axis = Axis("time added", low, high, ticks_of(low, high, (1, 3)), "+{:g}%")
    return figure(said, drawn, rows_plot(said, [*rows.values()], axis, [card for card, _ in cards], "goal"))


def vae_peaks(found: Found) -> str:
    """A decode's measured peak against two forecasts."""
    card, data = found.of("vae")[0]
    marks, off = [], ([], [])
    for dtype, rows in ((data["dtype"], data["rows"]), ("float32", data.get("float32", {}).get("rows", []))):
        for r in rows:
            if "peak" not in r:
                continue
            whole = copies(r["forecast"], 1 if r["knob"] == "slicing" else r["batch"])
            for series, forecast in enumerate((whole, r["forecast"])):
                off[series].append(r["peak"] / forecast - 1)
                name = (
                    f"{r['batch']} × {r['pixels']} pixels, {r['knob']}, {dtype}: "
                    f"forecast {forecast / G:.2f} GB, measured {r['peak'] / G:.2f} GB"
                )
                marks.append(Mark(r["peak"] / G, series, name, x=forecast / G))
    least = min(min(mark.x, mark.value) for mark in marks) / 1.2
    most = max(max(mark.x, mark.value) for mark in marks) * 1.2
    across, upwards = (
        Axis(f"{what}, GB", least, most, ticks_of(least, most)) for what in ("forecast", "measured")
    )
    said = (
        f"The tensors that are alive forecast too little: the peak is {min(off[1]):.0%} to {max(off[1]):.0%} "
        f"higher. With cuDNN's copies the forecast is right to {max(map(abs, off[0])):.0%}."
    )
    drawn = (
        f"Stable Diffusion's decoder on the {card}, with and without slicing and tiling. On the line a "
        "forecast is right."
    )
    line = ("right", (least, least), (most, most))
    svg = field_plot(said, marks, (across, upwards), ["with copies", "tensors alive"], [line])
    return figure(said, drawn, svg)


def knobs(found: Found) -> str:
    """Peak bytes and seconds of each knob at each size, a plot for each model."""
    card, data = found.of("knobs")[0]
    models = {
        title: [r for r in data[key]["rows"] if "peak" in r]
        for key, title in (("sd15", "Stable Diffusion 1.5"), ("sdxl", "SDXL"))
    }
    most = max(r["peak"] for ran in models.values() for r in ran) / G
    axis = Axis("peak, GB", 0, 1.03 * most, range(0, math.ceil(most), 5), log=False)
    plots = ""
    for title, ran in models.items():
        sides = sorted({r["pixels"] for r in ran if r["knob"] == "plain"}, reverse=True)
        rows: dict[str, Row] = {}
        for r in (r for r in ran if r["pixels"] in sides):
            series, peak = sides.index(r["pixels"]), r["peak"] / G
            row = rows.setdefault(r["knob"], Row(r["knob"]))
            words = f"{peak:.2f} GB, {r['seconds']['median']:.2f} s"
            row.marks.append(Mark(peak, series, f"{r['knob']}, {r['pixels']} pixels: {words}"))
            if not series:
                row.said.append((0, words))
        large = {r["knob"]: r for r in ran if r["pixels"] == sides[0]}
        plain, best = large["plain"], min(large.values(), key=lambda r: r["peak"])
        longer = best["seconds"]["median"] / plain["seconds"]["median"]
        said = (
            f"{title}, {sides[0]} pixels: {best['knob']} takes {best['peak'] / G:.1f} GB instead of "
            f"{plain['peak'] / G:.1f}, and {longer:.1f} times as long."
        )
        drawn = f"2 pictures in 2 steps on the {card}; in figures, the largest size."
        svg = rows_plot(said, [*rows.values()], axis, [f"{side} pixels" for side in sides])
        plots += figure(said, drawn, svg)
    return f'<div class="plots">\n{plots}</div>'


DRAWN: tuple[Callable[[Found], str], ...] = (roofline, against_floors, one_vector, tracing, knobs, vae_peaks)


LABS = re.compile(r"^\| lab \| model \|.*\n(?:\|.*\n)+", re.M)
FEW = re.compile(r"(?:^\|.*\n)+", re.M)
LONG = 7
"""Rows from which a table opens on a click."""


def with_plots(text: str) -> str:
    """The page's Markdown with the plots before its tables.

    Raises:
        ValueError: the page has no section of runs, with which its tables begin.
    """
    parts, used = newest()
    found = Found(parts, {name: about["card"]["name"] for name, about in used})
    intro, heading, tables = text.partition("\n## Runs\n")
    if not heading:
        raise ValueError("the page of GPU numbers has no section 'Runs'")
    plots = "\n".join(raw(draw(found)) for draw in DRAWN)
    tables = FEW.sub(_folded, LABS.sub(_row_a_lab, tables, count=1))
    return f"{intro}\n## What was found\n\n{plots}\n{heading}{tables}"


def _folded(found: re.Match[str]) -> str:
    """A long table opens on a click."""
    rows = found[0].strip().count("\n") - 1
    if rows < LONG:
        return found[0]
    name = f"<summary>The table <span>{rows} rows</span></summary>"
    return f'<details class="group">{name}\n\n{found[0].strip()}\n\n</details>\n'


def _row_a_lab(found: re.Match[str]) -> str:
    """The table of all labs with a row for each: its two models beside each other, and a run or a problem
    only where there is something to say.

    Raises:
        ValueError: it does not have the columns that it should have.
    """
    head, _, *lines = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in found[0].strip().split("\n")
    )
    if head != ["lab", "model", "points", "s", "held, GB", "problem", "run"]:
        raise ValueError(f"the table of the labs has the columns {head}")
    usual = Counter(line[6] for line in lines).most_common(1)[0][0]
    labs: dict[str, dict[str, list[str]]] = {}
    for lab, model, *rest in lines:
        labs.setdefault(lab, {})[model] = rest
    table = ["| lab | points | bundled: s, GB | full: s, GB | |", "|---|---|---|---|---|"]
    for lab, models in labs.items():
        points = " / ".join(dict.fromkeys(rest[0] for rest in models.values()))
        took = [f"{models[m][1]}, {models[m][2]}" if m in models else "" for m in ("bundled", "full")]
        said = [
            ": ".join(filter(None, (model, problem, "" if run == usual else f"run {run}")))
            for model, (_, _, _, problem, run) in models.items()
            if problem or run != usual
        ]
        table.append(f"| {lab} | {points} | {took[0]} | {took[1]} | {'; '.join(said)} |")
    return f"All in the run `{usual}`, if nothing else is said.\n\n" + "\n".join(table) + "\n"
