"""Fits the gate over a whole text's order (`src/inferlab/weights/prose/text.json`).

    python training/prose_text.py [--out FILE]

Positive: good answers of `tests/explanations` (splits `tune` and `tuning-independent`) whose content their rubric would award with the gate
switched off. Negative: the same answers shuffled (three times), sorted and reversed, and the stuffed and salad answers,
wherever content alone would award them. A logistic regression by Newton's method on the features of
`inferlab.lab.explain.order`; the seed is fixed. Prints what each set loses and lets through; `--leave-out PREFIX` fits without
the batches whose name begins so and measures on them.
"""

import argparse
import dataclasses
import json
import pathlib
import random
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "explanations"))

from answers import GAMED, load

from inferlab.lab.explain import gates, grade_slot
from inferlab.lab.explain.order import ENOUGH, text_features
from inferlab.lab.explain.vocabulary import vocabulary
from inferlab.lab.explain.words import clean, sentences

SALADS = 10
"""How often a salad that a person wrote counts: there are few of them, and they are what learners would send in."""


def mixed(text: str, rng: random.Random):
    """(kind, text) for each disorder of an answer's words."""
    words = text.rstrip(".").split()
    for _ in range(3):
        yield "shuffled", " ".join(rng.sample(words, len(words)))
    yield "sorted", " ".join(sorted(words))
    yield "reversed", " ".join(reversed(words))


def examples():
    """(features, 1 or 0, kind, id) of every text that content alone would award."""
    gates.text_score = lambda parts, ordered=True: 1.0
    rng = random.Random(5)
    for row in load():
        if row.split in ("held", "seen") or row.split.startswith("study"):
            continue
        for rubric in row.rubrics:
            for name, slot in rubric.slots.items():
                text = row.explanation.get(name).strip()
                if row.gold.get(name) and row.kind not in GAMED and text:
                    found = [("good", text), *mixed(text, rng)]
                elif row.kind in ("salad", "stuffed") and text:
                    found = [(row.kind, text)]
                else:
                    continue
                for kind, one in found:
                    if grade_slot(one, dataclasses.replace(slot, learned=""), rubric, row.facts).verdict == "award":
                        parts = [vocabulary(rubric).mend(s) for s in sentences(clean(one))]
                        for _ in range(1 if kind in ("good", "shuffled", "sorted", "reversed") else SALADS):
                            yield text_features(parts, bool(slot.award)), int(kind == "good"), kind, row.id


def fit(x: np.ndarray, y: np.ndarray, ridge: float = 1e-3) -> np.ndarray:
    """Weights (first: the constant) of a logistic regression with a small ridge."""
    mean, spread = x.mean(0), x.std(0) + 1e-6
    mean[0], spread[0] = 0.0, 1.0
    z = (x - mean) / spread
    w = np.zeros(z.shape[1])
    for _ in range(60):
        p = 1 / (1 + np.exp(-z @ w))
        gradient = z.T @ (p - y) / len(y) + ridge * w
        hessian = (z * (p * (1 - p))[:, None]).T @ z / len(y) + ridge * np.eye(len(w))
        w = w - np.linalg.solve(hessian, gradient)
    raw = w / spread
    raw[0] = w[0] - float((w[1:] * mean[1:] / spread[1:]).sum())
    return raw


def figures(w: np.ndarray, x: np.ndarray, kinds: np.ndarray) -> dict[str, str]:
    """For each kind of text, how many pass the gate."""
    score = 1 / (1 + np.exp(-x @ w))
    return {k: f"{int((score[kinds == k] >= ENOUGH).sum())} of {int((kinds == k).sum())} pass" for k in sorted(set(kinds))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "src/inferlab/weights/prose/text.json")
    parser.add_argument("--leave-out", default="", help="part of an id: measure on these answers, fit on the others; writes nothing")
    args = parser.parse_args()
    rows = list(examples())
    x, y = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    kinds, ids = np.array([r[2] for r in rows]), [r[3] for r in rows]
    out = np.array([bool(args.leave_out) and args.leave_out in i for i in ids])
    w = fit(x[~out], y[~out])
    print(json.dumps({"fitted on": figures(w, x[~out], kinds[~out]), **({"left out": figures(w, x[out], kinds[out])} if out.any() else {})}, indent=1))
    if not out.any():
        args.out.write_text(json.dumps({"weights": [round(float(v), 4) for v in w], "figures": figures(w, x, kinds)}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
