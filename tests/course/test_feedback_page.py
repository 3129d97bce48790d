"""The page that `inferlab feedback` writes: whole HTML, checks by their names, the reason of a late penalty."""

import shutil

import nbformat
import pytest

from inferlab.cli import main
from inferlab.commands import OK
from inferlab.grading.demo import solved
from inferlab.grading.stubs import is_explanation

from .conftest import LAB, ROOT

SHOWN = ("<table><thead><tr><th style='text-align:left'>shape</th></tr></thead><tbody><tr><td><small>one</small><br>two</td></tr></tbody></table>"
         "<style>.il-n {color: red}</style><script>alert(1)</script>")
# Written without "<", so that the page's tags are those of the output and not of the cell's source.
SHOWS = f"""

from IPython.display import HTML, display

display(HTML({SHOWN.replace("<", "@")!r}.replace("@", chr(60))))
"""


@pytest.fixture
def page(course, tmp_path):
    """Ada's page: handed in 14.2 h late, with a cell that shows a table of its own."""
    shutil.copy(ROOT / "nbgrader_config.py", course.root)
    handed_in = solved(course, LAB, "ada")
    next(cell for cell in handed_in.cells if cell.id == "double").source += SHOWS
    handed_in.metadata["inferlab"]["submitted"] = "2026-01-16T02:11:00+00:00"
    nbformat.write(handed_in, tmp_path / "a.ipynb")
    for words in (["release", LAB], ["collect", str(tmp_path / "a.ipynb")], ["grade", LAB], ["feedback", LAB]):
        assert main([*words, "--course", str(course.root)]) == OK
    return (course.root / "feedback" / "ada" / LAB / f"{LAB}.html").read_text("utf-8")


def test_the_page_that_feedback_writes(page, course):
    assert '<th style="text-align:left;">shape</th>' in page and "<small>one</small><br/>two" in page
    assert '<ul style="list-style-type:none;padding-left:1em;' in page, "a check's report keeps its form"
    for raw in ("&lt;br", "&lt;small", "&lt;thead", "&lt;ul", "&lt;style", "&lt;script", "<script>alert(1)"):
        assert raw not in page, raw

    contents = page[page.index('id="toc"'):page.index('id="notebook"')]
    assert '<a href="#check-double">double</a>' in contents and '<a href="#check-one-call-shape">one-call-shape</a>' in contents
    assert "Test cell" not in contents
    assert "Late submission penalty: handed in 2026-01-16 02:11 UTC, deadline " in contents
    assert "h late, 10% of what was earned (Score: -1.0)" in contents

    graded = nbformat.read(course.root / "autograded" / "ada" / LAB / f"{LAB}.ipynb", as_version=4)
    explanation = next(cell for cell in graded.cells if is_explanation(cell.source))
    assert explanation.outputs, "the graded notebook keeps what the cell displayed"
    assert "No trace was found" not in page
