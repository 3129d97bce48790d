"""Every lab of this repository: built files up to date, notebooks executed, grades proven, nothing leaked."""

import nbformat
import pytest

from ci.notebooks import prove, run_release, run_source
from inferlab.grading.adopt import adopt_notebook
from inferlab.grading.build import stale_labs
from inferlab.grading.course import Course
from inferlab.grading.leaks import secrets_of
from inferlab.grading.publish import publish

from .conftest import ROOT

COURSE = Course.open(ROOT)
LABS = COURSE.labs


def test_source_and_release_are_what_building_gives():
    assert stale_labs(COURSE) == [], "run `make release` and commit what it changes"


@pytest.mark.parametrize("lab", LABS)
def test_adopting_the_unedited_source_changes_no_byte(lab):
    text = COURSE.text(lab).read_text("utf-8")
    assert adopt_notebook(nbformat.read(COURSE.source(lab), as_version=4), text).text == text


def test_the_published_tree_shows_no_answer(tmp_path):
    assert all(len(secrets_of(COURSE, lab)) > 10 for lab in LABS)
    published = publish(COURSE, tmp_path / "public")  # raises LeakError, which lists every leak
    names = {name.split("/")[0] for name in published.files}
    assert names <= {*LABS, "README.md", "LICENSE", "LICENSE-TEXT", "MANIFEST.txt", "wheels", "handbook"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("lab", LABS)
def test_the_source_runs_clean_and_earns_full_marks(lab):
    assert run_source(nbformat.read(COURSE.source(lab), as_version=4)).problems == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("lab", LABS)
def test_the_release_raises_only_notimplemented_where_it_may(lab):
    assert run_release(nbformat.read(COURSE.release(lab), as_version=4)).problems == []


@pytest.mark.timeout(900)
@pytest.mark.parametrize("lab", LABS)
def test_every_grade_is_proven(lab):
    assert prove(COURSE, lab, nbformat.read(COURSE.source(lab), as_version=4))["problems"] == []
