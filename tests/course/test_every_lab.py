"""Every lab of this repository: built files up to date, notebooks executed, grades proven, nothing leaked."""

import re
from collections import Counter

import nbformat
import pytest

from ci.notebooks import prove, run_release, run_source
from inferlab.grading.authoring.adopt import adopt_notebook
from inferlab.grading.authoring.build import build_source, refresh_sources, stale_labs
from inferlab.grading.authoring.hidden_tests import EXPLANATIONS, HIDDEN_TESTS, HiddenTests, read_lesson
from inferlab.grading.authoring.lab_text import checks_of
from inferlab.grading.authoring.leaks import find_leaks, secrets_of
from inferlab.grading.authoring.publish import allowed_texts, publish
from inferlab.grading.authoring.wrong_answers import WRONG_ANSWERS, read_wrong_answers
from inferlab.grading.course import Course
from inferlab.grading.notebook import dumps
from tests import ROOT

COURSE = Course.open(ROOT)
LABS = COURSE.labs


def source(lab):
    """The instructor's notebook as building writes it; source/ itself may be missing or older."""
    return nbformat.reads(dumps(build_source(COURSE, lab)), as_version=4)


def test_release_is_what_building_gives_and_no_edit_of_source_waits_to_be_adopted():
    assert refresh_sources(COURSE)[1] == []
    assert stale_labs(COURSE) == [], "run `make release` and commit what it changes"


@pytest.mark.parametrize("lab", LABS)
def test_adopting_the_unedited_source_changes_no_byte(lab):
    lesson = COURSE.text(lab)
    adopted = adopt_notebook(source(lab), lesson.read_text("utf-8"),
                             HiddenTests.beside(lesson), lesson.name)
    assert adopted.texts == {name: lesson.with_name(name).read_text("utf-8") for name in adopted.texts}


@pytest.mark.parametrize("lab", LABS)
def test_no_line_of_a_lab_is_too_long(lab):
    """At most 110 characters, apart from what cannot be broken: table rows, formulas, and the sentences of an
    explanation."""
    for name in (f"{lab}.py", HIDDEN_TESTS, EXPLANATIONS, WRONG_ANSWERS):
        path, explained = COURSE.text(lab).with_name(name), False
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            explained = "explain=" in line if line.startswith("# %% ") else explained
            assert len(line) <= 110 or explained or line.startswith(("# |",
                                                                     "# $$")), f"{path.name}, line {number}"


@pytest.mark.parametrize("lab", LABS)
def test_every_exercise_and_explanation_has_three_named_wrong_answers(lab):
    blocks = read_lesson(COURSE.text(lab))
    given = Counter(answer.exercise for answer in read_wrong_answers(COURSE.text(lab), blocks))
    assert [name for name in checks_of(blocks) if given[name] < 3] == []


@pytest.mark.parametrize("lab", LABS)
def test_every_exercise_has_two_folded_hints_the_second_nearly_the_solution(lab):
    text = (ROOT / "notebooks" / lab / f"{lab}.py").read_text("utf-8")
    exercises = re.split(r"^# ### Exercise .*$", text, flags=re.MULTILINE)[1:]
    assert len(exercises) == len(re.findall(r"^# %% exercise=", text, re.MULTILINE))
    for exercise in exercises:
        hints = re.findall(r"<summary>(Hint.*)</summary>", exercise.partition("\n# %% exercise=")[0])
        assert hints == ["Hint 1: a nudge", "Hint 2: nearly the solution"], exercise[:80]


@pytest.mark.parametrize("lab", LABS)
def test_a_check_that_asks_for_a_number_takes_numpys_and_torchs_too(lab):
    cells = [block.cell.source for block in read_lesson(COURSE.text(lab)) if "check" in block.cell.metadata]
    asks = re.compile(r"isinstance\([^()]*, \(?(int|float)\b(?!.*torch\.Tensor)")
    assert [cell for cell in cells if "check.learner" in cell and asks.search(cell)
            and not re.search(r"check\.(plain|number)\(", cell)] == []


@pytest.mark.parametrize("lab", LABS)
def test_hidden_tests_stand_beside_the_lesson(lab):
    assert "BEGIN HIDDEN TESTS" not in COURSE.text(lab).read_text("utf-8")


def test_release_shows_no_answer():
    assert find_leaks(ROOT / "release", COURSE, LABS, allowed_texts(COURSE)) == []


def test_the_published_tree_shows_no_answer(tmp_path):
    assert all(len(secrets_of(COURSE, lab)) > 10 for lab in LABS)
    published = publish(COURSE, tmp_path / "public")  # raises LeakError, which lists every leak
    names = {name.split("/")[0] for name in published.files}
    assert names <= {*LABS, "start-here.ipynb", "README.md", "LICENSE", "LICENSE-TEXT", "MANIFEST.txt",
                     "wheels", "handbook"}
    assert not [name for name in published.files if "instructors" in name]


@pytest.mark.notebooks
@pytest.mark.timeout(600)
@pytest.mark.parametrize("lab", LABS)
def test_the_source_runs_clean_and_earns_full_marks(lab):
    assert run_source(source(lab)).problems == []


@pytest.mark.notebooks
@pytest.mark.timeout(600)
@pytest.mark.parametrize("lab", LABS)
def test_the_release_raises_only_notimplemented_where_it_may(lab):
    assert run_release(nbformat.read(COURSE.release(lab), as_version=4)).problems == []


@pytest.mark.notebooks
@pytest.mark.sandbox
@pytest.mark.timeout(900)
@pytest.mark.parametrize("lab", LABS)
def test_every_grade_is_proven(lab):
    assert prove(COURSE, lab, source(lab))["problems"] == []
