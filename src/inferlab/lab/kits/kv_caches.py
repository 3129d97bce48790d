"""KV caches of several kinds: their real bytes, faulty uses of one, and a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from inferlab.lab.plots.style import ACCENT, DARK, LINES, MID, STYLE, finished


def real_bytes(cache: Any) -> int:
    """Bytes of all tensors that a cache of `transformers` holds, quantized codes and scales included."""
    total = 0
    for layer in cache.layers:
        parts = [getattr(layer, name, None) for name in ("keys", "values", "_quantized_keys",
                                                         "_quantized_values")]
        for part in parts:
            tensors = part if isinstance(part, tuple) else (part,)
            total += sum(one.nbytes for one in tensors if isinstance(one, torch.Tensor))
    return total


FAULTS = ("stale", "ignored", "cropped", "window")
WINDOW = 32
STALE = 12


def faulty_service(
    model: torch.nn.Module, ids: torch.Tensor, fault: str
) -> Callable[[torch.Tensor, int], torch.Tensor]:
    """A service that generates greedily and mishandles its cache.

    Args:
        model: a causal model of `transformers`.
        ids: (1, P) int64, P >= 12: where the prompt of an earlier request is taken from.
        fault: "stale" (the cache still holds 12 tokens of that request), "ignored" (decode calls get no
            cache), "cropped" (after the fourth call one token is taken off the cache), "window"
            (only the newest 32 tokens are kept).

    Returns:
        A function of a prompt (1, P) int64, P > 32, and a number n >= 5 of new tokens, which returns (1, P +
        n) int64. It raises ValueError for a prompt or an answer that is too short to show the fault. It is
        good for one request.

    Raises:
        ValueError: an unknown fault.
    """
    from transformers import DynamicCache

    if fault not in FAULTS:
        raise ValueError(f"fault is {fault!r}; expected one of {FAULTS}")
    cache = DynamicCache(config=model.config)
    if fault == "stale":
        with torch.no_grad():
            model(ids[:, :STALE].flip(1), None, None, cache, logits_to_keep=1)

    def serve(prompt: torch.Tensor, n: int) -> torch.Tensor:
        if prompt.shape[0] != 1 or prompt.shape[1] <= WINDOW or n < 5:
            raise ValueError(f"one prompt of more than {WINDOW} tokens and 5 or more new ones, not "
                             f"{tuple(prompt.shape)} and {n}")
        tokens, piece = prompt, prompt
        for number in range(1, n + 1):
            if fault == "ignored" and number > 1:
                logits = model(piece, use_cache=False, logits_to_keep=1).logits
            else:
                logits = model(piece, None, None, cache, logits_to_keep=1).logits
            if fault == "cropped" and number == 4:
                cache.crop(-1)
            if fault == "window":
                for layer in cache.layers:
                    layer.keys, layer.values = layer.keys[:, :, -WINDOW:], layer.values[:, :, -WINDOW:]
            piece = logits[:, -1:].argmax(-1)
            tokens = torch.cat([tokens, piece], 1)
        return tokens

    return serve


def cache_curves(curves: Mapping[str, float], tokens: Sequence[int], weights: Mapping[str, float], *,
                 title: str) -> Figure:
    """Bytes of the cache against the tokens in it, both logarithmic, with lines for bytes of weights.

    Args:
        curves: label -> bytes of one token; up to four.
        tokens: the counts of tokens to draw, all sequences together.
        weights: label -> bytes; horizontal lines, up to two.
        title: the finding.

    Raises:
        ValueError: no curve, more than four, or more than two lines.
    """
    if not 1 <= len(curves) <= len(LINES) or len(weights) > 2:
        raise ValueError(f"1 to {len(LINES)} curves and up to 2 lines, not {len(curves)} and {len(weights)}")
    with plt.style.context(STYLE):
        fig, axis = plt.subplots(figsize=(6.8, 3.8))
        for (name, one), style, color in zip(curves.items(), LINES, (DARK, ACCENT, MID, "0.4"), strict=False):
            axis.plot(tokens, [count * one / 2**20 for count in tokens], label=name, color=color, ms=4.5,
                      **style)
        for (name, value), dash in zip(weights.items(), ("-", "--"), strict=False):
            axis.axhline(value / 2**20, color="0.3", lw=1.1, ls=dash)
            axis.annotate(name, (tokens[-1], value / 2**20), xytext=(0, 4), textcoords="offset points",
                          ha="right", fontsize=8.5)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log", base=2)
        axis.set_xticks(tokens[::2], [f"{count:,}" for count in tokens[::2]])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter("{x:g}")
        axis.set_xlabel("tokens in the cache, all sequences together")
        axis.set_ylabel("MiB")
        axis.set_title(title)
        axis.legend(frameon=False, loc="lower right", fontsize=8.5)
        fig.tight_layout()
    return finished(fig)
