"""One spelling of a name, and the same variant everywhere."""

import subprocess
import sys

import pytest

from inferlab.lab.identity import normalize, variant


@pytest.mark.parametrize("spelling", ["Ada Lovelace", "  ada   LOVELACE\n", "ADA\tLovelace",
                                      "\uff21da \uff2covelace"])
def test_spellings_of_one_name_are_one_learner(spelling):
    assert normalize(spelling) == "ada lovelace"
    assert variant(spelling, "lab02-denoising-step", 16) == variant("ada lovelace", "lab02-denoising-step",
                                                                    16)


def test_composed_and_decomposed_letters_are_the_same_name():
    assert normalize("Zo\u00eb") == normalize("Zoe\u0308")


def test_a_name_must_be_text():
    with pytest.raises(TypeError, match="LEARNER"):
        normalize(17)


@pytest.mark.parametrize("n", [0, -1, 17])
def test_a_lab_has_one_to_sixteen_variants(n):
    with pytest.raises(ValueError, match="1 to 16"):
        variant("ada", "lab02-denoising-step", n)


def test_variants_are_spread_and_differ_between_labs():
    names = [f"learner {i}" for i in range(400)]
    mine = [variant(name, "lab02-denoising-step", 8) for name in names]
    assert all(20 <= mine.count(v) <= 90 for v in range(8))
    assert mine != [variant(name, "lab04-scheduler-loop", 8) for name in names]


def test_a_variant_does_not_depend_on_the_process():
    code = "from inferlab.lab.identity import variant; print(variant('Ada', 'lab02-denoising-step', 16))"
    runs = [
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True,
                       text=True, check=True)
        for seed in ("0", "123")
    ]
    assert {int(run.stdout) for run in runs} == {variant("ada", "lab02-denoising-step", 16)}
