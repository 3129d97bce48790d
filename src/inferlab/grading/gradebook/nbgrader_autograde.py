"""The way in for stock `nbgrader autograde`, which formgrader calls too; `inferlab grade` does not come here.

`nbgrader_config.py` names both classes. nbgrader reads a notebook through `SubmissionExporter`, and
`SandboxExecute` runs it in the sandbox and records its marks, with the functions that `inferlab grade` uses.
"""

import copy
import os
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Dict

from inferlab.grading.course import Course
from inferlab.grading.running.host import Results, execute
from inferlab.grading.sandbox.limits import Limits
from inferlab.grading.submission.files import read_regular
from inferlab.grading.submission.submission import Submission, placed
from inferlab.grading.submission.submitted_folders import submitted_folders
from inferlab.terminal import clean_name

from .database import Gradebook
from .graded import graded_lab
from .record import graded_notebook, write_marks


class SubmissionExporter(NotebookExporter):
    """Reads notebooks for nbgrader, and keeps the `Submission` for `SandboxExecute`.

    nbgrader converts every notebook twice: first the file in `submitted/`, then what came of that. Both times
    it gets the submission that was read from `submitted/`.
    """

    submission: Submission | None = None
    where: tuple[str, str] | None = None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._tell_what_is_not_graded()

    def _tell_what_is_not_graded(self) -> None:
        """Say what lies in `submitted/` and is not graded, and leave out folders that nbgrader cannot copy.

        nbgrader copies a learner's whole folder. It would wait for ever for a pipe or a device in it.
        """
        converter = self.parent
        lab, only = converter.coursedir.assignment_id, converter.coursedir.student_id
        for one in submitted_folders(Course.open(converter.coursedir.root), lab):
            if only not in ("*", one.learner):
                continue
            for text in [*([one.problem] if one.problem else []), *one.seen]:
                self.log.error("%s: %s", one.learner, text)
        for folder in sorted(converter.assignments):
            odd = [path for path in Path(folder).rglob("*") if not path.is_dir() and not path.is_file()
                   and not path.is_symlink()]
            if odd:
                self.log.error("%s: not graded: %s is a pipe, a device or a socket: move it away", folder,
                               clean_name(odd[0].name))
                del converter.assignments[folder]

    def from_filename(self, filename: str, resources: dict[str, Any], **kwargs: Any) -> tuple[str, dict]:
        """The submission's mended notebook, converted. Raises `UnreadableError` for what is no notebook."""
        learner, name = resources["nbgrader"]["student"], resources["nbgrader"]["assignment"]
        resources["metadata"] = {"name": Path(filename).stem, "path": str(Path(filename).parent)}
        submission = self.submission if self.where == (learner, name) else None
        self.where = (learner, name) if submission is None else None
        if submission is None:
            self.submission = submission = self._read(Path(filename), learner, name)
        return self.from_notebook_node(nbformat.from_dict(copy.deepcopy(submission.notebook)), resources,
                                       **kwargs)

    def _read(self, path: Path, learner: str, name: str) -> Submission:
        coursedir, step = self.parent.coursedir, SandboxExecute(parent=self)
        course = Course.open(coursedir.root)
        lab = graded_lab(course, name, Limits(**step.limits), "sandbox" if step.sandbox else "none")
        noted = placed(course, learner, name)
        submission = Submission.of(read_regular(path), lab, learner, noted)
        for note in submission.notes:
            self.log.warning("%s: %s", learner, note)
        return submission


class SandboxExecute(NbGraderPreprocessor):
    """Runs a learner's cells in the sandbox and the tests in the grader's process, and records the marks.

    A result that `inferlab grade` has already computed is used as it is.
    """

    sandbox = Bool(help="Run learners' code in the sandbox; without it their code runs with your rights."
                   ).tag(config=True)
    limits = Dict(help="Limits that differ from inferlab.grading.sandbox.limits.Limits.").tag(config=True)

    def _sandbox_default(self) -> bool:
        return os.environ.get("INFERLAB_NO_SANDBOX", "") != "1"

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """The notebook with what its cells displayed and what its tests say."""
        submission, where = self.parent.submission, resources["nbgrader"]
        course = Course.open(self.parent.parent.coursedir.root)
        results = Results(course.results)
        result = results.get(submission.key)
        if result is None:
            result = execute(submission.job, submission.lab.mode, str(results.references)) | submission.facts
            results.put(submission.key, result)
        with Gradebook(where["db_url"]) as gradebook:
            notes = write_marks(gradebook, course, submission, result)
        if result["unprotected"]:
            notes.append("graded WITHOUT the sandbox")
        for note in [*notes, *(flag for check in result["checks"].values() for flag in check["flags"])]:
            self.log.warning("%s: %s", where["student"], note)
        return nbformat.from_dict(graded_notebook(submission, result)), resources
