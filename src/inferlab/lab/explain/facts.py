"""Facts of a trace as a plain mapping, and whether an amount in an answer stands in them."""

import re
from collections.abc import Mapping
from functools import lru_cache

from .quantities import Quantity

_MEASURED = re.compile(r"(?:^|[._ ])(?:ms|s|secs?|seconds?|time|times|latency|duration|peak\w*|memory|mem|elapsed|wall|throughput|"
                       r"\w+_ms|\w+_s|\w*latency\w*|\w*peak\w*|\w*elapsed\w*)(?:$|[._ ])")


@lru_cache(maxsize=4096)
def measured(name: str) -> bool:
    """Whether a fact depends on the machine (a time, a peak): it may support an answer, never deny it."""
    return bool(_MEASURED.search(name.casefold()))


def facts_of(source: object) -> dict[str, object]:
    """Facts from a mapping, from an object with a `facts()` method (a trace), or {} from None."""
    if source is None:
        return {}
    if isinstance(source, Mapping):
        return {str(k): tuple(v) if isinstance(v, list) else v for k, v in source.items()}
    if callable(getattr(source, "facts", None)):
        return facts_of(source.facts())
    raise TypeError(f"facts come from a mapping or a trace, not from {type(source).__name__}")


def _values(value: object) -> list[object]:
    """A fact's values: a set, frozenset or list of tuples holds several, each as good."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, tuple) and value and all(isinstance(v, tuple) for v in value):
        return list(value)
    return [value]


def stands_in(q: Quantity, facts: Mapping[str, object]) -> bool:
    """Whether some fact says `q`: a shape whole or a contiguous part of two or more axes, a dimension of a
    shape, a number, a byte count, a dtype."""
    for value in facts.values():
        for fact in _values(value):
            if q.is_like(fact):
                return True
            if isinstance(fact, tuple) and all(isinstance(d, int) for d in fact):
                if q.kind == "shape" and len(q.value) >= 2 and _within(q.value, fact):
                    return True
                if q.kind == "count" and q.value in fact:
                    return True
            timed = q.kind == "time" and isinstance(fact, (int, float)) and not isinstance(fact, bool)
            if timed and any(abs(q.value - fact * k) <= 0.05 * abs(fact * k) for k in (1.0, 1e-3)):
                return True
    return False


def _within(part: tuple, whole: tuple) -> bool:
    return any(whole[i:i + len(part)] == part for i in range(len(whole) - len(part) + 1))
