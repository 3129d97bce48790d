"""A faulty test, a slot for a person, and formgrader: instructors see what they must, learners only what they
may."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from ci.servers import free_port
from inferlab.grading.gradebook.batch import grade_lab
from tests.grading import tiny

pytestmark = pytest.mark.sandbox

FAULTY = tiny.TEXT.replace('check.mistake("you divided twice", when=close(got, batch / 4))',
                           "SECRET_NAME.fails()")
REVIEW = tiny.TEXT.replace('    check.equal(len(calls), 3)\n', '''    check.equal(len(calls), 3)
from types import SimpleNamespace
outcome = SimpleNamespace(verdict="review", points=0, reason="says too little to be sure", evidence=[])
check.slot(outcome, "in words")
''')
NO_SCORE = tiny.TEXT.replace("check.score()", "3.0", 1)


def made(tmp_path, monkeypatch, text):
    monkeypatch.setattr(tiny, "TEXT", text)
    course = tiny.TinyCourse(tmp_path)
    course.submit("ada", course.solution())
    (course.row,) = grade_lab(course.course, course.lab)
    return course


def grades(course):
    with Gradebook(course.db) as gradebook:
        found = gradebook.find_submission_notebook(course.lab, course.lab, "ada").grades
        return {g.cell.name: (g.auto_score, bool(g.needs_manual_grade)) for g in found}


def feedback(course):
    from nbgrader.apps import NbGraderAPI

    from inferlab.grading.nbgrader_config import nbgrader_config

    api = NbGraderAPI(config=nbgrader_config(course.course, course.root, course.db))
    assert api.generate_feedback(course.lab, "ada", force=True)["success"]
    return (course.root / "feedback" / "ada" / course.lab / f"{course.lab}.html").read_text()


def test_a_faulty_part_is_flagged_and_gives_no_marks(tmp_path, monkeypatch):
    course = made(tmp_path, monkeypatch, FAULTY)
    assert grades(course) == {"check-half": (1.0, True), "check-loop": (3.0, False)}
    assert "SECRET_NAME" in course.row.review[0]
    page = feedback(course)
    assert "your instructor will look at it" in page
    assert "SECRET_NAME" not in page


def test_a_test_without_a_score_is_an_error_and_never_marks(tmp_path, monkeypatch):
    course = made(tmp_path, monkeypatch, NO_SCORE)
    assert grades(course)["check-half"] == (0.0, True)
    assert "check.score()" in course.row.review[0]


def test_a_slot_for_a_person_waits_for_one(tmp_path, monkeypatch):
    course = made(tmp_path, monkeypatch, REVIEW)
    score, manual = grades(course)["check-loop"]
    assert manual
    assert 0 < score < 3
    assert "says too little to be sure" in course.row.review[0]


@pytest.fixture
def formgrader(tmp_path, monkeypatch):
    """Formgrader under a JupyterLab server of this test's own; gives a function that reads its pages."""
    course = made(tmp_path, monkeypatch, REVIEW)
    port, scripts = free_port(), Path(sys.executable).parent
    home = tmp_path / "home"
    home.mkdir()
    environment = os.environ | {"PATH": f"{scripts}:{os.environ['PATH']}", "HOME": str(home),
                                "JUPYTER_TOKEN": "t"}
    server = subprocess.Popen(
        [scripts / "jupyter", "server", "--allow-root", "--no-browser", f"--port={port}",
         "--ServerApp.token=t",
         "--ServerApp.jpserver_extensions={'nbgrader.server_extensions.formgrader': True}"],
        cwd=course.root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def read(path):
        deadline = time.monotonic() + 90
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/formgrader/{path}?token=t",
                                            timeout=20) as page:
                    return page.read().decode()
            except (ConnectionError, urllib.error.URLError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    yield course, read
    server.terminate()
    server.wait(30)


def test_formgrader_shows_scores_and_what_waits(formgrader):
    course, read = formgrader
    (submission,) = json.loads(read(f"api/submissions/{course.lab}"))
    assert (submission["student"], submission["needs_manual_grade"], submission["max_score"]) == ("ada", True,
                                                                                                  5.0)
    (notebook,) = json.loads(read(f"api/submitted_notebooks/{course.lab}/{course.lab}"))
    page = read(f"submissions/{notebook['id']}/")
    assert "halves a tensor" in page
    assert "in words" in page
    nbformat.validate(nbformat.read(course.root / "autograded" / "ada" / course.lab / f"{course.lab}.ipynb",
                                    4))
