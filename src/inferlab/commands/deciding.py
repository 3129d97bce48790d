"""What `inferlab` does with marks that are there: what a person decides, mended tests, changed dates."""

import argparse
import textwrap

from .marking import with_penalties
from .shared import LOOK, OK, Answer, Fault, opened_course, show_progress, wanted_labs


def review(arguments: argparse.Namespace) -> Answer:
    """`inferlab review`."""
    from inferlab.grading.gradebook.record import grading_notes
    from inferlab.grading.gradebook.review import give_points, review_command, to_review
    from inferlab.grading.reporting.grades import grades

    course = opened_course(arguments)
    lab = course.require(arguments.lab) if arguments.lab else None
    if arguments.set:
        learner, check, points = arguments.set
        if lab is None:
            raise Fault("--set needs the lab: inferlab review LAB --set LEARNER CHECK POINTS")
        given = give_points(course, lab, learner, check, float(points), arguments.note)
        answer = OK, f"{learner}: {given['check']} is {given['score']:g} of {given['maximum']:g}", given
        return with_penalties(answer, course, lab)
    if arguments.groups or arguments.give:
        if lab is None:
            raise Fault("--groups and --give need the lab: inferlab review LAB --groups")
        give = (arguments.give[0], float(arguments.give[1])) if arguments.give else None
        still_open, text, data = review_command(course, lab, give, arguments.note)
        answer = (LOOK if still_open else OK), text, data
        return with_penalties(answer, course, lab) if give else answer
    items = to_review(course, lab)
    lines = [f"{item['learner']:15} {item['lab']:24} {item['check']:28} {item['score']:g} of "
             f"{item['maximum']:g}\n"
             + "\n".join(f"    {text}" for text in [*item["why"], *item.get("evidence", [])])
             for item in items]
    notes = [f"{grade.learner}, {grade.lab}: {note}" for grade in grades(course, lab)
             for note in grading_notes(course, grade.lab, grade.learner)]
    return (LOOK if items else OK), "\n".join([*(lines or ["nothing to look at"]), *notes]), items


def regrade(arguments: argparse.Namespace) -> Answer:
    """`inferlab regrade`."""
    from inferlab.grading.gradebook.regrade import regrade

    result = regrade(opened_course(arguments), arguments.lab, write=arguments.yes, learners=arguments.learner,
                     progress=lambda done, total, who: show_progress(f"{done} of {total} {who}"))
    lines = [f"{change.learner:15} {change.check:28} {change.before:g} -> {change.after:g}"
             + ("  (points by hand stand)" if change.by_hand else "") for change in result.changes]
    moved = {who: pair for who, pair in result.totals.items() if pair[0] != pair[1]}
    lines += [f"{who}: {before:g} -> {after:g} ({after - before:+g})"
              for who, (before, after) in moved.items()]
    lines.append(f"{len(moved)} of {len(result.totals)} learners change")
    lines += [f"could not be graded: {who}: {why.strip().splitlines()[-1]}"
              for who, why in result.failed.items()]
    if result.release_changed:
        lines.append("note: what learners see has changed as well, not only hidden tests")
    waiting = bool(result.changes) and not arguments.yes
    lines.append("written" if result.written else "nothing was written; --yes writes it" if waiting
                 else "nothing to write")
    return (LOOK if waiting or result.failed else OK), "\n".join(lines), result.as_dict()


def claims(arguments: argparse.Namespace) -> Answer:
    """`inferlab claims`."""
    from inferlab.grading.course import CourseError
    from inferlab.grading.gradebook.lab_claims import LabClaims

    course = opened_course(arguments)
    lab = course.require(arguments.lab)
    held = LabClaims(course, lab)
    if arguments.add is None:
        fields = {arguments.field: held.fields.get(arguments.field, "")} if arguments.field else held.fields
        lines = (f"{field}\n{textwrap.indent(text, '  ')}" for field, text in fields.items())
        return OK, "\n".join(lines), fields
    if not arguments.field:
        raise Fault("say of which field: inferlab claims LAB FIELD --add ...")
    kinds = {"wanted": arguments.wanted, "false": arguments.false}
    heading = next((f"{kind}: {text}" for kind, text in kinds.items() if text), "true")
    held.add(arguments.field, heading, arguments.add)
    added = f"{held.path.relative_to(course.root)}: {arguments.field}: {heading}: {arguments.add}"
    try:
        code, text, data = regrade(arguments)
    except CourseError as error:
        return OK, f"{added}\n{error}", {"added": added}
    return code, f"{added}\n{text}", {"added": added, **data}


def late(arguments: argparse.Namespace) -> Answer:
    """`inferlab late`."""
    from inferlab.grading.gradebook.lateness import set_penalties
    from inferlab.grading.roster import Roster

    course = opened_course(arguments)
    roster = Roster.load(course.roster)
    rows = [{"lab": lab, "learner": who, "deadline": a.deadline.isoformat(),
             "hours_late": round(a.late.total_seconds() / 3600, 2),
             "free_days": a.free_days, "share_lost": a.share}
            for lab in wanted_labs(course, arguments.labs)
            for who, a in set_penalties(course, roster, lab).items()]
    lines = [f"{row['learner']:15} {row['lab']:24} {row['hours_late']:8g} h late, "
             f"{row['free_days']} free days, loses {row['share_lost']:.0%}"
             for row in rows if row["hours_late"] or row["free_days"]]
    return OK, "\n".join(lines) or "nobody is late", rows
