"""What learners wrote and displayed brings no behavior into formgrader or into the page of feedback."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell
from nbgrader.server_extensions import formgrader
from traitlets.config import PyFileConfigLoader

from inferlab.grading.authoring.build import build_source
from inferlab.grading.course import Course
from inferlab.grading.gradebook.record import CHECK_DATA
from inferlab.grading.reporting.clean_html import clean
from inferlab.grading.reporting.feedback_page import Totals, exercises_of, rendered
from inferlab.lab.checks.check import Part
from inferlab.lab.checks.checklist import Report

ROOT = Path(__file__).parents[2]
LAB = "lab02-denoising-step"


def page_of(notebook):
    """As formgrader shows a notebook: its own template, this course's config."""
    config = PyFileConfigLoader("nbgrader_config.py", path=str(ROOT)).load_config()
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [str(Path(formgrader.__file__).parent / "templates")]
    config.HTMLExporter.extra_template_paths = [str(Path(formgrader.__file__).parent / "static"
                                                    / "node_modules" / "bootstrap" / "dist" / "css")]
    resources = {"nbgrader": {"score": 0, "max_score": 0, "late_penalty": 0}, "base_url": "",
                 "submission_id": "x", "assignment_id": LAB, "notebook_id": LAB, "index": 0,
                 "total": 1, "student": "ada", "last_name": "", "first_name": "", "notebook_path": "x",
                 "resources": {}}
    return HTMLExporter(config=config).from_notebook_node(notebook, resources=resources)[0]


def test_a_report_keeps_its_form_in_the_page():
    html = Report("step", 1.0, 2.0, [Part("keeps `shape`", 1.0,
                                          message="`x` is <script>alert(1)</script>")]).html()
    output = new_output("execute_result", data={"text/html": html, "text/plain": "1.0"}, execution_count=1)
    shown = page_of(new_notebook(cells=[new_code_cell("1", outputs=[output])]))
    assert "<br/>" in shown and "<code>shape</code>" in shown and '<ul style="list-style-type:none;' in shown
    assert "&lt;br" not in shown and "&lt;ul" not in shown and "<script>alert" not in shown


@pytest.mark.parametrize(("given", "shown"), [
    ("<style>.il-n {color: red}</style><b>3</b>", "<b>3</b>"),
    ("a<SCRIPT src=x>1 < 2</SCRIPT >b<style>c</style>d", "abd"),
    ("<b>use</b> a <script> tag", "<b>use</b> a &lt;script&gt; tag"),
    ("<scr<script></script>ipt>alert(1)", "&lt;script&gt;alert(1)"),
    ("<style><script></style><i>e</i>", "<i>e</i>"),
    (b"<b>bytes", "<b>bytes</b>"),
])
def test_style_sheets_and_scripts_leave_no_text_behind(given, shown):
    assert clean(given) == shown


HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg onload=alert(1)>",
    '<b onmouseover="alert(1)">b</b>', '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    "[x](javascript:alert(1))", "<a href='java\nscript:alert(1)'>x</a>",
    "<details ontoggle=alert(1) open>x</details>", "<style>*{background:url(javascript:alert(1))}</style>",
    '<div style="position:fixed;background:url(javascript:alert(1))">x</div>',
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "![x](data:text/html,<script>alert(1)</script>)", "<object data=x></object>",
    "<form action=//evil><button>x</button></form>", "`</code><script>alert(1)</script>`",
    "```html\n</pre><script>alert(1)</script>\n```", "<base href=//evil>",
    "<meta http-equiv=refresh content=0>", "<input autofocus onfocus=alert(1)>",
    r"$\href{javascript:alert(1)}{x}$", r"$$\text{<script>alert(1)</script>}$$", r"$\frac{$",
]


class Behavior(HTMLParser):
    """What of the hostile cells could act in a page: tags, handlers and addresses that hold their marks."""

    def __init__(self):
        super().__init__()
        self.found, self.inside = [], ""

    def handle_starttag(self, tag, attrs):
        self.inside = tag
        texts = [value or "" for _, value in attrs]
        values = " ".join(text for text in texts if not text.startswith("data:image/")).casefold()
        if tag in ("iframe", "object", "base", "math",
                   "form") or "alert(1)" in values or "//evil" in values or "position" in values or any(
                name.startswith("on") and tag in ("input", "img", "b", "details", "svg")
                for name, _ in attrs):
            self.found.append((tag, attrs))

    def handle_data(self, data):
        if self.inside in ("script", "style") and ("alert(1)" in data):
            self.found.append((self.inside, data[:80]))

    def handle_endtag(self, tag):
        self.inside = ""


def hostile_outputs(text):
    """The text as each kind of output that a cell can have, and under each type that a page knows; grading
    leaves no metadata."""
    types = ("text/html", "text/markdown", "text/latex", "text/plain", "image/svg+xml", "image/png",
             "image/jpeg", "application/javascript", "application/vnd.jupyter.widget-view+json")
    data = [{kind: {"model_id": text} if kind.endswith("json") else text} for kind in types]
    return [*(new_output("display_data", data=one) for one in data),
            new_output("stream", name="stdout", text=text), new_output("stream", name="stderr", text=text),
            new_output("error", ename=text, evalue=text, traceback=[text])]


def test_what_a_learner_wrote_or_displayed_brings_no_behavior_into_formgrader():
    kept = ("**bold** and `a < b` and $x<y$\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n"
            "<details><summary>Hint</summary>\n\ntext\n\n</details>")
    cells = [new_markdown_cell(kept)]
    for text in HOSTILE:
        code = new_code_cell(text, outputs=hostile_outputs(text))
        cells += [new_markdown_cell(text), new_raw_cell(text), code]
    body = page_of(new_notebook(cells=cells))
    for shown in ("<strong>bold</strong>", "<code>a &lt; b</code>", "<table>", "<summary>Hint</summary>"):
        assert shown in body
    page = Behavior()
    page.feed(body)
    assert page.found == []


def test_what_a_learner_wrote_or_displayed_brings_no_behavior_into_the_page_of_feedback():
    source = build_source(Course.open(ROOT), LAB)
    graded = build_source(Course.open(ROOT), LAB)
    for cell in graded.cells:
        about = cell.metadata.get("inferlab", {})
        if "exercise" in about:
            cell.source = "\n".join(HOSTILE)
            cell.outputs = [output for text in HOSTILE for output in hostile_outputs(text)]
        elif "explain" in about:
            cell.source = "\n".join([f"%%explain {about.explain}", *(f"state: {text}" for text in HOSTILE)])
        elif "check" in about:
            parts = [{"name": text, "message": text, "state": "failed"} for text in HOSTILE]
            data = {CHECK_DATA: {"score": 0.0, "parts": parts}}
            cell.outputs = [new_output("execute_result", data=data, execution_count=1)]
    exercises = exercises_of(graded, source, show_answers=True)
    body = rendered(HOSTILE[0], HOSTILE[0], exercises, Totals(0, 0, 1, ""), HOSTILE, held_back=False)
    assert len(exercises) > 5 and "alert(1)" in body
    page = Behavior()
    page.feed(body)
    assert [found for found in page.found if found[0] != "math"] == []  # formulas of the course's own tasks
