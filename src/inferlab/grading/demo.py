"""`inferlab demo`: the whole path on the bundled model, from a traced picture to three graded submissions.

Works in a folder of its own (`demo/`), laid out as a course, and touches nothing else. It is right only if
the full solution gets every point, the partly wrong one exactly the points its named wrong answers keep, and
the blank none.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from inferlab.grading.authoring.build import build_lab
from inferlab.grading.authoring.hidden_tests import read_lesson
from inferlab.grading.authoring.wrong_answers import WrongAnswer, read_wrong_answers, solution_text
from inferlab.grading.collecting.collect import collect
from inferlab.grading.gradebook.batch import BatchRow, grade_lab
from inferlab.grading.notebook import write_notebook
from inferlab.grading.reporting.feedback_page import write_feedback
from inferlab.grading.reporting.grades import Grade, grades
from inferlab.grading.sandbox.sandbox import NoSandbox

from .course import Course, CourseError
from .roster import Roster

LAB = "lab02-denoising-step"
PROMPT = "a red circle left of a blue square"
STEPS = 10
MARKER = ".inferlab-demo"
ROSTER = "id,name,aliases,email\nada,Ada Lovelace,,\ngrace,Grace Hopper,,\nblank,Nobody Yet,,\n"


@dataclass
class Demo:
    """What the demonstration made: paths, grades, what the grades should be, and how long each step took."""

    folder: Path
    lab: str
    paths: dict[str, str] = field(default_factory=dict)
    grades: list[Grade] = field(default_factory=list)
    expected: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    table: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def right(self) -> bool:
        """Whether every grade is what it should be."""
        got = {grade.learner: grade.total for grade in self.grades}
        return set(got) == set(self.expected) and all(abs(got[who] - self.expected[who]) < 1e-6
                                                      for who in got)

    @property
    def text(self) -> str:
        """The report for a terminal."""
        lines = [self.table, "", f"{'learner':10} {'points':>14} {'should be':>10}"]
        lines += [f"{g.learner:10} {g.total:5g} of {g.maximum:5g} {self.expected.get(g.learner, -1):10g}"
                  for g in self.grades]
        lines += ["", *(f"{name + ':':12} {path}" for name, path in self.paths.items()), *self.notes]
        lines.append(f"{sum(self.seconds.values()):.0f} s: "
                     + ", ".join(f"{k} {v:.0f} s" for k, v in self.seconds.items()))
        lines.append("every grade is what it should be" if self.right else "A GRADE IS NOT WHAT IT SHOULD BE")
        return "\n".join([*lines, *_activation()])

    def as_dict(self) -> dict:
        """The report as JSON data."""
        return {"lab": self.lab, "right": self.right, "paths": self.paths, "seconds": self.seconds,
                "notes": self.notes,
                "expected": self.expected, "grades": {g.learner: g.total for g in self.grades}}


def _activation() -> list[str]:
    """How a terminal finds `inferlab`; empty where it does already, or outside a virtual environment."""
    if sys.prefix == sys.base_prefix or os.environ.get("VIRTUAL_ENV") == sys.prefix:
        return []
    return [f"Now, once a terminal: source {sys.prefix}/bin/activate (or write {sys.prefix}/bin/inferlab)"]


def demo(course: Course, *, lab: str | None = None, folder: Path | None = None,
         say: Callable[[str], None] = print) -> Demo:
    """Take a lab through the whole path. `say` is called with each step's progress.

    Raises `CourseError` when `folder` exists and no demonstration made it.
    """
    lab = course.require(lab or LAB)
    result = Demo(_fresh(folder or course.root / "demo"), lab)
    began = time.monotonic()

    def step(name: str, text: str) -> None:
        nonlocal began
        now = time.monotonic()
        if result.seconds:
            result.seconds[next(reversed(result.seconds))] = now - began
        result.seconds[name], began = 0.0, now
        say(f"[{len(result.seconds)} of 6] {text}")

    step("trace", f"tracing a real StableDiffusionPipeline call: '{PROMPT}', {STEPS} steps")
    _trace(result, say)
    step("release", f"releasing {lab}")
    mine = _copy_course(course, result.folder, lab)
    build_lab(mine, lab)
    step("hand in", "three learners hand in: a full solution, a partly wrong one, a blank one")
    _hand_in(mine, lab, result)
    step("grade", "grading them")
    _grade(mine, lab, result, say)
    step("feedback", "writing feedback")
    for learner in result.expected:
        done = write_feedback(mine, lab, learner, answers=True)
        if not done.success:
            raise CourseError(f"no feedback for {learner}: {done.error or done.log}")
    step("report", "reading the gradebook")
    result.grades = grades(mine, lab)
    result.paths["feedback"] = str(result.folder / "feedback" / "grace" / lab / f"{lab}.html")
    result.paths["gradebook"] = str(result.folder / "gradebook.db")
    result.seconds["report"] = time.monotonic() - began
    return result


def _fresh(folder: Path) -> Path:
    folder = folder.resolve()
    if folder.exists():
        if not (folder / MARKER).exists() and any(folder.iterdir()):
            raise CourseError(f"{folder} exists and no demonstration made it: choose another with --folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / MARKER).write_text("made by `inferlab demo`; the next one replaces it\n", "utf-8")
    return folder


def _trace(result: Demo, say: Callable[[str], None]) -> None:
    """Draw a picture on the bundled model with every boundary recorded."""
    import torch

    from inferlab.lab.setup import hide_notices
    from inferlab.models.pictures import load_pipeline
    from inferlab.trace import trace

    hide_notices()
    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)

    def progress(_pipe: object, index: int, _timestep: object, kwargs: dict) -> dict:
        say(f"    step {index + 1} of {STEPS}")
        return kwargs

    with trace(pipe) as recorded:
        image = pipe(PROMPT, num_inference_steps=STEPS, guidance_scale=4.0, callback_on_step_end=progress,
                     generator=torch.Generator("cpu").manual_seed(0)).images[0]
    picture, timeline = result.folder / "picture.png", result.folder / "trace.json"
    image.save(picture)
    recorded.perfetto(timeline)
    result.table = str(recorded.table())
    result.paths |= {"picture": str(picture), "trace": f"{timeline} (open it at ui.perfetto.dev)"}


def _copy_course(course: Course, folder: Path, lab: str) -> Course:
    shutil.copytree(course.text(lab).parent, folder / "notebooks" / lab,
                    ignore=shutil.ignore_patterns("__pycache__"))
    if (course.root / "nbgrader_config.py").exists():
        shutil.copy(course.root / "nbgrader_config.py", folder / "nbgrader_config.py")
    (folder / "roster").mkdir()
    (folder / "roster" / "roster.csv").write_text(ROSTER, "utf-8")
    return Course.open(folder)


def solved(course: Course, lab: str, learner: str, instead: dict[str, str] | None = None) -> NotebookNode:
    """The released notebook as a learner who knows the lab's own solutions would hand it in.

    `instead` replaces the cell of an exercise or explanation (by its name) with another text.
    """
    instead = instead or {}
    answers = {}
    for cell in nbformat.read(course.source(lab), as_version=4).cells:
        about = cell.metadata.get("inferlab", {})
        if name := about.get("exercise") or about.get("explain"):
            answers[cell.id] = instead.get(name, solution_text(cell.source))
    return fill_in(course, lab, learner, answers)


def fill_in(course: Course, lab: str, learner: str, answers: dict[str, str]) -> NotebookNode:
    """The released notebook with a name in `LEARNER` and `answers` (cell id -> text) in their cells."""
    notebook = nbformat.read(course.release(lab), as_version=4)
    for cell in notebook.cells:
        if "parameters" in cell.metadata.get("tags", []):
            lines = cell.source.split("\n")
            cell.source = "\n".join(f'LEARNER = "{learner}"' if line.startswith("LEARNER") else line
                                    for line in lines)
        cell.source = answers.get(cell.id, cell.source)
    notebook.metadata["inferlab"]["learner"] = learner
    return notebook


def partly_wrong(course: Course, lab: str) -> list[WrongAnswer]:
    """Two wrong answers for the sample: the last exercise's and the last explanation's that keep some points.

    The last ones, because no later exercise builds on them.
    """
    path = course.text(lab)
    blocks = read_lesson(path)
    wrong = read_wrong_answers(path, blocks)
    chosen = []
    for kind in ("exercise", "explain"):
        names = [str(block.cell.metadata[kind]) for block in blocks if kind in block.cell.metadata]
        if names:
            mine = [answer for answer in wrong if answer.exercise == names[-1]]
            chosen.append(next((answer for answer in mine if sum(answer.keeps.values()) > 0), mine[0]))
    return chosen


def _hand_in(course: Course, lab: str, result: Demo) -> None:
    source = nbformat.read(course.source(lab), as_version=4)
    points = {cell.metadata.inferlab.check: float(cell.metadata.nbgrader.points) for cell in source.cells
              if cell.metadata.get("nbgrader", {}).get("grade")}
    wrong = partly_wrong(course, lab)
    lost = sum(points[check] - kept for answer in wrong for check, kept in answer.keeps.items())
    inbox = result.folder / "handed-in"
    write_notebook(solved(course, lab, "ada"), inbox / "homework (1).ipynb")
    write_notebook(solved(course, lab, "Grace Hopper", {a.exercise: a.source for a in wrong}),
                   inbox / "final_FINAL.ipynb")
    write_notebook(fill_in(course, lab, "blank", {}), inbox / f"{lab}.ipynb")
    result.notes.append("partly wrong: " + ", ".join(f"{a.exercise} ({a.name})" for a in wrong))
    result.expected = {"ada": sum(points.values()), "grace": sum(points.values()) - lost, "blank": 0.0}
    report = collect(course, [inbox], Roster.load(course.roster))
    if report.count("collected") != 3:
        raise CourseError("collecting went wrong: " + "; ".join(f"{x.file}: {x.status} {x.notes}"
                                                                for x in report.lines))


def _grade(course: Course, lab: str, result: Demo, say: Callable[[str], None]) -> None:
    def graded(row: BatchRow, done: int, total: int) -> None:
        say(f"    graded {done} of {total}: {row.learner}")

    workers = min(3, os.cpu_count() or 1)
    try:
        rows = grade_lab(course, lab, workers=workers, on_row=graded)
    except NoSandbox as error:
        result.notes.append(f"GRADED WITHOUT THE SANDBOX, which cannot run here ({error}): these three are "
                            "our own")
        rows = grade_lab(course, lab, workers=workers, on_row=graded, mode="none")
    failed = [f"{row.learner}: {row.problem}" for row in rows if row.problem]
    if failed:
        raise CourseError("grading went wrong: " + "; ".join(failed))
