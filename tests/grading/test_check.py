"""Checks at home: parts, messages, copies, time limits, and a score that nbgrader reads as a plain float."""

import pytest
import torch

from inferlab.lab import Check, close, learner, reference


def half(x):
    return x / 2


def unfinished(x):
    raise NotImplementedError


def spoils(x):
    x += 1
    return x


def endless(x):
    while True:
        try:
            while True:
                pass
        except Exception:  # noqa: BLE001, S110 - what a learner might write
            pass


def swallows(unet):
    try:
        unet()
    except Exception:  # noqa: BLE001 - what a learner might write
        return "fine"


def wrong_type(x):
    return "two"


def run(*bodies, points=4):
    check = Check("demo", points=points)
    check._provider.namespace = globals()
    for body in bodies:
        with check.part(body.__name__):
            body(check, check.learner)
    return check.score()


def test_full_partial_and_no_marks():
    def right(check, theirs):
        check.close(theirs.half(torch.ones(2)), torch.full((2,), 0.5))

    def wrong(check, theirs):
        check.close(theirs.half(torch.ones(2)), torch.ones(2))

    assert run(right) == 4.0
    assert run(right, wrong) == 2.0
    assert run(wrong) == 0.0


def test_the_score_is_a_plain_float_to_nbgrader():
    from IPython.core.formatters import DisplayFormatter
    from nbformat.v4 import new_output
    from nbgrader.utils import get_partial_grade

    score = run(lambda c, t: c.true(True, ""), points=3)
    data, _ = DisplayFormatter().format(score)
    assert data["text/plain"] == "3.0"
    assert get_partial_grade(new_output("execute_result", data=data), 3) == 3.0


def test_unfinished_and_undefined_are_not_errors():
    score = run(lambda c, t: t.unfinished(1), lambda c, t: t.nobody)
    assert score == 0.0
    assert [p.state for p in score.check.parts] == ["missing", "missing"]
    assert score.check.parts[0].message == "not done yet"


def test_named_mistakes_are_said():
    score = run(lambda c, t: c.mistake("you doubled", when=close(t.half(2.0), 1.0)))
    assert (score.check.parts[0].message, score.check.parts[0].mistake) == ("you doubled", True)


def test_arguments_are_copies():
    x = torch.zeros(2)
    run(lambda c, t: t.spoils(x))
    assert torch.equal(x, torch.zeros(2))


def test_a_call_ends_in_time(monkeypatch):
    monkeypatch.setattr(learner, "CALL_SECONDS", 0.3)
    score = run(lambda c, t: t.endless(1))
    assert "was stopped after 0.3 seconds" in score.check.parts[0].message


def test_what_the_checks_function_says_counts():
    def fails(check, theirs):
        theirs.swallows(lambda: check.fail("the model was called without latents"))

    assert run(fails).check.parts[0].message == "the model was called without latents"


def test_data_of_the_wrong_type_fails_the_part_and_asks_nobody():
    score = run(lambda c, t: t.wrong_type(1).shape)
    assert score.check.parts[0].state == "failed"
    assert not score.check.needs_review


def test_a_fault_of_the_test_asks_a_person():
    score = run(lambda c, t: 1 / 0)
    assert (float(score), score.check.needs_review) == (0.0, True)
    assert "ZeroDivisionError" in score.check.flags[0]


def test_the_report_escapes_what_learners_say():
    score = run(lambda c, t: c.fail("<script>alert(1)</script>"))
    assert "<script>" not in score._repr_html_()


COMPUTED = iter(range(100))  # no data, so no part of what the reference's value depends on


@reference
def table(n):
    next(COMPUTED)
    return torch.arange(n)


def test_references_are_computed_once_and_are_fresh_copies():
    first = table(3)
    first += 5
    assert torch.equal(table(3), torch.arange(3))
    assert next(COMPUTED) == 1


@pytest.mark.parametrize(("got", "want", "word"), [
    (torch.ones(2), torch.ones(3), "shape"), ([1], (1,), "tuple"), (1, True, "True"), (None, 1, "number"),
    (torch.tensor([float("nan")]), torch.ones(1), "nan"), ({"a": 1}, {"b": 1}, "keys"), ("a", "b", "expected"),
])
def test_differences_are_named(got, want, word):
    check = Check("demo", points=1)
    with check.part("x"):
        check.close(got, want)
    assert word in check.parts[0].message
