"""Compares two traces: which boundaries moved, changed dtype or shape, appeared, vanished, took longer."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from .boundary import Boundary
from .specs import ArraySpec, Described, ImageSpec, TensorSpec, leaves, short_dtype

KINDS = ("appeared", "vanished", "calls", "device", "dtype", "shape", "value", "error", "slower")
_SLOWER_MS = 1.0  # smaller differences are noise


@dataclass
class Change:
    """One difference between two traces.

    kind           one of KINDS
    name, where    the boundary, and its argument or output ("inputs.sample"); "" for the boundary itself
    before, after  the two values
    steps          the steps of the first trace that it holds for; empty outside loops
    """

    kind: str
    name: str
    where: str = ""
    before: object = None
    after: object = None
    steps: list[int] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The boundary's name, with what of it differs."""
        return f"{self.name}.{self.where}" if self.where else self.name

    @property
    def span(self) -> str:
        """The steps in words, as "step 3", "steps 1–5", "steps 1, 4", or ""."""
        numbers = sorted(set(self.steps))
        if not numbers:
            return ""
        if len(numbers) == 1:
            return f"step {numbers[0]}"
        if numbers == list(range(numbers[0], numbers[-1] + 1)):
            return f"steps {numbers[0]}–{numbers[-1]}"
        return f"steps {', '.join(map(str, numbers[:8]))}{', …' if len(numbers) > 8 else ''}"

    def __str__(self) -> str:
        steps = f" ({self.span})" if self.span else ""
        if self.kind in ("appeared", "vanished"):
            return f"{self.kind:<8} {self.place}{steps}"
        return f"{self.kind:<8} {self.place}: {self.before} → {self.after}{steps}"


def compare(one: list[Boundary], other: list[Boundary], slower: float = 1.5) -> list[Change]:
    """The differences from `one` trace's boundaries to another's, folded over the steps that share them.

    Boundaries are matched by name, step and occurrence within the step. Times count where they grew by more
    than the factor `slower`.
    """
    ours, theirs = _keyed(one), _keyed(other)
    folded: dict[tuple, Change] = {}

    def add(
        kind: str,
        name: str,
        where: str = "",
        before: object = None,
        after: object = None,
        step: int | None = None,
    ) -> None:
        change = folded.setdefault(
            (kind, name, where, str(before), str(after)), Change(kind, name, where, before, after)
        )
        if step is not None:
            change.steps.append(step)

    our_counts, their_counts = Counter(b.name for b in one), Counter(b.name for b in other)
    for name in dict.fromkeys([*our_counts, *their_counts]):
        if name not in our_counts:
            add("appeared", name)
        elif name not in their_counts:
            add("vanished", name)
        elif our_counts[name] != their_counts[name]:
            add("calls", name, "", our_counts[name], their_counts[name])
    times: dict[str, list[float]] = {}
    for key, left in ours.items():
        right = theirs.get(key)
        if right is None:
            continue
        if left.error != right.error:
            add("error", left.name, "", left.error, right.error, left.step)
        _compare_values(left, right, add)
        both = times.setdefault(left.name, [0.0, 0.0])
        both[0] += left.ms or 0.0
        both[1] += right.ms or 0.0
    for name, (ms, ms_now) in times.items():
        if ms_now > ms * slower and ms_now - ms > _SLOWER_MS:
            add("slower", name, "", f"{ms:.1f} ms", f"{ms_now:.1f} ms")
    return list(folded.values())


def _keyed(boundaries: list[Boundary]) -> dict[tuple, Boundary]:
    keyed = {}
    seen: Counter = Counter()
    for boundary in boundaries:
        place = (boundary.name, boundary.step)
        seen[place] += 1
        keyed[(*place, seen[place])] = boundary
    return keyed


def _compare_values(left: Boundary, right: Boundary, add: Callable) -> None:
    for side in ("inputs", "outputs"):
        ours, theirs = dict(leaves(getattr(left, side))), dict(leaves(getattr(right, side)))
        for path in dict.fromkeys([*ours, *theirs]):
            before, after = ours.get(path), theirs.get(path)
            if before != after:
                where = side + (f".{path}" if path and not path.startswith("[") else path)
                for kind, value, now in _differences(before, after):
                    add(kind, left.name, where, value, now, left.step)
    move, other = left.moved, right.moved
    if move and other and (move["from"], move["to"]) != (other["from"], other["to"]):
        ways = (f"{m['from']} → {m['to']}" for m in (move, other))
        add("device", left.name, "weights", *ways, left.step)


def _differences(before: Described, after: Described) -> list[tuple]:
    """(kind, before, after) of what differs between two described values."""
    if isinstance(before, TensorSpec) and isinstance(after, TensorSpec):
        pairs = [
            ("device", str(before.device), str(after.device)),
            ("dtype", short_dtype(before.dtype), short_dtype(after.dtype)),
            ("shape", tuple(before.shape), tuple(after.shape)),
        ]
        return [pair for pair in pairs if pair[1] != pair[2]]
    if isinstance(before, (ArraySpec, ImageSpec)) and type(before) is type(after):
        return [("shape", str(before), str(after))]
    return [("value", _short(before), _short(after))]


def _short(value: Described) -> object:
    return value if isinstance(value, (bool, int, float, type(None))) else str(value)[:80]
