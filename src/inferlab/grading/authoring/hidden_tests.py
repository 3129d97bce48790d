"""Puts a lab's hidden tests into its check cells, and takes them out again.

The lesson shows only what learners see. Where hidden tests belong, a check cell has a line `### HIDDEN
TESTS`. The tests themselves stand beside the lesson: those of exercises in `hidden_tests.py`, and what
explanations are held against in `explanations.py`. Both files have the same form:

    # %% fixture="facts"
    def facts(): ...                    written once, for every check that uses it

    # %% check="cache-bytes"            fills the `### HIDDEN TESTS` line of the check of that name;
    from inferlab.lab import typed      a second block of the same name fills its second line
    ### FIXTURE facts
    with check.part(...): ...

A built cell is self-contained: it has the hidden tests between nbgrader's markers, and each fixture in its
place. A cell of the lesson that is no check may have a `### FIXTURE` line, too: learners see what it stands
for. The list of words that an explanation is composed of is such a fixture.
"""

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from inferlab.grading.stubs import HIDDEN

from .lab_text import Block, LabTextError, read_blocks

HIDDEN_TESTS, EXPLANATIONS = "hidden_tests.py", "explanations.py"
PLACE = re.compile(r"^(?P<indent> *)### HIDDEN TESTS\s*$")
FIXTURE = re.compile(r"^(?P<indent> *)### FIXTURE (?P<name>\S+)\s*$")
HEADER = re.compile(r'^# %% (?P<kind>check|fixture)="(?P<name>[A-Za-z0-9_-]+)"\s*$')
DEFINES = re.compile(r"^(?:def \w+|class \w+|\w+(?= = ))", re.MULTILINE)
CELL_MARK = re.compile(r"^# %%(?:\s|$)")


@dataclass
class Piece:
    """One block of `hidden_tests.py` or `explanations.py`: a fixture, or the tests for one place."""

    kind: str
    name: str
    text: str
    line: int = 0
    raw: str = ""

    def written(self) -> str:
        """The block as it stands in the file; one that was read keeps its own blank lines."""
        return self.raw or f'# %% {self.kind}="{self.name}"\n{self.text}\n\n'


@dataclass
class HiddenFile:
    """One of the two files: what stands above its first block, and its blocks in order."""

    name: str
    header: str = ""
    pieces: list[Piece] = field(default_factory=list)

    def of(self, check: str) -> list[Piece]:
        """The pieces that fill the places of a check, in order."""
        return [piece for piece in self.pieces if piece.kind == "check" and piece.name == check]

    def written(self) -> str:
        """The file as text; blocks stand at least one blank line apart."""
        texts = [self.header, *(piece.written() for piece in self.pieces)]
        apart = [text if not text or text.endswith("\n\n") else text.rstrip("\n") + "\n\n" for text in texts]
        return "".join(apart).rstrip("\n") + "\n"


def read_hidden_file(path: Path) -> HiddenFile:
    """Read one of the two files; an absent file has no pieces.

    Raises `LabTextError` for a block that is neither a check nor a fixture, and for two fixtures of one name.
    """
    found = HiddenFile(path.name)
    if not path.exists():
        return found
    lines = path.read_text("utf-8").replace("\r\n", "\n").split("\n")
    starts = [number for number, line in enumerate(lines) if CELL_MARK.match(line)]
    found.header = "\n".join([*lines[: starts[0]], ""]) if starts else "\n".join(lines)
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        header = HEADER.match(lines[start])
        where = f"{path.name}, line {start + 1}"
        if not header:
            raise LabTextError(f'{where}: a block here begins with # %% check="NAME" or # %% fixture="NAME"')
        text = "\n".join(lines[start + 1 : end]).rstrip()
        if header["kind"] == "fixture" and any(p.kind == "fixture" and p.name == header["name"]
                                               for p in found.pieces):
            raise LabTextError(f"{where}: there is already a fixture called '{header['name']}'")
        raw = "\n".join(lines[start:end]) + ("\n" if end < len(lines) else "")
        found.pieces.append(Piece(header["kind"], header["name"], text, start + 1, raw))
    return found


@dataclass
class HiddenTests:
    """Both files of a lab."""

    exercises: HiddenFile
    explanations: HiddenFile

    @classmethod
    def empty(cls) -> "HiddenTests":
        """Both files without a block, as a new lab has them."""
        return cls(HiddenFile(HIDDEN_TESTS), HiddenFile(EXPLANATIONS))

    @classmethod
    def beside(cls, lesson: Path) -> "HiddenTests":
        """The hidden tests that lie beside a lesson."""
        return cls(*(read_hidden_file(lesson.with_name(name)) for name in (HIDDEN_TESTS, EXPLANATIONS)))

    @property
    def files(self) -> tuple[HiddenFile, HiddenFile]:
        """The file of the exercises' checks and that of the explanations' checks."""
        return self.exercises, self.explanations

    @property
    def fixtures(self) -> dict[str, str]:
        """The text of every fixture by its name. Raises `LabTextError` for a name that both files use."""
        found: dict[str, str] = {}
        for file in self.files:
            for piece in file.pieces:
                if piece.kind == "fixture":
                    if piece.name in found:
                        raise LabTextError(f"{file.name}, line {piece.line}: there is already a fixture "
                                           f"called '{piece.name}'")
                    found[piece.name] = piece.text
        return found

    def of(self, check: str) -> list[Piece]:
        """The pieces that fill the places of a check, in order."""
        return self.exercises.of(check) + self.explanations.of(check)


def read_lesson(path: Path) -> list[Block]:
    """The cells of a lab as they are built: the lesson at `path` with the hidden tests beside it put in.

    Raises `LabTextError` when a check has more or fewer places than pieces, and for a fixture that is not
    there or not used.
    """
    return put_together(read_blocks(path.read_text("utf-8"), path.name)[1], HiddenTests.beside(path),
                        path.name)


def put_together(blocks: list[Block], hidden: HiddenTests, where: str) -> list[Block]:
    """Fill in the tests: each `### HIDDEN TESTS` line of a check in `blocks` is replaced by its tests."""
    fixtures, filled = hidden.fixtures, set()
    used: set[str] = set()
    for block in blocks:
        check = block.cell.metadata.get("check")
        if not check:
            shown = Piece("cell", f"line {block.line}", block.cell.source)
            block.cell.source = expanded(shown, fixtures, used)
            continue
        pieces = iter(hidden.of(str(check)))
        lines = []
        for line in block.cell.source.split("\n"):
            place = PLACE.match(line)
            if not place:
                lines.append(line)
                continue
            piece = next(pieces, None)
            if piece is None:
                raise LabTextError(f"{where}, line {block.line}: nothing fills this cell's ### HIDDEN TESTS; "
                                   "add a block "
                                   f'# %% check="{check}" to {HIDDEN_TESTS} or {EXPLANATIONS}')
            filled.add(id(piece))
            region = [f"### {HIDDEN[0]}", *expanded(piece, fixtures, used).split("\n"), f"### {HIDDEN[1]}"]
            lines += _indented(region, place["indent"])
        block.cell.source = "\n".join(lines)
    for file in hidden.files:
        for piece in file.pieces:
            if piece.kind == "check" and id(piece) not in filled:
                raise LabTextError(f"{file.name}, line {piece.line}: no check '{piece.name}' in {where} has "
                                   "a line "
                                   "### HIDDEN TESTS left for this block")
            if piece.kind == "fixture" and piece.name not in used:
                raise LabTextError(f"{file.name}, line {piece.line}: no test has a line ### FIXTURE "
                                   f"{piece.name}")
    return blocks


def expanded(piece: Piece, fixtures: dict[str, str], used: set[str] | None = None) -> str:
    """The text of a block with its fixtures in their places; their names are added to `used`.

    Raises `LabTextError` for a fixture that is not there.
    """
    lines = []
    for line in piece.text.split("\n"):
        wanted = FIXTURE.match(line)
        if not wanted:
            lines.append(line)
            continue
        if wanted["name"] not in fixtures:
            raise LabTextError(f"{piece.kind} '{piece.name}' wants the fixture '{wanted['name']}'; "
                               f"there is: {', '.join(sorted(fixtures)) or 'none'}")
        if used is not None:
            used.add(wanted["name"])
        lines += _indented(fixtures[wanted["name"]].split("\n"), wanted["indent"])
    return "\n".join(lines)


def _indented(lines: list[str], indent: str) -> list[str]:
    return [indent + line if line else line for line in lines]


def take_apart(source: str) -> tuple[str, list[str]]:
    """The lesson's form of a built check cell, and the text of each hidden region without its indent."""
    lines: list[str] = []
    regions: list[list[str]] = []
    inside = False
    for line in source.split("\n"):
        if HIDDEN[0] in line:
            inside = True
            regions.append([])
            lines.append(line[: len(line) - len(line.lstrip())] + "### HIDDEN TESTS")
        elif HIDDEN[1] in line:
            inside = False
        elif inside:
            regions[-1].append(line)
        else:
            lines.append(line)
    return "\n".join(lines), [textwrap.dedent("\n".join(region)).rstrip() for region in regions]


def fixtures_in(text: str) -> set[str]:
    """The names in the `### FIXTURE` lines of a text."""
    return {match["name"] for line in text.split("\n") if (match := FIXTURE.match(line))}


def fold_fixtures(text: str, fixtures: dict[str, str], used: set[str], owner: str) -> str:
    """`text` with each fixture that it holds word for word replaced by the fixture's `### FIXTURE` line.

    Raises `LabTextError`, which names the `owner` of the text, when it defines something else under a name of
    one of the `used` fixtures, those that it had before: the other checks would go on with the old one.
    """
    for name, body in fixtures.items():
        text = re.sub(rf"^{re.escape(body)}$", f"### FIXTURE {name}", text, flags=re.MULTILINE)
        defined = DEFINES.findall(body)
        if name in used and any(beginning in defined for beginning in DEFINES.findall(text)):
            raise LabTextError(f"{owner} changes the fixture '{name}', "
                               "which other checks use as well: change it where it "
                               f"is written, in {HIDDEN_TESTS} or {EXPLANATIONS}, "
                               "or give the changed one a name of its own")
    return text
