"""What people and platforms give by mistake: it is said in a sentence, nothing is lost, nothing goes on
silently."""

import json
import zipfile
from types import SimpleNamespace

import pytest

from inferlab.cli import main
from inferlab.commands import FAILED, LOOK
from inferlab.grading.collecting.collect import collect
from inferlab.grading.collecting.overrides import read_times
from inferlab.grading.course import Course, CourseError, course_lock
from inferlab.grading.gradebook.database import Gradebook
from inferlab.grading.gradebook.lateness import read_extensions
from inferlab.grading.reporting.grades import not_graded
from inferlab.grading.roster import Roster
from inferlab.grading.submission.submission import digest_of
from tests.course import LAB


# -- tables ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("text", "said"), [
    ('id,name\nada,"Ada\ngrace,Grace\n', "line 2: .*quotation mark"),
    ('id,name\nada,"Ada\ngrace,"Grace"\n', "line 2: .*quotation mark"),
    ("id,name,ID\nada,Ada,x\n", "two columns 'id'"),
    ("id,name,email\nada,Lovelace, Ada,a@x.org\n", "line 2 has 4 cells for 3 columns"),
    ("", "no column 'id'"), ("sep=;\nid;name\n", "no column 'id'"),
    ("id,name\nada," + "x" * 200_000, "line 2: field larger"),
    ("id,late_days\nada,99999999999999999999\n", "not a number of days"),
], ids=["open", "open and closed below", "twice", "shifted", "nothing", "sep", "long", "days"])
def test_a_roster_that_would_be_misread_is_refused(tmp_path, text, said):
    path = tmp_path / "roster.csv"
    path.write_text(text)
    with pytest.raises(CourseError, match=said):
        Roster.load(path)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"], ids=repr)
@pytest.mark.parametrize("between", [",", ";", "\t"], ids=repr)
def test_every_table_is_read_as_a_spreadsheet_writes_it(tmp_path, between, ends):
    def table(*rows):
        path = tmp_path / "table.csv"
        path.write_text(ends.join(rows).replace(",", between) + ends, "utf-8-sig", newline="")
        return path

    roster = Roster.load(table("ID,Name", "", "ada,Ada Lovelace", ",", "grace,Grace Hopper"))
    assert [one.id for one in roster.learners] == ["ada", "grace"]
    assert set(read_times(table("ID,Time", "Ada Lovelace,2026-01-15T09:00:00Z"), roster)) == {"ada"}
    found = read_extensions(table("id,lab,until,days,reason", f"ada,{LAB},,3,ill"), roster, [LAB])
    assert found["ada", LAB].days == 3


@pytest.mark.parametrize(("text", "said"), [
    ("", "no column 'id'"), ("name,when\nada,2026-01-15T09:00\n", "no column 'id'"),
    ("id,time\nada,2026-01-15T09:00\nAda Lovelace,2026-01-16T09:00\n", "line 3: a second time of ada"),
    ("id,time\nada,2026-01-15\n", "no time of day"), ("id,time\nada,15.1.2026\n", "is not a time"),
    ("id,time\nada,9999-12-31T23:59:59-12:00\n", "the year"),
])
def test_a_list_of_times_that_would_be_misread_is_refused(roster, tmp_path, text, said):
    path = tmp_path / "times.csv"
    path.write_text(text)
    with pytest.raises(CourseError, match=said):
        read_times(path, roster)


@pytest.mark.parametrize(("text", "said"), [
    ("", "no column 'id'"), (f'id,lab,days,reason\nada,{LAB},3,"ill\ngrace,{LAB},3,\n', "quotation mark"),
    (f"id,lab,until\nada,{LAB},2026-01-15\n", "line 2: .*no time of day"),
    (f"id,lab,until,days\nada,{LAB},9999-12-31T23:59:59Z,500\n", "line 2: the year"),
])
def test_extensions_that_would_be_misread_are_refused(roster, tmp_path, text, said):
    path = tmp_path / "extensions.csv"
    path.write_text(text)
    with pytest.raises(CourseError, match=said):
        read_extensions(path, roster, [LAB])


@pytest.mark.parametrize(("setting", "said"), [
    (f"[labs.{LAB}]\ndue = 0001-01-01T00:00:00+14:00", "the year"),
    (f"[labs.{LAB}]\ndue = 0026-01-15T23:59:00Z", "the year"),
    ("[late]\nfree_days = 99999999999", "free_days is 99999999999"),
])
def test_a_setting_that_leaves_the_calendar_is_refused(course, setting, said):
    (course.root / "course.toml").write_text(setting + "\n")
    with pytest.raises(CourseError, match=said):
        Course.open(course.root)


# -- files -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("packed", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_one_damaged_member_of_a_zip_stops_no_other(course, roster, inbox, solved, packed):
    path = inbox / "in.zip"
    with zipfile.ZipFile(path, "w", packed) as archive:
        for who in ("ada", "grace"):
            archive.writestr(f"{who}.ipynb", json.dumps(solved(who)))
    data = bytearray(path.read_bytes())
    data[60:90] = bytes(range(100, 130))
    path.write_bytes(data)
    report = collect(course, [path], roster)
    assert [line.status for line in report.lines] == ["held", "collected"]
    assert "damaged" in report.lines[0].notes[0]


def test_a_zip_whose_member_has_no_name_is_held(course, roster, inbox, monkeypatch, solved):
    path = inbox / "in.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", "x")
    path.write_bytes(path.read_bytes().replace(b"\x01\0\0\0x", b"\0\0\0\0x"))  # the names' lengths
    report = collect(course, [path], roster)
    assert {line.status for line in report.lines} <= {"held"}


@pytest.mark.parametrize("value", ["!!bool x", '!!int ""', "!!timestamp x", "0x" + "f" * 9000,
                                   "0001-01-01 00:00:00 +14:00"])
def test_a_platforms_list_with_an_impossible_value_stops_no_file(course, roster, inbox, solved, value):
    path = inbox / "in.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("submission_metadata.yml", "submission_1:\n  :submitters:\n  - :name: Grace Hopper\n"
                                                    f"    :sid: {value}\n  :created_at: {value}\n")
        archive.writestr("a/ada.ipynb", json.dumps(solved("ada")))
    report = collect(course, [path], roster)
    assert [line.status for line in report.lines if line.file.endswith("ada.ipynb")] == ["collected"]


def test_what_a_full_disk_has_cut_short_is_kept_whole_the_next_time(course, roster, hand_in, solved):
    hand_in({"a.ipynb": solved("ada")})
    kept, = (course.root / "collected" / LAB / "ada").glob("*.ipynb")
    whole = kept.read_bytes()
    kept.write_bytes(b"")
    hand_in({})
    assert kept.read_bytes() == whole


def test_files_of_one_time_are_not_called_later(course, roster, inbox, solved):
    with zipfile.ZipFile(inbox / "in.zip", "w") as archive:
        for name in ("old/a.ipynb", "new/a.ipynb"):
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 2, 3, 4, 6)),
                             json.dumps(solved("ada") | {"nbformat_minor": len(name) % 2 + 4, "x": name}))
    notes = [note for line in collect(course, [inbox / "in.zip"], roster).lines for note in line.notes]
    assert any("came at the same time" in note for note in notes), notes


@pytest.mark.parametrize("note", ["[]", "null", '{"sha256": "x"}'])
def test_an_unreadable_note_on_what_was_placed_counts_as_none(course, hand_in, solved, note):
    hand_in({"a.ipynb": solved("ada")})
    course.placed("ada", LAB).write_text(note)
    assert hand_in({}).lines[0].status == "collected"


def test_two_that_collect_at_once(course, roster, inbox):
    with (course_lock(course.results / "collecting", RuntimeError()),
          pytest.raises(CourseError, match="another `inferlab collect`")):
        collect(course, [inbox], roster)


def test_an_empty_download_needs_an_eye(course, inbox, capsys):
    assert main(["collect", "--course", str(course.root), str(inbox)]) == LOOK
    assert "no file" in capsys.readouterr().out


# -- what is written ---------------------------------------------------------------------------------
@pytest.mark.parametrize("arguments", [
    ("export", "--to", "gradebook.db"), ("export", LAB, "--for", "canvas", "--to", "roster/roster.csv"),
    ("export", "--to", "roster"), ("gradescope", LAB, "course.toml"), ("export", "--to", "course.toml"),
], ids=" ".join)
def test_no_command_writes_over_the_course(course, arguments, monkeypatch, capsys):
    monkeypatch.chdir(course.root)
    (course.root / "gradebook.db").touch()
    before = {path: path.read_bytes() for path in course.root.rglob("*")
              if path.is_file() and path.name != "gradebook.db"}
    assert main(list(arguments)) == FAILED
    assert "name" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in before} == before
    assert (course.root / "gradebook.db").read_bytes() == b""


@pytest.mark.parametrize(("url", "said"), [
    ("nonsense", "address cannot be used"), ("foo://x", "address cannot be used"),
    ("oracle://x", "address cannot be used: No module")])
def test_an_address_that_is_no_gradebook(url, said):
    with pytest.raises(CourseError, match=said):
        Gradebook(url)


def test_a_gradebook_that_is_no_database(course, capsys):
    (course.root / "gradebook.db").write_bytes(b"no database" * 500)
    assert main(["export", "--course", str(course.root)]) == FAILED
    err = capsys.readouterr().err
    assert err.startswith("inferlab export: the gradebook cannot be used: file is not a database")
    assert "Traceback" not in err


def test_a_later_file_is_not_graded_by_the_marks_of_the_earlier(course, hand_in, solved):
    hand_in({"a.ipynb": solved("ada")})
    graded = [SimpleNamespace(learner="ada", lab=LAB)]
    path = course.autograded("ada", LAB)
    path.parent.mkdir(parents=True)
    digest = digest_of(course.submitted("ada", LAB).read_bytes())
    path.write_text(json.dumps({"metadata": {"inferlab_grading": {"file": digest}}, "cells": []}))
    assert not_graded(course, graded) == []
    course.submitted("ada", LAB).write_text("{}")
    assert not_graded(course, graded) == [("ada", LAB)]


def test_what_lies_there_under_another_name_is_not_graded(course):
    other = course.submitted("ada", LAB).with_name(f"my {LAB}.ipynb")
    other.parent.mkdir(parents=True)
    other.write_text("{}")
    assert not_graded(course, []) == [("ada", LAB)]
