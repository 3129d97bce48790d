"""Where a course's files lie and what its `course.toml` says."""

import os
import sys
import tomllib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from inferlab import __version__


class CourseError(ValueError):
    """The course folder or its settings cannot be used as they are; the message says what to change."""


def own_tools_first() -> None:
    """Put this interpreter's scripts first on PATH: nbgrader runs `alembic` by its bare name, activated or not."""
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
        path = root / "course.toml"
        try:
            settings = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
        except tomllib.TOMLDecodeError as error:
            raise CourseError(f"course.toml: {error}") from error
        learners, late = settings.get("learners", {}), settings.get("late", {})
        due = {lab: _utc(lab, values["due"]) for lab, values in settings.get("labs", {}).items() if "due" in values}
        defaults = cls(root)
        return cls(
            root,
            learners.get("repository", defaults.repository),
            learners.get("branch", defaults.branch),
            learners.get("wheel", defaults.wheel_url),
            LatePolicy(float(late.get("per_day", 0)), float(late.get("at_most", 1)), int(late.get("free_days", 0))),
            due,
            settings.get("gradebook", {}).get("url", ""),
        )

    @property
    def labs(self) -> list[str]:
        """Names of the labs that are written as text, in order."""
        return sorted(path.parent.name for path in (self.root / "notebooks").glob("*/*.py")
                      if path.stem == path.parent.name)

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
        target = f"https://colab.research.google.com/github/{self.repository}/blob/{self.branch}/{lab}/{lab}.ipynb"
        return f"[![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)]({target})"


def _utc(lab: str, value: object) -> datetime:
    if not isinstance(value, datetime):
        raise CourseError(f"course.toml: labs.{lab}.due must be a date and time, for example 2027-01-15T23:59:00Z")
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
