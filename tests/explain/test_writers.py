"""What fresh writers wrote is graded as they labelled it, but for the exceptions that are named here."""

import pytest

from ci.bench_explanations import WRITERS, graded, load, table


@pytest.mark.slow
def test_answers_of_fresh_writers():
    figures = table(graded(load(sorted(WRITERS.glob("*.json.gz")))))
    assert figures["right"]["answers"] >= 30
    assert figures["right"]["award"] >= 0.95
    assert figures["right"]["deny"] <= 0.005
    assert figures["right"]["review"] <= 0.05
    assert figures["wrong"]["award"] <= 0.01
    assert figures["gamed"]["award"] == 0


def test_a_typed_field_is_graded_by_the_cell_that_reads_the_explanation():
    answer = {"lab": "lab08-lora", "field": "calls", "label": "wrong", "text": "11", "writer": "x"}
    assert [row["verdict"] for row in graded([answer])] == ["deny"]
