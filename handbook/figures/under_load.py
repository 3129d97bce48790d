"""Makes the diagram and the numbers of the handbook's section on load, from a small simulation.

    python handbook/figures/under_load.py          writes handbook/figures/lab23-load.svg, prints the numbers
"""

from __future__ import annotations

import random
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

from inferlab.lab.plots.style import ACCENT, DARK, MID, STYLE, save_svg

HERE = Path(__file__).parent
CALL, TOKEN, PROMPT, NEW, SLOTS = 20, 1, 24, 12, 8
"""Ticks of a call and of a token in it, the tokens of every request, and the slots."""
FULL = TOKEN * (PROMPT + NEW - 1) + CALL * NEW / SLOTS
"""Ticks that a request costs when all slots are taken: the gap between arrivals at the capacity."""
LONG, CHUNK, OTHERS = 200, 50, 4
"""A long prompt, the tokens of it that a call may have, and the requests that decode beside it."""
TOKEN_BYTES, WEIGHTS, PEAK = 2 * 32 * 8 * 128 * 2, 8.03e9, 989e12
"""Llama 3 8B in 16 bits: bytes of a token in the cache, and weights; FLOP/s of one H100."""


def simulated(load: float, count: int = 3000) -> dict[str, float]:
    """Random arrivals at a share of the capacity: first tokens and stays in ticks, and the busy share."""
    rng, arrivals, now = random.Random(23), [], 0.0
    for _ in range(count):
        now += rng.expovariate(load / FULL)
        arrivals.append(now)
    clock = busy = 0.0
    first, stays, running, due = [], [], [], 0
    while due < count or running:
        if not running:
            clock = max(clock, arrivals[due])
        came = []
        while due < count and arrivals[due] <= clock and len(running) + len(came) < SLOTS:
            came.append([arrivals[due], NEW])
            due += 1
        ticks = CALL + TOKEN * (len(running) + PROMPT * len(came))
        clock, busy = clock + ticks, busy + ticks
        first += [clock - one[0] for one in came]
        running += came
        for one in running:
            one[1] -= 1
        stays += [clock - one[0] for one in running if not one[1]]
        running = [one for one in running if one[1]]
    return {"first": sum(first) / count, "first tail": sorted(first)[int(0.95 * count)],
            "stay": sum(stays) / count, "tail": sorted(stays)[int(0.95 * count)], "busy": busy / clock}


def numbers() -> dict[str, str]:
    """Every number of the handbook's section, as it stands in the text."""
    half, near = simulated(0.5), simulated(0.95)
    handed = 2000 * TOKEN_BYTES
    return {
        "full": f"{FULL:.0f} ticks",
        "alone": f"{TOKEN * (PROMPT + NEW - 1) + CALL * NEW} ticks",
        "busy at half": f"{half['busy']:.0%}",
        "first at half": f"{half['first']:.0f} ticks on average",
        "tail at half": f"{half['first tail']:.0f} for the slowest 5%",
        "first near": f"{near['first']:.0f} on average",
        "tail near": f"{near['first tail']:.0f} for the slowest 5%",
        "whole": f"{CALL + TOKEN * (LONG + OTHERS)} ticks",
        "chunks": f"{CALL + TOKEN * (CHUNK + OTHERS)} ticks",
        "long, whole": f"after {CALL + TOKEN * (LONG + OTHERS)}",
        "long, chunks": f"after {LONG // CHUNK * (CALL + TOKEN * (CHUNK + OTHERS))}",
        "handed": f"{handed / 1e6:.0f} MB",
        "over a link": f"{handed / 50e9 * 1e3:.1f} ms",
        "both ways": f"{2 * handed / 64e9 * 1e3:.1f} ms",
        "computed": f"{2 * WEIGHTS * 2000 / PEAK * 1e3:.0f} ms",
    }


def draw(path: Path) -> None:
    """Left, what a load does to latency; right, the calls with a long prompt, whole and in chunks."""
    with plt.style.context([STYLE, {"axes.grid": False}]):
        fig, (curve, calls) = plt.subplots(1, 2, figsize=(7.4, 3.0), width_ratios=(1.25, 1))
        loads = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
        made = [simulated(load) for load in loads]
        for key, label, color, dash, at in (("tail", "95th percentile", ACCENT, "-", (0.25, 620)),
                                            ("stay", "mean", DARK, "--", (0.7, 280))):
            curve.plot(loads, [one[key] for one in made], dash, color=color)
            curve.text(*at, label, fontsize=8, color=color)
        curve.set(xlabel="load, as a share of the capacity", ylabel="ticks in the service", xlim=(0, 1),
                  ylim=0, xticks=[0, 0.5, 1], yticks=[0, 1000, 2000])
        share = curve.twinx()
        share.plot(loads, [100 * one["busy"] for one in made], ":", color=MID)
        share.set(ylim=(0, 103), yticks=[])
        share.text(0.33, 70, "busy (100% at the top)", fontsize=8, color=MID)
        curve.set_title("Busy long before it is full", fontsize=10)
        decode = CALL + TOKEN * OTHERS
        rows = [decode] * 2 + [CALL + TOKEN * (LONG + OTHERS)] + [decode] * 3
        chunks = [CALL + TOKEN * (CHUNK + OTHERS)] * (LONG // CHUNK)
        for height, lengths in ((1, rows), (0, [decode] * 2 + chunks + [decode])):
            left = 0
            for length in lengths:
                calls.barh(height, length - 3, left=left, height=0.45,
                           color=MID if length == decode else ACCENT)
                left += length
        calls.set(yticks=[0, 1], xticks=[0, 100, 200, 300], xlabel="ticks", ylim=(-0.5, 1.5))
        calls.set_yticklabels(["chunks", "whole"])
        calls.set_title("A call is everybody's gap", fontsize=10)
        fig.tight_layout()
        save_svg(fig, path, tight=False)


if __name__ == "__main__":
    draw(HERE / "lab23-load.svg")
    for name, value in numbers().items():
        print(f"{name:22s} {value}")
