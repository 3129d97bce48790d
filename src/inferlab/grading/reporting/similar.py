"""Finds groups of learners whose answers to an exercise are alike, for a person to look at."""

import io
import keyword
import textwrap
import tokenize
from dataclasses import dataclass

from inferlab.grading.course import Course
from inferlab.grading.notebook import about, load

MOST = 0.5
"""A group that is larger than this share of all answers says only what the text of the exercise leads to."""
CROWD = 4
"""A group that is smaller than this is always shown."""


@dataclass(frozen=True)
class AlikeAnswers:
    """Learners whose answers to an exercise are alike; `likeness` (0 to 1) is the least of neighbours."""

    exercise: str
    learners: tuple[str, ...]
    likeness: float


def similar(course: Course, lab: str, least: float = 0.9, shortest: int = 40) -> list[AlikeAnswers]:
    """Groups of learners whose answers are alike apart from names, comments and layout; the most alike first.

    Each learner of a group is alike to at least one other. Left out is what says nothing: lines of the
    released cell, answers that are short, and answers that most of the class share.

    Args:
        course: the course; what lies in `autograded/` is compared.
        lab: the lab's name.
        least: from this likeness on, two answers are alike (0 to 1).
        shortest: the fewest characters of an answer, in the form that is compared.
    """
    given = {cell["id"]: set(cell["source"].split("\n")) for cell in load(course.release(lab))["cells"]
             if {"exercise", "explain"} & set(about(cell))}
    answers: dict[str, dict[str, str]] = {name: {} for name in given}
    for path in sorted((course.root / "autograded").glob(f"*/{lab}/{lab}.ipynb")):
        for cell in load(path)["cells"]:
            if (name := cell["id"]) in answers:
                own = "\n".join(row for row in cell["source"].split("\n") if row not in given[name])
                if text := essence(own):
                    answers[name][path.parent.parent.name] = text
    groups = [group for exercise, texts in answers.items()
              for group in _groups(exercise, texts, least, shortest)]
    return sorted(groups, key=lambda group: (-group.likeness, group.exercise, group.learners))


def _groups(exercise: str, texts: dict[str, str], least: float, shortest: int) -> list[AlikeAnswers]:
    """The groups of one exercise: learners that a chain of answers, each like the next, connects."""
    from rapidfuzz import fuzz
    from rapidfuzz.process import cdist

    learners = [learner for learner, text in texts.items() if len(text) >= shortest]
    written = [texts[learner] for learner in learners]
    likeness = cdist(written, written, scorer=fuzz.ratio, score_cutoff=100 * least)
    found, left = [], set(range(len(learners)))
    while left:
        chain, neighbours = [left.pop()], []
        for one in chain:
            near = [other for other in left if likeness[one, other]]
            left -= set(near)
            chain += near
            neighbours += [likeness[one, other] / 100 for other in near]
        forced = len(chain) >= CROWD and len(chain) > MOST * len(texts)
        if neighbours and not forced:
            names = tuple(sorted(learners[one] for one in chain))
            found.append(AlikeAnswers(exercise, names, round(float(min(neighbours)), 3)))
    return found


def essence(source: str) -> str:
    """An answer without what is easily changed.

    Code loses its comments and layout, and every name that is not called becomes the rank of its first use.
    What is not Python becomes its words.
    """
    try:
        tokens = [token for token in tokenize.generate_tokens(io.StringIO(textwrap.dedent(source)).readline)
                  if token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)]
    except (tokenize.TokenError, SyntaxError):
        return " ".join(source.casefold().split())
    ranks: dict[str, str] = {}
    words = []
    for place, token in enumerate(tokens):
        text = token.string
        called = [following.string for following in tokens[place + 1:place + 2]] == ["("]
        if token.type == tokenize.NAME and not called and not keyword.iskeyword(text):
            text = ranks.setdefault(text, f"v{len(ranks)}")
        words.append(text)
    return " ".join(words)
