"""Reads the tables that an instructor writes: the roster, extensions, times, lists of repositories."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from .course import CourseError, read_text


def read_table(path: Path, needed: Sequence[str], also: Sequence[str] = ()) -> Iterator[tuple[str, dict]]:
    """Each line of a CSV: where it is, for a message, and its texts by the column's name in small letters.

    Columns are separated by comma, semicolon or tab, lines end as on any system, empty lines do not count.

    Args:
        needed: the columns that must be there.
        also: the others that are read; no column of either may be there twice.

    Raises:
        CourseError: for a missing or doubled column, and for a line that cannot be read as it was meant: a
            quotation mark without its second would swallow the lines below it.
    """
    text = read_text(path)
    delimiter = max(",;\t", key=text.lstrip().split("\n", 1)[0].count)
    reader = csv.reader(io.StringIO(text, newline=None), delimiter=delimiter, strict=True)
    columns: list[str] = []
    while True:
        where = f"{path.name}, line {reader.line_num + 1}"
        try:
            cells = [cell.strip() for cell in next(reader)]
        except StopIteration:
            break
        except csv.Error as error:
            raise CourseError(f"{where}: {error}; is a quotation mark not closed?") from error
        if not any(cells):
            continue
        if not columns:
            columns = [cell.lower() for cell in cells]
            _known(path, columns, needed, also)
            continue
        if any(cells[len(columns):]):
            raise CourseError(f"{where} has {len(cells)} cells for {len(columns)} columns: a text with "
                              f"'{delimiter}' in it belongs between quotation marks")
        yield where, dict.fromkeys(columns, "") | dict(zip(columns, cells, strict=False))
    if not columns:
        _known(path, columns, needed, also)


def _known(path: Path, columns: Sequence[str], needed: Sequence[str], also: Sequence[str]) -> None:
    missing = [name for name in needed if name not in columns]
    if missing:
        raise CourseError(f"{path.name} has no column '{missing[0]}'; it has "
                          f"{', '.join(columns) or 'nothing'}, and must begin with: "
                          f"{','.join([*needed, *also])}")
    if twice := [name for name in (*needed, *also) if columns.count(name) > 1]:
        raise CourseError(f"{path.name} has two columns '{twice[0]}'")
