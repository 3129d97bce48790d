"""What learners find where the solution was: the regions that are cut out of a lab, and what replaces them.

nbgrader's own `ClearSolutions` writes a Python stub into every solution cell. An explanation (`%%explain
NAME`) is not Python: its stub is its own field names with nothing after the colon.
"""

import copy
import re

from inferlab.grading.notebook import Cell, Notebook

CODE_STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
SOLUTION = ("BEGIN SOLUTION", "END SOLUTION")
HIDDEN = ("BEGIN HIDDEN TESTS", "END HIDDEN TESTS")
PART = re.compile(r"\bcheck\.(?:part|slot)\(")
EXPLAIN_LINE = re.compile(r"^\s*%%explain\s+(?P<name>\S+)")
FIELD = re.compile(r"^\s*(?P<label>[A-Za-z][A-Za-z0-9 _/-]{0,40}?)\s*:(?!//)")


class RegionError(ValueError):
    """A BEGIN or END marker that has no partner, or that is nested in another."""


def split_regions(source: str, markers: tuple[str, str]) -> list[tuple[bool, list[str]]]:
    """Split `source` at a pair of markers: a list of `(inside, lines)`, the marker lines themselves dropped.

    Raises `RegionError` for a marker without its partner or a region inside a region.
    """
    begin, end = markers
    pieces: list[tuple[bool, list[str]]] = [(False, [])]
    inside = False
    for number, line in enumerate(source.split("\n"), start=1):
        if begin in line:
            if inside:
                raise RegionError(f"line {number}: '{begin}' inside a region that is still open")
            inside = True
            pieces.append((True, []))
        elif end in line:
            if not inside:
                raise RegionError(f"line {number}: '{end}' without '{begin}' before it")
            inside = False
            pieces.append((False, []))
        else:
            pieces[-1][1].append(line)
    if inside:
        raise RegionError(f"'{begin}' is never closed by '{end}'")
    return pieces


def region_lines(source: str, markers: tuple[str, str]) -> list[str]:
    """The lines inside the regions that `markers` enclose."""
    return [line for inside, lines in split_regions(source, markers) if inside for line in lines]


def without_hidden_tests(source: str) -> str:
    """`source` without its hidden tests; the line `check.score()` then says how many parts are gone."""
    kept = "\n".join(line for inside, lines in split_regions(source, HIDDEN) if not inside for line in lines)
    later = sum(len(PART.findall(line)) for line in region_lines(source, HIDDEN))
    return kept.replace("check.score()", f"check.score(later={later})") if later else kept


def is_explanation(source: str) -> bool:
    """Whether a cell's first line that is not blank is the `%%explain` magic."""
    return EXPLAIN_LINE.match(source.lstrip()) is not None


def field_names(lines: list[str]) -> list[str]:
    """The labels of an explanation's lines, once each: `["state: x", "axis: y"]`: `["state", "axis"]`."""
    names = []
    for line in lines:
        match = FIELD.match(line)
        if match and match["label"] not in names:
            names.append(match["label"])
    return names


def clear_explanation(source: str) -> str:
    """An explanation's released form: its solution region becomes its own field names with empty values.

    Raises `RegionError` when the cell has no solution region, or the region no `label:` line.
    """
    pieces = split_regions(source, SOLUTION)
    if len(pieces) == 1:
        raise RegionError("an explanation needs a solution region: ### BEGIN SOLUTION ... ### END SOLUTION")
    kept: list[str] = []
    for inside, lines in pieces:
        if inside:
            names = field_names(lines)
            if not names:
                raise RegionError("the solution region of an explanation has no 'label: ...' line")
            kept.extend(f"{name}: " for name in names)
        else:
            kept.extend(lines)
    return "\n".join(kept)


def clear_code(source: str) -> str:
    """A code exercise's released form, as `ClearLabSolutions` leaves it: stubs in place of the solution."""
    kept: list[str] = []
    lines = source.split("\n")
    split_regions(source, SOLUTION)  # raises on unbalanced markers
    inside = False
    for line in lines:
        if SOLUTION[0] in line:
            indent = line[: len(line) - len(line.lstrip())]
            kept.extend(indent + stub for stub in CODE_STUB.split("\n"))
            inside = True
        elif SOLUTION[1] in line:
            inside = False
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def released_text(cell: Cell) -> str:
    """A source cell's text as learners get it: no hidden tests, stubs in place of solutions."""
    text = without_hidden_tests(cell["source"])
    if cell["metadata"].get("nbgrader", {}).get("solution"):
        text = clear_explanation(text) if is_explanation(text) else clear_code(text)
    return text


def released_view(source: Notebook) -> Notebook:
    """A copy of the instructor's notebook with stubs for solutions and without hidden tests."""
    view = copy.deepcopy(source)
    for cell in view["cells"]:
        cell["source"] = released_text(cell)
    return view
