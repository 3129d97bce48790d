"""The page that `inferlab feedback` writes: points, what was found and decided, and answers in good time."""

import re
import shutil
from datetime import UTC, datetime

import nbformat
import pytest
from nbgrader.api import Gradebook

from inferlab.cli import main
from inferlab.commands import LOOK, OK
from inferlab.grading.authoring.build import build_source
from inferlab.grading.course import Course
from inferlab.grading.demo import solved
from inferlab.grading.gradebook.batch import grade_lab
from inferlab.grading.gradebook.lateness import answers_held_back
from inferlab.grading.reporting.feedback_html import inline, markdown
from inferlab.grading.sandbox.limits import Limits
from tests import ROOT
from tests.course import LAB

SHOWN = ("<table><thead><tr><th style='text-align:left'>shape</th></tr></thead>"
         "<tbody><tr><td><small>one</small><br>two</td></tr></tbody></table>"
         "<style>.il-n {color: red}</style><script>alert(1)</script>")
# Written without "<", so that the page's tags are those of the output and not of the cell's source.
SHOWS = f"""

from IPython.display import HTML, display

display(HTML({SHOWN.replace("<", "@")!r}.replace("@", chr(60))))
import matplotlib.pyplot as plt
plt.plot([1, 2])
plt.show()
"""
SECONDS = 3.0
"""How long a cell may run here."""
SQUARED = "def double(x):\n    return x * x"
BACKWARDS = """def fold(step, items):
    total = 0
    for item in reversed(items):
        total = step(total, item)
    return total"""
NOTE = "You read the items from the end; the idea is right."


pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def graded(built, tmp_path_factory):
    """Three graded learners: ada is late and right, grace partly wrong, a cell of olga's never ends."""
    root = tmp_path_factory.mktemp("feedback") / "course"
    shutil.copytree(built, root)
    shutil.copy(ROOT / "nbgrader_config.py", root)
    course, inbox = Course.open(root), root.parent / "inbox"
    ada = solved(course, LAB, "ada")
    next(cell for cell in ada.cells if cell.id == "double").source += SHOWS
    olga = solved(course, LAB, "olga")
    olga.cells.insert(4, nbformat.v4.new_code_cell("while True: pass"))
    inbox.mkdir()
    grace = solved(course, LAB, "grace", {"double": SQUARED, "fold": BACKWARDS})
    for name, notebook in {"ada": ada, "grace": grace, "olga": olga}.items():
        handed_in = "2026-01-16T02:11:00+00:00" if name == "ada" else "2026-01-14T10:00:00+00:00"
        notebook.metadata["inferlab"]["submitted"] = handed_in
        nbformat.write(notebook, inbox / f"{name}.ipynb")
    run(course, "release", LAB)
    run(course, "collect", str(inbox))
    grade_lab(course, LAB, limits=Limits(cell_seconds=SECONDS))
    run(course, "late", LAB)
    return course


def run(course, *words):
    return main([*words, "--course", str(course.root)])


def page_of(course, learner):
    return (course.root / "feedback" / learner / LAB / f"{LAB}.html").read_text("utf-8")


def section(page, name):
    return page[page.index(f'<section id="{name}"'):].partition("</section>")[0]


def test_a_page_has_the_points_the_reason_of_a_penalty_and_the_cells_own_output(graded):
    assert run(graded, "feedback", LAB, "--learner", "ada") == OK
    page = page_of(graded, "ada")
    assert "Feedback for Ada Lovelace" in page and "9 of 10 points" in page
    assert ("10 points earned, 1 lost for lateness (handed in 2026-01-16 02:11 UTC, "
            "deadline 2026-01-15 12:00 UTC: 14.2 h late, 10%") in page
    double = section(page, "double")
    assert "4 of 4 points" in double and "doubles any number" in double
    assert '<th style="text-align:left;">shape</th>' in double and "<small>one</small><br>two" in double
    assert re.search(r'alt="Output \d of your cell for: Double a number" src="data:image/png;base64,', double)
    for raw in ("&lt;br", "&lt;small", "&lt;thead", "&lt;style", "&lt;script", "<script"):
        assert raw not in page, raw


def test_a_mistake_is_named_and_the_labs_own_answer_is_shown_after_the_deadline(graded):
    run(graded, "feedback", LAB, "--learner", "grace")
    page = page_of(graded, "grace")
    double = section(page, "double")
    assert "1 of 4 points" in double and "you squared instead of doubling" in double
    assert "One good answer" in double and "SOLUTION" not in page
    text = re.sub("<[^>]+>", "", double)
    assert "return 2 * x" in text and "return x * x" in text
    assert "check.mistake" not in page and "seen.clear" not in page, "no hidden test is in the page"
    assert "(3,)" in section(page, "one-call")


def test_points_by_hand_stand_alone_with_their_note(graded, capsys):
    assert run(graded, "review", LAB, "--set", "grace", "fold", "2.5", "--note", NOTE) == OK
    run(graded, "feedback", LAB, "--learner", "grace")
    fold = section(page_of(graded, "grace"), "fold")
    assert re.findall(r"[\d.]+ of 4 points", fold) == ["2.5 of 4 points"] and "1 of 4" not in fold
    assert NOTE in fold and "Your instructor gave these points" in fold
    assert "5.5 of 10 points" in page_of(graded, "grace")


def test_a_submission_in_review_says_so(graded, capsys):
    with Gradebook(graded.gradebook_url) as gradebook:
        gradebook.find_grade("check-double", LAB, LAB, "olga").needs_manual_grade = True
        gradebook.db.commit()
    capsys.readouterr()
    assert run(graded, "feedback", LAB, "--learner", "olga", "--learner", "ada") == LOOK
    told = capsys.readouterr().out
    assert f"feedback/olga/{LAB}/{LAB}.html (still in review)\n" in told
    assert f"feedback/ada/{LAB}/{LAB}.html\n" in told
    page = page_of(graded, "olga")
    assert "Still in review" in page and "A person will look at this" in section(page, "double")
    assert "in review" not in page_of(graded, "ada")


def test_a_stopped_cell_is_said_everywhere(graded, capsys):
    said = "stopped after 3 s while running cell 5: while True: pass"
    (row,) = grade_lab(graded, LAB, limits=Limits(cell_seconds=SECONDS), learners=["olga"])
    assert row.state == "kept" and row.notes == [said]
    for words in (["review", LAB], ["export"], ["feedback", LAB, "--learner", "olga"]):
        capsys.readouterr()
        run(graded, *words)
        assert said in capsys.readouterr().out, words
    assert said in (graded.root / "grades.csv").read_text("utf-8-sig") and said in page_of(graded, "olga")


def test_the_labs_answers_are_held_back_until_nobody_may_hand_in(graded, capsys, tmp_path):
    given = graded.root / "roster" / "extensions.csv"
    given.write_text(f"id,lab,until,days,reason\nli,{LAB},2999-01-01T00:00:00Z,,ill\n")
    try:
        capsys.readouterr()
        assert run(graded, "feedback", LAB, "--learner", "ada") == LOOK
        told = capsys.readouterr().out
        assert f"without model answers: li may hand in {LAB} until 2999-01-01 00:00 UTC" in told
        assert "One good answer" not in page_of(graded, "ada")
        assert "no model answers yet. They come after the last deadline" in page_of(graded, "ada")
        assert run(graded, "feedback", LAB, "--learner", "ada", "--answers") == OK
        assert "One good answer" in page_of(graded, "ada")
    finally:
        given.unlink()


def test_the_last_moment_counts_everybodys_extension_and_free_days(course):
    def held_back(day):
        return answers_held_back(Course.open(course.root), LAB, datetime(2026, 1, day, 12, 1, tzinfo=UTC))

    assert held_back(14) == f"everybody may hand in {LAB} until 2026-01-15 12:00 UTC" and held_back(15) == ""
    roster = course.roster.read_text("utf-8").splitlines()
    free = [row + (",2" if row.startswith("ada,") else ",") for row in roster[1:]]
    course.roster.write_text("\n".join([roster[0] + ",late_days", *free]))
    assert held_back(16).startswith("ada may hand in") and held_back(17) == ""
    (course.root / "roster" / "extensions.csv").write_text(f"id,lab,until,days,reason\njose,{LAB},,5,\n")
    assert held_back(19).startswith("jose may hand in") and held_back(20) == ""
    (course.root / "course.toml").write_text("")
    assert "gives lab90-fixture no deadline" in held_back(20)


# -- what needs no network ---------------------------------------------------------------------------------
def test_formulas_become_mathml_and_nothing_is_fetched():
    html = markdown("A step $x_t$ and\n\n$$\\epsilon = \\sqrt{\\bar\\alpha_t}$$\n\n"
                    "`$not` ![a plot](figures/a.png) "
                    "[page](../handbook/02.md) [paper](https://arxiv.org/abs/2010.02502)")
    assert html.count("<math") == 2 and "<msqrt>" in html and "<code>$not</code>" in html
    assert "src=" not in html and "[picture: a plot]" in html
    assert "../handbook" not in html and 'href="https://arxiv' in html
    assert inline("`a<b` costs $n^2$ & 3 $") == "<code>a&lt;b</code> costs $n^2$ &amp; 3 $"


@pytest.mark.parametrize("lab", Course.open(ROOT).labs)
def test_every_formula_of_every_lab_can_be_shown(lab):
    cells = build_source(Course.open(ROOT), lab).cells
    for text in [cell.source for cell in cells if cell.cell_type == "markdown"]:
        without_code = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
        html = markdown(text)
        formulas = re.findall(r"\$\$.+?\$\$|\$[^$\n]+\$", without_code, flags=re.DOTALL)
        assert html.count("<math") >= len(formulas)
        assert "\\" not in "".join(re.findall(r"<math.*?</math>", html, flags=re.DOTALL))


@pytest.mark.browser
def test_the_page_in_a_browser_is_whole_without_a_network_and_fits_a_phone(graded):
    playwright = pytest.importorskip("playwright.sync_api")
    run(graded, "feedback", LAB, "--learner", "ada", "--answers")
    path = graded.root / "feedback" / "ada" / LAB / f"{LAB}.html"
    with playwright.sync_playwright() as driver:
        executable = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        asked, problems = [], []
        for scheme in ("light", "dark"):
            tab = browser.new_page(viewport={"width": 420, "height": 800}, color_scheme=scheme)
            tab.on("request", lambda request: asked.append(request.url))
            tab.on("console", lambda message: problems.append(message.text))
            tab.goto(path.as_uri())
            tab.eval_on_selector_all("details", "all => all.forEach(d => d.open = true)")
            assert [url for url in asked if not url.startswith(("file:", "data:"))] == [] and problems == []
            assert tab.evaluate("document.documentElement.scrollWidth") <= 420
            assert tab.evaluate("[...document.images].every(i => i.alt && i.naturalWidth > 0)")
            back = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, re.findall(r"\d+", back)[:3])) > 382) == (scheme == "light")
        browser.close()
