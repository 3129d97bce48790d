"""What we put in place of nbgrader's own steps: mend, run in the sandbox, flag for review, hide tests in feedback."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Dict, Unicode

from .limits import Limits
from .mend import mend
from .plan import make_job
from .results import Results
from .review import reapply
from .sourcebook import handed_in, released_view
from .stubs import FIELD, SOLUTION, region_lines, without_hidden_tests

_FAULT = "This test did not work. Your instructor has been told and will look at it."


class _LabPreprocessor(NbGraderPreprocessor):
    """Knows where the course is and which trusted notebook belongs to the submission."""

    def root(self) -> Path:
        converter = self.parent
        while not hasattr(converter, "coursedir"):
            converter = converter.parent
        self.coursedir = converter.coursedir
        return Path(self.coursedir.root)

    def source(self, resources: dict) -> NotebookNode:
        """The instructor's notebook; its own copy lies in `source/`, which learners never write to."""
        self.root()
        folder = self.coursedir.format_path(self.coursedir.source_directory, ".", resources["nbgrader"]["assignment"])
        return nbformat.read(os.path.join(folder, resources["nbgrader"]["notebook"] + ".ipynb"), as_version=4)


class Mend(_LabPreprocessor):
    """Puts every cell of the lab back in its place before nbgrader looks at the submission's metadata.

    Duplicated, deleted, renamed or forged cells and metadata can then stop neither this submission nor others.
    """

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        mended = mend(handed_in(nb), released_view(self.source(resources)))
        for note in mended.notes:
            self.log.warning("%s: %s", resources["nbgrader"]["student"], note)
        return mended.notebook, resources


class SandboxExecute(_LabPreprocessor):
    """Runs the learner's cells in a sandboxed kernel and the tests in a process of the grader's own.

    A result that `inferlab grade` has already computed is used as it is.
    """

    sandbox = Bool(help="Run learners' code in the sandbox; without it their code runs with your rights.").tag(config=True)
    limits = Dict(help="Limits that differ from inferlab.grading.limits.Limits.").tag(config=True)
    results = Unicode(".grading", help="Where results are kept, relative to the course.").tag(config=True)

    def _sandbox_default(self) -> bool:
        return os.environ.get("INFERLAB_NO_SANDBOX", "") != "1"

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        job = make_job(nb, self.source(resources), Limits(**self.limits))
        mode = "sandbox" if self.sandbox else "none"
        result = Results(self.root() / self.results, mode).compute(job)
        record(nb, job, result)
        resources["inferlab"] = result
        if result["unprotected"]:
            self.log.warning("%s: graded WITHOUT the sandbox", resources["nbgrader"]["student"])
        for check in result["checks"].values():
            for flag in check["flags"]:
                self.log.warning("%s: %s", resources["nbgrader"]["student"], flag)
        return nb, resources


def record(nb: NotebookNode, job: dict[str, Any], result: dict[str, Any]) -> None:
    """Write a result's outputs into the notebook: a test's is one plain float with its report, or an error."""
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    for number, entry in enumerate(job["cells"], start=1):
        if entry["index"] is None:
            continue
        cell = nb.cells[entry["index"]]
        cell.execution_count = number
        if entry["kind"] == "check":
            cell.outputs = _check_outputs(result["checks"].get(entry["grade_id"]), number)
        else:
            cell.outputs = [nbformat.from_dict(o) for o in result["cells"][str(entry["index"])]["outputs"]]
    nb.metadata["inferlab_grading"] = {"unprotected": result["unprotected"], "died": result["died"]}


def _check_outputs(check: dict[str, Any] | None, number: int) -> list[NotebookNode]:
    if check is None or check["score"] is None:
        text = check["error"] if check is not None else "the test was not run"
        return [new_output("error", ename="TestFailed", evalue=_FAULT, traceback=text.splitlines())]
    outputs = [new_output("stream", name="stdout", text=check["printed"])] if check["printed"] else []
    data = {"text/plain": repr(float(check["score"])), "text/html": check["html"]}
    return [*outputs, new_output("execute_result", data=data, execution_count=number)]


class FlagReview(_LabPreprocessor):
    """After the scores are saved: marks what a person must look at, which a test cell cannot do by itself, and lets
    stand what a person has decided on explanations before (`review.py`)."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        where = resources["nbgrader"]
        with Gradebook(where["db_url"]) as gradebook:
            for grade_id, check in resources["inferlab"]["checks"].items():
                if check["review"]:
                    grade = gradebook.find_grade(grade_id, where["notebook"], where["assignment"], where["student"])
                    grade.needs_manual_grade = True
            flagged = [grade_id for grade_id, check in resources["inferlab"]["checks"].items() if check["review"]]
            for grade_id in reapply(gradebook, self.root(), where["assignment"], where["student"], nb, self.source(resources), flagged):
                self.log.info("%s: a person's decision on %s stands", where["student"], grade_id)
            gradebook.db.commit()
        return nb, resources


class HideTests(NbGraderPreprocessor):
    """For feedback: the learner's work, marks and reasons, without hidden tests or what they printed.

    Without what an explanation's own cell displayed, too: that is help for writing, and the checks below it say how it was read.
    """

    def preprocess_cell(self, cell: NotebookNode, resources: dict, index: int) -> tuple[NotebookNode, dict]:
        if cell.cell_type == "code" and "explain" in cell.metadata.get("inferlab", {}):
            cell.outputs = []
        meta = cell.metadata.get("nbgrader", {})
        if meta.get("grade") and not meta.get("solution"):
            cell.source = without_hidden_tests(cell.source)
            cell.outputs = [_harmless(o) for o in cell.get("outputs", []) if o.output_type != "stream"]
        return cell, resources


class ShowModelAnswers(_LabPreprocessor):
    """For feedback: after an explanation's last check, the answer that the lab itself would give, to be said out loud."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        answers = {cell.metadata["inferlab"]["explain"]: cell.source for cell in self.source(resources).cells
                   if cell.metadata.get("inferlab", {}).get("explain")}
        last = {cell.metadata["inferlab"]["of"]: index for index, cell in enumerate(nb.cells)
                if cell.metadata.get("inferlab", {}).get("of") in answers}
        for name, index in sorted(last.items(), key=lambda place: -place[1]):
            nb.cells.insert(index + 1, _model_answer(answers[name]))
        return nb, resources


def _model_answer(source: str) -> NotebookNode:
    """The solution of an explain cell as Markdown, one item a field."""
    items = [FIELD.sub(lambda label: f"* **{label['label']}**:", line, count=1)
             for line in region_lines(source, SOLUTION) if line.strip()]
    text = "**Say it out loud.** One good answer to this question:\n\n" + "\n".join(items)
    return new_markdown_cell(text, metadata={"inferlab": {"model_answer": True}})


def _harmless(output: NotebookNode) -> NotebookNode:
    return new_output("error", ename="TestFailed", evalue=_FAULT, traceback=[_FAULT]) if (
        output.output_type == "error") else output
