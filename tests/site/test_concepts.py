"""The concept map's data: it names what exists, every lab has its concepts, and a fault is said by its
name."""

from dataclasses import replace

import pytest

from builder.concepts import faults_of, read_concepts
from inferlab.grading.course import Course
from tests import ROOT


@pytest.fixture(scope="module")
def course():
    return Course.open(ROOT)


def test_the_map_has_no_fault(course):
    concepts = read_concepts()
    assert faults_of(concepts, course) == []
    assert {concept.lab for concept in concepts} == set(course.labs) and len(concepts) > 40


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lab": "lab99-nothing"}, "there is no lab lab99-nothing"),
        ({"heading": "Exercise 99 · Nothing"}, "has no heading 'Exercise 99 · Nothing'"),
        ({"section": "Nothing"}, "the handbook's"),
        ({"needs": ("nothing",)}, "needs nothing, which is no concept"),
    ],
)
def test_a_place_that_is_not_there_is_a_fault(course, change, said):
    first, *rest = read_concepts()
    assert any(said in fault for fault in faults_of([replace(first, **change), *rest], course))


def test_a_lab_without_a_concept_and_a_circle_are_faults(course):
    concepts = read_concepts()
    lost = concepts[-1].lab
    assert f"{lost} has no concept" in faults_of([one for one in concepts if one.lab != lost], course)
    circle = [
        replace(one, needs=(concepts[0].name, one.name)) if one is concepts[0] else one for one in concepts
    ]
    assert any("circle" in fault for fault in faults_of(circle, course))
