"""Turns a sanitized submission and the trusted source notebook into a job: what runs where, in which order.

A job is plain JSON, and its hash names the result: the same code, tests, limits and package are never run twice.
Everything that decides marks comes from the source notebook and the gradebook; from the submission come only the texts
of the learner's cells and who they say they are.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from nbformat import NotebookNode

from .fingerprint import package_fingerprint
from .limits import Limits
from .stubs import EXPLAIN_LINE, clear_explanation

FORMAT = 1  # counts up when a result changes its form


def make_job(submission: NotebookNode, source: NotebookNode, limits: Limits | None = None) -> dict[str, Any]:
    """The job that grades `submission`, which must already hold the trusted tests in its locked cells.

    Args:
        submission: a notebook as nbgrader's `OverwriteCells` leaves it.
        source: the instructor's notebook of the same lab: which names cross, which cells are demonstrations.
        limits: what the submission may use; `Limits()` if None.
    """
    trusted = {cell.id: cell for cell in source.cells if "id" in cell}
    cells, injected = [], False
    for index, cell in enumerate(submission.cells):
        if cell.cell_type != "code":
            continue
        about = trusted.get(cell.get("id", ""), NotebookNode(metadata={}))
        tags = about.metadata.get("tags", [])
        if _is_check(about):
            cells.append({"kind": "check", "index": index, "source": cell.source,
                          "grade_id": about.metadata.nbgrader.grade_id, "points": float(cell.metadata.nbgrader.points)})
        elif not {"demo", "bootstrap"} & set(tags) and cell.source.strip():
            cells.append({"kind": "run", "index": index, "source": cell.source, "doing": f"running cell {index + 1}"})
            if "parameters" in tags:
                cells.append(_parameters(source, index))
                injected = True
    if not injected:
        cells.insert(0, _parameters(source, -1))
    return {
        "format": FORMAT,
        "lab": source.metadata.get("inferlab", {}).get("lab", ""),
        "learner": declared_learner(submission.cells)[:200],
        "cells": cells,
        "provides": sorted({n for c in source.cells for n in c.metadata.get("inferlab", {}).get("provides", [])}),
        "explanations": _explanations(submission, trusted),
        "limits": (limits or Limits()).as_dict(),
    }


def job_key(job: dict[str, Any], mode: str) -> str:
    """A name for the job's result: equal exactly if running it again could give nothing new."""
    text = json.dumps([job, mode, package_fingerprint()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


MOST_READ = 10_000
"""Characters of a cell in which its assignments are looked for."""


def declared_learner(cells: Iterable[Mapping[str, Any]]) -> str:
    """What a notebook's cells say in `LEARNER = "..."`, read from the text and never run; "" if they say nothing.

    Collecting and grading both ask here, so that a notebook is graded as the learner's whom it was collected for.
    """
    for cell in cells:
        source = cell["source"][:MOST_READ]
        if cell["cell_type"] == "code" and "LEARNER" in source:
            value = literals(source).get("LEARNER")
            if isinstance(value, str | int) and str(value).strip():
                return str(value).strip()
    return ""


def literals(source: str) -> dict[str, Any]:
    """Top-level `NAME = literal` assignments of a cell; {} if it cannot be parsed."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            found.update({t.id: statement.value.value for t in statement.targets if isinstance(t, ast.Name)})
    return found


def _is_check(cell: NotebookNode) -> bool:
    meta = cell.metadata.get("nbgrader", {})
    return bool(meta.get("grade")) and not meta.get("solution")


def _parameters(source: NotebookNode, index: int) -> dict[str, Any]:
    """Grading always runs the bundled model on the CPU with the lab's own seed."""
    cell = next((c for c in source.cells if "parameters" in c.metadata.get("tags", [])), None)
    seed = literals(cell.source).get("SEED", 0) if cell is not None else 0
    text = f'MODEL, DEVICE, SEED = "bundled", "cpu", {int(seed)}'
    return {"kind": "run", "index": None, "source": text, "doing": f"setting the parameters after cell {index + 1}"}


def _explanations(submission: NotebookNode, trusted: dict[str, NotebookNode]) -> dict[str, str]:
    """The text below the magic's line of every `%%explain` cell that was changed, by the explanation's name."""
    found = {}
    for cell in submission.cells:
        about = trusted.get(cell.get("id", ""))
        name = about.metadata.get("inferlab", {}).get("explain") if about is not None else None
        if name is None or cell.source.strip() == clear_explanation(about.source).strip():
            continue
        first, _, body = cell.source.lstrip().partition("\n")
        found[name] = body if EXPLAIN_LINE.match(first) else cell.source
    return found
