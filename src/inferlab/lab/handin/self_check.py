"""`inferlab check`: runs a learner's notebook from the top in a fresh kernel and gathers what its checks say.

It needs what a lab needs and nothing of the instructor's. The notebook on disk is not changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from inferlab.lab.checks.checklist import Part, Report, missing
from inferlab.lab.notebook_file import marks, read_notebook

MARK = "inferlab-results:"
COLLECT = f"""\
import json as _json
from dataclasses import asdict as _asdict
from inferlab.lab.checks.check import results as _results
print({MARK!r} + _json.dumps([_asdict(score.told) for score in _results().values()]))"""


@dataclass
class SelfCheck:
    """What running a notebook gave.

    Attributes:
        lab: the lab's name, as the notebook says.
        learner: what LEARNER says.
        reports: what each check found.
        errors: cells that raised something else than NotImplementedError, as sentences.
        missing: what stands between this and a complete hand-in.
    """

    lab: str
    learner: str
    reports: list[Report] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing


def check_notebook(path: Path, *, timeout: float = 600,
                   progress: Callable[[str], None] = lambda text: None) -> SelfCheck:
    """Run the notebook at `path` in its own folder and gather its checks' results.

    Args:
        path: the notebook.
        timeout: seconds that one cell may take.
        progress: is told which cell begins.

    Raises:
        FileNotFoundError: when there is no file at `path`.
        ValueError: when it is not a notebook.
        RuntimeError: when its kernel died or a cell never ended.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    notebook = read_notebook(path.read_text("utf-8-sig"))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    count = len(notebook.cells)
    notebook.cells.append(nbformat.v4.new_code_cell(COLLECT))
    notebook.cells.append(nbformat.v4.new_code_cell("print(str(globals().get('LEARNER', '') or ''))"))

    def started(cell: Any, cell_index: int, **_: Any) -> None:
        if cell.cell_type == "code" and cell_index < count:
            progress(f"cell {cell_index + 1} of {count}")

    client = NotebookClient(
        notebook, timeout=timeout, allow_errors=True, kernel_name="python3", on_cell_start=started,
        extra_arguments=["--log-level=40"], resources={"metadata": {"path": str(path.parent or ".")}})
    try:
        client.execute()
    except DeadKernelError as error:
        raise RuntimeError("the kernel died while the notebook ran: "
                           "a cell ended the process or used too much memory") from error
    except CellTimeoutError as error:
        raise RuntimeError(f"a cell took longer than {timeout:g} seconds") from error
    lab = str(notebook.metadata.get("inferlab", {}).get("lab", path.stem))
    result = SelfCheck(lab, _printed(notebook.cells[-1]).strip())
    gathered = [line for line in _printed(notebook.cells[-2]).splitlines() if line.startswith(MARK)]
    told = json.loads(gathered[-1].removeprefix(MARK)) if gathered else []
    result.reports = [Report(**one | {"parts": [Part(**part) for part in one["parts"]]}) for one in told]
    for number, cell in enumerate(notebook.cells[:count], start=1):
        for output in cell.get("outputs", []):
            if output.output_type == "error" and output.ename != "NotImplementedError":
                result.errors.append(f"cell {number}: {output.ename}: {output.evalue[:200]}")
    expected = [mark["check"] for mark in marks(notebook) if "check" in mark]
    result.missing = missing(result.learner, result.reports, expected) + result.errors
    return result


def _printed(cell: nbformat.NotebookNode) -> str:
    """What a cell printed."""
    return "".join(output.text for output in cell.outputs
                   if output.output_type == "stream" and output.name == "stdout")
