"""The learners' public tree: what is in it, and that the leak check finds every kind of answer wherever it
hides."""

import json
import shutil
import zipfile

import pytest

from inferlab.cli import main
from inferlab.grading.authoring.leaks import find_leaks
from inferlab.grading.authoring.new import new_lab
from inferlab.grading.authoring.publish import MANIFEST, LeakError, build_wheel, publish
from inferlab.grading.course import CourseError
from tests import ROOT
from tests.course import LAB


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def tree(course, wheel, tmp_path, monkeypatch):
    """A published tree; the wheel, which takes long, is built once for the module."""
    monkeypatch.setattr("inferlab.grading.authoring.publish.build_wheel",
                        lambda root, folder: copy_wheel(wheel, folder))
    return publish(course, tmp_path / "public", package_root=ROOT).folder


def copy_wheel(wheel, folder):
    folder.mkdir(parents=True)
    return shutil.copy(wheel, folder)


def leaks(tree, course):
    return [str(leak) for leak in find_leaks(tree, course, [LAB])]


def test_the_tree_holds_what_learners_get_and_nothing_else(tree, course, wheel):
    files = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
    assert files == {"README.md", "LICENSE", "LICENSE-TEXT", MANIFEST, "start-here.ipynb",
                     f"{LAB}/{LAB}.ipynb",
                     f"wheels/{wheel.name}"}
    notebook = json.loads((tree / LAB / f"{LAB}.ipynb").read_text("utf-8"))
    assert "colab-badge" in "".join(notebook["cells"][0]["source"])
    assert leaks(tree, course) == []


def test_the_wheel_has_the_package_the_weights_and_the_licenses(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "inferlab/lab/handin/hand_in.py" in names
    assert not any(name.startswith("inferlab/grading/") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.startswith("inferlab/weights/") and name.endswith(".safetensors") for name in names)
    assert not any(".ipynb" in name or "wrong_answers" in name or "hidden_tests" in name for name in names)


def test_publishing_again_replaces_what_was_published_and_only_that(tree, course):
    (tree / ".git").mkdir()
    (tree / ".git" / "HEAD").write_text("ref")
    (tree / ".devcontainer").mkdir()
    shutil.copy(ROOT / "handbook" / "instructors" / "devcontainer.json", tree / ".devcontainer")
    publish(course, tree, package_root=ROOT)
    assert (tree / ".git" / "HEAD").exists() and (tree / ".devcontainer" / "devcontainer.json").exists()
    (tree / "mine.txt").write_text("a learner's own")
    with pytest.raises(CourseError, match=r"no publication made \(mine.txt\)"):
        publish(course, tree, package_root=ROOT)


def test_one_lab_is_published_alone_and_the_next_beside_it(course, wheel, tmp_path, monkeypatch):
    monkeypatch.setattr("inferlab.grading.authoring.publish.build_wheel", lambda root,
                        folder: copy_wheel(wheel, folder))
    new_lab(course, "lab91-next")
    tree = tmp_path / "public"

    def labs_after(*chosen):
        assert publish(course, tree, package_root=ROOT,
                       labs=list(chosen)).labs == sorted(p.parent.name for p in tree.glob("lab*/*.ipynb"))
        index = (tree / "start-here.ipynb").read_text("utf-8") + (tree / "README.md").read_text("utf-8")
        present = {path.parent.name for path in tree.glob("lab*/*.ipynb")}
        assert {lab for lab in course.labs if lab in index} == present
        return present

    assert labs_after(LAB) == {LAB}
    assert "lab91-next" not in (tree / LAB / f"{LAB}.ipynb").read_text("utf-8")
    assert labs_after("lab91-next") == {LAB, "lab91-next"}
    assert "lab91-next" in (tree / LAB / f"{LAB}.ipynb").read_text("utf-8")
    assert main(["publish", str(tree), "--lab", "lab99-ghost", "--course", str(course.root)]) == 2


def plant_in_cell(notebook, name, text):
    cell = next(cell for cell in notebook["cells"] if cell["id"] == name)
    cell["source"] = "".join(cell["source"]) + "\n" + text


@pytest.mark.parametrize(("plant", "found"), [
    (lambda nb: plant_in_cell(nb, "double", "    return 2*x"), "the solution of double"),
    (lambda nb: plant_in_cell(nb, "top_1",
                              "total = 0\nfor item in items:\n  total = step(total, item)\nreturn total"),
     "the solution of fold"),
    (lambda nb: plant_in_cell(nb, "top_1", "state: the total\nshape: (3,)"), "the solution of one-call"),
    (lambda nb: plant_in_cell(nb, "top_1", "you went through the items backwards"),
     "a message of check-fold"),
    (lambda nb: plant_in_cell(nb, "top_1", "### BEGIN HIDDEN TESTS"), "hidden test marker"),
    (lambda nb: nb["metadata"].update(x={"y": ["check.mistake('', when=seen ==  [4, 1, 5])",
                                               "you squared instead of doubling"]}),
     "a message of check-double"),
    (lambda nb: nb["cells"][5]["metadata"].update({"you squared instead of doubling": 1}),
     "a message of check-double"),
    (lambda nb: nb["cells"][2].update(outputs=[{"output_type": "stream", "name": "stdout", "text": "x"}]),
     "has outputs"),
    (lambda nb: plant_in_cell(nb, "top_1", "def fold(step, items):\n    return step(0, items[0])"),
     "the wrong answer"),
])
def test_a_leak_planted_in_a_notebook_is_found(tree, course, plant, found):
    path = tree / LAB / f"{LAB}.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    plant(notebook)
    path.write_text(json.dumps(notebook), "utf-8")
    assert any(found in leak for leak in leaks(tree, course)), leaks(tree, course)


def test_a_leak_planted_in_the_wheel_is_found(tree, course, wheel):
    with zipfile.ZipFile(tree / "wheels" / wheel.name, "a") as archive:
        archive.writestr("inferlab/lab/hint.py", "HINT = 'you went through the items backwards'\n")
        archive.writestr("inferlab/notebooks/wrong_answers.toml", "x = 1\n")
    found = leaks(tree, course)
    assert any("hint.py" in leak and "a message of check-fold" in leak for leak in found)
    assert any("wrong_answers.toml" in leak and "must not get" in leak for leak in found)


def test_a_leak_planted_in_the_handbook_stops_the_publication(tree, course):
    (course.root / "handbook").mkdir()
    (course.root / "handbook"
     / "page.md").write_text("`check.mistake(\"you squared instead of doubling\", when=got == 9)`")
    before = sorted(tree.rglob("*"))
    with pytest.raises(LeakError, match="a message of check-double"):
        publish(course, tree, package_root=ROOT)
    assert sorted(tree.rglob("*")) == before


def test_a_text_may_be_declared_as_shown(tree, course):
    (course.root / "handbook").mkdir()
    (course.root / "handbook" / "page.md").write_text("def fold(step, items):\n    return sum(items)")
    with pytest.raises(LeakError):
        publish(course, tree, package_root=ROOT)
    with (course.root / "course.toml").open("a") as stream:
        stream.write('\n[publish]\nshown = ["def fold(step, items): return sum(items)"]\n')
    publish(course, tree, package_root=ROOT)
