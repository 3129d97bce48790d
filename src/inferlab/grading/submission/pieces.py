"""What became of one answer: its copies, by when they were run, and the pieces that it was split into."""

import ast

from inferlab.grading.stubs import EXPLAIN_LINE, FIELD, field_names


def latest_run(cell: dict) -> str:
    """A key that grows with the time of a cell's last run, as far as the file tells; else empty."""
    metadata = cell["metadata"]
    execution, colab = metadata.get("execution"), metadata.get("executionInfo")
    if isinstance(execution, dict):
        stamps = [value for key, value in execution.items() if "idle" in str(key) or "reply" in str(key)]
        if stamps and all(isinstance(stamp, str) for stamp in stamps):
            return "time " + max(stamps)
    if isinstance(colab, dict) and isinstance(colab.get("timestamp"), int):
        return f"time {colab['timestamp']:020d}"
    count = cell["execution_count"]
    return f"count {count:010d}" if count is not None and count >= 0 else ""


def whole_answer(cell: dict, piece: dict, released: dict, kind: str) -> str | None:
    """The text of an answer with the piece that was split off below it; `None` if it is no piece of it."""
    return (_explanation if kind == "explain" else _code)(cell, piece, released)


def _explanation(cell: dict, piece: dict, released: dict) -> str | None:
    """The joined text if `piece` begins with a field of the explanation that the cell itself lacks."""
    wanted = field_names(released["source"].split("\n")[1:])
    label = FIELD.match(piece["source"].lstrip("\n"))
    if EXPLAIN_LINE.match(piece["source"].lstrip()) or not label or label["label"] not in wanted:
        return None
    if label["label"] in field_names(cell["source"].split("\n")[1:]):
        return None
    return cell["source"].rstrip("\n") + "\n" + piece["source"].lstrip("\n")


def _code(cell: dict, piece: dict, released: dict) -> str | None:
    """The joined text if it is Python and at least one of the two alone is not, or the rest is indented."""
    if piece["cell_type"] != "code" or not piece["source"].strip():
        return None
    joined = cell["source"].rstrip("\n") + "\n" + piece["source"].lstrip("\n")
    broken = not _parses(cell["source"]) or not _parses(piece["source"])
    return joined if broken and _parses(joined) else None


def _parses(source: str) -> bool:
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in source.split("\n")]
    try:
        ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
