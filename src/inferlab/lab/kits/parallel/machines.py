"""Machines of several ranks, one for each variant, with costs in ticks: counted, not timed."""

from __future__ import annotations

from inferlab.lab.identity import of_variant

RANKS = (1, 2, 4, 8)
"""Numbers of ranks that every machine can be split into."""

# compute of a layer, one step of a ring: the best number of ranks differs
_COSTS = ((96, 5), (120, 2), (160, 3), (256, 1))
_LAYERS = (24, 32, 48, 80)


def machine(variant: int) -> dict[str, int]:
    """One machine and model, as whole numbers of ticks.

    Args:
        variant: 0 to 15.

    Returns:
        ``layers`` (count), ``compute`` (ticks of one layer's work for one token on one rank), ``step`` (ticks
        of one step of a ring all-reduce) and ``hop`` (ticks to hand a hidden state to the next stage).

    Raises:
        ValueError: if the variant does not exist.
    """
    number = of_variant(variant, range(16), "machine {}".format)
    compute, step = _COSTS[number % 4]
    return {"layers": _LAYERS[number // 4], "compute": compute, "step": step, "hop": 6 + number // 4}
