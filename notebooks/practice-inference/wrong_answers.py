# Named wrong answers of the practice on inference: what a learner might write, and the points that it keeps. Never built into a notebook.

# %% wrong="phases" name="decode is a small prefill" keeps=0.5
def phases(s):
    token = 2e3 * s["weights"] / s["flops"]
    prefill = token * s["prompt"]
    return {"prefill_ms": prefill, "step_ms": token, "prompt_share": s["prompt"] / (s["prompt"] + s["new"])}

# %% wrong="phases" name="everything waits for bytes" keeps=0.5
def phases(s):
    read = 1e3 * s["weights"] * s["itemsize"] / s["bandwidth"]
    return {"prefill_ms": read, "step_ms": read, "prompt_share": 1 / s["new"]}

# %% wrong="phases" name="the prompt dominates by its tokens" keeps=1
def phases(s):
    read = 1e3 * s["weights"] * s["itemsize"] / s["bandwidth"]
    return {"prefill_ms": 2e3 * s["weights"] * s["prompt"] / s["flops"], "step_ms": read,
            "prompt_share": s["prompt"] / (s["prompt"] + s["new"])}

# %% wrong="cache" name="counts the query heads" keeps=0
def cache(s):
    token = 2 * s["layers"] * s["query_heads"] * s["head_dim"] * s["itemsize"]
    return {"bytes_per_token": token, "gigabytes": s["batch"] * s["context"] * token / 1e9,
            "passes_at": s["weights"] * s["itemsize"] / (s["batch"] * token)}

# %% wrong="cache" name="keys only" keeps=0
def cache(s):
    token = s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"]
    return {"bytes_per_token": token, "gigabytes": s["batch"] * s["context"] * token / 1e9,
            "passes_at": s["weights"] * s["itemsize"] / (s["batch"] * token)}

# %% wrong="cache" name="one cache for the whole batch" keeps=1
def cache(s):
    token = 2 * s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"]
    return {"bytes_per_token": token, "gigabytes": s["context"] * token / 1e9, "passes_at": s["weights"] * s["itemsize"] / token}

# %% wrong="batching" name="the gain is the batch" keeps=0
def batching(s):
    read = 1e3 * s["weights"] * s["itemsize"] / s["bandwidth"]
    return {"alone_ms": read, "together_ms": read, "gain": s["batch"]}

# %% wrong="batching" name="the cache is shared like the weights" keeps=0.5
def batching(s):
    kept = 2 * s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"] * s["context"]
    alone = 1e3 * (s["weights"] * s["itemsize"] + kept) / s["bandwidth"]
    return {"alone_ms": alone, "together_ms": alone, "gain": s["batch"]}

# %% wrong="batching" name="every request reads the weights" keeps=0.5
def batching(s):
    kept = 2 * s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"] * s["context"]
    alone = 1e3 * (s["weights"] * s["itemsize"] + kept) / s["bandwidth"]
    return {"alone_ms": alone, "together_ms": s["batch"] * alone, "gain": 1.0}

# %% wrong="continuous" name="slots that are never empty" keeps=1
def continuous(s):
    lengths, slots = s["outputs"], s["slots"]
    static = sum(max(lengths[i : i + slots]) for i in range(0, len(lengths), slots))
    return {"static": static, "continuous": -(-sum(lengths) // slots), "idle": slots * static - sum(lengths)}

# %% wrong="continuous" name="everybody at once" keeps=0
def continuous(s):
    longest = max(s["outputs"])
    return {"static": longest, "continuous": -(-sum(s["outputs"]) // s["slots"]), "idle": s["slots"] * longest - sum(s["outputs"])}

# %% wrong="continuous" name="the empty place of the last batch is forgotten" keeps=1.5
def continuous(s):
    lengths, slots = s["outputs"], s["slots"]
    batches = [lengths[i : i + slots] for i in range(0, len(lengths), slots)]
    free = [0] * slots
    for length in lengths:
        free[free.index(min(free))] += length
    return {"static": sum(max(b) for b in batches), "continuous": max(free), "idle": sum(max(b) * len(b) - sum(b) for b in batches)}

# %% wrong="paging" name="a request is one page" keeps=1
def paging(s):
    token = 2 * s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"]
    return {"reserved": s["cache_memory"] // (s["longest"] * token), "paged": s["cache_memory"] // (s["page"] * token),
            "wasted": 1 - s["typical"] / s["longest"]}

# %% wrong="paging" name="paging lets in no more" keeps=1
def paging(s):
    token = 2 * s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"]
    whole = s["cache_memory"] // (s["longest"] * token)
    return {"reserved": whole, "paged": whole, "wasted": 1 - s["typical"] / s["longest"]}

# %% wrong="paging" name="reserves what is used, and calls that the waste" keeps=1
def paging(s):
    token = 2 * s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"]
    pages = s["cache_memory"] // (s["page"] * token)
    return {"reserved": s["cache_memory"] // (s["typical"] * token), "paged": pages // -(-s["typical"] // s["page"]),
            "wasted": s["typical"] / s["longest"]}

# %% wrong="speculation" name="every kept token counts, wherever it stands" keeps=0.5
def speculation(s):
    a, g = s["accepted"], s["drafted"]
    return {"all_kept": a**g, "tokens": a * g + 1, "speedup": (a * g + 1) / (1 + g * s["draft_cost"])}

# %% wrong="speculation" name="the target adds nothing" keeps=0.5
def speculation(s):
    a, g = s["accepted"], s["drafted"]
    tokens = sum(a**k for k in range(1, g + 1))
    return {"all_kept": a**g, "tokens": tokens, "speedup": tokens / (1 + g * s["draft_cost"])}

# %% wrong="speculation" name="the draft is free" keeps=1
def speculation(s):
    a, g = s["accepted"], s["drafted"]
    tokens = sum(a**k for k in range(g + 1))
    return {"all_kept": a, "tokens": tokens, "speedup": tokens}

# %% wrong="quantization" name="a quarter of the bytes, four times as fast" keeps=0
def quantization(s):
    gain = s["itemsize"] / s["quantized"]
    return {"step_gain": gain, "batch_gain": gain, "prefill_gain": gain}

# %% wrong="quantization" name="the prefill gains as well" keeps=1
def quantization(s):
    kept = 2 * s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"] * s["context"]
    before, after = s["weights"] * s["itemsize"], s["weights"] * s["quantized"]
    return {"step_gain": (before + kept) / (after + kept), "prefill_gain": before / after,
            "batch_gain": (before + s["batch"] * kept) / (after + s["batch"] * kept)}

# %% wrong="quantization" name="one cache for the whole batch" keeps=1.5
def quantization(s):
    kept = 2 * s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"] * s["context"]
    gain = (s["weights"] * s["itemsize"] + kept) / (s["weights"] * s["quantized"] + kept)
    return {"step_gain": gain, "batch_gain": gain, "prefill_gain": 1.0}

# %% wrong="dissect" name="everything against the baseline" keeps=1.5
def dissect(ledger):
    attacks = {"continuous batching": "sharing", "paged attention": "room", "int4 weights": "bytes", "speculation": "passes", "grouped heads": "cache"}
    own = {name: rate / before for (name, rate), (_, before) in zip(ledger[1:], ledger)}
    whole = ledger[-1][1] / ledger[0][1]
    return {"factors": {name: rate / ledger[0][1] for name, rate in ledger[1:]}, "attacks": {name: attacks[name] for name in own},
            "against_batched": whole / own.get("continuous batching", 1.0)}

# %% wrong="dissect" name="int4 weights and paging shrink the cache" keeps=1.5
def dissect(ledger):
    attacks = {"continuous batching": "sharing", "paged attention": "cache", "int4 weights": "cache", "speculation": "passes", "grouped heads": "room"}
    own = {name: rate / before for (name, rate), (_, before) in zip(ledger[1:], ledger)}
    whole = ledger[-1][1] / ledger[0][1]
    return {"factors": own, "attacks": {name: attacks[name] for name in own}, "against_batched": whole / own.get("continuous batching", 1.0)}

# %% wrong="dissect" name="the claim holds for everybody" keeps=1.5
def dissect(ledger):
    attacks = {"continuous batching": "sharing", "paged attention": "room", "int4 weights": "bytes", "speculation": "passes", "grouped heads": "cache"}
    own = {name: rate / before for (name, rate), (_, before) in zip(ledger[1:], ledger)}
    return {"factors": own, "attacks": {name: attacks[name] for name in own}, "against_batched": ledger[-1][1] / ledger[0][1]}

# %% wrong="split" name="a pipeline divides the token's time" keeps=1
def split(s):
    share = 1e3 * s["weights"] * s["itemsize"] / s["bandwidth"] / s["devices"]
    return {"tensor_ms": share + 2 * s["layers"] * s["sum_ms"], "pipeline_ms": share + (s["devices"] - 1) * s["hop_ms"],
            "idle": 1 - 1 / s["devices"]}

# %% wrong="split" name="sums cost nothing" keeps=1.5
def split(s):
    step = 1e3 * s["weights"] * s["itemsize"] / s["bandwidth"]
    return {"tensor_ms": step / s["devices"], "pipeline_ms": step + (s["devices"] - 1) * s["hop_ms"], "idle": 1 - 1 / s["devices"]}

# %% wrong="split" name="a pipeline is always full" keeps=1.5
def split(s):
    step = 1e3 * s["weights"] * s["itemsize"] / s["bandwidth"]
    return {"tensor_ms": step / s["devices"] + 2 * s["layers"] * s["sum_ms"], "pipeline_ms": step + (s["devices"] - 1) * s["hop_ms"], "idle": 0}

# %% wrong="plan" name="100% is compute-bound" keeps=0
def plan(report):
    if report["utilization"] > 0.95:
        return {"waits_for": "arithmetic", "do": []}
    return {"waits_for": "bytes", "do": ["batch", "cache", "precision", "speculation"]}

# %% wrong="plan" name="decode is always memory-bound" keeps=1
def plan(report):
    waiting, room = report["waiting"] > 0, report["free"] > 0.1
    applies = {"batch": waiting and room, "cache": waiting and not room, "precision": report["itemsize"] >= 2, "speculation": any(one["same_tokenizer"] and one["parameters"] <= 0.2 for one in report["drafts"])}
    return {"waits_for": "bytes", "do": [what for what, yes in applies.items() if yes]}

# %% wrong="plan" name="a larger batch without room" keeps=1.5
def plan(report):
    times = {"launches": report["launch_ms"], "bytes": report["bytes_ms"], "arithmetic": report["flops_ms"]}
    waits_for = max(times, key=times.get)
    if waits_for != "bytes":
        return {"waits_for": waits_for, "do": ["graphs"] if waits_for == "launches" else []}
    applies = {"batch": report["waiting"] > 0, "precision": report["itemsize"] >= 2, "speculation": any(one["same_tokenizer"] and one["parameters"] <= 0.2 for one in report["drafts"])}
    return {"waits_for": "bytes", "do": [what for what, yes in applies.items() if yes]}

# %% wrong="plan" name="speculation first" keeps=1
def plan(report):
    times = {"launches": report["launch_ms"], "bytes": report["bytes_ms"], "arithmetic": report["flops_ms"]}
    waits_for = max(times, key=times.get)
    if waits_for != "bytes":
        return {"waits_for": waits_for, "do": ["graphs"] if waits_for == "launches" else []}
    waiting, room = report["waiting"] > 0, report["free"] > 0.1
    applies = {"speculation": any(one["same_tokenizer"] and one["parameters"] <= 0.2 for one in report["drafts"]), "batch": waiting and room, "cache": waiting and not room, "precision": report["itemsize"] >= 2}
    return {"waits_for": "bytes", "do": [what for what, yes in applies.items() if yes]}

# %% wrong="plan" name="any small model can draft" keeps=1.5
def plan(report):
    times = {"launches": report["launch_ms"], "bytes": report["bytes_ms"], "arithmetic": report["flops_ms"]}
    waits_for = max(times, key=times.get)
    if waits_for != "bytes":
        return {"waits_for": waits_for, "do": ["graphs"] if waits_for == "launches" else []}
    waiting, room = report["waiting"] > 0, report["free"] > 0.1
    small = any(one["parameters"] <= 0.2 for one in report["drafts"])
    applies = {"batch": waiting and room, "cache": waiting and not room, "precision": report["itemsize"] >= 2, "speculation": small}
    return {"waits_for": "bytes", "do": [what for what, yes in applies.items() if yes]}

# %% wrong="two-plans" name="the draft writes the text" keeps={"two-plans-stages": 1, "two-plans-gain-cost": 1, "two-plans-speculation": 0, "two-plans-trade-off": 1}
# %%explain two-plans
# speculation: The draft writes most of the text, so the quality is a little worse, and the target is used for the prompt.
# trade-off: Tensor parallelism lowers the latency of a token, but it needs more communication.
# stages: 1
# gain: latency down
# cost: communication up

# %% wrong="two-plans" name="a pipeline works on one token with all devices" keeps={"two-plans-stages": 0, "two-plans-gain-cost": 0, "two-plans-speculation": 1, "two-plans-trade-off": 0}
# %%explain two-plans
# speculation: The draft proposes a few tokens and the target verifies these tokens in one pass.
# trade-off: Tensor parallelism raises the latency of a token and needs less communication.
# stages: 4
# gain: communication down
# cost: latency up

# %% wrong="two-plans" name="an essay without a number or a direction" keeps={"two-plans-stages": 0, "two-plans-gain-cost": 0, "two-plans-speculation": 0, "two-plans-trade-off": 0}
# %%explain two-plans
# speculation: Speculative decoding is a modern technique that is very important for serving.
# trade-off: There are advantages and disadvantages, depending on the situation.
# stages: it depends
# gain: efficiency
# cost: complexity
