"""The named wrong answers of a lab: mistakes that learners make, each a patch of the lab's own solution.

`wrong_answers.toml` beside the lesson has a table for each, under the name of its exercise or explanation:

    [[ddim-step]]
    name = "derived the noise again after clipping"
    keeps = 1.5
    replace = "return a + b"
    by = "return a - b"

`replace` and `by` may be lists of one length. An explanation's patch says the fields that are other:
`says.state = "..."`. `cell` gives the whole cell, where a patch would be longer.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferlab.grading.stubs import FIELD, SOLUTION

from .lab_text import Block, LabTextError, checks_of

WRONG_ANSWERS = "wrong_answers.toml"
KEYS = {"name", "keeps", "replace", "by", "says", "cell"}


@dataclass(frozen=True)
class WrongAnswer:
    """A named wrong answer: a cell that a learner might write, and the points of each check that it keeps."""

    exercise: str
    name: str
    source: str
    keeps: dict[str, float]


def solution_text(source: str) -> str:
    """A solution cell without its region markers: what a patch is a patch of."""
    return "\n".join(line for line in source.split("\n") if not any(mark in line for mark in SOLUTION))


def patched(solution: str, replace: list[str], by: list[str]) -> str:
    """`solution` with each text of `replace` replaced by the one of `by` at the same place.

    Raises `LabTextError` for a text that does not stand in the solution exactly once.
    """
    if len(replace) != len(by):
        raise LabTextError(f"{len(replace)} texts to replace and {len(by)} to put there")
    for old, new in zip(replace, by, strict=True):
        if solution.count(old) != 1:
            raise LabTextError(f"the solution has {solution.count(old)} times what is to be replaced, "
                               f"expected once:\n{old}")
        solution = solution.replace(old, new)
    return solution


def said(solution: str, fields: dict[str, str]) -> str:
    """An explanation whose `fields` say something else, each in the place of the solution's.

    Raises `LabTextError` for a field that the solution does not have.
    """
    lines: list[str] = []
    left, inside = dict(fields), ""
    for line in solution.split("\n"):
        label = FIELD.match(line)
        inside = label["label"] if label else inside
        if inside not in fields:
            lines.append(line)
        elif inside in left:
            lines.append(f"{inside}: {left.pop(inside)}")
    if left:
        raise LabTextError(f"the explanation has no field {', '.join(left)}")
    return "\n".join(lines)


def read_wrong_answers(lesson: Path, blocks: list[Block]) -> list[WrongAnswer]:
    """The wrong answers of the lab whose text is `lesson` and whose cells are `blocks`, in their order.

    `keeps = N` is for an exercise with one check; with several, `keeps.CHECK = N`, where a check that is not
    named keeps 0. An absent file is an empty list.

    Raises `LabTextError` for an unknown exercise, check or key, and for a patch that does not fit the
    solution.
    """
    path = lesson.with_name(WRONG_ANSWERS)
    if not path.exists():
        return []
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise LabTextError(f"{path.name}: {error}") from error
    checks = checks_of(blocks)
    solutions = {str(block.cell.metadata[kind]): solution_text(block.cell.source)
                 for block in blocks for kind in ("exercise", "explain") if kind in block.cell.metadata}
    answers = []
    for exercise, found in tables.items():
        if exercise not in checks or exercise not in solutions:
            raise LabTextError(f"{path.name}: no exercise or explanation is called '{exercise}'")
        for table in found if isinstance(found, list) else [found]:
            try:
                answers.append(_answer(exercise, table, checks[exercise], solutions[exercise]))
            except LabTextError as error:
                raise LabTextError(f"{path.name}, {exercise}, {table.get('name') or 'without a name'}: "
                                   f"{error}") from error
    return answers


def _answer(exercise: str, table: dict[str, Any], checks: list[str], solution: str) -> WrongAnswer:
    if unknown := sorted(set(table) - KEYS):
        raise LabTextError(f"unknown key {', '.join(unknown)}; known here: {', '.join(sorted(KEYS))}")
    if not table.get("name"):
        raise LabTextError('it needs name = "...": the mistake in a learner\'s words')
    keeps = table.get("keeps", 0)
    if not isinstance(keeps, dict):
        if len(checks) != 1 and keeps != 0:
            raise LabTextError(f"'{exercise}' has {len(checks)} checks; write keeps.CHECK = points for each "
                               "that keeps some")
        keeps = dict.fromkeys(checks, keeps)
    if set(keeps) - set(checks):
        raise LabTextError(f"no check called {sorted(set(keeps) - set(checks))}; '{exercise}' has {checks}")
    if sum(key in table for key in ("cell", "says",
                                    "replace")) != 1 or ("replace" in table) != ("by" in table):
        raise LabTextError("it has one of: replace with by, says, cell")
    if "cell" in table:
        source = table["cell"].strip("\n")
    elif "says" in table:
        source = said(solution, table["says"])
    else:
        source = patched(solution, _texts(table["replace"]), _texts(table["by"]))
    return WrongAnswer(exercise, table["name"], source, {name: float(keeps.get(name, 0)) for name in checks})


def _texts(value: str | list[str]) -> list[str]:
    """One text or a list of texts, each without the line end before its closing quotes."""
    return [text.removesuffix("\n") for text in ([value] if isinstance(value, str) else value)]
