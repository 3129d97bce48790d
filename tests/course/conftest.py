"""The fixture course, built once and copied for each test."""

import shutil
from pathlib import Path

import pytest

from inferlab.grading.build import build_lab
from inferlab.grading.course import Course

ROOT = Path(__file__).parents[2]
LAB = "lab90-fixture"


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    root = tmp_path_factory.mktemp("built") / "course"
    shutil.copytree(Path(__file__).parent / "fixture", root)
    build_lab(Course.open(root), LAB)
    return root


@pytest.fixture
def course(built, tmp_path):
    root = tmp_path / "course"
    shutil.copytree(built, root)
    return Course.open(root)
