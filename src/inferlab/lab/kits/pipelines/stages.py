"""Pictures of a trace: when each stage of a run had its turn, and which components handed data to which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from inferlab.lab.plots.style import ACCENT, DARK, MID, STYLE, finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STAGES = ("prepare", "loop", "decode")
_COLORS = {"load": "0.6", "prepare": MID, "loop": DARK, "decode": ACCENT}
_HATCH = {"load": "..", "prepare": "", "loop": "", "decode": "//"}


def stage_of(row: Mapping) -> str:
    """A boundary's stage: "loop" inside a step, "decode" from the VAE's decoder on, else "prepare"."""
    if row["step"] is not None:
        return "loop"
    name = row["name"]
    late = name.startswith(("vae.decode", "run_safety_checker")) or name.endswith("postprocess")
    return "decode" if late else "prepare"


def stage_times(rows: Sequence[Mapping]) -> dict[str, float]:
    """Milliseconds of each stage: the times of the boundaries directly below the call, added up.

    Args:
        rows: what ``trace.rows()`` returns for one call of a pipeline.

    Raises:
        ValueError: if the rows hold no boundary below the call.
    """
    direct = [row for row in rows if row["level"] == 1]
    if not direct:
        raise ValueError("these rows hold no boundary below the pipeline's call: trace the pipeline itself")
    return {stage: sum(row["ms"] or 0.0 for row in direct if stage_of(row) == stage) for stage in STAGES}


def stage_timeline(runs: Mapping[str, Sequence[Mapping]], *, title: str, load_ms: float = 0.0) -> Figure:
    """One bar a run, from the call's beginning to its end, in the colors of the stages.

    Args:
        runs: label -> ``trace.rows()``.
        title: the finding.
        load_ms: what building the pipeline took, before any call: a bar of its own above the runs, if it is
            not 0.

    Raises:
        ValueError: if there is no run, or a run has no boundary below its call.
    """
    if not runs:
        raise ValueError("a timeline needs at least one run")
    with plt.style.context(STYLE):
        fig, axis = plt.subplots(figsize=(8.4, 1.3 + 0.55 * (len(runs) + bool(load_ms))))
        bars = ({"once": {"load": load_ms}} if load_ms else {}) | {label: stage_times(rows)
                                                                   for label, rows in runs.items()}
        named: set[str] = set()
        for height, times in enumerate(bars.values()):
            left = 0.0
            total = sum(times.values())
            for stage, ms in times.items():
                axis.barh(height, ms, left=left, height=0.6, color=_COLORS[stage], hatch=_HATCH[stage],
                          edgecolor="white",
                          label=None if stage in named else stage)
                named.add(stage)
                if ms > 0.08 * total:
                    axis.text(left + ms / 2, height, f"{ms / total:.0%}", ha="center", va="center",
                              color="white", fontsize=9,
                              fontweight="bold")
                left += ms
        axis.set_yticks(range(len(bars)), list(bars))
        axis.invert_yaxis()
        axis.set_xlabel("time on the host (ms)")
        axis.grid(axis="y", visible=False)
        axis.set_title(title)
        axis.legend(frameon=False, ncols=4, loc="upper left",
                    bbox_to_anchor=(0.0, -0.42 if len(bars) < 3 else -0.28))
        fig.subplots_adjust(left=0.17, right=0.98)
    return finished(fig)


def component_edges(rows: Sequence[Mapping]) -> dict[tuple[str, str], tuple[str, int]]:
    """Which component's boundary followed which: ``(from, to) -> (shape that arrived, how often)``.

    A boundary belongs to what stands before the first dot of its name (``scheduler.step``: the scheduler).
    The deepest boundaries that carry a tensor are used, so that ``encode_prompt`` shows as the tokenizer and
    the text encoder that it calls.
    """
    parents = {row["parent"] for row in rows}
    edges: dict[tuple[str, str], tuple[str, int]] = {}
    before = None
    for row in rows:
        if row["index"] in parents or row["level"] == 0 or not _first_shape([row["inputs"], row["outputs"]]):
            continue
        owner = row["name"].partition(".")[0]
        if before is not None and owner != before:
            shape = _first_shape(row["inputs"])
            label, count = edges.get((before, owner), (shape, 0))
            edges[before, owner] = (label or shape, count + 1)
        before = owner
    return edges


def component_graph(rows: Sequence[Mapping], *, title: str) -> Figure:
    """The components of a run: an arrow for each hand-over, with the shape that arrived and how often.

    Args:
        rows: what ``trace.rows()`` returns for one call of a pipeline.
        title: the finding.

    Raises:
        ValueError: if nothing was handed from one component to another.
    """
    edges = component_edges(rows)
    if not edges:
        raise ValueError("no component handed data to another in these rows")
    names = list(dict.fromkeys(name for pair in edges for name in pair))
    columns = min(4, len(names))
    place = {}
    for i, name in enumerate(names):
        line, column = divmod(i, columns)
        place[name] = (column if line % 2 == 0 else columns - 1 - column, -line)
    with plt.style.context([STYLE, {"axes.grid": False}]):
        fig, axis = plt.subplots(figsize=(8.4, 1.25 * (1 + (len(names) - 1) // columns) + 0.5))
        axis.set(xlim=(-0.5, columns - 0.5), ylim=(-((len(names) - 1) // columns) - 0.35, 0.45))
        boxes = {
            name: axis.text(x, y, _two_lines(name), ha="center", va="center", fontsize=9, zorder=3,
                            bbox={"boxstyle": "round,pad=0.45", "fc": "white", "ec": DARK, "lw": 1.4})
            for name, (x, y) in place.items()
        }
        fig.canvas.draw()  # only now do the boxes know how large they are
        for (one, other), (shape, count) in edges.items():
            label = f"{shape}{f'  ×{count}' if count > 1 else ''}".strip()
            _arrow(axis, place[one], place[other], boxes[one].get_bbox_patch(), boxes[other].get_bbox_patch(),
                   label, count > 1)
        axis.set_axis_off()
        axis.set_title(title)
        fig.subplots_adjust(left=0.02, right=0.98, bottom=0.02)
    return finished(fig)


def _two_lines(name: str) -> str:
    middle = name.find("_", len(name) // 2 - 3)
    return name if len(name) <= 12 or middle < 0 else f"{name[:middle]}\n{name[middle:]}"


def _arrow(axis: Axes, start: Any, end: Any, box: Any, other: Any, label: str, repeated: bool) -> None:
    color, rad = ACCENT if repeated else DARK, -0.22
    axis.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": color,
                                              "lw": 2.2 if repeated else 1.2, "patchA": box,
                                              "patchB": other, "shrinkA": 2, "shrinkB": 2,
                                              "connectionstyle": f"arc3,rad={rad}"})
    dx, dy = end[0] - start[0], end[1] - start[1]
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    # arc3 bows by rad / 2 of the distance, measured in pixels: turn that back into the axes' units
    sx, sy = axis.transData.transform((1, 1)) - axis.transData.transform((0, 0))
    x, y = x + rad / 2 * dy * sy / sx, y - rad / 2 * dx * sx / sy
    axis.text(x, y, label, ha="center", va="center", fontsize=7.5, color=color, zorder=4,
              bbox={"fc": "white", "ec": "none", "pad": 0.6})


def _first_shape(value: Any) -> str:
    """The shape of the first tensor or array in a described tree, or ""."""
    if isinstance(value, Mapping):
        if "shape" in value and "dtype" in value:
            return str(tuple(value["shape"]))
        value = list(value.values())
    if isinstance(value, list | tuple):
        return next((found for found in map(_first_shape, value) if found), "")
    return ""
