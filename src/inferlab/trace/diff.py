"""Compares two traces boundary by boundary: what moved, changed dtype or shape, appeared, vanished, took longer."""

from dataclasses import dataclass, field
from html import escape

from .html import framed
from .view import ArraySpec, ImageSpec, TensorSpec, leaves, short_dtype

KINDS = ("appeared", "vanished", "calls", "device", "dtype", "shape", "value", "error", "slower")
_SLOWER_MS = 1.0  # smaller differences are noise


@dataclass
class Change:
    """One difference. `kind` is one of KINDS; `where` names the argument or output ("inputs.sample"), "" for the
    boundary itself; `before` and `after` are the two values; `steps` are those of the first trace that it holds for
    (None: outside loops)."""

    kind: str
    name: str
    where: str = ""
    before: object = None
    after: object = None
    steps: list = field(default_factory=list)

    def __str__(self):
        steps = _span(self.steps)
        place = f"{self.name}.{self.where}" if self.where else self.name
        if self.kind in ("appeared", "vanished"):
            return f"{self.kind:<8} {place}{steps}"
        return f"{self.kind:<8} {place}: {self.before} → {self.after}{steps}"


class Diff(list):
    """The changes from one trace to another, folded over the steps that they share."""

    def of(self, kind: str) -> list:
        """The changes of one kind: appeared, vanished, calls, device, dtype, shape, value, error or slower."""
        if kind not in KINDS:
            raise ValueError(f"kind is one of {', '.join(KINDS)}, not {kind!r}")
        return [change for change in self if change.kind == kind]

    def names(self, kind: str | None = None) -> list:
        """The boundaries concerned, each once, in order."""
        return list(dict.fromkeys(c.name for c in self if kind is None or c.kind == kind))

    def rows(self) -> list:
        """The changes as plain dicts."""
        return [
            {
                "kind": c.kind,
                "name": c.name,
                "where": c.where,
                "before": c.before,
                "after": c.after,
                "steps": list(c.steps),
            }
            for c in self
        ]

    def __str__(self):
        return "\n".join(map(str, self)) if self else "no differences"

    def _repr_html_(self):
        if not self:
            return framed("no differences")
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td>{escape(str(cell))}</td>"
                for cell in (
                    c.kind,
                    f"{c.name}.{c.where}" if c.where else c.name,
                    "" if c.before is None else c.before,
                    "" if c.after is None else c.after,
                    _span(c.steps).strip(" ()"),
                )
            )
            + "</tr>"
            for c in self
        )
        heads = "".join(
            f"<th style='text-align:left'>{h}</th>"
            for h in ("change", "boundary", "before", "after", "steps")
        )
        return framed(f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>")


def _span(steps) -> str:
    numbers = sorted({s for s in steps if s is not None})
    if not numbers:
        return ""
    if len(numbers) == 1:
        return f" (step {numbers[0]})"
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f" (steps {numbers[0]}–{numbers[-1]})"
    return f" (steps {', '.join(map(str, numbers[:8]))}{', …' if len(numbers) > 8 else ''})"


def compare(one, other, slower: float = 1.5) -> Diff:
    """The differences from `one` to `other`; boundaries are matched by name, step and occurrence within it."""
    ours, theirs = _keyed(one), _keyed(other)
    folded: dict = {}
    order: list = []

    def add(kind, name, where="", before=None, after=None, step=None):
        key = (kind, name, where, str(before), str(after))
        if key not in folded:
            folded[key] = Change(kind, name, where, before, after)
            order.append(key)
        if step is not None:
            folded[key].steps.append(step)

    ours_names, theirs_names = _counts(one), _counts(other)
    for name in dict.fromkeys([*ours_names, *theirs_names]):
        if name not in ours_names:
            add("appeared", name)
        elif name not in theirs_names:
            add("vanished", name)
        elif ours_names[name] != theirs_names[name]:
            add("calls", name, "", ours_names[name], theirs_names[name])
    times: dict = {}
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
    for name, (before, after) in times.items():
        if after > before * slower and after - before > _SLOWER_MS:
            add("slower", name, "", f"{before:.1f} ms", f"{after:.1f} ms")
    return Diff(folded[key] for key in order)


def _counts(trace) -> dict:
    counts: dict = {}
    for boundary in trace.boundaries:
        counts[boundary.name] = counts.get(boundary.name, 0) + 1
    return counts


def _keyed(trace) -> dict:
    keyed: dict = {}
    seen: dict = {}
    for boundary in trace.boundaries:
        place = (boundary.name, boundary.step)
        seen[place] = seen.get(place, 0) + 1
        keyed[(*place, seen[place])] = boundary
    return keyed


def _compare_values(left, right, add) -> None:
    for side in ("inputs", "outputs"):
        a = dict(leaves(getattr(left, side)))
        b = dict(leaves(getattr(right, side)))
        for path in dict.fromkeys([*a, *b]):
            before, after = a.get(path), b.get(path)
            if before == after:
                continue
            where = side + (f".{path}" if path and not path.startswith("[") else path)
            if isinstance(before, TensorSpec) and isinstance(after, TensorSpec):
                if before.device != after.device:
                    add("device", left.name, where, str(before.device), str(after.device), left.step)
                if before.dtype != after.dtype:
                    add(
                        "dtype",
                        left.name,
                        where,
                        short_dtype(before.dtype),
                        short_dtype(after.dtype),
                        left.step,
                    )
                if before.shape != after.shape:
                    add("shape", left.name, where, tuple(before.shape), tuple(after.shape), left.step)
            elif isinstance(before, (ArraySpec, ImageSpec)) and type(before) is type(after):
                add("shape", left.name, where, str(before), str(after), left.step)
            else:
                add("value", left.name, where, _short(before), _short(after), left.step)
    move, other = left.moved, right.moved
    if move and other and (move["from"], move["to"]) != (other["from"], other["to"]):
        add(
            "device",
            left.name,
            "weights",
            f"{move['from']} → {move['to']}",
            f"{other['from']} → {other['to']}",
            left.step,
        )


def _short(value):
    return value if isinstance(value, (bool, int, float, type(None))) else str(value)[:80]
