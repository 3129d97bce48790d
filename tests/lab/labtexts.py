"""What tests of single labs read, and what they ask of each: its cells, names, points, and what is shown."""

import ast
import re

import pytest

from inferlab.grading.authoring.hidden_tests import read_lesson
from inferlab.grading.authoring.lab_rules import bound_names
from inferlab.grading.authoring.wrong_answers import WrongAnswer, read_wrong_answers
from inferlab.grading.stubs import clear_code, without_hidden_tests
from tests import ROOT


def blocks_of(lab: str) -> list:
    """The blocks of a lab's text as they are built, hidden tests in their places, in order."""
    return read_lesson(ROOT / "notebooks" / lab / f"{lab}.py")


def wrong_answers_of(lab: str) -> list[WrongAnswer]:
    """The named wrong answers of a lab, in order."""
    return read_wrong_answers(ROOT / "notebooks" / lab / f"{lab}.py", blocks_of(lab))


def cell_of(lab: str, *, begins: str = "", **metadata) -> str:
    """The source of the one cell of a lab with this metadata that begins with `begins`."""
    found = [b.cell.source for b in blocks_of(lab) if b.cell.source.startswith(begins)
             and all(b.cell.metadata.get(key) == value for key, value in metadata.items())]
    assert len(found) == 1
    return found[0]


def overwritten_by_checks(lab: str, shared: set[str]) -> dict[str, set[str]]:
    """Check -> names that its cell assigns and another cell of the lab, too, but for the shared ones."""
    body: set[str] = set()
    checks: dict[str, set[str]] = {}
    for block in blocks_of(lab):
        if block.cell.cell_type == "code" and not block.cell.source.startswith("%%"):
            names = set(bound_names(block.cell.source))
            if "check" in block.cell.metadata:
                checks[block.cell.metadata["check"]] = names
            else:
                body |= names
    return {check: taken for check, names in checks.items() if (taken := names & body - shared)}


def prose_of(lab: str) -> str:
    """All that a lab says outside its code."""
    return "\n".join(b.cell.source for b in blocks_of(lab) if b.cell.cell_type == "markdown")


def points_of(lab: str) -> dict[str, float]:
    """Exercise or explanation -> the points of its checks."""
    points: dict[str, float] = {}
    for block in blocks_of(lab):
        meta = block.cell.metadata
        if "check" in meta:
            owner = meta.get("of", meta["check"])
            points[owner] = points.get(owner, 0) + meta["points"]
    return points


def efforts_said(lab: str) -> list[tuple[str, str, str]]:
    """(difficulty, minutes, points) of each exercise and explanation, as the prose says them."""
    return re.findall(r"\*difficulty (\d) of 3 · (\d+) minutes · (\d+) points\.?\*", prose_of(lab))


def efforts_declared(lab: str) -> list[tuple[str, str, str]]:
    """The same, as their cells and their checks' points declare them."""
    points = points_of(lab)
    return [(str(m["difficulty"]), str(m["minutes"]), str(points[m.get("exercise") or m["explain"]]))
            for m in (b.cell.metadata for b in blocks_of(lab)) if "exercise" in m or "explain" in m]


def sources_shown(lab: str, **names: object) -> list[tuple[str, int, int]]:
    """(what is shown, its notes, its lines) of each `show_source` of a lab, in order; `names` are what
    earlier cells of the lab define. Raises where a note finds no line in the installed source."""
    exec("from inferlab.lab import show_source", names)
    views = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INFERLAB_STRICT_SOURCE", "1")
        for block in blocks_of(lab):
            source = block.cell.source if block.cell.cell_type == "code" else ""
            for node in ast.parse(source).body if "\nshow_source(" in f"\n{source}" else ():
                if isinstance(node, ast.Import | ast.ImportFrom):
                    exec(compile(ast.Module([node], []), "cell", "exec"), names)
                elif ast.unparse(node).startswith("show_source("):
                    views.append(eval(compile(ast.Expression(node.value), "cell", "eval"), names))
    lines = [[line for part in view.blocks for line in part] for view in views]
    return [(view.title.split(" ")[0], sum(bool(line.note) for line in shown), len(shown))
            for view, shown in zip(views, lines, strict=True)]


def assert_no_mistake_is_named(lab: str) -> None:
    """What learners get of a lab's checks names no mistake and no claim, and of its exercises no answer."""
    for block in blocks_of(lab):
        meta = block.cell.metadata
        if "check" in meta:
            shown = without_hidden_tests(block.cell.source)
            assert ".mistake(" not in shown and "wanted" not in shown and "typed" not in shown, meta["check"]
            assert "check.part(" in shown
        elif "exercise" in meta:
            assert "raise NotImplementedError()" in clear_code(block.cell.source)
