"""What the lab on speculation uses: rounds read off a trace, decoders of which some are biased, a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from inferlab.lab.identity import scattered
from inferlab.lab.plots.style import ACCENT, DARK, MID, STYLE, finished

if TYPE_CHECKING:
    from inferlab.trace.trace import Trace

RULES = ("exact", "fresh", "agree", "stale", "ensemble")
VARIANTS = 16

Decoder = Callable[[torch.Tensor, torch.Tensor, int, int], tuple[torch.Tensor, torch.Tensor]]


def rounds_of(run: Trace) -> tuple[list[int], list[int]]:
    """The target's passes of an assisted run, in order: ``(positions, removed)``, two lists of int.

    ``positions`` is how many positions a pass gave logits for (what was drafted, and one more); ``removed``
    how many of them were taken out of the target's cache afterwards.

    Args:
        run: the trace of one assisted ``generate``, made with ``trace(target, draft)``.

    Raises:
        ValueError: if the trace holds no pass of a target, or no crop of its cache.
    """
    positions, held, cropped, final = [], [], set(), None
    for boundary in run:
        if boundary.name.endswith("ForCausalLM"):
            cache = next(value for value in boundary.inputs.values() if hasattr(value, "length")
                         and hasattr(value, "layers"))
            positions.append(int(boundary.outputs["logits"].shape[1]))
            held.append((cache.length, int(boundary.inputs["input_ids"].shape[1])))
        elif boundary.name == "cache.crop" and positions:
            cropped.add(len(positions))
        elif boundary.name == "generate" and boundary.level == 0:
            final = int(boundary.outputs.shape[1]) - 1  # the newest token has no keys yet
    if not positions or len(cropped) != len(positions) or final is None:
        raise ValueError("this is no trace of an assisted generate: trace(target, draft) round one call")
    # from the cache's lengths: how much a crop takes away may be a tensor on the device, which a trace does
    # not read
    after = [before for before, _ in held[1:]] + [final]
    return positions, [before + fed - left for (before, fed), left in zip(held, after, strict=True)]


def unknown_decoders(variant: int) -> dict[str, Decoder]:
    """Three one-token speculative decoders, "A", "B" and "C": one is exact, two are biased, not alike.

    Each is called as ``decoder(p, q, n, seed)`` with the target's and the draft's probabilities, ``(V,)``,
    and runs ``n`` rounds with one drafted token each. It returns the first token that each round emitted,
    ``(n,)`` int64, and whether it was the drafted one, ``(n,)`` bool.

    Args:
        variant: 0 to 15, which rule stands behind which letter.

    Raises:
        ValueError: if the variant does not exist.
    """
    orders = (order for pair in combinations(RULES[1:], 2) for order in permutations(("exact", *pair)))
    rules = scattered(orders, "/".join)[:VARIANTS]
    if not 0 <= variant < VARIANTS:
        raise ValueError(f"variant is 0 to {VARIANTS - 1}, not {variant}")
    return {letter: _decoder(rule) for letter, rule in zip("ABC", rules[variant], strict=True)}


def _decoder(rule: str) -> Decoder:
    def decode(p: torch.Tensor, q: torch.Tensor, n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        p, q = p.double().cpu(), q.double().cpu()
        generator = torch.Generator().manual_seed(seed)
        proposal = q if rule != "stale" else (q**2 / (q**2).sum())
        drafted = torch.multinomial(proposal, n, replacement=True, generator=generator)
        uniforms = torch.rand(n, generator=generator, dtype=torch.float64)
        # "ensemble" is the library's `assistant_ensemble_weight` of 0.5
        wanted = (p + q) / 2 if rule == "ensemble" else p
        kept = drafted == p.argmax() if rule == "agree" else uniforms * q[drafted] < wanted[drafted]
        rest = (p - q).clamp(min=0)
        if rule == "fresh" or float(rest.sum()) < 1e-12:
            rest = p
        replacement = torch.multinomial(rest, n, replacement=True, generator=generator)
        return torch.where(kept, drafted, replacement), kept

    return decode


def passes_against_acceptance(
    curves: Mapping[int, Sequence[float]],
    runs: Mapping[int, Mapping[str, tuple[float, float]]],
    *,
    title: str,
) -> Figure:
    """Target passes per token against the acceptance rate: theory as lines, runs as points of the same look.

    Args:
        curves: drafted tokens a round -> passes per token at acceptance rates from 0 to 1, evenly spaced; up
            to three lines.
        runs: drafted tokens a round, as in `curves` -> name of a run -> (acceptance rate, passes per token).
        title: the finding.

    Raises:
        ValueError: if there is no curve, or more than three.
    """
    if not 1 <= len(curves) <= 3:
        raise ValueError(f"1 to 3 curves, not {len(curves)}")
    with plt.style.context(STYLE):
        fig, axis = plt.subplots(figsize=(7.6, 4.2))
        # the last one's marks are small and named below, so that a point of two runs shows both
        looks = ("-", "o", DARK, 7, 1), ("--", "s", ACCENT, 9, 1), (":", "^", MID, 6, -1)
        for (gamma, passes), (line, marker, color, size, side) in zip(curves.items(), looks, strict=False):
            rates = [n / (len(passes) - 1) for n in range(len(passes))]
            axis.plot(rates, passes, ls=line, color=color, lw=1.8)
            axis.plot([], [], ls=line, marker=marker, color=color, label=f"{gamma} drafted a round")
            for name, point in runs.get(gamma, {}).items():
                axis.plot(*point, marker, ms=size, color=color, mec="white")
                axis.annotate(name, point, xytext=(2, 4 * side), textcoords="offset points", fontsize=8.5,
                              color=color, rotation=30 * side, va="bottom" if side > 0 else "top")
        axis.set(xlim=(0, 1.02), ylim=(0, 1.08), xlabel="acceptance rate of a tested token",
                 ylabel="target passes per token")
        axis.legend(frameon=False, loc="lower left", title="lines: theory, points: runs",
                    alignment="left")
        axis.set_title(title)
        fig.tight_layout()
    return finished(fig)
