"""Checks at home: parts, messages, copies, time limits, and a score that nbgrader reads as a plain float."""

import numpy as np
import pytest
import torch

from inferlab.lab import Check, close, reference
from inferlab.lab.checks import learner


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
        except Exception:  # noqa: BLE001 - what a learner might write
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
    (torch.tensor([float("nan")]), torch.ones(1), "nan"), ({"a": 1}, {"b": 1}, "keys"),
    ("a", "b", "expected"),
])
def test_differences_are_named(got, want, word):
    check = Check("demo", points=1)
    with check.part("x"):
        check.close(got, want)
    assert word in check.parts[0].message


@pytest.mark.parametrize(("got", "want"), [
    (np.bool_(True), True), (torch.tensor(True), True), (np.prod((2, 3)), 6), (torch.tensor([6]), 6),
    (torch.tensor(6), 6),
    (np.float32(0.5), 0.5), (np.array([[0.5]]), 0.5), ([np.int64(1), np.bool_(False)], [1, False]),
    ({"n": np.int8(1)}, {"n": 1}),
    (True, np.bool_(True)), (2, np.int64(2)),
])
def test_whatever_holds_one_number_or_one_boolean_is_accepted_for_it(got, want):
    assert close(got, want)


@pytest.mark.parametrize(("got", "want"), [
    (np.bool_(True), 1), (torch.tensor(True), 1), (np.int64(1), True), (torch.tensor([1, 1]), 1), ("1", 1),
    (np.bool_(False), True),
])
def test_booleans_numbers_and_text_stay_apart(got, want):
    assert not close(got, want)


NUMPY = {"count": np.prod((2, 3)), "share": np.float32(0.5), "on": np.bool_(True), "shape": (np.int64(2), 3)}


def numpy_numbers():
    return NUMPY


def test_what_a_learner_returns_from_numpy_arrives_as_plain_numbers():
    def kinds(check, theirs):
        got = theirs.numpy_numbers()
        assert [type(value) for value in got.values()] == [int, float, bool, tuple]
        assert isinstance(got["shape"][0], int)

    assert run(kinds) == 4.0


@pytest.mark.parametrize("got", [3, 3.0, np.float64(3), torch.tensor(3), torch.tensor([3.0]), np.array(3)])
def test_a_number_may_come_in_many_types(got):
    number = Check("demo", points=1).number(got)
    assert number == 3 and type(number) in (int, float)


@pytest.mark.parametrize("got", [True, np.bool_(True), "3", None, [3], torch.ones(2), float("nan"),
                                 torch.tensor(float("inf"))])
def test_what_is_no_number_is_refused_and_shown(got):
    check = Check("demo", points=1)
    with check.part("x"):
        check.number(got, "return the bytes")
    assert check.parts[0].message.startswith("return the bytes (got ")


def test_numbers_of_an_answer_are_made_plain_where_a_check_asks_for_it():
    answer = {"calls": torch.tensor(3), "shape": (torch.tensor([2]), np.int64(4)), "on": torch.tensor(True),
              "shares": [np.array(0.5), torch.ones(1, 1)], "name": "a",
              "sizes": torch.Size([2]), "rows": torch.arange(2)}
    got = Check("demo", points=1).plain(answer)
    assert [type(got[key]) for key in ("calls", "on")] == [int, bool]
    assert [type(got[key]) for key in ("sizes", "rows")] == [torch.Size, torch.Tensor]
    assert [[*map(type, got[key])] for key in ("shape", "shares")] == [[int, int], [float, float]]
    assert got["shape"] == (2, 4) and got["shares"] == [0.5, 1.0] and got["name"] == "a"


def test_in_a_new_kernel_the_first_message_says_to_run_everything():
    said = run(lambda c, t: t.nobody).check.parts[0].message
    assert said == "`nobody` is not defined yet: run all cells from the top first (Run > Run All Cells)"
    globals()["LEARNER"] = "ada"
    try:
        assert run(lambda c, t: t.nobody).check.parts[0].message.endswith("run the cell that defines it")
    finally:
        del globals()["LEARNER"]
