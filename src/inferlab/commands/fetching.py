"""`inferlab collect --git`: the files come from learners' repositories."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inferlab.grading.collecting.incoming import Incoming
    from inferlab.grading.course import Course
    from inferlab.grading.roster import Roster

from .shared import Fault, show_progress


def fetched(arguments: argparse.Namespace, course: "Course", roster: "Roster") -> "list[Incoming]":
    """The lab's notebooks in the repositories that `--git` lists; none without it."""
    if arguments.git is None:
        if arguments.until:
            raise Fault("--until belongs to --git")
        return []
    from inferlab.grading.collecting.repositories import from_git, read_list
    from inferlab.grading.gradebook.lateness import last_times

    if arguments.lab is None:
        raise Fault("--git takes each repository as it was at one lab's deadline: say --lab")
    due = last_times(course, roster, course.require(arguments.lab), arguments.until)
    return list(from_git(read_list(arguments.git, roster), arguments.lab, due,
                         lambda learner: show_progress(f"fetching {learner}")))
