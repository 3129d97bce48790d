"""Two processes, one card each: the fused decode step split over them, sums through NCCL, beside the unsplit
one.

    torchrun --nproc-per-node 2 -m ci.gpu.parallel --out FILE [--device cuda] [--model full]
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from inferlab.lab.kits.decode.launches import captured
from inferlab.models import load_language_model

from . import fused
from .measure import chain_seconds, environment, fresh, seconds


def exchange(device: str, repeats: int = 9) -> dict[str, Any]:
    """Seconds and bus bandwidth of an all-reduce of a hidden vector and of 256 MiB."""
    found = {}
    for name, values in (("one hidden vector", 4096), ("256 MiB", 2**27)):
        x = torch.zeros(values if torch.device(device).type == "cuda" else min(values, 2**16), device=device,
                        dtype=torch.bfloat16)
        times = chain_seconds(lambda x=x: dist.all_reduce(x), device, 20, repeats)
        ranks = dist.get_world_size()
        found[name] = times | {"bytes": x.nbytes, "bus_bytes_per_s": 2 * (ranks - 1) / ranks * x.nbytes
                               / times["median"]}
    return found


@torch.no_grad()
def measure(model, context: int, compiled: bool) -> dict[str, Any]:
    """Decode at batch 1: whole on this card, then split; the split logits are compared with the model's."""
    from transformers import DynamicCache

    device, ranks, rank = str(model.device), dist.get_world_size(), dist.get_rank()
    cuda = torch.device(device).type == "cuda"
    ids = torch.randint(0, model.config.vocab_size, (1, context),
                        generator=torch.Generator().manual_seed(1)).to(device)
    cache = DynamicCache(config=model.config)
    model(ids, None, None, cache, logits_to_keep=1)
    want = model(ids[:, -1:], None, None, cache).logits[0, -1].float()
    cache.crop(-1)
    # the same numbers in another order, as decode.py does it: how far rounding alone moves the logits
    again = model(torch.cat([ids, ids[:, -1:]], 1), None, None, DynamicCache(config=model.config),
                  logits_to_keep=1).logits[0, -1]
    noise = fused.apart(again, want)
    whole = fused.fuse(model)
    config, rows = model.config, []
    dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    for name, count in (("one card", 1), (f"{ranks} cards", ranks)):
        if count > 1:
            mine = [fused.share(w, config.num_attention_heads, config.num_key_value_heads, dim, rank, ranks)
                    for w in whole]
            step: fused.Step = fused.SharedStep(model, mine, context + 64, fused.linear, compiled, ranks)
        else:
            mine = whole
            step = fused.Step(model, whole, context + 64, fused.linear, compiled)
        step.fill(cache)
        step.token.copy_(ids[0, -1:])
        first = seconds(step, device)
        apart = fused.checked(name, step.logits, want, noise)
        run = captured(step).replay if cuda else step
        dist.barrier()
        times = chain_seconds(run, device, 16 if cuda else 2, 9 if cuda else 2)
        weight_bytes = sum(m.nbytes for w in mine for m in vars(w).values()) + step.head.nbytes
        rows.append({"name": name, **times, "weight_bytes_per_card": weight_bytes,
                     "logits_apart": round(apart, 5),
                     "first_seconds": round(first, 1)})
        dist.barrier()
        fresh(device)
    return {"context": context, "noise": noise, "rows": rows,
            "speedup": rows[0]["median"] / rows[1]["median"]}


def main() -> int:
    """Runs in every process; the first writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--model", default="full")
    options = parser.parse_args()
    rank = int(os.environ["RANK"])
    device = f"cuda:{rank}" if options.device == "cuda" else "cpu"
    if options.device == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group("nccl" if options.device == "cuda" else "gloo")
    try:
        found: dict[str, Any] = {"environment": environment(device), "backend": dist.get_backend(),
                                 "ranks": dist.get_world_size(),
                                 "exchange": exchange(device)}
        model, _ = load_language_model(options.model, device)
        found["decode"] = measure(model, 256 if options.model == "full" else 16,
                                  compiled=options.device == "cuda")
        if rank == 0:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    finally:
        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
