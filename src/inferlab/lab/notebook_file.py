"""Finds the notebook that a kernel belongs to, and tells whether what is saved is what was run.

A kernel does not hold its own notebook. JupyterLab says where it is saved (`JPY_SESSION_NAME`), VS Code
leaves its path in the namespace (`__vsc_ipynb_file__`), Colab sends the notebook itself when asked, saved or
not.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import nbformat

COLAB_SECONDS = 30


@dataclass(frozen=True)
class Found:
    """A notebook as its front end has it.

    Attributes:
        frontend: "JupyterLab", "VS Code", "Colab", or "" where none of their ways works.
        path: where it is saved; `None` in Colab, whose notebooks lie in a drive, and where it was not found.
        notebook: its content, or `None` where it was not found or cannot be read.
        problem: why there is no content, as a sentence; empty when there is.
    """

    frontend: str
    path: Path | None
    notebook: nbformat.NotebookNode | None
    problem: str = ""


def find(namespace: dict[str, Any]) -> Found:
    """The notebook that the running kernel belongs to; `namespace` holds the notebook's own variables."""
    if "google.colab" in sys.modules:
        return _from_colab()
    if namespace.get("__vsc_ipynb_file__"):
        return _from_file("VS Code", Path(str(namespace["__vsc_ipynb_file__"])))
    if os.environ.get("JPY_SESSION_NAME"):
        return _from_file("JupyterLab", Path(os.environ["JPY_SESSION_NAME"]))
    return Found("", None, None, "this program does not tell a kernel where its notebook is saved")


def _from_colab() -> Found:
    from google.colab import _message

    answer = _message.blocking_request("get_ipynb", request="", timeout_sec=COLAB_SECONDS)
    if not answer or "ipynb" not in answer:
        return Found("Colab", None, None, f"Colab did not send the notebook within {COLAB_SECONDS} seconds")
    return Found("Colab", None, read_notebook(json.dumps(answer["ipynb"])))


def _from_file(frontend: str, path: Path) -> Found:
    if not path.is_absolute():
        path = Path.cwd() / path
    if not path.is_file():
        return Found(frontend, None, None, f"{path.name} is no longer where it was when this kernel started")
    try:
        return Found(frontend, path, read_notebook(path.read_text("utf-8")))
    except (OSError, ValueError) as error:
        return Found(frontend, path, None, f"{path.name} cannot be read: {error}")


def read_notebook(text: str) -> nbformat.NotebookNode:
    """A notebook of any format as format 4, without `inferlab` metadata that is no table.

    Raises:
        ValueError: if the text is not a notebook.
    """
    import nbformat  # takes seconds, and who only looks for anchors does without it

    try:
        notebook = nbformat.reads(text, as_version=4)
        for holder in (notebook, *notebook.cells):
            if not isinstance(holder.metadata.get("inferlab", {}), dict):
                del holder.metadata["inferlab"]
        return notebook
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, AttributeError, KeyError,
            TypeError) as error:
        raise ValueError(f"not a notebook ({type(error).__name__})") from error


def anchors(source: str) -> set[str]:
    """What names a cell, whatever its id is: `%%explain NAME`, functions that it defines, and `LEARNER`."""
    first = source.lstrip().split("\n", 1)[0].split()
    if first[:1] == ["%%explain"] and len(first) > 1:
        return {f"%%explain {first[1]}"}
    body = _parsed(source).body
    kinds = ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef
    found = {node.name for node in body if isinstance(node, kinds)}
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    learner = any(isinstance(target, ast.Name) and target.id == "LEARNER" for target in targets)
    return found | ({"LEARNER"} if learner else set())


def _parsed(source: str) -> ast.Module:
    """A cell's code; an empty module for what is not plain Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def marks(notebook: nbformat.NotebookNode) -> list[dict[str, Any]]:
    """What the lab says about its cells (`metadata.inferlab`), for those that it says something about."""
    return [cell.metadata.inferlab for cell in notebook.cells if cell.metadata.get("inferlab")]


def unsaved(notebook: nbformat.NotebookNode, executed: list[str]) -> list[str]:
    """Names of what the notebook has in another form than it was last run: not saved, or edited and not run.

    A name that the notebook no longer has (a scratch function, one renamed since) counts only where the lab
    asks for it or a saved cell still needs it. `executed` is every input of the session in order, as typed.
    """
    last: dict[str, str] = {}
    for source in executed:
        for anchor in anchors(source):
            last[anchor] = _plain(source)
    saved: dict[str, list[str]] = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for anchor in anchors(cell.source):
                saved.setdefault(anchor, []).append(_plain(cell.source))
    wanted = saved.keys() | _asked(notebook) | _needed(notebook)
    return [anchor for anchor, source in last.items()
            if anchor in wanted and source not in saved.get(anchor, [])]


def _asked(notebook: nbformat.NotebookNode) -> set[str]:
    """The anchors of what the lab asks for."""
    asked = {"LEARNER"}
    for mark in marks(notebook):
        asked |= set(mark.get("provides", []))
        if "explain" in mark:
            asked.add(f"%%explain {mark['explain']}")
    return asked


def _needed(notebook: nbformat.NotebookNode) -> set[str]:
    """Names that the notebook's code uses and nothing in it makes."""
    used: set[str] = set()
    made: set[str] = set()
    for cell in notebook.cells:
        for node in ast.walk(_parsed(cell.source)) if cell.cell_type == "code" else ():
            if isinstance(node, ast.Name):
                (used if isinstance(node.ctx, ast.Load) else made).add(node.id)
            elif isinstance(node, ast.arg):
                made.add(node.arg)
            elif isinstance(node, ast.alias):
                made.add((node.asname or node.name).partition(".")[0])
    return used - made


def _plain(source: str) -> str:
    return "\n".join(line.rstrip() for line in source.strip().splitlines())
