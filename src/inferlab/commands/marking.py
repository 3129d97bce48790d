"""From what was handed in to marks and feedback: `inferlab collect`, `grade` and `feedback`."""

import argparse
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inferlab.grading.course import Course

from .fetching import fetched
from .shared import FAILED, LOOK, OK, Answer, Fault, opened_course, show_progress


def collect(arguments: argparse.Namespace) -> Answer:
    """`inferlab collect`."""
    from inferlab.grading.collecting.collect import collect
    from inferlab.grading.collecting.overrides import read_times
    from inferlab.grading.roster import Roster

    course = opened_course(arguments)
    roster = Roster.load(arguments.roster or course.roster)
    assign: dict[str, str] = {}
    for pair in arguments.assign:
        if "=" not in pair:
            raise Fault(f"--assign {pair}: write FILE=ID")
        name, _, identity = pair.rpartition("=")
        if assign.setdefault(name, identity) != identity:
            raise Fault(f"--assign {name} is given twice: {assign[name]} and {identity}")
    times = read_times(arguments.times, roster) if arguments.times else None
    items = fetched(arguments, course, roster)
    if not arguments.paths and not arguments.git:
        raise Fault("what is to be collected? Give a PATH, or --git LIST.csv")
    report = collect(course, arguments.paths, roster, lab=arguments.lab, assign=assign, times=times,
                     items=items)
    lines = []
    for line in report.lines:
        if line.status != "ignored":
            lines.append(f"{line.status:9} {line.learner or '?':15} {line.lab or '?':24} {line.file}")
            lines += [f"          - {note}" for note in line.notes]
    lines += [f"missing in {lab}: {', '.join(who) or 'nobody'}" for lab, who in report.missing.items()]
    if any(line.status == "held" and not line.learner for line in report.lines):
        lines.append("held for want of a learner: mend the roster and run the same command again, or add "
                     "--assign FILE=ID")
    nothing = report.count("ignored") == len(report.lines)
    lines += ["there is no file in what was given"] * nothing
    lines.append(", ".join(f"{count} {status}" for status, count in report.as_dict()["counts"].items()))
    return (LOOK if report.count("held") or nothing else OK), "\n".join(lines), report.as_dict()


def grade(arguments: argparse.Namespace) -> Answer:
    """`inferlab grade`."""
    import os

    from inferlab.grading.authoring.build import older_than_text
    from inferlab.grading.gradebook.batch import grade_lab

    course = opened_course(arguments)
    lab = course.require(arguments.lab)
    if older_than_text(course, lab):
        raise Fault(f"notebooks/{lab}/ has changed since source/{lab}/{lab}.ipynb, which decides the marks, "
                    f"was built. Run inferlab build {lab} to grade by the lab as it is now; where it was "
                    f"graded before, inferlab regrade {lab} first shows whose points that changes")
    show_progress(f"grading {lab}: the sandbox and the tests start, which takes some seconds")
    rows = grade_lab(course, lab, workers=arguments.workers or os.cpu_count() or 1,
                     scheduler=arguments.scheduler,
                     learners=arguments.learner, questions=arguments.question, rerun=arguments.again,
                     db_url=arguments.db,
                     mode="none" if arguments.no_sandbox else "sandbox", on_row=eta())
    lines = []
    for row in rows:
        points = f"{row.points:g} of {row.maximum:g}" if row.points is not None else "-"
        lines.append(f"{row.learner:15} {row.state:10} {points:12} {row.problem}")
        told = [*row.notes, *row.seen, *(f"to review: {text}" for text in row.review)]
        lines += [f"    - {text}" for text in told]
    states = {state: sum(row.state == state for row in rows)
              for state in ("graded", "kept", "unreadable", "failed")}
    if lab in course.due and course.late.per_day:
        lines.append("points are before the penalty for lateness: inferlab export shows both")
    lines.append(", ".join(f"{count} {state}" for state, count in states.items()))
    if any(row.unprotected for row in rows):
        lines.append("GRADED WITHOUT THE SANDBOX: learners' code ran with your rights")
    look = states["unreadable"] or states["failed"] or any(row.review or row.seen for row in rows)
    answer = (LOOK if look else OK), "\n".join(lines), [row.as_dict() for row in rows]
    return with_penalties(answer, course, lab, arguments.db)


def with_penalties(answer: Answer, course: "Course", lab: str, db_url: str | None = None) -> Answer:
    """Set the penalties for lateness anew, after marks have changed: they are shares of what was earned.

    Gives `answer`, with a line more where there is no roster. Where not every penalty can be set, gives what
    was done all the same, and the reason.
    """
    from inferlab.grading.gradebook.lateness import set_penalties
    from inferlab.grading.roster import Roster

    code, text, data = answer
    if not course.roster.exists():
        if lab in course.due:
            text += (f"\nthere is no {course.roster.relative_to(course.root)}: penalties for lateness count "
                     f"no extensions and no free days; make it, then: inferlab late {lab}")
        return code, text, data
    try:
        set_penalties(course, Roster.load(course.roster), lab, db_url)
    except ValueError as error:
        problem = f"not every penalty for lateness is set: {error}"
        text = f"{text}\n{problem}; mend it, then: inferlab late {lab}"
        return FAILED, text, {"error": problem, "done": data}
    return answer


def eta() -> Callable[[Any, int, int], None]:
    """A callback that shows how many submissions are done and left, and when 95 of 100 and all will be done.

    What an earlier batch has graded is there at once and says nothing about the time that the rest takes.
    """
    import time

    began, kept = time.monotonic(), 0

    def show(row: Any, done: int, total: int) -> None:
        nonlocal kept
        kept += row.state == "kept"
        ran = done - kept
        text = f"graded {done} of {total}, {total - done} left"
        if ran and done < total:
            each = (time.monotonic() - began) / ran
            soon = max(0, math.ceil(0.95 * total) - done)
            text += f", about {each * (total - done):.0f} s, 95 of 100 in {each * soon:.0f} s"
        show_progress(f"{text} ({row.learner}: {row.state})")

    return show


def feedback(arguments: argparse.Namespace) -> Answer:
    """`inferlab feedback`."""
    from inferlab.grading.gradebook.lateness import answers_held_back
    from inferlab.grading.gradebook.record import grading_notes
    from inferlab.grading.reporting.grades import grades, not_graded

    course = opened_course(arguments)
    lab = course.require(arguments.lab)
    learners = arguments.learner or course.learners_of(lab, "autograded")
    if arguments.to and not arguments.platform:
        raise Fault("--to is where a platform's zip goes to: say --for")
    if arguments.to:
        course.may_write(arguments.to, ".zip")
    if not learners:
        raise Fault(f"nobody's {lab} is graded yet: run `inferlab grade {lab}` first")
    if unknown := sorted({*learners} - {*course.learners_of(lab, "autograded")}):
        raise Fault(f"not graded in {lab}: {', '.join(unknown)}")
    from inferlab.grading.reporting.feedback_page import write_feedback

    steps = []
    for number, learner in enumerate(learners, start=1):
        show_progress(f"feedback {number} of {len(learners)}: {learner}")
        steps.append(write_feedback(course, lab, learner, arguments.answers))
    written = [step.learner for step in steps if step.success]
    marks = grades(course, lab)
    in_review = [grade.learner for grade in marks if grade.needs_review and grade.learner in written]
    earlier = [who for who, _ in not_graded(course, marks, lab) if who in written]
    held_back = "" if arguments.answers else answers_held_back(course, lab)
    lines = []
    for step in steps:
        page = f"feedback/{step.learner}/{lab}/{lab}.html{' (still in review)' * (step.learner in in_review)}"
        lines.append(page if step.success else f"{step.learner}: "
                                               f"{(step.error or step.log).strip().splitlines()[-1]}")
        lines += [f"    - {note}" for note in grading_notes(course, lab, step.learner)]
    lines += [f"{who}: the page is of an earlier file, the latest is not graded yet: inferlab grade {lab}"
              for who in earlier]
    if held_back:
        lines.append(f"without model answers: {held_back}. Run this again when nobody may hand in any more, "
                     "or now with --answers")
    failed = [step.learner for step in steps if not step.success]
    data: dict[str, Any] = {"written": written, "failed": failed, "in_review": in_review, "earlier": earlier,
                            "answers_held_back": held_back}
    left_out: dict[str, str] = {}
    if arguments.platform:
        from inferlab.grading.reporting.feedback_zip import write_zip

        path = arguments.to or course.root / "feedback" / f"{lab}-{arguments.platform}.zip"
        zipped = write_zip(course, lab, arguments.platform, written, path)
        left_out = zipped.left_out
        lines += [f"{learner}: not in the zip: {why}" for learner, why in left_out.items()]
        lines.append(f"written: {path} ({len(zipped.written)} pages)")
        data["zip"] = {"file": str(path), "written": zipped.written, "left_out": left_out}
    return (LOOK if failed or in_review or earlier or held_back or left_out else OK), "\n".join(lines), data
