"""Fits the gate of likeness (`src/inferlab/weights/prose/likeness.json.gz`).

    python training/likeness.py [--out FILE] [--measure]

Learns the labelled answers of `tests/explanations` (all splits but `held`, no gamed ones) and each rubric's own `must_award` and
`must_deny` for every slot of a lab's rubric that names them (`Slot.learned`), and fits the logistic regression that weighs their likeness by Newton's method: each answer is compared with all
others to the same question, not with itself. `--measure` leaves out one independent author after another and prints, at several
thresholds, how many right and wrong slots the gate stops of those that the rubrics award.
"""

import argparse
import dataclasses
import gzip
import json
import pathlib
import sys
from collections import defaultdict
from typing import NamedTuple

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "explanations"))

from answers import GAMED, load, prompts

from inferlab.lab.explain import likeness
from inferlab.lab.explain.grade import grade_slot, said

OUT = ROOT / "src" / "inferlab" / "weights" / "prose" / "likeness.json.gz"
RIDGE = 1.0
"""Pull of the standardized weights towards 0."""


class Example(NamedTuple):
    """One slot of one labelled answer."""

    name: str
    author: str
    said: likeness.Said
    right: bool
    awarded: bool
    """By the rubric alone; False where it was not asked."""


def examples(rows, graded: bool = False) -> list[Example]:
    """The slots of labelled answers; `graded` says by the rubrics, too, whether they award them (slow)."""
    out = []
    for row in rows:
        if row.kind in GAMED or row.kind == "blank":
            continue
        for rubric in row.rubrics:
            for label, slot in rubric.slots.items():
                text = row.explanation.get(slot.reads or label)
                if slot.learned and text.strip():
                    awarded = graded and grade_slot(text, dataclasses.replace(slot, learned=""), rubric, row.facts).verdict == "award"
                    out.append(Example(slot.learned, row.author, said(text, slot, rubric), bool(row.gold[label]), awarded))
    return out


def promises() -> list[Example]:
    """The examples that the rubrics carry themselves."""
    return [Example(slot.learned, "rubric", said(text, slot, rubric), right, right)
            for rubrics, _ in prompts().values() for rubric in rubrics for label, slot in rubric.slots.items() if slot.learned
            for right, texts in ((True, rubric.must_award), (False, rubric.must_deny)) for text in texts.get(label, [])]


def answers_by_name(found: list[Example]) -> dict[str, list]:
    out = defaultdict(list)
    for e in found:
        out[e.name].append((likeness.numbered(e.name, e.said), e.right))
    return dict(out)


def learnable(graded: bool = False) -> list[Example]:
    """All that the gate learns."""
    return examples([row for row in load() if row.split != "held"], graded) + promises()


def table(answers: dict[str, list]) -> dict[str, dict]:
    """What is shipped of the answers, under each name's address."""
    return dict(sorted((likeness.address(name), likeness.packed(kept)) for name, kept in answers.items()))


def fit(found: list[Example], answers: dict[str, list]) -> list[float]:
    """The weights for `Learned.features`: each example against all others of its question."""
    place: dict[str, int] = defaultdict(int)
    sets = {name: likeness.Learned(kept) for name, kept in answers.items()}
    rows = []
    for e in found:
        at, known = place[e.name], sets[e.name]
        one = answers[e.name][at][0]
        rows.append(known.features(e.said, one, [known.nearest(clause, at) for clause in one.clauses], at))
        place[e.name] += 1
    x, y = np.array(rows), np.array([not e.right for e in found], float)
    mean, spread = x.mean(0), x.std(0) + 1e-9
    mean[0], spread[0] = 0.0, 1.0
    z, w = (x - mean) / spread, np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-z @ w))
        pull = np.full(len(w), RIDGE)
        pull[0] = 0.0
        step = np.linalg.solve((z.T * (p * (1 - p))) @ z + np.diag(pull), z.T @ (p - y) + pull * w)
        w -= step
        if np.abs(step).max() < 1e-9:
            break
    own = w / spread
    own[0] -= float((mean[1:] / spread[1:]) @ w[1:])
    return [float(v) for v in own]


def measure(found: list[Example]) -> None:
    """Independent authors, each judged by what was learned from all others."""
    doubts = []
    for author in sorted({e.author for e in found if e.author.startswith("independent")}):
        rest, own = [e for e in found if e.author != author], [e for e in found if e.author == author]
        answers = answers_by_name(rest)
        sets, weights = {name: likeness.Learned(kept) for name, kept in answers.items()}, fit(rest, answers)
        for e in own:
            if e.name in sets:
                one = likeness.numbered(e.name, e.said)
                near = [sets[e.name].nearest(clause) for clause in one.clauses]
                x = float(np.dot(weights, sets[e.name].features(e.said, one, near)))
                doubts.append((1 / (1 + np.exp(-x)), e))
    right = np.array([d for d, e in doubts if e.right and e.awarded])
    wrong = np.array([d for d, e in doubts if not e.right and e.awarded])
    every_right, every_wrong = np.array([d for d, e in doubts if e.right]), np.array([d for d, e in doubts if not e.right])
    better = (every_wrong[:, None] > every_right[None]).mean() + 0.5 * (every_wrong[:, None] == every_right[None]).mean()
    print(f"independent authors, each left out: {len(every_right)} right and {len(every_wrong)} wrong slots, AUC {better:.3f}")
    print(f"awarded by the rubrics alone: {len(right)} right, {len(wrong)} wrong")
    for limit in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7):
        print(f"  doubt over {limit}: stops {(right > limit).mean():6.1%} of the right, {(wrong > limit).mean():6.1%} of the wrong")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=OUT)
    parser.add_argument("--measure", action="store_true", help="leave out each independent author instead of writing the gate")
    args = parser.parse_args()
    if args.measure:
        measure(learnable(graded=True))
        return 0
    found = learnable()
    answers = answers_by_name(found)
    weights = [round(w, 5) for w in fit(found, answers)]
    text = json.dumps({"weights": weights, "slots": table(answers)}, separators=(",", ":"))
    args.out.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(found)} slots of {len(answers)} questions, {args.out.stat().st_size:,} bytes, weights {weights}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
