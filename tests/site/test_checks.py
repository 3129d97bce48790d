"""What the build refuses: an answer on a page, however it is colored, a broken link, anything from another
host."""

import nbformat
import pytest
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from builder.checks import broken_in, leaks_in
from inferlab.grading.stubs import HIDDEN, SOLUTION, region_lines
from tests.course import LAB


def page(folder, name, body):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<!doctype html><html><body>{body}</body></html>", "utf-8")


def answers(course, markers):
    """The longest solution, or hidden test, of the course's lab."""
    notebook = nbformat.read(course.source(LAB), as_version=4)
    return max(("\n".join(region_lines(cell.source, markers)) for cell in notebook.cells), key=len)


@pytest.mark.parametrize("markers", [SOLUTION, HIDDEN])
def test_an_answer_is_found_among_the_marks_of_its_colors_and_in_a_script(course, tmp_path, markers):
    code = answers(course, markers)
    assert code.count("\n") >= 2
    colored = highlight(code, PythonLexer(), HtmlFormatter())
    assert code.split("\n")[0] not in colored, "the marks hide it from a plain search"
    page(tmp_path / "page", "labs/lab.html", colored)
    assert leaks_in(tmp_path / "page", course)
    (tmp_path / "script").mkdir()
    (tmp_path / "script" / "search.js").write_text(code, "utf-8")
    assert leaks_in(tmp_path / "script", course)


def test_a_released_notebook_is_no_leak(course, tmp_path):
    released = nbformat.read(course.release(LAB), as_version=4)
    page(
        tmp_path / "page",
        "lab.html",
        "\n".join(highlight(cell.source, PythonLexer(), HtmlFormatter()) for cell in released.cells),
    )
    assert leaks_in(tmp_path / "page", course) == []


def test_links_that_lead_nowhere_are_named(tmp_path):
    page(
        tmp_path,
        "index.html",
        '<a href="labs/lab.html#here">a</a><a href="labs/lab.html#there">b</a><a href="gone.html">c</a>'
        '<a href="/rooted.html">d</a><a href="https://arxiv.org/abs/1">e</a><img src="gone.png">',
    )
    page(tmp_path, "labs/lab.html", '<h2 id="here">x</h2><a href="../index.html">up</a><a href="#here">y</a>')
    found = broken_in(tmp_path)
    assert len(found) == 4
    assert all(
        any(part in fault for fault in found) for part in ("#there", "gone.html", "/rooted.html", "gone.png")
    )


@pytest.mark.parametrize(
    "body",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<img src="//example/x.png">',
        '<link rel="stylesheet" href="http://example/x.css">',
    ],
)
def test_what_another_host_would_be_asked_for_is_named(tmp_path, body):
    page(tmp_path, "index.html", body)
    assert any("loads" in fault for fault in broken_in(tmp_path))
