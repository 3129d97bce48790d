"""The differences between two traces as a list that prints itself and that a notebook shows as a table."""

from html import escape

from inferlab.trace.reading.compare_traces import KINDS, Change

from .html import framed


class Diff(list[Change]):
    """The changes from one trace to another, folded over the steps that they share."""

    def of(self, kind: str) -> list[Change]:
        """The changes of one kind: appeared, vanished, calls, device, dtype, shape, value, error or slower.

        Raises ValueError for any other kind.
        """
        if kind not in KINDS:
            raise ValueError(f"kind is one of {', '.join(KINDS)}, not {kind!r}")
        return [change for change in self if change.kind == kind]

    def names(self, kind: str | None = None) -> list[str]:
        """The boundaries concerned, each once, in order."""
        return list(dict.fromkeys(c.name for c in self if kind is None or c.kind == kind))

    def rows(self) -> list[dict]:
        """The changes as plain dicts."""
        keys = ("kind", "name", "where", "before", "after")
        return [{key: getattr(c, key) for key in keys} | {"steps": list(c.steps)} for c in self]

    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "no differences"

    def _repr_html_(self) -> str:
        if not self:
            return framed("no differences")
        heads = "".join(
            f'<th scope="col">{h}</th>' for h in ("boundary", "change", "before", "after", "steps")
        )
        rows = ""
        for change in self:
            cells = (change.kind, change.before, change.after, change.span.partition(" ")[2])
            shown = "".join(f"<td>{'' if cell is None else escape(str(cell))}</td>" for cell in cells)
            rows += f'<tr><th scope="row">{escape(change.place)}</th>{shown}</tr>'
        caption = f"<caption>{len(self)} difference{'s' if len(self) > 1 else ''}</caption>"
        return framed(f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>")
