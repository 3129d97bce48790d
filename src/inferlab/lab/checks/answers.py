"""Short answers in numbers: their form, asked for before their values are looked at."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .check import Check


def numbers(check: Check, name: str, keys: Collection[str], service: Mapping[str, Any]) -> dict[str, float]:
    """What the learner's function `name` returns for a service, as plain numbers under exactly these keys."""
    got = getattr(check.learner, name)(dict(service))
    check.true(isinstance(got, dict) and set(got) == set(keys),
               f"return a dict with exactly these keys: {', '.join(keys)}")
    return {key: check.number(value, "each value is one finite number") for key, value in got.items()}


def near(got: float, want: float, within: float = 0.01) -> bool:
    """Whether two numbers agree to one per cent (or to `within` of `want`)."""
    return abs(got - want) <= within * abs(want)
