"""Commands that an instructor gives many times a day answer at once: nothing large is imported for them."""

import json
import shutil
import subprocess
import sys

import pytest

from inferlab.grading.gradebook.batch import grade_lab

pytestmark = pytest.mark.sandbox
HEAVY = ("torch", "numpy", "nbformat", "nbgrader", "nbconvert", "diffusers")
COMMAND = f"""
import json, resource, sys
from inferlab.cli import main
code = main(sys.argv[1:])
spent = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([code, [name for name in {HEAVY} if name in sys.modules], spent.ru_utime + spent.ru_stime]))
"""


@pytest.fixture(scope="module")
def graded(module_course):
    module_course.submit("ada", module_course.solution())
    module_course.course.roster.parent.mkdir()
    module_course.course.roster.write_text("id,name\nada,Ada Lovelace\n")
    grade_lab(module_course.course, module_course.lab)
    (module_course.root / "inbox").mkdir()
    shutil.copy(module_course.release, module_course.root / "inbox" / "ada.ipynb")
    return module_course


@pytest.mark.parametrize("arguments", [
    ["review"], ["review", "LAB"], ["late"], ["export"], ["report", "LAB"], ["collect", "inbox"],
], ids=" ".join)
def test_light_commands_import_nothing_heavy(graded, arguments):
    words = [word.replace("LAB", graded.lab) for word in arguments]
    command = [sys.executable, "-c", COMMAND, words[0], "--course", str(graded.root), *words[1:]]
    done = subprocess.run(command, cwd=graded.root, capture_output=True, text=True, timeout=120, check=True)
    code, heavy, seconds = json.loads(done.stdout.splitlines()[-1])
    assert (code, heavy) == (0, []), done.stdout
    assert seconds < 3, "at most one second on a quiet machine"
