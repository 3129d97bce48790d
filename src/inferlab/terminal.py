"""Texts for a terminal, whoever wrote them."""

import io
from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows below their headings, each column as wide as its longest text; numbers stand on the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [list(row) for row in rows]
    grid = Table(box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        numbers = rows and all(isinstance(row[place], int | float) for row in rows)
        grid.add_column(heading, justify="right" if numbers else "left")
    for row in rows:
        grid.add_row(*(Text(f"{value:g}" if isinstance(value, float) else str(value)) for value in row))
    shown = io.StringIO()
    Console(file=shown, width=10_000, color_system=None).print(grid)
    return "\n".join(line.rstrip() for line in shown.getvalue().splitlines())


def printable(text: str, keep: str = "") -> str:
    """A text that can neither move a terminal's cursor nor turn its reading direction round.

    Args:
        keep: characters that may stay although they cannot be printed, such as line breaks.
    """
    shown = (char if char.isprintable() or char in keep else "\N{REPLACEMENT CHARACTER}" for char in text)
    return "".join(shown)


def clean_name(label: str) -> str:
    """A name as text for a terminal: no control characters, no line breaks, at most 200 characters."""
    label = label.encode("utf-8", "surrogateescape" if _from_disk(label)
                         else "replace").decode("utf-8", "replace")
    clean = printable(label)
    return clean if len(clean) <= 200 else clean[:120] + "..." + clean[-77:]


def _from_disk(label: str) -> bool:
    """Whether each surrogate in a name stands for a byte of a file name that is not UTF-8."""
    return all("\udc80" <= char <= "\udcff" for char in label if "\ud800" <= char <= "\udfff")
