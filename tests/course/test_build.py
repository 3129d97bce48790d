"""Building a lab from its text, bringing an edited notebook back, and the rules that a lab's text must follow."""

import nbformat
import pytest

from inferlab.grading.adopt import adopt, adopt_notebook
from inferlab.grading.build import (
    BuildError,
    build_lab,
    build_source,
    release_hash,
    save_to_gradebook,
    stale_labs,
)
from inferlab.grading.course import Course, CourseError
from inferlab.grading.labtext import LabTextError, read_blocks, read_wrong_answers
from inferlab.grading.lint import checks_of, free_names, lint

LAB = "lab90-fixture"


def cells(path):
    return {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}


def edit(course, old, new):
    path = course.text(LAB)
    text = path.read_text("utf-8")
    assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
    path.write_text(text.replace(old, new), "utf-8")


def test_source_has_nbgraders_metadata_and_stable_ids(course):
    source = cells(course.source(LAB))
    assert source["double"].metadata["nbgrader"]["solution"] is True
    assert source["check-double"].metadata["nbgrader"]["points"] == 4
    assert source["double"].metadata["inferlab"]["provides"] == ["double"]
    assert source["one-call"].source.startswith("%%explain one-call\n### BEGIN SOLUTION\nstate: the total")
    assert list(source)[:2] == ["top_1", "bootstrap"]
    assert all(not cell.get("outputs") for cell in source.values())


def test_release_has_stubs_and_no_hidden_test(course):
    release = cells(course.release(LAB))
    assert release["double"].source.endswith("    # YOUR CODE HERE\n    raise NotImplementedError()")
    assert release["one-call"].source == "%%explain one-call\nstate: \nshape: "
    assert "HIDDEN" not in course.release(LAB).read_text("utf-8")
    assert "mistake" not in release["check-double"].source
    assert release["check-double"].source.endswith("check.score()")


def test_building_twice_gives_the_same_bytes_and_needs_no_gradebook(course):
    assert build_lab(course, LAB) == []
    assert stale_labs(course) == []
    assert not (course.root / "gradebook.db").exists()


def test_a_derived_file_that_differs_is_stale(course):
    path = course.release(LAB)
    path.write_text(path.read_text("utf-8").replace("Double a number", "Double any number"), "utf-8")
    assert stale_labs(course) == [f"release/{LAB}/{LAB}.ipynb"]
    (course.root / "source" / "lab91-gone").mkdir()
    assert "source/lab91-gone" in stale_labs(course)


def test_a_mended_hidden_test_keeps_the_release_and_a_visible_change_does_not(course):
    before = release_hash(build_source(course, LAB).cells)
    edit(course, "check.equal(got, -6)", "check.equal(got, -6.0)")
    assert release_hash(build_source(course, LAB).cells) == before
    edit(course, "## Double a number", "## Double it")
    assert release_hash(build_source(course, LAB).cells) != before


def test_releasing_to_the_gradebook_records_the_hidden_tests(course):
    save_to_gradebook(course, LAB)
    from nbgrader.api import Gradebook

    with Gradebook(course.gradebook_url) as gradebook:
        assert gradebook.find_assignment(LAB).max_score == 10
        assert "HIDDEN" in gradebook.find_source_cell("check-double", LAB, LAB).source


def test_a_file_that_nobody_built_is_in_the_way_and_a_hand_in_is_not(course):
    (course.release(LAB).parent / "handin").mkdir()
    assert build_lab(course, LAB) == []
    (course.release(LAB).parent / "helper.py").write_text("x = 1")
    with pytest.raises(CourseError, match=r"helper.py was not built"):
        build_lab(course, LAB)


# -- adopting ----------------------------------------------------------------------------------------------------------
def test_adopting_an_unedited_notebook_changes_no_byte(course):
    before = course.text(LAB).read_bytes()
    adoption = adopt(course, LAB)
    assert course.text(LAB).read_bytes() == before
    assert (adoption.rewritten, adoption.removed) == (0, 0)


def test_the_text_that_adopting_writes_builds_the_same_notebook(course):
    built = course.source(LAB).read_bytes()
    text = adopt_notebook(nbformat.read(course.source(LAB), as_version=4), "").text
    course.text(LAB).write_text(text, "utf-8")
    build_lab(course, LAB)
    assert course.source(LAB).read_bytes() == built


def test_an_edit_comes_back_as_exactly_the_edit(course):
    notebook = nbformat.read(course.source(LAB), as_version=4)
    notebook.cells[3].source = "print('edited in JupyterLab')"
    notebook.cells[3].metadata["trusted"] = True
    notebook.cells.insert(5, nbformat.v4.new_markdown_cell("A new *paragraph*"))
    nbformat.write(notebook, course.source(LAB))
    before = course.text(LAB).read_text("utf-8").splitlines()
    adopt(course, LAB)
    after = course.text(LAB).read_text("utf-8").splitlines()
    added = [line for line in after if line not in before]
    assert added == ["print('edited in JupyterLab')", "# A new *paragraph*"]


def test_a_released_notebook_is_not_adopted(course):
    with pytest.raises(LabTextError, match="released notebook"):
        adopt(course, LAB, course.release(LAB))


# -- rules -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("old", "new", "message"), [
    ("check = Check(\"double\", points=4)\n", "check = Check(\"double\", points=4)\nprint(SEED)\n", "reads SEED"),
    ("points=4)\nwith check.part(\"doubles two\"", "points=5)\nwith check.part(\"doubles two\"", "must state points=4"),
    ('# %% check="double" points=4', '# %% check="double"', "needs points=N"),
    ('# %% check="double" points=4', '# %% check="double" points=4 of="nobody"', "no exercise is called"),
    ('# %% exercise="fold" provides=["fold"]', '# %% exercise="double" provides=["fold"]', "already the name"),
    ('# %% exercise="fold" provides=["fold"]', '# %% exercise="fold"', "must say what it provides"),
    ('# %% tags=["demo"]', '# %% tgas=["demo"]', "unknown key tgas"),
    ("    return 2 * x\n    ### END SOLUTION", "    return 2 * x", "never closed"),
    ("from inferlab.lab import submit", "from inferlab.grading import build", "imports inferlab.grading"),
    ("from inferlab.lab import submit", "import nbgrader", "learners do not have"),
    ("check.equal(got, -6)\n### END HIDDEN TESTS\ncheck.score()", "check.equal(got, -6)\n### END HIDDEN TESTS", "last line"),
    ('    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION', "    return 2 * x", "without ### BEGIN SOLUTION"),
    ("print(\"a demonstration, skipped when grading\")", "print(", "not Python"),
    ('provides=["double"]', 'provides=["double", "duoble"]', "line 20: provides 'duoble', but the cell defines double"),
    ('provides=["double"]', 'provides=["x"]', "provides 'x', but the cell defines double"),
    ("difficulty=1", "difficulty=9", "difficulty=9, but it is one of 1, 2, 3"),
    ("difficulty=1", 'difficulty="easy"', "difficulty='easy', but it is one of 1, 2, 3"),
    ("minutes=2", "minutes=0", "minutes=0, but it is a number above zero"),
])
def test_a_broken_rule_is_named_with_its_line(course, old, new, message):
    edit(course, old, new)
    with pytest.raises(BuildError, match="line \\d+: ") as caught:
        build_source(course, LAB)
    assert message in str(caught.value)


def test_three_named_wrong_answers_are_wanted_and_must_lose_something(course):
    path = course.text(LAB).with_name("wrong_answers.py")
    blocks = read_blocks(course.text(LAB).read_text("utf-8"))[1]
    text = path.read_text("utf-8").replace('name="squared" keeps=1', 'name="squared" keeps=4')
    path.write_text(text.split('# %% wrong="one-call"')[0], "utf-8")
    messages = [str(finding) for finding in lint(blocks, read_wrong_answers(path, checks_of(blocks)))]
    assert any("keeps every point" in message for message in messages)
    assert any("'one-call' has 0 named wrong answers" in message for message in messages)


def test_free_names_sees_through_functions_and_comprehensions():
    assert free_names("import torch\nx = [a for a in range(3)]\ndef f(y):\n    return torch.zeros(y) + z") == {"z"}
    assert free_names("%matplotlib inline\nprint(len('x'))") == set()


def test_a_lab_that_is_not_there(course):
    with pytest.raises(CourseError, match="there is: lab90-fixture"):
        build_lab(course, "lab91-none")
    with pytest.raises(CourseError, match="not a course"):
        Course.open(course.root / "release")
