"""Similar answers: groups for a person to look at, without what the text leads everybody to."""

import pytest

from inferlab.grading.authoring.build import write_notebook
from inferlab.grading.demo import fill_in, solved
from inferlab.grading.reporting.similar import AlikeAnswers, essence, similar
from tests.course import LAB

ANSWERS = {
    "ada": """def fold(step, items):
    result = 0
    for thing in items:
        result = step(result, thing)
    return result""",
    "grace": """def fold(step, items):
    # my own work
    t = 0
    for i in items:
        t = step(t,  i)

    return t""",
    "olga": """def fold(step, items):
    import functools
    return functools.reduce(lambda total, one: step(total, one), items, 0)""",
    "li": """def fold(step, items):
    out = None
    while items:
        out = step(out or 0, items.pop(0))
    return out if out else 0""",
}


def put(course, learner, notebook):
    write_notebook(notebook, course.root / "autograded" / learner / LAB / f"{LAB}.ipynb")


def autograded(course, answers):
    """Put a notebook with this `fold` where grading leaves one, for each learner."""
    for learner, text in answers.items():
        put(course, learner, solved(course, LAB, learner, {"fold": text}))


def test_similar_answers_are_found_through_new_names_comments_and_layout(course):
    autograded(course, ANSWERS)
    (group,) = [group for group in similar(course, LAB) if group.exercise == "fold"]
    assert group.learners == ("ada", "grace") and group.likeness > 0.95


def test_a_group_is_named_once_with_everybody_in_it(course):
    again = {name: ANSWERS["li"].replace("out", new) for name, new in (("jose", "x"), ("zoe", "acc"))}
    autograded(course, ANSWERS | again)
    found = [group for group in similar(course, LAB) if group.exercise == "fold"]
    assert sorted(group.learners for group in found) == [("ada", "grace"), ("jose", "li", "zoe")]


def test_what_most_people_write_and_what_is_short_is_no_finding(course):
    everybody = {name: ANSWERS["ada"] for name in ("ada", "grace", "li", "jose", "zoe")}
    autograded(course, everybody | {"olga": ANSWERS["olga"]})
    assert similar(course, LAB) == []  # `double` is one line that all six share, too


def test_an_exercise_that_was_left_untouched_is_no_answer(course):
    for learner in ("olga", "li"):
        put(course, learner, fill_in(course, LAB, learner, {}))
    autograded(course, {name: ANSWERS[name] for name in ("ada", "grace")})
    assert similar(course, LAB) == [AlikeAnswers("fold", ("ada", "grace"), 1.0)]


@pytest.mark.parametrize("source", ["", "# only a comment", "\n\n"])
def test_nothing_has_no_essence(source):
    assert essence(source) == ""


def test_the_essence_of_what_is_not_python_is_its_words():
    assert essence("State: the  TOTAL\n (unclosed") == "state: the total (unclosed"
    assert essence("x = f(x) + y") == "v0 = f ( v0 ) + v1"
