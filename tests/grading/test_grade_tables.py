"""Grades in the form that each platform imports, and pages of feedback in the zip that it takes back.

The tables and names are written by hand after the public documentation and source that
`inferlab.grading.platforms` cites.
"""

import csv
import io
import json
import zipfile

import nbformat
import pytest

from inferlab.grading.course import Course, CourseError
from inferlab.grading.reporting.feedback_zip import write_zip
from inferlab.grading.reporting.grade_tables import NO_HAND_IN, Source, filled_table, known_by, new_table
from inferlab.grading.reporting.grades import Grade
from inferlab.grading.roster import Learner, Roster

LAB = "lab00-tiny"
PEOPLE = Roster.of([
    Learner("ada", "Ada Lovelace", (), "ada@example.org"),
    Learner("jose", "José Núñez", (), "jose@example.org"),
    Learner("li", "李 明", (), "li@example.org"), Learner("u77", "van Rossum, Guido", (), "g@example.org")])
KNOWN = {
    "moodle": {"ada": {"login": "Ada Lovelace", "prefix": "Ada Lovelace_1234_assignsubmission_",
                       "name": "Ada Lovelace", "user": "1234"},
               "jose": {"login": "José Núñez", "prefix": "José Núñez_1235_assignsubmission_",
                        "name": "José Núñez",
                        "user": "1235"}},
    "canvas": {"ada": {"login": "lovelaceada", "prefix": "lovelaceada_LATE_55_9001", "name": "lovelaceada",
                       "user": "55", "number": "9001", "file": "lab00-tiny-1.ipynb"},
               "jose": {"login": "núñezjosé", "prefix": "núñezjosé_56_9002", "name": "núñezjosé",
                        "user": "56",
                        "number": "9002", "file": "Unbenannt.ipynb"}},
    "blackboard": {"ada": {"login": "alovelace", "name": "Lab_alovelace", "time": "2026-01-15-13-30-00"}},
    "gradescope": {"ada": {"login": "4711"}},
}


def grade(learner, total, maximum=8.0):
    return Grade(learner, LAB, total, 0.0, total, maximum, "", False)


GRADES = {"ada": grade("ada", 6.0), "jose": grade("jose", 1.0)}


def source(platform, grades=None, known=None, **options):
    return Source(LAB, platform, grades or GRADES, PEOPLE, KNOWN[platform] if known is None else known,
                  **options)


def rows_of(table, **form):
    return list(csv.reader(io.StringIO(table.data.decode("utf-8-sig")), **form))


def test_moodles_new_worksheet():
    table = new_table(source("moodle"), [])
    assert rows_of(table) == [
        ["Identifier", "Full name", "Email address", "Grade", "Maximum Grade", "Last modified (grade)"],
        ["Participant 1234", "Ada Lovelace", "ada@example.org", "6", "8", "-"],
        ["Participant 1235", "José Núñez", "jose@example.org", "1", "8", "-"]]
    assert table.left_out == {"li": NO_HAND_IN, "u77": NO_HAND_IN}


def test_canvass_new_gradebook():
    table = new_table(source("canvas", column="Lab 0 (812)", out_of=100.0), ["li"])
    assert rows_of(table) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Lab 0 (812)"],
        ["    Points Possible", "", "", "", "", "100"],
        ["Lovelace, Ada", "55", "ada", "ada", "", "75"], ["Núñez, José", "56", "jose", "jose", "", "12.5"]]
    assert table.left_out["li"] == "handed in, not graded yet: inferlab grade lab00-tiny"


def test_blackboards_and_gradescopes_new_tables():
    assert rows_of(new_table(source("blackboard"), [])) == [
        ["Last Name", "First Name", "Username", "lab00-tiny [Total Pts: 8 Score]"],
        ["Lovelace", "Ada", "alovelace", "6"], ["Núñez", "José", "jose", "1"]]
    assert rows_of(new_table(source("gradescope"), [])) == [
        ["First Name", "Last Name", "SID", "Email", "Total Score", "Max Points", "Status"],
        ["Ada", "Lovelace", "4711", "ada@example.org", "6", "8", "Graded"],
        ["José", "Núñez", "jose", "jose@example.org", "1", "8", "Graded"]]


def test_who_was_not_collected_from_moodle_is_left_out_with_the_reason():
    table = new_table(source("moodle", known={"ada": KNOWN["moodle"]["ada"]}), [])
    assert table.written == ["ada"]
    assert "not collected from Moodle" in table.left_out["jose"]


@pytest.mark.parametrize("platform", ["moodle", "canvas"])
def test_a_number_of_two_learners_is_nobodys(platform):
    """A learner may choose a file's name in the form of a platform: nobody gets their grade that way."""
    known = {who: about | {"user": "55"} for who, about in KNOWN[platform].items()}
    table = new_table(source(platform, known=known), [])
    assert table.written == []
    assert "is also that of jose" in table.left_out["ada"] and "is also that of ada" in table.left_out["jose"]


def test_names_run_as_no_formula():
    people = Roster.of([Learner("ada", '=HYPERLINK("x")', (), "a@example.org")])
    table = new_table(Source(LAB, "gradescope", {"ada": grade("ada", 1)}, people, {}), [])
    assert all(not cell.startswith("=") for row in rows_of(table) for cell in row)


# -- the platform's own table --------------------------------------------------------------------------------
MOODLE = """\
Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Last modified (grade)"
"Participant 1234","Ada Lovelace",ada@example.org,"Submitted for grading - ",,100.00,-
"Participant 1235","José Núñez",jose@example.org,"Submitted - ",,100.00,"Monday, 5 January 2026"
"Participant 1236","李 明",li@example.org,"No submission - ",17.00,100.00,-
"Participant 1299","Test Student",t@example.org,"No submission - ",,100.00,-
"""
CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Lab 0 (812),Lab 1 (813),Final Score
    Points Possible,,,,,40,10,(read only)
"Lovelace, Ada",55,S001,alovelace,CS 1,,3,
"Núñez, José",56,S002,jnunez,CS 1,9,4,
"Rossum, Guido van",57,S003,u77,CS 1,8,5,
"Student, Test",99,,,CS 1,,,
"""
BLACKBOARD = ('"Last Name"\t"First Name"\t"Username"\t"Student ID"\t"Lab 0 [Total Pts: 10 Score] |4711"\n'
              '"Lovelace"\t"Ada"\t"alovelace"\t"1"\t""\n"Núñez"\t"José"\t"jose"\t"2"\t""\n')


def filled(tmp_path, text, platform, encoding="utf-8", handed_in=(), **options):
    sheet = tmp_path / "sheet.csv"
    sheet.write_bytes(text.encode(encoding))
    return filled_table(source(platform, **options), sheet, handed_in)


def changed(before, table, delimiter=",", encoding="utf-8"):
    """(line, column) -> the cell, for every cell that is other than before."""
    old = list(csv.reader(io.StringIO(before), delimiter=delimiter))
    new = list(csv.reader(io.StringIO(table.data.decode(encoding)), delimiter=delimiter))
    assert [len(row) for row in old] == [len(row) for row in new]
    return {(n, m): cell for n, row in enumerate(new, 1) for m, cell in enumerate(row)
            if cell != old[n - 1][m]}


def test_moodles_own_worksheet_gets_the_grades_on_its_own_scale(tmp_path):
    table = filled(tmp_path, MOODLE, "moodle")
    assert changed(MOODLE, table) == {(2, 4): "75", (3, 4): "12.5"}
    assert table.written == ["ada", "jose"]
    assert [text.split(":")[0] for text in table.strangers] == ["line 5"]
    assert table.left_out["li"] == NO_HAND_IN


def test_moodles_worksheet_in_another_language_needs_the_headings_name(tmp_path):
    german = MOODLE.replace("Identifier", "ID").replace(",Grade,", ",Bewertung,").replace("Participant ",
                                                                                        "Teilnehmer/in")
    german = german.replace('"Maximum Grade"', "Bestwertung")
    with pytest.raises(CourseError, match=r"no columns called 'Grade'; say --column, one of: ID, Full name"):
        filled(tmp_path, german, "moodle")
    table = filled(tmp_path, german, "moodle", column="Bewertung", out_of=100.0)
    assert changed(german, table) == {(2, 4): "75", (3, 4): "12.5"}


def test_canvass_own_gradebook_keeps_all_else(tmp_path):
    table = filled(tmp_path, CANVAS, "canvas", column="Lab 0", grades=GRADES | {"u77": grade("u77", 8.0)})
    assert changed(CANVAS, table) == {(3, 5): "30", (4, 5): "5", (5, 5): "40"}
    with pytest.raises(CourseError, match="say --column"):
        filled(tmp_path, CANVAS, "canvas")
    with pytest.raises(CourseError, match="the maximum is 40: leave --out-of away"):
        filled(tmp_path, CANVAS, "canvas", column="lab 0 (812)", out_of=100.0)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8", "utf-8-sig"])
def test_blackboards_own_table_keeps_its_encoding_and_quotes(tmp_path, encoding):
    table = filled(tmp_path, BLACKBOARD, "blackboard", encoding, column="Lab 0")
    assert changed(BLACKBOARD, table, "\t", encoding) == {(2, 4): "7.5", (3, 4): "1.25"}
    assert table.data.decode(encoding) == BLACKBOARD.replace(
        '"1"\t""', '"1"\t"7.5"').replace('"2"\t""', '"2"\t"1.25"')


def test_a_line_that_names_two_learners_is_nobodys(tmp_path):
    mixed = CANVAS.replace('"Lovelace, Ada",55', '"Lovelace, Ada",56').replace('"Núñez, José",56', '"X",58')
    table = filled(tmp_path, mixed, "canvas", column="Lab 0")
    assert table.written == []
    assert any("it names ada and jose" in text for text in table.strangers)
    assert table.left_out["ada"] == "no line in sheet.csv is theirs"


def test_a_number_that_is_also_an_id_on_the_roster_names_the_platforms_learner(tmp_path):
    people = Roster.of([Learner("ada", "Ada Lovelace"), Learner("55", "Bert Cole")])
    sheet = tmp_path / "s.csv"
    sheet.write_text(CANVAS, "utf-8")
    made = filled_table(Source(LAB, "canvas", {"ada": GRADES["ada"], "55": grade("55", 8)}, people, {},
                               "Lab 0"),
                        sheet, [])
    assert changed(CANVAS, made) == {(3, 5): "30"}


@pytest.mark.parametrize(("text", "said"), [
    ("", "is empty"), ("Student,ID,Lab 0,Lab 0 (8)\nx,1,,\n", "2 columns called 'Lab 0'"),
    (CANVAS.replace(",40,", ",many,"), "'many' is not a maximum"),
    (CANVAS.replace(",40,", ",0,"), "'0' is not a maximum"),
    (CANVAS.replace('"Núñez, José",56', '"Lovelace, Ada",55'), "lines 3 and 4: both are ada's"),
])
def test_a_table_that_cannot_be_used_is_said(tmp_path, text, said):
    with pytest.raises(CourseError, match=said):
        filled(tmp_path, text, "canvas", column="Lab 0")
    with pytest.raises(CourseError, match="neither UTF-8 nor UTF-16"):
        filled(tmp_path, "José\n", "canvas", "latin-1")


# -- pages of feedback ---------------------------------------------------------------------------------------
COLLECTED = {"received": "2026-11-01T00:00:00+00:00"}


@pytest.fixture
def pages(tmp_path):
    """A course with the pages of three learners, collected from Moodle and Canvas; li's came in by hand."""
    (tmp_path / "notebooks").mkdir()
    for learner in ("ada", "jose", "li"):
        page = tmp_path / "feedback" / learner / LAB / f"{LAB}.html"
        page.parent.mkdir(parents=True)
        page.write_text(f"<h1>secret of {learner}</h1>", "utf-8")
        state = tmp_path / "collected" / LAB / learner / "current.json"
        state.parent.mkdir(parents=True)
        about = {key: KNOWN[key][learner] for key in ("moodle", "canvas") if learner in KNOWN[key]}
        state.write_text(json.dumps(COLLECTED | {"platforms": about}), "utf-8")
    return Course.open(tmp_path)


@pytest.mark.parametrize(("platform", "names"), [
    ("moodle", {"ada": "Ada Lovelace_1234_assignsubmission_file_/lab00-tiny-feedback.html",
                "jose": "José Núñez_1235_assignsubmission_file_/lab00-tiny-feedback.html"}),
    ("canvas",
     {"ada": "lovelaceada_LATE_55_9001_lab00-tiny-1.ipynb", "jose": "núñezjosé_56_9002_Unbenannt.ipynb"}),
])
def test_each_page_lies_under_its_own_learners_name_and_nothing_else_is_there(pages, tmp_path, platform,
                                                                              names):
    done = write_zip(pages, LAB, platform, ["ada", "jose", "li"], tmp_path / "out" / "back.zip")
    assert done.written == ["ada", "jose"] and list(done.left_out) == ["li"]
    with zipfile.ZipFile(tmp_path / "out" / "back.zip") as archive:
        texts = {name: archive.read(name).decode("utf-8") for name in archive.namelist()}
    assert sorted(texts) == sorted(names.values())
    for learner, name in names.items():
        assert [other for other in ("ada", "jose", "li") if f"secret of {other}" in texts[name]] == [learner]
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["back.zip"]


def test_canvas_gets_notebooks_since_it_keeps_the_name_of_what_was_handed_in(pages, tmp_path):
    write_zip(pages, LAB, "canvas", ["ada"], tmp_path / "back.zip")
    with zipfile.ZipFile(tmp_path / "back.zip") as archive:
        (name,) = archive.namelist()
        notebook = nbformat.reads(archive.read(name).decode("utf-8"), as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].outputs[0].data["text/html"] == "<h1>secret of ada</h1>"


def test_what_canvas_would_show_under_a_wrong_name_is_left_out(pages, tmp_path):
    state = pages.placed("ada", LAB)
    known = KNOWN["canvas"]["ada"] | {"file": "work.zip"}
    state.write_text(json.dumps(COLLECTED | {"platforms": {"canvas": known}}))
    done = write_zip(pages, LAB, "canvas", ["ada", "jose"], tmp_path / "back.zip")
    assert done.written == ["jose"] and "'work.zip'" in done.left_out["ada"]


def test_a_number_of_two_learners_brings_nobody_a_page(pages, tmp_path):
    noted = COLLECTED | {"platforms": {"moodle": KNOWN["moodle"]["ada"]}}
    pages.placed("li", LAB).write_text(json.dumps(noted))
    done = write_zip(pages, LAB, "moodle", ["ada", "jose", "li"], tmp_path / "back.zip")
    assert done.written == ["jose"] and set(done.left_out) == {"ada", "li"}


def test_what_collecting_noted_is_what_the_platform_is_told(pages):
    assert known_by(pages, LAB, "moodle", ["ada", "li", "nobody"]) == {"ada": KNOWN["moodle"]["ada"]}


def test_a_platform_that_takes_no_zip_is_said(pages, tmp_path):
    with pytest.raises(ValueError, match="Blackboard takes no zip of feedback; these do: moodle, canvas"):
        write_zip(pages, LAB, "blackboard", ["ada"], tmp_path / "back.zip")
