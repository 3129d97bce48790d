"""Work from Git repositories: the commit at the deadline counts, and nothing of a repository is run."""

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from inferlab.cli import main
from inferlab.commands import FAILED, LOOK, OK
from inferlab.grading.collecting.collect import collect
from inferlab.grading.collecting.repositories import Repository, from_git, read_list
from inferlab.grading.course import CourseError
from tests import ROOT

LAB = "lab90-fixture"
DUE = datetime(2026, 1, 10, 12, tzinfo=UTC)


def git(where, *arguments, day=1):
    stamp = f"2026-01-{day:02d}T12:00:00+00:00"
    name = {f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")}
    times = {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp, "HOME": str(where)}
    environment = os.environ | name | times
    return subprocess.run(["git", "-C", where, *arguments], env=environment, check=True, capture_output=True,
                          text=True).stdout


@pytest.fixture
def repository(tmp_path, solved):
    """A learner's repository; call it to commit a notebook on a day of January 2026."""
    root = tmp_path / "repositories" / "ada"
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")

    def commit(day, name=f"{LAB}/{LAB}.ipynb", learner="ada", **answers):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(solved(learner, **answers)), "utf-8")
        git(root, "add", "-A", day=day)
        git(root, "commit", "-q", "-m", f"day {day}", day=day)
        return root

    return commit


def from_one(course, roster, root, due=DUE, learner="ada", branch=""):
    items = from_git([Repository(learner, str(root), branch)], LAB, lambda who: due)
    return collect(course, [], roster, lab=LAB, items=items).lines


def test_the_last_commit_before_the_deadline_counts(course, roster, repository):
    repository(8, double="def double(x):\n    return 8")
    repository(9, double="def double(x):\n    return 9")
    root = repository(11, double="def double(x):\n    return 11")
    (line,) = from_one(course, roster, root)
    assert (line.status, line.learner, line.received) == ("collected", "ada", "2026-01-09T12:00:00+00:00")
    assert "return 9" in course.submitted("ada", LAB).read_text("utf-8")
    (line,) = from_one(course, roster, root, due=None)
    assert line.status == "collected" and "return 11" in course.submitted("ada", LAB).read_text("utf-8")


def test_the_stamp_in_the_notebook_makes_no_commit_earlier(course, roster, repository, solved):
    root = repository(9)
    path = root / LAB / f"{LAB}.ipynb"
    notebook = json.loads(path.read_text())
    notebook["metadata"].setdefault("inferlab", {})["submitted"] = "2025-01-01T00:00:00+00:00"
    path.write_text(json.dumps(notebook))
    git(root, "commit", "-q", "-am", "stamped", day=9)
    (line,) = from_one(course, roster, root)
    assert line.received == "2026-01-09T12:00:00+00:00"


def test_only_this_labs_notebook_is_taken_and_other_files_are_not_seen(course, roster, repository):
    repository(2, name="lab01-other/lab01-other.ipynb")
    root = repository(3)
    (root / "notes.txt").write_text("x")
    (root / LAB / ".ipynb_checkpoints").mkdir()
    (root / LAB / ".ipynb_checkpoints" / f"{LAB}-checkpoint.ipynb").write_text("x")
    git(root, "add", "-A", day=4)
    git(root, "commit", "-q", "-m", "more", day=4)
    (line,) = from_one(course, roster, root)
    assert line.file.startswith(f"ada: {LAB}/{LAB}.ipynb (")


@pytest.mark.parametrize(("due", "said"), [
    (datetime(2025, 12, 1, tzinfo=UTC), "no commit before 2025-12-01 00:00 UTC; the latest is of 2026-01-08"),
])
def test_nothing_before_the_deadline_is_said(course, roster, repository, due, said):
    (line,) = from_one(course, roster, repository(8), due)
    assert (line.status, line.learner) == ("held", "ada") and said in " ".join(line.notes)


def test_a_repository_that_cannot_be_read_is_one_line(course, roster, repository, tmp_path):
    root = repository(8)
    items = from_git([Repository("grace", str(tmp_path / "nowhere")), Repository("ada", str(root)),
                      Repository("olga", "https://user:secret@localhost:1/x.git"),
                      Repository("li", "ext::sh -c touch% /tmp/inferlab-ext")], LAB, lambda who: DUE)
    report = collect(course, [], roster, lab=LAB, items=items)
    assert {line.learner: line.status for line in report.lines} == {
        "grace": "held", "ada": "collected", "olga": "held", "li": "held"}
    assert "secret" not in json.dumps(report.as_dict())
    assert not Path("/tmp/inferlab-ext").exists()


def test_an_empty_repository_and_a_branch_that_is_not_there(course, roster, repository, tmp_path):
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    (line,) = from_one(course, roster, tmp_path / "empty")
    assert line.status == "held" and "it cannot be read" in " ".join(line.notes)
    (line,) = from_one(course, roster, repository(8), branch="handin")
    assert line.status == "held" and "handin" in " ".join(line.notes)


def test_links_hooks_and_filters_of_a_repository_do_nothing(course, roster, repository, tmp_path):
    root = repository(8)
    mark = tmp_path / "ran"
    for hook in ("post-checkout", "post-update", "post-receive"):
        path = root / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {mark}\n")
        path.chmod(0o755)
    (root / ".gitattributes").write_text("*.ipynb filter=evil\n")
    git(root, "config", "filter.evil.smudge", f"touch {mark}; cat")
    (root / LAB / "link.ipynb").symlink_to("/etc/passwd")
    git(root, "add", "-A", day=9)
    git(root, "commit", "-q", "-m", "evil", day=9)
    mark.unlink(missing_ok=True)
    lines = {line.file.split(" ")[1]: line for line in from_one(course, roster, root)}
    assert lines[f"{LAB}/{LAB}.ipynb"].status == "collected"
    assert "not followed" in " ".join(lines[f"{LAB}/link.ipynb"].notes)
    assert not mark.exists()


def test_somebody_elses_notebook_in_a_repository_is_held(course, roster, repository):
    (line,) = from_one(course, roster, repository(8, learner="grace"))
    assert line.status == "held" and "named twice" in " ".join(line.notes)


@pytest.mark.parametrize(("text", "said"), [
    ("learner,url\nada,x\n", "must begin with"), ("id,repository\nnobody,x\n", "line 2: 'nobody' is not in"),
    ("id,repository\nada,x\nAda Lovelace,y\n", "line 3: a second repository of ada"),
    ("id,repository\nada,--upload-pack=touch /tmp/x\n", "is not a repository"),
    ("id,repository\nada,\n", "line 2"),
    ("id,repository,branch\nada,x,--output=/tmp/x\n", "is not a branch"),
])
def test_a_list_that_cannot_be_used_is_said(roster, tmp_path, text, said):
    path = tmp_path / "list.csv"
    path.write_text(text)
    with pytest.raises(CourseError, match=said):
        read_list(path, roster)


def test_the_command(course, repository, tmp_path, capsys):
    root = repository(14)
    path = tmp_path / "list.csv"
    path.write_text(f"id,repository\nAda Lovelace,{root}\n")
    place = ["--course", str(course.root), "--git", str(path)]
    assert main(["collect", *place]) == FAILED
    assert "say --lab" in capsys.readouterr().err
    assert main(["collect", *place, "--lab", LAB, "--until", "soon"]) == FAILED
    assert main(["collect", "--course", str(course.root)]) == FAILED
    assert "Give a PATH, or --git" in capsys.readouterr().err
    assert main(["collect", *place, "--lab", LAB, "--until", "2026-01-02T00:00"]) == LOOK
    assert main(["collect", *place, "--lab", LAB]) == OK  # the fixture's deadline is 15 January
    assert "collected ada" in capsys.readouterr().out


# -- the workflow for a class's template repository ------------------------------------------------------
@pytest.mark.parametrize(("since", "checked"), [
    ("HEAD~2", ["lab01-a/lab01-a.ipynb", "lab02-b/lab02-b.ipynb"]), ("0" * 40, ["lab02-b/lab02-b.ipynb"]),
    ("", ["lab02-b/lab02-b.ipynb"]),
])
def test_the_workflow_checks_the_labs_that_a_push_changed(tmp_path, since, checked):
    """Its last step, run by bash with a command of the same name that says no to lab 02."""
    workflow = yaml.safe_load((ROOT / "handbook" / "instructors" / "check.yml").read_text("utf-8"))
    step = workflow["jobs"]["check"]["steps"][-1]
    root, bin_ = tmp_path / "r", tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "inferlab").write_text('#!/bin/sh\necho "checked $2"\ncase $2 in lab02*) exit 1;; esac\n')
    (bin_ / "inferlab").chmod(0o755)
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    for number, name in enumerate(["README.md", "lab01-a/lab01-a.ipynb", "lab02-b/lab02-b.ipynb"], start=1):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("x")
        git(root, "add", "-A", day=number)
        git(root, "commit", "-q", "-m", name, day=number)
    summary = tmp_path / "summary.md"
    summary.touch()
    before = git(root, "rev-parse", since).strip() if since.startswith("HEAD") else since
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", step["run"]], cwd=root, check=False, env={
        "PATH": f"{bin_}:{os.environ['PATH']}", "BEFORE": before, "GITHUB_STEP_SUMMARY": str(summary)})
    lines = [line.split() for line in summary.read_text().splitlines()]
    assert [words[1] for words in lines if words[:1] == ["checked"]] == checked
    assert done.returncode == 1


def test_the_workflow_can_write_nothing(tmp_path):
    workflow = yaml.safe_load((ROOT / "handbook" / "instructors" / "check.yml").read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
