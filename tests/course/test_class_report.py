"""The class at a glance: who handed in, points by exercise, named mistakes, discrimination."""

import csv
import html.parser

import pytest

from inferlab.grading.reporting.class_report import (
    ClassReport,
    Exercise,
    Work,
    class_page,
    class_report,
    discrimination,
    write_class_report,
)
from tests.course import LAB


@pytest.mark.parametrize(("own", "rest", "found"), [
    ([0, 1] * 5, [0, 4] * 5, 1.0), ([1, 0] * 5, [0, 4] * 5, -1.0), ([1] * 10, list(range(10)), None),
    (list(range(10)), [3] * 10, None), ([0, 1, 0], [0, 1, 0], None),
])
def test_discrimination_is_the_correlation_with_the_rest_where_that_says_something(own, rest, found):
    assert discrimination(own, rest) == found


REPORT = ClassReport([LAB], [
    Work("ada", "Ada <b>Lovelace</b>", LAB, "graded", 8.0, 10.0, "2026-01-10T12:00:00+00:00"),
    Work("=cmd()", "", LAB, "handed in"), Work("olga", "Ольга", LAB, "missing"),
], [Exercise(LAB, "double", 4.0, 12, 1.0, 2, 9, 0.1, {"you squared <i>it</i>": 7}),
    Exercise(LAB, "fold", 4.0, 12, 3.0, 9, 1, 0.8), Exercise(LAB, "few", 2.0, 3, 1.0, 1, 1, None)])


def test_the_weakest_exercises_are_those_below_the_line():
    assert [one.name for one in REPORT.weakest] == ["double"]


def test_the_page_shows_everybody_and_runs_nothing_that_anybody_wrote():
    page = class_page(REPORT)
    assert "Ada &lt;b&gt;Lovelace&lt;/b&gt;" in page and "you squared &lt;i&gt;it&lt;/i&gt;: 7" in page
    assert "8 of 10" in page and "handed in" in page and "missing" in page and "1 of 4" in page
    tags = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attributes: tags.append(tag)
    parser.feed(page)
    assert {"script", "link", "img", "iframe"} & set(tags) == set()
    assert tags.count("svg") == 4


def test_the_tables_have_a_line_for_each_fact(tmp_path):
    paths = write_class_report(REPORT, tmp_path / "out")
    rows = {path.stem: list(csv.reader(path.read_text("utf-8-sig").splitlines())) for path in paths[1:]}
    assert rows["learners"][1:] == [
        ["ada", "Ada <b>Lovelace</b>", LAB, "graded", "8.0", "10.0", "2026-01-10T12:00:00+00:00"],
        ["'=cmd()", "", LAB, "handed in", "", "", ""], ["olga", "Ольга", LAB, "missing", "", "", ""]]
    assert rows["exercises"][1] == [LAB, "double", "4.0", "12", "1.0", "2", "9", "0.1"]
    assert rows["mistakes"][1:] == [[LAB, "double", "you squared <i>it</i>", "7"]]


def test_a_course_that_nobody_has_handed_in_to(course):
    report = class_report(course)
    assert (report.labs, report.work, report.exercises) == ([], [], [])
    assert "Nobody has handed in anything yet" in class_page(report)
    report = class_report(course, [LAB])
    assert [one.state for one in report.work] == ["missing"] * 5
