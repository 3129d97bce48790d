"""Looks for answers in a tree that learners will see: in notebooks, their metadata, text, wheels and zips.

What must not be there comes from the labs' own text: solutions, hidden tests, the messages that name
mistakes, rubrics, expected explanations, named wrong answers. Text is compared with all white space taken
out, so reindenting hides nothing. A line or two of code are often an idiom that the handbook or the package
says as well, so of code any three lines that follow each other count (imports aside), and a whole region
however short; of prose (explanations, messages) one sentence.
"""

import ast
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from inferlab.grading.course import Course
from inferlab.grading.stubs import HIDDEN, SOLUTION, is_explanation, region_lines

from .build import released_text
from .hidden_tests import read_lesson
from .lab_text import expand
from .wrong_answers import read_wrong_answers

WHOLE, WINDOW, SENTENCE, IN_ITS_CELL = 20, 50, 20, 6
LINES, WORDS = 3, 4
MARKERS = (*SOLUTION, *HIDDEN)
NEVER = re.compile(r"(^|/)(source|notebooks|submitted|autograded|feedback|collected|roster)/"
                   r"|wrong_answers|hidden_tests|gradebook"
                   r"|nbgrader_config|\.db$|(^|/)\.git/")
OPAQUE = (".safetensors", ".png", ".jpg", ".woff2", ".gif")


@dataclass(frozen=True)
class Secret:
    """Text that learners must not see, squeezed (no white space), and what it is."""

    squeezed: str
    what: str
    lab: str
    cell: str = ""


@dataclass(frozen=True)
class Leak:
    """A secret, or a file that has no business in the tree, and where it was found."""

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


def squeeze(text: str) -> str:
    """`text` without any white space."""
    return "".join(text.split())


def secrets_of(course: Course, lab: str) -> list[Secret]:
    """Everything in a lab's text that its release does not show."""
    path = course.text(lab)
    blocks = read_lesson(path)
    released = []
    for block in blocks:
        cell = block.cell.copy()
        cell.metadata = expand(block.cell.metadata)
        released.append(released_text(cell))
    shown = squeeze("\n".join(released))
    found = []
    for block in blocks:
        grade_id = expand(block.cell.metadata).get("nbgrader", {}).get("grade_id", "")
        prose = is_explanation(block.cell.source)
        for markers, what in ((SOLUTION, "the solution"), (HIDDEN, "a hidden test")):
            lines = region_lines(block.cell.source, markers)
            found += _secrets(lines, f"{what} of {grade_id}", lab, grade_id, prose)
            if markers is HIDDEN:
                found += [Secret(squeeze(text), f"a message of {grade_id}'s hidden test", lab)
                          for text in _strings(lines) if _is_sentence(text)]
    for answer in read_wrong_answers(path, blocks):
        what = f"the wrong answer '{answer.name}' of {answer.exercise}"
        found += _secrets(answer.source.split("\n"), what, lab, "", is_explanation(answer.source))
    return [secret for secret in found if secret.squeezed not in shown]


def _is_sentence(text: str) -> bool:
    return len(text.split()) >= WORDS and len(squeeze(text)) >= SENTENCE


def _secrets(lines: list[str], what: str, lab: str, cell: str, prose: bool) -> list[Secret]:
    lines = [line for line in lines if line.strip()]
    whole = squeeze("\n".join(lines))
    found = []
    if len(whole) >= WHOLE and (len(lines) > 1 or prose):
        found.append(Secret(whole, what, lab))
    if cell and len(whole) >= IN_ITS_CELL:
        found.append(Secret(whole, what, lab, cell))
    if prose:
        texts = [line.partition(":")[2] for line in lines]
        return found + [Secret(squeeze(text), f"a sentence of {what}", lab) for text in texts
                        if _is_sentence(text)]
    code = [line for line in lines if not re.match(r"\s*(import|from)\s", line)]
    windows = [squeeze("\n".join(code[start:start + LINES])) for start in range(len(code) - LINES + 1)]
    return found + [Secret(text, f"{LINES} lines of {what}", lab) for text in windows if len(text) >= WINDOW]


def _strings(lines: list[str]) -> list[str]:
    """Every string constant of a piece of code, f-strings' fixed pieces included."""
    source = "\n".join(lines)
    indent = len(source) - len(source.lstrip())
    try:
        tree = ast.parse("\n".join(line[indent:] if line[:indent].isspace() else line for line in lines))
    except SyntaxError:
        return re.findall(r'"([^"\n]{12,})"', source)
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)
            and isinstance(node.value, str)]


def find_leaks(tree: Path, course: Course, labs: list[str], allowed: Sequence[str] = ()) -> list[Leak]:
    """Every leak of the course's `labs` in `tree`; the texts `allowed` may be shown all the same."""
    permitted = {squeeze(text) for text in allowed}
    secrets = [secret for lab in labs for secret in secrets_of(course, lab)
               if secret.squeezed not in permitted]
    everywhere = {secret.squeezed: secret for secret in secrets if not secret.cell}
    leaks = []
    for name, data in _files(tree):
        if NEVER.search(name.split("!")[-1]):
            leaks.append(Leak(name, "a file that learners must not get"))
        if name.endswith(OPAQUE):
            continue
        notebook = _notebook(name, data)
        text = "\n".join(_all_strings(notebook)) if notebook is not None else data.decode("utf-8", "replace")
        squeezed = squeeze(text)
        hits = dict.fromkeys(f"{secret.what} ('{needle[:50]}')" for needle,
                             secret in everywhere.items() if needle in squeezed)
        leaks += [Leak(name, what) for what in hits]
        if notebook is not None:
            leaks += [Leak(name, what) for what in _in_notebook(notebook, secrets)]
    return list(dict.fromkeys(leaks))


def _files(tree: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of the tree; the members of zips and wheels as `wheel!member`, zips inside zips too."""
    for path in sorted(tree.rglob("*")):
        relative = str(path.relative_to(tree))
        if path.is_file() and not relative.startswith(".git/"):
            yield from _open(relative, path.read_bytes())


def _open(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    if data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(BytesIO(data)) as archive:
            for member in archive.namelist():
                if not member.endswith("/"):
                    yield from _open(f"{name}!{member}", archive.read(member))
    else:
        yield name, data


def _notebook(name: str, data: bytes) -> dict | None:
    if not name.endswith(".ipynb"):
        return None
    content = json.loads(data)
    return content if isinstance(content, dict) else None


def _all_strings(value: object) -> Iterator[str]:
    """Every string of JSON data, keys included; a cell's lines as one text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _all_strings(item)
    elif isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):
            yield "".join(value)
        else:
            for item in value:
                yield from _all_strings(item)


def _in_notebook(notebook: dict, secrets: list[Secret]) -> Iterator[str]:
    """What only a notebook can leak: markers, outputs, and answers too short to look for anywhere else."""
    lab = notebook.get("metadata", {}).get("inferlab", {}).get("lab", "")
    for number, cell in enumerate(notebook.get("cells", []), start=1):
        source = "".join(cell.get("source", ""))
        if any(marker in source for marker in MARKERS):
            yield f"cell {number} has a solution or hidden test marker"
        if cell.get("outputs") or cell.get("execution_count") is not None:
            yield f"cell {number} has outputs"
        grade_id = cell.get("metadata", {}).get("nbgrader", {}).get("grade_id")
        for secret in secrets:
            if secret.cell and secret.lab == lab and secret.cell == grade_id and secret.squeezed in squeeze(
                source):
                yield f"{secret.what}, in its cell"
