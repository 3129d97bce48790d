"""What every command needs: exit codes, its fault, the course it is about, progress on the terminal."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inferlab.grading.course import Course

OK, LOOK, FAILED = 0, 1, 2

Answer = tuple[int, str, Any]


class Fault(Exception):
    """A command could not be carried out; the message is for the person at the terminal."""


def opened_course(arguments: argparse.Namespace) -> "Course":
    """The course in the folder that `--course` names."""
    from inferlab.grading.course import Course

    return Course.open(arguments.course)


def wanted_labs(course: "Course", wanted: list[str]) -> list[str]:
    """The labs that were named, or all; raises where there is no such lab."""
    return [course.require(lab) for lab in wanted] or course.labs


CLEAR_LINE = "\x1b[2K"


def show_progress(text: str) -> None:
    """Progress goes to stderr and only to a terminal's eye: stdout stays the command's answer."""
    end = "\r" if sys.stderr.isatty() else "\n"
    print(f"{CLEAR_LINE}{text}" if sys.stderr.isatty() else text, end=end, file=sys.stderr, flush=True)


def clear_progress() -> None:
    """Wipe the last progress from the terminal's line, before an answer goes there."""
    if sys.stderr.isatty():
        print(CLEAR_LINE, end="", file=sys.stderr, flush=True)
