"""FLOPs and bytes of one call of a Llama-style model, a device's rates, and both in one picture.

The counts are those of the mathematics: every matrix multiplied once, every weight read once a call, the
cache of earlier calls read once. What a real call does beyond that (activations, copies, launches) is what
the measured time is compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from inferlab.lab.kits.memory.peaks import seconds
from inferlab.lab.plots.style import ACCENT, DARK, LINES, MID, STYLE, finished


@dataclass(frozen=True)
class Sizes:
    """What counts need of a Llama-style config; `of` takes a `transformers` config or a dict of its entries.

    Where a config has no `head_dim`, it is the width by the number of query heads.
    """

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int

    @classmethod
    def of(cls, config: Any) -> Sizes:
        """Raises KeyError if the config is not one of a decoder of this kind."""
        entries = config if isinstance(config, Mapping) else config.to_dict()
        head_dim = entries.get("head_dim") or entries["hidden_size"] // entries["num_attention_heads"]
        return cls(**{name: int(head_dim if name == "head_dim" else entries[name])
                      for name in cls.__dataclass_fields__})

    @property
    def layer_weights(self) -> int:
        """Weights of all matrices in the layers: q, k, v, o, gate, up, down."""
        queries, keys = self.num_attention_heads * self.head_dim, self.num_key_value_heads * self.head_dim
        one = 2 * self.hidden_size * (queries + keys) + 3 * self.hidden_size * self.intermediate_size
        return self.num_hidden_layers * one

    @property
    def head_weights(self) -> int:
        """Weights of `lm_head`; where they are tied, this is the embedding table."""
        return self.hidden_size * self.vocab_size

    @property
    def norm_weights(self) -> int:
        """Weights of the norms, two a layer and one at the end."""
        return (2 * self.num_hidden_layers + 1) * self.hidden_size

    def cache_bytes(self, tokens: int, itemsize: int) -> int:
        """Bytes of keys and values of `tokens` tokens (of all sequences together)."""
        return 2 * self.num_hidden_layers * self.num_key_value_heads * self.head_dim * tokens * itemsize


@dataclass(frozen=True)
class Cost:
    """One call: floating-point operations (a multiply-add is two) and bytes, all `int`."""

    linear_flops: int
    attention_flops: int
    weight_bytes: int
    cache_read_bytes: int
    cache_written_bytes: int

    @property
    def flops(self) -> int:
        """All of them."""
        return self.linear_flops + self.attention_flops

    @property
    def bytes(self) -> int:
        """All that are read and written."""
        return self.weight_bytes + self.cache_read_bytes + self.cache_written_bytes

    @property
    def intensity(self) -> float:
        """FLOPs per byte."""
        return self.flops / self.bytes


def call_cost(config: Any, new_tokens: int, context: int = 0, batch: int = 1, *, itemsize: int = 4,
              all_logits: bool = False) -> Cost:
    """Count one forward call of a Llama-style causal model.

    Args:
        config: a `transformers` config or a dict of its entries (see `Sizes`).
        new_tokens: tokens a sequence that go through the model in this call: the prompt's, or 1 in decode.
        context: tokens a sequence that are in the cache before the call.
        batch: sequences in the call, all of the same length.
        itemsize: bytes of one value of the cache, and of one weight.
        all_logits: whether `lm_head` runs on all new tokens (`logits_to_keep=0`) or on the last of each
            sequence.

    Attention is counted as the eager kernel does it: every new token against all keys, the masked ones
    included (4 * new * keys * heads * head_dim a layer, Q K^T and P V together). Norms, softmax, RoPE and the
    embedding's lookup are not counted: they are no matrix products.

    Source: shapes of `LlamaForCausalLM`, transformers 5.24; checked against `torch.utils.flop_counter` in the
        tests.
    """
    sizes = Sizes.of(config)
    rows = batch * new_tokens
    heads = rows if all_logits else batch
    return Cost(
        linear_flops=2 * (rows * sizes.layer_weights + heads * sizes.head_weights),
        attention_flops=4 * sizes.num_hidden_layers * rows * (context + new_tokens)
        * sizes.num_attention_heads * sizes.head_dim,
        weight_bytes=(sizes.layer_weights + sizes.norm_weights + sizes.head_weights) * itemsize,
        cache_read_bytes=sizes.cache_bytes(batch * context, itemsize),
        cache_written_bytes=sizes.cache_bytes(rows, itemsize),
    )


@dataclass(frozen=True)
class Rates:
    """What a device was seen to do: matrix products in FLOP/s, reading of memory in bytes/s."""

    name: str
    flops_per_s: float
    bytes_per_s: float

    @property
    def ridge(self) -> float:
        """FLOPs per byte from which on the matrix units are the limit."""
        return self.flops_per_s / self.bytes_per_s

    def roof(self, intensity: float) -> float:
        """The most FLOP/s that a call of this many FLOPs per byte can reach."""
        return min(self.flops_per_s, self.bytes_per_s * intensity)


def best_seconds(run: Callable[[], Any], device: str | torch.device = "cpu", repeats: int = 3) -> float:
    """The shortest wall time of `repeats` calls of `run()` after a first one; waits for the device."""
    return min([seconds(run, device) for _ in range(repeats + 1)][1:])


def measure_device(device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32) -> Rates:
    """This device's own roofline, from two operations in `dtype`: a large square matrix product, and a
    product of a matrix and a vector, which reads every weight once and is what decode consists of. Takes
    about 0.3 s."""
    device = torch.device(device)
    cuda = device.type == "cuda"
    side = 8192 if cuda else 1024
    a, b = torch.ones(2, side, side, device=device, dtype=dtype)
    matrix = best_seconds(lambda: a @ b, device)
    read_bytes = 2**30 if cuda else 2**27  # larger than the device's caches
    tall = torch.ones(read_bytes // dtype.itemsize // 4096, 4096, device=device, dtype=dtype)
    vector = torch.ones(4096, device=device, dtype=dtype)
    read = best_seconds(lambda: tall @ vector, device)
    name = torch.cuda.get_device_name(device) if cuda else f"CPU, {torch.get_num_threads()} thread(s)"
    return Rates(f"{name}, {str(dtype).removeprefix('torch.')}", 2 * side**3 / matrix, tall.nbytes / read)


def overhead_seconds(config: Any, device: str | torch.device = "cpu",
                     dtype: torch.dtype = torch.float32) -> float:
    """What one decode call costs before any arithmetic: the time of the same architecture without width.

    A model of the same class and number of layers, 2 heads of 2 and a vocabulary of 8, does the same Python
    calls and starts the same kernels, each on almost nothing. Raises what `transformers` raises for a config
    it cannot shrink.
    """
    from transformers import AutoModelForCausalLM, DynamicCache

    small = {"hidden_size": 4, "intermediate_size": 4, "num_attention_heads": 2, "num_key_value_heads": 1,
             "head_dim": 2,
             "vocab_size": 8, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    hollow = type(config).from_dict({**config.to_dict(), **small})
    devices = [device] if torch.device(device).type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        model = AutoModelForCausalLM.from_config(hollow, dtype=dtype).to(device).eval()
    cache, ids = DynamicCache(config=hollow), torch.zeros(1, 1, dtype=torch.int64, device=device)
    return best_seconds(lambda: model(ids, None, None, cache, logits_to_keep=1), device, repeats=5)


def regime(cost: Cost, rates: Rates, overhead: float) -> tuple[str, dict[str, float]]:
    """The largest of three lower bounds of a call's time names its regime.

    Returns:
        "launch-bound", "memory-bound" or "compute-bound", and the three times in seconds under the same
        names.
    """
    times = {"launch-bound": overhead, "memory-bound": cost.bytes / rates.bytes_per_s,
             "compute-bound": cost.flops / rates.flops_per_s}
    return max(times, key=times.__getitem__), times


@dataclass(frozen=True)
class Dot:
    """One call in the picture, on the roof if `seconds` is None; `group` sets color and marker."""

    label: str
    cost: Cost
    seconds: float | None = None
    group: str = "calls"


def roofline(rates: Rates, dots: Sequence[Dot], *, title: str,
             arrows: Sequence[tuple[str, str]] = ()) -> Figure:
    """FLOP/s against FLOPs per byte, both axes logarithmic: the device's roof, and a dot for each call.

    Args:
        rates: of the device, as `measure_device` gives them.
        dots: the calls; up to four groups.
        title: the finding.
        arrows: pairs of labels, from a call to what becomes of it.

    Raises:
        ValueError: no dot, more than four groups, or an arrow to a label that is not there.
    """
    groups = list(dict.fromkeys(dot.group for dot in dots))
    if not 1 <= len(groups) <= len(LINES):
        raise ValueError(f"1 to {len(LINES)} groups of dots, not {len(groups)}")
    at = {dot.label: (dot.cost.intensity, rates.roof(dot.cost.intensity)
                      if dot.seconds is None else dot.cost.flops / dot.seconds)
          for dot in dots}
    missing = {label for pair in arrows for label in pair} - set(at)
    if missing:
        raise ValueError(f"no dot is labelled {', '.join(sorted(missing))}")
    low, high = min(x for x, _ in at.values()) / 3, max(*(x for x, _ in at.values()), rates.ridge) * 4
    with plt.style.context(STYLE):
        fig, axis = plt.subplots(figsize=(6.8, 3.8))
        roof_x = [low, rates.ridge, high]
        axis.plot(roof_x, [rates.roof(x) / 1e9 for x in roof_x], color="0.35", lw=1.6)
        axis.axvline(rates.ridge, color="0.6", lw=0.9, ls=":")
        axis.annotate(f"ridge: {rates.ridge:.0f} FLOPs per byte", (rates.ridge, rates.flops_per_s / 1e9),
                      xytext=(0, 5),
                      textcoords="offset points", ha="center", fontsize=8.5)
        for group, style, color in zip(groups, LINES, (ACCENT, DARK, MID, "0.4"), strict=False):
            points = [dot for dot in dots if dot.group == group]
            xs, ys = [at[d.label][0] for d in points], [at[d.label][1] / 1e9 for d in points]
            axis.plot(xs, ys, ls="", marker=style["marker"], ms=6, color=color, label=group)
            for dot, x, y in zip(points, xs, ys, strict=True):
                axis.annotate(dot.label, (x, y), xytext=(5, -11), textcoords="offset points", fontsize=8)
        for start, end in arrows:
            axis.annotate("", (at[end][0], at[end][1] / 1e9), (at[start][0], at[start][1] / 1e9),
                          arrowprops={"arrowstyle": "->", "color": "0.5", "shrinkA": 5, "shrinkB": 5})
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlim(low, high)
        axis.xaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.set_xlabel("FLOPs per byte read or written")
        axis.set_ylabel("GFLOP/s")
        axis.margins(y=0.2)
        axis.set_title(title)
        axis.legend(frameon=False, loc="lower right", title=rates.name, title_fontsize=8, fontsize=8.5)
        fig.tight_layout()
    return finished(fig)
