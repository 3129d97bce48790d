"""What a decode step of this machine consists of, and what each token of a service waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from inferlab.lab.plots.style import ACCENT, DARK, MID, STYLE, finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = ("attention", "MLP", "norms", "cache", "lm_head", "between modules")
WAITS = ("weights", "cache", "arithmetic", "launches", "tokenizer")
_SHADES = {"weights": DARK, "cache": MID, "arithmetic": "0.75", "launches": ACCENT, "tokenizer": "0.35",
           "attention": MID, "MLP": DARK, "norms": ACCENT, "lm_head": "0.35", "between modules": "0.8"}
# lines: dots are a hundred kilobytes of SVG
_HATCHES = {"launches": "//", "tokenizer": "\\\\", "norms": "//", "lm_head": "\\\\"}


def part_times(rows: Sequence[Mapping]) -> dict[str, float]:
    """Milliseconds of one traced call by kind of module, each without the modules inside it.

    Args:
        rows: ``trace.rows()`` of one forward call of a Llama-style model, traced with ``depth="all"``.

    Raises:
        ValueError: there are no rows.
    """
    if not rows:
        raise ValueError("no rows: trace one call of a model with depth='all'")
    inner: dict[int, float] = {}
    for row in rows:
        if row["parent"] is not None:
            inner[row["parent"]] = inner.get(row["parent"], 0.0) + (row["ms"] or 0.0)
    times = dict.fromkeys(PARTS, 0.0)
    for row in rows:
        times[_part(row["name"])] += max(0.0, (row["ms"] or 0.0) - inner.get(row["index"], 0.0))
    return times


def _part(name: str) -> str:
    if "cache" in name:
        return "cache"
    if "norm" in name:
        return "norms"
    if "self_attn" in name or "rotary" in name:
        return "attention"
    if ".mlp" in name:
        return "MLP"
    return "lm_head" if name.endswith("lm_head") else "between modules"


def waits(rows: Sequence[Mapping], card: Mapping[str, float]) -> dict[str, float]:
    """Microseconds a generated token, on an accelerator like ``card``, by what the service waited for.

    A step takes as long as the longest of its launches, its bytes and its arithmetic; that time goes to the
    longest (bytes are shared between weights and cache as they were read). A step without a model call takes
    as long as its calls of the tokenizer.

    Args:
        rows: of ``serve``.
        card: ``launch_us``, ``gb_per_s``, ``gflop_per_s`` and ``encode_us``.
    """
    total = dict.fromkeys(WAITS, 0.0)
    for row in rows:
        if row["kind"] == "idle":
            total["tokenizer"] += row["encodes"] * card["encode_us"]
            continue
        weights, cache = (row[key] / card["gb_per_s"] / 1e3 for key in ("weight_bytes", "cache_bytes"))
        launches, arithmetic = row["launches"] * card["launch_us"], row["flops"] / card["gflop_per_s"] / 1e3
        longest = max(weights + cache, launches, arithmetic)
        if longest == weights + cache:
            total["weights"] += weights
            total["cache"] += cache
        else:
            total["launches" if longest == launches else "arithmetic"] += longest
    tokens = sum(row["sequences"] for row in rows)
    return {name: value / tokens for name, value in total.items()}


def attribution(measured: Mapping[str, float], runs: Mapping[str, Mapping[str, float]], *, title: str,
                device: str) -> Figure:
    """Two panels: a decode step of this machine by modules, a token of each service by what it waited for.

    Args:
        measured: what :func:`part_times` returns.
        runs: name -> what :func:`waits` returns.
        title: the finding.
        device: what was measured, for the first panel.

    Raises:
        ValueError: if there is no run.
    """
    if not runs:
        raise ValueError("an attribution needs at least one run of the service")
    with plt.style.context(STYLE):
        fig, axes = plt.subplots(2, 1, figsize=(8.4, 2.9 + 0.42 * len(runs)),
                                 height_ratios=(1, 0.75 + 0.55 * len(runs)))
        _stack(axes[0], {device: measured}, PARTS)
        axes[0].set_xlabel("measured here: one decode step (ms)")
        _stack(axes[1], runs, WAITS)
        axes[1].set_xlabel("counted: microseconds a token on the made-up accelerator")
        fig.suptitle(title, x=0.02, ha="left", fontsize=11, fontweight="bold")
        fig.tight_layout()
    return finished(fig)


def _stack(axis: Axes, bars: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> None:
    for height, parts in enumerate(bars.values()):
        left = 0.0
        for name in names:
            axis.barh(height, parts[name], left=left, height=0.6, color=_SHADES[name],
                      hatch=_HATCHES.get(name, ""), edgecolor="white",
                      label=name if height == 0 else None)
            left += parts[name]
    axis.set_yticks(range(len(bars)), list(bars))
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
