"""Which component's weights are on the device when: events of a trace, bytes over them, a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from inferlab.lab.plots.style import ACCENT, DARK, MID, STYLE, finished

Event = tuple[str, str]
_COLORS, _HATCHES = (MID, DARK, ACCENT, "0.55"), ("", "", "//", "..")
_SAYS = {"run": "\nruns", "in": "\ncomes in", "out": "\ngoes out"}


def component_bytes(pipe: Any) -> dict[str, int]:
    """Component -> bytes of its weights and buffers, for every component that has weights."""
    from torch.nn import Module

    parts = {name: part for name, part in pipe.components.items() if isinstance(part, Module)}
    return {name: sum(t.numel() * t.element_size() for t in (*part.parameters(), *part.buffers()))
            for name, part in parts.items()}


def residency_events(rows: Sequence[Mapping], components: Iterable[str], device: str) -> list[Event]:
    """What a traced run did with its weights, as events in order.

    Args:
        rows: ``trace.rows()`` of one call of a pipeline.
        components: names of the components that count, such as ("text_encoder", "unet", "vae").
        device: where the model is executed, such as "cpu" or "cuda".

    Returns:
        ``("in", name)`` when a component's weights have reached the device, ``("out", name)`` when they have
        left it, ``("run", name)`` when it is called. A component whose call brings its own weights in is run
        after they are in. A move inside another one comes first, because it ends first: accelerate's hook
        sends the component before it out and then brings its own in.
    """
    components = tuple(components)
    by_index = {row["index"]: row for row in rows}
    above = {row["index"]: _above(row, by_index) for row in rows}
    ends: dict[int, int] = {}  # row -> the last row inside it: of nested rows the inner one ends first
    for row in rows:
        ends |= dict.fromkeys((row["index"], *above[row["index"]]), row["index"])
    moves = [row for row in rows if row["moved"] and row["moved"]["module"] in components]

    def before_its_call(row: Any) -> bool:
        return not any(by_index[index]["name"].endswith("post_forward")
                       for index in (row["index"], *above[row["index"]]))

    found = [((ends[row["index"]], -row["index"]), "move", row) for row in moves]
    for row in rows:
        if row["kind"] != "move" and row["name"] in {*components, "vae.decode"}:
            early = [ends[move["index"]] for move in moves if row["index"] in above[move["index"]]
                     and before_its_call(move)]
            found.append(((max(early, default=row["index"]), 1), "run", row))

    events: list[Event] = []
    there: dict[str, bool] = {}
    for _, what, row in sorted(found, key=lambda entry: entry[0]):
        if what == "run":
            events.append(("run", row["name"].partition(".")[0]))
            continue
        name, here = row["moved"]["module"], str(row["moved"]["to"]).split(":")[0] == device.split(":")[0]
        if there.get(name) is not here:
            there[name] = here
            events.append(("in" if here else "out", name))
    return events


def _above(row: Mapping, by_index: Mapping[int, Mapping]) -> list[int]:
    """Indexes of the rows that a row lies in, the nearest first."""
    found = []
    while row["parent"] is not None:
        found.append(row["parent"])
        row = by_index[row["parent"]]
    return found


def resident_after(events: Sequence[Event], at_start: Iterable[str]) -> list[set[str]]:
    """The components on the device after each event, given those that were there before the first.

    Raises:
        ValueError: if an event is neither in, out nor run.
    """
    here, found = set(at_start), []
    for what, name in events:
        if what not in ("in", "out", "run"):
            raise ValueError(f"an event is in, out or run, not {what!r}")
        here = here | {name} if what == "in" else here - {name} if what == "out" else here
        found.append(here)
    return found


def moved_bytes(events: Sequence[Event], weights: Mapping[str, int]) -> int:
    """Bytes that crossed to the device over all events; what goes out does not count."""
    return sum(weights[name] for what, name in events if what == "in")


def residency_timeline(runs: Mapping[str, tuple[Sequence[Event], Iterable[str]]], weights: Mapping[str, int],
                       *, title: str) -> Figure:
    """Bytes of weights on the device after each event, one color a component, one panel a run.

    Args:
        runs: label -> (events, components that are on the device at the start).
        weights: component -> bytes.
        title: the finding.

    Raises:
        ValueError: if there is no run, or a run has no events.
    """
    if not runs or any(not events for events, _ in runs.values()):
        raise ValueError("a timeline needs at least one run, and events in each")
    names = list(weights)
    with plt.style.context(STYLE):
        fig, axes = plt.subplots(len(runs), 1, figsize=(8.4, 1.0 + 1.55 * len(runs)), sharey=True,
                                 squeeze=False)
        for axis, (label, (events, at_start)) in zip(axes[:, 0], runs.items(), strict=True):
            states = resident_after(events, at_start)
            floor = [0.0] * len(events)
            for name, color, hatch in zip(names, _COLORS * len(names), _HATCHES * len(names), strict=False):
                heights = [weights[name] / 1e6 if name in here else 0.0 for here in states]
                axis.bar(range(len(events)), heights, bottom=floor, width=1.0, color=color, hatch=hatch,
                         edgecolor="white", lw=0.4)
                floor = [low + high for low, high in zip(floor, heights, strict=True)]
            axis.set_xticks(range(len(events)),
                            [name.replace("_", "\n") + _SAYS[what] for what, name in events], fontsize=7)
            for (what, _), tick in zip(events, axis.get_xticklabels(), strict=True):
                tick.set_color("black" if what == "run" else ACCENT)
            axis.set_xlim(-0.5, len(events) - 0.5)
            axis.set_ylabel("on device (MB)", fontsize=8)
            axis.grid(axis="x", visible=False)
            axis.set_title(f"{label}: peak {max(floor):.1f} MB, {moved_bytes(events, weights) / 1e6:.1f} MB "
                           f"carried in", fontsize=9.5,
                           fontweight="normal")
        handles = [Patch(fc=color, hatch=hatch, ec="white", label=name)
                   for name, color, hatch in zip(names, _COLORS * len(names), _HATCHES * len(names),
                                                 strict=False)]
        fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        fig.legend(handles=handles, frameon=False, ncols=len(names), loc="lower right", fontsize=8.5)
        fig.tight_layout(rect=(0, 0.04, 1, 1))
    return finished(fig)


def memory_timeline(rows: Sequence[Mapping], components: Iterable[str], *, title: str) -> Figure:
    """Activations at each boundary of a run, in bytes: held after it, and the peak above that.

    Args:
        rows: ``trace.rows()`` of one call, traced with ``memory="tensors"`` (or on a GPU ``memory="peaks"``);
            the rows right under the call that have memory are drawn, in MB above what the call began with.
        components: names of the components that get a color; the rest is grey.
        title: the finding.

    Raises:
        ValueError: if no row under the call has memory.
    """
    drawn = [row for row in rows if row["level"] == 1 and row["memory"]]
    if not drawn:
        raise ValueError('no boundary has memory: trace with memory="tensors"')
    looks = dict(zip(components, zip(_COLORS, _HATCHES, strict=True), strict=False))
    looks = {name: look for name, look in looks.items() if any(row["name"].partition(".")[0] == name
                                                               for row in drawn)}
    base = rows[0]["memory"]["before"]
    with plt.style.context(STYLE):
        fig, axis = plt.subplots(figsize=(8.4, 2.6))
        for i, row in enumerate(drawn):
            color, hatch = looks.get(row["name"].partition(".")[0], ("0.8", ""))
            axis.bar(i, (row["memory"]["peak"] - base) / 1e6, width=0.9, color=color, hatch=hatch,
                     edgecolor="white", lw=0.4)
        held = [(row["memory"]["after"] - base) / 1e6 for row in drawn]
        axis.step(range(len(held)), held, where="mid", color="black", lw=1.2, label="held after the boundary")
        axis.set_xticks(range(len(drawn)), [row["name"].replace(".", "\n").replace("_", "\n")
                                            for row in drawn], fontsize=7, rotation=90)
        axis.set_ylabel("MB above the start")
        axis.grid(axis="x", visible=False)
        axis.set_title(title)
        handles, labels = axis.get_legend_handles_labels()
        handles += [Patch(fc=color, hatch=hatch, ec="white", label=name)
                    for name, (color, hatch) in looks.items()]
        axis.legend(handles=handles, labels=[*labels, *(f"{name}: peak" for name in looks)], frameon=False,
                    fontsize=8, loc="upper left")
        fig.tight_layout()
    return finished(fig)
