"""Makes the counts of the prose gate (`src/inferlab/weights/prose/`) from documentation that is installed here.

    python training/prose_gate.py [--sentences N] [--out DIR]

First the counts of word classes (`order.json.gz`) and the common words (`words.txt`), then the six weights of the gate
(`gate.json`): a logistic regression that tells held-out sentences and the tuning answers of `tests/explanations` (never
a measured one) from the same words shuffled, sorted, or without function words.

Text: docstrings of the Python standard library and of the installed diffusers, transformers, torch, accelerate
(PSF, Apache-2.0, BSD licences); only counts of word classes and a list of common words are kept. Files are read in sorted order, so the same packages give the same counts.
"""

import argparse
import ast
import collections
import gzip
import importlib.util
import json
import math
import pathlib
import random
import re
import sysconfig

import numpy as np

from inferlab.lab.explain import prose as prose_module
from inferlab.lab.explain.prose import OrderModel, classes, features
from inferlab.lab.explain.words import clean, sentences

CLUSTERS, COMMON = 56, 12
"""How many classes of content words, and how often a word must occur to be put into one."""
ANSWER_WEIGHT = 6
"""How often a tuning answer counts: documentation is formal, answers are not."""
PACKAGES = ("diffusers", "transformers", "accelerate", "torch", "numpy", "matplotlib", "pandas", "IPython")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def docstrings(root: pathlib.Path, limit: int):
    """Prose paragraphs of the docstrings below `root`, at most `limit` files."""
    for path in sorted(root.rglob("*.py"))[:limit]:
        if "test" in path.as_posix().removeprefix(root.as_posix()) or path.stat().st_size > 400_000:
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_docstring(node) or ""
                for paragraph in re.split(r"\n\s*\n|\n\s*[-*]\s", text):
                    yield re.sub(r"\s+", " ", paragraph).strip()


def prose(limit: int):
    """Sentences that look like prose, each once."""
    roots = [pathlib.Path(sysconfig.get_paths()["stdlib"])]
    roots += [pathlib.Path(importlib.util.find_spec(p).submodule_search_locations[0]) for p in PACKAGES]
    seen = set()
    for root in roots:
        taken = 0
        for paragraph in docstrings(root, 900 if root == roots[0] else 700):
            for sentence in _SENTENCE.split(paragraph):
                words = sentence.split()
                plain = sum(w.strip(".,;:()").isalpha() for w in words)
                if (6 <= len(words) <= 40 and sentence[0].isupper() and sentence.endswith(".") and plain >= 0.85 * len(words)
                        and sentence.isascii() and sentence not in seen and not re.search(r"[<>{}|`=\[\]]|\bTODO\b", sentence)):
                    seen.add(sentence)
                    taken += 1
                    yield sentence
            if taken >= limit:
                break


def tuning_answers(folder: pathlib.Path):
    """(tokens of a sentence, whether it is prose) of the answers that may be tuned on."""
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row.get("split") not in ("dev", "tune") or row["kind"] in ("empty", "otherlang", "unicode", "injection", "long", "shuffled"):
                continue
            text = row["answer"] if "answer" in row else "\n".join(row["fields"].values())
            for s in sentences(clean(text)):
                if len(s.words) >= 4:
                    yield s.tokens, row["kind"] not in ("stuffed", "salad")


def fit_gate(held: list, answers: list) -> tuple[list[float], dict]:
    """Logistic regression by gradient descent, answers weighted like all the documentation together."""
    rng = random.Random(1)
    rows: list[tuple[list[float], int, float, str]] = []

    def add(tokens, weight, source, is_prose=True):
        words = [t for t in tokens if t.kind in ("word", "amount")]
        if len(words) < 4:
            return
        if not is_prose:
            rows.append((features(tuple(tokens)), 0, weight, source))
            return
        rows.append((features(tuple(tokens)), 1, 2 * weight, source))
        rows.append((features(tuple(rng.sample(list(tokens), len(tokens)))), 0, weight, source))
        rows.append((features(tuple(sorted(words, key=lambda t: t.word))), 0, weight / 2, source))
        content = [t for t in words if t.word not in prose_module.FUNCTION_WORDS]
        if len(content) >= 4:
            rows.append((features(tuple(content)), 0, weight / 2, source))

    for tokens in held[:1500]:
        add(tokens, 1.0, "docs")
    for tokens, is_prose in answers:
        add(tokens, 1.5 * 1500 / max(1, len(answers)), "answers", is_prose)
    w = [0.0] * len(rows[0][0])
    total = sum(r[2] for r in rows)
    for _ in range(400):
        grad = [0.0] * len(w)
        for f, y, k, _source in rows:
            p = 1 / (1 + math.exp(-sum(a * b for a, b in zip(w, f, strict=True))))
            for i, x in enumerate(f):
                grad[i] += k * (p - y) * x
        w = [a - 2.0 * g / total for a, g in zip(w, grad, strict=True)]
    figures = {}
    for source in ("docs", "answers"):
        for y in (1, 0):
            scores = [1 / (1 + math.exp(-sum(a * b for a, b in zip(w, f, strict=True)))) for f, t, _k, s in rows if s == source and t == y]
            for cut in (0.25, 0.5):
                figures[f"{source} {'prose' if y else 'salad'} > {cut}"] = round(sum(s > cut for s in scores) / max(1, len(scores)), 3)
    return [round(a, 4) for a in w], figures


def neighbour_classes(texts: list) -> dict[int, str]:
    """Class -> its words: k-means over each common word's left and right neighbours (square-rooted shares)."""
    counts = collections.Counter(t.word for tokens in texts for t in tokens if t.kind == "word" and t.word.isalpha())
    words = sorted(w for w, n in counts.items() if n >= COMMON and w not in prose_module.FUNCTION_WORDS and len(w) > 1)
    row = {w: i for i, w in enumerate(words)}
    column: dict[str, int] = {}
    pairs: collections.Counter = collections.Counter()
    for tokens in texts:
        names = ["<s>", *(t.word if t.word in prose_module.FUNCTION_WORDS or t.kind == "punct" else "<num>" if t.kind == "amount"
                          else prose_module.surface_class(t.word) for t in tokens), "</s>"]
        for i, t in enumerate(tokens, 1):
            if t.word in row:
                for side, name in (("L", names[i - 1]), ("R", names[i + 1])):
                    pairs[row[t.word], column.setdefault(side + name, len(column))] += 1
    table = np.zeros((len(words), len(column)), dtype=np.float64)
    for (i, j), n in pairs.items():
        table[i, j] = n
    table = np.sqrt(table / table.sum(1, keepdims=True))
    rng = np.random.default_rng(0)
    centre = table[rng.choice(len(words), CLUSTERS, replace=False)]
    for _ in range(25):
        own = np.argmax(table @ centre.T - 0.5 * (centre**2).sum(1), axis=1)
        centre = np.stack([table[own == k].mean(0) if (own == k).any() else centre[k] for k in range(CLUSTERS)])
    return {k: " ".join(w for w, o in zip(words, own, strict=True) if o == k) for k in range(CLUSTERS) if (own == k).any()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=6000, help="at most so many a package")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("src/inferlab/weights/prose"))
    args = parser.parse_args()
    uni, bi, tri, words = (collections.Counter() for _ in range(4))
    held = []
    args.out.mkdir(parents=True, exist_ok=True)
    texts = [sentences(clean(text)) for text in prose(args.sentences)]
    own = [t for t, is_prose in tuning_answers(pathlib.Path("tests/explanations")) if is_prose]
    found = neighbour_classes([p.tokens for n, parts in enumerate(texts) if n % 20 for p in parts] + own * 3)
    (args.out / "clusters.json").write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    for cached in (prose_module.clusters, prose_module.word_class):
        cached.cache_clear()
    for n, parts in enumerate(texts):
        for part in parts:
            if n % 20 == 0:
                held.append(list(part.tokens))
                continue
            for t in part.tokens:
                if t.kind == "word" and t.word.isalpha():
                    words[t.word] += 1
            a, b = "<s>", "<s>"
            for c in [*classes(part.tokens), "</s>"]:
                uni[c] += 1
                bi[f"{b} {c}"] += 1
                tri[f"{a} {b} {c}"] += 1
                a, b = b, c
            bi["<s> <s>"] += 1
    for tokens, is_prose in tuning_answers(pathlib.Path("tests/explanations")):
        if is_prose:
            a, b = "<s>", "<s>"
            for c in [*classes(tokens), "</s>"]:
                for table, key in ((uni, c), (bi, f"{b} {c}"), (tri, f"{a} {b} {c}")):
                    table[key] += ANSWER_WEIGHT
                a, b = b, c
            bi["<s> <s>"] += ANSWER_WEIGHT
    counts = {"uni": dict(sorted(uni.items())), "bi": {k: v for k, v in sorted(bi.items()) if v > 1},
              "tri": {k: v for k, v in sorted(tri.items()) if v > 3}}
    text = json.dumps(counts, separators=(",", ":")) + "\n"
    (args.out / "order.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    common = sorted(w for w, k in words.items() if k >= 4 and len(w) > 2)
    (args.out / "words.txt").write_text("\n".join(common) + "\n", encoding="utf-8")
    for cached in (prose_module.model, prose_module.known_words):
        cached.cache_clear()
    weights, figures = fit_gate(held, list(tuning_answers(pathlib.Path("tests/explanations"))))
    (args.out / "gate.json").write_text(json.dumps({"weights": weights, "figures": figures}, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({"weights": weights, **figures}, indent=1))
    model, rng = OrderModel(counts), random.Random(0)
    straight = [model.gain(classes(s)) for s in held]
    mixed = [model.gain(classes(rng.sample(s, len(s)))) for s in held]
    for cut in (0.0, 0.1, 0.15, 0.2, 0.25, 0.3):
        print(f"gain > {cut:.2f}: held-out sentences {sum(g > cut for g in straight) / len(straight):.3f}, "
              f"shuffled {sum(g > cut for g in mixed) / len(mixed):.3f}")
    print(f"{sum(uni.values()):,} tokens, {len(held)} held out, {len(common):,} common words, "
          f"{(args.out / 'order.json.gz').stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
