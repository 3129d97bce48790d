"""Where a course's files lie and what its `course.toml` says."""

import contextlib
import fcntl
import os
import sys
import tomllib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from inferlab import __version__


class CourseError(ValueError):
    """The course folder or its settings cannot be used as they are; the message says what to change."""


SETTINGS: dict[str, dict[str, type]] = {
    "learners": {"repository": str, "branch": str, "wheel": str},
    "late": {"per_day": float, "at_most": float, "free_days": int},
    "gradebook": {"url": str},
    "publish": {"shown": list},
}
"""The tables of `course.toml` with their keys, apart from `labs`, which has a table for each lab."""
RESULTS = ("grades", "feedback", "class-report")
"""The folders in a course where results for people and platforms lie."""
LAB_SETTINGS: dict[str, type] = {"due": datetime}
MOST_DAYS = 1000
"""No extension and no number of free days reaches this."""
EXAMPLE = "2027-01-15T23:59:00Z"
KINDS = {
    str: "a text", list: "a list", dict: "a table", float: "a share from 0 to 1",
    int: f"a whole number from 0, below {MOST_DAYS}",
    datetime: f"a date and time, for example {EXAMPLE}",
}
"""What a value must be, in words."""


def read_text(path: Path) -> str:
    """The text of a file that an instructor wrote. Raises `CourseError` when it is not UTF-8."""
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CourseError(f"{path} is not UTF-8 ({error}); save it as UTF-8") from error


def read_toml(path: Path, name: str) -> dict[str, Any]:
    """The tables of a file that an instructor wrote; none where there is no file. Raises `CourseError`."""
    try:
        return tomllib.loads(read_text(path)) if path.exists() else {}
    except tomllib.TOMLDecodeError as error:
        raise CourseError(f"{name}: {error}") from error


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all. Its folder must be there. Raises `OSError`, which names the file."""
    partial = path.with_name(f".{uuid.uuid4().hex}.part")  # threads and other machines write here, too
    try:
        partial.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        os.replace(partial, path)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def course_lock(path: Path, busy: Exception) -> Iterator[None]:
    """Hold a lock, which ends with the process, however that ends. Raises `busy` where another holds it."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise busy from None
        yield


def own_tools_first() -> None:
    """Put this interpreter's scripts first on PATH: nbgrader runs `alembic` by its bare name."""
    scripts = str(Path(sys.executable).parent)
    paths = os.environ.get("PATH", "").split(os.pathsep)
    if paths[:1] != [scripts]:
        os.environ["PATH"] = os.pathsep.join([scripts, *paths])


@dataclass(frozen=True)
class LatePolicy:
    """Marks lost for lateness: a share of what was earned for each started day, up to `at_most`."""

    per_day: float = 0.0
    at_most: float = 1.0
    free_days: int = 0


@dataclass(frozen=True)
class Course:
    """A course folder: its labs as text, what is built from them, and learners' work."""

    root: Path
    repository: str = "inferlab-course/inferlab"
    branch: str = "main"
    wheel_url: str = "https://github.com/{repository}/raw/{branch}/wheels/{wheel}"
    late: LatePolicy = field(default_factory=LatePolicy)
    due: dict[str, datetime] = field(default_factory=dict)
    database: str = ""

    @classmethod
    def open(cls, root: Path | str = ".") -> "Course":
        """The course at `root`. Raises `CourseError` when it has no `notebooks/` or a setting is unusable."""
        root = Path(root).resolve()
        if not (root / "notebooks").is_dir():
            raise CourseError(f"{root} is not a course: it has no notebooks/ folder (use --course DIR)")
        defaults = cls(root)
        settings = _settings(root / "course.toml", {*defaults.labs, *defaults.built})
        learners, late = settings.get("learners", {}), settings.get("late", {})
        due = {lab: in_utc(values["due"]) for lab, values in settings.get("labs", {}).items()
               if "due" in values}
        return cls(
            root,
            learners.get("repository", defaults.repository),
            learners.get("branch", defaults.branch),
            learners.get("wheel", defaults.wheel_url),
            LatePolicy(float(late.get("per_day", 0)), float(late.get("at_most", 1)),
                       int(late.get("free_days", 0))),
            due,
            settings.get("gradebook", {}).get("url", ""),
        )

    @property
    def labs(self) -> list[str]:
        """Names of the labs that are written as text, in order."""
        return sorted(path.parent.name for path in (self.root / "notebooks").glob("*/*.py")
                      if path.stem == path.parent.name)

    @property
    def built(self) -> list[str]:
        """Names of the labs that lie in `source/` or `release/`, whether or not their text is here."""
        return sorted({path.name for kind in ("source", "release") for path in (self.root / kind).glob("*/")
                       if path.is_dir()})

    def require(self, lab: str) -> str:
        """`lab` itself when the course has it. Raises `CourseError` that lists the labs there are."""
        if lab not in self.labs:
            raise CourseError(f"no lab called '{lab}'; there is: {', '.join(self.labs) or 'none'}")
        return lab

    def text(self, lab: str) -> Path:
        """The lab's text, the one place where it is written."""
        return self.root / "notebooks" / lab / f"{lab}.py"

    def source(self, lab: str) -> Path:
        """The instructor's notebook, built from the text."""
        return self.root / "source" / lab / f"{lab}.ipynb"

    def release(self, lab: str) -> Path:
        """The learner's notebook, made from the source by nbgrader."""
        return self.root / "release" / lab / f"{lab}.ipynb"

    def submitted(self, learner: str, lab: str) -> Path:
        """Where nbgrader looks for a learner's handed-in notebook."""
        return self.root / "submitted" / learner / lab / f"{lab}.ipynb"

    def placed(self, learner: str, lab: str) -> Path:
        """Where collecting notes what it has placed in `submitted/` for a learner."""
        return self.root / "collected" / lab / learner / "current.json"

    def autograded(self, learner: str, lab: str) -> Path:
        """Where nbgrader looks for a learner's graded notebook."""
        return self.root / "autograded" / learner / lab / f"{lab}.ipynb"

    def learners_of(self, lab: str, folder: str = "submitted") -> list[str]:
        """Who has a notebook of the lab in `submitted/` (or another of nbgrader's folders), in order."""
        return sorted(path.parent.parent.name for path in (self.root / folder).glob(f"*/{lab}/{lab}.ipynb"))

    @property
    def results(self) -> Path:
        """Where grading keeps what each run gave."""
        return self.root / ".grading"

    def may_write(self, path: Path, suffix: str) -> Path:
        """`path`, where a table or a zip that somebody names may be written.

        Raises `CourseError` for a folder, and for a file that is there and was no such table or zip: the
        gradebook, the roster, anything else that the course is made from.
        """
        full = path.resolve()
        if full.is_dir():
            raise CourseError(f"{path} is a folder: name a file in it")
        inside = full.relative_to(self.root).parts if full.is_relative_to(self.root) else ("",)
        if full.exists() and (full.suffix != suffix or (len(inside) > 1 and inside[0] not in RESULTS)):
            raise CourseError(f"{path} is there and is not what this command writes: name another file")
        return path

    @property
    def roster(self) -> Path:
        """The course's roster (CSV: id,name,aliases,email)."""
        return self.root / "roster" / "roster.csv"

    @property
    def extensions(self) -> Path:
        """Extensions as data (CSV: id,lab,until,days,reason)."""
        return self.root / "roster" / "extensions.csv"

    @property
    def gradebook_url(self) -> str:
        """The gradebook: what `course.toml` names, otherwise an SQLite file in the course folder."""
        return self.database or f"sqlite:///{self.root / 'gradebook.db'}"

    @property
    def wheel_name(self) -> str:
        """The file name of this version's wheel."""
        return f"inferlab-{__version__}-py3-none-any.whl"

    @property
    def wheel(self) -> str:
        """The address that a lab's first cell installs from."""
        return self.wheel_url.format(repository=self.repository, branch=self.branch, wheel=self.wheel_name)

    def badge(self, lab: str) -> str:
        """The Markdown of the lab's "Open in Colab" badge."""
        file = f"{self.repository}/blob/{self.branch}/{lab}/{lab}.ipynb"
        target = f"https://colab.research.google.com/github/{file}"
        return f"[![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)]({target})"


def _settings(path: Path, labs: set[str]) -> dict[str, Any]:
    """What `course.toml` says. Raises `CourseError` for anything that cannot be used or has no effect."""
    settings = read_toml(path, "course.toml")
    _only(settings, "", {name: dict for name in (*SETTINGS, "labs")})
    for name, values in settings.items():
        if name != "labs":
            _only(values, name, SETTINGS[name])
    for lab, values in settings.get("labs", {}).items():
        if lab not in labs:
            raise CourseError(f"course.toml: no lab called '{lab}'; there is: "
                              f"{', '.join(sorted(labs)) or 'none'}")
        _only({lab: values}, "labs", {lab: dict})
        _only(values, f"labs.{lab}", LAB_SETTINGS)
    return settings


def _only(values: dict[str, Any], table: str, known: dict[str, type]) -> None:
    """Raise `CourseError` for a key that is not `known` or a value of another type or size."""
    for key, value in values.items():
        where = f"course.toml: {table}.{key}" if table else f"course.toml: {key}"
        if key not in known:
            home = next((name for name, keys in SETTINGS.items() if key in keys), "") if table else ""
            hint = f" (it belongs below [{home}], is that line still a comment?)" if home else ""
            raise CourseError(f"{where} is not a setting{hint}; there is: {', '.join(known)}")
        kind = known[key]
        fits = isinstance(value, int | float if kind is float else kind) and not isinstance(value, bool)
        if not fits:
            raise CourseError(f"{where} must be {KINDS[kind]}")
        if (kind is float and not 0 <= value <= 1) or (kind is int and not 0 <= value < MOST_DAYS):
            raise CourseError(f"{where} is {value}; it must be {KINDS[kind]}")


def in_utc(time: datetime) -> datetime:
    """A time in UTC; one that names no zone is taken for UTC.

    Raises `CourseError` for a year that nobody means: sums with it would leave the calendar.
    """
    if not 1900 < time.year < 3000:
        raise CourseError(f"the year of {time} is {time.year}: no such deadline or hand-in")
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def time_of(text: str) -> datetime:
    """The time (UTC) that an instructor wrote. Raises `CourseError` for a text that is none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise CourseError(f"'{text}' is not a time, for example {EXAMPLE}") from error
    if len(text) <= len("2027-01-15"):
        raise CourseError(f"'{text}' has no time of day, for example {EXAMPLE}")
    return in_utc(time)
