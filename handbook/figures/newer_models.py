"""Makes the diagram and the numbers of the handbook's section on newer models, from config classes alone.

    python handbook/figures/newer_models.py        writes handbook/figures/lab25-experts.svg, prints the numbers
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from transformers import AutoConfig

from inferlab.lab.kits.newer_models import PUBLISHED, cache_sizes
from inferlab.lab.plots.style import ACCENT, DARK, MID, STYLE, save_svg

HERE = Path(__file__).parent
TOKENS = 32_768
SPARSE = ("Mixtral 8x7B", "DeepSeek-V3", "Qwen3-Next 80B")


def experts(name: str) -> tuple[int, int]:
    """How many routed experts a layer of a published model has, and how many a token chooses."""
    config = AutoConfig.for_model(PUBLISHED[name])
    return getattr(config, "num_local_experts", None) or config.num_experts, config.num_experts_per_tok


def distinct(held: int, chosen: int, tokens: int) -> float:
    """Experts that a pass of so many tokens reads, on average, if all choices are equally likely."""
    return held * (1 - (1 - chosen / held) ** tokens)


def cache_mib(name: str, tokens: int = TOKENS) -> float:
    """MiB of one sequence's cache in 16 bits (states of linear attention in 32)."""
    sizes: dict[str, Any] = cache_sizes(AutoConfig.for_model(PUBLISHED[name]))
    total = 0
    for kind in sizes["layer_types"]:
        if kind == "linear_attention":
            values = sizes["linear_num_value_heads"] * sizes["linear_value_head_dim"]
            channels = 2 * sizes["linear_num_key_heads"] * sizes["linear_key_head_dim"] + values
            total += 2 * channels * sizes["linear_conv_kernel_dim"] + 4 * values * sizes["linear_key_head_dim"]
        else:
            row = 2 * sizes["num_key_value_heads"] * sizes["head_dim"]
            if "kv_lora_rank" in sizes:
                row = sizes["kv_lora_rank"] + sizes["qk_rope_head_dim"]
            total += 2 * row * (min(tokens, sizes["sliding_window"] - 1) if kind == "sliding_attention" else tokens)
    return total / 2**20


def numbers() -> dict[str, str]:
    """Every number of the handbook's section, as it stands in the text."""
    deep = AutoConfig.for_model("deepseek_v3")
    held, chosen = experts("DeepSeek-V3")
    expert = 3 * deep.hidden_size * deep.moe_intermediate_size
    plain = deep.num_attention_heads * (deep.qk_nope_head_dim + deep.qk_rope_head_dim + deep.v_head_dim)
    latent = deep.kv_lora_rank + deep.qk_rope_head_dim
    return {
        "an expert": f"{expert / 1e6:.0f} million weights",
        "held": f"{held} experts",
        "one token": f"{chosen} of {held}",
        "two tokens": f"{distinct(held, chosen, 2):.1f}",
        "64 tokens": f"{distinct(held, chosen, 64):.0f} of {held}",
        "a token, latent": f"{latent} numbers",
        "a token, plain": f"{plain:,}",
        "times": f"{plain / latent:.0f} times",
        **{f"cache, {name}": f"| {name} | {cache_mib(name):,.0f} MiB |" for name in PUBLISHED},
    }


def draw(path: Path) -> None:
    """The share of a layer's experts that a pass reads, against its tokens."""
    with plt.style.context([STYLE, {"axes.grid": False}]):
        fig, axis = plt.subplots(figsize=(6.4, 3.1))
        tokens = [2**n for n in range(11)]
        for name, color, dash in zip(SPARSE, (MID, ACCENT, DARK), ("--", "-", ":"), strict=True):
            held, chosen = experts(name)
            axis.plot(tokens, [100 * distinct(held, chosen, n) / held for n in tokens], dash, color=color, lw=2,
                      label=f"{name}: {chosen} of {held}")
        for n in (1, 64):
            axis.axvline(n, color="0.6", lw=0.8)
        axis.set_xscale("log", base=2)
        axis.set_xticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1,024"])
        axis.minorticks_off()
        axis.tick_params(length=0)
        axis.set_xlabel("tokens in a pass")
        axis.set_ylabel("% of the experts read")
        axis.legend(frameon=False, fontsize=9, loc="lower right")
        axis.set_title("Sparse for one token, nearly dense for a batch", fontsize=10)
        fig.tight_layout()
        save_svg(fig, path, tight=False)


if __name__ == "__main__":
    draw(HERE / "lab25-experts.svg")
    for name, value in numbers().items():
        print(f"{name:26s} {value}")
