"""Logs of a block allocator with one fault each: for learners to find by its bookkeeping alone."""

from __future__ import annotations

import random

KINDS = ("double", "leak", "early", "refused")
"""A block given to two requests; a block that never comes back; one taken before the last was full; room
denied."""

BLOCKS, PAGE = 14, 8

Op = tuple
Event = tuple


def suspect(variant: int) -> tuple[list[Op], list[Event], int, str]:
    """A log of an allocator that goes wrong once, of the kind and in the place that the variant decides.

    Operations are ``("append", request, tokens)`` and ``("free", request)``; the events beside them are
    ``("took", [blocks])``, ``("full", blocks that are missing)`` and ``("gave", [blocks])``. After the fault
    the allocator goes on from the state that the fault left behind, without another one (of a block with two
    owners it takes back what the first of them frees).

    Args:
        variant: 0 to 15; the kind is ``KINDS[variant % 4]``.

    Returns:
        The operations, the events, the index of the wrong event, and its kind.

    Raises:
        ValueError: if the variant is not 0 to 15.
    """
    if not 0 <= variant <= 15:
        raise ValueError(f"variant is 0 to 15, not {variant}")
    kind, rng = KINDS[variant % 4], random.Random(1000 + variant)
    ops: list[Op] = []
    events: list[Event] = []
    at, newest, free = -1, 0, list(range(BLOCKS))
    tables: dict[int, list[int]] = {}
    lengths: dict[int, int] = {}
    while len(ops) < 22:
        if (len(tables) > 2 and rng.random() < 0.3) or sum(map(len, tables.values())) > BLOCKS - 5:
            request = rng.choice(sorted(tables))
            ops.append(("free", request))
            gave = sorted(tables.pop(request))
            del lengths[request]
            if kind == "leak" and at < 0 and len(ops) > 6 and len(gave) > 1:
                at = len(events)
                gave.remove(rng.choice(gave))
            free = sorted({*free, *gave})
            events.append(("gave", gave))
            continue
        if not tables or (len(tables) < 4 and rng.random() < 0.5):
            request, tokens, newest = newest, rng.randint(5, 20), newest + 1
        else:
            request, tokens = rng.choice(sorted(tables)), rng.randint(1, 6)
        had, length = tables.get(request, []), lengths.get(request, 0)
        need = max(0, -(-(length + tokens) // PAGE) - len(had))
        ripe = at < 0 and len(ops) > 6
        ops.append(("append", request, tokens))
        if kind == "refused" and ripe and need > 0 and len(free) > need:
            at = len(events)
            events.append(("full", 1))
            continue
        if kind == "early" and ripe and need == 0 and free and (length + tokens) % PAGE:
            at, need = len(events), 1
        took, free = free[:need], free[need:]
        others = sorted(block for other, table in tables.items() if other != request for block in table)
        if kind == "double" and ripe and took and others:
            at = len(events)
            free = sorted([*free, took.pop()])
            took.append(rng.choice(others))
        tables[request] = had + took
        lengths[request] = length + tokens
        events.append(("took", took))
    return ops, events, at, kind
