"""The last cell of a lab: runs the visible checks, says what is missing, and leaves one file to hand in.

The file is a copy of the saved notebook, `handin/<lab>-<learner>.ipynb`, with the learner's name in its metadata. It is
only written when what is saved is what was run: otherwise the cell says what to save or to run again.
"""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import nbformat

from . import notebookfile
from .check import Score, results
from .identity import normalize
from .report import headline, missing, total

HANDIN_FOLDER = "handin"
WAIT_SECONDS = 20.0


@dataclass
class Handin:
    """What `submit` found: the file to hand in (`None` if it could not be left), points so far, and what is missing."""

    lab: str
    learner: str
    path: Path | None
    scores: dict[str, Score] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """The report, a line a string."""
        told = [score for score in self.scores.values() if not score.check.form_only]
        later = sum(score.check.points for score in self.scores.values() if score.check.form_only)
        lines = [total(self.lab or "this lab", sum(map(float, told)), sum(score.check.points for score in told), later)]
        lines += ["  " + headline(name, float(score), score.check.points, score.check.form_only) for name, score in self.scores.items()]
        if self.missing:
            lines += ["Still missing:"] + [f"  - {text}" for text in self.missing]
        lines += self.steps
        if self.path is not None:
            lines.append(f"HAND IN THIS FILE: {self.path}")
        return lines

    def __repr__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        body = "\n".join(escape(line) for line in self.lines)
        return f'<pre class="inferlab-handin" style="white-space:pre-wrap">{body}</pre>'


def submit(wait: float = WAIT_SECONDS) -> Handin:
    """Run the visible checks, say what is missing, and leave the file to hand in.

    Args:
        wait: seconds to wait for the notebook to be saved when what is saved is not what was run.

    Returns:
        A `Handin` whose text is the report. Nothing is raised for work that is not finished.

    Raises:
        RuntimeError: outside a notebook.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        raise RuntimeError("submit() is the last cell of a lab: run it in the notebook")
    executed = [text for text in shell.history_manager.input_hist_raw if text.strip()]
    found = notebookfile.find(shell.user_ns)
    stale = notebookfile.unsaved(found.notebook, executed) if found.notebook is not None else []
    if stale and wait > 0 and found.path is not None:
        found, stale = _wait_for_save(shell.user_ns, executed, wait, stale)
    from . import setup

    lab = setup.current()
    name = lab.name if lab else str((found.notebook or {}).get("metadata", {}).get("inferlab", {}).get("lab", ""))
    learner = str(shell.user_ns.get("LEARNER", "") or "").strip()
    handin = Handin(name, learner, None)
    handin.scores = _run_checks(shell, found.notebook)
    handin.missing = _missing(handin, found.notebook)
    if found.notebook is None:
        file_name = f"{name or 'your notebook'}.ipynb"
        handin.steps = [f"No file was made: {found.problem}.",
                        f"SAVE THIS NOTEBOOK (Ctrl+S or Cmd+S) AND UPLOAD IT ITSELF: the file {file_name}"]
    elif stale:
        handin.steps = ["No file was made: the saved notebook is not what you ran. Not the same: " + ", ".join(stale),
                        "Run these cells again, save (Ctrl+S or Cmd+S), then run this cell again."]
    elif not normalize(learner):
        handin.steps = ["No file was made: nobody would know whose it is.",
                        ("Write your name or id into LEARNER near the top, run that cell and the one below it, save, "
                         "then run this cell again.")]
    else:
        handin.path = _leave(found, handin)
        if found.frontend == "Colab":
            _download(handin.path)
    return handin


def _wait_for_save(namespace: dict[str, Any], executed: list[str], wait: float, stale: list[str]):
    print(f"Save the notebook now (Ctrl+S or Cmd+S): {', '.join(stale)} is not saved as you ran it. "
          f"Waiting up to {wait:.0f} seconds ...", flush=True)
    until = time.monotonic() + wait
    found = notebookfile.find(namespace)
    while stale and time.monotonic() < until:
        time.sleep(0.5)
        found = notebookfile.find(namespace)
        if found.notebook is not None:
            stale = notebookfile.unsaved(found.notebook, executed)
    return found, stale


def _run_checks(shell: Any, notebook: nbformat.NotebookNode | None) -> dict[str, Score]:
    """Run every check cell of the notebook once more; without a notebook, what ran before stands."""
    cells = [cell for cell in (notebook or {"cells": []})["cells"] if cell["cell_type"] == "code"
             and "score()" in cell["source"] and "Check(" in cell["source"]]
    if not cells:
        return results()
    from IPython.utils.capture import capture_output

    names = []
    for cell in cells:
        with capture_output():
            shell.run_cell(cell["source"], store_history=False)
        names += re.findall(r"""Check\(\s*["']([^"']+)["']""", cell["source"])
    scores = results()
    return {name: scores[name] for name in dict.fromkeys(names) if name in scores}


def _missing(handin: Handin, notebook: nbformat.NotebookNode | None) -> list[str]:
    parts = {name: [(part.name, part.state, part.message) for part in score.check.parts] for name, score in handin.scores.items()}
    marks = notebookfile.marks(notebook) if notebook is not None else []
    return missing(handin.learner, parts, [mark["check"] for mark in marks if "check" in mark])


def _leave(found: notebookfile.Found, handin: Handin) -> Path:
    """Write the file to hand in: the notebook as saved, and who, when and which lab in its metadata."""
    notebook = nbformat.from_dict(found.notebook)
    about = dict(notebook.metadata.get("inferlab", {}))
    about.update(lab=handin.lab or about.get("lab", ""), learner=handin.learner,
                 submitted=datetime.now(UTC).isoformat(timespec="seconds"), frontend=found.frontend)
    notebook.metadata["inferlab"] = about
    folder = (found.path.parent if found.path else Path.cwd()) / HANDIN_FOLDER
    folder.mkdir(exist_ok=True)
    safe = re.sub(r"[^\w.-]+", "-", normalize(handin.learner)).strip("-.") or "learner"
    path = folder / f"{handin.lab or 'lab'}-{safe[:60]}.ipynb"
    temporary = path.with_suffix(".part")
    temporary.write_text(nbformat.writes(notebook), "utf-8")
    temporary.replace(path)
    return path


def _download(path: Path) -> None:
    from google.colab import files

    files.download(str(path))
