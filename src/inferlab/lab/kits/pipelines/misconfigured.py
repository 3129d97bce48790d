"""Pipeline folders whose config files differ from the bundled ones in several entries, of which one does
harm, for the lab that finds it in a trace."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inferlab.lab.identity import scattered
from inferlab.models.pictures import WEIGHTS

Entries = Mapping[tuple[str, str], Any]

SCHEDULER, TEXT, UNET, VAE = ("scheduler/scheduler_config.json", "text_encoder/config.json",
                              "unet/config.json", "vae/config.json")
HARMLESS: Entries = {
    (SCHEDULER, "clip_sample_range"): 4.0,
    (SCHEDULER, "sample_max_value"): 2.0,
    (TEXT, "attention_dropout"): 0.1,
    (TEXT, "projection_dim"): 768,
    (UNET, "dropout"): 0.1,
    (UNET, "sample_size"): 64,
    (VAE, "force_upcast"): True,
    (VAE, "sample_size"): 512,
}
"""Entries that a run of the bundled pipeline, in evaluation mode and called with a size, never looks at."""
MISCONFIGURED: dict[tuple[str, str], tuple[Any, str, str]] = {
    (SCHEDULER, "prediction_type"): ("v_prediction", "scheduler.step", "outputs"),
    (SCHEDULER, "beta_schedule"): ("linear", "scheduler.step", "outputs"),
    (SCHEDULER, "beta_end"): (0.012, "scheduler.step", "outputs"),
    (TEXT, "hidden_act"): ("gelu", "encode_prompt", "outputs"),
    (TEXT, "num_attention_heads"): (12, "encode_prompt", "outputs"),
    (UNET, "flip_sin_to_cos"): (False, "unet", "outputs"),
    (UNET, "attention_head_dim"): (6, "unet", "outputs"),
    (VAE, "scaling_factor"): (0.18215, "vae.decode", "inputs"),
    (VAE, "norm_num_groups"): (16, "vae.decode", "outputs"),
}
"""(file, key) -> (wrong value, the first boundary at which values differ, on which of its sides)."""


def entry_of_variant(number: int) -> tuple[str, str]:
    """The (file, key) that does harm in a variant, 0 to 8.

    Raises:
        ValueError: if the variant does not exist.
    """
    entries = scattered(MISCONFIGURED, "/".join)
    if not 0 <= number < len(entries):
        raise ValueError(f"variant is 0 to {len(entries) - 1}, not {number}")
    return entries[number]


def misconfigured(target: Path, number: int) -> Path:
    """Write a copy of the bundled folder with a harmful entry and the harmless ones.

    Args:
        target: where; what lies there is overwritten.
        number: 0 to 8, which entry does harm.

    Returns:
        ``target``, a folder that `from_pretrained` opens without an error or a warning.

    Raises:
        ValueError: if the variant does not exist.
    """
    harmful = entry_of_variant(number)
    return with_entries(target, {**HARMLESS, harmful: MISCONFIGURED[harmful][0]})


def with_entries(target: Path, entries: Entries) -> Path:
    """Write a copy of the bundled picture pipeline's folder with these config entries.

    Args:
        target: where; what lies there is overwritten.
        entries: (file, key) -> value, such as ``("vae/config.json", "scaling_factor")`` -> 0.18215.

    Returns:
        ``target``.

    Raises:
        KeyError: if a file has no such key.
    """
    shutil.copytree(WEIGHTS, target, dirs_exist_ok=True)
    for (file, key), value in entries.items():
        config = json.loads((target / file).read_text("utf-8"))
        if key not in config:
            raise KeyError(f"{file} has no entry {key!r}")
        (target / file).write_text(json.dumps(config | {key: value}, indent=2), "utf-8")
    return target


def config_differences(one: Path, other: Path) -> list[tuple[str, str, Any, Any]]:
    """(file, key, value in ``one``, value in ``other``) of every config entry that differs, in order."""
    found = []
    for path in sorted(one.glob("*/*config.json")):
        file = path.relative_to(one).as_posix()
        a, b = (json.loads((folder / file).read_text("utf-8")) for folder in (one, other))
        found += [(file, key, a.get(key), b.get(key)) for key in sorted({*a, *b}) if a.get(key) != b.get(key)]
    return found
