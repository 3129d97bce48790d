"""What each `inferlab` command does: a function of the parsed arguments to (exit code, text, JSON data)."""

from .authoring import adopt, build, new, publish, release
from .deciding import claims, late, regrade, review
from .handing_back import export, gradescope, report
from .learning import cards, check, demo
from .marking import collect, feedback, grade
from .shared import FAILED, LOOK, OK, Fault, clear_progress

__all__ = [
    "FAILED", "LOOK", "OK", "Fault", "adopt", "build", "cards", "check", "claims", "clear_progress",
    "collect", "demo", "export", "feedback", "grade", "gradescope", "late", "new", "publish", "regrade",
    "release", "report", "review",
]
