"""Makes the diagram and the numbers of the handbook's section on prefill and decode, from configs alone.

    python handbook/figures/prefill_decode.py            writes handbook/figures/lab12-phases.svg, prints the numbers
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

from inferlab.lab.kits.decode.roofline import call_cost
from inferlab.lab.plots.style import ACCENT, DARK, LINES, MID, STYLE, save_svg
from inferlab.models.language import FULL, FULL_COMMON, WEIGHTS

HERE = Path(__file__).parent
BUNDLED = json.loads((WEIGHTS / "target" / "config.json").read_text("utf-8"))
LLAMA = FULL["target"] | FULL_COMMON
PROMPT, NEW = 200, 40
"""Not the run that the lab has explained: what is typed there is not to be copied from here."""


def numbers() -> dict[str, str]:
    """Every number of the handbook's section that its code makes, as it stands in the text."""
    prefill, decode = call_cost(BUNDLED, PROMPT), call_cost(BUNDLED, 1, PROMPT)
    large_prefill, large = call_cost(LLAMA, 2048, itemsize=2), call_cost(LLAMA, 1, 2048, itemsize=2)
    shared = call_cost(LLAMA, 1, 2048, 64, itemsize=2)
    return {
        "calls": f"{NEW} calls",
        "tokens in the cache": f"{PROMPT + NEW - 1} tokens",
        "positions without a cache": f"{sum(range(PROMPT, PROMPT + NEW)):,} positions",
        "FLOPs of the prefill": f"{prefill.flops / 1e6:,.0f} million",
        "FLOPs of a decode call": f"{decode.flops / 1e6:.1f} million",
        "bytes of the prefill": f"{prefill.bytes / 1e6:.1f} MB",
        "bytes of a decode call": f"{decode.bytes / 1e6:.1f} MB again",
        "FLOPs per byte of the prefill": f"{prefill.intensity:.0f} FLOPs per byte",
        "FLOPs per byte of a decode call": f"{decode.intensity:.2f}",
        "weights of Llama 3 8B": f"{large.weight_bytes / 1e9:.1f} GB",
        "decode, Llama": f"{large.intensity:.2f} FLOPs per byte",
        "prefill, Llama": f"{large_prefill.intensity:,.0f} FLOPs per byte",
        "64 sequences, Llama": f"{shared.intensity:.0f} FLOPs per byte",
        "caches of 64 sequences": f"{shared.cache_read_bytes / 1e9:.1f} GB",
    }


def draw(path: Path) -> None:
    """FLOPs per byte against the tokens of a call: prefill of a prompt, decode of a batch."""
    counts = [2**k for k in range(12)]
    curves = {
        "prefill of n tokens": [call_cost(LLAMA, n, itemsize=2).intensity for n in counts],
        "decode, batch n, 256 tokens of context": [call_cost(LLAMA, 1, 256, n, itemsize=2).intensity for n in counts],
        "decode, batch n, 4,096 tokens of context": [call_cost(LLAMA, 1, 4096, n, itemsize=2).intensity for n in counts],
    }
    with plt.style.context(STYLE):
        fig, axis = plt.subplots(figsize=(6.8, 3.7))
        for (label, values), style, color in zip(curves.items(), LINES, (ACCENT, DARK, MID), strict=False):
            axis.plot(counts, values, label=label, color=color, ms=4.5, **style)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xticks(counts[::2], [str(n) for n in counts[::2]])
        axis.minorticks_off()
        axis.yaxis.set_major_formatter("{x:g}")
        axis.set_xlabel("tokens in one call (n)")
        axis.set_ylabel("FLOPs per byte")
        axis.set_title("What counts is the number of tokens that share a reading")
        axis.legend(frameon=False, loc="upper left", fontsize=8.5)
        fig.tight_layout()
        save_svg(fig, path, tight=False)


if __name__ == "__main__":
    draw(HERE / "lab12-phases.svg")
    for name, value in numbers().items():
        print(f"{name:34s} {value}")
