"""What grading one slot says: award, deny or review, with a reason for the learner and the evidence."""

from dataclasses import dataclass

AWARD, DENY, REVIEW = "award", "deny", "review"


@dataclass(frozen=True)
class Outcome:
    """`points` is a fraction in [0, 1] of the slot's points (0.0 unless awarded). `reason` may be shown to the
    learner; `evidence` (words, numbers, overlaps) is for the instructor."""

    verdict: str
    points: float
    reason: str
    evidence: tuple[str, ...] = ()

    def __post_init__(self):
        if self.verdict not in (AWARD, DENY, REVIEW):
            raise ValueError(f"verdict is {self.verdict!r}; expected award, deny or review")
        if not 0.0 <= self.points <= 1.0 or (self.verdict != AWARD and self.points):
            raise ValueError(f"points {self.points} do not go with {self.verdict!r}")


def award(reason: str, evidence: tuple[str, ...] = (), points: float = 1.0) -> Outcome:
    return Outcome(AWARD, points, reason, tuple(evidence))


def deny(reason: str, evidence: tuple[str, ...] = ()) -> Outcome:
    return Outcome(DENY, 0.0, reason, tuple(evidence))


def review(reason: str, evidence: tuple[str, ...] = ()) -> Outcome:
    return Outcome(REVIEW, 0.0, reason, tuple(evidence))
