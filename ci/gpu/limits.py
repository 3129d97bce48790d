"""Cards of 8, 16 and 24 GB by limiting the allocator: a lab that does not fit says so before anything is
allocated."""

from __future__ import annotations

from typing import Any

import torch

from inferlab.lab import start
from inferlab.lab.needs import lab_needs
from inferlab.models import load_language_model, load_pipeline
from inferlab.models.full_size import made_on

from .measure import allocated, fresh, seconds
from .published import dit_networks, xl_networks

LABS = ("lab10-memory-optimization", "lab11-end-to-end-trace", "lab12-prefill-decode",
        "lab16-speculative-decoding")


def limits(device: str, gigabytes=(8, 16, 24)) -> dict[str, Any]:
    """Row per (limit, lab): whether the lab starts, what it says if not; where it starts, its model is really
    loaded and the bytes that this took are compared with the ones foretold."""
    total, index = torch.cuda.get_device_properties(device).total_memory, torch.device(device).index or 0
    rows: list[dict[str, Any]] = []
    try:
        for size in gigabytes:
            torch.cuda.set_per_process_memory_fraction(min(1.0, size * 1e9 / total), index)
            for lab in LABS:
                fresh(device)
                needs = lab_needs(lab, device)
                row: dict[str, Any] = {"gigabytes": size, "lab": lab, "needs": needs, "starts": True}
                before = allocated(device)[0]
                try:
                    start(lab, "someone", "full", device)
                    row["loaded_bytes"] = _load(lab, device, before)
                except MemoryError as error:
                    row |= {"starts": False, "says": str(error),
                            "allocated_then": allocated(device)[0] - before}
                row["as_foretold"] = row["starts"] == (sum(needs.values()) <= size * 1e9 - before)
                rows.append(row)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, index)
    return {"rows": rows}


def built(device: str, tiny: bool = False) -> dict[str, Any]:
    """Seconds and bytes of every full-size model, made on the device; `host_bytes` is what the process's
    memory grew by."""
    import psutil

    dtype = torch.float32 if torch.device(device).type == "cpu" else torch.float16
    makers = {"Stable Diffusion 1.5": lambda: load_pipeline("full", device, dtype),
              "SDXL, UNet and VAE": lambda: made_on(xl_networks, device, dtype),
              "DiT-XL/2": lambda: made_on(dit_networks, device, dtype),
              "Llama, 0.5 B": lambda: load_language_model("full", device, draft=True),
              "Llama, 8 B": lambda: load_language_model("full", device)}
    if tiny:
        makers = {"bundled": lambda: load_pipeline("bundled", device)}
    rows = []
    for name, make in makers.items():
        fresh(device)
        before, host = allocated(device)[0], psutil.Process().memory_info().rss
        kept: list = []
        took = seconds(lambda make=make, kept=kept: kept.append(make()), device)
        rows.append({"model": name, "seconds": round(took, 2), "bytes": allocated(device)[0] - before,
                     "host_bytes": psutil.Process().memory_info().rss - host})
        kept.clear()
    return {"rows": rows}


def _load(lab: str, device: str, before: int) -> int:
    if lab < "lab12":
        kept: Any = load_pipeline("full", device)
    else:
        kept = [load_language_model("full", device, draft=d) for d in ((False, True)
                                                                       if lab.startswith("lab16")
                                                                       else (False,))]
    held = allocated(device)[0] - before
    del kept
    return held
