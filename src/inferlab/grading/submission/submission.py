"""What a learner handed in for a lab, as one value that everything which grades it works on.

Its life is on this page. `read` makes a notebook of the bytes, or says why it cannot. `mend` puts every cell
of the lab in its place. `make_job` says what is run: everything in a job that decides marks comes from the
instructor's notebook, and only the texts of the learner's cells, and who they say they are, come from theirs.

Collecting makes a `Submission` from the bytes that came, and writes its mended notebook into `submitted/`.
Grading makes one from the bytes in `submitted/`. It takes over what collecting noted, and mends again only
where somebody has changed the file or the lab was released anew.
"""

import functools
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from inferlab.grading.course import Course
from inferlab.grading.notebook import (
    Cell,
    Notebook,
    RawNotebook,
    about,
    declared_learner,
    grade_id,
    is_check,
    literals,
    load,
    parsed,
    tags,
)
from inferlab.grading.running.fingerprint import package_fingerprint
from inferlab.grading.sandbox.limits import Limits
from inferlab.grading.stubs import EXPLAIN_LINE, clear_explanation, released_view

from .files import UnreadableError, as_format_4, binary_kind, text_kind
from .mend import mend

FORMAT = 2
"""Counts up when a result changes its form."""
MAX_CELLS = 5_000
MAX_TEXT = 8_000_000


@dataclass(frozen=True)
class CourseLab:
    """A lab and how its submissions are run.

    Attributes:
        name: the lab's name.
        released: the notebook as learners got it: a submission is mended by it.
        source: the instructor's notebook, with solutions and hidden tests; empty where nothing is graded.
        limits: what one submission may use.
        mode: "sandbox", or "none" to run learners' code unprotected.
    """

    name: str
    released: Notebook
    source: Notebook = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    mode: str = "sandbox"

    @classmethod
    def given(cls, course: Course, name: str) -> "CourseLab":
        """The lab as it lies in `release/`: enough to tell what a handed-in file is."""
        return cls(name, load(course.release(name)))

    @classmethod
    def of(cls, source: Notebook, limits: Limits | None = None, mode: str = "sandbox") -> "CourseLab":
        """The lab that an instructor's notebook makes."""
        return cls(source["metadata"].get("inferlab", {}).get("lab", ""), released_view(source), source,
                   limits or Limits(), mode)

    @functools.cached_property
    def digest(self) -> str:
        """Names the instructor's notebook: any change of a cell changes it, its layout on disk does not."""
        return hashlib.sha256(json.dumps(self.source, sort_keys=True).encode()).hexdigest()

    @property
    def release(self) -> str:
        """Names what learners were given; mending a hidden test keeps it."""
        return self.released["metadata"].get("inferlab", {}).get("release", "")

    @functools.cached_property
    def checks(self) -> dict[str, str]:
        """grade_id -> name, for every check of the lab."""
        return {grade_id(cell): about(cell)["check"] for cell in self.source["cells"] if is_check(cell)}

    def key(self, digest: str) -> str:
        """Names a run's result: the same bytes, tests, limits and package give the same result again."""
        parts = [FORMAT, digest, self.digest, self.limits.as_dict(), self.mode, package_fingerprint()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Submission:
    """What one learner handed in for one lab.

    Attributes:
        learner: whose it is, as the roster or the folder in `submitted/` says; "" until that is known.
        lab: the lab that it is of.
        digest: SHA-256 of the bytes that were handed in.
        notebook: the mended notebook. Every cell of the lab is in it once, in the learner's order, with the
            learner's texts.
        notes: what was mended, each as a sentence for a person.
    """

    learner: str
    lab: CourseLab
    digest: str
    notebook: Notebook
    notes: tuple[str, ...]

    @classmethod
    def of(cls, data: bytes, lab: CourseLab, learner: str = "",
           collected: dict[str, Any] | None = None) -> "Submission":
        """The submission that the bytes of a file hold. Raises `UnreadableError` where they are no notebook.

        Args:
            collected: what collecting noted when it put the file into `submitted/`. Where the bytes are still
                those and the lab's release is the same, nothing is mended again.
        """
        digest, noted = digest_of(data), collected or {}
        if noted.get("placed") == digest and noted.get("release") == lab.release:
            return cls(learner, lab, digest, parsed(data.decode("utf-8")), tuple(noted["notes"]))
        return cls.mended(read(data), digest, lab, learner)

    @classmethod
    def mended(cls, raw: RawNotebook, digest: str, lab: CourseLab, learner: str = "") -> "Submission":
        """The submission in a notebook that was read from bytes with this digest, which is mended here."""
        notebook, notes = mend(raw, lab.released)
        return cls(learner, lab, digest, notebook, tuple(notes))

    @functools.cached_property
    def job(self) -> dict[str, Any]:
        """What is to be run, in which order. Every test and every limit in it is the lab's own."""
        return make_job(self.notebook, self.lab.source, self.lab.limits)

    @functools.cached_property
    def key(self) -> str:
        """The name of its result."""
        return self.lab.key(self.digest)

    @property
    def facts(self) -> dict[str, Any]:
        """What is kept with its result, so that the file is not needed again: the key, the notes, the
        explanations' texts, and a hash over all the code that the learner wrote."""
        given = {cell["id"] for cell in self.lab.source["cells"] if "exercise" not in about(cell)}
        code = "\n".join(cell["source"] for cell in self.notebook["cells"] if cell["cell_type"] == "code"
                         and cell["id"] not in given)
        return {"key": self.key, "notes": list(self.notes), "explanations": self.job["explanations"],
                "code": hashlib.sha256(code.encode()).hexdigest()[:24]}


def digest_of(data: bytes) -> str:
    """The SHA-256 of handed-in bytes, as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def placed(course: Course, learner: str, lab: str) -> dict[str, Any]:
    """What collecting noted when it placed a learner's notebook: `sha256` of the file that came, when it was
    `received` and whether a list says so (`listed`), by which `release` it was mended, the digest of what was
    `placed`, the `notes` on what was mended, and by what each of the `platforms` knows the learner. Empty
    where nothing was collected."""
    try:
        noted = json.loads(course.placed(learner, lab).read_text("utf-8"))
    except (FileNotFoundError, ValueError):  # a full disk may have cut it short
        return {}
    return noted if isinstance(noted, dict) and "received" in noted else {}


# -- reading ---------------------------------------------------------------------------------------
def read(data: bytes) -> RawNotebook:
    """A notebook in handed-in bytes, in any encoding or notebook format, with what grading needs of it.

    Outputs are left behind, so that a notebook of 100 MB grades like a small one. Raises `UnreadableError`
    with a sentence for a person.
    """
    if not data.strip(b" \t\r\n\0"):
        raise UnreadableError("empty file")
    text, notes = _text(data)
    try:
        raw = json.loads(text)
    except RecursionError:
        raise UnreadableError("not a notebook: JSON nested too deeply") from None
    except ValueError as error:
        raise UnreadableError(text_kind(text, error)) from None
    if re.search(r"\\u[dD][89a-fA-F]", text):
        raw = _encodable(raw)
    if not isinstance(raw, dict) or not ("cells" in raw or "worksheets" in raw):
        raise UnreadableError("JSON, but not a notebook: it has no cells")
    raw = as_format_4(raw, notes)
    if not isinstance(raw.get("cells"), list):
        raise UnreadableError("not a notebook: its cells are not a list")
    if len(raw["cells"]) > MAX_CELLS:
        raise UnreadableError(f"{len(raw['cells']):,} cells: the most is {MAX_CELLS:,}")
    cells = []
    for number, cell in enumerate(raw["cells"], start=1):
        plain = _cell(cell)
        if plain is None:
            notes.append(f"cell {number} is malformed and was left out")
        else:
            cells.append(plain)
    if sum(len(cell["source"]) for cell in cells) > MAX_TEXT:
        raise UnreadableError(f"its cells hold more than {MAX_TEXT:,} characters of text")
    metadata = raw.get("metadata")
    return RawNotebook(metadata if isinstance(metadata, dict) else {}, cells, notes)


def _encodable(value: Any) -> Any:
    """JSON data in which half a surrogate pair, which no file can hold, is the replacement character."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value


def _text(data: bytes) -> tuple[str, list[str]]:
    """Bytes as text, with a note when they were not plain UTF-8."""
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            try:
                return data.decode(encoding), [f"read as {encoding} (byte order mark)"]
            except UnicodeDecodeError:
                break
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError:
        raise UnreadableError(binary_kind(data)) from None


def _cell(raw: Any) -> dict[str, Any] | None:
    """A cell with the fields that matter, of the types they should have; `None` for what is no cell."""
    if not isinstance(raw, dict):
        return None
    source = raw.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    kind = raw.get("cell_type")
    if not isinstance(source, str) or kind not in ("code", "markdown", "raw", "heading"):
        return None
    metadata = raw.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    identity = raw.get("id") or metadata.get("id") or ""
    count = raw.get("execution_count")
    return {
        "cell_type": "markdown" if kind == "heading" else kind,
        "source": source.replace("\r\n", "\n").replace("\r", "\n"),
        "id": identity if isinstance(identity, str) else "",
        "metadata": metadata,
        "execution_count": count if isinstance(count, int) and not isinstance(count, bool) else None,
    }


# -- what is run -----------------------------------------------------------------------------------
def make_job(submission: Notebook, source: Notebook, limits: Limits | None = None) -> dict[str, Any]:
    """The job that grades `submission`, as plain JSON: which cells are run, in which order.

    Args:
        submission: a mended notebook: every cell of the lab is in it once.
        source: the instructor's notebook of the lab. It has the tests, their points, and the names that the
            tests may ask the learner's kernel for.
        limits: what the submission may use; `Limits()` if None.
    """
    trusted = {cell["id"]: cell for cell in source["cells"] if "id" in cell}
    cells, injected = [], False
    for index, cell in enumerate(submission["cells"]):
        if cell["cell_type"] != "code":
            continue
        known = trusted.get(cell.get("id", ""), {"metadata": {}})
        if is_check(known):
            cells.append({"kind": "check", "index": index, "source": known["source"],
                          "grade_id": grade_id(known),
                          "points": float(known["metadata"]["nbgrader"]["points"])})
        elif not {"demo", "bootstrap"} & set(tags(known)) and cell["source"].strip():
            cells.append({"kind": "run", "index": index, "source": cell["source"],
                          "doing": f"running cell {index + 1}"})
            if "parameters" in tags(known):
                cells.append(_parameters(source, index))
                injected = True
    if not injected:
        cells.insert(0, _parameters(source, -1))
    return {
        "lab": source["metadata"].get("inferlab", {}).get("lab", ""),
        "learner": declared_learner(submission["cells"])[:200],
        "cells": cells,
        "provides": sorted({name for cell in source["cells"] for name in about(cell).get("provides", [])}),
        "explanations": _explanations(submission, trusted),
        "limits": (limits or Limits()).as_dict(),
    }


def _parameters(source: Notebook, index: int) -> dict[str, Any]:
    """A cell after the learner's parameters: grading uses the bundled model, the CPU and the lab's seed."""
    cell = next((c for c in source["cells"] if "parameters" in tags(c)), None)
    seed = literals(cell["source"]).get("SEED", 0) if cell is not None else 0
    text = f'MODEL, DEVICE, SEED = "bundled", "cpu", {int(seed)}'
    return {"kind": "run", "index": None, "source": text,
            "doing": f"setting the parameters after cell {index + 1}"}


def _explanations(submission: Notebook, trusted: dict[str, Cell]) -> dict[str, str]:
    """An explanation's name -> its text, for each `%%explain` cell that the learner has changed."""
    found = {}
    for cell in submission["cells"]:
        known = trusted.get(cell.get("id", ""))
        if known is None or "explain" not in about(known):
            continue
        if cell["source"].strip() == clear_explanation(known["source"]).strip():
            continue
        first, _, body = cell["source"].lstrip().partition("\n")
        found[about(known)["explain"]] = body if EXPLAIN_LINE.match(first) else cell["source"]
    return found
