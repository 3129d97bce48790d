"""What model offload really leaves in a trace and in a diff, for the labs that speak of it (10 and 11)."""

from __future__ import annotations

from typing import Any

from inferlab.lab.kits.memory.residency import component_bytes, moved_bytes, residency_events
from inferlab.models import load_pipeline
from inferlab.trace import trace

COMPONENTS = ("text_encoder", "unet", "vae")


def difference(device: str) -> dict[str, Any]:
    """The rows of the diff from a plain run of the bundled pipeline to an offloaded one, and the moves of its
    weights.

    `order` says that moves stand in the order in which they ended. `unexplained` are the rows that are
    neither of kind "device" nor a hook's boundary: what lab 11's exercise would miss.
    On a CPU there is nothing to offload to: only the plain run's events.
    """
    pipe = load_pipeline("bundled", device)
    pipe.set_progress_bar_config(disable=True)

    def run():
        with trace(pipe) as t:
            pipe("a red circle", num_inference_steps=2)
        return t

    plain = run()
    found: dict[str, Any] = {"order": "end", "plain_events": residency_events(plain.rows(), COMPONENTS,
                                                                              device)}
    if device == "cpu":
        return found
    pipe.enable_model_cpu_offload(device=device)
    offloaded = run()
    rows = plain.diff(offloaded, slower=float("inf")).rows()
    events = residency_events(offloaded.rows(), COMPONENTS, device)
    hooks = (".pre_forward", ".post_forward")
    found |= {
        "rows": [{key: row[key] if key != "steps" else len(row[key]) for key in row} for row in rows],
        "unexplained": [f"{row['kind']} {row['name']} {row['where']}: {row['before']} -> {row['after']}"
                        for row in rows
                        if row["kind"] != "device" and not row["name"].endswith(hooks)],
        "events": events, "carried_bytes": moved_bytes(events, component_bytes(pipe)),
        "moves": [{"name": b.name, "moved": {k: str(v) for k, v in b.moved.items()}}
                  for b in offloaded.boundaries if b.moved],
    }
    return found
