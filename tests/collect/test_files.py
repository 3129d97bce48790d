"""Files as they arrive: broken, huge, hostile, in zips of learning platforms, several from one learner."""

import json
import os
import socket
import stat
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from inferlab.grading.collecting.collect import collect
from inferlab.grading.collecting.incoming import MAX_FILE, incoming
from inferlab.grading.collecting.overrides import read_times
from inferlab.grading.course import CourseError
from inferlab.grading.roster import Learner, Roster
from inferlab.grading.submission.files import UnreadableError, read_regular

LAB = "lab90-fixture"


def lines(report):
    return {line.file: line for line in report.lines}


@pytest.mark.parametrize(("name", "content", "reason"), [
    ("ada.ipynb", b"", "empty"),
    ("ada.ipynb", b" \n\t", "empty"),
    ("ada.ipynb", b'{"cells": [', "cut off"),
    ("ada.ipynb", b'{"a": 1}', "no cells"),
    ("ada.ipynb", b"[1, 2]", "no cells"),
    ("ada.ipynb", b"hello", "plain text"),
    ("ada.ipynb", b"[" * 200_000, "nested too deeply"),
    ("ada.ipynb", b"%PDF-1.7\n\xff\xfe", "a PDF"),
    ("ada.html", b"<!DOCTYPE html><html></html>", "HTML"),
    ("ada.ipynb", bytes(range(256)) * 40, "binary"),
    ("ada.ipynb", b'{"cells": 3, "nbformat": 4}', "not a list"),
    ("ada.ipynb", b'{"cells": [], "nbformat": 4, "metadata": {}}', "no cell of it is known"),
    ("ada.ipynb", b'{"worksheets": 7, "nbformat": 3}', "cannot be converted"),
])
def test_a_bad_file_gets_a_line_and_never_stops_the_rest(hand_in, solved, name, content, reason):
    report = hand_in({f"bad/{name}": content, "good.ipynb": solved("grace")})
    bad = lines(report)[f"bad/{name}"]
    assert bad.status == "held"
    assert bad.learner == "ada"
    assert reason in " ".join(bad.notes)
    assert lines(report)["good.ipynb"].status == "collected"


def test_a_notebook_with_malformed_cells_is_graded_without_them(hand_in, solved):
    notebook = solved()
    notebook["cells"] += [7, {"cell_type": "banana", "source": "x"},
                          {"cell_type": "code", "source": {"a": 1}}]
    report = hand_in({"a.ipynb": notebook})
    assert report.count("collected") == 1
    assert sum("malformed" in note for note in report.lines[0].notes) == 3


def test_a_file_over_the_limit(course, roster, inbox):
    path = inbox / "ada.ipynb"
    with path.open("wb") as stream:
        stream.truncate(MAX_FILE + 1)
    report = collect(course, [inbox], roster)
    assert "too large" in report.lines[0].notes[0]


def test_one_hundred_megabytes_of_output_are_collected(hand_in, solved, course):
    notebook = solved()
    notebook["cells"][5]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 100_000_000}]
    report = hand_in({"ada.ipynb": notebook})
    assert report.count("collected") == 1
    assert course.submitted("ada", LAB).stat().st_size < 100_000


@pytest.mark.parametrize("how", ["bom", "crlf", "utf-16", "strings"])
def test_encodings_and_line_ends(hand_in, solved, placed, how):
    notebook = solved()
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
        if how == "crlf":
            cell["source"] = cell["source"].replace("\n", "\r\n")
    text = json.dumps(notebook, indent=1)
    data = {"bom": b"\xef\xbb\xbf" + text.encode(), "crlf": text.replace("\n", "\r\n").encode(),
            "utf-16": text.encode("utf-16"), "strings": text.encode()}[how]
    report = hand_in({"a.ipynb": data})
    assert report.count("collected") == 1
    assert "\r" not in placed()["double"].source
    assert not any("changed" in note for note in report.lines[0].notes)


def test_an_old_notebook_format(hand_in, solved, placed):
    notebook = solved()
    cells = []
    for cell in notebook["cells"]:
        old = {"cell_type": cell["cell_type"], "metadata": cell["metadata"]}
        if cell["cell_type"] == "code":
            old |= {"input": cell["source"], "outputs": [], "language": "python", "collapsed": False}
        else:
            old["source"] = cell["source"]
        cells.append(old)
    report = hand_in({"a.ipynb": {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""},
                                  "worksheets": [{"metadata": {}, "cells": cells}]}})
    assert report.count("collected") == 1
    assert "return x + x" in placed()["double"].source
    assert "converted from notebook format 3" in report.lines[0].notes


def test_the_latest_counts_and_the_others_are_kept(course, roster, hand_in, solved):
    first, second = solved(double="def double(x):\n    return 1"), solved()
    first["metadata"]["inferlab"]["submitted"] = "2026-01-10T10:00:00+00:00"
    second["metadata"]["inferlab"]["submitted"] = "2026-01-11T10:00:00+00:00"
    report = hand_in({"z.ipynb": first, "a.ipynb": second})
    assert lines(report)["z.ipynb"].status == "older"
    assert lines(report)["a.ipynb"].status == "collected"
    assert "x + x" in course.submitted("ada", LAB).read_text("utf-8")
    assert "2026-01-11 10:00:00" in (course.submitted("ada", LAB).parent / "timestamp.txt").read_text()
    kept = list((course.root / "collected" / LAB / "ada").glob("*.ipynb"))
    assert len(kept) == 2
    # Handing in again: the same changes nothing, an older one does not replace a later one.
    assert {line.status for line in hand_in({}).lines} == {"older", "unchanged"}
    (course.root.parent / "inbox" / "a.ipynb").unlink()
    assert [line.status for line in hand_in({}).lines] == ["older"]
    assert "x + x" in course.submitted("ada", LAB).read_text("utf-8")


def test_a_broken_later_file_leaves_the_good_one(hand_in, solved, course):
    report = hand_in({"Ada Lovelace/1.ipynb": solved(), "Ada Lovelace/2.ipynb": b"{"})
    assert lines(report)["Ada Lovelace/1.ipynb"].status == "collected"
    assert lines(report)["Ada Lovelace/2.ipynb"].status == "held"
    assert course.submitted("ada", LAB).exists()


def test_nothing_in_submitted_is_lost(course, roster, hand_in, solved):
    there = course.submitted("ada", LAB)
    there.parent.mkdir(parents=True)
    there.write_text("put here by hand", "utf-8")
    hand_in({"a.ipynb": solved()})
    kept = [p.read_text("utf-8") for p in (course.root / "collected" / LAB
                                           / "ada").glob("found-in-submitted-*")]
    assert kept == ["put here by hand"]


def test_a_repair_by_hand_is_never_lost(course, roster, inbox, solved):
    path = write(inbox / "hw.ipynb", solved(double="def double(x):\n    retrun x"), 10)
    collect(course, [inbox], roster)
    target = course.submitted("ada", LAB)
    repaired = target.read_text("utf-8").replace("retrun x", "return 2 * x")
    target.write_text(repaired, "utf-8")
    release_again(course)
    (line,) = collect(course, [inbox], roster).lines
    assert line.status == "unchanged" and target.read_text("utf-8") == repaired
    assert ("the notebook in submitted/ was changed by hand since it was collected: it stays "
            "as it is") in line.notes
    at(path, 8)
    (line,) = collect(course, [inbox], roster).lines
    assert target.read_text("utf-8") == repaired and timestamp(course) == "2026-01-08 12:00:00"
    write(inbox / "new.ipynb", solved(), 12)
    line = lines(collect(course, [inbox], roster))["new.ipynb"]
    assert line.status == "collected" and "x + x" in target.read_text("utf-8")
    (kept,) = (course.root / "collected" / LAB / "ada").glob("found-in-submitted-*")
    assert kept.read_text("utf-8") == repaired and kept.name in " ".join(line.notes)


def release_again(course):
    """The lab is released with another text."""
    text = json.loads(course.release(LAB).read_text("utf-8"))
    text["metadata"]["inferlab"]["release"] = "ffffffffffff"
    text["cells"][0]["source"] += "\n\nOne more sentence."
    course.release(LAB).write_text(json.dumps(text), "utf-8")


def test_the_same_file_after_a_new_release_is_not_handed_in_again(course, roster, inbox, solved):
    write(inbox / "hw.ipynb", solved(), 10)
    collect(course, [inbox], roster)
    before = course.submitted("ada", LAB).read_bytes()
    release_again(course)
    (line,) = collect(course, [inbox], roster).lines
    assert line.status == "unchanged" and "laid out by the new release" in " ".join(line.notes)
    assert course.submitted("ada", LAB).read_bytes() != before


def test_what_is_replaced_is_said(course, roster, inbox, solved):
    write(inbox / "hw.ipynb", solved(double="def double(x):\n    return 1"), 10)
    collect(course, [inbox], roster)
    write(inbox / "hw.ipynb", solved(), 11)
    (line,) = collect(course, [inbox], roster).lines
    assert (line.status, line.notes) == ("collected", ["replaces the one of 2026-01-10T12:00:00+00:00"])


def test_a_held_file_that_found_its_learner_is_no_longer_held(course, roster, inbox, solved):
    write(inbox / "who.ipynb", solved(""), 10)
    collect(course, [inbox], roster)
    held = course.root / "collected" / "held"
    assert len(list(held.iterdir())) == 1
    collect(course, [inbox], roster, assign={"who.ipynb": "olga"})
    assert not list(held.iterdir()) and course.submitted("olga", LAB).exists()


def test_held_files_are_kept_too(course, hand_in):
    hand_in({"who.ipynb": b"hello"})
    assert [p.read_bytes() for p in (course.root / "collected" / "held").iterdir()] == [b"hello"]


def test_the_same_file_from_two_learners_is_said(hand_in, solved):
    notebook = solved("")
    report = hand_in({"Ada Lovelace/l.ipynb": notebook, "Grace Hopper/l.ipynb": notebook})
    assert report.count("collected") == 2
    assert "byte for byte the same file as grace" in " ".join(lines(report)["Ada Lovelace/l.ipynb"].notes)


def test_the_wrong_lab_is_held(hand_in, solved, course, roster):
    other = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"inferlab": {"lab": "lab01-other"}},
             "cells": [{"cell_type": "code", "id": "a", "metadata": {}, "source": "LEARNER = 'ada'",
                        "outputs": [],
                        "execution_count": None}]}
    report = hand_in({"a.ipynb": other, "b.ipynb": solved("grace")}, lab=LAB)
    assert "lab01-other" in " ".join(lines(report)["a.ipynb"].notes)
    assert lines(report)["b.ipynb"].status == "collected"


def test_a_lab_is_known_by_its_cells_under_any_name(hand_in, solved):
    notebook = solved()
    del notebook["metadata"]["inferlab"]
    report = hand_in({"homework final (3).ipynb.txt": notebook})
    assert report.lines[0].lab == LAB
    assert report.lines[0].status == "collected"


def test_missing_learners_are_listed(hand_in, solved):
    assert hand_in({"a.ipynb": solved()}).missing == {LAB: ["grace", "jose", "li", "olga"]}


# -- zips
# ----------------------------------------------------------------------------------------------------
def zip_of(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, json.dumps(content) if isinstance(content, dict) else content)
    return path


def test_moodles_download(course, roster, inbox, solved):
    path = zip_of(inbox / "CS101-Lab 90-4711.zip", {
        "Ada Lovelace_1234_assignsubmission_file_/lab90.ipynb": solved(""),
        "José Núñez_1235_assignsubmission_file_/Unbenannt.ipynb": solved(""),
        "李 明_1236_assignsubmission_file_lab.ipynb": solved(""),
        "Nobody Known_1237_assignsubmission_file_/lab.ipynb": solved(""),
        "__MACOSX/._lab.ipynb": "x",
    })
    report = collect(course, [path], roster)
    assert sorted(line.learner for line in report.lines if line.status == "collected") == ["ada", "jose",
                                                                                           "li"]
    held = [line for line in report.lines if line.status == "held"]
    assert len(held) == 1
    assert "Nobody Known" in held[0].notes[0]
    assert report.count("ignored") == 1


def test_canvass_download(course, roster, inbox, solved):
    path = zip_of(inbox / "submissions.zip", {
        "lovelaceada_LATE_55_9001_lab90-fixture-1.ipynb": solved(""),
        "hoppergrace_56_9002_lab.ipynb": solved(""),
    })
    report = collect(course, [path], roster)
    assert sorted(line.learner for line in report.lines if line.status == "collected") == ["ada", "grace"]


@pytest.mark.parametrize(("name", "written"), [
    ("Agent 007 Bond", "bondagent007"), ("आदित्य शर्मा", "शर्माआदित्य"), ("สมชาย ใจดี", "ใจดีสมชาย"),
    ("Zoë Núñez", "nu\u0301n\u0303ezzoe\u0308"), ("Zoë Núñez", "nunezzoe"),
    ("Guido van Rossum", "vanrossumguido"),
    ("Ana María de la Cruz Soto", "delacruzsotoanamaría"), ("van Rossum, Guido", "vanrossumguido"),
])
def test_canvass_names(course, inbox, solved, name, written):
    path = zip_of(inbox / "submissions.zip", {f"{written}_55_9001_lab.ipynb": solved("")})
    people = Roster.of([Learner("ada", "Ada Lovelace"), Learner("one", name)])
    assert [line.learner for line in collect(course, [path], people).lines
            if line.status == "collected"] == ["one"]


def test_two_learners_whose_names_a_platform_writes_alike_are_not_decided(course, inbox, solved):
    path = zip_of(inbox / "submissions.zip", {"nunezzoe_55_9001_lab.ipynb": solved("")})
    people = Roster.of([Learner("one", "Zoë Núñez"), Learner("two", "Zoé Nuñez")])
    assert [line.status for line in collect(course, [path], people).lines] == ["held"]


def test_a_platforms_own_files_are_nobodys(course, roster, inbox, solved):
    path = zip_of(inbox / "b.zip", {
        "index.html": "<html>", "Lab 90_grace_attempt_2026-01-15-13-30-00.txt": "Name: Grace",
        "Ada Lovelace_1234_assignsubmission_onlinetext_/onlinetext.html": "<p>see file</p>",
        "Ada Lovelace_1234_assignsubmission_file_/lab.ipynb": solved(""),
    })
    report = collect(course, [path], roster)
    assert (report.count("ignored"), report.count("collected"), report.count("held")) == (3, 1, 0)


def test_blackboards_download_gives_the_time(course, roster, inbox, solved):
    path = zip_of(inbox / "b.zip", {"Lab 90_grace_attempt_2026-01-15-13-30-00_x.ipynb": solved("")})
    report = collect(course, [path], roster)
    assert report.lines[0].learner == "grace"
    assert report.lines[0].received == "2026-01-15T13:30:00+00:00"


def test_a_zip_that_a_learner_made_inside_the_platforms_zip(course, roster, inbox, solved, tmp_path):
    inner = zip_of(tmp_path / "inner.zip", {"my work/lab.ipynb": solved("")}).read_bytes()
    path = zip_of(inbox / "m.zip", {"Grace Hopper_1_assignsubmission_file_/work.zip": inner})
    assert [line.learner for line in collect(course, [path], roster).lines
            if line.status == "collected"] == ["grace"]


@pytest.mark.parametrize("members", [
    {"Grace Hopper_9_assignsubmission_file_/Ada Lovelace_9_assignsubmission_file_.ipynb": ""},
    {"hoppergrace_12_34__ada_attempt_2026-11-28-23-00-00_lab.ipynb": ""},
    {"grace/ada.ipynb": ""},
    {"Grace Hopper_9_assignsubmission_file_/lab.ipynb": "ada"},
    {"Late Enrolled_9_assignsubmission_file_/lab.ipynb": "ada"},
    {"enrolledlate_12_34_lab.ipynb": "ada"},
])
def test_a_name_that_a_learner_chose_never_replaces_somebody_elses_work(course, roster, inbox, solved,
                                                                        members):
    mine = zip_of(inbox / "a.zip", {"Ada Lovelace_1_assignsubmission_file_/lab.ipynb": solved("")})
    theirs = {}
    for name, learner in members.items():
        theirs[name] = solved(learner)
        theirs[name]["metadata"].setdefault("inferlab", {})["submitted"] = "2030-01-01T00:00:00+00:00"
    path = zip_of(inbox / "b.zip", theirs)
    report = collect(course, [mine, path], roster)
    assert [line.status for line in report.lines] == ["collected", "held"]
    assert "is ada" in " ".join(report.lines[1].notes)


def test_a_zip_in_a_platforms_zip_that_names_somebody_else_is_held(course, roster, inbox, solved, tmp_path):
    inner = zip_of(tmp_path / "inner.zip",
                   {"Ada Lovelace_1_assignsubmission_file_/lab.ipynb": solved("")}).read_bytes()
    path = zip_of(inbox / "m.zip", {"Grace Hopper_1_assignsubmission_file_/work.zip": inner})
    (line,) = collect(course, [path], roster).lines
    assert line.status == "held" and "named twice" in " ".join(line.notes)


@pytest.mark.parametrize("text", ['LEARNER = (\n    "grace"\n)', 'who = LEARNER = "grace"'])
def test_the_name_in_a_file_is_read_as_grading_reads_it(hand_in, solved, text):
    report = hand_in({"ada.ipynb": solved(top_2=text)})
    assert report.lines[0].status == "held" and "named twice" in " ".join(report.lines[0].notes)


def test_a_stamp_that_alone_makes_a_file_in_time_is_told(course, roster, inbox, solved):
    course.due[LAB] = datetime(2026, 1, 10, tzinfo=UTC)
    notebook = solved("")
    notebook["metadata"].setdefault("inferlab", {})["submitted"] = "2020-01-01T00:00:00+00:00"
    path = zip_of(inbox / "m.zip", {"Ada Lovelace_1_assignsubmission_file_/lab.ipynb": notebook})
    (line,) = collect(course, [path], roster).lines
    assert line.status == "collected" and "in time by its own stamp" in " ".join(line.notes)


def test_path_traversal_writes_nothing_outside(course, roster, inbox, solved, tmp_path):
    before = sorted(p for p in tmp_path.rglob("*") if course.root not in p.parents)
    path = zip_of(inbox / "t.zip", {"../../../ada/evil.ipynb": solved("../../etc"),
                                    "/abs/ada.ipynb": solved("ada"),
                                    "..\\..\\grace.ipynb": solved("grace")})
    report = collect(course, [path], roster)
    assert report.count("collected") == 2
    after = sorted(p for p in tmp_path.rglob("*") if course.root not in p.parents)
    assert set(after) - set(before) == {path}


def test_zip_bombs_are_not_read(course, roster, inbox, solved):
    path = zip_of(inbox / "bomb.zip", {"Ada Lovelace/lab.ipynb": b"0" * 60_000_000,
                                       "Grace Hopper/lab.ipynb": solved("")})
    report = collect(course, [path], roster)
    assert "a zip bomb" in " ".join(report.lines[0].notes)
    assert report.lines[1].status == "collected"


def test_a_zip_in_a_zip_is_read_one_member_at_a_time(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "inner.zip", "w") as inner:
        for number in range(5):
            inner.writestr(f"{number}.txt", "text")
    with zipfile.ZipFile(tmp_path / "outer.zip", "w") as outer:
        outer.write(tmp_path / "inner.zip", "inner.zip")
    opened, read = [], zipfile.ZipFile.open
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda self, member, *rest: opened.append(member.filename)
                        or read(self, member, *rest))
    found = incoming(tmp_path / "outer.zip")
    assert next(found).data == b"text"
    assert opened == ["inner.zip", "0.txt"]
    assert len(list(found)) == 4


def test_a_damaged_zip_and_one_with_a_password(course, roster, inbox, solved):
    good = zip_of(inbox / "a.zip", {"Ada Lovelace/lab.ipynb": solved("")})
    data = bytearray(good.read_bytes())
    data[60:90] = b"\0" * 30
    good.write_bytes(bytes(data))
    locked = zip_of(inbox / "b.zip", {"Grace Hopper/lab.ipynb": solved("")})
    data = bytearray(locked.read_bytes())
    at = data.find(b"PK\x01\x02")
    data[6] |= 1
    data[at + 8] |= 1
    locked.write_bytes(bytes(data))
    report = collect(course, [inbox], roster)
    assert report.count("held") == 2
    text = " ".join(note for line in report.lines for note in line.notes)
    assert "damaged" in text
    assert "password" in text


def test_links_are_not_followed(course, roster, inbox, solved, tmp_path):
    secret = tmp_path / "secret.ipynb"
    secret.write_text(json.dumps(solved("ada")))
    (inbox / "grace.ipynb").symlink_to(secret)
    (inbox / "Ada Lovelace").symlink_to(tmp_path)
    path = inbox / "z.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("li.ipynb")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, str(secret))
    os.mkfifo(inbox / "olga.ipynb")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(inbox / "s.ipynb"))
    (inbox / "loop.ipynb").symlink_to("loop.ipynb")
    report = collect(course, [inbox], roster)
    assert report.count("held") == len(report.lines) == 6
    assert sum("not followed" in " ".join(line.notes) for line in report.lines) == 4
    assert {line.file: line.notes[0] for line in report.lines if "not a file" in line.notes[0]} == {
        "olga.ipynb": "a named pipe, not a file: it is "
                      "not read", "s.ipynb": "a socket, not a file: it is not read"}


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "/dev/tty"])
def test_a_device_is_not_opened(device, monkeypatch):
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opening a device may do something"))
    with pytest.raises(UnreadableError, match="a device, not a file"):
        read_regular(Path(device))


# -- names
# ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("written", "learner"), [
    ("ada", "ada"), ("  ADA   lovelace ", "ada"), ("Lovelace, Ada", "ada"), ("Countess Lovelace", "ada"),
    ("Jose\u0301 Nu\u0301n\u0303ez", "jose"), ("PEPE", "jose"), ("李 明", "li"), ("李\u3000明", "li"),
    ("Li Ming", "li"),
    ("ОЛЬГА ИВАНОВА", "olga"), ("olga@example.org", "olga"), ("\uff41\uff44\uff41", "ada"),
])
def test_names_in_every_alphabet(hand_in, solved, written, learner):
    report = hand_in({"x.ipynb": solved(written)})
    assert report.lines[0].learner == learner


def test_a_name_that_is_only_like_one_is_held_with_a_hint(hand_in, solved):
    report = hand_in({"x.ipynb": solved("Ada Lovelacee")})
    assert report.lines[0].status == "held"
    assert "like ada" in report.lines[0].notes[0]


def test_two_names_in_one_file_are_not_decided(hand_in, solved, course):
    report = hand_in({"Grace Hopper_12_assignsubmission_file_/x.ipynb": solved("ada")})
    assert report.lines[0].status == "held"
    assert "named twice" in report.lines[0].notes[0]
    assert not (course.root / "submitted").exists()
    again = hand_in({}, assign={"x.ipynb": "grace"})
    assert again.lines[0].status == "collected"
    assert course.submitted("grace", LAB).exists()


def test_no_name_at_all(hand_in, solved):
    report = hand_in({"lab90-fixture.ipynb": solved("")})
    assert report.lines[0].status == "held"
    assert "LEARNER is empty" in report.lines[0].notes[0]


def test_a_file_named_after_its_learner(hand_in, solved):
    report = hand_in({"lab90-fixture-grace (2).ipynb": solved("")})
    assert report.lines[0].learner == "grace"


def test_learner_is_read_as_text_and_never_run(hand_in, solved, tmp_path, cell):
    notebook = solved()
    cell(notebook, "top_2")["source"] = f"LEARNER = open({str(tmp_path / 'made')!r}, 'w').name"
    assert hand_in({"x.ipynb": notebook}).lines[0].status == "held"
    assert not (tmp_path / "made").exists()


def test_a_platforms_list_of_times_counts(course, roster, hand_in, solved, tmp_path):
    table = tmp_path / "times.csv"
    table.write_text("id,time\nAda Lovelace,2026-01-16T09:00:00+01:00\n")
    times = read_times(table, roster)
    assert times == {"ada": datetime(2026, 1, 16, 8, tzinfo=UTC)}
    report = hand_in({"x.ipynb": solved()}, times=times)
    assert report.lines[0].received == "2026-01-16T08:00:00+00:00"


# -- odd content
# ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("stamp", "said"), [("0001-01-01T00:00:00+23:59", "cannot be read"),
                                             ("yesterday", "cannot be read"),
                                             ("9999-12-31T23:59:59-23:00", "cannot be read"),
                                             ("2199-01-01", "still to come")])
def test_a_time_that_cannot_be_is_not_believed(hand_in, solved, stamp, said):
    notebook = solved()
    notebook["metadata"]["inferlab"]["submitted"] = stamp
    line = hand_in({"a.ipynb": notebook}).lines[0]
    assert line.status == "collected"
    assert line.received.startswith(str(datetime.now(UTC).year))
    assert said in " ".join(line.notes)


def test_half_a_surrogate_pair_and_control_characters(hand_in, solved, placed, cell):
    notebook = solved()
    cell(notebook, "double")["source"] = "def double(x):\n    return x + x  # \ud83d \x00 \x1b[2J"
    notebook["cells"][0]["source"] = "\udc00"
    report = hand_in({"a.ipynb": json.dumps(notebook)})
    assert report.count("collected") == 1
    assert "return x + x" in placed()["double"].source


def test_a_name_with_control_characters_is_shown_without_them(hand_in, solved):
    line = hand_in({"x.ipynb": solved("\x1b[31mnobody\n")}).lines[0]
    assert line.status == "held"
    assert "\x1b" not in " ".join(line.notes)


@pytest.mark.parametrize("nbformat", [4.5, "4", 5, None, [], True, -1, 10**30])
def test_a_strange_format_number(hand_in, solved, nbformat):
    notebook = solved()
    notebook["nbformat"] = nbformat
    assert len(hand_in({"a.ipynb": notebook, "b.ipynb": solved("grace")}).lines) == 2


def test_a_file_that_breaks_the_sorting_itself_is_held_and_kept(hand_in, solved, course, monkeypatch):
    from inferlab.grading.submission import submission as module

    def broken(handed_in, released):
        if handed_in.metadata.get("x"):
            raise ZeroDivisionError("a fault")
        return original(handed_in, released)

    original = module.mend
    monkeypatch.setattr(module, "mend", broken)
    bad = solved()
    bad["metadata"]["x"] = True
    report = hand_in({"a.ipynb": bad, "b.ipynb": solved("grace")})
    assert "ZeroDivisionError" in " ".join(lines(report)["a.ipynb"].notes)
    assert lines(report)["b.ipynb"].status == "collected"
    assert len(list((course.root / "collected" / "held").iterdir())) == 1


def test_hundreds_of_damaged_notebooks_never_stop_the_batch(course, roster, inbox, solved):
    """Random values in random places of a real notebook: each is collected or held, none is a fault, all
    valid."""
    import random

    rng = random.Random(7)
    odd = [None, True, 0, -1, 1e308, "", "x", "\ud800", [], {}, [[]], {"a": {"b": []}}, ["x"], "check-fold",
           10**20]
    for number in range(250):
        notebook = solved(rng.choice(["ada", "grace", "li", ""]))
        for _ in range(rng.randint(1, 6)):
            place = notebook
            while True:
                key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
                if rng.random() < 0.35 or not isinstance(place[key], dict | list) or not place[key]:
                    place[key] = rng.choice(odd)
                    break
                place = place[key]
        (inbox / f"{number}.ipynb").write_text(json.dumps(notebook))
    report = collect(course, [inbox], roster)
    assert len(report.lines) == 250
    faults = [note for line in report.lines for note in line.notes if "a fault of inferlab" in note]
    assert faults == []
    assert report.count("collected") >= 3


# -- times
# ----------------------------------------------------------------------------------------------------
def at(path, day, hour=12):
    """Set a file's time to that day and hour of January 2026."""
    os.utime(path, (datetime(2026, 1, day, hour, tzinfo=UTC).timestamp(),) * 2)
    return path


def write(path, notebook, day, hour=12):
    path.write_text(json.dumps(notebook, ensure_ascii=False), "utf-8")
    return at(path, day, hour)


def timestamp(course, learner="ada"):
    return (course.submitted(learner, LAB).parent / "timestamp.txt").read_text("utf-8")[:19]


def test_the_same_file_downloaded_again_keeps_its_time(course, roster, inbox, solved):
    path = write(inbox / "hw.ipynb", solved(), 10)
    collect(course, [inbox], roster)
    at(path, 20)
    (line,) = collect(course, [inbox], roster).lines
    assert (line.status, line.received) == ("unchanged", "2026-01-10T12:00:00+00:00")
    assert timestamp(course) == "2026-01-10 12:00:00"
    at(path, 8)
    (line,) = collect(course, [inbox], roster).lines
    assert (line.status, timestamp(course)) == ("collected",
                                                "2026-01-08 12:00:00"), "an earlier time is taken over"
    assert len(list((course.root / "collected" / LAB / "ada").glob("*.ipynb"))) == 2


@pytest.mark.parametrize(("first", "second"), [("hw.ipynb", "hw (1).ipynb"), ("hw.ipynb", "z.ipynb")])
def test_a_copy_in_the_same_download_makes_nobody_late(course, roster, inbox, solved, first, second):
    write(inbox / first, solved(), 10)
    write(inbox / second, solved(), 20)
    report = collect(course, [inbox], roster)
    assert sorted(line.status for line in report.lines) == ["collected", "older"]
    assert {line.received for line in report.lines} == {"2026-01-10T12:00:00+00:00"}
    assert timestamp(course) == "2026-01-10 12:00:00"


def test_two_hand_ins_downloaded_again_stay_in_their_order(course, roster, inbox, solved):
    old = write(inbox / "z.ipynb", solved(double="def double(x):\n    return 1"), 10)
    new = write(inbox / "a.ipynb", solved(), 11)
    collect(course, [inbox], roster)
    at(new, 20, hour=1), at(old, 20, hour=2)
    assert {line.file: line.status for line in collect(course, [inbox],
                                                       roster).lines} == {"a.ipynb": "unchanged",
                                                                          "z.ipynb": "older"}
    assert timestamp(course) == "2026-01-11 12:00:00"


def test_a_platforms_list_moves_a_time_and_its_word_stays(course, roster, inbox, solved):
    path = write(inbox / "hw.ipynb", solved(), 10)
    collect(course, [inbox], roster)
    for day in (14, 9):
        collect(course, [inbox], roster, times={"ada": datetime(2026, 1, day, tzinfo=UTC)})
        assert timestamp(course) == f"2026-01-{day:02} 00:00:00"
    at(path, 5)
    (line,) = collect(course, [inbox], roster).lines
    assert (line.status, line.received) == ("unchanged", "2026-01-09T00:00:00+00:00")


def test_with_a_platforms_list_the_later_file_still_counts(course, roster, inbox, solved):
    write(inbox / "z.ipynb", solved(double="def double(x):\n    return 1"), 10)
    write(inbox / "a.ipynb", solved(), 11)
    report = collect(course, [inbox], roster, times={"ada": datetime(2026, 1, 12, tzinfo=UTC)})
    assert {line.file: line.status for line in report.lines} == {"a.ipynb": "collected", "z.ipynb": "older"}


def test_a_held_file_keeps_its_time_and_its_name(course, roster, inbox, solved):
    write(inbox / "eve.ipynb", solved(""), 10)
    collect(course, [inbox], roster)
    held = course.root / "collected" / "held"
    for _ in range(2):
        collect(course, [held], roster)
    (kept,) = held.iterdir()
    assert kept.name.startswith("20260110T120000Z-") and kept.name.endswith("-eve.ipynb")
    assert kept.name.count("Z-") == 1
    assert datetime.fromtimestamp(kept.stat().st_mtime, UTC) == datetime(2026, 1, 10, 12, tzinfo=UTC)
    at(kept, 20)
    mended = Roster.of([*roster.learners, Learner("eve", "Eve Adams")])
    (line,) = collect(course, [kept], mended).lines
    assert (line.status, line.learner, timestamp(course, "eve")) == ("collected", "eve",
                                                                     "2026-01-10 12:00:00")


def test_a_time_in_a_name_that_a_learner_chose_is_not_believed(course, roster, inbox, solved):
    import hashlib

    path = write(inbox / "x.ipynb", solved(), 20)
    sha = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    path.rename(inbox / f"20260101T000000Z-{sha}-x.ipynb")
    collect(course, [inbox], roster)
    assert timestamp(course) == "2026-01-20 12:00:00"


@pytest.mark.parametrize(("name", "noted"), [("lab02_ada.ipynb", "lab02"), ("Lab 2 (1).ipynb", "lab02"),
                                             ("lab90.ipynb", ""), ("collab2.ipynb", ""),
                                             ("lab02-to-lab90.ipynb", ""), ("homework 2.ipynb", "")])
def test_a_name_of_another_lab_is_told(course, roster, inbox, solved, name, noted):
    other = course.text("lab02-other")
    other.parent.mkdir(parents=True)
    other.write_text("")
    course.release("lab02-other").parent.mkdir(parents=True)
    course.release("lab02-other").write_text('{"cells": [], "metadata": {}, "nbformat": 4, '
                                             '"nbformat_minor": 5}')
    write(inbox / name, solved(), 10)
    (line,) = collect(course, [inbox], roster).lines
    assert line.status == "collected"
    assert line.notes == ([f"its name says {noted}, its cells are {LAB}"] if noted else [])


def test_an_assignment_is_for_one_file_only(hand_in, solved, course):
    files = {"ada/lab.ipynb": solved("ada"), "grace/lab.ipynb": solved("grace"),
             "mystery/lab.ipynb": solved("")}
    with pytest.raises(CourseError,
                       match=r"--assign lab\.ipynb fits 3 files: give the whole name, for example "
                             r"ada/lab\.ipynb"):
        hand_in(files, assign={"lab.ipynb": "olga"})
    with pytest.raises(CourseError, match=r"--assign labb\.ipynb: none of the files has this name"):
        hand_in({}, assign={"mystery/lab.ipynb": "olga", "labb.ipynb": "olga"})
    assert not (course.root / "collected").exists()
    found = lines(hand_in({}, assign={"mystery/lab.ipynb": "olga"}))
    assert {name: line.learner for name, line in found.items()} == {
        "ada/lab.ipynb": "ada", "grace/lab.ipynb": "grace", "mystery/lab.ipynb": "olga"}


def test_a_whole_name_is_not_taken_for_a_bare_one(hand_in, solved):
    found = lines(hand_in({"lab.ipynb": solved(""), "ada/lab.ipynb": solved("ada")},
                          assign={"lab.ipynb": "olga"}))
    assert {name: line.learner for name, line in found.items()} == {"lab.ipynb": "olga",
                                                                    "ada/lab.ipynb": "ada"}


def test_the_same_name_at_two_paths_is_not_decided(course, roster, inbox, solved):
    for folder in ("one", "two"):
        (inbox / folder).mkdir()
        (inbox / folder / "lab.ipynb").write_text(json.dumps(solved("")))
    with pytest.raises(CourseError, match="fits 2 files: collect one PATH at a time"):
        collect(course, [inbox / "one", inbox / "two"], roster, assign={"lab.ipynb": "olga"})


@pytest.mark.parametrize("name", ["\U00020000" * 70, "\U00020000" * 70 + ".ipynb", "." * 90,
                                  "a" * 200 + ".ipynb"],
                         ids=["wide", "wide with an ending", "dots", "long"])
def test_no_name_is_too_long_to_be_kept(course, roster, inbox, solved, name):
    path = zip_of(inbox / "in.zip", {"a.ipynb": solved("ada"), name: solved("grace"),
                                     "z.ipynb": solved("olga")})
    report = collect(course, [path], roster)
    assert [(line.status, line.learner) for line in report.lines] == [
        ("collected", "ada"), ("collected", "grace"), ("collected", "olga")]


def test_a_given_zip_over_the_limits_is_said(course, roster, inbox, monkeypatch):
    monkeypatch.setattr("inferlab.grading.collecting.incoming.MAX_MEMBERS", 1)
    report = collect(course, [zip_of(inbox / "in.zip", {"a.ipynb": "a", "b.ipynb": "b"})], roster)
    assert len(report.lines) == 1
    assert "over the limits" in report.lines[0].notes[0]
    assert "fault of inferlab" not in " ".join(report.lines[0].notes)


def test_a_list_of_times_in_another_encoding_is_named(roster, tmp_path):
    path = tmp_path / "times.csv"
    path.write_bytes("id,time\nJosé,2026-01-15\n".encode("latin-1"))
    with pytest.raises(CourseError, match=r"times\.csv is not UTF-8"):
        read_times(path, roster)
