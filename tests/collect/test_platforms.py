"""Every platform's download as it comes: whose a file is, when it came, and how its grade finds the way back.

The names and lists are written by hand after the platforms' public documentation and source, which
`inferlab.grading.platforms` cites.
"""

import json
import os
import subprocess

import pytest

from inferlab.grading.collecting.collect import collect
from inferlab.grading.platforms import said_by
from inferlab.grading.roster import Learner, Roster
from inferlab.grading.submission.submission import placed as placed_by
from tests.collect.test_files import zip_of

LAB = "lab90-fixture"


def collected(report):
    return {line.file.partition("/")[2] or line.file: line.learner for line in report.lines
            if line.status == "collected"}


def known(course, learner, platform):
    return placed_by(course, learner, LAB)["platforms"][platform]


@pytest.mark.parametrize(("member", "prefix"), [
    ("José Núñez_1235_assignsubmission_file_/lab.ipynb", "José Núñez_1235_assignsubmission_"),  # 3.1 to 4.0
    ("José Núñez_1235_assignsubmission_file/my work/lab.ipynb", "José Núñez_1235_assignsubmission_"),  # 4.1
    ("José Núñez_1235_assignsubmission_file_lab.ipynb", "José Núñez_1235_assignsubmission_"),  # no folders
])
def test_moodle_with_and_without_folders(course, roster, inbox, solved, member, prefix):
    report = collect(course, [zip_of(inbox / "CS101-Lab 90-4711.zip", {member: solved("")})], roster)
    assert [line.learner for line in report.lines] == ["jose"]
    assert known(course, "jose", "moodle") == {
        "login": "José Núñez", "prefix": prefix, "name": "José Núñez", "user": "1235"}


def test_moodle_marked_blind_needs_the_participants_number_on_the_roster(course, inbox, solved):
    path = zip_of(inbox / "m.zip", {"Participant_1235_assignsubmission_file_/lab.ipynb": solved("")})
    people = Roster.of([Learner("ada", "Ada", ("Participant 1235",)), Learner("1235", "Bert")])
    assert [line.learner for line in collect(course, [path], people).lines] == ["ada"]
    others = Roster.of([Learner("ada", "Ada"), Learner("1235", "Bert")])
    assert [line.status for line in collect(course, [path], others).lines] == ["held"]


@pytest.mark.parametrize(("member", "file"), [
    ("lovelaceada_55_9001_lab90-fixture.ipynb", "lab90-fixture.ipynb"),
    ("lovelaceada_LATE_55_9001_lab90-fixture-2.ipynb", "lab90-fixture-2.ipynb"),  # a second attempt
    ("lovelaceada_LATE_55_9001_7_8_lab.ipynb", "7_8_lab.ipynb"),
    ("countess_lovelace_55_9001_lab.ipynb", "lab.ipynb"),
])
def test_canvas_late_and_in_several_attempts(course, roster, inbox, solved, member, file):
    report = collect(course, [zip_of(inbox / "submissions.zip", {member: solved("")})], roster)
    assert [line.learner for line in report.lines] == ["ada"]
    about = known(course, "ada", "canvas")
    assert (about["user"], about["number"], about["file"]) == ("55", "9001", file)
    assert member == f"{about['prefix']}_{about['file']}"


GROUP = Roster.of([Learner("ada", "Ada Lovelace", ("Project Group 3",)),
                   Learner("grace", "Grace Hopper", ("Project Group 3",)), Learner("olga", "Ольга Иванова")])


def test_a_canvas_group_hands_in_for_the_member_whose_name_is_in_the_notebook(course, inbox, solved):
    path = zip_of(inbox / "submissions.zip", {"projectgroup3_55_9001_lab.ipynb": solved("grace")})
    (line,) = collect(course, [path], GROUP).lines
    assert (line.status, line.learner) == ("collected", "grace")
    assert "handed in for the group of ada, grace: collected as grace's" in line.notes
    about = known(course, "grace", "canvas")
    assert "user" not in about and about["prefix"] == "projectgroup3_55_9001"


def test_the_number_of_a_group_in_moodle_is_nobodys(course, inbox, solved):
    """It counts groups there, so that the same number may be another learner's."""
    member = "Project Group 3_77_assignsubmission_file_/lab.ipynb"
    collect(course, [zip_of(inbox / "m.zip", {member: solved("grace")})], GROUP)
    assert not {"user", "prefix"} & known(course, "grace", "moodle").keys()


@pytest.mark.parametrize(("writer", "said"),
                         [("", "whom the roster does not know"), ("olga", "LEARNER is olga")])
def test_a_group_without_a_members_name_is_held(course, inbox, solved, writer, said):
    path = zip_of(inbox / "submissions.zip", {"projectgroup3_55_9001_lab.ipynb": solved(writer)})
    (line,) = collect(course, [path], GROUP).lines
    assert line.status == "held" and said in " ".join(line.notes)


def test_namesakes_are_no_group(course, inbox, solved):
    people = Roster.of([Learner("one", "Ann Lee"), Learner("two", "Ann Lee")])
    path = zip_of(inbox / "m.zip", {"Ann Lee_7_assignsubmission_file_/lab.ipynb": solved("one")})
    assert [line.status for line in collect(course, [path], people).lines] == ["held"]


@pytest.mark.parametrize("member", [
    "Lab 90_j_smith_attempt_2026-01-15-13-30-00_lab.ipynb", "j_smith_attempt_2026-01-15-13-30-00_lab.ipynb",
    "Lab_90_ada_j_smith_attempt_2026-01-15-13-30-00.ipynb",
])
def test_blackboards_user_names_with_an_underscore(course, inbox, solved, member):
    people = Roster.of([Learner("j_smith", "Jo Smith"), Learner("smith", "Al Smith"), Learner("ada", "Ada")])
    (line,) = collect(course, [zip_of(inbox / "b.zip", {member: solved("")})], people).lines
    assert (line.learner, line.received) == ("j_smith", "2026-01-15T13:30:00+00:00")
    assert known(course, "j_smith", "blackboard")["login"] == "j_smith"


GRADESCOPE = """\
submission_11:
  :submitters:
  - :name: Ada Lovelace
    :sid: '4711'
    :email: ada@example.org
  :created_at: 2026-01-14 10:00:00.123456789 Z
  :score: 3.0
submission_12:
  :submitters:
  - :name: Grace Hopper
    :sid: '4712'
    :email: grace@example.org
  - :name: José Núñez
    :sid: '4713'
    :email: jose@example.org
  :created_at: 2026-01-14 12:00:00 +01:00
submission_13:
  :submitters:
  - :name: Nobody Known
    :sid: '1'
    :email: nobody@example.org
"""


@pytest.mark.parametrize("how", ["zip", "folder", "zip in a folder"])
def test_gradescopes_export(course, roster, inbox, solved, tmp_path, how):
    files = {f"assignment_5_export/submission_{n}/lab.ipynb": solved("") for n in (11, 12, 13)}
    files["assignment_5_export/submission_metadata.yml"] = GRADESCOPE
    path = zip_of(inbox / "submissions.zip", files)
    if how == "folder":
        subprocess.run(["unzip", "-q", path, "-d", tmp_path / "out"], check=True)
        path = tmp_path / "out"
    report = collect(course, [inbox if how == "zip in a folder" else path], roster)
    times = {line.learner: line.received for line in report.lines if line.status == "collected"}
    assert times == {"ada": "2026-01-14T10:00:00+00:00", "grace": "2026-01-14T11:00:00+00:00",
                     "jose": "2026-01-14T11:00:00+00:00"}
    assert known(course, "jose", "gradescope") == {"login": "4713"}
    (held,) = (line for line in report.lines if line.status == "held")
    assert "Gradescope says '1', whom the roster does not know" in held.notes
    assert report.count("ignored") == 1


@pytest.mark.parametrize(("text", "said"), [
    ("a: [", "cannot be read"), ("- 1\n- 2", "not a list of submissions"), ("\x00", "cannot be read"),
    ("submission_11: !!python/object/apply:os.system ['touch /tmp/inferlab-yaml']", "cannot be read"),
])
def test_a_list_that_cannot_be_used_is_said_and_the_files_speak_for_themselves(course, roster, inbox, solved,
                                                                               text, said):
    files = {"e/submission_metadata.yml": text, "e/submission_11/lab.ipynb": solved("ada")}
    report = collect(course, [zip_of(inbox / "s.zip", files)], roster)
    assert [line.status for line in report.lines] == ["held", "collected"]
    assert said in " ".join(report.lines[0].notes)


@pytest.mark.parametrize("text", ["submission_11: 3", "submission_11: {}", "submission_11:\n  :submitters: 7",
                                  "submission_11:\n  :submitters:\n  - 7\n  :created_at: soon",
                                  "11: null\n? [a]\n: {}"])
def test_a_list_of_another_form_never_stops_the_rest(course, roster, inbox, solved, text):
    files = {"e/submission_metadata.yml": text, "e/submission_11/lab.ipynb": solved("ada")}
    report = collect(course, [zip_of(inbox / "s.zip", files)], roster)
    assert collected(report) == {"e/submission_11/lab.ipynb": "ada"}


@pytest.mark.parametrize("place", [
    "e/submission_11/{}", "Ada Lovelace_1_assignsubmission_file_/{}", "ada/{}",
    "e/submission_11/work.zip/{}"])
def test_a_list_that_a_learner_handed_in_says_nothing(course, roster, inbox, solved, tmp_path, place):
    mine = {"submission_metadata.yml": GRADESCOPE.replace("submission_12", "submission_9"),
            "submission_9/lab.ipynb": solved("grace")}
    files = {"e/submission_metadata.yml": GRADESCOPE} if place.startswith("e/") else {}
    if "zip" in place:
        files[place.partition("/{}")[0]] = zip_of(tmp_path / "inner.zip", mine).read_bytes()
    else:
        files |= {place.format(name): content for name, content in mine.items()}
    report = collect(course, [zip_of(inbox / "s.zip", files)], roster)
    assert not course.submitted("grace", LAB).exists()
    assert not any(line.status == "collected" for line in report.lines)


# -- files that went through other programs ------------------------------------------------------------------
@pytest.mark.parametrize("name", [
    "Copy of lab90-fixture.ipynb", "Kopie von lab90-fixture.ipynb", "Copie de lab90-fixture (1).ipynb",
    "Ada Lovelace - lab90-fixture.ipynb", "drive-download-20260115T133000Z-001/lab90-fixture.ipynb",
    "__notebook_source__.ipynb", "notebook1a2b3c4d5e.ipynb", "lab90-fixture.ipynb.txt",
    "lab90-fixture copy 2.ipynb",
])
def test_copies_of_drive_kaggle_and_desktops_are_told_by_their_content(hand_in, solved, name):
    report = hand_in({name: solved()})
    assert [(line.status, line.learner, line.lab) for line in report.lines] == [("collected", "ada", LAB)]


def test_kaggles_export(hand_in, solved, placed):
    """Kaggle gives every cell a `_uuid` and `_cell_guid`, joins its lines, and has format 4.4 without ids."""
    notebook = solved()
    notebook["nbformat_minor"] = 4
    notebook["metadata"]["kaggle"] = {"accelerator": "none", "dataSources": [], "isGpuEnabled": False}
    for number, one in enumerate(notebook["cells"]):
        del one["id"]
        one["source"] = "".join(one["source"])
        one["metadata"] |= {"_uuid": f"{number:032x}", "_cell_guid": f"{number:032x}", "trusted": True}
    report = hand_in({"__notebook__.ipynb": notebook})
    assert report.count("collected") == 1
    assert "x + x" in placed()["double"].source


def test_vs_codes_export(hand_in, solved, placed):
    """VS Code adds `vscode.languageId`, keeps empty outputs, and writes format 4.2 without ids where it began
    with one."""
    notebook = solved()
    notebook["nbformat_minor"] = 2
    notebook["metadata"]["language_info"] = {"name": "python", "version": "3.11.9"}
    for one in notebook["cells"]:
        del one["id"]
        one["metadata"] |= {"vscode": {"languageId": "python"}}
    report = hand_in({"Untitled-1.ipynb": notebook})
    assert report.count("collected") == 1
    assert "x + x" in placed()["double"].source


# -- nbgrader's exchange -------------------------------------------------------------------------------------
def exchange(inbox, solved, folder, learner=""):
    path = inbox / folder / "lab90-fixture.ipynb"
    path.parent.mkdir()
    path.write_text(json.dumps(solved(learner)), "utf-8")
    (path.parent / "timestamp.txt").write_text("2026-01-14 09:00:00.000000 UTC")
    (path.parent / "submission_secret.txt").write_text("0123")
    return path


def test_the_inbound_folder_of_nbgraders_exchange(course, roster, inbox, solved):
    exchange(inbox, solved, "ada+lab90-fixture+2026-01-14 09:00:00.123456 UTC+Zk3-_x")
    exchange(inbox, solved, "grace+lab90-fixture+2026-01-14 10:00:00.000000 UTC")
    report = collect(course, [inbox], roster)
    assert {line.learner: line.received for line in report.lines if line.status == "collected"} == {
        "ada": "2026-01-14T09:00:00+00:00", "grace": "2026-01-14T10:00:00+00:00"}
    assert report.count("ignored") == 4


def test_a_folder_in_the_exchange_that_belongs_to_another_learner_is_held(course, inbox, solved, monkeypatch):
    """Everybody may make a folder of any name there; whose it is says the system."""
    exchange(inbox, solved, "grace+lab90-fixture+2026-01-14 09:00:00.123456 UTC+Zk3-_x")
    import pwd
    me = pwd.getpwuid(os.getuid()).pw_name
    people = Roster.of([Learner("grace", "Grace Hopper"), Learner("mallory", "Mallory", (me,))])
    (line,) = (line for line in collect(course, [inbox], people).lines if line.status != "ignored")
    assert line.status == "held"
    assert f"the file's owner '{me}' is mallory" in " ".join(line.notes)


@pytest.mark.parametrize("name", ["a_1_b.ipynb", "lab 2_3_4_x.ipynb", "lab-2_3_4_x.ipynb", "ada+x.ipynb",
                                  "my attempt_2026.ipynb", "Ada_assignsubmission_file.ipynb"])
def test_a_name_that_no_platform_writes_is_none_of_a_platform(name):
    assert said_by(name) == []
