"""A lab as text: reads `notebooks/<lab>/<lab>.py` (py:percent) into cells, and writes cells back to text.

Each `# %%` block of the file is one cell. Its short metadata says what the cell is for grading:

    # %% exercise="ddim-step" provides=["ddim_step"] difficulty=2 minutes=8
    # %% check="ddim-step" points=4            (of="..." when the check belongs to an exercise of another name)
    # %% explain="one-step"
    # %% tags=["demo"]

`expand` turns that into nbgrader's metadata and `shorten` turns it back. Blocks are kept as they were written, so a cell
that nobody changed goes back to the very text it came from.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import jupytext
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from .stubs import EXPLAIN_LINE

MARKER = re.compile(r"^# %%(?:\s|$)")
FORMAT = "py:percent"
SHORT_KEYS = {
    "exercise": {"exercise", "provides", "difficulty", "minutes", "tags"},
    "check": {"check", "of", "points", "tags"},
    "explain": {"explain", "difficulty", "minutes", "tags"},
    None: {"tags", "jupyter"},
}
KEY_ORDER = ("exercise", "check", "explain", "wrong", "name", "of", "provides", "points", "difficulty", "minutes",
             "keeps", "tags")


class LabTextError(ValueError):
    """A lab's text says something that cannot be built; the message names the file, the line and what to write."""


@dataclass
class Block:
    """One cell as written: its raw text, its first line's number (from 1) and the cell that jupytext reads from it."""

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
    for start, end in zip(starts, starts[1:] + [len(lines)], strict=True):
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
    """An explanation's body may be commented out in the text, so that the file stays Python; take the `# ` away."""
    first, _, body = source.partition("\n")
    lines = body.split("\n")
    if not EXPLAIN_LINE.match(first) or not all(not line or re.match(r"#( |$)", line) for line in lines):
        return source
    return "\n".join([first] + [re.sub(r"^# ?", "", line) for line in lines])


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
    nbgrader = {"schema_version": 3, "grade": False, "solution": True, "locked": False, "task": False, "grade_id": name}
    inferlab = {kind: name}
    if kind == "check":
        points = short.get("points")
        if isinstance(points, bool) or not isinstance(points, int | float) or points <= 0:
            raise LabTextError(f"check '{name}' needs points=N, a number above zero")
        nbgrader |= {"grade": True, "solution": False, "locked": True, "points": points, "grade_id": f"check-{name}"}
        inferlab["of"] = str(short.get("of", name))
    else:
        if kind == "exercise" and not short.get("provides"):
            raise LabTextError(f"exercise '{name}' must say what it provides: provides=[\"name\", ...]")
        inferlab |= {key: short[key] for key in ("provides", "difficulty", "minutes") if key in short}
    full["nbgrader"] = NotebookNode(nbgrader)
    full["inferlab"] = NotebookNode(inferlab)
    return full


def shorten(full: dict) -> dict:
    """The short metadata that `expand` would make `full` from; what tools added to a cell on the way is dropped."""
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
    if full.get("jupyter"):
        short["jupyter"] = dict(full["jupyter"])
    return short


def _from_formgrader(nbgrader: dict) -> dict:
    """A graded cell that an instructor made in formgrader's toolbar has nbgrader's metadata only."""
    grade_id = nbgrader["grade_id"]
    if nbgrader.get("grade") and nbgrader.get("solution"):
        raise LabTextError(f"cell '{grade_id}' is graded by hand; here an explanation is `%%explain` with checks of its own")
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


@dataclass(frozen=True)
class WrongAnswer:
    """A named wrong answer: the cell that a learner might write, and the points of each check that it keeps."""

    exercise: str
    name: str
    source: str
    keeps: dict[str, float]


def wrong_answers_path(lab_text: Path) -> Path:
    """Where a lab's named wrong answers lie: beside its text."""
    return lab_text.with_name("wrong_answers.py")


def read_wrong_answers(path: Path, checks: dict[str, list[str]]) -> list[WrongAnswer]:
    """The named wrong answers of a lab, in order; an absent file is an empty list.

    `checks` maps an exercise's or explanation's name to the names of its checks. `keeps=N` is for an exercise with one
    check; with several, `keeps={"check": N, ...}` where a check that is not named keeps 0.
    Raises `LabTextError` for an unknown exercise or check.
    """
    if not path.exists():
        return []
    answers = []
    for block in read_blocks(path.read_text("utf-8"), path.name)[1]:
        metadata = block.cell.metadata
        if "wrong" not in metadata:
            continue
        exercise, keeps = metadata["wrong"], metadata.get("keeps", 0)
        where = f"{path.name}, line {block.line}"
        if exercise not in checks:
            raise LabTextError(f"{where}: no exercise or explanation is called '{exercise}'")
        names = checks[exercise]
        if not isinstance(keeps, dict):
            if len(names) != 1 and keeps != 0:
                raise LabTextError(f"{where}: '{exercise}' has {len(names)} checks; write keeps={{\"check\": points, ...}}")
            keeps = dict.fromkeys(names, keeps)
        if not metadata.get("name"):
            raise LabTextError(f"{where}: a wrong answer needs name=\"...\": the mistake in a learner's words")
        if set(keeps) - set(names):
            raise LabTextError(f"{where}: no check called {sorted(set(keeps) - set(names))}; '{exercise}' has {names}")
        answers.append(WrongAnswer(exercise, metadata["name"], block.cell.source,
                                   {name: float(keeps.get(name, 0)) for name in names}))
    return answers
