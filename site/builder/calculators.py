"""The calculators' pages, from `site/calculators.toml`: the form, its first results, formula, source, and
the lab."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inferlab.grading.authoring.start_here import Entry
from inferlab.models.language import FULL, FULL_COMMON, WEIGHTS

from . import ROOT, SITE
from .npm import NODE
from .pages import short_title
from .templates import filled, raw, tree, wide_page

NAMES = {
    "hidden": "hidden_size",
    "intermediate": "intermediate_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "vocab": "vocab_size",
    "tied": "tie_word_embeddings",
}
"""Input of a calculator -> entry of a config."""


def calculators() -> dict[str, dict[str, Any]]:
    """What `calculators.toml` says, by name."""
    return tomllib.loads((SITE / "calculators.toml").read_text("utf-8"))


def write_calculators(order: list[Entry], pages: Path) -> None:
    """Write a page for each calculator and one that lists them."""
    found = calculators()
    titles = {entry.lab: short_title(entry) for entry in order}
    first = first_results(found)
    folder = pages / "calculators"
    folder.mkdir()
    cards = "".join(
        f'<a href="{name}.html"><svg viewBox="0 0 240 72" aria-hidden="true">{first[name]["bare"]}</svg>'
        f'<b>{one["title"]}</b><span>{one["question"]}</span></a>\n'
        for name, one in found.items()
    )
    below = tree({one["title"]: name for name, one in found.items()})
    listed = wide_page("Calculators", INTRO, f'<div class="cards curves">\n{cards}</div>', below)
    (folder / "index.md").write_text(listed, "utf-8")
    for name, one in found.items():
        results, curve = first[name]["results"], first[name]["curve"]
        form = filled("calculator", name=name, drawn=curve, **form_of(one, results))
        lab = one["lab"]
        (folder / f"{name}.md").write_text(
            f'# {one["title"]}\n\n<p class="lead">{one["question"]}</p>\n\n{raw(form)}\n'
            f"$$\n{one['formula']}\n$$\n\n{one['text'].strip()}\n\n**Source.** {one['source']}\n\n"
            f"**Measure it yourself** in [lab {titles[lab]}](../labs/{lab}.ipynb), after "
            f"[its section of the handbook](../handbook/{lab}.md).\n",
            "utf-8",
        )


def form_of(one: Mapping[str, Any], first: Mapping[str, Any]) -> dict[str, Any]:
    """What the form's template is filled with."""
    inputs, outputs = one["inputs"], one["outputs"]
    by_name = {output[0]: output for output in outputs}
    bars = [by_name[bar] for bar in one.get("bars", [])]
    most = max((first[bar[0]][0] for bar in bars), default=1) or 1
    fields = {field[0]: field for field in inputs}
    others = [field for field in inputs if field[0] not in one["main"]]
    against = one["curve"]["against"]
    binary = any(output[2] == "bytes" for output in outputs)
    presets = [PRESETS[preset] for preset in one.get("presets", [])]
    return {
        "first": first,
        "inputs": inputs,
        "main": [fields[name] for name in one["main"]],
        "others": others,
        "outputs": outputs,
        "rest": [output for output in outputs[1:] if output not in bars],
        "bars": [(*bar, round(100 * first[bar[0]][0] / most, 1)) for bar in bars],
        "steps": {
            field[0]: 1 if whole(field) else "any" for field in inputs if not isinstance(field[3], dict)
        },
        "binary": binary,
        "odd": (len(others) + binary) % 2,
        "curve": one["curve"],
        "against": against,
        "against_label": fields[against][1],
        "presets": presets,
    }


def whole(field: list[Any]) -> bool:
    """Whether a number's field takes whole numbers only."""
    return all(isinstance(value, int) for value in field[2:])


def first_results(found: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Calculator -> its results, output -> (value, as it is shown), and its curve, for the values that the
    form begins with, by its JavaScript."""
    asked = {}
    for name, one in found.items():
        field = next(field for field in one["inputs"] if field[0] == one["curve"]["against"])
        asked[name] = {
            "values": {field[0]: float(field[2]) for field in one["inputs"]},
            "outputs": one["outputs"],
            "field": {
                "name": field[0],
                "label": upper(field[1]),
                "least": field[3],
                "most": field[4],
                "whole": whole(field),
            },
            "beside": one.get("bars", []),
            "curve": one["curve"],
        }
    done = subprocess.run(
        [NODE, SITE / "defaults.mjs"], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def upper(label: str) -> str:
    """With a capital letter."""
    return label[:1].upper() + label[1:]


def models() -> dict[str, dict[str, int]]:
    """Models by name, as inputs: the course's own from their configs, larger ones as they were published."""
    bundled = {
        f"the course's {role} model": json.loads((WEIGHTS / role / "config.json").read_text("utf-8"))
        for role in ("target", "draft")
    }
    configs = {"Llama 3 8B": FULL["target"] | FULL_COMMON, "Llama 3 70B": LLAMA_70B, **bundled}
    return {
        name: {mine: int(config[theirs]) for mine, theirs in NAMES.items()}
        for name, config in configs.items()
    }


def cards() -> dict[str, dict[str, float]]:
    """Cards by name with the rates that the newest run in `ci/results` measured: matrix products, and
    reading."""
    found = {}
    for path in sorted((ROOT / "ci" / "results").glob("gpu-*.json")):
        run = json.loads(path.read_text("utf-8"))
        if floors := run["parts"].get("floors"):
            found[f"{run['environment']['card']['name']}, measured"] = {
                "tflops": float(f"{floors['matrix_flops_per_s'] / 1e12:.3g}"),
                "tbytes": float(f"{floors['read_bytes_per_s'] / 1e12:.3g}"),
            }
    return found


LLAMA_70B = {
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
PRESETS = {"models": ("Model", models()), "cards": ("Card", cards())}
INTRO = """\
Each is one formula with your numbers in it. The numbers are in the page's address, so a link keeps them.
Every calculator is tested against the Python that the labs use, and names the lab in which you can measure
what it says."""
