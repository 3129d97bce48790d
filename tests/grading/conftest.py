"""The tiny lab's course, for one test or for a module."""

import pytest

from tests.grading.tiny import TinyCourse


@pytest.fixture
def course(tmp_path):
    return TinyCourse(tmp_path)


@pytest.fixture(scope="module")
def module_course(tmp_path_factory):
    return TinyCourse(tmp_path_factory.mktemp("course"))
