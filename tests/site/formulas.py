"""The calculators' arithmetic in Python: the labs' and the handbook's own functions where there are some.

What no lab computes stands here, with its source. A function takes the inputs of the calculator of its name
and returns
those outputs that it knows another way to.
"""

from __future__ import annotations

import importlib.util
import math
import random
from functools import cache
from types import ModuleType

from inferlab.lab.kits.decode.roofline import Rates, Sizes, call_cost
from tests import ROOT


@cache
def handbook(name: str) -> ModuleType:
    """A script of `handbook/figures`, which has the functions that the section's numbers are made with."""
    path = ROOT / "handbook" / "figures" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"handbook_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def config(x):
    """The inputs as a Llama-style config."""
    return {
        "hidden_size": x.get("hidden", 1),
        "intermediate_size": x.get("intermediate", 1),
        "num_hidden_layers": x["layers"],
        "num_attention_heads": x["heads"],
        "num_key_value_heads": x["kv_heads"],
        "head_dim": x["head_dim"],
        "vocab_size": x.get("vocab", 1),
    }


def kv_cache(x):
    """`Sizes.cache_bytes`; a latent cache is one vector a token and layer (DeepSeek-V2, section 2.1.2)."""
    shared, own = Sizes.of(config(x)), Sizes.of(config(x) | {"num_key_value_heads": x["heads"]})
    kept = min(x["tokens"], x["window"]) if x["window"] else x["tokens"]
    total = (
        x["layers"] * x["latent"] * kept * x["batch"] * x["bytes"]
        if x["latent"]
        else shared.cache_bytes(kept * x["batch"], x["bytes"])
    )
    unshared = own.cache_bytes(x["tokens"] * x["batch"], x["bytes"])
    return {
        "total": total,
        "sequence": total / x["batch"],
        "token": total / x["batch"] / kept,
        "unshared": unshared,
        "smaller": unshared / total,
    }


def weights(x):
    """Parameters as `Sizes` counts them; codes and one scale of 16 bits a group, as lab 17's handbook
    section has it."""
    sizes = Sizes.of(config(x))
    tables = sizes.head_weights * (1 if x["tied"] else 2)
    bits = x["bits"] + (16 / x["group"] if x["group"] else 0)
    linear, rest = sizes.layer_weights * bits / 8, (tables + sizes.norm_weights) * 2
    parameters = sizes.layer_weights + tables + sizes.norm_weights
    return {
        "parameters": parameters,
        "half": 2 * parameters,
        "bits": bits,
        "linear": linear,
        "rest": rest,
        "total": linear + rest,
        "smaller": 2 * parameters / (linear + rest),
    }


def attention(x):
    """Scores, (batch, heads, queries, keys); FLOPs as `call_cost` counts them; FlashAttention's statistics,
    algorithm 1."""
    rows, d = x["batch"] * x["heads"], x["head_dim"]
    cost = call_cost(config({"layers": 1, "kv_heads": 1, **x}), x["queries"], x["keys"], x["batch"])
    scores, fused = (
        math.prod((x["batch"], x["heads"], x["queries"], x["keys"])) * x["bytes"],
        4 * rows * x["queries"],
    )
    operands = sum(
        rows * length * d * x["bytes"] for length in (x["queries"], x["keys"], x["keys"], x["queries"])
    )
    masked = cost.attention_flops * x["keys"] // (x["keys"] + x["queries"])
    return {
        "scores": scores,
        "operands": operands,
        "fused": fused,
        "flops": masked,
        "ratio": (scores + operands) / (fused + operands),
    }


def tokens(x):
    """Latents as diffusers 0.42 makes them: `WanPipeline.prepare_latents`, then patches; a picture is a
    clip of one frame."""
    frames = (x["frames"] - 1) // x["vae_time"] + 1
    height, width = x["height"] // x["vae"], x["width"] // x["vae"]
    picture = frames * (height // x["patch"]) * (width // x["patch"])
    total = picture + x["text"]
    return {
        "height": height,
        "width": width,
        "frames": frames,
        "picture": picture,
        "tokens": total,
        "pairs": total**2,
        "text_share": x["text"] / total if total else 0,
    }


def roofline(x):
    """`call_cost` and `Rates` of lab 12's kit."""
    cost = call_cost(config(x), x["new_tokens"], x["context"], x["batch"], itemsize=x["bytes"])
    rates = Rates("a card", x["tflops"] * 1e12, x["tbytes"] * 1e12)
    least = cost.flops / rates.roof(cost.intensity)
    return {
        "flops": cost.flops,
        "weights": cost.weight_bytes,
        "cache": cost.cache_read_bytes + cost.cache_written_bytes,
        "bytes": cost.bytes,
        "intensity": cost.intensity,
        "ridge": rates.ridge,
        "least": least,
        "compute": cost.flops / rates.flops_per_s,
        "memory": cost.bytes / rates.bytes_per_s,
        "rate": x["batch"] / least,
    }


def vae_tiling(x):
    """`decode_bytes`, `tile_starts` and `overlap_work` of the handbook's section; the class tiles only what
    is larger than a tile."""
    book, latents = handbook("memory_optimization"), x["side"] // 8
    tiled = latents > x["tile"]
    starts = book.tile_starts(latents, x["tile"], x["overlap"])
    work = (sum(min(x["tile"], latents - at) for at in starts) / latents) ** 2
    if x["overlap"] == 0.25:
        assert work == book.overlap_work(latents, x["tile"])

    def peak(batch, side):
        return book.decode_bytes(batch, side, x["bytes"], x["channels"])

    return {
        "tiles": len(starts) ** 2 if tiled else 1,
        "work": work if tiled else 1,
        "plain": peak(x["batch"], x["side"]),
        "slicing": peak(1, x["side"]),
        "tiling": peak(x["batch"], 8 * x["tile"] if tiled else x["side"]),
    }


def paging(x):
    """Requests one after the other until the pool is empty, as the handbook's `fits` takes them, here all
    of one length."""
    blocks = int(x["pool"] * 1e9 // (x["page"] * x["position"]))
    pages = -(-x["length"] // x["page"])
    shared = min(x["prefix"] // x["page"], pages - 1)
    return {
        "blocks": blocks,
        "paged": blocks // pages,
        "sharing": max(0, (blocks - shared) // (pages - shared)),
        "reserved": int(x["pool"] * 1e9 // (x["reserve"] * x["position"])),
        "paged_empty": 1 - x["length"] / (pages * x["page"]),
        "reserved_empty": 1 - x["length"] / x["reserve"],
    }


def speculation(x):
    """`expected_tokens` and `best_gamma` of the handbook's section."""
    book = handbook("speculative_decoding")
    best, speedup = book.best_gamma(x["accept"], x["cost"], x["slope"])
    some, time = (
        book.expected_tokens(x["accept"], x["drafted"]),
        x["drafted"] * x["cost"] + 1 + x["slope"] * x["drafted"],
    )
    return {"tokens": some, "time": time, "speedup": some / time, "best": best, "best_speedup": speedup}


def tensor_parallel(x):
    """`messages` of the handbook's section; a ring all-reduce has 2(n - 1) steps (Patarasuk and Yuan,
    2009)."""
    said = handbook("parallelism").messages(x["layers"], x["hidden"] * x["rows"], x["bytes"], x["ranks"])
    steps = said["exchanges"] * 2 * (x["ranks"] - 1)
    wire, waiting = said["sent"] / (x["link"] * 1e9), steps * x["latency"] / 1e6
    return {
        "exchanges": said["exchanges"],
        "payload": said["payload"],
        "sent": said["sent"],
        "steps": steps,
        "wire": wire,
        "waiting": waiting,
        "seconds": wire + waiting,
    }


def pipeline(x):
    """`bubble` of the handbook's section."""
    bubble = handbook("parallelism").bubble(x["stages"], x["microbatches"])
    return {
        "bubble": bubble,
        "ticks": x["stages"] - 1 + x["microbatches"],
        "speedup": x["stages"] * (1 - bubble),
    }


def zero(x):
    """Rajbhandari et al., ZeRO, figure 1 and section 7: a reduce-scatter and one or two gathers of (n -
    1)/n of the weights."""
    count, n = x["billions"] * 1e9, x["ranks"]
    parts = {
        "weights": (x["weight_bytes"], 3),
        "gradients": (x["gradient_bytes"], 2),
        "optimizer": (x["optimizer_bytes"], 1),
    }
    held = {name: count * size / (n if x["stage"] >= stage else 1) for name, (size, stage) in parts.items()}
    return held | {
        "total": sum(held.values()),
        "traffic": (3 if x["stage"] == 3 else 2) * (n - 1) / n * count * x["weight_bytes"],
    }


def guidance(x):
    """Counted step by step: a step asks once for each evaluation, and once more for each where guidance is
    on."""
    guided = math.floor(x["steps"] * x["share"] + 0.5) if x["guided"] else 0
    calls = separate = rows = 0
    for step in range(x["steps"]):
        asked = 2 if step < guided else 1
        calls += x["evaluations"]
        separate += asked * x["evaluations"]
        rows += asked * x["evaluations"] * x["pictures"]
    return {
        "guided": guided,
        "calls": calls,
        "separate": separate,
        "rows": rows,
        "batch": x["pictures"] * (2 if guided else 1),
        "cost": rows / (x["steps"] * x["evaluations"] * x["pictures"]),
    }


def drawn(inputs, rng: random.Random):
    """Random values of a calculator's inputs: whole numbers spread by factors, others even, 0 where it may
    be 0."""
    x = {}
    for name, _, first, *limits in inputs:
        if isinstance(limits[0], dict):
            chosen = float(rng.choice(list(limits[0])))
            x[name] = int(chosen) if chosen == int(chosen) else chosen
        elif all(isinstance(value, int) for value in (first, *limits)):
            low, high = limits
            zero = low == 0 and rng.random() < 0.3
            x[name] = 0 if zero else round(math.exp(rng.uniform(math.log(max(1, low)), math.log(high))))
        else:
            x[name] = round(rng.uniform(*limits), 2) or limits[1]
    return x
