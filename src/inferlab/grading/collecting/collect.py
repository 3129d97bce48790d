"""Lays out `submitted/<learner>/<lab>/<lab>.ipynb` from whatever was handed in, and says what it did with
every file.

`collect` goes through the files. `_identify_one` reads each and asks `identify` which lab it is of, whose it
is and when it came. `_put_latest` puts the latest of each learner's notebooks into `submitted/`, with its
time.

Every file whose bytes could be read is kept in `collected/` exactly as it came, apart from those that are
ignored. A file whose learner or lab cannot be told is held: a person decides, and the report says why. A file
counts as handed in when its bytes were first collected. Downloading it again later makes nobody late.
"""

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from inferlab.grading.course import Course, CourseError, course_lock, write_whole
from inferlab.grading.notebook import RawNotebook, dumps, write_notebook
from inferlab.grading.roster import Roster
from inferlab.grading.submission.files import UnreadableError
from inferlab.grading.submission.submission import CourseLab, Submission, digest_of, read
from inferlab.grading.submission.submitted_folders import write_stamp
from inferlab.terminal import clean_name

from .again import compared
from .identify import named_otherwise, own_time, which_lab, whose
from .incoming import Incoming, incoming
from .kept import first_time, keep, without_prefix
from .overrides import assigned_files
from .report import Candidate, CollectReport, FileLine


@dataclass(frozen=True)
class Rules:
    """What decides about every file of one call of `collect`.

    Attributes:
        course: the course's folder.
        roster: who is in the course.
        released: the released labs, by name.
        wanted: the only lab that is taken; all of them if None.
        assigned: a file's label -> the id of its learner, as the instructor says.
        times: a learner's id -> when they handed in, as a platform's list says (`--times`).
    """

    course: Course
    roster: Roster
    released: dict[str, CourseLab]
    wanted: str | None
    assigned: dict[str, str]
    times: dict[str, datetime]


def collect(course: Course, paths: list[Path], roster: Roster, *, lab: str | None = None,
            assign: dict[str, str] | None = None,
            times: dict[str, datetime] | None = None, items: Iterable[Incoming] = ()) -> CollectReport:
    """Collect the files at `paths` (folders, zips, files) into `submitted/`.

    Args:
        lab: take only this lab's notebooks; others are held as "in the wrong lab".
        assign: whose a file is, where the instructor decides: a file's label (or its bare name, where only
            one file has that name) -> the learner's id.
        times: learner's id -> when they handed in. These times count in place of those in the files.
        items: more files, which lie at no path.

    Returns:
        A `CollectReport` with one line for each file. One bad file never stops the others.

    Raises:
        CourseError: for a lab that is not released, or an assignment that fits no file or more than one.
        FileNotFoundError: for a path that does not exist.
    """
    released = {name: CourseLab.given(course, name) for name in course.labs if course.release(name).exists()}
    if lab is not None and lab not in released:
        raise CourseError(f"'{lab}' is not released; released are: "
                          f"{', '.join(released) or 'none (run make release)'}")
    rules = Rules(course, roster, released, lab, assigned_files(paths, assign or {}), times or {})
    busy = CourseError("another `inferlab collect` is at work in this course; wait for it to end")
    with course_lock(course.results / "collecting", busy):
        return _collect(rules, chain(*map(incoming, paths), items))


def _collect(rules: Rules, items: Iterable[Incoming]) -> CollectReport:
    course, lab = rules.course, rules.wanted
    report = CollectReport()
    candidates: dict[tuple[str, str], list[Candidate]] = {}
    for item in items:
        line = FileLine(item.label, "held", received=item.received.isoformat(timespec="seconds"))
        report.lines.append(line)
        candidate = _identify_one_safely(rules, item, line)
        if candidate is not None:
            candidates.setdefault((line.learner, line.lab), []).append(candidate)
    for (learner, name), files in sorted(candidates.items()):
        _put_latest(course, learner, name, files)
    _note_twins(candidates)
    for name in sorted({line.lab for line in report.lines if line.lab} | ({lab} if lab else set())):
        report.missing[name] = [person.id for person in rules.roster.learners
                                if not course.submitted(person.id, name).exists()]
    folder = course.root / "collected"
    if folder.is_dir():
        write_whole(folder / "last-report.json", json.dumps(report.as_dict(), indent=1, ensure_ascii=False))
    return report


def _identify_one_safely(rules: Rules, item: Incoming, line: FileLine) -> Candidate | None:
    """`_identify_one`, which here stops no other file: where it fails, this file is kept and held, and its
    line says so."""
    try:
        return _identify_one(rules, item, line)
    except Exception as error:  # noqa: BLE001 - said in the report; one file must never stop the others
        line.status = "held"
        line.notes.append(f"could not be placed ({type(error).__name__}: {clean_name(str(error))}); a fault "
                          "of inferlab: tell us")
        line.lab = line.learner = ""
        if item.data is not None:
            keep(rules.course, item, "", "", item.received.replace(microsecond=0), digest_of(item.data))
        return None


def _identify_one(rules: Rules, item: Incoming, line: FileLine) -> Candidate | None:
    """Find out what one file is: its lab, its learner and its time. The file is kept in `collected/`.

    Gives a candidate for `submitted/`, or `None` where something cannot be told; the line then says what.
    """
    if item.ignored:
        line.status = "ignored"
        return None
    raw = _read_one(rules, item, line)
    parts = (*item.parts[:-1], without_prefix(item.name))
    owner = whose(parts, raw, rules.roster, line.lab, item.entry, item.account)
    given = rules.assigned.get(item.label)
    if given is not None:
        owner.id, owner.problem = given, ""
        if given not in rules.roster:
            owner.id, owner.problem = None, f"assigned to '{given}', who is not in the roster"
    line.learner = owner.id or ""
    line.notes += owner.notes
    if owner.problem:
        line.notes.append(owner.problem)
    if item.data is None:
        return None
    sha = digest_of(item.data)
    own, note = own_time(raw, owner.received, item, rules.course.due.get(line.lab))
    listed = rules.times.get(line.learner)
    if note and listed is None:
        line.notes.append(note)
    own = first_time(rules.course, line.lab, line.learner, own.replace(microsecond=0), sha)
    line.received = (listed or own).isoformat(timespec="seconds")
    keep(rules.course, item, line.lab, line.learner, own, sha)
    wrong_lab = rules.wanted is not None and line.lab != rules.wanted
    if raw is None or not line.lab or not line.learner or wrong_lab:
        return None
    submission = Submission.mended(raw, sha, rules.released[line.lab], line.learner)
    return Candidate(line, submission, own, listed, owner.platform)


def _read_one(rules: Rules, item: Incoming, line: FileLine) -> RawNotebook | None:
    """The notebook in a file, with its lab in the line; `None` for what is none, and the line says why."""
    if item.data is None:
        line.notes.append(item.problem)
        return None
    try:
        raw = read(item.data)
    except UnreadableError as error:
        line.notes.append(str(error))
        return None
    line.lab, problem = which_lab(raw, rules.released)
    if problem:
        line.notes.append(problem)
    elif rules.wanted and line.lab != rules.wanted:
        line.notes.append(f"in the wrong lab: this is {line.lab}, not {rules.wanted}")
    elif named := named_otherwise(item.name, line.lab, rules.released):
        line.notes.append(f"its name says {named}, its cells are {line.lab}")
    return raw


def _put_latest(course: Course, learner: str, lab: str, files: list[Candidate]) -> None:
    """Put the latest of a learner's notebooks into `submitted/`; the others stay in `collected/`."""
    _share_first_times(files)
    *others, latest = sorted(files, key=lambda candidate: (candidate.received, candidate.own))
    submission, target = latest.submission, course.submitted(learner, lab)
    for other in others:
        other.line.status = "older"
        same = other.submission.digest == submission.digest
        why = "is later" if other.received < latest.received else "came at the same time: look which counts"
        other.line.notes.append(f"the same file as {latest.line.file}" if same
                                else f"kept, not used: {latest.line.file} {why}")
    placed: dict[str, Any] = {
        "sha256": submission.digest, "received": latest.received.isoformat(),
        "listed": latest.listed is not None, "release": submission.lab.release,
        "placed": digest_of(dumps(submission.notebook).encode()), "notes": submission.notes,
        "platforms": latest.platform}
    if target.exists():
        note = compared(course, latest, placed)
    else:
        latest.count(latest.received, "collected")
        note = placed
    if note is None:
        return
    fresh = target.parent.with_name(f".{lab}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    write_notebook(submission.notebook, fresh / target.name)
    write_stamp(fresh / target.name, datetime.fromisoformat(note["received"]))
    if target.parent.exists():
        shutil.rmtree(target.parent)
    fresh.rename(target.parent)
    write_whole(course.placed(learner, lab), json.dumps(note))


def _share_first_times(files: list[Candidate]) -> None:
    """Give files with the same bytes the earliest time of them."""
    first: dict[str, datetime] = {}
    for candidate in files:
        first[candidate.submission.digest] = min(first.get(candidate.submission.digest, candidate.own),
                                                 candidate.own)
    for candidate in files:
        candidate.own = first[candidate.submission.digest]
        candidate.line.received = candidate.received.isoformat(timespec="seconds")


def _note_twins(candidates: dict[tuple[str, str], list[Candidate]]) -> None:
    """Say where two learners handed in the very same file."""
    owners: dict[tuple[str, str], set[str]] = {}
    for (learner, lab), files in candidates.items():
        for candidate in files:
            owners.setdefault((lab, candidate.submission.digest), set()).add(learner)
    for (learner, lab), files in candidates.items():
        for candidate in files:
            others = sorted(owners[lab, candidate.submission.digest] - {learner})
            if others:
                candidate.line.notes.append(f"byte for byte the same file as {', '.join(others)} handed in")
