"""How a test cell is written: parts with weights, messages that name the mistake, and a score that is a plain float.

    check = Check("ddim-step", points=4)
    theirs = check.learner                       # attribute access only: values are copies, functions take and return data
    with check.part("keeps the shape"):
        got = theirs.ddim_step(noise_pred, x_t, alpha_t, alpha_prev)
        check.tensor(got, shape=(1, 4, 16, 16), dtype=torch.float32)
    ### BEGIN HIDDEN TESTS
    with check.part("follows the update rule", weight=3):
        check.mistake("you scaled by guidance twice", when=close(got, wrong))
        check.close(got, want, tol=1e-5)
    ### END HIDDEN TESTS
    check.score()                                # the last line

Ask the learner for anything only inside a part: a part turns whatever goes wrong in it into 0 for that part and a
message, and the next part goes on. A part that uses a name which a failed part above should have made fails with it.
An exception of the kinds that data of the wrong type or shape causes (`TypeError`, `IndexError`, ...), once the learner was
asked for something, fails the part and says so. Any other is a fault of the test: 0 for now, and flagged for the instructor.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import torch

from . import compare
from .compare import close
from .learner import LearnerError, Missing, clip, provider
from .references import reference
from .report import form_only, html_report, text_report

__all__ = ["Check", "Failure", "Part", "Score", "close", "reference", "results"]


class Failure(Exception):
    """What a check says when the work is not right; `mistake` if the message names a known mistake."""

    def __init__(self, message: str, mistake: bool = False):
        super().__init__(message)
        self.message, self.mistake = str(message), mistake


@dataclass
class Part:
    """One part of a check: `fraction` of its weight was earned; `state` is passed, failed, missing, review or broken."""

    name: str
    weight: float
    fraction: float = 0.0
    state: str = "failed"
    message: str = ""
    mistake: bool = False
    evidence: list[str] = field(default_factory=list)


class Score(float):
    """Points of one check, a float in [0, points]; shown as the plain number, and as a report where HTML is shown."""

    check: Check

    def __new__(cls, value: float, check: Check) -> Self:
        self = super().__new__(cls, value)
        self.check = check
        return self

    def __repr__(self) -> str:
        return float.__repr__(float(self))

    __str__ = __repr__

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def _repr_html_(self) -> str:
        return html_report(self.check.name, float(self), self.check.points, self.check.parts)

    def report(self) -> str:
        """The report as plain text, one line a part."""
        return text_report(self.check.name, float(self), self.check.points, self.check.parts)


_results: dict[str, Score] = {}


def results() -> dict[str, Score]:
    """The last score of every check that ran in this kernel, by the check's name in order of first run."""
    return dict(_results)


_DATA_ERRORS = (TypeError, AttributeError, IndexError, KeyError, ValueError, RuntimeError, ArithmeticError)


class _Learner:
    """What the learner provides, by attribute: `check.learner.ddim_step`."""

    def __init__(self, source: Any):
        self.__source = source
        self.asked = False  # whether anything of the learner's has come to the test yet

    def __getattr__(self, name: str) -> Any:
        self.asked = True
        return self.__source.get(name)


class Check:
    """One graded cell's check; see the module's docstring.

    Args:
        name: the exercise (or explanation slot) that is checked, as in the cell's metadata.
        points: the most that `score()` gives; the same number as the cell's points.
    """

    def __init__(self, name: str, points: float):
        if not (isinstance(points, int | float) and points > 0):
            raise ValueError(f"points must be a positive number, not {points!r}")
        self.name, self.points = name, float(points)
        self.parts: list[Part] = []
        self.flags: list[str] = []
        self._provider = provider(sys._getframe(1).f_globals)
        self.learner = _Learner(self._provider)

    # -- parts ---------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def part(self, name: str, weight: float = 1.0) -> Iterator[Part]:
        """A part of the check: passes if its block ends, fails with the message of whatever stops it.

        A part of weight 0 looks at the form only (is there a sentence at all?): it shows at home, and earns nothing
        where other parts are there to earn.
        """
        if not weight >= 0:
            raise ValueError(f"the weight of a part must not be negative, but is {weight!r}")
        part = Part(name, float(weight))
        self.parts.append(part)
        try:
            yield part
        except Missing as error:
            part.state, part.message = "missing", str(error)
        except Failure as failure:
            part.message, part.mistake = failure.message, failure.mistake
        except LearnerError as error:
            part.message = str(error)
        except AssertionError as error:
            part.message = str(error) or "not as it should be"
        except Exception as error:  # noqa: BLE001 - a fault of the test must not stop the others
            before = self.parts[:-1]
            if isinstance(error, NameError) and any(p.state in ("failed", "missing") for p in before):
                part.state, part.message = "missing", "needs a part above to pass first"
                return
            if self.learner.asked and isinstance(error, _DATA_ERRORS):
                # the lab's proof shows that the test works on right data, so the data is what it could not work with
                part.message = f"what came from your code could not be used ({clip(f'{type(error).__name__}: {error}', 200)})"
                return
            part.state, part.message = "broken", "this test did not work; your instructor will look at it"
            self.flags.append(f"{self.name}, part {name!r}: " + clip(traceback.format_exc(), 4000))
        else:
            part.fraction, part.state = 1.0, "passed"

    def fail(self, message: str) -> None:
        """Fail the part with this message."""
        raise Failure(message)

    def true(self, condition: Any, message: str) -> None:
        """Fail with `message` unless `condition` holds."""
        if not condition:
            raise Failure(message)

    def mistake(self, message: str, when: Any) -> None:
        """A mistake detector: fail the part with `message`, which names the mistake, if `when` holds."""
        if when:
            raise Failure(message, mistake=True)

    def equal(self, got: Any, want: Any, message: str = "") -> None:
        """Fail unless `got` is the same data as `want`: same kinds, same values, tensors exactly equal."""
        self._differs(compare.difference(got, want), message)

    def close(self, got: Any, want: Any, tol: float = 1e-5, rtol: float = 0.0, message: str = "") -> None:
        """Fail unless every number of `got` is within `tol + rtol * |want|` of `want`; shapes must be equal."""
        self._differs(compare.difference(got, want, tol, rtol), message)

    def _differs(self, difference: str | None, message: str) -> None:
        if difference:
            raise Failure(f"{message} ({difference})" if message else difference)

    def tensor(self, got: Any, shape: Sequence[int] | None = None, dtype: torch.dtype | None = None,
               finite: bool = True) -> None:
        """Fail unless `got` is a tensor of this shape and dtype, without NaN and infinity if `finite`."""
        if not isinstance(got, torch.Tensor):
            raise Failure(f"got {compare.show(got)}, expected a tensor")
        if shape is not None and tuple(got.shape) != tuple(shape):
            raise Failure(f"the shape is {tuple(got.shape)}, expected {tuple(shape)}")
        if dtype is not None and got.dtype != dtype:
            raise Failure(f"the dtype is {got.dtype}, expected {dtype}")
        if finite and got.is_floating_point() and not bool(torch.isfinite(got).all()):
            raise Failure("the tensor holds NaN or infinity")

    # -- whose work, and explanations ----------------------------------------------------------------------------
    def variant(self, n: int) -> int:
        """This learner's variant of the lab, 0 to n - 1 (n <= 16)."""
        from .identity import variant

        learner, lab = self._provider.identity()
        return variant(learner, lab, n)

    def explanation(self, name: str) -> Any:
        """The learner's `%%explain name` cell as an `inferlab.lab.explain.cell.Explanation`; raises `Missing`."""
        from .explain.cell import parse

        return parse(self._provider.explanation(name), name)

    def slot(self, outcome: Any, name: str = "", weight: float = 1.0) -> None:
        """A part from an `Outcome` of `inferlab.lab.explain.grade`: verdict "award", "deny" or "review".

        "award" earns `outcome.points` (a fraction, 0 to 1) of the weight; "review" earns nothing for now and flags
        the submission, so that it turns up in the instructor's list of what needs manual grading.

        `outcome` may also be a function without arguments that makes one: it is then called inside a part, so that
        an explanation that is not there (`check.explanation` raises `Missing`) is 0 for this part and no error.
        """
        if callable(outcome):
            make, made = outcome, []
            with self.part(name or "the explanation", weight) as part:
                made.append(make())
            if part.state != "passed":
                return
            self.parts.remove(part)
            outcome = made[0]
        verdict = outcome.verdict
        part = Part(name or "the explanation", float(weight), message=str(outcome.reason or ""))
        part.evidence = [str(e) for e in _as_list(outcome.evidence)]
        if verdict == "award":
            part.fraction = min(max(float(outcome.points), 0.0), 1.0)
            part.state = "passed" if part.fraction == 1.0 else "failed"
        elif verdict == "review":
            part.state = "review"
            self.flags.append(f"{self.name}: to be graded by hand: {part.message}")
        elif verdict != "deny":
            raise ValueError(f"an outcome's verdict is award, deny or review, not {verdict!r}")
        self.parts.append(part)

    # -- the end ---------------------------------------------------------------------------------------------------
    @property
    def needs_review(self) -> bool:
        """Whether a person must look: a slot that said so, or a part that did not work."""
        return any(p.state in ("review", "broken") for p in self.parts)

    @property
    def form_only(self) -> bool:
        """Whether every part has weight 0: nothing here says what the work will earn."""
        return form_only(self.parts)

    def score(self) -> Score:
        """The points: `points` times the weight earned over the weight of all parts that are here."""
        if not self.parts:
            raise ValueError(f"the check {self.name!r} has no part")
        weights = [1.0 if self.form_only else p.weight for p in self.parts]
        total = sum(weights)
        earned = sum(weight * p.fraction for weight, p in zip(weights, self.parts, strict=True))
        value = min(max(round(self.points * earned / total, 6), 0.0), self.points)
        score = Score(value, self)
        _results[self.name] = score
        return score


def _as_list(value: Any) -> list:
    if value is None or value == "":
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
