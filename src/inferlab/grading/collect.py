"""Lays out `submitted/<learner>/<lab>/<lab>.ipynb` from whatever was handed in, and says what it did with every file.

Every file that could be read is kept as it came in `collected/`, under a name made of its time and its content, so
nothing that arrives is ever lost or overwritten. A file that cannot be placed without guessing is held, with the reason.

The same bytes were handed in when they first arrived: downloading them again makes nobody late.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

import nbformat

from .arrival import first_time, kept_name, own_time, whole, without_prefix
from .build import write_notebook
from .course import Course, CourseError
from .incoming import Incoming, incoming, shown
from .mend import Mended, mend
from .reading import HandedIn, UnreadableError, grade_id, read
from .roster import Roster
from .whose import whose

TIMESTAMP = "%Y-%m-%d %H:%M:%S.%f UTC"
LAB_NUMBER = re.compile(r"(?<![^\W\d_])lab[ _-]?0*(\d+)", re.IGNORECASE)
"""`lab02`, `Lab 2`; not the end of `collab2`."""


@dataclass
class Line:
    """What became of one handed-in file.

    `status`: "collected" (now in submitted/), "unchanged" (was there already), "older" (kept, a later one counts),
    "held" (kept, not placed: `notes` say why), "ignored" (a checkpoint or a desktop's own file).
    """

    file: str
    status: str
    learner: str = ""
    lab: str = ""
    received: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass
class Report:
    """What became of everything that was handed in, and who is missing in each lab that something came in for."""

    lines: list[Line] = field(default_factory=list)
    missing: dict[str, list[str]] = field(default_factory=dict)

    def count(self, status: str) -> int:
        """How many files ended with this status."""
        return sum(line.status == status for line in self.lines)

    def as_dict(self) -> dict:
        """The report as JSON data."""
        return {"files": [asdict(line) for line in self.lines], "missing": self.missing,
                "counts": {status: self.count(status) for status in ("collected", "unchanged", "older", "held", "ignored")}}


@dataclass
class Candidate:
    """A file whose learner and lab are known, before the latest of them is chosen.

    `own` is the time that the file itself gives, `listed` the one in the platform's list (`--times`).
    """

    line: Line
    mended: Mended
    own: datetime
    listed: datetime | None
    sha: str

    @property
    def received(self) -> datetime:
        """The time that counts."""
        return self.listed or self.own


def collect(course: Course, paths: list[Path], roster: Roster, *, lab: str | None = None,
            assign: dict[str, str] | None = None, times: dict[str, datetime] | None = None,
            progress: Callable[[str], None] = lambda text: None) -> Report:
    """Collect the files at `paths` (folders, zips, files) into `submitted/`.

    Args:
        lab: take only this lab's notebooks; others are held as "in the wrong lab".
        assign: a file's label or, where only one file has it, its bare name -> learner's id: the instructor decides.
        times: learner's id -> when they handed in, where a platform's own list counts and not the files.

    Returns:
        A `Report` with one line a file. One bad file never stops the others.

    Raises:
        CourseError: for a lab that is not released, or an assignment that fits no file or more than one.
        FileNotFoundError: for a path that does not exist.
    """
    released = {name: nbformat.read(course.release(name), as_version=4) for name in course.labs
                if course.release(name).exists()}
    if lab is not None and lab not in released:
        raise CourseError(f"'{lab}' is not released; released are: {', '.join(released) or 'none (run make release)'}")
    assigned = _assigned(paths, assign or {})
    report = Report()
    candidates: dict[tuple[str, str], list[Candidate]] = {}
    for path in paths:
        for item in incoming(path):
            progress(item.label)
            candidate = _sort_safely(course, item, released, roster, lab, assigned, times or {}, report)
            if candidate is not None:
                candidates.setdefault((candidate.line.learner, candidate.line.lab), []).append(candidate)
    for (learner, name), files in sorted(candidates.items()):
        _place(course, learner, name, files, released[name])
    _note_twins(candidates)
    for name in sorted({line.lab for line in report.lines if line.lab} | ({lab} if lab else set())):
        report.missing[name] = [person.id for person in roster.learners if not course.submitted(person.id, name).exists()]
    folder = course.root / "collected"
    if folder.is_dir():
        (folder / "last-report.json").write_text(json.dumps(report.as_dict(), indent=1, ensure_ascii=False), "utf-8")
    return report


def _assigned(paths: list[Path], assign: dict[str, str]) -> dict[str, str]:
    """File's label -> learner's id. Raises `CourseError` for an assignment that does not fit exactly one file."""
    if not assign:
        return {}
    files = [(item.label, _name(item)) for path in paths for item in incoming(path) if not item.ignored]
    assigned = {}
    for given, identity in assign.items():
        fits = [label for label, _ in files if label == given] or [label for label, name in files if name == given]
        if not fits:
            raise CourseError(f"--assign {given}: none of the files has this name")
        if len(fits) > 1:
            what = f"give the whole name, for example {fits[0]}" if len(set(fits)) > 1 else "collect one PATH at a time"
            raise CourseError(f"--assign {given} fits {len(fits)} files: {what}")
        assigned[fits[0]] = identity
    return assigned


def _name(item: Incoming) -> str:
    """The file's own name; "" for the zip that `collect` was given, whose name says nothing of a learner."""
    return item.parts[-1] if item.parts else ""


def _sort_safely(course: Course, item: Incoming, *rest) -> Candidate | None:
    """`_sort`, with one promise more: whatever is in a file, the next one gets its turn, and this one is kept and told."""
    try:
        return _sort(course, item, *rest)
    except Exception as error:  # noqa: BLE001 - said in the report; one file must never stop the others
        line = rest[-1].lines[-1]
        line.status = "held"
        line.notes.append(f"could not be sorted ({type(error).__name__}: {shown(str(error))}); a fault of inferlab: tell us")
        if item.data is not None:
            line.lab = line.learner = ""
            _keep(course, item, line, whole(item.received), hashlib.sha256(item.data).hexdigest())
        return None


def _sort(course: Course, item: Incoming, released: dict, roster: Roster, wanted: str | None, assign: dict[str, str],
          times: dict[str, datetime], report: Report) -> Candidate | None:
    """Read one file, find its learner and lab; anything that cannot be told ends as a held line."""
    line = Line(item.label, "held", received=item.received.isoformat(timespec="seconds"))
    report.lines.append(line)
    if item.ignored:
        line.status = "ignored"
        return None
    handed_in = None
    if item.problem:
        line.notes.append(item.problem)
    else:
        try:
            handed_in = read(item.data)
        except UnreadableError as error:
            line.notes.append(str(error))
    if handed_in is not None:
        line.lab, problem = which_lab(handed_in, released)
        if problem:
            line.notes.append(problem)
        elif wanted and line.lab != wanted:
            line.notes.append(f"in the wrong lab: this is {line.lab}, not {wanted}")
        elif named := _named_otherwise(_name(item), line.lab, released):
            line.notes.append(f"its name says {named}, its cells are {line.lab}")
    owner = whose((*item.parts[:-1], without_prefix(_name(item))), handed_in, roster, line.lab)
    given = assign.get(item.label)
    if given is not None:
        owner.id, owner.problem, owner.by = given, "", "the instructor"
        if given not in roster:
            owner.id, owner.problem = None, f"assigned to '{given}', who is not in the roster"
    line.learner = owner.id or ""
    line.notes += owner.notes
    if owner.problem:
        line.notes.append(owner.problem)
    if item.data is None:
        return None
    sha = hashlib.sha256(item.data).hexdigest()
    own, note = own_time(handed_in, owner.received, item, course.due.get(line.lab))
    listed = times.get(line.learner)
    if note and listed is None:
        line.notes.append(note)
    own = first_time({_kept_in(course, line), course.root / "collected" / "held"}, whole(own), sha)
    line.received = (listed or own).isoformat(timespec="seconds")
    _keep(course, item, line, own, sha)
    if handed_in is None or not line.lab or not line.learner or (wanted and line.lab != wanted):
        return None
    try:
        mended = mend(handed_in, released[line.lab])
    except nbformat.ValidationError as error:
        line.notes.append(f"its cells cannot be made a valid notebook: {error.message[:200]}")
        return None
    return Candidate(line, mended, own, listed, sha)


def _named_otherwise(file: str, lab: str, released: dict) -> str:
    """The number of another released lab in a file's name (`lab02`); "" where it has none, or this lab's as well."""
    numbers = {int(match[1]) for match in LAB_NUMBER.finditer(file)}
    own = LAB_NUMBER.match(lab)
    if own and int(own[1]) in numbers:
        return ""
    return next((found[0] for name in released if (found := LAB_NUMBER.match(name)) and int(found[1]) in numbers), "")


def which_lab(handed_in: HandedIn, released: dict[str, nbformat.NotebookNode]) -> tuple[str, str]:
    """The lab that a notebook is of, by what its cells carry and say; `("", problem)` where that cannot be told."""
    about = handed_in.metadata.get("inferlab")
    claimed = about.get("lab") if isinstance(about, dict) else None
    texts = {cell["source"].strip() for cell in handed_in.cells}
    names = {cell["id"] for cell in handed_in.cells} | {grade_id(cell) for cell in handed_in.cells}
    likeness = {}
    for lab, notebook in released.items():
        graded = [cell for cell in notebook.cells if "nbgrader" in cell.metadata or len(cell.source) > 60]
        same = sum(cell.source.strip() in texts or grade_id(cell) in names - {""} for cell in graded
                   if not cell.metadata.get("inferlab", {}).get("bootstrap"))
        likeness[lab] = same
    best = max(likeness, key=likeness.get, default="")
    if isinstance(claimed, str) and claimed in released and likeness[claimed] and likeness[claimed] >= likeness[best] / 2:
        return claimed, ""
    if best and likeness[best] >= 2 and list(likeness.values()).count(likeness[best]) == 1:
        return best, ""
    if isinstance(claimed, str) and claimed in released:
        return claimed, ""
    if isinstance(claimed, str) and claimed:
        return "", f"of '{shown(claimed[:60])}', a lab that is not released here"
    return "", "no cell of it is known from any released lab"


def _kept_in(course: Course, line: Line) -> Path:
    """The folder in `collected/` for a file: of its lab and learner where both are known, else `held/`."""
    collected = course.root / "collected"
    return collected / line.lab / line.learner if line.lab and line.learner else collected / "held"


def _keep(course: Course, item: Incoming, line: Line, received: datetime, sha: str) -> None:
    """Keep the file as it came; `received` goes into its name."""
    folder = _kept_in(course, line)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / kept_name(received, sha, _name(item))
    if not path.exists():
        path.write_bytes(item.data)
        os.utime(path, (item.received.timestamp(),) * 2)


def _place(course: Course, learner: str, lab: str, files: list[Candidate], released: nbformat.NotebookNode) -> None:
    """Put the latest of a learner's notebooks into `submitted/`; the others stay in `collected/`."""
    _share_first_times(files)
    files = sorted(files, key=lambda candidate: (candidate.received, candidate.own))
    latest = files[-1]
    for candidate in files[:-1]:
        candidate.line.status = "older"
        same = candidate.sha == latest.sha
        candidate.line.notes.append(f"the same file as {latest.line.file}" if same
                                    else f"kept, not used: {latest.line.file} is later")
    target = course.submitted(learner, lab)
    state_path = course.root / "collected" / lab / learner / "current.json"
    state = json.loads(state_path.read_text("utf-8")) if state_path.exists() and target.exists() else {}
    received, listed = _time_that_counts(latest, state)
    overrules = listed and not state.get("listed")  # a list's time is not to be compared with a file's
    if state and state["sha256"] != latest.sha and not overrules and datetime.fromisoformat(state["received"]) > received:
        latest.line.status = "older"
        latest.line.notes.append(f"kept, not used: the one collected before, of {state['received']}, is later")
        return
    latest.line.received = received.isoformat(timespec="seconds")
    latest.line.notes += latest.mended.notes
    fresh = {"sha256": latest.sha, "received": received.isoformat(), "listed": listed,
             "release": released.metadata.get("inferlab", {}).get("release", "")}
    if {"listed": False} | state == fresh:
        latest.line.status = "unchanged"
        return
    if target.exists() and not state:
        _keep_unknown(course, learner, lab, target)
        latest.line.notes.append("a notebook that was not collected lay in submitted/: kept in collected/")
    fresh_folder = target.parent.with_name(f".{lab}.new")
    shutil.rmtree(fresh_folder, ignore_errors=True)
    write_notebook(latest.mended.notebook, fresh_folder / target.name)
    (fresh_folder / "timestamp.txt").write_text(received.strftime(TIMESTAMP), "utf-8")
    if target.parent.exists():
        shutil.rmtree(target.parent)
    fresh_folder.rename(target.parent)
    state_path.write_text(json.dumps(fresh), "utf-8")
    latest.line.status = "collected"


def _time_that_counts(latest: Candidate, state: dict) -> tuple[datetime, bool]:
    """When the latest file was handed in, and whether a list says so. Only a list moves the time of bytes that were
    collected before (`state`) to a later one."""
    if latest.listed is None and state.get("sha256") == latest.sha:
        before, listed = datetime.fromisoformat(state["received"]), state.get("listed", False)
        return (before if listed else min(before, latest.own)), listed
    return latest.received, latest.listed is not None


def _share_first_times(files: list[Candidate]) -> None:
    """Give files with the same bytes the earliest time of them."""
    first: dict[str, datetime] = {}
    for candidate in files:
        first[candidate.sha] = min(first.get(candidate.sha, candidate.own), candidate.own)
    for candidate in files:
        candidate.own = first[candidate.sha]
        candidate.line.received = candidate.received.isoformat(timespec="seconds")


def _keep_unknown(course: Course, learner: str, lab: str, target: Path) -> None:
    data = target.read_bytes()
    folder = course.root / "collected" / lab / learner
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"found-in-submitted-{hashlib.sha256(data).hexdigest()[:12]}.ipynb").write_bytes(data)


def _note_twins(candidates: dict[tuple[str, str], list[Candidate]]) -> None:
    """Say where two learners handed in the very same file."""
    owners: dict[tuple[str, str], set[str]] = {}
    for (learner, lab), files in candidates.items():
        for candidate in files:
            owners.setdefault((lab, candidate.sha), set()).add(learner)
    for (learner, lab), files in candidates.items():
        for candidate in files:
            others = sorted(owners[lab, candidate.sha] - {learner})
            if others:
                candidate.line.notes.append(f"byte for byte the same file as {', '.join(others)} handed in")
