"""Makes the diagram and the numbers of the handbook's section on the KV cache, from configs alone.

    python handbook/figures/kv_cache.py            writes handbook/figures/lab13-cache.svg, prints the numbers
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle

from inferlab.lab.kits.decode.roofline import Sizes
from inferlab.lab.plots.style import ACCENT, DARK, MID, STYLE, save_svg
from inferlab.models.language import FULL, FULL_COMMON, WEIGHTS

HERE = Path(__file__).parent
DRAFT = json.loads((WEIGHTS / "draft" / "config.json").read_text("utf-8"))
LLAMA = FULL["target"] | FULL_COMMON
PROMPT, NEW = 200, 40
"""Neither the model nor the run that the lab has explained: what is typed there is not to be copied from here."""


def numbers() -> dict[str, str]:
    """Every number of the handbook's section that its code makes, as it stands in the text."""
    small, large = Sizes.of(DRAFT), Sizes.of(LLAMA)
    many = Sizes.of(LLAMA | {"num_key_value_heads": LLAMA["num_attention_heads"]})
    weights = small.layer_weights + small.norm_weights + small.head_weights
    llama = large.layer_weights + large.norm_weights + 2 * large.head_weights  # embedding and lm_head are two tables there
    token, whole = large.cache_bytes(1, 2), small.cache_bytes(PROMPT + NEW - 1, 4)
    return {
        "bytes of a token": f"{small.cache_bytes(1, 4):,} bytes",
        "tokens": f"{PROMPT + NEW - 1} tokens",
        "bytes of the run": f"{whole:,} bytes",
        "in KiB": f"{whole // 1024} KiB",
        "with query heads": f"{small.num_attention_heads // small.num_key_value_heads * whole // 1024:,} KiB",
        "weights": f"{weights * 4 / 1e6:.1f} MB",
        "crossing": f"{-(-weights * 4 // small.cache_bytes(1, 4)):,} tokens",
        "crossing with 8-bit weights": f"{-(-weights // small.cache_bytes(1, 4)):,}",
        "Llama, bytes of a token": f"{token // 1024} KiB",
        "Llama with as many key heads": f"{many.cache_bytes(1, 2) // 1024} KiB",
        "Llama, 8,192 tokens": f"{large.cache_bytes(8192, 2) / 2**30:g} GiB",
        "Llama, weights": f"{llama * 2 / 1e9:.1f} GB",
        "Llama, crossing": f"{-(-llama * 2 // token):,}",
        "Llama, crossing at 64": f"{-(-llama * 2 // (64 * token)):,}",
    }


def draw(path: Path) -> None:
    """Eight query heads on their key/value heads: multi-head, grouped-query and multi-query attention."""
    with plt.style.context([STYLE, {"axes.grid": False}]):
        fig, axes = plt.subplots(1, 3, figsize=(7.4, 2.5))
        for axis, (title, kv) in zip(axes, (("multi-head", 8), ("grouped-query", 2), ("multi-query", 1)), strict=True):
            for head in range(8):
                axis.add_patch(Rectangle((head + 0.1, 2.2), 0.8, 0.6, color=MID))
                shared = head * kv // 8
                axis.plot([head + 0.5, (shared + 0.5) * 8 / kv], [2.2, 1.2], color="0.55", lw=0.9)
            for head in range(kv):
                center = (head + 0.5) * 8 / kv
                axis.add_patch(Rectangle((center - 0.4, 0.6), 0.8, 0.6, color=DARK))
                axis.add_patch(Rectangle((center - 0.4, 0), 0.8, 0.5, color=ACCENT, hatch="//", fill=False))
            axis.set_xlim(0, 8)
            axis.set_ylim(-0.15, 3)
            axis.set_xticks([])
            axis.set_yticks([0.25, 0.9, 2.5], ["value", "key", "query"] if axis is axes[0] else [])
            axis.tick_params(length=0)
            axis.set_title(f"{title}: {kv} cached", fontsize=10)
            for side in axis.spines.values():
                side.set_visible(False)
        fig.tight_layout()
        save_svg(fig, path, tight=False)


if __name__ == "__main__":
    draw(HERE / "lab13-cache.svg")
    for name, value in numbers().items():
        print(f"{name:34s} {value}")
