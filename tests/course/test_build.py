"""Building a lab from its text, bringing an edited notebook back, and the rules that a lab's text must
follow."""

import shutil
import subprocess
import sys

import nbformat
import pytest

from inferlab.cli import main
from inferlab.grading.authoring.adopt import adopt, adopt_notebook
from inferlab.grading.authoring.build import (
    BuildError,
    build_lab,
    build_source,
    built_source,
    older_than_text,
    refresh_sources,
    release_hash,
    save_to_gradebook,
    stale_labs,
)
from inferlab.grading.authoring.hidden_tests import EXPLANATIONS, HIDDEN_TESTS, read_lesson
from inferlab.grading.authoring.lab_rules import free_names, lint
from inferlab.grading.authoring.lab_text import LabTextError
from inferlab.grading.authoring.wrong_answers import WRONG_ANSWERS, read_wrong_answers
from inferlab.grading.course import Course, CourseError
from tests.course import LAB


def cells(path):
    return {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}


def texts(course):
    """The lab's four files by name."""
    return {path.name: path.read_text("utf-8") for path in course.text(LAB).parent.iterdir()}


def edit(course, old, new):
    """Replace what stands once in one of the lab's files."""
    (name,) = [name for name, text in texts(course).items() if text.count(old) == 1]
    path = course.text(LAB).with_name(name)
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")


def edit_notebook(course, edits):
    """Change cells of the source notebook as an instructor would in JupyterLab; `edits` maps a cell's id to
    (old, new)."""
    notebook = nbformat.read(course.source(LAB), as_version=4)
    for name, (old, new) in edits.items():
        cell = next(cell for cell in notebook.cells if cell.id == name)
        assert cell.source.count(old) == 1
        cell.source = cell.source.replace(old, new)
    nbformat.write(notebook, course.source(LAB))


SHARED = """# %% fixture="numbers"
def numbers():
    \"\"\"Numbers that both checks use.\"\"\"
    return [5, 1, 4]

"""


@pytest.fixture
def sharing(course):
    """The course, with a fixture that two checks use."""
    edit(course, '# %% check="double"\nwith', SHARED + '# %% check="double"\n### FIXTURE numbers\n\n\nwith')
    edit(course, "    check.equal(got, -6)", "    check.equal(got, -6)\n    check.equal(numbers()[0], 5)")
    edit(course, '# %% check="fold"\nwith', '# %% check="fold"\n### FIXTURE numbers\n\n\nwith')
    edit(course, "got = check.learner.fold(step, [5, 1, 4])", "got = check.learner.fold(step, numbers())")
    build_lab(course, LAB)
    return course


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
    assert release["check-double"].source.endswith("check.score(later=1)")
    folded = {name for name, cell in release.items() if cell.metadata.get("jupyter", {}).get("source_hidden")}
    assert folded == {"bootstrap", "check-double", "check-fold", "check-one-call-shape"}


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


# -- source/, which is not committed ------------------------------------------------------------------------
def test_a_missing_source_is_no_stale_file_and_is_built_where_it_is_needed(course):
    built = course.source(LAB).read_bytes()
    shutil.rmtree(course.root / "source")
    assert stale_labs(course) == []
    assert not (course.root / "source").exists()
    assert built_source(course, LAB).read_bytes() == built
    assert [path.name for path in course.source(LAB).parent.iterdir()] == [f"{LAB}.ipynb"]


def test_the_source_that_decides_marks_changes_only_when_it_is_built(course):
    built = course.source(LAB).read_bytes()
    assert not older_than_text(course, LAB)
    edit(course, "check.equal(got, -6)", "check.equal(got, -6.0)")
    assert built_source(course, LAB).read_bytes() == built
    assert older_than_text(course, LAB)


def test_refreshing_builds_what_is_missing_or_old_and_leaves_release_and_other_files(course):
    released = course.release(LAB).read_bytes()
    assert refresh_sources(course) == ([], [])
    edit(course, "## Double a number", "## Double it")
    gone = course.source("lab91-gone")
    gone.parent.mkdir()
    shutil.copy(course.source(LAB), gone)
    (gone.parent / "notes.txt").write_text("mine", "utf-8")
    assert refresh_sources(course) == ([course.source(LAB), gone], [])
    assert not older_than_text(course, LAB) and course.release(LAB).read_bytes() == released
    assert [path.name for path in gone.parent.iterdir()] == ["notes.txt"]


def test_refreshing_keeps_an_edit_that_nobody_adopted_and_says_so(course):
    edit_notebook(course, {"check-double": ("check.equal(got, -6)", "check.equal(got, -6.0)")})
    gone = course.source("lab91-gone")
    gone.parent.mkdir()
    shutil.copy(course.source(LAB), gone)
    edit(course, "## Double a number", "## Double it")
    changed, left = refresh_sources(course)
    assert changed == [] and gone.exists()
    assert len(left) == 1 and f"inferlab adopt {LAB}" in left[0]
    assert "check.equal(got, -6.0)" in course.source(LAB).read_text("utf-8")


def test_many_who_build_one_missing_source_at_once_all_read_it_whole(course):
    built = course.source(LAB).read_bytes()
    shutil.rmtree(course.root / "source")
    read = ("import sys; from inferlab.grading.course import Course; "
            "from inferlab.grading.authoring.build import built_source; "
            f"sys.stdout.buffer.write(built_source(Course.open(sys.argv[1]), {LAB!r}).read_bytes())")
    several = [subprocess.Popen([sys.executable, "-c", read, str(course.root)], stdout=subprocess.PIPE)
               for _ in range(3)]
    assert [process.communicate()[0] for process in several] == [built] * 3


def test_a_source_is_built_without_nbgrader(course):
    shutil.rmtree(course.root / "source")
    build = ("import sys; sys.modules['nbgrader'] = None; from inferlab.grading.course import Course; "
             "from inferlab.grading.authoring.build import built_source; "
             f"built_source(Course.open(sys.argv[1]), {LAB!r})")
    subprocess.run([sys.executable, "-c", build, str(course.root)], check=True)
    assert course.source(LAB).exists()


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


# -- adopting
# ------------------------------------------------------------------------------------------
def test_adopting_an_unedited_notebook_changes_no_byte(course):
    before = texts(course)
    adoption = adopt(course, LAB)
    assert texts(course) == before
    assert (adoption.changed, adoption.added, adoption.gone) == (0, 0, 0)


def test_adopting_an_unedited_notebook_with_a_fixture_changes_no_byte(sharing):
    before = texts(sharing)
    assert before[HIDDEN_TESTS].count("def numbers") == 1
    assert sum("def numbers" in cell.source for cell in cells(sharing.source(LAB)).values()) == 2
    adopt(sharing, LAB)
    assert texts(sharing) == before


def test_the_texts_that_adopting_writes_build_the_same_notebook(course):
    built = course.source(LAB).read_bytes()
    written = adopt_notebook(nbformat.read(course.source(LAB), as_version=4), where=f"{LAB}.py").texts
    assert set(written) == {f"{LAB}.py", HIDDEN_TESTS, EXPLANATIONS}
    for name, text in written.items():
        course.text(LAB).with_name(name).write_text(text, "utf-8")
    build_lab(course, LAB)
    assert course.source(LAB).read_bytes() == built


def test_each_edit_lands_in_the_file_where_it_belongs(course):
    before = texts(course)
    edit_notebook(course, {
        "check-double": ("check.equal(got, -6)", "check.equal(got, -6.0)"),
        "check-fold": ("check.equal(check.learner.fold(step, [1, 2, 3]), 6)",
                       "check.equal(check.learner.fold(step, [1, 2]), 3)"),
        "check-one-call-shape": ("three items have the shape (3,)", "of three items the shape is (3,)"),
    })
    adoption = adopt(course, LAB)
    assert (adoption.changed, adoption.added, adoption.gone) == (3, 0, 0)
    after = texts(course)
    new = {name: [line for line in after[name].splitlines() if line not in before[name].splitlines()]
           for name in after}
    assert new == {
        f"{LAB}.py": ["    check.equal(check.learner.fold(step, [1, 2]), 3)"],
        HIDDEN_TESTS: ["    check.equal(got, -6.0)"],
        EXPLANATIONS: ['    check.true("(3,)" in check.explanation("one-call").get("shape"), "of three '
                       'items the shape is (3,)")'],
        WRONG_ANSWERS: [],
    }


def test_a_fixture_that_was_edited_in_one_of_its_cells_is_refused(sharing):
    before = texts(sharing)
    edit_notebook(sharing, {"check-double": ("return [5, 1, 4]", "return [5, 2, 4]")})
    with pytest.raises(LabTextError,
                       match="check 'double' changes the fixture 'numbers', which other checks use as well"):
        adopt(sharing, LAB)
    assert texts(sharing) == before


@pytest.fixture
def showing(sharing):
    """The course, with a lesson's cell that shows the fixture to learners, and that cell's id."""
    lesson = sharing.text(LAB)
    text = lesson.read_text("utf-8")
    first = text.index("\n# %% exercise=")
    lesson.write_text(text[:first] + "\n# %%\n### FIXTURE numbers\nnumbers()\n" + text[first:], "utf-8")
    build_lab(sharing, LAB)
    found = [cell.id for cell in cells(sharing.release(LAB)).values() if "return [5, 1, 4]" in cell.source]
    assert len(found) == 1, "learners see it in the lesson's cell only"
    return sharing, found[0]


def test_an_edit_beside_a_fixture_that_the_lesson_shows_keeps_it_written_once(showing):
    course, shown = showing
    before = texts(course)
    adopt(course, LAB)
    assert texts(course) == before
    edit_notebook(course, {shown: ("\nnumbers()", "\nprint(numbers())")})
    adopt(course, LAB)
    assert texts(course)[f"{LAB}.py"] == before[f"{LAB}.py"].replace("\nnumbers()", "\nprint(numbers())")
    assert texts(course)[HIDDEN_TESTS] == before[HIDDEN_TESTS]


def test_a_fixture_that_was_edited_in_the_lessons_cell_is_refused(showing):
    course, shown = showing
    edit_notebook(course, {shown: ("return [5, 1, 4]", "return [5, 2, 4]")})
    with pytest.raises(LabTextError, match=f"the cell '{shown}' changes the fixture 'numbers'"):
        adopt(course, LAB)


def test_an_edit_beside_a_fixture_keeps_it_written_once(sharing):
    edit_notebook(sharing, {"check-double": ("check.equal(got, -6)", "check.equal(got, -6.0)")})
    adopt(sharing, LAB)
    assert texts(sharing)[HIDDEN_TESTS].count("def numbers") == 1
    assert texts(sharing)[HIDDEN_TESTS].count("### FIXTURE numbers") == 2


def test_a_check_that_is_new_or_gone_takes_its_hidden_tests_along(course):
    notebook = nbformat.read(course.source(LAB), as_version=4)
    place = next(i for i, cell in enumerate(notebook.cells) if cell.id == "check-fold")
    new = nbformat.v4.new_code_cell(notebook.cells[place].source.replace('"fold"',
                                                                         '"again"').replace("backwards",
                                                                                            "in reverse"))
    new.metadata = nbformat.from_dict({"nbgrader": notebook.cells[place].metadata["nbgrader"]
                                       | {"grade_id": "check-again"},
                                       "inferlab": {"check": "again", "of": "fold"}})
    notebook.cells.insert(place + 1, new)
    del notebook.cells[next(i for i, cell in enumerate(notebook.cells) if cell.id == "check-double")]
    nbformat.write(notebook, course.source(LAB))
    adoption = adopt(course, LAB)
    assert (adoption.changed, adoption.added, adoption.gone) == (0, 1, 1)
    headers = [line for line in texts(course)[HIDDEN_TESTS].splitlines() if line.startswith("# %%")]
    assert headers == ['# %% check="fold"', '# %% check="again"']
    assert "no check called" in adoption.to_mend or "double" in adoption.to_mend


def test_a_patch_that_no_longer_fits_the_solution_is_said(course):
    edit_notebook(course, {"double": ("return 2 * x", "return x + x")})
    assert "wrong_answers.toml, double, squared: the solution has 0 times" in adopt(course, LAB).to_mend


# -- a source that somebody edited
# ---------------------------------------------------------------------------------------
def test_building_over_an_edit_that_nobody_adopted_is_refused_and_names_adopt(course):
    edit_notebook(course, {"check-double": ("check.equal(got, -6)", "check.equal(got, -6.0)")})
    edited = course.source(LAB).read_bytes()
    for act in (lambda: build_lab(course, LAB), lambda: main(["release", LAB, "--course", str(course.root)])):
        try:
            assert act() == 2
        except BuildError as error:
            assert f"inferlab adopt {LAB}" in str(error)
        assert course.source(LAB).read_bytes() == edited
    adopt(course, LAB)
    build_lab(course, LAB)
    assert "check.equal(got, -6.0)" in course.source(LAB).read_text("utf-8")


def test_saving_in_jupyterlab_without_an_edit_is_no_edit(course):
    notebook = nbformat.read(course.source(LAB), as_version=4)
    notebook.metadata["kernelspec"]["display_name"] = "another"
    for cell in notebook.cells:
        cell.metadata["trusted"] = True
        if cell.cell_type == "code":
            cell.execution_count = 1
            cell.outputs = [nbformat.v4.new_output("stream", text="printed")]
    nbformat.write(notebook, course.source(LAB))
    assert len(build_lab(course, LAB)) == 1
    assert not any(cell.get("outputs") for cell in cells(course.source(LAB)).values())


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


def test_adopting_counts_edited_cells_as_changed_and_not_as_gone(course):
    edit_notebook(course, {"double": ("return 2 * x", "return x * 2"),
                           "top_1": ("Small enough", "Small and quick enough")})
    adoption = adopt(course, LAB)
    assert (adoption.changed, adoption.added, adoption.gone) == (2, 0, 0)


def test_a_released_notebook_is_not_adopted(course):
    with pytest.raises(LabTextError, match="released notebook"):
        adopt(course, LAB, course.release(LAB))


# -- rules
# ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("old", "new", "message"), [
    ("check = Check(\"double\", points=4)\n", "check = Check(\"double\", points=4)\nprint(SEED)\n",
     "reads SEED"),
    ("points=4)\nwith check.part(\"doubles two\"", "points=5)\nwith check.part(\"doubles two\"",
     "must state points=4"),
    ('# %% check="double" points=4', '# %% check="double"', "needs points=N"),
    ('# %% check="double" points=4', '# %% check="double" points=4 of="nobody"', "no exercise is called"),
    ('# %% exercise="fold" provides=["fold"]', '# %% exercise="double" provides=["fold"]',
     "already the name"),
    ('# %% exercise="fold" provides=["fold"]', '# %% exercise="fold"', "must say what it provides"),
    ('# %% tags=["demo"]', '# %% tgas=["demo"]', "unknown key tgas"),
    ("    return 2 * x\n    ### END SOLUTION", "    return 2 * x", "never closed"),
    ("from inferlab.lab import submit", "from inferlab.grading import build", "imports inferlab.grading"),
    ("from inferlab.lab import submit", "import nbgrader", "learners do not have"),
    ("### HIDDEN TESTS\ncheck.score()\n\n# %% [markdown]\n# ## Fold",
     "### HIDDEN TESTS\n\n# %% [markdown]\n# ## Fold", "last line"),
    ('    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION', "    return 2 * x",
     "without ### BEGIN SOLUTION"),
    ("print(\"a demonstration, skipped when grading\")", "print(", "not Python"),
    ('provides=["double"]', 'provides=["double", "duoble"]',
     "line 20: provides 'duoble', but the cell defines double"),
    ('provides=["double"]', 'provides=["x"]', "provides 'x', but the cell defines double"),
    ("difficulty=1", "difficulty=9", "difficulty=9, but it is one of 1, 2, 3"),
    ("difficulty=1", 'difficulty="easy"', "difficulty='easy', but it is one of 1, 2, 3"),
    ("minutes=2", "minutes=0", "minutes=0, but it is a number above zero"),
    ("print(\"a demonstration,", "x = 1\n# %%explain looks it up\nprint(\"a demonstration,",
     "first begins with %%"),
])
def test_a_broken_rule_is_named_with_its_line(course, old, new, message):
    edit(course, old, new)
    with pytest.raises(BuildError, match=r"line \d+: ") as caught:
        build_source(course, LAB)
    assert message in str(caught.value)


def test_a_named_wrong_answer_is_wanted_and_must_lose_something(course):
    path = course.text(LAB).with_name(WRONG_ANSWERS)
    blocks = read_lesson(course.text(LAB))
    text = path.read_text("utf-8").replace('name = "squared"\nkeeps = 1', 'name = "squared"\nkeeps = 4')
    path.write_text(text.split("[[one-call]]")[0], "utf-8")
    messages = [str(finding) for finding in lint(blocks, read_wrong_answers(course.text(LAB), blocks))]
    assert any("keeps every point" in message for message in messages)
    assert any("'one-call' has 0 named wrong answers" in message for message in messages)


@pytest.mark.parametrize(("old", "new", "message"), [
    ('by = "return x * x"\n', "", "it has one of: replace with by, says, cell"),
    ('replace = "return 2 * x"\nby = "return x * x"', 'replace = "return 9 * x"\nby = "return x * x"',
     "the solution has 0 times"),
    ('replace = "return 2 * x"\nby = "return x * x"', 'replace = ["return 2 * x", "x"]\nby = "return x * x"',
     "2 texts to replace and 1"),
    ('name = "squared"', 'nmae = "squared"', "unknown key nmae"),
    ('name = "squared"', 'name = ""', "it needs name"),
    ('name = "squared"\nkeeps = 1', 'name = "squared"\nkeeps.nobody = 1', "no check called ['nobody']"),
    ('says.shape = "(4,)"', 'says.axis = "(4,)"', "the explanation has no field axis"),
    ('[[double]]\nname = "squared"', '[[duoble]]\nname = "squared"',
     "no exercise or explanation is called 'duoble'"),
    ('name = "squared"', 'name = squared', "wrong_answers.toml: "),
])
def test_a_wrong_answer_that_cannot_be_read_is_named(course, old, new, message):
    edit(course, old, new)
    with pytest.raises(BuildError) as caught:
        build_source(course, LAB)
    assert message in str(caught.value)


@pytest.mark.parametrize(("old", "new", "message"), [
    ('# %% check="double"\nwith', '# %% check="duoble"\nwith', "nothing fills this cell's ### HIDDEN TESTS"),
    ('# %% check="double"\nwith', '# %% check="double"\n### FIXTURE ghost\nwith',
     "wants the fixture 'ghost'; there is: none"),
    ('# %% check="double"\nwith', '# %% fixture="idle"\nx = 1\n\n# %% check="double"\nwith',
     "no test has a line ### FIXTURE idle"),
    ('# %% check="double"\nwith', '# %% check="double"\nx = 1\n\n# %% check="double"\nwith',
     "no check 'double'"),
    ('# %% check="double"\nwith', '# %% chekc="double"\nwith', "a block here begins with"),
])
def test_hidden_tests_that_do_not_fit_the_lesson_are_named(course, old, new, message):
    edit(course, old, new)
    with pytest.raises(BuildError) as caught:
        build_source(course, LAB)
    assert message in str(caught.value)


def test_free_names_sees_through_functions_and_comprehensions():
    assert free_names("import torch\nx = [a for a in range(3)]\ndef f(y):\n    return "
                      "torch.zeros(y) + z") == {"z"}
    assert free_names("%matplotlib inline\nprint(len('x'))") == set()


def test_a_lab_that_is_not_there(course):
    with pytest.raises(CourseError, match="there is: lab90-fixture"):
        build_lab(course, "lab91-none")
    with pytest.raises(CourseError, match="not a course"):
        Course.open(course.root / "release")
