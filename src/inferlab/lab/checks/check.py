"""How a test cell is written: parts with weights, messages that name the mistake, and a score.

    check = Check("ddim-step", points=4)
    theirs = check.learner                       # values are copies; functions take and return data
    with check.part("keeps the shape"):
        got = theirs.ddim_step(noise_pred, x_t, alpha_t, alpha_prev)
        check.tensor(got, shape=(1, 4, 16, 16), dtype=torch.float32)
    ### BEGIN HIDDEN TESTS
    with check.part("follows the update rule", weight=3):
        check.mistake("you scaled by guidance twice", when=close(got, wrong))
        check.close(got, want, tol=1e-5)
    ### END HIDDEN TESTS
    check.score()                                # the last line; in a released lab: check.score(later=1)

Ask the learner for anything only inside a part. A part turns whatever goes wrong in it into 0 for that part
and a message, and the next part goes on. A part that uses a name which a failed part above should have made
fails with it.

Some exceptions are of the kinds that data of the wrong type or shape causes (`TypeError`, `IndexError`,
...). Once the learner was asked for something, such an exception fails the part and says so. Any other
exception is a fault of the test: it gives 0 for now, and the submission is flagged for the instructor.
"""

from __future__ import annotations

import contextlib
import math
import numbers
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import torch

from . import compare
from .checklist import Part, Report
from .compare import close
from .learner import LearnerError, Missing, Provider, clip, provider
from .references import reference

if TYPE_CHECKING:
    from inferlab.lab.explain.cell import Explanation

__all__ = ["Check", "Failure", "Part", "Score", "close", "reference", "results"]


class Failure(Exception):
    """What a check says when the work is not right; `mistake`: whether the message names a known mistake."""

    def __init__(self, message: str, mistake: bool = False) -> None:
        super().__init__(message)
        self.message, self.mistake = str(message), mistake


class Score(float):
    """Points of one check, a float in [0, points].

    nbgrader reads the plain number. Where HTML is shown, the report is shown instead.
    """

    check: Check
    told: Report

    def __new__(cls, value: float, check: Check, later: int = 0) -> Self:
        """A score of `value` points; `later` is how many parts of the check are not here."""
        self = super().__new__(cls, value)
        self.check = check
        self.told = Report(check.name, None if later else float(value), check.points, check.parts, later)
        return self

    def __repr__(self) -> str:
        return float.__repr__(float(self))

    __str__ = __repr__

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def _repr_html_(self) -> str:
        return self.told.html()

    def report(self) -> str:
        """The report as plain text, one line a part."""
        return self.told.text()


_results: dict[str, Score] = {}


def results() -> dict[str, Score]:
    """The last score of every check that ran in this kernel, by the check's name in order of first run."""
    return dict(_results)


_DATA_ERRORS = (TypeError, AttributeError, IndexError, KeyError, ValueError, RuntimeError, ArithmeticError)


class _Learner:
    """What the learner provides, by attribute: `check.learner.ddim_step`."""

    def __init__(self, source: Provider) -> None:
        self.__source = source
        self.asked = False  # whether anything of the learner's has come to the test yet

    def __getattr__(self, name: str) -> Any:
        self.asked = True
        return self.__source.get(name)


class Check:
    """One graded cell's check; the module's docstring shows how it is used.

    Args:
        name: the exercise (or explanation slot) that is checked, as in the cell's metadata.
        points: the most that `score()` gives; the same number as the cell's points.

    Raises:
        ValueError: if `points` is not a positive number.
    """

    def __init__(self, name: str, points: float) -> None:
        if not (isinstance(points, int | float) and points > 0):
            raise ValueError(f"points must be a positive number, not {points!r}")
        self.name, self.points = name, float(points)
        self.parts: list[Part] = []
        self.flags: list[str] = []
        self._provider = provider(sys._getframe(1).f_globals)
        self.learner = _Learner(self._provider)

    # -- parts ----------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def part(self, name: str, weight: float = 1.0) -> Iterator[Part]:
        """A part of the check: it passes if its block ends, and fails with the message of what stops it.

        A part of weight 0 only looks at the form (is there a sentence at all?). It shows at home, and earns
        nothing where other parts are there to earn.
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
            self._stopped(part, error)
        else:
            part.fraction, part.state = 1.0, "passed"

    def _stopped(self, part: Part, error: Exception) -> None:
        """Says whose fault an exception is: that of a part above, of the learner's data, or of the test."""
        before = self.parts[: self.parts.index(part)]
        if isinstance(error, NameError) and any(p.state in ("failed", "missing") for p in before):
            part.state, part.message = "missing", "needs a part above to pass first"
        elif self.learner.asked and isinstance(error, _DATA_ERRORS):
            # the lab's proof shows that the test works on right data, so the learner's data is at fault
            said = clip(f"{type(error).__name__}: {error}", 200)
            part.message = f"what came from your code could not be used ({said})"
        else:
            part.state, part.message = "broken", "this test did not work; your instructor will look at it"
            self.flags.append(f"{self.name}, part {part.name!r}: " + clip(traceback.format_exc(), 4000))

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
        """Fail unless all of `got` is within `tol + rtol * |want|` of `want`; shapes must be equal."""
        self._differs(compare.difference(got, want, tol, rtol), message)

    def _differs(self, difference: str | None, message: str) -> None:
        if difference:
            raise Failure(f"{message} ({difference})" if message else difference)

    def plain(self, got: Any) -> Any:
        """An answer of numbers with each of them plain: `torch.tensor(3)` is 3, also in lists, tuples, dicts.

        For answers that a check then asks `isinstance(n, int)` of. It is not done to every answer: one may
        be a tensor without axes on purpose, or a state that goes back to the learner's function as it is.
        """
        return compare.plain_numbers(got)

    def number(self, got: Any, message: str = "return one number") -> int | float:
        """`got` as a plain finite number; fails with `message` for anything else, booleans included.

        A tensor, an array or a scalar of numpy's that holds one real number is accepted for that number.
        """
        value = compare.plain_value(got)
        is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not (is_real and math.isfinite(value)):
            raise Failure(f"{message} (got {compare.short_repr(got)})")
        return value

    def tensor(self, got: Any, shape: Sequence[int] | None = None, dtype: torch.dtype | None = None,
               finite: bool = True) -> None:
        """Fail unless `got` is a tensor of this shape and dtype, without NaN and infinity if `finite`."""
        if not isinstance(got, torch.Tensor):
            raise Failure(f"got {compare.short_repr(got)}, expected a tensor")
        if shape is not None and tuple(got.shape) != tuple(shape):
            raise Failure(f"the shape is {tuple(got.shape)}, expected {tuple(shape)}")
        if dtype is not None and got.dtype != dtype:
            raise Failure(f"the dtype is {got.dtype}, expected {dtype}")
        if finite and got.is_floating_point() and not bool(torch.isfinite(got).all()):
            raise Failure("the tensor holds NaN or infinity")

    # -- whose work, and explanations -----------------------------------------------------------------------
    def variant(self, n: int) -> int:
        """This learner's variant of the lab, 0 to n - 1 (n <= 16)."""
        from inferlab.lab.identity import variant

        learner, lab = self._provider.identity()
        return variant(learner, lab, n)

    def explanation(self, name: str) -> Explanation:
        """The learner's `%%explain name` cell; raises `Missing`."""
        from inferlab.lab.explain.cell import parse

        return parse(self._provider.explanation(name), name)

    def slot(self, outcome: Any, name: str = "", weight: float = 1.0) -> None:
        """A part from an `Outcome` of `inferlab.lab.explain`: verdict "award", "deny" or "review".

        "award" earns `outcome.points` (a fraction, 0 to 1) of the weight. "review" earns nothing for now and
        flags the submission, so that it turns up in the instructor's list of what needs manual grading.

        `outcome` may also be a function without arguments that makes one. It is then called inside a part,
        so that an explanation that is not there (`check.explanation` raises `Missing`) is 0 for this part
        and no error.
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

    # -- the end --------------------------------------------------------------------------------------------
    @property
    def needs_review(self) -> bool:
        """Whether a person must look, because a slot said so or a part did not work."""
        return any(p.state in ("review", "broken") for p in self.parts)

    def score(self, later: int = 0) -> Score:
        """The points: `points` times the weight earned over the weight of all parts that are here.

        Args:
            later: how many parts run only after the work is handed in. Building the released lab writes it.
                With any, the report shows no points, though the number itself stays what the parts here
                give.

        Raises:
            ValueError: if the check has no part.
        """
        if not self.parts:
            raise ValueError(f"the check {self.name!r} has no part")
        form_only = not any(p.weight for p in self.parts)
        weights = [1.0 if form_only else p.weight for p in self.parts]
        earned = sum(weight * p.fraction for weight, p in zip(weights, self.parts, strict=True))
        value = min(max(round(self.points * earned / sum(weights), 6), 0.0), self.points)
        score = Score(value, self, later)
        _results[self.name] = score
        return score


def _as_list(value: Any) -> list:
    if value is None or value == "":
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
