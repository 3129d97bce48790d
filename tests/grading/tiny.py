"""A lab of two exercises, small enough to grade in a second, written as every lab is; and a whole course
around it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook

from inferlab.grading.authoring.build import build_source, generate_assignment, write_notebook
from inferlab.grading.course import Course
from tests import ROOT

LAB = "lab00-tiny"

TEXT = '''\
# ---
# jupyter:
#   jupytext:
#     text_representation: {format_name: percent}
# ---

# %% [markdown]
# # A tiny lab

# %% tags=["parameters"]
LEARNER = ""
MODEL = "bundled"
DEVICE = "cpu"
SEED = 7

# %%
import torch

print("set up with", MODEL, DEVICE, SEED)

# %% exercise="half" provides=["half"] difficulty=1 minutes=1
def half(x):
    """Half of a tensor."""
    ### BEGIN SOLUTION
    return x / 2
    ### END SOLUTION

# %% check="half" points=2
import torch

from inferlab.lab import Check, close

check = Check("half", points=2)
theirs = check.learner
x = torch.tensor([1.0, -3.0])
with check.part("halves a tensor"):
    check.close(theirs.half(x), torch.tensor([0.5, -1.5]))
### BEGIN HIDDEN TESTS
with check.part("halves a batch"):
    batch = torch.arange(6.0).reshape(2, 3)
    got = theirs.half(batch)
    check.mistake("you divided twice", when=close(got, batch / 4))
    check.close(got, batch / 2)
### END HIDDEN TESTS
check.score()

# %% exercise="loop" provides=["denoise"] difficulty=2 minutes=3
def denoise(unet, timesteps, latents):
    """Subtract what `unet(latents, t)` returns, for every timestep."""
    ### BEGIN SOLUTION
    for t in timesteps:
        latents = latents - unet(latents, t)
    return latents
    ### END SOLUTION

# %% check="loop" points=3
import torch

from inferlab.lab import Check

check = Check("loop", points=3)
theirs = check.learner


def recorder(calls):
    def unet(latents, t):
        calls.append(t)
        return latents / 2

    return unet


with check.part("calls the model once a step"):
    calls = []
    theirs.denoise(recorder(calls), [2, 1, 0], torch.ones(2))
    check.equal(len(calls), 3)
### BEGIN HIDDEN TESTS
with check.part("in the order of the timesteps", weight=2):
    calls = []
    got = theirs.denoise(recorder(calls), [9, 4], torch.full((1, 2), 8.0))
    check.mistake("you went through the timesteps backwards", when=calls == [4, 9])
    check.equal(calls, [9, 4])
    check.close(got, torch.full((1, 2), 2.0))
### END HIDDEN TESTS
check.score()

# %% tags=["demo"]
raise RuntimeError("a demonstration is never run when grading")
'''

WRONG = '''\
# %% wrong="half" name="divided twice" keeps=0
def half(x):
    return x / 4

# %% wrong="loop" name="backwards" keeps=1
def denoise(unet, timesteps, latents):
    for t in reversed(timesteps):
        latents = latents - unet(latents, t)
    return latents
'''

#: Answers: half marks of one exercise, of the other, and none.
WRONG_HALF = "def half(x):\n    return x / 4"
CRASH = "import os\nos._exit(1)"
BACKWARDS = "def denoise(unet, timesteps, latents):\n    for t in reversed(timesteps):\n" \
            "        latents = latents - unet(latents, t)\n    return latents"


class TinyCourse:
    """The course folder, and the few things that a test does in it."""

    def __init__(self, root: Path):
        (root / "notebooks" / LAB).mkdir(parents=True)
        (root / "notebooks" / LAB / f"{LAB}.py").write_text(TEXT)
        shutil.copy(ROOT / "nbgrader_config.py", root)
        self.root, self.lab = root, LAB
        self.course = Course.open(root)
        self.source = build_source(self.course, self.lab, strict=False)
        write_notebook(self.source, root / "source" / self.lab / f"{self.lab}.ipynb")
        self.db = f"sqlite:///{root / 'gradebook.db'}"
        self.release = generate_assignment(self.course, self.lab, root, self.db)

    def solution(self, **cells: str) -> nbformat.NotebookNode:
        """The released notebook with the solutions in it, or other texts by grade_id (`half="..."`)."""
        notebook = nbformat.read(self.release, as_version=4)
        solved = {c.id: c.source for c in self.source.cells}
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if cell.metadata.get("nbgrader", {}).get("solution"):
                cell.source = cells.get(name.replace("-", "_"), solved[cell.id])
        return notebook

    def submit(self, student: str, notebook: nbformat.NotebookNode) -> Path:
        """Put a notebook where nbgrader looks for it."""
        path = self.root / "submitted" / student / self.lab / f"{self.lab}.ipynb"
        write_notebook(notebook, path)
        return path


def nbgrader(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(["nbgrader", *arguments], cwd=root, env=environment, capture_output=True, text=True,
                          timeout=250, check=False)


def marks(course, student: str) -> dict[str, float]:
    with Gradebook(course.db) as gradebook:
        submission = gradebook.find_submission_notebook(course.lab, course.lab, student)
        return {grade.cell.name: grade.score for grade in submission.grades}
