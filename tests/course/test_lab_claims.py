"""A decision of a review becomes a claim of the lab by one command, and shows whose points it changes."""

import json
import shutil

import nbformat
import pytest

from inferlab.cli import main
from inferlab.commands import FAILED, LOOK, OK
from inferlab.grading.authoring.build import save_to_gradebook
from inferlab.grading.authoring.new import new_lab
from inferlab.grading.course import Course
from inferlab.grading.gradebook.batch import grade_lab
from inferlab.grading.gradebook.lab_claims import LabClaims
from inferlab.grading.notebook import write_notebook
from tests import ROOT

NEW = "lab91-first-try"
LATER = "the scheduler · computes · the next latents · after the loop"
MESSAGE = "The loop has ended by then."
REPOSITORY = Course.open(ROOT)


@pytest.fixture
def course(course):
    shutil.copy(ROOT / "nbgrader_config.py", course.root)
    new_lab(course, NEW)
    return course


@pytest.fixture
def claims(course, capsys):
    def call(*arguments):
        code = main(["claims", "--json", "--course", str(course.root), NEW, *arguments])
        return code, json.loads(capsys.readouterr().out)

    return call


@pytest.mark.parametrize("lab", REPOSITORY.labs)
def test_every_labs_claims_are_found_with_the_words_that_they_use(lab):
    held = LabClaims(REPOSITORY, lab)
    explained = [name for name, field in held.words.fields.items() if not field.entry]
    assert set(explained) <= set(held.fields)
    assert all("wanted: " in text for text in held.fields.values())


def test_a_claim_is_added_below_its_heading_or_below_a_new_one(course, claims):
    late = "the VAE | computes | the picture | after the loop"
    assert claims("state", "--add", late, "--false", MESSAGE)[0] == OK
    assert claims("state", "--add", LATER)[0] == claims("state", "--add", LATER)[0] == OK
    assert claims("state", "--add", "the scheduler | computes | the picture", "--false", MESSAGE)[0] == OK
    text = claims("state")[1]["state"]
    assert text.endswith(f"""false: {MESSAGE}
    the VAE | computes | the picture | after the loop
    the scheduler | computes | the picture
true
    the scheduler | computes | the next latents | after the loop""")


@pytest.mark.parametrize(("arguments", "said"), [
    (("state", "--add", "the cat | computes | the picture"), "'the cat' is not offered here"),
    (("state", "--add", "nonsense"), "is not `who | verb | what | added`"),
    (("elsewhere", "--add", "the VAE | computes | the picture"), "no field 'elsewhere'"),
    (("--add", "the VAE | computes | the picture"), "say of which field"),
])
def test_what_the_field_does_not_offer_is_refused_and_nothing_is_written(course, claims, arguments, said):
    path = LabClaims(course, NEW).path
    before = path.read_bytes()
    code, data = claims(*arguments)
    assert code == FAILED and said in data["error"]
    assert path.read_bytes() == before


@pytest.mark.sandbox
@pytest.mark.timeout(600)
def test_an_added_claim_changes_the_marks_that_it_concerns(course, claims):
    save_to_gradebook(course, NEW)
    notebook = nbformat.read(course.source(NEW), as_version=4)
    released = nbformat.read(course.release(NEW), as_version=4)
    solved = {cell.id: cell.source for cell in notebook.cells}
    for cell in released.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = solved[cell.id].replace("from the noise\n", "after the loop\n")
    path = course.root / "submitted" / "ada" / NEW / f"{NEW}.ipynb"
    path.parent.mkdir(parents=True)
    write_notebook(released, path)
    row = grade_lab(course, NEW)[0]
    assert (row.points, row.maximum) == (3, 4), row
    code, data = claims("state", "--add", LATER, "--wanted", "what the scheduler does with it")
    assert code == LOOK and data["totals"]["ada"] == {"before": 3, "after": 4}
    code, data = claims("state", "--yes", "--add", LATER, "--wanted", "what the scheduler does with it")
    assert data["written"]
