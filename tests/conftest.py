"""For every test: one thread a worker, which tests share a worker, and a course of one small lab."""

import os
import shutil
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

from inferlab.grading.authoring.build import build_lab, build_start_here
from inferlab.grading.course import Course
from tests.course import FIXTURE, LAB

EVERY_LAB = "tests/course/test_every_lab.py"

# torch reads this when it is imported. Two workers of two threads each would fight for two cores.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")


class Together(LoadScopeScheduling):
    """Hands each worker whole groups of tests, the largest first.

    pytest-xdist 3.8 has `--dist loadgroup` for this, which pytest 9.2 makes do nothing, without a word: it
    writes the groups where that pytest no longer looks for them.
    """

    def _split_scope(self, nodeid: str) -> str:
        """A file's tests are a group. The attacks are one: all look at the same places of the machine. The
        website is built once, for all of its tests. A notebook shares nothing with its neighbors."""
        path = nodeid.split("::")[0]
        if path.startswith(("tests/attacks/", "tests/site/")):
            return path.rsplit("/", 1)[0]
        return nodeid if path == EVERY_LAB else path


def pytest_xdist_make_scheduler(config: pytest.Config, log) -> Together:
    """Whatever `--dist` says: how tests share workers is no choice."""
    return Together(config, log)


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Path:
    """The folder of the fixture course with source/ and release/ built once; tests copy it."""
    root = tmp_path_factory.mktemp("built") / "course"
    shutil.copytree(FIXTURE, root)
    build_lab(Course.open(root), LAB)
    build_start_here(Course.open(root))
    return root


@pytest.fixture
def course(built, tmp_path) -> Course:
    """A copy of the built course that a test may fill."""
    root = tmp_path / "course"
    shutil.copytree(built, root)
    return Course.open(root)
