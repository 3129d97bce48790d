"""What a learner reads after grading: reasons in plain HTML, the lab's model answer, and no test."""

from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.server_extensions import formgrader
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


HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg onload=alert(1)>", '<b onmouseover="alert(1)">b</b>', '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    "[x](javascript:alert(1))", "<a href='java\nscript:alert(1)'>x</a>", "<details ontoggle=alert(1) open>x</details>", "<style>*{background:url(javascript:alert(1))}</style>",
    '<div style="position:fixed;background:url(javascript:alert(1))">x</div>', "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "![x](data:text/html,<script>alert(1)</script>)", "<object data=x></object>", "<form action=//evil><button>x</button></form>", "`</code><script>alert(1)</script>`",
    "```html\n</pre><script>alert(1)</script>\n```", "<base href=//evil>", "<meta http-equiv=refresh content=0>", "<input autofocus onfocus=alert(1)>",
]


class Behavior(HTMLParser):
    """What of the hostile cells could act in a page: tags, handlers and addresses that hold their marks."""

    def __init__(self):
        super().__init__()
        self.found, self.inside = [], ""

    def handle_starttag(self, tag, attrs):
        self.inside = tag
        values = " ".join(value or "" for _, value in attrs).casefold()
        if tag in ("iframe", "object", "base", "math", "form") or "alert(1)" in values or "//evil" in values or "position" in values or any(
                name.startswith("on") and tag in ("input", "img", "b", "details", "svg") for name, _ in attrs):
            self.found.append((tag, attrs))

    def handle_data(self, data):
        if self.inside in ("script", "style") and ("alert(1)" in data):
            self.found.append((self.inside, data[:80]))

    def handle_endtag(self, tag):
        self.inside = ""


@pytest.mark.parametrize("template", ["feedback", "formgrade"])
def test_a_markdown_cell_brings_no_behavior_into_the_page(template):
    """As nbgrader makes a page: its own template, this course's config."""
    config = PyFileConfigLoader("nbgrader_config.py", path=str(ROOT)).load_config()
    config.HTMLExporter.template_name = template
    config.HTMLExporter.extra_template_basedirs = [str(Path(formgrader.__file__).parent / "templates")]
    config.HTMLExporter.extra_template_paths = [str(Path(formgrader.__file__).parent / "static" / "node_modules" / "bootstrap" / "dist" / "css")]
    kept = "**bold** and `a < b` and $x<y$\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n<details><summary>Hint</summary>\n\ntext\n\n</details>"
    notebook = new_notebook(cells=[new_markdown_cell(kept), *map(new_markdown_cell, HOSTILE)])
    resources = {"nbgrader": {"score": 0, "max_score": 0, "late_penalty": 0}, "base_url": "", "submission_id": "x", "assignment_id": LAB, "notebook_id": LAB, "index": 0,
                 "total": 1, "student": "ada", "last_name": "", "first_name": "", "notebook_path": "x", "resources": {}}
    body, _ = HTMLExporter(config=config).from_notebook_node(notebook, resources=resources)
    assert "<strong>bold</strong>" in body and "<code>a &lt; b</code>" in body and "<table>" in body and "<summary>Hint</summary>" in body
    page = Behavior()
    page.feed(body)
    assert page.found == []
