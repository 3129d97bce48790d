"""nbgrader's own exchange between an instructor and learners who are users of one machine."""

import getpass
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbformat
import pytest

from inferlab.grading.collecting.collect import collect
from inferlab.grading.gradebook.batch import grade_lab
from inferlab.grading.roster import Learner, Roster
from tests.grading.other_users import reachable
from tests.grading.tiny import LAB, WRONG_HALF, TinyCourse

pytestmark = pytest.mark.sandbox
#: Two accounts that every Debian has. Only root can be them; anybody else is the one learner.
ACCOUNTS = ("games", "news") if os.getuid() == 0 else (getpass.getuser(),)


@pytest.fixture(scope="module")
def place():
    """A folder that every user can go into."""
    folder = Path(tempfile.mkdtemp(prefix="inferlab-exchange-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def nbgrader(place, account, where, *arguments):
    """Run an nbgrader command as this user of the machine, in their own folder."""
    environment = {"HOME": str(where), "USER": account, "LOGNAME": account, "LANG": "C.UTF-8",
                   "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    who = ["setpriv", f"--reuid={account}", f"--regid={pwd.getpwnam(account).pw_gid}", "--clear-groups"]
    command = ["nbgrader", *arguments, f"--Exchange.root={place / 'exchange'}", "--course=inferlab"]
    done = subprocess.run(reachable([*who, *command]) if os.getuid() == 0 else command, cwd=where,
                          env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def exchanged(place, tmp_path_factory):
    """A lab that was released, fetched and handed in by each account: all right, and half wrong."""
    course = TinyCourse(tmp_path_factory.mktemp("course"))
    (place / "exchange").mkdir()
    (place / "exchange").chmod(0o777)
    me = pwd.getpwuid(os.getuid()).pw_name
    nbgrader(place, me, course.root, "release_assignment", LAB)
    for number, account in enumerate(ACCOUNTS):
        home = place / account
        home.mkdir()
        shutil.chown(home, account)
        nbgrader(place, account, home, "fetch_assignment", LAB)
        path = home / LAB / f"{LAB}.ipynb"
        assert path.stat().st_uid == pwd.getpwnam(account).pw_uid
        nbformat.write(course.solution(**({"half": WRONG_HALF} if number else {})), path)
        nbgrader(place, account, home, "submit", LAB)
    course.me = me
    return course


def test_what_users_submit_is_collected_and_graded(place, exchanged):
    told = nbgrader(place, exchanged.me, exchanged.root, "collect", LAB)
    assert "cheating attempt" not in told
    rows = {row.learner: row for row in grade_lab(exchanged.course, LAB)}
    assert {who: row.points for who, row in rows.items()} == dict(zip(ACCOUNTS, (5.0, 3.0), strict=False))
    stamp = (exchanged.root / "submitted" / ACCOUNTS[0] / LAB / "timestamp.txt").read_text()
    assert stamp.endswith(" UTC")


def test_the_inbound_folder_is_collected_with_times_and_owners(place, exchanged):
    people = Roster.of([Learner(account) for account in ACCOUNTS])
    report = collect(exchanged.course, [place / "exchange" / "inferlab" / "inbound"], people)
    found = {line.learner: datetime.fromisoformat(line.received) for line in report.lines
             if line.status == "collected"}
    assert set(found) == set(ACCOUNTS)
    assert all(abs(datetime.now(UTC) - time) < timedelta(minutes=30) for time in found.values())
    assert report.count("held") == 0


def test_a_learner_who_hands_in_under_another_name_is_held(place, exchanged):
    account = ACCOUNTS[-1]
    nbgrader(place, account, place / account, "submit", LAB, "--student=victim")
    people = Roster.of([Learner("victim"), *(Learner(account) for account in ACCOUNTS)])
    report = collect(exchanged.course, [place / "exchange" / "inferlab" / "inbound"], people)
    (line,) = (line for line in report.lines if line.status == "held")
    assert f"the file's owner '{account}' is {account}" in " ".join(line.notes)
    assert not exchanged.course.submitted("victim", LAB).exists()
