"""What the lab on speculative decoding uses: rounds read off a trace, decoders of which some are biased, and its picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations, permutations

import numpy as np
import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from .identity import scattered
from .plots import _LOOK, ACCENT, DARK, MID, _closed

RULES = ("exact", "fresh", "agree", "stale")
VARIANTS = 12

Decoder = Callable[[torch.Tensor, torch.Tensor, int, int], tuple[torch.Tensor, torch.Tensor]]


def rounds_of(run) -> tuple[list[int], list[int]]:
    """The target's passes of an assisted run, in order: ``(positions, removed)``, two lists of int of one length.

    ``positions`` is how many positions a pass gave logits for (what was drafted, and one more); ``removed`` how many
    of them were taken out of the target's cache afterwards.

    Args:
        run: the trace of one assisted ``generate``, made with ``trace(target, draft)``.

    Raises:
        ValueError: if the trace holds no pass of a target, or no crop of its cache.
    """
    positions, held, cropped, final = [], [], set(), None
    for boundary in run:
        if boundary.name.endswith("ForCausalLM"):
            cache = next(value for value in boundary.inputs.values() if hasattr(value, "length") and hasattr(value, "layers"))
            positions.append(int(boundary.outputs["logits"].shape[1]))
            held.append((cache.length, int(boundary.inputs["input_ids"].shape[1])))
        elif boundary.name == "cache.crop" and positions:
            cropped.add(len(positions))
        elif boundary.name == "generate" and boundary.level == 0:
            final = int(boundary.outputs.shape[1]) - 1  # the newest token has no keys yet
    if not positions or len(cropped) != len(positions) or final is None:
        raise ValueError("this is no trace of an assisted generate: trace(target, draft) round one call")
    # from the cache's lengths: how much a crop takes away may be a tensor on the device, which a trace does not read
    after = [before for before, _ in held[1:]] + [final]
    return positions, [before + fed - left for (before, fed), left in zip(held, after, strict=True)]


def unknown_decoders(variant: int) -> dict[str, Decoder]:
    """Three one-token speculative decoders, "A", "B" and "C": one is exact, two are biased, each in its own way.

    Each is called as ``decoder(p, q, n, seed)`` with the target's and the draft's probabilities, ``(V,)``, and runs
    ``n`` rounds with one drafted token each. It returns the first token that each round emitted, ``(n,)`` int64, and
    whether it was the drafted one, ``(n,)`` bool.

    Args:
        variant: 0 to 11, which rule stands behind which letter.

    Raises:
        ValueError: if the variant does not exist.
    """
    if not 0 <= variant < VARIANTS:
        raise ValueError(f"variant is 0 to {VARIANTS - 1}, not {variant}")
    orders = scattered((order for pair in combinations(RULES[1:], 2) for order in permutations(("exact", *pair))), "/".join)
    return {letter: _decoder(rule) for letter, rule in zip("ABC", orders[variant], strict=True)}


def _decoder(rule: str) -> Decoder:
    def decode(p: torch.Tensor, q: torch.Tensor, n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        p, q = p.double().cpu(), q.double().cpu()
        generator = torch.Generator().manual_seed(seed)
        proposal = q if rule != "stale" else (q**2 / (q**2).sum())
        drafted = torch.multinomial(proposal, n, replacement=True, generator=generator)
        uniforms = torch.rand(n, generator=generator, dtype=torch.float64)
        kept = drafted == p.argmax() if rule == "agree" else uniforms * q[drafted] < p[drafted]
        rest = (p - q).clamp(min=0)
        if rule == "fresh" or float(rest.sum()) < 1e-12:
            rest = p
        replacement = torch.multinomial(rest, n, replacement=True, generator=generator)
        return torch.where(kept, drafted, replacement), kept

    return decode


def passes_against_acceptance(
    curves: Mapping[str, tuple[list[float], list[float]]],
    measured: Mapping[str, Mapping[str, tuple[float, float]]],
    *,
    title: str,
) -> Figure:
    """Target passes per token against the acceptance rate: theory as lines, runs as points.

    Args:
        curves: label -> (acceptance rates, passes per token), up to three lines.
        measured: label of a series -> name of a run -> (acceptance rate, passes per token); the first series is drawn
            filled, the others open.
        title: the finding.

    Raises:
        ValueError: if there is no curve, or more than three.
    """
    if not 1 <= len(curves) <= 3:
        raise ValueError(f"1 to 3 curves, not {len(curves)}")
    with plt.rc_context(_LOOK):
        fig, axis = plt.subplots(figsize=(7.6, 4.2))
        for (label, (x, y)), style, color in zip(curves.items(), ("-", "--", ":"), (DARK, MID, "0.4"), strict=False):
            axis.plot(x, y, ls=style, color=color, lw=1.8, label=label)
        for number, (label, runs) in enumerate(measured.items()):
            points = np.array(list(runs.values()), dtype=float).reshape(-1, 2)
            axis.plot(points[:, 0], points[:, 1], "o" if number == 0 else "s", ms=7, mec=ACCENT, mew=1.6,
                      mfc=ACCENT if number == 0 else "none", label=label, ls="none")
            if number == 0:
                for name, (x, y) in runs.items():
                    axis.annotate(name, (x, y), xytext=(6, 6), textcoords="offset points", fontsize=8.5)
        axis.set(xlim=(0, 1.02), ylim=(0, 1.08), xlabel="acceptance rate of a tested token",
                 ylabel="target passes per token")
        axis.legend(frameon=False, loc="lower left")
        axis.set_title(title)
        fig.tight_layout()
    return _closed(fig)
