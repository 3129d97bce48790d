"""A notebook as plain data, as JSON has it: read from a trusted file, written, asked for its metadata."""

import ast
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Cell = dict[str, Any]
Notebook = dict[str, Any]
MAGIC = re.compile(r"^([ \t]*)[%!].*$", re.MULTILINE)
MOST_READ = 10_000
"""Characters of a cell in which its assignments are looked for."""


@dataclass
class RawNotebook:
    """A handed-in notebook; its `cells` are dicts (`cell_type`, `source`, `id`, `metadata`, ...).

    `notes` say what was odd about reading it.
    """

    metadata: dict[str, Any]
    cells: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)

    @property
    def said(self) -> dict[str, str]:
        """The texts that the lab and its hand-in cell wrote into the notebook's metadata, by name."""
        about = self.metadata.get("inferlab")
        return {key: text for key, text in about.items() if isinstance(text, str)} if isinstance(
            about, dict) else {}


def load(path: Path) -> Notebook:
    """A notebook of format 4 that the course itself has made; every cell's source is one text.

    What learners hand in is read by `submission.submission.read`, which trusts nothing.
    """
    return parsed(path.read_text("utf-8"))


def parsed(text: str) -> Notebook:
    """The notebook that the course itself has written as this text."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook


def dumps(notebook: Notebook) -> str:
    """A notebook's text: sorted keys, a source's lines apart, no indentation, a newline at the end."""
    cells = [cell | {"source": cell["source"].splitlines(keepends=True)} for cell in notebook["cells"]]
    return json.dumps(notebook | {"cells": cells}, indent=0, sort_keys=True, ensure_ascii=False) + "\n"


def write_notebook(notebook: Notebook, path: Path) -> None:
    """Write a notebook; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dumps(notebook), "utf-8")


def about(cell: Cell) -> dict[str, Any]:
    """A cell's `inferlab` metadata; empty where it has none."""
    return cell["metadata"].get("inferlab", {})


def tags(cell: Cell) -> list[str]:
    """A cell's tags."""
    return cell["metadata"].get("tags", [])


def grade_id(cell: Cell) -> str:
    """The name that nbgrader's metadata gives a cell, or an empty string."""
    nbgrader = cell["metadata"].get("nbgrader")
    value = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    return value if isinstance(value, str) else ""


def is_check(cell: Cell) -> bool:
    """Whether a cell of the lab is a test whose score counts."""
    nbgrader = cell["metadata"].get("nbgrader", {})
    return bool(nbgrader.get("grade")) and not nbgrader.get("solution")


def declared_learner(cells: Iterable[Cell]) -> str:
    """What a notebook's cells say in `LEARNER = "..."`, read and never run; "" if they do not say it.

    Collecting and grading both ask here, so that a notebook is graded as the learner's whom it was collected
    for. Where the text does not say it, grading takes what `LEARNER` was in the run.
    """
    for cell in cells:
        source = cell["source"][:MOST_READ]
        if cell["cell_type"] == "code" and "LEARNER" in source:
            value = literals(source).get("LEARNER")
            if isinstance(value, str | int) and str(value).strip():
                return str(value).strip()
    return ""


def literals(source: str) -> dict[str, Any]:
    """Top-level `NAME = literal` assignments of a cell without its magics; {} if it cannot be parsed."""
    try:
        tree = ast.parse(MAGIC.sub(r"\1pass", source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, Any] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            if isinstance(statement.value, ast.Constant):
                found |= dict.fromkeys(names, statement.value.value)
            else:  # its value is known only when it runs
                found = {name: value for name, value in found.items() if name not in names}
    return found
