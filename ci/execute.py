"""Runs one notebook through papermill and reads how it ended, for ci/notebooks.py and ci/gpu/notebooks.py.

Nothing here needs nbgrader: a machine with a GPU that has only papermill can execute the labs.
"""

import json
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.exceptions import PapermillExecutionError

SENTINEL = "inferlab-ci-end"
END_CELL = f"""\
import json as _json, sys as _sys
from inferlab.lab.checks.check import results as _results
_cuda = getattr(_sys.modules.get("torch"), "cuda", None)
_held = _cuda.memory_reserved() if _cuda is not None and _cuda.is_initialized() else 0
_scores = _results().items()
print({SENTINEL!r} + _json.dumps({{
    "checks": {{name: [float(s), s.check.points] for name, s in _scores}}, "held": _held,
    "lost": {{name: [[p.name, p.message] for p in s.check.parts if p.fraction < 1] for name, s in _scores}},
}}))"""
CELL_SECONDS = 300


@dataclass
class Run:
    """One execution of one version of a lab."""

    seconds: float = 0.0
    error: str | None = None
    points: float = 0.0
    maximum: float = 0.0
    checks: dict[str, list[float]] = field(default_factory=dict)
    # by check: name and message of each part that did not pass
    lost: dict[str, list[list[str]]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    held_bytes: int = 0  # of the GPU's memory, by the kernel's allocator at the end; 0 where no GPU was used
    printed: list[str] = field(default_factory=list)  # by the cells tagged "gpu", in order

    def as_dict(self) -> dict[str, Any]:
        """The run as JSON data."""
        return {"seconds": round(self.seconds, 2), "error": self.error, "points": self.points,
                "maximum": self.maximum,
                "checks": self.checks,
                "problems": self.problems} | ({"held_bytes": self.held_bytes, "printed": self.printed}
                                              if self.held_bytes else {})


def execute(notebook: nbformat.NotebookNode, *, allow_errors: bool, learner: str = "",
            parameters: dict[str, Any] | None = None) -> tuple[nbformat.NotebookNode, Run]:
    """Run a notebook through papermill in an empty folder; returns it with its outputs, and how the run
    ended.

    `parameters` are for the cell of that tag, such as {"DEVICE": "cuda"}; `learner` goes there as LEARNER.
    """
    maximum = sum(float(cell.metadata.nbgrader.points) for cell in notebook.cells
                  if cell.metadata.get("nbgrader", {}).get("grade"))
    run = Run(maximum=maximum)
    notebook = nbformat.from_dict(notebook)
    notebook.cells.append(nbformat.v4.new_code_cell(END_CELL, id="inferlab-ci-end"))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="inferlab-ci-") as folder:
        given, out = Path(folder) / "given.ipynb", Path(folder) / "out.ipynb"
        nbformat.write(notebook, given)
        try:
            papermill.execute_notebook(
                given, out, parameters=({"LEARNER": learner} if learner else {}) | (parameters or {}),
                kernel_name="python3", cwd=folder,
                progress_bar=False, execution_timeout=CELL_SECONDS, allow_errors=allow_errors,
                # written once, at the end: not twice a cell, which is seconds of the runner's own
                request_save_on_cell_execute=False,
                extra_arguments=["--log-level=40"])
        except PapermillExecutionError as error:
            run.error = f"{error.ename}: {error.evalue}"[:500]
        except (DeadKernelError, CellTimeoutError) as error:
            run.error = f"{type(error).__name__}: {str(error)[:300]}"
        done = nbformat.read(out, as_version=4) if out.exists() else notebook
    run.seconds = time.monotonic() - began
    done.cells = [cell for cell in done.cells if "papermill-error-cell-tag" not in cell.metadata.get("tags",
                                                                                                     [])]
    _read_results(done, run)
    return done, run


def _read_results(done: nbformat.NotebookNode, run: Run) -> None:
    last = done.cells.pop()
    printed = "".join(o.text for o in last.get("outputs", []) if o.output_type == "stream"
                      and o.name == "stdout")
    if SENTINEL not in printed:
        run.problems.append("ended early: the notebook's last cell never ran")
    else:
        told = json.loads(printed.split(SENTINEL, 1)[1])
        run.checks, run.lost, run.held_bytes = told["checks"], told["lost"], told["held"]
        run.points = round(sum(points for points, _ in run.checks.values()), 6)
    for cell in done.cells:
        if cell.cell_type == "code" and cell.source.strip() and cell.execution_count is None:
            run.problems.append(f"{cell.id}: never ran")
        if "gpu" in cell.metadata.get("tags", []):
            run.printed.append("".join(o.text for o in cell.get("outputs", []) if o.output_type == "stream"
                                       and o.name == "stdout"))
        for output in cell.get("outputs", []):
            if output.output_type == "error" and output.ename == "SystemExit":
                run.problems.append(f"{cell.id}: ends the run ({output.ename})")
            if output.output_type == "stream" and output.name == "stderr":
                run.problems.append(f"{cell.id}: writes to stderr: {output.text[:200]}")


def run_source(notebook: nbformat.NotebookNode, parameters: dict[str, Any] | None = None) -> Run:
    """The instructor's version: no error, full marks."""
    done, run = execute(notebook, allow_errors=False, learner="ci", parameters=parameters)
    if run.error:
        run.problems.append(f"raised {run.error}")
    wanted = {cell.metadata.inferlab.check: float(cell.metadata.nbgrader.points) for cell in done.cells
              if cell.metadata.get("nbgrader", {}).get("grade")}
    for name, points in wanted.items():
        got = run.checks.get(name)
        if got is None:
            run.problems.append(f"{name}: no score")
        elif got != [points, points]:
            run.problems.append(f"{name}: the solution gets {got[0]:g} of "
                                f"{points:g}{because(run.lost[name])}")
    return run


def because(lost: list[list[str]]) -> str:
    """The parts that did not pass, for the end of a problem's line: ` (adds up: got 5, expected 6)`."""
    return f" ({'; '.join(': '.join(filter(None, part)) for part in lost)})" if lost else ""
