# Named wrong answers of lab 14: what a learner might write, and the points that it keeps. Never built into a notebook.

# %% wrong="forecast" name="a packed call is a rectangle, too" keeps=2
def forecast(lengths, new_tokens, slots):
    count, longest = len(lengths), max(lengths)
    inside = min(slots, count)
    return {"padded_first": (count, longest), "padded_next": (count, 1), "padded_calls": new_tokens,
            "padding": count * longest - sum(lengths), "packed_first": (inside, max(lengths[:slots])), "packed_next": (inside, 1),
            "packed_calls": -(-count // slots) * new_tokens}

# %% wrong="forecast" name="everybody fits, whatever the slots" keeps=1
def forecast(lengths, new_tokens, slots):
    count, longest = len(lengths), max(lengths)
    return {"padded_first": (count, longest), "padded_next": (count, 1), "padded_calls": new_tokens,
            "padding": count * longest - sum(lengths), "packed_first": (1, sum(lengths)), "packed_next": (1, count),
            "packed_calls": new_tokens}

# %% wrong="forecast" name="a group that is not full is no group" keeps=2
def forecast(lengths, new_tokens, slots):
    count, longest = len(lengths), max(lengths)
    return {"padded_first": (count, longest), "padded_next": (count, 1), "padded_calls": new_tokens,
            "padding": count * longest - sum(lengths), "packed_first": (1, sum(lengths[:slots])), "packed_next": (1, min(slots, count)),
            "packed_calls": count // slots * new_tokens}

# %% wrong="forecast" name="one call for each request and token" keeps=2
def forecast(lengths, new_tokens, slots):
    count, longest = len(lengths), max(lengths)
    return {"padded_first": (count, longest), "padded_next": (count, 1), "padded_calls": count * new_tokens,
            "padding": count * longest - sum(lengths), "packed_first": (1, sum(lengths[:slots])), "packed_next": (1, min(slots, count)),
            "packed_calls": -(-count // slots) * new_tokens}

# %% wrong="forecast" name="padding in every call" keeps=2.5
def forecast(lengths, new_tokens, slots):
    count, longest = len(lengths), max(lengths)
    return {"padded_first": (count, longest), "padded_next": (count, 1), "padded_calls": new_tokens,
            "padding": (count * longest - sum(lengths)) * new_tokens, "packed_first": (1, sum(lengths[:slots])),
            "packed_next": (1, min(slots, count)), "packed_calls": -(-count // slots) * new_tokens}

# %% wrong="intensity" name="each request reads the weights" keeps=0.5
def intensity(batch, context, sizes):
    flops = batch * (2 * sizes["linear"] + sizes["attention"] * context)
    return flops / (batch * (sizes["linear"] * sizes["itemsize"] + context * sizes["cache"]))

# %% wrong="intensity" name="the cache is shared as well" keeps=1
def intensity(batch, context, sizes):
    flops = batch * (2 * sizes["linear"] + sizes["attention"] * context)
    return flops / (sizes["linear"] * sizes["itemsize"] + context * sizes["cache"])

# %% wrong="intensity" name="the cache costs nothing" keeps=1
def intensity(batch, context, sizes):
    return batch * (2 * sizes["linear"] + sizes["attention"] * context) / (sizes["linear"] * sizes["itemsize"])

# %% wrong="intensity" name="one FLOP for a multiplication and an addition" keeps=0
def intensity(batch, context, sizes):
    flops = batch * (sizes["linear"] + sizes["attention"] * context)
    return flops / (sizes["linear"] * sizes["itemsize"] + batch * context * sizes["cache"])

# %% wrong="critical" name="the critical batch is the ridge" keeps=0.5
def critical_batch(ridge, context, sizes):
    return round(ridge)

# %% wrong="critical" name="the cache is forgotten" keeps=1
def critical_batch(ridge, context, sizes):
    return round(ridge * sizes["itemsize"] / 2)

# %% wrong="critical" name="rounded down" keeps=1.5
def critical_batch(ridge, context, sizes):
    gain = 2 * sizes["linear"] + context * (sizes["attention"] - ridge * sizes["cache"])
    return int(ridge * sizes["linear"] * sizes["itemsize"] / gain) if gain > 0 else None

# %% wrong="critical" name="a batch of the size of the quotient, whatever its sign" keeps=1.5
def critical_batch(ridge, context, sizes):
    from math import ceil

    gain = 2 * sizes["linear"] + context * (sizes["attention"] - ridge * sizes["cache"])
    return ceil(ridge * sizes["linear"] * sizes["itemsize"] / abs(gain))

# %% wrong="pad-left" name="padding on the right" keeps=0.5
def pad_left(prompts, pad):
    longest = max(map(len, prompts))
    ids = [list(p) + [pad] * (longest - len(p)) for p in prompts]
    mask = [[1] * len(p) + [0] * (longest - len(p)) for p in prompts]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}

# %% wrong="pad-left" name="a mask of ones" keeps=1
def pad_left(prompts, pad):
    longest = max(map(len, prompts))
    ids = torch.tensor([[pad] * (longest - len(p)) + list(p) for p in prompts])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

# %% wrong="pad-left" name="whatever is not the padding token is a token" keeps=1
def pad_left(prompts, pad):
    longest = max(map(len, prompts))
    ids = torch.tensor([[pad] * (longest - len(p)) + list(p) for p in prompts])
    return {"input_ids": ids, "attention_mask": (ids != pad).long()}

# %% wrong="pad-left" name="the mask marks the padding" keeps=1
def pad_left(prompts, pad):
    longest = max(map(len, prompts))
    ids = [[pad] * (longest - len(p)) + list(p) for p in prompts]
    mask = [[1] * (longest - len(p)) + [0] * len(p) for p in prompts]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}

# %% wrong="static" name="a free slot is filled at once" keeps=0
def static(arrivals, outputs, slots):
    waiting, running, iterations = list(range(len(arrivals))), {}, []
    while waiting or running:
        while waiting and len(running) < slots and arrivals[waiting[0]] <= len(iterations):
            newcomer = waiting.pop(0)
            running[newcomer] = outputs[newcomer]
        iterations.append(sorted(running))
        running = {r: left - 1 for r, left in running.items() if left > 1}
    return iterations

# %% wrong="static" name="everybody gets tokens until the batch ends" keeps=0.5
def static(arrivals, outputs, slots):
    waiting, iterations = list(range(len(arrivals))), []
    while waiting:
        batch = [r for r in waiting if arrivals[r] <= len(iterations)][:slots]
        waiting = [r for r in waiting if r not in batch]
        iterations += [list(batch)] * max((outputs[r] for r in batch), default=1)
    return iterations

# %% wrong="static" name="waits until the batch is full" keeps=0.5
def static(arrivals, outputs, slots):
    waiting, iterations = list(range(len(arrivals))), []
    while waiting:
        batch, waiting = waiting[:slots], waiting[slots:]
        while len(iterations) < arrivals[batch[-1]]:
            iterations.append([])
        for k in range(max(outputs[r] for r in batch)):
            iterations.append([r for r in batch if outputs[r] > k])
    return iterations

# %% wrong="static" name="arrivals do not matter" keeps=0.5
def static(arrivals, outputs, slots):
    iterations = []
    for start in range(0, len(outputs), slots):
        batch = range(len(outputs))[start:start + slots]
        for k in range(max(outputs[r] for r in batch)):
            iterations.append([r for r in batch if outputs[r] > k])
    return iterations

# %% wrong="continuous" name="a batch ends together" keeps=0.5
def continuous(arrivals, outputs, slots):
    waiting, iterations = list(range(len(arrivals))), []
    while waiting:
        batch = [r for r in waiting if arrivals[r] <= len(iterations)][:slots]
        waiting = [r for r in waiting if r not in batch]
        if not batch:
            iterations.append([])
        for k in range(max((outputs[r] for r in batch), default=0)):
            iterations.append([r for r in batch if outputs[r] > k])
    return iterations

# %% wrong="continuous" name="a slot stays empty for one iteration" keeps=0.5
def continuous(arrivals, outputs, slots):
    waiting, running, iterations = list(range(len(arrivals))), {}, []
    while waiting or any(running.values()):
        while waiting and len(running) < slots and arrivals[waiting[0]] <= len(iterations):
            newcomer = waiting.pop(0)
            running[newcomer] = outputs[newcomer]
        iterations.append(sorted(r for r, left in running.items() if left))
        running = {r: left - 1 for r, left in running.items() if left}
    return iterations

# %% wrong="continuous" name="the shortest goes first" keeps=0.5
def continuous(arrivals, outputs, slots):
    waiting, running, iterations = list(range(len(arrivals))), {}, []
    while waiting or running:
        here = sorted((r for r in waiting if arrivals[r] <= len(iterations)), key=lambda r: outputs[r])
        for newcomer in here[: slots - len(running)]:
            waiting.remove(newcomer)
            running[newcomer] = outputs[newcomer]
        iterations.append(sorted(running))
        running = {r: left - 1 for r, left in running.items() if left > 1}
    return iterations

# %% wrong="continuous" name="runs requests before they arrive" keeps=1.5
def continuous(arrivals, outputs, slots):
    waiting, running, iterations = list(range(len(arrivals))), {}, []
    while waiting or running:
        while waiting and len(running) < slots:
            newcomer = waiting.pop(0)
            running[newcomer] = outputs[newcomer]
        iterations.append(sorted(running))
        running = {r: left - 1 for r, left in running.items() if left > 1}
    return iterations

# %% wrong="report" name="only iterations in which somebody runs" keeps=1.5
def report(iterations, arrivals, slots):
    first = {}
    for at, running in enumerate(iterations):
        for request in running:
            first.setdefault(request, at)
    waits = sorted(first[r] - arrivals[r] for r in first)
    busy = [now for now in iterations if now]
    return {"iterations": len(iterations), "occupancy": sum(map(len, busy)) / (slots * len(busy)),
            "median": waits[-(-len(waits) // 2) - 1], "p99": waits[-(-99 * len(waits) // 100) - 1]}

# %% wrong="report" name="waiting until the answer is complete" keeps=0.5
def report(iterations, arrivals, slots):
    last = {}
    for at, running in enumerate(iterations):
        for request in running:
            last[request] = at
    waits = sorted(last[r] - arrivals[r] for r in last)
    return {"iterations": len(iterations), "occupancy": sum(map(len, iterations)) / (slots * len(iterations)),
            "median": waits[-(-len(waits) // 2) - 1], "p99": waits[-(-99 * len(waits) // 100) - 1]}

# %% wrong="report" name="the worst wait for the 99th percentile" keeps=1
def report(iterations, arrivals, slots):
    first = {}
    for at, running in enumerate(iterations):
        for request in running:
            first.setdefault(request, at)
    waits = sorted(first[r] - arrivals[r] for r in first)
    return {"iterations": len(iterations), "occupancy": sum(map(len, iterations)) / (slots * len(iterations)),
            "median": waits[-(-len(waits) // 2) - 1], "p99": max(waits)}

# %% wrong="report" name="the mean for the median" keeps=1
def report(iterations, arrivals, slots):
    first = {}
    for at, running in enumerate(iterations):
        for request in running:
            first.setdefault(request, at)
    waits = sorted(first[r] - arrivals[r] for r in first)
    return {"iterations": len(iterations), "occupancy": sum(map(len, iterations)) / (slots * len(iterations)),
            "median": sum(waits) // len(waits), "p99": waits[-(-99 * len(waits) // 100) - 1]}

# %% wrong="choose" name="enough for the median" keeps=0
def choose():
    def seen(scheduler, slots):
        return report(scheduler(service.arrivals, service.outputs, slots), service.arrivals, slots)

    slots = next(n for n in range(1, 100) if seen(continuous, n)["median"] <= LIMIT)
    cache, weights = 8000 * llama["cache"], llama["linear"] * llama["itemsize"]
    return {"slots": slots, "static": seen(static, slots)["p99"], "slower": (weights + slots * cache) / (weights + cache)}

# %% wrong="choose" name="a static batch would do the same" keeps=1.5
def choose():
    def seen(scheduler, slots):
        return report(scheduler(service.arrivals, service.outputs, slots), service.arrivals, slots)["p99"]

    slots = next(n for n in range(1, 100) if seen(continuous, n) <= LIMIT)
    cache, weights = 8000 * llama["cache"], llama["linear"] * llama["itemsize"]
    return {"slots": slots, "static": seen(continuous, slots), "slower": (weights + slots * cache) / (weights + cache)}

# %% wrong="choose" name="batching makes everybody faster" keeps=1.5
def choose():
    def seen(scheduler, slots):
        return report(scheduler(service.arrivals, service.outputs, slots), service.arrivals, slots)["p99"]

    slots = next(n for n in range(1, 100) if seen(continuous, n) <= LIMIT)
    return {"slots": slots, "static": seen(static, slots), "slower": 1 / slots}

# %% wrong="choose" name="twice the requests, twice the time" keeps=1.5
def choose():
    def seen(scheduler, slots):
        return report(scheduler(service.arrivals, service.outputs, slots), service.arrivals, slots)["p99"]

    slots = next(n for n in range(1, 100) if seen(continuous, n) <= LIMIT)
    return {"slots": slots, "static": seen(static, slots), "slower": float(slots)}

# %% wrong="batch-in-words" name="the batch ends together" keeps={"batch-words-shape": 1, "batch-words-idle": 0, "batch-words-gain-cost": 1, "batch-words-state": 0, "batch-words-axis": 1, "batch-words-trade-off": 1}
# %%explain batch-in-words
# state: The scheduler waits for the longest request, and then the next batch starts.
# axis: In the padded run the batch axis is 6, one row for each request; in the packed run it is 1 and the second axis holds 3 tokens.
# trade-off: A larger batch gives a higher throughput, but a higher latency for each token.
# shape: (1, 3)
# idle: 0
# gain: throughput up
# cost: latency up

# %% wrong="batch-in-words" name="batching makes everybody faster" keeps={"batch-words-shape": 1, "batch-words-idle": 1, "batch-words-gain-cost": 0, "batch-words-state": 1, "batch-words-axis": 1, "batch-words-trade-off": 0}
# %%explain batch-in-words
# state: The scheduler removes finished requests from the batch and puts waiting requests into the free slots.
# axis: In the padded run the batch axis is 6, one row for each request; in the packed run it is 1 and the second axis holds 3 tokens.
# trade-off: A larger batch lowers the latency of every request and raises the throughput.
# shape: (1, 3)
# idle: 47
# gain: latency down
# cost: throughput down

# %% wrong="batch-in-words" name="the packed run is a rectangle, too" keeps={"batch-words-shape": 0, "batch-words-idle": 0, "batch-words-gain-cost": 1, "batch-words-state": 1, "batch-words-axis": 0, "batch-words-trade-off": 1}
# %%explain batch-in-words
# state: The scheduler removes finished requests from the batch and puts waiting requests into the free slots.
# axis: The batch axis has 14 rows in the padded run and 5 rows in the packed run.
# trade-off: A larger batch gives a higher throughput, but a higher latency for each token.
# shape: (3, 1)
# idle: 37
# gain: throughput up
# cost: latency up

# %% wrong="batch-in-words" name="an essay without a number or a direction" keeps={"batch-words-shape": 0, "batch-words-idle": 0, "batch-words-gain-cost": 0, "batch-words-state": 0, "batch-words-axis": 0, "batch-words-trade-off": 0}
# %%explain batch-in-words
# state: Continuous batching is a modern technique used by many serving systems.
# axis: The axis is important for the efficiency of batching.
# trade-off: There are advantages and disadvantages that depend on the situation.
# shape: it depends
# idle: many
# gain: efficiency
# cost: complexity
