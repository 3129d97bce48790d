"""The typed gain and cost of each lab: what a lab or its handbook page teaches counts, what it denies does not."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from inferlab.lab.explain import Outcome, parse

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
LABS = sorted(path.parent.name for path in NOTEBOOKS.glob("*/*.py") if '-gain-cost"' in path.read_text("utf-8") and path.stem == path.parent.name)
BANDWIDTH = ("bandwidth down", "memory bandwidth down")
READ = (*BANDWIDTH, "memory traffic down", "bytes per token down")


def graded(monkeypatch, lab: str, gain: str, cost: str) -> list[Outcome]:
    """What the lab's own check says to these two lines, in the order of the check."""
    outcomes = []

    class Told:
        def __init__(self, name, points):
            pass

        def part(self, name, weight):
            return nullcontext()

        def true(self, value, message):
            pass

        def explanation(self, name):
            both = "".join(f"{before}gain: {gain}\n{before}cost: {cost}\n" for before in ("", "offload-"))
            return parse(both, name)

        def slot(self, outcome, name):
            outcomes.append(outcome())

        def score(self):
            pass

    monkeypatch.setattr("inferlab.lab.Check", Told)
    text = (NOTEBOOKS / lab / f"{lab}.py").read_text("utf-8")
    cell = next(c for c in text.split("\n# %%") if '-gain-cost"' in c.partition("\n")[0]).partition("\n")[2]
    exec(compile(cell, lab, "exec"), {})  # noqa: S102 - the lab's own text
    return outcomes


@pytest.mark.parametrize("lab", LABS)
def test_every_direction_that_a_lab_expects_can_be_read(monkeypatch, lab):
    assert len(graded(monkeypatch, lab, "latency down", "latency up")) == 2


@pytest.mark.parametrize(("lab", "award", "deny"), [
    ("lab11", (*BANDWIDTH, "memory down"), ("memory up", "bandwidth up")),
    ("lab12", (*READ, "throughput up"), ("latency down", "memory down", "bandwidth up", "ttft down")),
    ("lab13", (*READ, "cache down"), ("memory up", "bandwidth up", "quality up", "compute down")),
    ("lab14", (*READ, "waiting time down", "time to first token down", "ttft down"), ("latency down", "time down", "itl down", "waiting time up")),
    ("lab15", ("waste down", "memory down"), ("bandwidth down", "block table memory up", "table length down")),
    ("lab19", (*BANDWIDTH, "latency down"), ("latency up", "bandwidth up")),
])
def test_gains(monkeypatch, lab, award, deny):
    lab = next(name for name in LABS if name.startswith(lab))
    for line in award + deny:
        assert graded(monkeypatch, lab, line, "latency up")[0].verdict == ("award" if line in award else "deny"), line


@pytest.mark.parametrize(("lab", "award", "deny"), [
    ("lab12", ("latency up", "memory up", "cache up"), ("throughput down", "latency down")),
    ("lab14", ("latency up", "memory up", "cache up", "kv cache up"), ("throughput down", "cache down")),
    ("lab15", ("table length up", "block table memory up", "memory for tables up", *BANDWIDTH), ("memory up", "waste up", "bandwidth up")),
])
def test_costs(monkeypatch, lab, award, deny):
    lab = next(name for name in LABS if name.startswith(lab))
    for line in award + deny:
        assert graded(monkeypatch, lab, "throughput up", line)[1].verdict == ("award" if line in award else "deny"), line
