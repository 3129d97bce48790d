"""A trace's table as an object: text when it is printed, HTML where a notebook shows it."""

from inferlab.trace.reading.boundary import Boundary

from . import html
from .lines import lines_of
from .text import text_table


class Table:
    """A trace's table. `print(table)` gives text; a notebook shows the HTML.

    heading   what stands above it
    notes     what stands below it
    device    the device that all tensors share, said once in the heading; "" where there are several
    unfold, level, width   as in `Trace.table`
    """

    def __init__(
        self,
        boundaries: list[Boundary],
        heading: str,
        notes: list[str],
        device: str,
        unfold: bool = False,
        level: int | None = None,
        width: int | None = None,
    ) -> None:
        self.heading, self.notes, self.device, self.width = heading, notes, device, width
        self.lines = lines_of(boundaries, unfold, level)

    def __str__(self) -> str:
        return text_table(self.heading, self.notes, self.device, self.lines, self.width)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html.html_table(self.heading, self.notes, self.device, self.lines)
