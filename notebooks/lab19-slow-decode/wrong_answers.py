# Named wrong answers of lab 19: what a learner might write, and the points that it keeps. Never built into a notebook.

# %% wrong="dissect" name="a batch shares the cache, too" keeps=0.5
def dissect(stack, baseline):
    def rate(entry):
        return entry["batch"] * entry["tokens_per_pass"] / (entry["weight_bytes"] + entry["cache_bytes"])

    first = [entry["name"] for entry in stack].index(baseline)
    return [(now["name"], rate(now) / rate(before)) for before, now in zip(stack[first:], stack[first + 1:])]

# %% wrong="dissect" name="each against the baseline" keeps=1.5
def dissect(stack, baseline):
    def rate(entry):
        return entry["batch"] * entry["tokens_per_pass"] / (entry["weight_bytes"] + entry["batch"] * entry["cache_bytes"])

    first = [entry["name"] for entry in stack].index(baseline)
    return [(now["name"], rate(now) / rate(stack[first])) for now in stack[first + 1:]]

# %% wrong="dissect" name="the baseline is always the first" keeps=2.5
def dissect(stack, baseline):
    def rate(entry):
        return entry["batch"] * entry["tokens_per_pass"] / (entry["weight_bytes"] + entry["batch"] * entry["cache_bytes"])

    return [(now["name"], rate(now) / rate(before)) for before, now in zip(stack, stack[1:])]

# %% wrong="dissect" name="only the weights are read" keeps=0.5
def dissect(stack, baseline):
    first = [entry["name"] for entry in stack].index(baseline)
    rate = [entry["batch"] * entry["tokens_per_pass"] / entry["weight_bytes"] for entry in stack]
    return [(stack[i]["name"], rate[i] / rate[i - 1]) for i in range(first + 1, len(stack))]

# %% wrong="parallel" name="a pipeline divides the latency" keeps=1.125
def parallel(plan, ranks, users, machine):
    work = machine["layers"] * machine["compute"]
    latency = work / ranks
    latency += machine["layers"] * 4 * (ranks - 1) * machine["step"] if plan == "TP" else (ranks - 1) * machine["hop"]
    return latency, 1000 * users / latency


def pick(ranks, machine):
    return min(("TP", "PP"), key=lambda plan: parallel(plan, ranks, ranks, machine)[0])

# %% wrong="parallel" name="a pipeline's rate grows with its stages" keeps=2.25
def parallel(plan, ranks, users, machine):
    work = machine["layers"] * machine["compute"]
    if plan == "TP":
        latency = work / ranks + machine["layers"] * 4 * (ranks - 1) * machine["step"]
        return latency, 1000 * users / latency
    return work + (ranks - 1) * machine["hop"], 1000 * users * ranks / work


def pick(ranks, machine):
    return min(("TP", "PP"), key=lambda plan: parallel(plan, ranks, ranks, machine)[0])

# %% wrong="parallel" name="all-reduces are free" keeps=1.125
def parallel(plan, ranks, users, machine):
    work = machine["layers"] * machine["compute"]
    latency = work / ranks if plan == "TP" else work + (ranks - 1) * machine["hop"]
    return latency, 1000 * users / latency


def pick(ranks, machine):
    return "TP"

# %% wrong="parallel" name="one token a pass" keeps=1.125
def parallel(plan, ranks, users, machine):
    work = machine["layers"] * machine["compute"]
    if plan == "TP":
        latency = work / ranks + machine["layers"] * 4 * (ranks - 1) * machine["step"]
    else:
        latency = work + (ranks - 1) * machine["hop"]
    return latency, 1000 / latency


def pick(ranks, machine):
    return min(("TP", "PP"), key=lambda plan: parallel(plan, ranks, ranks, machine)[0])

# %% wrong="bounds" name="busy means compute-bound" keeps=1
def bounds(row, card):
    times = {"launch": row["launches"] * card["launch_us"], "memory": (row["weight_bytes"] + row["cache_bytes"]) / card["gb_per_s"] / 1e3,
             "compute": row["flops"] / card["gflop_per_s"] / 1e3}
    return {**times, "regime": "compute" if row["busy"] >= 1 else max(times, key=times.get)}

# %% wrong="bounds" name="the cache is not read" keeps=0.5
def bounds(row, card):
    times = {"launch": row["launches"] * card["launch_us"], "memory": row["weight_bytes"] / card["gb_per_s"] / 1e3,
             "compute": row["flops"] / card["gflop_per_s"] / 1e3}
    return {**times, "regime": max(times, key=times.get)}

# %% wrong="bounds" name="milliseconds" keeps=0
def bounds(row, card):
    times = {"launch": row["launches"] * card["launch_us"] / 1e3, "memory": (row["weight_bytes"] + row["cache_bytes"]) / card["gb_per_s"] / 1e6,
             "compute": row["flops"] / card["gflop_per_s"] / 1e6}
    return {**times, "regime": max(times, key=times.get)}

# %% wrong="bounds" name="the shortest bounds" keeps=0
def bounds(row, card):
    times = {"launch": row["launches"] * card["launch_us"], "memory": (row["weight_bytes"] + row["cache_bytes"]) / card["gb_per_s"] / 1e3,
             "compute": row["flops"] / card["gflop_per_s"] / 1e3}
    return {**times, "regime": min(times, key=times.get)}

# %% wrong="measures" name="means of shares" keeps=1
def measures(rows, card):
    decode = [row for row in rows if row["kind"] == "decode"]
    ran = [row for row in rows if row["positions"]]
    regimes = [bounds(row, card)["regime"] for row in decode]
    return {
        "sequences": sum(row["sequences"] for row in decode) / len(decode),
        "free": sum(row["sequences"] < row["slots"] and row["waiting"] > 0 for row in decode) / len(decode),
        "waiting": max(row["waiting"] for row in rows),
        "useful": sum(row["useful"] / row["positions"] for row in ran) / len(ran),
        "cache_use": sum(row["cache_used"] / row["cache_reserved"] for row in decode) / len(decode),
        "idle": sum(row["kind"] == "idle" for row in rows) / len(rows),
        "regime": max(regimes, key=regimes.count),
    }

# %% wrong="measures" name="decode rows only" keeps=1
def measures(rows, card):
    decode = [row for row in rows if row["kind"] == "decode"]
    regimes = [bounds(row, card)["regime"] for row in decode]
    return {
        "sequences": sum(row["sequences"] for row in decode) / len(decode),
        "free": sum(row["sequences"] < row["slots"] and row["waiting"] > 0 for row in decode) / len(decode),
        "waiting": max(row["waiting"] for row in rows),
        "useful": sum(row["useful"] for row in decode) / sum(row["positions"] for row in decode),
        "cache_use": sum(row["cache_used"] for row in decode) / sum(row["cache_reserved"] for row in decode),
        "idle": sum(row["kind"] == "idle" for row in rows) / len(rows),
        "regime": max(regimes, key=regimes.count),
    }

# %% wrong="measures" name="a slot is free, whether somebody waits or not" keeps=1.5
def measures(rows, card):
    decode = [row for row in rows if row["kind"] == "decode"]
    regimes = [bounds(row, card)["regime"] for row in decode]
    return {
        "sequences": sum(row["sequences"] for row in decode) / len(decode),
        "free": sum(row["sequences"] < row["slots"] for row in rows) / len(rows),
        "waiting": max(row["waiting"] for row in rows),
        "useful": sum(row["useful"] for row in rows) / sum(row["positions"] for row in rows),
        "cache_use": sum(row["cache_used"] for row in decode) / sum(row["cache_reserved"] for row in decode),
        "idle": sum(row["kind"] == "idle" for row in rows) / len(rows),
        "regime": max(regimes, key=regimes.count),
    }

# %% wrong="measures" name="share of the budget" keeps=1
def measures(rows, card):
    decode = [row for row in rows if row["kind"] == "decode"]
    regimes = [bounds(row, card)["regime"] for row in decode]
    return {
        "sequences": sum(row["sequences"] for row in decode) / len(decode),
        "free": sum(row["sequences"] < row["slots"] and row["waiting"] > 0 for row in decode) / len(decode),
        "waiting": max(row["waiting"] for row in rows),
        "useful": sum(row["useful"] for row in rows) / sum(row["positions"] for row in rows),
        "cache_use": sum(row["cache_used"] for row in decode) / sum(row["cache_budget"] for row in decode),
        "idle": sum(row["kind"] == "idle" for row in rows) / len(rows),
        "regime": max(regimes, key=regimes.count),
    }

# %% wrong="diagnosis" name="speculation first" keeps=2
def right_fault():
    found = measures(sick.rows, CARD)
    if found["idle"] > 0.2:
        return "tokenizer", "idle", found["idle"]
    if found["regime"] == "launch":
        return "launch", "regime", "launch"
    if found["cache_use"] < 0.5:
        return "cache", "cache_use", found["cache_use"]
    if found["useful"] < 0.5:
        return "padding", "useful", found["useful"]
    return ("memory", "waiting", 0) if found["waiting"] == 0 else ("batch", "sequences", found["sequences"])


def diagnose():
    fault, measure, value = right_fault()
    return {"fault": fault, "measure": measure, "value": value, "order": ["speculation", "precision", "batching", "cache"]}

# %% wrong="diagnosis" name="the other remedies left out" keeps=3
def right_fault():
    found = measures(sick.rows, CARD)
    if found["idle"] > 0.2:
        return "tokenizer", "idle", found["idle"]
    if found["regime"] == "launch":
        return "launch", "regime", "launch"
    if found["cache_use"] < 0.5:
        return "cache", "cache_use", found["cache_use"]
    if found["useful"] < 0.5:
        return "padding", "useful", found["useful"]
    return ("memory", "waiting", 0) if found["waiting"] == 0 else ("batch", "sequences", found["sequences"])


def diagnose():
    fault, measure, value = right_fault()
    first = {"batch": "batching", "memory": "precision", "launch": "launches"}.get(fault, fault)
    return {"fault": fault, "measure": measure, "value": value, "order": [first]}

# %% wrong="diagnosis" name="the healthy service's numbers" keeps=3.5
def right_fault():
    found = measures(sick.rows, CARD)
    if found["idle"] > 0.2:
        return "tokenizer", "idle", found
    if found["regime"] == "launch":
        return "launch", "regime", found
    if found["cache_use"] < 0.5:
        return "cache", "cache_use", found
    if found["useful"] < 0.5:
        return "padding", "useful", found
    return ("memory", "waiting", found) if found["waiting"] == 0 else ("batch", "sequences", found)


def diagnose():
    fault, measure, found = right_fault()
    first = {"batch": "batching", "memory": "precision", "launch": "launches"}.get(fault, fault)
    rest = ["precision", "speculation", "batching", "cache"] if fault == "memory" else ["batching", "cache", "precision", "speculation"]
    return {"fault": fault, "measure": measure, "value": measures(healthy.rows, CARD)[measure], "order": [first, *(r for r in rest if r != first)]}

# %% wrong="diagnosis" name="busy, so buy faster arithmetic: no fault of the service" keeps=0
def diagnose():
    return {"fault": "compute", "measure": "busy", "value": 1.0, "order": ["precision"]}

# %% wrong="slow-decode" name="every sequence reads the weights" keeps={"slow-state": 0, "slow-axis": 0, "slow-trade-off": 0, "slow-counts": 0, "slow-names": 0, "slow-gain-cost": 0}
%%explain slow-decode
# state: Each sequence reads the weights again, and the cache is read once.
# axis: The weights grow from 23.6 MB to 94 MB because each sequence needs them.
# trade-off: Speculation makes decoding slower and needs less compute.
# bytes: 94.4 MB
# calls: 16
# regime: compute
# first: speculation
# gain: latency up
# cost: memory up

# %% wrong="slow-decode" name="faster matrix units for a busy device" keeps={"slow-state": 1, "slow-axis": 1, "slow-trade-off": 0, "slow-counts": 0.5, "slow-names": 0, "slow-gain-cost": 0.5}
%%explain slow-decode
# state: A decode step reads the weights once for the whole batch, and it reads the cache of each sequence on top.
# axis: The batch axis grows from 1 to 4 sequences, so the input is (4, 1), while the weights stay at 23.6 MB in every step.
# trade-off: With speculation the latency goes up but the FLOPs go down.
# bytes: 23.6 MB
# calls: 16
# regime: compute
# first: a faster GPU
# gain: latency down
# cost: latency up

# %% wrong="slow-decode" name="several words where one is asked" keeps={"slow-state": 0, "slow-axis": 0, "slow-trade-off": 1, "slow-counts": 0.5, "slow-names": 0, "slow-gain-cost": 1}
%%explain slow-decode
# state: weights cache batch sequences decode step bytes memory read
# axis: The batch grows to 8 sequences in each step.
# trade-off: Tokens come faster, and more FLOPs are spent.
# bytes: 5.9 MB
# calls: 21
# regime: memory or compute
# first: batching, cache, speculation
# gain: memory down
# cost: error up
