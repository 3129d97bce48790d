"""What `collect` says it did: a line for each file, and who has handed in nothing."""

from dataclasses import asdict, dataclass, field
from datetime import datetime

from inferlab.grading.submission.submission import Submission


@dataclass
class FileLine:
    """What became of one file.

    Attributes:
        file: where the file was found, as text for a person.
        status: "collected" (now in submitted/), "unchanged" (was there already), "older" (kept, a later one
            counts), "held" (not placed: `notes` say why), or "ignored" (a checkpoint, or a file that a
            desktop or a platform made for itself).
        learner: whose it is; "" where that cannot be told.
        lab: the lab that it is of; "" where that cannot be told.
        received: when it was handed in (ISO 8601).
        notes: what a person should know, each as a sentence.
    """

    file: str
    status: str
    learner: str = ""
    lab: str = ""
    received: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass
class CollectReport:
    """What became of every file. `missing` lists, for each lab that a file came in for, who has none."""

    lines: list[FileLine] = field(default_factory=list)
    missing: dict[str, list[str]] = field(default_factory=dict)

    def count(self, status: str) -> int:
        """How many files ended with this status."""
        return sum(line.status == status for line in self.lines)

    def as_dict(self) -> dict:
        """The report as JSON data."""
        return {"files": [asdict(line) for line in self.lines], "missing": self.missing,
                "counts": {status: self.count(status) for status in ("collected", "unchanged", "older",
                                                                     "held", "ignored")}}


@dataclass
class Candidate:
    """One of a learner's submissions for a lab, before the latest is chosen.

    Attributes:
        line: the report's line of its file.
        submission: what was handed in.
        own: when the file itself says that it was handed in.
        listed: when the platform's list says so (`--times`); `None` where there is no list.
        platform: what the platform needs to be told whose a grade or a page is (`Owner.platform`).
    """

    line: FileLine
    submission: Submission
    own: datetime
    listed: datetime | None
    platform: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def received(self) -> datetime:
        """The time that counts."""
        return self.listed or self.own

    def count(self, received: datetime, status: str) -> None:
        """Say in the line that this is the learner's submission, handed in at this time."""
        self.line.received, self.line.status = received.isoformat(timespec="seconds"), status
        self.line.notes += self.submission.notes
