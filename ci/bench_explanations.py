"""How explanations of fresh writers are graded (`make bench-explanations`).

    python -m ci.bench_explanations [FILE ...] [--out ci/out/explanations.json] [--each]

A file (tests/explain/writers/*.json.gz: `zcat` shows one; or plain JSON) has the answers to one field at a
time: lab -> field -> label -> texts.
The label is what the writer gave an answer before the first look at the view: right, wrong or gamed. The
answers go through the lab's own check cells. Prints how many of each label are awarded, denied, or left to a
person, and the time of an answer in milliseconds. `--each` prints every answer that is not graded as its
label says.
"""

import argparse
import contextlib
import gzip
import json
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import inferlab.lab
from inferlab.grading.authoring.hidden_tests import read_lesson
from inferlab.lab.explain import Explanation, Outcome, Words, parse

ROOT = Path(__file__).resolve().parent.parent
WRITERS = ROOT / "tests" / "explain" / "writers"
VERDICTS = {"awarded": "award", "denied": "deny", "to a person": "review"}
RIGHT = {"right": "award", "wrong": "deny", "gamed": "deny"}


class OneAnswer:
    """What a check cell sees as its `check`: an explanation of one field, and its slots' outcomes kept."""

    def __init__(self, answer: dict) -> None:
        self.answer = answer
        self.outcomes: list[Outcome] = []

    def explanation(self, name: str) -> Explanation:
        """The answer as the cell called `name`."""
        return parse(f"{self.answer['field']}: {self.answer['text']}", name)

    def slot(self, outcome: Outcome | Callable[[], Outcome], name: str = "", weight: float = 1.0) -> None:
        """Keep the outcome."""
        self.outcomes.append(outcome() if callable(outcome) else outcome)

    def variant(self, n: int) -> int:
        """The first variant."""
        return 0

    def __getattr__(self, name: str) -> Callable:
        return (lambda *a, **k: contextlib.nullcontext()) if name == "part" else (lambda *a, **k: 0)


@contextlib.contextmanager
def cells_see(answer: OneAnswer, runs: dict[tuple, Any]) -> Iterator[None]:
    """Check cells that run inside get `answer` as their check; what they run again is run once for all."""

    def reference(function: Callable) -> Callable:
        key = (function.__name__, function.__code__.co_code, str(function.__code__.co_consts))

        def once(*arguments: Any) -> Any:
            if (key, arguments) not in runs:
                runs[key, arguments] = function(*arguments)
            return runs[key, arguments]

        return once

    kept = inferlab.lab.Check, inferlab.lab.reference
    inferlab.lab.Check, inferlab.lab.reference = (lambda *a, **k: answer), reference
    try:
        yield
    finally:
        inferlab.lab.Check, inferlab.lab.reference = kept


def graded(answers: list[dict]) -> list[dict]:
    """Each answer with its verdict, its reason, and the CPU milliseconds of reading and judging it.

    An answer to a field that its lab does not ask for any more is left out.
    """
    cells: dict[tuple[str, str], str] = {}
    for lab in {answer["lab"] for answer in answers}:
        for block in read_lesson(ROOT / "notebooks" / lab / f"{lab}.py"):
            source = block.cell.source if "check" in block.cell.metadata else ""
            asked = re.findall(r'words\.grade\([^"]*"[^"]*"\)?, "([^"]+)"', source)
            cells |= {(lab, field): source for field in asked}
            if ".explanation(" in source and re.search(r"\b(?:typed|named)\(", source):
                entries = {answer["field"] for answer in answers if f'"{answer["field"]}"' in source}
                cells = {(lab, field): source for field in entries} | cells
    runs: dict[tuple, Any] = {}
    rows = []
    for answer in (one for one in answers if (one["lab"], one["field"]) in cells):
        one = OneAnswer(answer)
        with cells_see(one, runs), timed() as milliseconds:
            exec(cells[answer["lab"], answer["field"]], {"__name__": "check"})  # noqa: S102 - our own cells
        outcome = max(one.outcomes, key=lambda found: len(found.evidence))
        spent = max(milliseconds, default=0.0)
        rows.append(answer | {"verdict": outcome.verdict, "reason": outcome.reason, "ms": spent})
    return rows


@contextlib.contextmanager
def timed() -> Iterator[list[float]]:
    """The CPU milliseconds of each `words.grade` that runs inside: other programs hardly disturb these."""
    spent: list[float] = []
    grade = Words.grade

    def clocked(*arguments: Any, **named: Any) -> Outcome:
        start = time.thread_time()
        made = grade(*arguments, **named)
        spent.append(1000 * (time.thread_time() - start))
        return made

    Words.grade = clocked  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        Words.grade = grade  # type: ignore[method-assign]


def table(rows: list[dict]) -> dict[str, dict[str, float]]:
    """For each label how many there are, and the shares awarded, denied and left to a person."""
    counts = {label: Counter(row["verdict"] for row in rows if row["label"] == label) for label in RIGHT}
    return {
        label: {
            "answers": sum(found.values()),
            **{
                verdict: found[verdict] / max(sum(found.values()), 1)
                for verdict in ("award", "deny", "review")
            },
        }
        for label, found in counts.items()
    }


def _bytes(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()


def load(files: list[Path]) -> list[dict]:
    """The answers of some files."""
    return [
        {"lab": lab, "field": field, "label": label, "text": text, "writer": file.stem}
        for file in files
        for lab, fields in json.loads(_bytes(file)).items()
        for field, labels in fields.items()
        for label, texts in labels.items()
        for text in texts
    ]


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, default=ROOT / "ci" / "out" / "explanations.json")
    parser.add_argument("--each", action="store_true", help="print what is not graded as its label says")
    options = parser.parse_args()
    answers = load(options.files or sorted(WRITERS.glob("*.json.gz")))
    rows = graded(answers)
    if left := len(answers) - len(rows):
        print(f"{left} answers are left out: their labs do not ask for these fields any more")
    figures = table(rows)
    for label, shares in figures.items():
        shown = (f"{word} {shares[verdict]:6.1%}" for word, verdict in VERDICTS.items())
        print(f"{label:<6} {shares['answers']:4}   {'   '.join(shown)}")
    times = sorted(row["ms"] for row in rows)
    late = times[int(0.95 * len(times))]
    print(f"milliseconds an answer: median {statistics.median(times):.1f}, p95 {late:.1f}")
    if options.each:
        for row in rows:
            if row["verdict"] != RIGHT[row["label"]]:
                print(
                    f"{row['lab']} {row['field']} [{row['label']} -> {row['verdict']}] {row['text']!r}\n"
                    f"    {row['reason']}"
                )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"table": figures, "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
