"""What a learner finds where the solution was: regions that are cut out of a released lab, and what replaces them.

nbgrader's own `ClearSolutions` writes a Python stub into every solution cell. An explanation (`%%explain NAME`) is
not Python: its stub is its own field names with nothing after the colon. `ClearLabSolutions` knows both.
"""

import re

from nbgrader.preprocessors import ClearSolutions

CODE_STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
SOLUTION = ("BEGIN SOLUTION", "END SOLUTION")
HIDDEN = ("BEGIN HIDDEN TESTS", "END HIDDEN TESTS")
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
    """`source` without its hidden tests, as nbgrader's `ClearHiddenTests` leaves it."""
    return "\n".join(line for inside, lines in split_regions(source, HIDDEN) if not inside for line in lines)


def is_explanation(source: str) -> bool:
    """Whether a cell's first line that is not blank is the `%%explain` magic."""
    return EXPLAIN_LINE.match(source.lstrip()) is not None


def field_names(lines: list[str]) -> list[str]:
    """The labels of an explanation's lines, in order, each once: `["state: x", "axis: y"]` gives `["state", "axis"]`."""
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
    """A code exercise's released form, as `ClearLabSolutions` leaves it: each solution region becomes the stub."""
    kept: list[str] = []
    lines = source.split("\n")
    split_regions(source, SOLUTION)  # raises on unbalanced markers
    inside = False
    for line in lines:
        if SOLUTION[0] in line:
            indent = re.match(r"\s*", line).group(0)
            kept.extend(indent + stub for stub in CODE_STUB.split("\n"))
            inside = True
        elif SOLUTION[1] in line:
            inside = False
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


class ClearLabSolutions(ClearSolutions):
    """nbgrader's `ClearSolutions`, with a stub of its own for `%%explain` cells."""

    def preprocess_cell(self, cell, resources, cell_index):
        """Clear one cell; an explanation keeps its field names, everything else is nbgrader's affair."""
        if cell.cell_type == "code" and is_explanation(cell.source):
            cell.source = clear_explanation(cell.source)
            return cell, resources
        return super().preprocess_cell(cell, resources, cell_index)


# What `c.GenerateAssignment.preprocessors` must be: nbgrader's own list with the one step that is ours.
RELEASE_PREPROCESSORS = [
    "nbgrader.preprocessors.IncludeHeaderFooter",
    "nbgrader.preprocessors.LockCells",
    "inferlab.grading.stubs.ClearLabSolutions",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.SaveCells",
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbgrader.preprocessors.ClearMarkScheme",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.CheckCellMetadata",
]
