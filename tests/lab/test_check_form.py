"""Parts that look at the form only, and outcomes that are made inside a part."""

from inferlab.lab import Check
from inferlab.lab.checks.checklist import total
from inferlab.lab.checks.learner import Missing
from inferlab.lab.explain.outcome import award, deny, review


def written(check, passes):
    with check.part("something is written", weight=0):
        check.true(passes, "the field is empty")


def test_the_form_shows_at_home_and_earns_nothing_beside_other_parts():
    home = Check("words", points=2)
    written(home, True)
    assert home.score() == 2.0
    graded = Check("words", points=2)
    written(graded, True)
    graded.slot(deny("not what the run shows"))
    assert graded.score() == 0.0


def test_a_form_promises_no_points_and_is_one_line():
    check = Check("words", points=2)
    written(check, True)
    assert check.score().report() == "words: filled in, graded later"
    assert check.score()._repr_html_().endswith("<strong>words: filled in, graded later</strong></div>")
    check = Check("words", points=2)
    written(check, False)
    assert check.score().report() == "words: not filled in yet: the field is empty"
    check = Check("words", points=2)
    written(check, True)
    check.slot(award("yes"))
    assert check.score().report().startswith("words: 2 of 2 points\n")


def test_points_of_hidden_parts_are_never_shown_as_earned():
    check = Check("step", points=3)
    with check.part("keeps the shape"):
        pass
    score = check.score(later=2)
    assert score == 3.0, "nbgrader validate asks whether all that is visible passes"
    for shown in (score.report(), score._repr_html_()):
        assert "step: visible part passed, 2 more parts after you hand in" in shown
        assert "points" not in shown
    with check.part("is right"):
        check.fail("no")
    assert check.score(later=1).told.headline == ("step: 1 of 2 visible parts passed, 1 more part after "
                                                  "you hand in")
    assert check.score().told.headline == "step: 1.5 of 3 points"


def test_the_total_counts_parts_and_promises_no_points():
    step, words = Check("step", points=3), Check("words", points=2)
    with step.part("keeps the shape"):
        pass
    written(words, True)
    told = total("lab", [step.score(later=2).told, words.score().told])
    assert told == ("lab: 1 of 1 visible part passed; 2 more parts and 1 written answer are graded after "
                    "you hand in")


def test_an_empty_field_shows_as_missing_at_home():
    check = Check("words", points=2)
    written(check, False)
    assert check.score() == 0.0


def test_an_outcome_may_be_made_inside_the_part():
    check = Check("words", points=2)
    check.slot(lambda: award("yes"), "the shape")
    assert check.score() == 2.0 and [part.name for part in check.parts] == ["the shape"]


def test_an_explanation_that_is_not_there_is_zero_and_no_error():
    def absent():
        raise Missing("not written yet")

    check = Check("words", points=2)
    check.slot(absent, "the shape")
    assert check.score() == 0.0 and check.parts[0].state == "missing" and not check.needs_review


def test_a_fault_of_the_rubric_is_flagged_for_the_instructor():
    check = Check("words", points=2)
    check.slot(lambda: {}["state"], "the state")
    assert check.score() == 0.0 and check.needs_review and "KeyError" in check.flags[0]


def test_a_review_made_inside_the_part_stays_a_review():
    check = Check("words", points=2)
    check.slot(lambda: review("cannot tell"), "the state")
    assert check.score() == 0.0 and check.needs_review
