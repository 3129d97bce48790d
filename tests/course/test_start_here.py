"""The course's order: one file, an index notebook made from it, the neighbours in every lab, and what is done
so far."""

import re
import shutil

import nbformat
import pytest
from nbclient import NotebookClient

from inferlab.cli import main
from inferlab.grading.authoring.start_here import NAME, entries, start_here
from inferlab.grading.course import Course, CourseError
from inferlab.lab import handed_in
from tests import ROOT
from tests.course import LAB

LINK = re.compile(r"\]\(([^)#]+)\)")


@pytest.fixture
def three(course):
    """A course of three labs; the order puts the last name first."""
    for name in ("lab91-second", "lab92-first"):
        folder = course.root / "notebooks" / name
        shutil.copytree(course.root / "notebooks" / LAB, folder)
        text = (folder / f"{LAB}.py").read_text().replace("Lab 90: a fixture",
                                                          f"Lab {name[3:5]} · {name[6:]}").replace(LAB, name)
        (folder / f"{LAB}.py").unlink()
        (folder / f"{name}.py").write_text(text)
    (course.root / "notebooks" / "order.toml").write_text(
        f'[lab92-first]\npart = "One"\n[lab91-second]\nneeds = ["lab92-first"]\n[{LAB}]\n')
    return Course.open(course.root)


def test_this_course_lists_every_lab_once_with_title_and_minutes():
    course = Course.open(ROOT)
    order = entries(course)
    assert sorted(entry.lab for entry in order) == course.labs
    assert all(entry.title != entry.lab and re.search(r"\d", entry.minutes) for entry in order)


def test_every_link_of_the_released_index_and_of_the_neighbours_leads_somewhere():
    release = ROOT / "release"
    seen = 0
    for path in [release / NAME, *release.glob("*/*.ipynb")]:
        for cell in nbformat.read(path, as_version=4).cells:
            if path.name == NAME or cell.id == "neighbours":
                for link in LINK.findall(cell.source):
                    assert (path.parent / link).is_file(), f"{path.name}: {link}"
                    seen += 1
    assert seen >= 3 * len(Course.open(ROOT).labs)


def test_each_lab_names_the_one_before_and_the_one_after_it(three):
    assert main(["build", "--course", str(three.root)]) == 0
    labs = {lab: nbformat.read(three.release(lab), as_version=4) for lab in three.labs}
    shown = {lab: next(cell.source for cell in notebook.cells if cell.id == "neighbours")
             for lab, notebook in labs.items()}
    first, second = ("lab92-first/lab92-first.ipynb", "lab91-second/lab91-second.ipynb")
    assert shown["lab92-first"] == f"[Start here](../{NAME}) · [Lab 91 · second](../{second}) →"
    assert shown["lab91-second"].startswith(f"← [Lab 92 · first](../{first}) · [Start here]")
    assert shown[LAB] == f"← [Lab 91 · second](../{second}) · [Start here](../{NAME})"
    assert labs["lab92-first"].metadata.inferlab.next == f"Lab 91 · second (../{second})"
    assert "next" not in labs[LAB].metadata.inferlab


def test_an_index_that_is_out_of_date_is_said(three, capsys):
    assert main(["build", "--course", str(three.root)]) == 0
    assert main(["build", "--check", "--course", str(three.root)]) == 0
    (three.root / "notebooks" / "order.toml").write_text("[lab91-second]\n[lab92-first]\n")
    assert main(["build", "--check", "--course", str(three.root)]) == 1
    assert f"release/{NAME}" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "said"), [
    ("[lab93-nowhere]", "no lab called 'lab93-nowhere'"),
    ('[lab91-second]\nneeds = ["lab92-first"]\n'
     '[lab92-first]', "lab91-second needs lab92-first, which must stand above it"),
    ("[lab91-second]\nneeds = 3", "needs = a list of labs"),
    ('[lab91-second]\nminutes = "9"', "may have part"),
    ("[lab91-second", "order.toml"),
])
def test_an_order_that_cannot_be_is_refused(three, text, said):
    (three.root / "notebooks" / "order.toml").write_text(text)
    with pytest.raises(CourseError, match=re.escape(said)):
        entries(three)


def test_the_index_runs_and_shows_what_is_done_and_what_is_next(three, tmp_path):
    notebook, home = start_here(three), tmp_path / "home"
    assert "### One" in notebook.cells[0].source
    assert ("| 2 | [Lab 91 · second](lab91-second/lab91-second.ipynb) |  | "
            "Lab 92 |") in notebook.cells[0].source
    (home / "lab92-first" / "handin").mkdir(parents=True)
    done = nbformat.v4.new_notebook(metadata={"inferlab": {"submitted": "2026-11-02T10:00:00+00:00",
                                                           "visible": [3, 4]}})
    nbformat.write(done, home / "lab92-first" / "handin" / "lab92-first-ada.ipynb")
    NotebookClient(notebook, resources={"metadata": {"path": str(home)}},
                   extra_arguments=["--log-level=40"]).execute()
    shown = notebook.cells[1].outputs[0].data["text/plain"]
    assert "✓ lab92-first: handed in, 2 November 2026, 3 of 4 visible parts passed" in shown
    assert "○ lab91-second: not begun" in shown and shown.endswith("1 of 3 labs handed in; next: "
                                                                   "lab91-second")


def test_a_lab_that_ran_is_begun_and_a_damaged_file_stops_nothing(tmp_path):
    run = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", execution_count=1)])
    nbformat.write(run, tmp_path / "lab01-a.ipynb")
    (tmp_path / "lab02-b.ipynb").write_text("{")
    (tmp_path / "handin").mkdir()
    (tmp_path / "handin" / "lab03-c-ada.ipynb").write_text("{")
    found = handed_in("lab01-a", "lab02-b", "lab03-c", folder=tmp_path)
    assert [one.state for one in found.labs] == ["begun", "not begun", "handed in"]
    assert found.next == "lab01-a" and "cannot be read" in repr(found)
