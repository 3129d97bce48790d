"""What a learner reads after grading: reasons in plain HTML, the lab's model answer, and no test."""

from pathlib import Path

import nbformat
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat.v4 import new_code_cell, new_notebook, new_output
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from traitlets.config import PyFileConfigLoader

from inferlab.grading.preprocessors import ShowModelAnswers
from inferlab.lab.report import html_report

ROOT = Path(__file__).parents[2]
LAB = "lab02-denoising-step"


def graded_copy():
    return nbformat.read(ROOT / "release" / LAB / f"{LAB}.ipynb", as_version=4)


def with_model_answers(notebook):
    converter = GenerateFeedback(coursedir=CourseDirectory(root=str(ROOT)))
    resources = {"nbgrader": {"assignment": LAB, "notebook": LAB, "student": "ada"}}
    return ShowModelAnswers(parent=converter).preprocess(notebook, resources)[0]


def test_the_model_answer_follows_the_last_check_of_its_explanation():
    shown = with_model_answers(graded_copy())
    places = [i for i, cell in enumerate(shown.cells) if cell.metadata.get("inferlab", {}).get("model_answer")]
    assert len(places) == 1
    text = shown.cells[places[0]].source
    assert text.startswith("**Say it out loud.**") and "scheduler.step" in text and "**trade-off**" in text
    before = shown.cells[places[0] - 1].metadata
    assert before["nbgrader"]["grade_id"].startswith("check-words-") and before["inferlab"]["of"] == "step-in-words"
    assert not any(word in text for word in ("BEGIN SOLUTION", "must_award", "Rubric"))


def test_a_report_keeps_its_form_when_nbconvert_cleans_it():
    from inferlab.lab.check import Part

    html = html_report("step", 1.0, 2.0, [Part("keeps `shape`", 1.0, message="`x` is <script>alert(1)</script>")])
    output = new_output("execute_result", data={"text/html": html, "text/plain": "1.0"}, execution_count=1)
    config = PyFileConfigLoader("nbgrader_config.py", path=str(ROOT)).load_config()
    cleaner = SanitizeHTML(config=config)
    notebook, _ = cleaner.preprocess(new_notebook(cells=[new_code_cell("1", outputs=[output])]), {})
    shown = notebook.cells[0].outputs[0].data["text/html"]
    assert "<br>" in shown and "<code>shape</code>" in shown
    assert "&lt;br" not in shown and "<script" not in shown
