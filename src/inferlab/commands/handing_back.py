"""What `inferlab` makes of marks: tables for platforms, their autograder, reports."""

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inferlab.grading.course import Course
    from inferlab.grading.reporting.grades import Grade

from inferlab.terminal import table

from .shared import LOOK, OK, Answer, Fault, opened_course, show_progress


def export(arguments: argparse.Namespace) -> Answer:
    """`inferlab export`."""
    from inferlab.grading.reporting.grades import export_rows, grades, not_graded, write_csv

    course = opened_course(arguments)
    lab = course.require(arguments.lab) if arguments.lab else None
    found = grades(course, lab)
    waiting = not_graded(course, found, lab)
    if arguments.platform != "csv":
        return _platform_table(arguments, course, lab, found, [learner for learner, _ in waiting])
    if arguments.sheet or arguments.column or arguments.out_of is not None:
        raise Fault("--sheet, --column and --out-of belong to a platform's table: say --for")
    rows = export_rows(course, found)
    path = course.may_write(arguments.to or course.root / "grades.csv", ".csv")
    write_csv(rows, path)
    columns = ("learner", "name", "lab", "total", "maximum", "penalty", "notes")
    lines = [table((*columns, "in review"), [(*(row[c] for c in columns), "yes" * row["needs_review"])
                                             for row in rows])]
    earlier = {(grade.learner, grade.lab) for grade in found}
    lines += [f"{learner:15} {name:24} handed in, not graded yet: inferlab grade {name}"
              + " (what is shown is for an earlier file)" * ((learner, name) in earlier)
              for learner, name in waiting]
    data = {"grades": rows, "not_graded": [{"learner": learner, "lab": name} for learner, name in waiting]}
    return (LOOK if waiting else OK), "\n".join([*lines, f"written: {path}"]), data


def _platform_table(arguments: argparse.Namespace, course: "Course", lab: str | None, found: "list[Grade]",
                    waiting: list[str]) -> Answer:
    """Write the table that a learning platform imports."""
    from inferlab.grading.course import write_whole
    from inferlab.grading.platforms import PLATFORMS
    from inferlab.grading.reporting.grade_tables import NO_HAND_IN, Source, filled_table, known_by, new_table
    from inferlab.grading.roster import Roster

    if lab is None:
        raise Fault(f"a table for {arguments.platform} is of one lab: inferlab export LAB --for "
                    f"{arguments.platform}")
    if arguments.out_of is not None and not 0 < arguments.out_of < 1e6:
        raise Fault(f"--out-of {arguments.out_of:g} is not a maximum of points")
    roster = Roster.load(course.roster) if course.roster.exists() else Roster(())
    graded = {grade.learner: grade for grade in found if grade.learner not in waiting}
    known = known_by(course, lab, arguments.platform, list(graded))
    source = Source(lab, arguments.platform, graded, roster, known, arguments.column, arguments.out_of)
    sheet = arguments.sheet
    table = filled_table(source, sheet, waiting) if sheet else new_table(source, waiting)
    suffix = sheet.suffix if sheet else ".csv"
    path = arguments.to or course.root / "grades" / f"{lab}-{arguments.platform}{suffix}"
    if sheet and path.resolve() == sheet.resolve():
        raise Fault(f"{path} is the platform's own table: say another file with --to")
    course.may_write(path, suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, table.data)
    in_review = [grade.learner for grade in found if grade.needs_review and grade.learner in table.written]
    lines = [f"{learner:15} not in it: {why}" for learner, why in sorted(table.left_out.items())]
    lines += [f"{learner:15} in it, and a person will still look at it" for learner in in_review]
    lines += [f"nobody on the roster: {line}" for line in table.strangers]
    lines.append(f"written: {path} ({len(table.written)} grades)")
    if not sheet and (note := PLATFORMS[arguments.platform].note):
        lines.append(note)
    lost = {learner for learner, why in table.left_out.items() if why != NO_HAND_IN}
    return (LOOK if lost else OK), "\n".join(lines), {
        "file": str(path), "written": table.written, "left_out": table.left_out, "in_review": in_review,
        "strangers": table.strangers}


def gradescope(arguments: argparse.Namespace) -> Answer:
    """`inferlab gradescope`."""
    from inferlab.grading.gradebook.batch_setup import configured_limits
    from inferlab.grading.gradescope.package import pack

    course = opened_course(arguments)
    show_progress(f"packing {arguments.lab} and the package")
    made = pack(course, arguments.lab, course.may_write(arguments.zip, ".zip"),
                limits=configured_limits(course), visibility=arguments.show)
    text = (f"written: {made.path} ({made.size / 2**20:.0f} MB). The assignment gives {made.points:g} "
            "points. It holds the hidden tests: upload it, and give it to nobody")
    return OK, text, {"file": str(made.path), "bytes": made.size, "points": made.points}


def report(arguments: argparse.Namespace) -> Answer:
    """`inferlab report`."""
    from dataclasses import asdict

    from inferlab.grading.reporting.class_report import question_summary
    from inferlab.grading.reporting.similar import similar

    course = opened_course(arguments)
    if arguments.whole_class:
        return _class_report(course, arguments)
    if arguments.lab is None:
        raise Fault("which lab? inferlab report LAB, or inferlab report --class")
    lab = course.require(arguments.lab)
    rows = question_summary(course, lab)
    lines = [table(
        ("question", "graded", "mean", "points", "full", "zero", "points: learners"),
        [(*(row[key] or 0 for key in ("question", "graded", "mean", "points", "full", "zero")),
          ", ".join(f"{points}: {count}" for points, count in row["histogram"].items())) for row in rows])]
    for row in rows:
        mistakes = row["mistakes"] or row["messages"]
        lines += [f"{row['question']}:"] * bool(mistakes)
        lines += [f"  {count} x {message}" for message, count in mistakes]
    data: dict[str, Any] = {"lab": lab, "questions": rows}
    if arguments.similar:
        groups = similar(course, lab)
        data["similar"] = [asdict(group) for group in groups]
        lines += ["similar answers, for you to look at:"] if groups else ["no similar answers"]
        lines += [f"  {group.exercise}: {', '.join(group.learners)}, {group.likeness:.0%} alike"
                  for group in groups]
    return OK, "\n".join(lines), data


def _class_report(course: "Course", arguments: argparse.Namespace) -> Answer:
    """Write the page and the tables of the whole class, of one lab where it is given."""
    from collections import Counter

    from inferlab.grading.reporting.class_report import class_report, write_class_report

    found = class_report(course, [course.require(arguments.lab)] if arguments.lab else None)
    paths = write_class_report(found, arguments.to or course.root / "class-report")
    lines = []
    for lab in found.labs:
        counts = Counter(one.state for one in found.work if one.lab == lab)
        lines.append(f"{lab}: {', '.join(f'{count} {state}' for state, count in counts.items())}")
    lines += [f"{one.lab}, {one.name}: hardly tells learners apart (discrimination {one.discrimination})"
              for one in found.weakest]
    lines.append(f"written: {paths[0]} and {', '.join(path.name for path in paths[1:])}")
    return OK, "\n".join(lines), found.as_dict() | {"files": [str(path) for path in paths]}
