"""Measures the explanation grader on the labelled answers of tests/explanations (`make bench-explanations`).

    python ci/bench_explanations.py [--out ci/out/explanations.json] [--quick] [--errors]

Prints one row a prompt for each split (README.md of the answers says what a split is worth) and the rates of the
mutations of every good answer, checks time and the same verdicts under other locales and hash seeds, and writes all
figures as JSON. `--errors` lists single errors, and only ever of the answers that may be tuned on.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "explanations"))

from answers import GAMED, load, mutations

from inferlab.lab.explain import parse

TITLES = {
    "held": "asked form, by authors who saw neither rubric nor engine, looked at by nobody who tuned",
    "tuning-independent": "asked form, by such authors too, but tuned on since",
    "seen": "asked form, by the engine's authors, held out once and looked at since",
    "tune": "asked form, by the engine's authors, tuned on",
    "study-held": "first study, free form, measured", "study-tune": "first study, free form, tuning half",
}
"""What each split is, and how much its figures say: only `held` says how well unseen answers are graded."""
LOOKED_AT = ("tuning-independent", "seen", "tune", "study-tune")
BARS = {"wrong awarded": 0.02, "gamed awarded": 0.03, "good denied": 0.02, "good not awarded": 0.12, "kappa": 0.88, "review": 0.15, "p95 ms": 20.0}


def kappa(pairs: list[tuple[int, int]], top: int) -> float:
    """Quadratic weighted kappa of (given, right) scores 0..top; 1.0 when all agree and all are one score."""
    n = len(pairs)
    if not n:
        return float("nan")
    seen = sum((a - b) ** 2 for a, b in pairs) / n
    by_chance = sum((a - b) ** 2 for a, _ in pairs for _, b in pairs) / n**2
    return 1.0 if by_chance == 0 else 1 - seen / by_chance


def measure(rows: list) -> dict:
    """The figures of the issue's table for some answers; every rate with its count."""
    wrong, gamed, good, reviews, slots, pairs = [0, 0], [0, 0], [0, 0, 0], 0, 0, []
    for row in rows:
        got = grade_row(row)
        pairs.append((sum(o == "award" for o in got.values()), sum(row.gold.values())))
        for name, verdict in got.items():
            slots += 1
            reviews += verdict == "review"
            if row.gold[name]:
                good[0] += verdict == "deny"
                good[1] += verdict != "award"
                good[2] += 1
            else:
                cell = gamed if row.kind in GAMED else wrong
                cell[0] += verdict == "award"
                cell[1] += 1
    rate = lambda a, b: round(a / b, 4) if b else 0.0
    return {
        "answers": len(rows), "slots": slots, "wrong awarded": rate(*wrong), "wrong slots": wrong[1], "gamed awarded": rate(*gamed),
        "gamed slots": gamed[1], "good denied": rate(good[0], good[2]), "good not awarded": rate(good[1], good[2]), "good slots": good[2],
        "kappa": round(kappa(pairs, 3), 4), "review": rate(reviews, slots),
    }


def grade_row(row) -> dict[str, str]:
    return {name: o.verdict for name, o in row.outcomes().items()}


def mutated(rows: list) -> dict[str, dict]:
    """For each mutation of every slot that is good (and awarded before): how often it still wins."""
    out: dict[str, list[int]] = {}
    for row in rows:
        good = [n for n, g in row.gold.items() if g]
        if row.kind in GAMED or not good:
            continue
        before = grade_row(row)
        for name, changed in mutations(row):
            after = grade_row(changed)
            cell = out.setdefault(name, [0, 0, 0])
            for slot in good:
                if changed.explanation.get(slot) == row.explanation.get(slot) and name not in ("instruction added", "negated before"):
                    continue
                cell[1] += 1
                cell[0] += after[slot] == "award"
                cell[2] += before[slot] == "award"
    return {k: {"still awarded": round(a / n, 4), "slots": n, "awarded before": round(b / n, 4)} for k, (a, n, b) in sorted(out.items()) if n}


def timing(rows: list) -> dict:
    """Milliseconds an answer: over the sets, and over hostile texts of up to 200,000 characters. Wall time, and the
    process's own time beside it, which a busy machine does not lengthen."""
    own: list[float] = []

    def once(row, text) -> float:
        start, busy = time.perf_counter(), time.process_time()
        dataclasses.replace(row, explanation=parse(text)).outcomes()
        own.append(1e3 * (time.process_time() - busy))
        return 1e3 * (time.perf_counter() - start)

    once(rows[0], rows[0].explanation.body)

    sets = [once(r, r.explanation.body) for r in rows for _ in range(1)]
    row = next(r for r in rows if r.kind == "good")
    state = row.explanation.get("state")
    hostile = [("state: " + piece * (200_000 // len(piece)))[:200_000] for piece in (
        "a", " ", "(", "1", "2x", "(2, 4, ", "not ", "not true that ", "\n", "state: x\n", state + " ", "a.b", "\u0430", "x_{t-1} ", "-> ", "%%explain x\n",
        "more steps and ", "it is not true that ", "\u200b", "1,234", "noise noise ", "; ", "latnets schedular ", "ignore all previous ", "qzx ")]
    long = [once(row, text) for text in hostile for _ in range(2)]
    quantile = lambda xs, q: round(sorted(xs)[min(len(xs) - 1, int(q * len(xs)))], 2)
    return {"p95 ms": quantile(sets + long, 0.95), "p95 own ms": quantile(own[1:], 0.95), "answers p50": round(statistics.median(sets), 2), "answers p95": quantile(sets, 0.95),
            "answers max": round(max(sets), 2), "200k characters p95": quantile(long, 0.95), "200k characters max": round(max(long), 2)}


def digest(rows: list) -> str:
    """One hash of all verdicts, reasons and evidence."""
    h = hashlib.sha256()
    for row in rows:
        for name, o in sorted(row.outcomes().items()):
            h.update(repr((row.id, name, o)).encode())
    return h.hexdigest()


def elsewhere() -> dict[str, str]:
    """The digest under other hash seeds and locales, and under other Pythons where INFERLAB_PYTHONS names them."""
    out = {}
    runs = [(f"hash seed {seed}, {lang}", sys.executable, {"PYTHONHASHSEED": str(seed), "LC_ALL": lang, "LANG": lang, "PYTHONUTF8": utf})
            for seed, lang, utf in ((0, "C", "0"), (1, "C.UTF-8", "1"), (4242, "tr_TR.UTF-8", "0"))]
    runs += [(pathlib.Path(p).name + f" ({p.rsplit('/', 3)[-3]})" if p.count("/") > 2 else p, p, {})
             for p in os.environ.get("INFERLAB_PYTHONS", "").split(":") if p]
    for name, python, extra in runs:
        run = subprocess.run([python, __file__, "--digest"], env={**os.environ, **extra}, capture_output=True, text=True, encoding="utf-8", check=False)
        out[name] = run.stdout.strip() if run.returncode == 0 and not run.stderr else f"failed: {run.stderr[-300:]}"
    return out


def table(title: str, figures: dict[str, dict]) -> None:
    keys = ["answers", "wrong awarded", "gamed awarded", "good denied", "good not awarded", "kappa", "review"]
    print(f"\n{title}\n{'':22}" + "".join(f"{k:>18}" for k in keys))
    for name, f in figures.items():
        print(f"{name:22}" + "".join(f"{f[k]:>18.1%}" if k not in ("answers", "kappa") else f"{f[k]:>18}" for k in keys))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "ci" / "out" / "explanations.json")
    parser.add_argument("--errors", action="store_true", help="list the errors on the answers that may be tuned on")
    parser.add_argument("--digest", action="store_true", help="print one hash of every verdict and stop")
    parser.add_argument("--quick", action="store_true", help="no timing, no other interpreters")
    args = parser.parse_args()
    rows = load()
    if args.digest:
        print(digest(rows))
        return 0
    if args.errors:
        return errors([r for r in rows if r.split in LOOKED_AT])
    result: dict = {"bars": BARS, "note": "One author's answers share one register; `author` says who wrote a batch and what they knew."}
    for split, title in TITLES.items():
        chosen = [r for r in rows if r.split == split]
        figures = {p: measure([r for r in chosen if r.prompt == p]) for p in sorted({r.prompt for r in chosen})}
        if chosen:
            figures["all"] = measure(chosen)
            result[split] = figures
            table(title, figures)
    result["mutations"] = mutated([r for r in rows if r.split in ("held", "seen")])
    print("\nmutations of good answers (splits `held` and `seen`)")
    for name, f in result["mutations"].items():
        print(f"  {name:28}{f['still awarded']:>8.1%} of {f['slots']} slots still awarded")
    if not args.quick:
        result["timing"] = timing([r for r in rows if r.split in ("held", "seen", "tune")])
        print("\ntime:", json.dumps(result["timing"]))
        own = digest(rows)
        result["same verdicts"] = {name: d == own for name, d in elsewhere().items()}
        print("same verdicts:", json.dumps(result["same verdicts"]))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


def errors(rows: list) -> int:
    for row in rows:
        for name, o in row.outcomes().items():
            if (o.verdict == "award") != bool(row.gold[name]):
                print(f"{row.id} {row.kind} {name}: {o.verdict} (gold {row.gold[name]}) {o.reason} {list(o.evidence)}\n    {row.explanation.get(name)!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
