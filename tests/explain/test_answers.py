"""The labelled answers: the bars on answers that were tuned on (a regression test: what unseen answers get is measured by
`make bench-explanations` on the split `held`), the mutations, hostile texts, the same verdicts everywhere."""

import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import bench_explanations as bench
import pytest
from answers import load, mutations, prompts
from labrubrics import lab_names, rubrics

from inferlab.lab.explain import grade, parse, selftest

ROOT = Path(__file__).resolve().parents[2]
ROWS = load()
SEEN = [r for r in ROWS if r.split == "seen"]
TUNED = {"seen": SEEN, "tuning-independent": [r for r in ROWS if r.split == "tuning-independent"]}


def test_every_measured_prompt_has_its_answers_and_its_own_tuning_half():
    for prompt in {r.prompt for r in SEEN}:
        kinds = {r.kind for r in SEEN if r.prompt == prompt}
        assert {"good", "partial", "reversed", "misconception", "wrong_number", "negated", "hedge", "stuffed", "salad"} <= kinds, prompt
    tuned = {r.explanation.body for r in ROWS if r.split == "tune"}
    assert not tuned & {r.explanation.body for r in SEEN if r.kind == "good"}


@pytest.mark.parametrize("split", TUNED)
def test_the_bars_hold_on_answers_that_were_looked_at(split):
    figures = bench.measure(TUNED[split])
    assert figures["wrong awarded"] <= bench.BARS["wrong awarded"], figures
    assert figures["gamed awarded"] <= bench.BARS["gamed awarded"], figures
    assert figures["good denied"] <= bench.BARS["good denied"], figures
    assert figures["good not awarded"] <= bench.BARS["good not awarded"], figures
    assert figures["kappa"] >= bench.BARS["kappa"] and figures["review"] <= bench.BARS["review"], figures


def test_mutated_good_answers_are_not_awarded():
    rates = bench.mutated(SEEN)
    worst = {name: f["still awarded"] for name, f in rates.items()}
    for name in ("instruction added", "instruction alone", "repeated twenty times", "look-alike letters", "negated before", "negated after", "negated: following false"):
        assert worst[name] == 0.0, worst
    order = [f for name, f in rates.items() if name.startswith("words ")]
    assert sum(f["still awarded"] * f["slots"] for f in order) / sum(f["slots"] for f in order) <= bench.BARS["gamed awarded"], worst
    for name, rate in worst.items():
        assert rate <= 0.04 if name == "words shuffled" else rate <= 0.02, worst
    slots = sum(f["slots"] for f in rates.values())
    assert sum(f["still awarded"] * f["slots"] for f in rates.values()) / slots <= 0.01


@pytest.mark.parametrize("lab", lab_names())
def test_a_labs_rubrics_give_what_they_promise(lab):
    known = prompts()
    for name, found in rubrics(lab).items():
        for rubric in found:
            assert rubric.must_award and rubric.must_deny, f"{lab}: {name} has no examples"
            facts = rubric.example_facts or known.get(lab, known.get(f"{lab}/{name}", ((), {})))[1]
            assert selftest(rubric, facts) == []


@pytest.mark.parametrize("prompt", [p for p in prompts() if not p.startswith(("lab", "practice"))])
def test_the_sets_own_rubrics_give_what_they_promise(prompt):
    found, facts = prompts()[prompt]
    assert [line for rubric in found for line in selftest(rubric, facts)] == []


@pytest.mark.parametrize("piece", ["a", "(", "1", "(2, 4, ", "not true that ", "\n", "state: x\n", "\u0430", "-> ", "it is not true that ", "\u200b", "1,234",
                                   "latnets schedular ", "qzx ", "x_{t-1} ", "%%explain x\n", "; ", "The scheduler updates the latents. "])
def test_200_000_characters_earn_nothing_and_take_no_time(piece, capfd):
    row = next(r for r in SEEN if r.kind == "good")
    text = ("state: " + piece * (200_000 // len(piece)))[:200_000]
    start = time.process_time()
    outcomes = dataclasses.replace(row, explanation=parse(text)).outcomes()
    assert time.process_time() - start < 0.25
    assert all(o.verdict != "award" for o in outcomes.values())
    assert capfd.readouterr().err == ""


def test_the_same_verdicts_under_another_hash_seed_and_locale():
    script = "import sys; sys.path[:0] = ['ci', 'tests/explanations']; import bench_explanations as b; print(b.digest([r for r in b.load() if r.split == 'seen']))"
    seen = set()
    for seed, lang in (("0", "C"), ("77", "tr_TR.UTF-8")):
        run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True,
                             env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": lang, "LANG": lang})
        assert run.stderr == ""
        seen.add(run.stdout)
    assert len(seen) == 1


def test_the_engine_needs_no_torch():
    run = subprocess.run([sys.executable, "-c", "import sys, inferlab.lab.explain as e; e.Rubric, e.register, e.selftest; print('torch' in sys.modules)"],
                         capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "False"


def test_an_unknown_fact_is_the_authors_error_never_the_learners_loss():
    found, _facts = prompts()["denoise"]
    told = parse("state: a\naxis: The latents are (2, 4, 16, 16) in the UNet.\ntrade-off: b\n", "x")
    with pytest.raises(KeyError, match=r"unet\.sample"):
        grade(told, found[0], {})


def test_mutations_change_what_they_say_they_change():
    row = next(r for r in SEEN if r.kind == "good")
    names = [name for name, changed in mutations(row) if changed.explanation.body != row.explanation.body]
    assert {"words shuffled", "words sorted", "negated as a whole", "repeated twenty times", "contradiction added", "numbers changed", "direction swapped once",
            "instruction added"} <= set(names)
    assert json.dumps(names)


def _wrong_explanations():
    import ast
    import re

    for lab in lab_names():
        text = (ROOT / "notebooks" / lab / "wrong_answers.py").read_text(encoding="utf-8")
        for cell in ("\n" + text).split("\n# %%")[1:]:
            head, _, body = cell.partition("\n")
            body = re.sub(r"(?m)^# ?", "", body)
            keeps = re.search(r"keeps=(\{.*\})", head)
            if "%%explain" in body and keeps:
                yield lab, re.search(r'name="([^"]*)"', head).group(1), body, ast.literal_eval(keeps.group(1))


@pytest.mark.parametrize(("lab", "name", "body", "keeps"), list(_wrong_explanations()))
def test_a_labs_named_wrong_explanations_keep_what_they_should(lab, name, body, keeps):
    known = prompts()
    told = parse(body)
    found, facts = known.get(lab) or known.get(f"{lab}/{told.name}") or (rubrics(lab)[told.name], {})
    for rubric in found:
        for slot, outcome in grade(told, rubric, facts or rubric.example_facts).items():
            kept = next((points for check, points in keeps.items() if check.endswith(slot)), None)
            if kept is not None:
                assert (outcome.verdict == "award") == bool(kept), (name, slot, outcome)
