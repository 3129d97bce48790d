"""A large class: nobody is overlooked, and progress tells the truth."""

import types

from inferlab.commands import marking
from inferlab.grading.submission.submitted_folders import MOST_SEEN, submitted_folders


def test_a_class_may_be_larger_than_what_is_looked_at_in_a_learners_folder(course):
    learners = [f"learner-{number:05d}" for number in range(MOST_SEEN + 200)]
    for learner in learners:
        path = course.course.submitted(learner, course.lab)
        path.parent.mkdir(parents=True)
        path.touch()
    assert [folder.learner for folder in submitted_folders(course.course, course.lab)] == learners


def test_progress_counts_what_is_left_and_takes_no_time_from_what_an_earlier_batch_did(monkeypatch):
    shown, now = [], [1000.0]
    monkeypatch.setattr(marking, "show_progress", shown.append)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    tell = marking.eta()
    row = types.SimpleNamespace(learner="ada", state="kept")
    for done in range(1, 101):
        tell(row, done, 200)
    row.state = "graded"
    for done in range(101, 111):
        now[0] += 2.0
        tell(row, done, 200)
    now[0] += 200.0
    tell(row, 200, 200)
    assert shown[99] == "graded 100 of 200, 100 left (ada: kept)"
    assert shown[109] == "graded 110 of 200, 90 left, about 180 s, 95 of 100 in 160 s (ada: graded)"
    assert shown[-1] == "graded 200 of 200, 0 left (ada: graded)"
