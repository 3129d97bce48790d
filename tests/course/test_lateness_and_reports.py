"""Deadlines, extensions and late days as data; a gradebook that a spreadsheet can read."""

import os
import re
from datetime import UTC, datetime, timedelta

import nbformat
import pytest

from inferlab.grading.course import Course, CourseError, LatePolicy
from inferlab.grading.gradebook.lateness import Extension, allowances, read_extensions, received_times
from inferlab.grading.gradebook.record import share_lost
from inferlab.grading.reporting import class_report
from inferlab.grading.reporting.grades import Grade, export_rows, write_csv
from inferlab.grading.roster import Learner, Roster
from tests.course import LAB

DUE = {"lab01": datetime(2027, 1, 10, 12, tzinfo=UTC), "lab02": datetime(2027, 1, 20, 12, tzinfo=UTC)}
POLICY = LatePolicy(per_day=0.1, at_most=0.5, free_days=0)
CLASS = Roster.of([Learner("ada", "Ada Lovelace"), Learner("grace", "Grace Hopper", late_days=3)])


def one(lab, learner, hours, extensions=None, policy=POLICY):
    received = {(learner, lab): DUE[lab] + timedelta(hours=hours)}
    return allowances(DUE, policy, received, extensions or {}, CLASS)[learner, lab]


@pytest.mark.parametrize(("hours", "share"), [(-1, 0), (0, 0), (0.01, 0.1), (24, 0.1), (25, 0.2),
                                              (1000, 0.5)])
def test_each_started_day_costs_up_to_the_most(hours, share):
    assert one("lab01", "ada", hours).share == pytest.approx(share)


def test_an_extension_moves_the_deadline_and_never_back():
    given = {("ada", "lab01"): Extension(days=2)}
    assert one("lab01", "ada", 47, given).share == 0
    assert one("lab01", "ada", 49, given).share == pytest.approx(0.1)
    until = {("ada", "lab01"): Extension(until=datetime(2027, 1, 9, tzinfo=UTC))}
    assert one("lab01", "ada", 0, until).deadline == DUE["lab01"]


def test_free_days_are_used_in_order_of_deadlines_until_they_are_gone():
    received = {("grace", "lab02"): DUE["lab02"] + timedelta(days=1, hours=3),
                ("grace", "lab01"): DUE["lab01"] + timedelta(days=2)}
    found = allowances(DUE, POLICY, received, {}, CLASS)
    assert (found["grace", "lab01"].free_days, found["grace", "lab01"].share) == (2, 0)
    assert (found["grace", "lab02"].free_days, found["grace", "lab02"].share) == (1, pytest.approx(0.1))
    assert allowances(DUE, POLICY, dict(reversed(received.items())), {}, CLASS) == found


def test_no_policy_loses_nothing():
    assert share_lost(LatePolicy(), timedelta(days=9)) == 0


@pytest.mark.parametrize(("line", "message"), [
    ("nobody,lab01,,2,", "not in the roster"), ("ada,lab09,,2,", "no lab called"),
    ("ada,lab01,,,", "neither until nor days"),
    ("ada,lab01,soon,,", "line 2"), ("ada,lab01,,-1,", "-1 days"),
    ("ada,lab01,,1,\nADA,lab01,,2,", "second extension"),
])
def test_an_extension_that_cannot_be_used_names_its_line(tmp_path, line, message):
    path = tmp_path / "extensions.csv"
    path.write_text("id,lab,until,days,reason\n" + line + "\n")
    with pytest.raises(CourseError, match=message):
        read_extensions(path, CLASS, list(DUE))


def test_extensions_by_any_name_with_any_time_zone(tmp_path):
    path = tmp_path / "extensions.csv"
    path.write_text("id,lab,until,days,reason\nAda Lovelace,lab01,2027-01-12T12:00:00+01:00,,ill\n")
    assert read_extensions(path, CLASS, list(DUE)) == {("ada", "lab01"): Extension(datetime(2027, 1, 12, 11,
                                                                                            tzinfo=UTC))}
    assert read_extensions(tmp_path / "none.csv", CLASS, list(DUE)) == {}


@pytest.mark.parametrize(("text", "message"), [
    ('[labs.lab90-fixture]\ndue = "soon"', "labs.lab90-fixture.due must be a date and time"),
    ("[labs.lab90-fixture]\ndue = 2027-01-15", "labs.lab90-fixture.due must be a date and time"),
    ("[labs.lab90-fixtur]\ndue = "
     "2027-01-15T12:00:00Z", "no lab called 'lab90-fixtur'; there is: lab90-fixture"),
    ("[labs.lab90-fixture]\ndeu = "
     "2027-01-15T12:00:00Z", "labs.lab90-fixture.deu is not a setting; there is: due"),
    ("[late]\nper_days = 0.1", "late.per_days is not a setting; there is: per_day, at_most, free_days"),
    ("[late]\nper_day = 10", "late.per_day is 10; it must be a share from 0 to 1"),
    ('[late]\nper_day = "0.1"', "late.per_day must be a share"),
    ("[late]\nfree_days = 1.5", "late.free_days must be a whole number from 0"),
    ("[late]\nfree_days = -1", "late.free_days is -1"),
    ("[deadlines]\nlab90 = 1", "deadlines is not a setting"),
    ("[late]\nper_day = 0.1\nurl = "
     "'sqlite:///x'", "late.url is not a setting (it belongs below [gradebook], is that line still a "
                      "comment?)"),
    ("labs = 3", "labs must be a table"), ("[labs]\nlab90-fixture = 3", "labs.lab90-fixture must be a table"),
    ("late = true", "late must be a table"), ("x = \xe9", "course.toml is not UTF-8"), ("=", "course.toml: "),
])
def test_a_setting_that_cannot_be_used_is_said(course, text, message):
    (course.root / "course.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(CourseError, match=re.escape(message)):
        Course.open(course.root)


@pytest.mark.parametrize("kind", ["source", "release"])
def test_a_lab_that_is_only_built_may_have_a_deadline(course, kind):
    (course.root / kind / "lab91-built").mkdir()
    (course.root / "course.toml").write_text("[labs.lab91-built]\ndue = 2027-01-15T12:00:00\n[late]\n"
                                             "per_day = 1\n")
    assert Course.open(course.root).due == {"lab91-built": datetime(2027, 1, 15, 12, tzinfo=UTC)}


@pytest.mark.parametrize("text", ["2026-01-14 10:00:00.000000 UTC", "2026-01-14 10:00:00 UTC\n",
                                  "2026-01-14T11:00:00+01:00",
                                  "2026-01-14 10:00", "\ufeff2026-01-14 10:00:00 UTC"])
def test_a_time_written_by_hand_is_read_as_nbgrader_reads_it(course, text):
    path = course.submitted("ada", LAB).parent / "timestamp.txt"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    assert received_times(course) == ({("ada", LAB): datetime(2026, 1, 14, 10, tzinfo=UTC)}, [])
    path.write_text("")
    assert received_times(course) == ({}, [])
    path.write_text("on Monday, I think")
    times, (problem,) = received_times(course)
    assert not times and "ada/lab90-fixture/timestamp.txt: 'on Monday, I think' is not a time" in problem
    path.unlink()
    os.mkfifo(path)
    times, (problem,) = received_times(course)
    assert not times and "a named pipe, not a file" in problem


@pytest.mark.parametrize(("text", "message"), [
    ("name\nAda\n", "no column 'id'"), ("id,name\nada,A\nADA,B\n", "occurs twice"),
    ("id,name\n../x,A\n", "cannot be an id"),
    ("id,name\n,A\n", "no id"), ("id,late_days\nada,many\n", "not a number"),
])
def test_a_roster_that_cannot_be_used_is_said(tmp_path, text, message):
    path = tmp_path / "roster.csv"
    path.write_text(text)
    with pytest.raises(CourseError, match=message):
        Roster.load(path)


def test_a_roster_from_a_spreadsheet(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_bytes("\ufeffID;Name;Aliases\r\n\r\nada;Ada Lovelace;\r\nb2;Lee, Ann;Annie; \r\n".encode())
    roster = Roster.load(path)
    assert roster.resolve("lovelace, ada") == "ada"
    assert roster.resolve("ANNIE") == "b2"
    same = Roster.of([Learner("a1", "Ann Lee"), Learner("a2", "Ann Lee")])
    assert same.resolve("Ann Lee") is None
    assert same.namesakes("ann lee") == ["a1", "a2"]


def test_a_name_cannot_run_as_a_formula_in_a_spreadsheet(course, tmp_path):
    path = tmp_path / "grades.csv"
    write_csv(export_rows(course, [Grade("=cmd()", LAB, 1.0, 0.0, 1.0, 2.0, "", False)]), path)
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert "\n'=cmd()," in path.read_text("utf-8-sig")


def test_an_export_has_names_and_addresses_from_the_roster(course):
    (row,) = export_rows(course, [Grade("jose", LAB, 1.0, 0.0, 1.0, 2.0, "", False)])
    assert (row["name"], row["email"], row["notes"]) == ("José Núñez", "jose@example.org", "")


def test_a_demo_folder_is_only_replaced_if_a_demo_made_it(course, tmp_path):
    from inferlab.grading.demo import demo

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(CourseError, match="no demonstration made it"):
        demo(course, lab=LAB, folder=tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").exists()


@pytest.mark.timeout(600)
def test_the_demonstration(course, tmp_path):
    """The whole path with a real traced picture, as `make demo` runs it."""
    import shutil

    from inferlab.grading.demo import demo
    from tests import ROOT

    shutil.copy(ROOT / "nbgrader_config.py", course.root)
    said = []
    result = demo(course, lab=LAB, folder=tmp_path / "demo", say=said.append)
    assert result.right, result.text
    assert {g.learner: g.total for g in result.grades} == {"ada": 10, "grace": 6, "blank": 0}
    assert (tmp_path / "demo" / "picture.png").stat().st_size > 1000
    assert "scheduler.step" in result.table
    assert nbformat.read(tmp_path / "demo" / "release" / LAB / f"{LAB}.ipynb", as_version=4)
    assert len([text for text in said if "step" in text]) >= 10


def test_the_gradebook_may_be_elsewhere(course):
    assert course.gradebook_url == f"sqlite:///{course.root}/gradebook.db"
    (course.root / "course.toml").write_text('[gradebook]\nurl = "sqlite:////tmp/elsewhere.db"\n')
    assert Course.open(course.root).gradebook_url == "sqlite:////tmp/elsewhere.db"


def test_a_report_counts_no_message_of_a_right_answer():
    parts = [{"message": "you named both axes", "mistake": False, "fraction": 1.0},
             {"message": "the shape is missing", "mistake": False, "fraction": 0.5},
             {"message": "you squared", "mistake": True, "fraction": 0.0}]
    row = class_report._question("double", [{"score": 1.0, "points": 4.0, "parts": parts}])
    assert row["mistakes"] == [["you squared", 1]] and row["messages"] == [["the shape is missing", 1]]
