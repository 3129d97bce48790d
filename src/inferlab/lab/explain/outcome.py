"""What grading one slot says: award, deny or review, with a reason for the learner and the evidence."""

from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True)
class Outcome:
    """`reason` may be shown to the learner; `evidence` (what was read) is for the instructor."""

    verdict: str
    reason: str
    evidence: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        """The fraction of the slot's points."""
        return 1.0 if self.verdict == "award" else 0.0


award, deny, review = (partial(Outcome, verdict) for verdict in ("award", "deny", "review"))
"""Full points; no points, and why; or no points yet: a person must read it, and why."""
