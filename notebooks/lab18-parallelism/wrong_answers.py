# Named wrong answers of lab 18: what a learner might write, and the points that it keeps. Never built into a notebook.

# %% wrong="forecast" name="keys and values by query heads" keeps=0.5
def forecast(config, ranks):
    hidden, mlp = config["hidden_size"], config["intermediate_size"] // ranks
    queries = config["num_attention_heads"] // ranks * config["head_dim"]
    return {"q_proj": (queries, hidden), "k_proj": (queries, hidden), "o_proj": (hidden, queries), "gate_proj": (mlp, hidden),
            "down_proj": (hidden, mlp), "norm": (hidden,), "cache": 2 * config["num_hidden_layers"] * queries * 4}

# %% wrong="forecast" name="everything is cut by outputs" keeps=1
def forecast(config, ranks):
    hidden, mlp = config["hidden_size"], config["intermediate_size"]
    queries, keys = (config[name] * config["head_dim"] for name in ("num_attention_heads", "num_key_value_heads"))
    return {"q_proj": (queries // ranks, hidden), "k_proj": (keys // ranks, hidden), "o_proj": (hidden // ranks, queries),
            "gate_proj": (mlp // ranks, hidden), "down_proj": (hidden // ranks, mlp), "norm": (hidden,),
            "cache": 2 * config["num_hidden_layers"] * keys // ranks * 4}

# %% wrong="forecast" name="the norm is cut, too" keeps=1.5
def forecast(config, ranks):
    hidden, mlp = config["hidden_size"], config["intermediate_size"] // ranks
    queries = config["num_attention_heads"] // ranks * config["head_dim"]
    keys = config["num_key_value_heads"] // ranks * config["head_dim"]
    return {"q_proj": (queries, hidden), "k_proj": (keys, hidden), "o_proj": (hidden, queries), "gate_proj": (mlp, hidden),
            "down_proj": (hidden, mlp), "norm": (hidden // ranks,), "cache": 2 * config["num_hidden_layers"] * keys * 4}

# %% wrong="forecast" name="every rank keeps the whole cache" keeps=1.5
def forecast(config, ranks):
    hidden, mlp = config["hidden_size"], config["intermediate_size"] // ranks
    queries = config["num_attention_heads"] // ranks * config["head_dim"]
    keys = config["num_key_value_heads"] * config["head_dim"]
    return {"q_proj": (queries, hidden), "k_proj": (keys // ranks, hidden), "o_proj": (hidden, queries), "gate_proj": (mlp, hidden),
            "down_proj": (hidden, mlp), "norm": (hidden,), "cache": 2 * config["num_hidden_layers"] * keys * 4}

# %% wrong="shards" name="by outputs cuts the columns" keeps=0
def shards(weight, ranks, how):
    return list(weight.chunk(ranks, dim=1 if how == "colwise" else 0))

# %% wrong="shards" name="always by outputs" keeps=0.5
def shards(weight, ranks, how):
    return list(weight.chunk(ranks))

# %% wrong="shards" name="deals the rows out" keeps=0
def shards(weight, ranks, how):
    return [weight[rank::ranks] if how == "colwise" else weight[:, rank::ranks] for rank in range(ranks)]

# %% wrong="shards" name="everything in float32" keeps=1
def shards(weight, ranks, how):
    return [piece.float() for piece in weight.chunk(ranks, dim=0 if how == "colwise" else 1)]

# %% wrong="rank-mlp" name="the bias before the sum" keeps=2
def rank_mlp(x, gate, up, down, bias, all_reduce):
    inner = torch.nn.functional.silu(x @ gate.T) * (x @ up.T)
    return all_reduce(inner @ down.T + bias)

# %% wrong="rank-mlp" name="no sum at all" keeps=0
def rank_mlp(x, gate, up, down, bias, all_reduce):
    inner = torch.nn.functional.silu(x @ gate.T) * (x @ up.T)
    return inner @ down.T + bias

# %% wrong="rank-mlp" name="sums the inner columns, too" keeps=0
def rank_mlp(x, gate, up, down, bias, all_reduce):
    inner = torch.nn.functional.silu(all_reduce(x @ gate.T)) * all_reduce(x @ up.T)
    return all_reduce(inner @ down.T) + bias

# %% wrong="rank-mlp" name="forgets the bias" keeps=2
def rank_mlp(x, gate, up, down, bias, all_reduce):
    inner = torch.nn.functional.silu(x @ gate.T) * (x @ up.T)
    return all_reduce(inner @ down.T)

# %% wrong="rank-mlp" name="the activation after the sum" keeps=1
def rank_mlp(x, gate, up, down, bias, all_reduce):
    return torch.nn.functional.silu(all_reduce(((x @ gate.T) * (x @ up.T)) @ down.T)) + bias

# %% wrong="fused" name="cuts the stack" keeps=0
def split_fused(weight, parts, ranks):
    return list(weight.chunk(ranks))

# %% wrong="fused" name="deals the rows out" keeps=0
def split_fused(weight, parts, ranks):
    return [weight[rank::ranks] for rank in range(ranks)]

# %% wrong="fused" name="keys and values whole on every rank" keeps=1
def split_fused(weight, parts, ranks):
    pieces = weight.split(list(parts))
    cut = len(parts) if len(parts) == 2 else 1
    return [torch.cat([p.chunk(ranks)[rank] if i < cut else p for i, p in enumerate(pieces)]) for rank in range(ranks)]

# %% wrong="fused" name="parts in the wrong order" keeps=0
def split_fused(weight, parts, ranks):
    pieces = [part.chunk(ranks) for part in weight.split(list(parts))][::-1]
    return [torch.cat([piece[rank] for piece in pieces]) for rank in range(ranks)]

# %% wrong="traffic" name="one exchange a layer" keeps=1
def traffic(plan, ranks, layers, hidden, tokens, itemsize):
    if ranks == 1:
        return {"exchanges": 0, "payload": 0, "sent": 0}
    message = tokens * hidden * itemsize
    if plan == "TP":
        return {"exchanges": layers, "payload": layers * message, "sent": 2 * (ranks - 1) * 2 * layers * message / ranks}
    return {"exchanges": ranks - 1, "payload": (ranks - 1) * message, "sent": message}

# %% wrong="traffic" name="one exchange a token" keeps=2.5
def traffic(plan, ranks, layers, hidden, tokens, itemsize):
    if ranks == 1:
        return {"exchanges": 0, "payload": 0, "sent": 0}
    message = tokens * hidden * itemsize
    if plan == "TP":
        payload = 2 * layers * message
        return {"exchanges": 2 * layers * tokens, "payload": payload, "sent": 2 * (ranks - 1) * payload / ranks}
    return {"exchanges": ranks - 1, "payload": (ranks - 1) * message, "sent": message}

# %% wrong="traffic" name="sends to every other rank" keeps=2.5
def traffic(plan, ranks, layers, hidden, tokens, itemsize):
    if ranks == 1:
        return {"exchanges": 0, "payload": 0, "sent": 0}
    message = tokens * hidden * itemsize
    if plan == "TP":
        payload = 2 * layers * message
        return {"exchanges": 2 * layers, "payload": payload, "sent": (ranks - 1) * payload}
    return {"exchanges": ranks - 1, "payload": (ranks - 1) * message, "sent": message}

# %% wrong="traffic" name="a pipeline exchanges in every layer" keeps=2.5
def traffic(plan, ranks, layers, hidden, tokens, itemsize):
    if ranks == 1:
        return {"exchanges": 0, "payload": 0, "sent": 0}
    message = tokens * hidden * itemsize
    exchanges = 2 * layers if plan == "TP" else layers
    return {"exchanges": exchanges, "payload": exchanges * message,
            "sent": 2 * (ranks - 1) * exchanges * message / ranks if plan == "TP" else message}

# %% wrong="traffic" name="every projection exchanges" keeps=1
def traffic(plan, ranks, layers, hidden, tokens, itemsize):
    if ranks == 1:
        return {"exchanges": 0, "payload": 0, "sent": 0}
    message = tokens * hidden * itemsize
    if plan == "TP":
        return {"exchanges": 7 * layers, "payload": 7 * layers * message, "sent": 2 * (ranks - 1) * 2 * layers * message / ranks}
    return {"exchanges": ranks - 1, "payload": (ranks - 1) * message, "sent": message}

# %% wrong="traffic" name="whole bytes, and a lone rank that exchanges" keeps=2
def traffic(plan, ranks, layers, hidden, tokens, itemsize):
    message = tokens * hidden * itemsize
    if plan == "TP":
        payload = 2 * layers * message
        return {"exchanges": 2 * layers, "payload": payload, "sent": 2 * (ranks - 1) * payload // ranks}
    return {"exchanges": ranks - 1, "payload": (ranks - 1) * message, "sent": message}

# %% wrong="schedule" name="one pass in the pipeline at a time" keeps=1.5
def schedule(stages, jobs):
    events, tick = [], 0
    for number in range(1, max(jobs, default=0) + 1):
        for job, passes in enumerate(jobs):
            if number <= passes:
                events += [(tick + stage, stage, job, number) for stage in range(stages)]
                tick += stages
    return events

# %% wrong="schedule" name="a user's tokens follow without waiting" keeps=2.5
def schedule(stages, jobs):
    events, tick = [], 0
    for number in range(1, max(jobs, default=0) + 1):
        for job, passes in enumerate(jobs):
            if number <= passes:
                events += [(tick + stage, stage, job, number) for stage in range(stages)]
                tick += 1
    return sorted(events)

# %% wrong="schedule" name="a whole answer before the next user" keeps=2.5
def schedule(stages, jobs):
    events, tick = [], 0
    for job, passes in enumerate(jobs):
        for number in range(1, passes + 1):
            events += [(tick + stage, stage, job, number) for stage in range(stages)]
            tick += stages if number < passes else 1
    return sorted(events)

# %% wrong="schedule" name="ticks from 1" keeps=0
def schedule(stages, jobs):
    events, free, ready = [], 1, [(1, job, 1) for job, passes in enumerate(jobs) if passes]
    while ready:
        at, job, number = ready.pop(0)
        enter = max(at, free)
        free = enter + 1
        events += [(enter + stage, stage, job, number) for stage in range(stages)]
        if number < jobs[job]:
            ready.append((enter + stages, job, number + 1))
    return sorted(events)

# %% wrong="cost" name="a pipeline divides the latency" keeps=1
def cost(plan, ranks, machine):
    work = machine["layers"] * machine["compute"]
    if plan == "TP":
        latency = work / ranks + 2 * machine["layers"] * 2 * (ranks - 1) * machine["step"]
        return latency, latency
    return work / ranks + (ranks - 1) * machine["hop"], work / ranks


def chosen():
    every = {(plan, ranks): cost(plan, ranks, MACHINE) for plan in ("TP", "PP") for ranks in RANKS}
    return {"latency": min(every, key=lambda key: every[key][0]), "interval": min(every, key=lambda key: every[key][1])}

# %% wrong="cost" name="tensor parallelism is free" keeps=1.5
def cost(plan, ranks, machine):
    work = machine["layers"] * machine["compute"]
    return (work / ranks, work / ranks) if plan == "TP" else (work + (ranks - 1) * machine["hop"], work / ranks)


def chosen():
    return {"latency": ("TP", 8), "interval": ("TP", 8)}

# %% wrong="cost" name="one all-reduce a layer" keeps=2.5
def cost(plan, ranks, machine):
    work = machine["layers"] * machine["compute"]
    if plan == "TP":
        latency = work / ranks + machine["layers"] * 2 * (ranks - 1) * machine["step"]
        return latency, latency
    return work + (ranks - 1) * machine["hop"], work / ranks


def chosen():
    right = {n: MACHINE["compute"] / n + 4 * (n - 1) * MACHINE["step"] for n in RANKS}
    return {"latency": ("TP", min(right, key=right.get)), "interval": ("PP", 8)}

# %% wrong="cost" name="a full pipeline waits for each token" keeps=1
def cost(plan, ranks, machine):
    work = machine["layers"] * machine["compute"]
    latency = work + (ranks - 1) * machine["hop"]
    if plan == "TP":
        latency = work / ranks + 2 * machine["layers"] * 2 * (ranks - 1) * machine["step"]
    return latency, latency


def chosen():
    every = {(plan, ranks): cost(plan, ranks, MACHINE) for plan in ("TP", "PP") for ranks in RANKS}
    return {"latency": min(every, key=lambda key: every[key][0]), "interval": min(every, key=lambda key: every[key][1])}

# %% wrong="two-ranks" name="an all-gather of halves" keeps={"two-ranks-state": 0, "two-ranks-shape": 0, "two-ranks-traffic": 0, "two-ranks-gain-cost": 0.5, "two-ranks-axis": 0, "two-ranks-trade-off": 0}
%%explain two-ranks
# state: An all-gather puts the halves of the hidden state side by side.
# axis: The batch axis is halved, each rank gets half of the tokens.
# trade-off: The pipeline makes each token faster and needs more communication.
# shape: (1, 1, 256)
# exchanges: 8
# bytes: 1 KiB
# gain: latency down
# cost: quality down

# %% wrong="two-ranks" name="stages" keeps={"two-ranks-state": 0, "two-ranks-shape": 1, "two-ranks-traffic": 0, "two-ranks-gain-cost": 0.5, "two-ranks-axis": 0, "two-ranks-trade-off": 0}
%%explain two-ranks
# state: The first stage computes half of the layers and sends the hidden state to the second.
# axis: Each rank has 4 of the 8 layers.
# trade-off: A pipeline lowers the latency of a token and sends fewer messages.
# shape: (1, 1, 128)
# exchanges: 1
# bytes: 1024 B
# gain: latency up
# cost: traffic up

# %% wrong="two-ranks" name="counts the embedding, names no number" keeps={"two-ranks-state": 0, "two-ranks-shape": 0, "two-ranks-traffic": 0.5, "two-ranks-gain-cost": 0.5, "two-ranks-axis": 0, "two-ranks-trade-off": 1}
%%explain two-ranks
# state: Each rank computes the whole hidden state by itself.
# axis: The heads are smaller on a rank.
# trade-off: The pipeline sends fewer messages, but each token takes longer.
# shape: (128, 256)
# exchanges: 17
# bytes: 16384 B
# gain: memory down
# cost: memory up
