"""A Sphinx extension: tables of names and meanings in docstrings, which Sphinx's markup does not know,
become lists."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

from sphinx.application import Sphinx

from .templates import code

GLUED = re.compile(r"(?<!`)(`[^`]+`)(?=\w)")
"""A name in backticks with a letter behind it, such as a plural's."""
ROW = re.compile(r"^(?:\S+ ){0,3}\S+ {2,}\S")


def as_list(table: list[str]) -> str:
    """The HTML of such a table. A line without a name goes on with the row above it."""
    rows: list[list[str]] = []
    for line in table:
        name, *meaning = re.split(r" {2,}", line.strip(), maxsplit=1)
        if meaning and not line.startswith(" "):
            rows.append([name, *meaning])
        elif rows:
            rows[-1][1] += f" {line.strip()}"
    html = "".join(f"<dt>{code(name)}</dt><dd>{code(meaning)}</dd>" for name, meaning in rows)
    return f'<dl class="fields">{html}</dl>'


def kept(lines: list[str]) -> list[str]:
    """The lines of a docstring with each paragraph that is such a table as a list."""
    found: list[str] = []
    for empty, group in groupby(lines, key=lambda line: not line.strip()):
        paragraph = list(group)
        if not empty and sum(bool(ROW.match(line)) for line in paragraph) > 1:
            found += [".. raw:: html", "", f"    {as_list(paragraph)}"]
        else:
            found += [GLUED.sub(r"\1\\ ", line) for line in paragraph]
    return found


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = kept(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this. Before napoleon, which reads `Args:` and the like, at priority 500."""
    app.connect("autodoc-process-docstring", _process, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
