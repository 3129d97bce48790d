"""The last cell of a lab: runs the visible checks, says what is missing, and leaves one file to hand in.

The file is a copy of the saved notebook, `handin/<lab>-<learner>.ipynb`, with the learner's name in its
metadata. It is only written when what is saved is what was run: otherwise the cell says what to save or to
run again.
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

from inferlab.lab import notebook_file, setup
from inferlab.lab.checks.check import results
from inferlab.lab.checks.checklist import Report, missing, total
from inferlab.lab.checks.learner import RUN_ALL
from inferlab.lab.identity import normalize

from .handed_in import HANDIN_FOLDER, so_far

WAIT_SECONDS = 20.0


@dataclass
class Handin:
    """What `submit` found.

    Attributes:
        lab: the lab's name.
        learner: what LEARNER says.
        path: the file to hand in; `None` if it could not be left.
        reports: what each check found.
        missing: what stands between this and a complete hand-in, as lines.
        steps: what to do next, as lines.
    """

    lab: str
    learner: str
    path: Path | None = None
    reports: list[Report] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """The report, a line a string."""
        lines = [total(self.lab or "this lab", self.reports)] if self.reports else []
        lines += ["  " + report.headline for report in self.reports]
        if self.missing:
            lines += ["Still missing:"] + [f"  - {text}" for text in self.missing]
        if self.path is not None:
            lines.append(f"HAND IN THIS FILE: {self.path}")
        return lines + self.steps

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
    found = notebook_file.find(shell.user_ns)
    about = (found.notebook or {}).get("metadata", {}).get("inferlab", {})
    lab = setup.current()
    learner = str(shell.user_ns.get("LEARNER", "") or "").strip()
    handin = Handin(lab.name if lab else str(about.get("lab", "")), learner)
    if lab is None and "LEARNER" not in shell.user_ns:
        handin.steps = [f"This kernel has just been started: {RUN_ALL}."]
        return handin
    stale = notebook_file.unsaved(found.notebook, executed) if found.notebook is not None else []
    if stale and wait > 0 and found.path is not None:
        found, stale = _wait_for_save(shell.user_ns, executed, wait, stale)
    handin.reports = _run_checks(shell, found.notebook)
    marks = notebook_file.marks(found.notebook) if found.notebook is not None else []
    handin.missing = missing(learner, handin.reports, [mark["check"] for mark in marks if "check" in mark])
    handin.steps = _obstacle(found, handin, stale)
    if not handin.steps:
        handin.path = _leave(found, handin)
        if found.frontend == "Colab":
            _download(handin.path)
        after = f"Next lab: {about['next']}" if about.get("next") else ""
        handin.steps = [line for line in (so_far(found.path) if found.path else "", after) if line]
    return handin


def _obstacle(found: notebook_file.Found, handin: Handin, stale: list[str]) -> list[str]:
    """Why no file can be left, and what to do about it, as lines; empty if one can."""
    if found.notebook is None:
        file_name = f"{handin.lab or 'your notebook'}.ipynb"
        return [f"No file was made: {found.problem}.",
                f"SAVE THIS NOTEBOOK (Ctrl+S or Cmd+S) AND UPLOAD IT ITSELF: the file {file_name}"]
    if stale:
        names = ", ".join(stale)
        return [f"No file was made: the saved notebook is not what you ran. Not the same: {names}",
                "Run these cells again, save (Ctrl+S or Cmd+S), then run this cell again."]
    if not normalize(handin.learner):
        return ["No file was made: nobody would know whose it is.",
                "Write your name or id into LEARNER near the top, run that cell and the one below it, save, "
                "then run this cell again."]
    return []


def _wait_for_save(namespace: dict[str, Any], executed: list[str], wait: float,
                   stale: list[str]) -> tuple[notebook_file.Found, list[str]]:
    print(f"Save the notebook now (Ctrl+S or Cmd+S): {', '.join(stale)} is not saved as you ran it. "
          f"Waiting up to {wait:.0f} seconds ...", flush=True)
    until = time.monotonic() + wait
    found = notebook_file.find(namespace)
    while stale and time.monotonic() < until:
        time.sleep(0.5)
        found = notebook_file.find(namespace)
        if found.notebook is not None:
            stale = notebook_file.unsaved(found.notebook, executed)
    return found, stale


def _run_checks(shell: Any, notebook: nbformat.NotebookNode | None) -> list[Report]:
    """Run every check cell of the notebook once more; without a notebook, what ran before stands."""
    cells = [cell for cell in (notebook or {"cells": []})["cells"] if cell["cell_type"] == "code"
             and ".score(" in cell["source"] and "Check(" in cell["source"]]
    if not cells:
        return [score.told for score in results().values()]
    from IPython.utils.capture import capture_output

    names = []
    for cell in cells:
        with capture_output():
            shell.run_cell(cell["source"], store_history=False)
        names += re.findall(r"""Check\(\s*["']([^"']+)["']""", cell["source"])
    scores = results()
    return [scores[name].told for name in dict.fromkeys(names) if name in scores]


def _leave(found: notebook_file.Found, handin: Handin) -> Path:
    """Write the file to hand in: the notebook as saved, and who, when and which lab in its metadata."""
    notebook = nbformat.from_dict(found.notebook)
    about = dict(notebook.metadata.get("inferlab", {}))
    about.update(lab=handin.lab or about.get("lab", ""), learner=handin.learner,
                 submitted=datetime.now(UTC).isoformat(timespec="seconds"), frontend=found.frontend,
                 visible=[sum(report.passed for report in handin.reports),
                          sum(len(report.parts) for report in handin.reports)])
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
