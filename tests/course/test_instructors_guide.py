"""The instructors' guide is run: its commands in their order; those that a sentence names are understood."""

import re
import shlex
import shutil
import zipfile

import nbformat
import pytest

from inferlab.cli import main, parser
from inferlab.commands import LOOK, OK
from tests import ROOT
from tests.course import LAB

GUIDE = (ROOT / "handbook" / "instructors.md").read_text("utf-8")
SHOWN = re.findall(r"^    (inferlab .*?)(?: +#.*)?$", GUIDE, re.MULTILINE)
NAMED = re.findall(r"`(inferlab [^`]+)`", GUIDE)
LABS = {"lab02-denoising-step": LAB, "LAB": LAB}
WORDS = {"LEARNER": "ada", "CHECK": "double", "POINTS": "1", "GROUP": "g1", "FIELD": "state",
         "FILE=ID": "a.ipynb=ada"}


def words_of(command, **places):
    """The words of a command as a shell would split them, with this course's names."""
    given = LABS | WORDS | places
    return [given.get(word, word) for word in shlex.split(command)[1:]]


@pytest.mark.parametrize("command", NAMED)
def test_a_command_that_a_sentence_names_is_understood(command):
    words = words_of(command.replace("[", "").replace("]", ""))
    if len(words) == 1 and words[0] in ("review", "grade", "report", "feedback", "regrade"):
        words.append(LAB)  # the sentence means the command, whatever the lab
    assert parser().parse_args(words)


@pytest.mark.sandbox
@pytest.mark.timeout(600)
def test_a_term_goes_as_the_guide_shows_it(course, tmp_path, monkeypatch, capsys):
    shutil.copy(ROOT / "nbgrader_config.py", course.root)
    shutil.copytree(ROOT / "handbook", course.root / "handbook", dirs_exist_ok=True)
    (course.root / "src").symlink_to(ROOT / "src")  # the learners' wheel is made from it
    for name in ("README.md", "LICENSE", "LICENSE-TEXT", "pyproject.toml"):
        shutil.copy(ROOT / name, course.root)
    course.roster.parent.mkdir(exist_ok=True)
    shutil.copy(ROOT / "handbook" / "instructors" / "roster.csv", course.roster)
    learner = course.roster.read_text("utf-8").splitlines()[1].split(",")[0]
    solved = nbformat.read(course.source(LAB), as_version=4)
    released = nbformat.read(course.release(LAB), as_version=4)
    sources = {cell.id: cell.source for cell in solved.cells}
    for cell in released.cells:
        cell.source = sources[cell.id] if cell.metadata.get("nbgrader", {}).get("solution") else cell.source
    handed_in = tmp_path / "lab02.zip"
    with zipfile.ZipFile(handed_in, "w") as packed:
        packed.writestr(f"{learner}/{LAB}.ipynb", nbformat.writes(released))
    places = {"~/Downloads/lab02.zip": str(handed_in), "../public": str(tmp_path / "public")}
    monkeypatch.chdir(course.root)
    assert [command.split()[1] for command in SHOWN] == [
        "release", "publish", "collect", "grade", "review", "report", "report", "feedback", "export",
        "export", "report"]
    for command in SHOWN:
        code = main(words_of(command, **places))
        said = capsys.readouterr()
        assert code in (OK, LOOK), f"{command}: {said.out}{said.err}"
    assert (course.root / "submitted" / learner / LAB / f"{LAB}.ipynb").exists()
    assert learner in (course.root / "grades.csv").read_text("utf-8")
