"""A lab as text: reads `notebooks/<lab>/<lab>.py` (py:percent) into cells, and writes cells back to text.

Each `# %%` block of the file is one cell. Its short metadata says what the cell is for grading:

    # %% exercise="ddim-step" provides=["ddim_step"] difficulty=2 minutes=8
    # %% check="ddim-step" points=4            (of="..." when the check belongs to an exercise of another
    name) # %% explain="one-step" # %% tags=["demo"]

`expand` turns that into nbgrader's metadata and `shorten` turns it back. Blocks are kept as they were
written, so a cell that nobody changed goes back to the very text it came from.
"""

import re
from dataclasses import dataclass

import jupytext
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from inferlab.grading.stubs import EXPLAIN_LINE

MARKER = re.compile(r"^# %%(?:\s|$)")
FORMAT = "py:percent"
SHORT_KEYS = {
    "exercise": {"exercise", "provides", "difficulty", "minutes", "tags"},
    "check": {"check", "of", "points", "tags"},
    "explain": {"explain", "difficulty", "minutes", "tags"},
    None: {"tags", "jupyter"},
}
KEY_ORDER = ("exercise", "check", "explain", "of", "provides", "points", "difficulty", "minutes", "tags")


class LabTextError(ValueError):
    """A lab's text cannot be built; the message names the file, the line and what to write."""


@dataclass
class Block:
    """One cell as written: its raw text, its first line's number (from 1) and what jupytext reads from it."""

    text: str
    line: int
    cell: NotebookNode


def read_blocks(text: str, where: str = "lab") -> tuple[str, list[Block]]:
    """Split py:percent text into its header (what comes before the first `# %%`) and its blocks.

    Raises `LabTextError` for a block that jupytext does not read as exactly one cell.
    """
    lines = text.replace("\r\n", "\n").splitlines(keepends=True)
    starts = [index for index, line in enumerate(lines) if MARKER.match(line)]
    if not starts:
        raise LabTextError(f"{where}: no '# %%' cell in it")
    header = "".join(lines[: starts[0]])
    blocks = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        raw = "".join(lines[start:end])
        cells = jupytext.reads(raw, fmt=FORMAT).cells
        if len(cells) != 1:
            raise LabTextError(f"{where}, line {start + 1}: read as {len(cells)} cells, expected one")
        cell = cells[0]
        cell.metadata.pop("lines_to_next_cell", None)
        cell.source = _plain_explanation(cell.source)
        blocks.append(Block(raw, start + 1, cell))
    return header, blocks


def _plain_explanation(source: str) -> str:
    """Take the `# ` away: an explanation may be commented out in the text, so that the file stays Python."""
    first, _, body = source.partition("\n")
    lines = body.split("\n")
    if not EXPLAIN_LINE.match(first) or not all(not line or re.match(r"#( |$)", line) for line in lines):
        return source
    return "\n".join([first] + [re.sub(r"^# ?", "", line) for line in lines])


def checks_of(blocks: list[Block]) -> dict[str, list[str]]:
    """For each exercise and explanation its checks' names, in the order of the lab."""
    owners: dict[str, list[str]] = {}
    for block in blocks:
        metadata = block.cell.metadata
        for kind in ("exercise", "explain"):
            if kind in metadata:
                owners.setdefault(str(metadata[kind]), [])
        if "check" in metadata:
            owners.setdefault(owner_of(metadata), []).append(str(metadata["check"]))
    return owners


def owner_of(check: dict) -> str:
    """The name of the exercise or explanation that a check's short metadata says it checks."""
    return str(check.get("of", check["check"]))


def cell_ids(blocks: list[Block], where: str = "lab") -> list[str]:
    """The id of each cell in the built notebook: a graded cell's name, or its place after the last of those.

    Raises `LabTextError` for two cells of one id.
    """
    ids: list[str] = []
    previous, counter = "top", 0
    for block in blocks:
        try:
            nbgrader = expand(block.cell.metadata).get("nbgrader")
        except LabTextError as error:
            raise LabTextError(f"{where}, line {block.line}: {error}") from error
        previous, counter = (nbgrader["grade_id"], 0) if nbgrader else (previous, counter + 1)
        identity = f"{previous}_{counter}" if counter else previous
        if identity in ids:
            raise LabTextError(f"{where}, line {block.line}: two cells would be called '{identity}'; rename "
                               "one")
        ids.append(identity)
    return ids


def kind_of(metadata: dict) -> str | None:
    """Which of exercise, check or explain a cell's short metadata declares; None for an ordinary cell."""
    kinds = [kind for kind in ("exercise", "check", "explain") if kind in metadata]
    if len(kinds) > 1:
        raise LabTextError(f"a cell is one of exercise, check or explain, not {' and '.join(kinds)}")
    return kinds[0] if kinds else None


def expand(short: dict) -> NotebookNode:
    """The notebook metadata (nbgrader's, `inferlab`'s, tags) that a cell's short metadata stands for.

    Raises `LabTextError` for an unknown key, a check without points, an exercise that provides nothing.
    """
    kind = kind_of(short)
    unknown = sorted(set(short) - SHORT_KEYS[kind])
    if unknown:
        allowed = ", ".join(sorted(SHORT_KEYS[kind]))
        raise LabTextError(f"unknown key {', '.join(unknown)} in a cell's first line; known here: {allowed}")
    full = NotebookNode()
    if short.get("tags"):
        full["tags"] = list(short["tags"])
    if short.get("jupyter"):
        full["jupyter"] = short["jupyter"]
    if kind is None:
        return full
    name = str(short[kind])
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,54}", name):
        raise LabTextError(f"'{name}' cannot be a cell's name: letters, digits, '-' and '_', at most 55")
    nbgrader = {"schema_version": 3, "grade": False, "solution": True, "locked": False, "task": False,
                "grade_id": name}
    inferlab = {kind: name}
    if kind == "check":
        points = short.get("points")
        if isinstance(points, bool) or not isinstance(points, int | float) or points <= 0:
            raise LabTextError(f"check '{name}' needs points=N, a number above zero")
        nbgrader |= {"grade": True, "solution": False, "locked": True, "points": points,
                     "grade_id": f"check-{name}"}
        inferlab["of"] = owner_of(short)
        # a learner sees what the check says, not its forty lines
        full["jupyter"] = NotebookNode(source_hidden=True)
    else:
        if kind == "exercise" and not short.get("provides"):
            raise LabTextError(f"exercise '{name}' must say what it provides: provides=[\"name\", ...]")
        inferlab |= {key: short[key] for key in ("provides", "difficulty", "minutes") if key in short}
    full["nbgrader"] = NotebookNode(nbgrader)
    full["inferlab"] = NotebookNode(inferlab)
    return full


def shorten(full: dict) -> dict:
    """The short metadata that `expand` would make `full` from; what tools added to a cell is dropped."""
    inferlab, nbgrader = full.get("inferlab", {}), full.get("nbgrader", {})
    short: dict = {}
    if "check" in inferlab:
        short["check"] = inferlab["check"]
        if inferlab.get("of", inferlab["check"]) != inferlab["check"]:
            short["of"] = inferlab["of"]
        short["points"] = nbgrader["points"]
        if float(short["points"]).is_integer():
            short["points"] = int(short["points"])
    elif "exercise" in inferlab or "explain" in inferlab:
        kind = "exercise" if "exercise" in inferlab else "explain"
        short = {key: inferlab[key] for key in (kind, "provides", "difficulty", "minutes") if key in inferlab}
    elif nbgrader.get("grade") or nbgrader.get("solution"):
        short = _from_formgrader(nbgrader)
    if full.get("tags"):
        short["tags"] = list(full["tags"])
    if full.get("jupyter") and "check" not in short:
        short["jupyter"] = dict(full["jupyter"])
    return short


def _from_formgrader(nbgrader: dict) -> dict:
    """A graded cell that an instructor made in formgrader's toolbar has nbgrader's metadata only."""
    grade_id = nbgrader["grade_id"]
    if nbgrader.get("grade") and nbgrader.get("solution"):
        raise LabTextError(f"cell '{grade_id}' is graded by hand; here an explanation is `%%explain` with "
                           "checks of its own")
    if nbgrader.get("grade"):
        return {"check": grade_id.removeprefix("check-"), "points": nbgrader["points"]}
    return {"exercise": grade_id, "provides": []}


def write_block(cell: NotebookNode, short: dict) -> str:
    """One cell as py:percent text, ending in a blank line."""
    make = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}[cell.cell_type]
    source = cell.source
    if cell.cell_type == "code" and EXPLAIN_LINE.match(source):
        first, *body = source.split("\n")
        source = "\n".join([first] + [f"# {line}".rstrip() for line in body])
    ordered = {key: short[key] for key in KEY_ORDER if key in short}
    ordered |= {key: value for key, value in short.items() if key not in ordered}
    plain = make(source)
    plain.metadata.update(ordered)
    notebook = NotebookNode(nbformat=4, nbformat_minor=5, cells=[plain], metadata=NotebookNode(
        jupytext=NotebookNode(notebook_metadata_filter="-all", cell_metadata_filter="all")))
    text = jupytext.writes(notebook, fmt=FORMAT)
    start = next(index for index, line in enumerate(text.splitlines()) if MARKER.match(line))
    return "\n".join(text.splitlines()[start:]).rstrip("\n") + "\n\n"
