"""What each `inferlab` command does: every function takes the parsed arguments and gives (exit code, text, JSON data)."""

import argparse
import sys
from pathlib import Path
from typing import Any

OK, LOOK, FAILED = 0, 1, 2

Answer = tuple[int, str, Any]


class Fault(Exception):
    """A command could not be carried out; the message is for the person at the terminal."""


def _course(arguments: argparse.Namespace):
    from .grading.course import Course

    return Course.open(arguments.course)


def _labs(course, wanted: list[str]) -> list[str]:
    return [course.require(lab) for lab in wanted] or course.labs


CLEAR_LINE = "\x1b[2K"


def _progress(text: str) -> None:
    """Progress goes to stderr and only to a terminal's eye: stdout stays the command's answer."""
    end = "\r" if sys.stderr.isatty() else "\n"
    print(f"{CLEAR_LINE}{text}" if sys.stderr.isatty() else text, end=end, file=sys.stderr, flush=True)


def clear_progress() -> None:
    """Wipe the last progress from the terminal's line, before an answer goes there."""
    if sys.stderr.isatty():
        print(CLEAR_LINE, end="", file=sys.stderr, flush=True)


def check(arguments: argparse.Namespace) -> Answer:
    """`inferlab check`."""
    from dataclasses import asdict

    from .lab.report import headline, total
    from .lab.selfcheck import check_notebook

    try:
        result = check_notebook(arguments.notebook, timeout=arguments.timeout, progress=_progress)
    except UnicodeDecodeError as error:
        raise Fault(f"{arguments.notebook} is not a notebook: it is not UTF-8 text") from error
    lines = [headline(c["check"], c["points"], c["maximum"], c["form_only"]) for c in result.checks]
    lines.append(total(result.lab, result.points, result.maximum, result.later))
    lines += ["still missing:", *(f"  - {text}" for text in result.missing)] if result.missing else ["nothing is missing"]
    return (OK if result.complete else LOOK), "\n".join(lines), asdict(result) | {
        "points": result.points, "maximum": result.maximum, "later": result.later}


def cards(arguments: argparse.Namespace) -> Answer:
    """`inferlab cards`."""
    from .lab.cards import load_cards, print_view

    deck = load_cards(*arguments.sources)
    to = arguments.to or Path(f"{Path(arguments.sources[0]).stem}.cards.html")
    to.write_text(print_view(deck), "utf-8")
    return OK, f"{len(deck.cards)} cards are in {to}: open it and print", {"file": str(to), "cards": len(deck.cards)}


def build(arguments: argparse.Namespace) -> Answer:
    """`inferlab build`."""
    from .grading.build import build_lab, stale_labs

    course = _course(arguments)
    if arguments.check:
        stale = stale_labs(course, _labs(course, arguments.labs) if arguments.labs else None)
        return (LOOK if stale else OK), "\n".join(["out of date:", *stale]) if stale else "up to date", {"stale": stale}
    changed = []
    for lab in _labs(course, arguments.labs):
        _progress(f"building {lab}")
        changed += [str(path.relative_to(course.root)) for path in build_lab(course, lab)]
    return OK, "\n".join(["changed:", *changed]) if changed else "nothing changed", {"changed": changed}


def release(arguments: argparse.Namespace) -> Answer:
    """`inferlab release`."""
    from .grading.build import build_lab, save_to_gradebook

    course, done = _course(arguments), []
    for lab in _labs(course, arguments.labs):
        _progress(f"releasing {lab}")
        build_lab(course, lab)
        save_to_gradebook(course, lab)
        done.append(lab)
    return OK, "\n".join(f"released: release/{lab}/{lab}.ipynb" for lab in done), {"released": done}


def adopt(arguments: argparse.Namespace) -> Answer:
    """`inferlab adopt`."""
    from .grading.adopt import adopt

    course = _course(arguments)
    done = adopt(course, arguments.lab, arguments.notebook)
    text = (f"notebooks/{arguments.lab}/{arguments.lab}.py: {done.rewritten} cells written, {done.kept} unchanged, "
            f"{done.removed} gone. Now run: make release")
    return OK, text, {"lab": arguments.lab, "written": done.rewritten, "kept": done.kept, "removed": done.removed}


def publish(arguments: argparse.Namespace) -> Answer:
    """`inferlab publish`."""
    from .grading.publish import publish

    _progress("building the labs and the wheel, and looking for leaks")
    done = publish(_course(arguments), arguments.folder)
    text = f"{done.folder}: {len(done.files)} files, {len(done.labs)} labs, no answer in them"
    return OK, text, {"folder": str(done.folder), "files": done.files, "labs": done.labs}


def collect(arguments: argparse.Namespace) -> Answer:
    """`inferlab collect`."""
    from .grading.arrival import read_times
    from .grading.collect import collect
    from .grading.roster import Roster

    course = _course(arguments)
    roster = Roster.load(arguments.roster or course.roster)
    assign = {}
    for pair in arguments.assign:
        if "=" not in pair:
            raise Fault(f"--assign {pair}: write FILE=ID")
        name, _, identity = pair.rpartition("=")
        if assign.setdefault(name, identity) != identity:
            raise Fault(f"--assign {name} is given twice: {assign[name]} and {identity}")
    times = read_times(arguments.times, roster) if arguments.times else None
    report = collect(course, arguments.paths, roster, lab=arguments.lab, assign=assign, times=times)
    lines = []
    for line in report.lines:
        if line.status != "ignored":
            lines.append(f"{line.status:9} {line.learner or '?':15} {line.lab or '?':24} {line.file}")
            lines += [f"          - {note}" for note in line.notes]
    lines += [f"missing in {lab}: {', '.join(who) or 'nobody'}" for lab, who in report.missing.items()]
    if any(line.status == "held" and not line.learner for line in report.lines):
        lines.append("held for want of a learner: mend the roster and run the same command again, or add --assign FILE=ID")
    lines.append(", ".join(f"{count} {status}" for status, count in report.as_dict()["counts"].items()))
    return (LOOK if report.count("held") else OK), "\n".join(lines), report.as_dict()


def grade(arguments: argparse.Namespace) -> Answer:
    """`inferlab grade`."""
    import os

    from .grading.batch import grade_lab

    course = _course(arguments)
    lab = course.require(arguments.lab)
    rows = grade_lab(course, lab, workers=arguments.workers or os.cpu_count() or 1, scheduler=arguments.scheduler,
                     students=arguments.learner, questions=arguments.question, rerun=arguments.again, db_url=arguments.db,
                     mode="none" if arguments.no_sandbox else "sandbox", on_row=_eta())
    lines = []
    for row in rows:
        points = f"{row.points:g} of {row.maximum:g}" if row.points is not None else "-"
        lines.append(f"{row.student:15} {row.state:10} {points:12} {row.problem}")
        lines += [f"    - {text}" for text in [*row.notes, *(f"to review: {text}" for text in row.review)]]
    states = {state: sum(row.state == state for row in rows) for state in ("graded", "kept", "unreadable", "failed")}
    lines.append(", ".join(f"{count} {state}" for state, count in states.items()))
    if any(row.unprotected for row in rows):
        lines.append("GRADED WITHOUT THE SANDBOX: learners' code ran with your rights")
    look = states["unreadable"] or states["failed"] or any(row.review for row in rows)
    answer = (LOOK if look else OK), "\n".join(lines), [row.as_dict() for row in rows]
    return _with_penalties(answer, course, lab, arguments.db)


def _with_penalties(answer: Answer, course: Any, lab: str, db_url: str | None = None) -> Answer:
    """Set the penalties for lateness anew, after marks have changed: they are shares of what was earned.

    Gives `answer` itself or, where they cannot be set, what was done all the same and the reason.
    """
    from .grading.lateness import apply
    from .grading.roster import Roster

    try:
        if course.roster.exists():
            apply(course, Roster.load(course.roster), lab, db_url)
    except ValueError as error:
        _, text, data = answer
        problem = f"the penalties for lateness are not set: {error}"
        return FAILED, f"{text}\n{problem}; mend it, then: inferlab late {lab}", {"error": problem, "done": data}
    return answer


def _eta():
    """A callback that shows how many submissions are done and how long the rest will take."""
    import time

    began = time.monotonic()

    def show(row: Any, done: int, total: int) -> None:
        left = (time.monotonic() - began) / done * (total - done)
        _progress(f"graded {done} of {total}, about {left:.0f} s left ({row.student}: {row.state})")

    return show


def review(arguments: argparse.Namespace) -> Answer:
    """`inferlab review`."""
    from .grading.report import to_review
    from .grading.review import give_points, review_command

    course = _course(arguments)
    lab = course.require(arguments.lab) if arguments.lab else None
    if arguments.set:
        learner, check, points = arguments.set
        if lab is None:
            raise Fault("--set needs the lab: inferlab review LAB --set LEARNER CHECK POINTS")
        given = give_points(course, lab, learner, check, float(points), arguments.note)
        answer = OK, f"{learner}: {given['check']} is {given['score']:g} of {given['maximum']:g}", given
        return _with_penalties(answer, course, lab)
    if arguments.groups or arguments.give:
        if lab is None:
            raise Fault("--groups and --give need the lab: inferlab review LAB --groups")
        give = (arguments.give[0], float(arguments.give[1])) if arguments.give else None
        still_open, text, data = review_command(course, lab, give, arguments.note)
        answer = (LOOK if still_open else OK), text, data
        return _with_penalties(answer, course, lab) if give else answer
    items = to_review(course, lab)
    lines = [f"{item['learner']:15} {item['lab']:24} {item['check']:28} {item['score']:g} of {item['maximum']:g}\n"
             + "\n".join(f"    {text}" for text in [*item["why"], *item.get("evidence", [])]) for item in items]
    return (LOOK if items else OK), "\n".join(lines) or "nothing to look at", items


def regrade(arguments: argparse.Namespace) -> Answer:
    """`inferlab regrade`."""
    from .grading.regrade import regrade

    result = regrade(_course(arguments), arguments.lab, write=arguments.yes, learners=arguments.learner,
                     progress=lambda done, total, who: _progress(f"{done} of {total} {who}"))
    lines = [f"{change.learner:15} {change.check:28} {change.before:g} -> {change.after:g}"
             + ("  (points by hand stand)" if change.by_hand else "") for change in result.changes]
    moved = {who: pair for who, pair in result.totals.items() if pair[0] != pair[1]}
    lines += [f"{who}: {before:g} -> {after:g} ({after - before:+g})" for who, (before, after) in moved.items()]
    lines.append(f"{len(moved)} of {len(result.totals)} learners change")
    lines += [f"could not be graded: {who}: {why.strip().splitlines()[-1]}" for who, why in result.failed.items()]
    if result.release_changed:
        lines.append("note: what learners see has changed as well, not only hidden tests")
    waiting = bool(result.changes) and not arguments.yes
    lines.append("written" if result.written else "nothing was written; --yes writes it" if waiting else "nothing to write")
    return (LOOK if waiting or result.failed else OK), "\n".join(lines), result.as_dict()


def late(arguments: argparse.Namespace) -> Answer:
    """`inferlab late`."""
    from .grading.lateness import apply
    from .grading.roster import Roster

    course = _course(arguments)
    roster = Roster.load(course.roster)
    rows = [{"lab": lab, "learner": who, "deadline": a.deadline.isoformat(), "hours_late": round(a.late.total_seconds() / 3600, 2),
             "free_days": a.free_days, "share_lost": a.share}
            for lab in _labs(course, arguments.labs) for who, a in apply(course, roster, lab).items()]
    lines = [f"{row['learner']:15} {row['lab']:24} {row['hours_late']:8g} h late, {row['free_days']} free days, "
             f"loses {row['share_lost']:.0%}" for row in rows if row["hours_late"] or row["free_days"]]
    return OK, "\n".join(lines) or "nobody is late", rows


def feedback(arguments: argparse.Namespace) -> Answer:
    """`inferlab feedback`."""
    from .grading.stock import feedback, learners_of

    course = _course(arguments)
    lab = course.require(arguments.lab)
    learners = arguments.learner or learners_of(course.root, lab, "autograded")
    if not learners:
        raise Fault(f"nobody's {lab} is graded yet: run `inferlab grade {lab}` first")
    steps = []
    for number, learner in enumerate(learners, start=1):
        _progress(f"feedback {number} of {len(learners)}: {learner}")
        steps.append(feedback(course, lab, learner))
    lines = [f"feedback/{step.learner}/{lab}/{lab}.html" if step.success else
             f"{step.learner}: {(step.error or step.log).strip().splitlines()[-1]}" for step in steps]
    failed = [step.learner for step in steps if not step.success]
    return (LOOK if failed else OK), "\n".join(lines), {"written": [s.learner for s in steps if s.success], "failed": failed}


def export(arguments: argparse.Namespace) -> Answer:
    """`inferlab export`."""
    from dataclasses import asdict

    from .grading.report import grades, not_graded, write_csv

    course = _course(arguments)
    lab = course.require(arguments.lab) if arguments.lab else None
    rows = grades(course, lab)
    waiting = not_graded(course, rows, lab)
    path = arguments.to or course.root / "grades.csv"
    write_csv(rows, path)
    lines = [f"{r.learner:15} {r.lab:24} {r.total:g} of {r.maximum:g}" + (f" (late: -{r.penalty:g})" if r.penalty else "")
             + (" (to review)" if r.needs_review else "") for r in rows]
    lines += [f"{learner:15} {name:24} handed in, not graded yet: inferlab grade {name}" for learner, name in waiting]
    data = {"grades": [asdict(row) for row in rows], "not_graded": [{"learner": learner, "lab": name} for learner, name in waiting]}
    return (LOOK if waiting else OK), "\n".join([*lines, f"written: {path}"]), data


def report(arguments: argparse.Namespace) -> Answer:
    """`inferlab report`."""
    from dataclasses import asdict

    from .grading.report import similar
    from .grading.summary import question_summary

    course = _course(arguments)
    lab = course.require(arguments.lab)
    rows = question_summary(course, lab, mode="none" if arguments.no_sandbox else "sandbox")
    lines = [f"{'question':30} graded  mean of most  full  zero  points: learners"]
    for row in rows:
        spread = ", ".join(f"{points}: {count}" for points, count in row["histogram"].items())
        lines.append(f"{row['question']:30} {row['graded']:6}  {row['mean'] or 0:g} of {row['points'] or 0:g}  "
                     f"{row['full']:6}  {row['zero']:4}  {spread}")
        lines += [f"    {count} x {message}" for message, count in row["mistakes"] or row["messages"]]
    data: dict[str, Any] = {"lab": lab, "questions": rows}
    if arguments.similar:
        pairs = similar(course, lab)
        data["similar"] = [asdict(pair) for pair in pairs]
        lines += ["similar answers, for you to look at:"] if pairs else ["no similar answers"]
        lines += [f"  {pair.exercise}: {' and '.join(pair.learners)}, {pair.likeness:.0%} alike" for pair in pairs]
    return OK, "\n".join(lines), data


def demo(arguments: argparse.Namespace) -> Answer:
    """`inferlab demo`."""
    from .grading.demo import demo

    result = demo(_course(arguments), lab=arguments.lab, folder=arguments.folder, say=_progress)
    return (OK if result.right else LOOK), result.text, result.as_dict()
