"""Notebooks whose cells did not come back as they were given: each case is put right, and said."""

import pytest

from inferlab.grading.notebook import grade_id

GRADED = ["double", "check-double", "fold", "check-fold", "one-call", "check-one-call-shape"]


def notes(report):
    return " | ".join(note for line in report.lines for note in line.notes)


def assert_complete(cells, course):
    """Every graded cell is there once, with nbgrader's metadata as released."""
    assert [name for name in cells if name in GRADED] == GRADED
    for name in GRADED:
        metadata = cells[name].metadata["nbgrader"]
        assert metadata["grade_id"] == name
        assert metadata["schema_version"] == 3
        assert metadata["grade"] == name.startswith("check-")
    assert sum(1 for cell in cells.values() if grade_id(cell)) == len(GRADED)


def test_an_untouched_path_changes_nothing(hand_in, solved, placed, course):
    report = hand_in({"lab.ipynb": solved()})
    assert [line.status for line in report.lines] == ["collected"]
    assert report.lines[0].learner == "ada"
    assert notes(report) == ""
    assert_complete(placed(), course)
    assert placed()["double"].source.endswith("return x + x")


def test_all_metadata_stripped(hand_in, solved, placed, course):
    notebook = solved()
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"], cell["id"] = {}, f"{number:08x}"
    notebook["metadata"] = {}
    report = hand_in({"x.ipynb": notebook})
    assert report.count("collected") == 1
    cells = placed()
    assert_complete(cells, course)
    assert "return x + x" in cells["double"].source
    assert cells["top_2"].metadata["tags"] == ["parameters"]
    assert cells["check-fold_1"].metadata["tags"] == ["demo"]
    assert "found by its text" in notes(report)


def test_colab_keeps_ids_in_the_metadata(hand_in, solved, placed, course):
    notebook = solved()
    notebook["nbformat_minor"] = 0
    for cell in notebook["cells"]:
        cell["metadata"]["id"] = cell.pop("id")
        cell["metadata"]["outputId"] = "abc"
        cell["metadata"]["executionInfo"] = {"timestamp": 1_700_000_000_000, "status": "ok"}
    hand_in({"x.ipynb": notebook})
    assert_complete(placed(), course)


def test_colab_renumbered_ids_and_kept_nbgrader(hand_in, solved, placed, course):
    notebook = solved()
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"Xy{number}zQ_abc"
    hand_in({"x.ipynb": notebook})
    assert_complete(placed(), course)


def test_ids_that_a_program_gave_to_other_cells(hand_in, solved, placed, course, cell):
    notebook = solved()
    double, fold = cell(notebook, "double"), cell(notebook, "fold")
    double["id"], fold["id"] = "fold", "double"
    for one in (double, fold):
        one["metadata"] = {}
    report = hand_in({"x.ipynb": notebook})
    cells = placed()
    assert "return x + x" in cells["double"].source
    assert "step(total, item)" in cells["fold"].source
    assert "its text is" in notes(report)


def test_a_cell_with_the_names_of_two(hand_in, solved, placed, cell):
    notebook = solved()
    cell(notebook, "double")["metadata"]["nbgrader"]["grade_id"] = "fold"
    report = hand_in({"x.ipynb": notebook})
    assert "return x + x" in placed()["double"].source
    assert "step(total, item)" in placed()["fold"].source
    assert "names of two cells" in notes(report)


def test_split_and_the_rest_runs_on_its_own(hand_in, solved, placed, course):
    notebook = solved()
    at = next(i for i, c in enumerate(notebook["cells"]) if c["id"] == "double")
    whole = notebook["cells"][at]
    whole["source"] = "helper = 2"
    second = {**whole, "id": "new1", "source": "def double(x):\n    return helper * x"}
    notebook["cells"].insert(at + 1, second)  # JupyterLab copies the metadata to both halves
    hand_in({"x.ipynb": notebook})
    cells = placed()
    assert_complete(cells, course)
    assert "helper * x" in cells["double"].source
    names = list(cells)
    assert cells[names[names.index("double") - 1]].source == "helper = 2"


def test_split_in_the_middle_of_a_function(hand_in, solved, placed, course):
    notebook = solved()
    at = next(i for i, c in enumerate(notebook["cells"]) if c["id"] == "fold")
    notebook["cells"][at]["source"] = "def fold(step, items):\n    total = 0"
    rest = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "id": "new1",
            "source": "    for item in items:\n        total = step(total, item)\n    return total"}
    notebook["cells"].insert(at + 1, rest)
    report = hand_in({"x.ipynb": notebook})
    assert placed()["fold"].source.endswith("return total")
    assert "split in two" in notes(report)


def test_an_explanation_that_was_split(hand_in, solved, placed):
    notebook = solved()
    at = next(i for i, c in enumerate(notebook["cells"]) if c["id"] == "one-call")
    notebook["cells"][at]["source"] = "%%explain one-call\nstate: my total"
    rest = {**notebook["cells"][at], "id": "new1", "source": "shape: (3,)"}
    notebook["cells"].insert(at + 1, rest)
    report = hand_in({"x.ipynb": notebook})
    assert placed()["one-call"].source == "%%explain one-call\nstate: my total\nshape: (3,)"
    assert "split in two" in notes(report)


def test_an_answer_moved_below_its_test(hand_in, solved, placed, course):
    notebook = solved()
    at = next(i for i, c in enumerate(notebook["cells"]) if c["id"] == "double")
    notebook["cells"].append(notebook["cells"].pop(at))
    report = hand_in({"x.ipynb": notebook})
    names = list(placed())
    assert names.index("check-double") == names.index("double") + 1
    assert "moved below it" in notes(report)


@pytest.mark.parametrize("last", ["first", "second"])
def test_duplicates_keep_what_was_run_last(hand_in, solved, placed, course, last):
    notebook = solved()
    at = next(i for i, c in enumerate(notebook["cells"]) if c["id"] == "double")
    first = notebook["cells"][at]
    second = {**first, "source": "def double(x):\n    return 'second'"}
    first["execution_count"], second["execution_count"] = (9, 4) if last == "first" else (4, 9)
    notebook["cells"].insert(at + 1, second)
    report = hand_in({"x.ipynb": notebook})
    cells = placed()
    assert_complete(cells, course)
    assert ("'second'" in cells["double"].source) == (last == "second")
    kept = [c for c in cells.values() if c.cell_type == "markdown" and "not graded" in c.source]
    assert len(kept) == 1
    assert "2 copies" in notes(report)


def test_duplicates_without_any_time_keep_the_last_edited_one(hand_in, solved, placed):
    notebook = solved()
    at = next(i for i, c in enumerate(notebook["cells"]) if c["id"] == "double")
    stub = {**notebook["cells"][at], "source": 'def double(x):\n    """Twice `x`."""\n'
                                               "    # YOUR CODE HERE\n    raise NotImplementedError()"}
    notebook["cells"].insert(at + 1, stub)
    hand_in({"x.ipynb": notebook})
    assert "return x + x" in placed()["double"].source


def test_a_duplicated_test_counts_once(hand_in, solved, placed, course):
    notebook = solved()
    at = next(i for i, c in enumerate(notebook["cells"]) if c["id"] == "check-fold")
    notebook["cells"].insert(at + 1, dict(notebook["cells"][at]))
    hand_in({"x.ipynb": notebook})
    assert_complete(placed(), course)


def test_deleted_answer_test_and_setup_are_put_back(hand_in, solved, placed, course):
    notebook = solved()
    gone = {"double", "check-fold", "top_3"}
    notebook["cells"] = [c for c in notebook["cells"] if c["id"] not in gone]
    report = hand_in({"x.ipynb": notebook})
    cells = placed()
    assert_complete(cells, course)
    assert "NotImplementedError" in cells["double"].source
    assert list(cells).index("top_3") < list(cells).index("double")
    for name in gone:
        assert f"{name}:" in notes(report)


def test_deleted_metadata_of_one_cell_only(hand_in, solved, placed, course, cell):
    notebook = solved()
    one = cell(notebook, "one-call")
    one["metadata"], one["id"] = {}, "ffff"
    hand_in({"x.ipynb": notebook})
    assert_complete(placed(), course)
    assert "my total" in placed()["one-call"].source


@pytest.mark.parametrize("name", ["double", "one-call"])
@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_code_turned_into_text(hand_in, solved, placed, course, cell, name, kind):
    notebook = solved()
    one = cell(notebook, name)
    one["cell_type"] = kind
    one.pop("outputs", None)
    one.pop("execution_count", None)
    report = hand_in({"x.ipynb": notebook})
    assert_complete(placed(), course)
    assert placed()[name].cell_type == "code"
    assert f"turned into a {kind} cell" in notes(report)


def test_forged_points_tests_and_invented_graded_cells(hand_in, solved, placed, course, cell):
    notebook = solved()
    test = cell(notebook, "check-double")
    test["source"] = "4.0"
    test["metadata"]["nbgrader"]["points"] = 1000
    invented = {"cell_type": "code", "id": "mine", "source": "100.0", "outputs": [], "execution_count": 1,
                "metadata": {"nbgrader": {"grade": True, "grade_id": "mine", "points": 100, "locked": True,
                                          "solution": False, "task": False, "schema_version": 3},
                             "inferlab": {"check": "mine"}, "tags": ["demo"]}}
    notebook["cells"].append(invented)
    report = hand_in({"x.ipynb": notebook})
    cells = placed()
    assert_complete(cells, course)
    assert cells["check-double"].metadata["nbgrader"]["points"] == 4
    assert "Check(" in cells["check-double"].source
    assert not any("mine" in str(c.metadata) for c in cells.values())
    assert "the test was changed" in notes(report)


def test_a_learners_own_cells_stay_where_they_are(hand_in, solved, placed):
    notebook = solved()
    extra = {"cell_type": "code", "id": "abc", "metadata": {}, "source": "scratch = 1", "outputs": [],
             "execution_count": None}
    at = next(i for i, c in enumerate(notebook["cells"]) if c["id"] == "fold")
    notebook["cells"].insert(at, extra)
    hand_in({"x.ipynb": notebook})
    cells = list(placed().values())
    assert next(c.source for c in cells[cells.index(placed()["fold"]) - 1:]) == "scratch = 1"


def test_an_older_release_is_said_and_graded_by_the_tests_of_now(hand_in, solved, placed, course, cell):
    notebook = solved()
    notebook["metadata"]["inferlab"]["release"] = "000000000000"
    cell(notebook, "check-double")["source"] = "# an old test"
    notebook["cells"] = [c for c in notebook["cells"] if c["id"] != "check-one-call-shape"]
    report = hand_in({"x.ipynb": notebook})
    assert "another release" in notes(report)
    assert_complete(placed(), course)


def test_a_huge_output_does_not_reach_submitted(hand_in, solved, course, cell):
    notebook = solved()
    cell(notebook, "double")["outputs"] = [{"output_type": "stream", "name": "stdout",
                                            "text": "x" * 3_000_000}]
    report = hand_in({"x.ipynb": notebook})
    assert report.count("collected") == 1
    assert course.submitted("ada", "lab90-fixture").stat().st_size < 100_000
