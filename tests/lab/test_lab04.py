"""Lab 04: every variant of its run card can be solved, and the handbook's numbers are the ones that its code makes."""

from functools import partial
from pathlib import Path

import pytest
from labtexts import cell_of, figure_code

from inferlab.lab import setup
from inferlab.lab.check import results
from inferlab.lab.curves import curve_panels
from inferlab.lab.identity import variant
from inferlab.lab.unfinished import when_written

ROOT = Path(__file__).resolve().parents[2]
LAB = "lab04-scheduler-loop"
cell = partial(cell_of, LAB)


@pytest.mark.parametrize("number", range(8))
def test_the_run_card_of_every_variant_is_solved_by_the_same_arithmetic(number, monkeypatch):
    learner = next(name for name in (f"learner {i}" for i in range(200)) if variant(name, LAB, 8) == number)
    lab = setup.Lab(LAB, learner, "bundled", "cpu", 0)
    monkeypatch.setattr(setup, "_current", lab)
    namespace = {"lab": lab}
    for source in (cell(begins="v = lab.variant"), cell(exercise="run-card"), cell(check="run-card")):
        exec(source, namespace)  # noqa: S102 - the lab's own cells
    assert float(results()["run-card"]) == 3.0


def test_the_handbook_says_the_numbers_that_its_code_makes():
    scheduler_loop = figure_code("scheduler_loop")
    text = (ROOT / "handbook" / f"{LAB}.md").read_text("utf-8")
    missing = {name: value for name, value in scheduler_loop.numbers().items() if value not in text}
    assert not missing


def test_the_handbook_section_has_the_length_that_was_agreed():
    assert 600 <= len((ROOT / "handbook" / f"{LAB}.md").read_text("utf-8").split()) <= 1200


def test_a_demonstration_waits_for_its_exercise_and_for_nothing_else(capsys):
    with when_written("denoise"):
        raise NotImplementedError
    assert "`denoise`" in capsys.readouterr().out
    with pytest.raises(ZeroDivisionError), when_written("denoise"):
        raise ZeroDivisionError


def test_curves_share_one_axis_and_refuse_what_they_cannot_draw():
    figure = curve_panels({"steps": {"a": ((2, 4), (0.1, 0.05))}, "calls": {"a": ((3, 7), (0.1, 0.05))}}, title="t", ylabel="y")
    assert [axis.get_xlabel() for axis in figure.axes] == ["steps", "calls"]
    with pytest.raises(ValueError, match="2 x values and 1 y values"):
        curve_panels({"steps": {"a": ((2, 4), (0.1,))}}, title="t", ylabel="y")
    with pytest.raises(ValueError, match="panels"):
        curve_panels({}, title="t", ylabel="y")
