"""The gate of likeness: an awarded answer that is not like right ones goes to a person; what is shipped tells nobody what is right."""

import gzip
import importlib.util
import json
from importlib import resources
from pathlib import Path

import pytest
from answers import by_rubric_alone, prompts

from inferlab.lab.explain import grade, likeness, parse

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = resources.files("inferlab") / "weights" / "prose" / "likeness.json.gz"
LABS = {name: found for name, found in prompts().items() if name.startswith(("lab", "practice"))}


def verdicts(lab: str, slot: str, text: str) -> tuple[str, str]:
    """(by the rubric alone, with the gate)"""
    rubrics, facts = LABS[lab]
    rubric = next(r for r in rubrics if slot in r.slots)
    told = parse(f"{slot}: {text}\n", "x")
    return tuple(grade(told, one, facts)[slot].verdict for one in (by_rubric_alone(rubric), rubric))


def test_every_prose_slot_of_every_lab_has_answers_learned_under_a_name_of_its_own():
    names = [slot.learned for rubrics, _ in LABS.values() for rubric in rubrics for slot in rubric.slots.values()]
    assert all(names) and len(set(names)) == len(names)
    for name in names:
        assert len(name.split()[-1]) == 16, "the last word keeps the table shut: 16 random hex digits"
        assert sum(right for _, right in likeness.learned(name).answers) >= 20


def test_the_table_is_the_one_of_todays_answers_and_rubrics():
    """A term, an answer or an example that changed makes the learned tokens stale: python training/likeness.py"""
    spec = importlib.util.spec_from_file_location("fit_likeness", ROOT / "training" / "likeness.py")
    fit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fit)
    shipped = json.loads(gzip.decompress(SHIPPED.read_bytes()))["slots"]
    assert fit.table(fit.answers_by_name(fit.learnable())) == shipped, "run python training/likeness.py"


def test_nothing_can_be_read_in_it_without_the_name():
    data = gzip.decompress(SHIPPED.read_bytes())
    assert not [word for word in (b"latent", b"scheduler", b"batch", b"cache", b"lab0", b"lab1", b"state", b"axis") if word in data]
    name = next(slot.learned for rubrics, _ in LABS.values() for rubric in rubrics for slot in rubric.slots.values())
    with pytest.raises(KeyError, match=r"training/likeness\.py"):
        likeness.learned(name[:-1] + ("0" if name[-1] != "0" else "1"))


@pytest.mark.parametrize(("lab", "slot", "text"), [
    ("lab02-denoising-step", "axis", "The batch becomes 2 for guidance, as one row is sent to the left half of the processor and the other row to its right half."),
    ("lab11-end-to-end-trace", "axis", "The side grows from 16 to 128 and the channels go from 4 to 3, one channel for each of the GPU's memory banks."),
    ("lab04-scheduler-loop", "trade-off", "Half the steps take half the time and the picture gets worse, because the banana is yellow."),
    ("lab13-kv-cache", "axis", "The token axis grows from 128 to 151, since each new word pushes the vocabulary one entry further, and the other sizes stay."),
])
def test_a_mistake_beside_the_asked_words_is_read_by_a_person(lab, slot, text):
    assert verdicts(lab, slot, text) == ("award", "review")


@pytest.mark.parametrize(("lab", "slot", "text"), [
    ("lab02-denoising-step", "state", "The scheduler updates the latents from the noise that the UNet predicts."),
    ("lab13-kv-cache", "axis", "The token axis grows from 128 to 151; batch, heads and head_dim stay."),
])
def test_a_plain_right_answer_passes(lab, slot, text):
    assert verdicts(lab, slot, text) == ("award", "award")


def test_an_answer_whose_every_clause_stands_in_a_right_one_is_not_doubted():
    for rubrics, facts in LABS.values():
        for rubric in rubrics:
            for name, texts in rubric.must_award.items():
                if rubric.slots[name].learned:
                    assert grade(parse(f"{rubric.slots[name].reads or name}: {texts[0]}\n", "x"), rubric, rubric.example_facts or facts)[name].verdict == "award", texts[0]


def test_doubt_is_a_probability_and_the_same_for_the_same_words():
    rubrics, _ = LABS["lab13-kv-cache"]
    slot = rubrics[0].slots[next(iter(rubrics[0].slots))]
    for clauses in ((), (("the", "cach"),), (("qzx",) * 40,)):
        told = likeness.Said(clauses, frozenset(), 0, 1)
        assert 0 <= likeness.doubt(slot.learned, told) <= 1 and likeness.doubt(slot.learned, told) == likeness.doubt(slot.learned, told)
