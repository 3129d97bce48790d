"""`inferlab review` on a real gradebook: open slots in groups, a decision for a group, kept across regrading."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from inferlab.grading.authoring.build import build_source, generate_assignment, write_notebook
from inferlab.grading.course import Course
from inferlab.grading.gradebook.batch import grade_lab
from inferlab.grading.gradebook.decisions import BY_HAND, decisions
from inferlab.grading.gradebook.review import (
    Open,
    decide,
    give_points,
    groups,
    open_slots,
    review_command,
    to_review,
)

pytestmark = pytest.mark.sandbox

ROOT = Path(__file__).resolve().parents[2]
LAB = "lab00-words"
TEXT = '''\
# ---
# jupyter:
#   jupytext:
#     text_representation: {format_name: percent}
# ---

# %% [markdown]
# # Words

# %% tags=["parameters"]
LEARNER = ""
MODEL = "bundled"
DEVICE = "cpu"
SEED = 7

# %%
print("set up")

# %% explain="cache"
# %%explain cache
# ### BEGIN SOLUTION
# state: The cache stores the keys and the values.
# tokens: 12
# ### END SOLUTION

# %% check="cache-state" of="cache" points=2
from inferlab.lab import Check

check = Check("cache-state", points=2)
### BEGIN HIDDEN TESTS
from inferlab.lab import Words

words = Words("cache", "state: what it keeps\\n  who: the cache\\n  keeps = stores: the keys / the values / the words\\ntokens: a number")
check.slot(lambda: words.grade(check.explanation("cache"), "state", """
wanted: what is kept
    the cache | keeps | the keys
wanted: what else
    the cache | keeps | the values
false: It holds keys and values.
    the cache | keeps | the words
"""), "what is kept")
### END HIDDEN TESTS
check.score()

# %% check="cache-tokens" of="cache" points=1
from inferlab.lab import Check

check = Check("cache-tokens", points=1)
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

check.slot(lambda: typed(check.explanation("cache"), "tokens", 12), "how many")
### END HIDDEN TESTS
check.score()
'''
GOOD = "The cache stores the keys and the values."
UNCLEAR = "Everything that attention will want again is lying there, ready to be read."
ALIKE = "everything that the attention will want again is lying there ready to be read"
OTHER = "My model remembers the past of the text with some kind of notebook."


class Words:
    """A course of one lab with one explanation, and what the tests do in it."""

    def __init__(self, root: Path):
        (root / "notebooks" / LAB).mkdir(parents=True)
        (root / "notebooks" / LAB / f"{LAB}.py").write_text(TEXT)
        shutil.copy(ROOT / "nbgrader_config.py", root)
        self.root, self.course = root, Course.open(root)
        self.source = build_source(self.course, LAB, strict=False)
        write_notebook(self.source, root / "source" / LAB / f"{LAB}.ipynb")
        self.db = f"sqlite:///{root / 'gradebook.db'}"
        self.release = generate_assignment(self.course, LAB, root, self.db)

    def submit(self, student: str, state: str, tokens: str = "12") -> None:
        notebook = nbformat.read(self.release, as_version=4)
        cell = next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "cache")
        cell.source = f"%%explain cache\nstate: {state}\ntokens: {tokens}\n"
        write_notebook(notebook, self.root / "submitted" / student / LAB / f"{LAB}.ipynb")

    def autograde(self, *arguments: str) -> None:
        environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        run = subprocess.run(["nbgrader", "autograde", LAB, "--force", *arguments], cwd=self.root, env=environment, capture_output=True,
                             text=True, timeout=250, check=False)
        assert run.returncode == 0, run.stderr[-3000:]

    def state(self, student: str) -> tuple[float, bool]:
        with Gradebook(self.db) as gradebook:
            grade = gradebook.find_grade("check-cache-state", LAB, LAB, student)
            return float(grade.score), bool(grade.needs_manual_grade)

    def flagged(self) -> set[str]:
        with Gradebook(self.db) as gradebook:
            return {s.student.id for s in gradebook.assignment_submissions(LAB) if s.needs_manual_grade}


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    course = Words(tmp_path_factory.mktemp("words"))
    for student, text in {"good": GOOD, "ann": UNCLEAR, "bob": ALIKE, "cleo": OTHER, "dora": "The cache stores the words."}.items():
        course.submit(student, text)
    course.autograde()
    return course


def test_a_slot_is_awarded_denied_or_stays_open(words):
    assert words.state("good") == (2.0, False)
    assert words.state("dora") == (0.0, False)
    assert words.state("ann") == (0.0, True)
    assert words.flagged() == {"ann", "bob", "cleo"}


def test_open_slots_come_in_groups_of_similar_answers(words):
    found = groups(open_slots(words.course, LAB))
    assert sorted(g.learners for g in found) == [("ann", "bob"), ("cleo",)]
    assert found[0].learners == ("ann", "bob") and found[0].maximum == 2.0
    assert {s.text for s in found[0].slots} == {UNCLEAR, ALIKE}
    still, text, data = review_command(words.course, LAB)
    assert still and found[0].name in text and UNCLEAR in text and data[0]["check"] == "check-cache-state"


def test_a_decision_for_a_group_is_kept_across_regrading(words):
    group = next(g for g in groups(open_slots(words.course, LAB)) if "ann" in g.learners)
    still, text, _data = review_command(words.course, LAB, (group.name, 1.5), note="means the cache")
    assert still and "1.5 of 2" in text
    assert words.state("ann") == words.state("bob") == (1.5, False)
    words.autograde()
    assert words.state("ann") == words.state("bob") == (1.5, False)
    assert words.state("cleo") == (0.0, True) and words.flagged() == {"cleo"}

    words.submit("eve", UNCLEAR)
    words.submit("bob", OTHER)
    words.autograde()
    assert words.state("eve") == (1.5, False), "the same text has the same decision"
    assert words.state("bob") == (0.0, True), "another text is open again"
    words.submit("bob", GOOD)
    words.submit("eve", GOOD)
    grade_lab(words.course, LAB, learners=["bob", "eve"])
    assert words.state("bob") == words.state("eve") == (2.0, False)
    assert {d.note for d in decisions(words.root, LAB)} == {"means the cache"}


def test_a_decision_out_of_range_or_for_no_group_is_refused(words):
    group = groups(open_slots(words.course, LAB))[0]
    with pytest.raises(ValueError, match="0 to 2"):
        decide(words.course, LAB, group, 2.5)
    with pytest.raises(ValueError, match="no open group"):
        review_command(words.course, LAB, ("ffffff", 1))


def test_points_for_one_learner_hold_for_their_answer_only(words):
    """`--set` on an explanation: kept across regrading, nobody else's, and gone with another answer."""
    for student in ("fay", "gil"):
        words.submit(student, OTHER)
    grade_lab(words.course, LAB, learners=["fay", "gil"])
    give_points(words.course, LAB, "fay", "cache-state", 0.5, "half of it")
    (fay, gil) = grade_lab(words.course, LAB, learners=["fay", "gil"], rerun=True)
    assert words.state("fay") == (0.5, False) and (fay.points, fay.review) == (1.5, [])
    assert words.state("gil") == (0.0, True) and gil.review and gil.points == 1
    assert grade_lab(words.course, LAB, learners=["fay"])[0].points == 1.5, "kept rows say it as well"

    words.submit("fay", GOOD)
    (fay,) = grade_lab(words.course, LAB, learners=["fay"])
    assert words.state("fay") == (2.0, False) and fay.points == 3
    assert fay.notes == ["cache-state: the 0.5 points by hand were for an earlier answer: taken back"]
    words.submit("fay", OTHER)
    grade_lab(words.course, LAB, learners=["fay"])
    assert words.state("fay") == (0.5, False), "the same answer has the same decision"


def test_points_are_given_for_what_was_graded_and_not_for_what_came_since(words):
    words.submit("hal", OTHER)
    grade_lab(words.course, LAB, learners=["hal"])
    words.submit("hal", GOOD)
    assert {slot.text for slot in open_slots(words.course, LAB) if slot.learner == "hal"} == {OTHER}
    give_points(words.course, LAB, "hal", "cache-state", 0.5)
    grade_lab(words.course, LAB, learners=["hal"])
    assert words.state("hal") == (2.0, False)


def test_points_by_hand_that_nothing_explains_wait_for_a_person(words):
    """Given in formgrader, or by an inferlab that kept no decision: they stand, and are asked about."""
    words.submit("ivy", OTHER)
    grade_lab(words.course, LAB, learners=["ivy"])
    with Gradebook(words.db) as gradebook:
        grade = gradebook.find_grade("check-cache-state", LAB, LAB, "ivy")
        grade.manual_score, grade.needs_manual_grade = 0.5, False
        gradebook.db.commit()
    words.submit("ivy", GOOD)
    (row,) = grade_lab(words.course, LAB, learners=["ivy"])
    assert (row.points, row.review) == (1.5, [f"cache-state: {BY_HAND}"])
    assert [item["why"] for item in to_review(words.course, LAB) if item["learner"] == "ivy"] == [[BY_HAND]]
    give_points(words.course, LAB, "ivy", "cache-state", 0.5)
    (row,) = grade_lab(words.course, LAB, learners=["ivy"])
    assert (row.points, row.review) == (1.5, [])


def test_grouping_does_not_depend_on_the_order_of_slots():
    slots = [Open(f"s{i}", "check-a", 1.0, text, str(hash(text) * 0 + i)) for i, text in enumerate((UNCLEAR, OTHER, ALIKE, GOOD))]
    assert [g.learners for g in groups(slots)] == [g.learners for g in groups(reversed(slots))]


def test_a_damaged_decisions_file_is_named(words, tmp_path):
    (tmp_path / "reviews").mkdir()
    (tmp_path / "reviews" / f"{LAB}.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be read as decisions"):
        decisions(tmp_path, LAB)


def test_answers_that_differ_in_a_no_are_not_decided_together():
    told = "The cache keeps the keys and the values of all the tokens that came earlier in the text"
    one, same, other = (Open(name, "check", 2.0, text, text, ("why",), ()) for name, text in (
        ("ada", told + "."), ("bob", told + " so far."), ("eve", told.replace("keeps", "never keeps") + ".")))
    assert sorted(len(group.slots) for group in groups([one, same, other])) == [1, 2]


def test_what_a_learner_wrote_cannot_steer_the_terminal():
    from inferlab.cli import visible

    assert visible("a\x1b[2K\x1b[1Ab\u202ec\x07\tok\nnext \u00e9\u4f60") == "a\ufffd[2K\ufffd[1Ab\ufffdc\ufffd\tok\nnext \u00e9\u4f60"
