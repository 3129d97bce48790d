"""Parts that look at the form only, and outcomes that are made inside a part."""

from inferlab.lab import Check
from inferlab.lab.explain.outcome import award, deny, review
from inferlab.lab.learner import Missing


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


def test_a_form_promises_no_points():
    check = Check("words", points=2)
    written(check, True)
    assert check.form_only
    assert check.score().report().startswith("words: filled in, graded later\n")
    assert "<strong>words: filled in, graded later</strong>" in check.score()._repr_html_()
    check = Check("words", points=2)
    written(check, False)
    assert check.score().report().startswith("words: not filled in yet\n")
    check = Check("words", points=2)
    written(check, True)
    check.slot(award("yes"))
    assert not check.form_only and check.score().report().startswith("words: 2 of 2 points\n")


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
