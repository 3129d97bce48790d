"""Pictures of parallel runs: when each rank computed, and what a token costs against the number of ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from inferlab.lab.plots.style import ACCENT, DARK, LINES, MID, STYLE, finished


def rank_timeline(runs: Mapping[str, Sequence[Mapping]], *, title: str) -> Figure:
    """One panel a plan, one line a rank: when its layers were computing, pass after pass.

    Args:
        runs: plan -> the ranks' reports, as ``Ranks.results()`` returns them; "busy" times are read, in
            seconds.
        title: the finding.

    Raises:
        ValueError: if there is no plan.
    """
    if not runs:
        raise ValueError("a timeline needs at least one plan")
    with plt.style.context(STYLE):
        fig, axes = plt.subplots(len(runs), 1, figsize=(8.4, 0.5 + 1.25 * len(runs)), squeeze=False)
        for axis, (plan, reports) in zip(axes[:, 0], runs.items(), strict=True):
            begin = min(p["busy"][0] for report in reports for p in report["passes"])
            for rank, report in enumerate(reports):
                for number, one in enumerate(report["passes"]):
                    start, end = (1000 * (t - begin) for t in one["busy"])
                    axis.barh(rank, end - start, left=start, height=0.62, color=MID if number == 0 else DARK,
                              hatch="//" if number == 0 else "",
                              edgecolor="white")
            axis.set_yticks(range(len(reports)), [f"rank {rank}" for rank in range(len(reports))])
            axis.invert_yaxis()
            axis.set_ylabel(plan, fontsize=9)
            axis.grid(axis="y", visible=False)
        axes[-1, 0].set_xlabel("time on the host (ms); hatched: prefill")
        fig.suptitle(title, x=0.02, ha="left", fontsize=11, fontweight="bold")
        fig.tight_layout()
    return finished(fig)


def cost_against_ranks(costs: Mapping[str, Mapping[int, tuple[float, float]]], *, title: str) -> Figure:
    """Against the number of ranks: one user's latency, and the time between tokens of a full machine.

    Args:
        costs: "TP" and "PP" (or other names, up to four) -> {ranks: (latency, interval)} in any one unit of
            time.
        title: the finding.

    Raises:
        ValueError: if there is no curve, or there are more than four.
    """
    if not 1 <= len(costs) <= len(LINES):
        raise ValueError(f"1 to {len(LINES)} curves, not {len(costs)}")
    with plt.style.context(STYLE):
        fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.1))
        for column, (axis, label) in enumerate(zip(axes, ("latency of one user's token",
                                                          "interval between tokens, all users"),
                                                   strict=True)):
            for (name, curve), style, color in zip(costs.items(), LINES, (DARK, ACCENT, MID, "0.4"),
                                                   strict=False):
                axis.plot(list(curve), [value[column] for value in curve.values()], color=color, label=name,
                          ms=5, **style)
            ranks = sorted({n for curve in costs.values() for n in curve})
            axis.set_xscale("log", base=2)
            axis.set_xticks(ranks, [str(n) for n in ranks])
            axis.minorticks_off()
            axis.set_ylim(bottom=0)
            axis.set_xlabel("ranks")
            axis.set_ylabel(f"{label} (ticks)", fontsize=8.5)
            axis.legend(frameon=False)
        fig.suptitle(title, x=0.02, ha="left", fontsize=11, fontweight="bold")
        fig.tight_layout()
    return finished(fig)
