# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# Named wrong answers of lab13-kv-cache: each replaces one exercise's cell and keeps exactly the points it says.

# %% wrong="forecast" name="counts the query heads" keeps=0.375
def forecast(prompt, new, batch, layers, heads, kv_heads, head_dim, dtype, capacity=None):
    itemsize = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1}[dtype]
    length = prompt + new - 1
    rows = length if capacity is None else capacity
    return {"length": length, "shape": (batch, heads, rows, head_dim), "bytes": 2 * layers * batch * heads * rows * head_dim * itemsize}

# %% wrong="forecast" name="keys without values" keeps=0.75
def forecast(prompt, new, batch, layers, heads, kv_heads, head_dim, dtype, capacity=None):
    itemsize = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1}[dtype]
    length = prompt + new - 1
    rows = length if capacity is None else capacity
    return {"length": length, "shape": (batch, kv_heads, rows, head_dim), "bytes": layers * batch * kv_heads * rows * head_dim * itemsize}

# %% wrong="forecast" name="the last token is cached, too" keeps=0
def forecast(prompt, new, batch, layers, heads, kv_heads, head_dim, dtype, capacity=None):
    itemsize = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1}[dtype]
    length = prompt + new
    rows = length if capacity is None else capacity
    return {"length": length, "shape": (batch, kv_heads, rows, head_dim), "bytes": 2 * layers * batch * kv_heads * rows * head_dim * itemsize}

# %% wrong="forecast" name="a static cache is as large as its content" keeps=2.25
def forecast(prompt, new, batch, layers, heads, kv_heads, head_dim, dtype, capacity=None):
    itemsize = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1}[dtype]
    length = prompt + new - 1
    return {"length": length, "shape": (batch, kv_heads, length, head_dim), "bytes": 2 * layers * batch * kv_heads * length * head_dim * itemsize}

# %% wrong="forecast" name="two bytes a number, as in the file of the weights" keeps=0.75
def forecast(prompt, new, batch, layers, heads, kv_heads, head_dim, dtype, capacity=None):
    length = prompt + new - 1
    rows = length if capacity is None else capacity
    return {"length": length, "shape": (batch, kv_heads, rows, head_dim), "bytes": 2 * layers * batch * kv_heads * rows * head_dim * 2}

# %% wrong="crossing" name="quantized weights shrink the cache" keeps=1.5
def crossing(parameters, weight_bits, layers, kv_heads, head_dim, cache_bits, batch=1):
    token = 2 * layers * kv_heads * head_dim * batch
    return -(-parameters // token)

# %% wrong="crossing" name="the batch shares the cache" keeps=1
def crossing(parameters, weight_bits, layers, kv_heads, head_dim, cache_bits, batch=1):
    return -(-parameters * weight_bits // (2 * layers * kv_heads * head_dim * cache_bits))

# %% wrong="crossing" name="keys without values" keeps=0
def crossing(parameters, weight_bits, layers, kv_heads, head_dim, cache_bits, batch=1):
    return -(-parameters * weight_bits // (layers * kv_heads * head_dim * cache_bits * batch))

# %% wrong="crossing" name="rounded down" keeps=0.5
def crossing(parameters, weight_bits, layers, kv_heads, head_dim, cache_bits, batch=1):
    return parameters * weight_bits // (2 * layers * kv_heads * head_dim * cache_bits * batch)

# %% wrong="room" name="room for the prompt alone" keeps=0.666667
def room(prompts, new, token_bytes):
    longest = max(prompts)
    return {"capacity": longest, "bytes": longest * len(prompts) * token_bytes, "padding": sum(longest - one for one in prompts) * token_bytes}

# %% wrong="room" name="one token too many" keeps=0.666667
def room(prompts, new, token_bytes):
    longest = max(prompts)
    return {"capacity": longest + new, "bytes": (longest + new) * len(prompts) * token_bytes,
            "padding": sum(longest - one for one in prompts) * token_bytes}

# %% wrong="room" name="padding takes no room" keeps=1
def room(prompts, new, token_bytes):
    longest = max(prompts)
    return {"capacity": longest + new - 1, "bytes": sum(one + new - 1 for one in prompts) * token_bytes, "padding": 0}

# %% wrong="room" name="paid once for the batch" keeps=1.333333
def room(prompts, new, token_bytes):
    longest = max(prompts)
    return {"capacity": longest + new - 1, "bytes": (longest + new - 1) * token_bytes, "padding": sum(longest - one for one in prompts) * token_bytes}

# %% wrong="ledger" name="four bits are half a byte, packed or not" keeps=1.5
def ledger(quantized, residual, layers, kv_heads, head_dim, bits, group, itemsize=4, packed=False):
    numbers = 2 * layers * kv_heads * head_dim
    return {"codes": quantized * numbers * bits // 8, "scales": quantized * numbers // group * itemsize, "residual": residual * numbers * itemsize}

# %% wrong="ledger" name="forgot the scales" keeps=1.5
def ledger(quantized, residual, layers, kv_heads, head_dim, bits, group, itemsize=4, packed=False):
    numbers = 2 * layers * kv_heads * head_dim
    return {"codes": quantized * numbers * (bits if packed else 8) // 8, "scales": 0, "residual": residual * numbers * itemsize}

# %% wrong="ledger" name="a scale for every number" keeps=1.5
def ledger(quantized, residual, layers, kv_heads, head_dim, bits, group, itemsize=4, packed=False):
    numbers = 2 * layers * kv_heads * head_dim
    return {"codes": quantized * numbers * (bits if packed else 8) // 8, "scales": quantized * numbers * itemsize, "residual": residual * numbers * itemsize}

# %% wrong="ledger" name="the newest tokens are quantized, too" keeps=1
def ledger(quantized, residual, layers, kv_heads, head_dim, bits, group, itemsize=4, packed=False):
    numbers = 2 * layers * kv_heads * head_dim
    return {"codes": quantized * numbers * (bits if packed else 8) // 8, "scales": quantized * numbers // group * itemsize, "residual": residual * numbers}

# %% wrong="attend" name="repeat instead of repeat_interleave" keeps=2
def attend(q, k, v):
    shared = q.shape[1] // k.shape[1]
    k, v = k.repeat(1, shared, 1, 1), v.repeat(1, shared, 1, 1)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    new, tokens = scores.shape[-2:]
    sees = torch.ones(new, tokens, dtype=torch.bool).tril(tokens - new)
    return scores.masked_fill(~sees, float("-inf")).softmax(-1) @ v

# %% wrong="attend" name="the key heads averaged" keeps=0
def attend(q, k, v):
    k, v = k.mean(1, keepdim=True), v.mean(1, keepdim=True)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    new, tokens = scores.shape[-2:]
    sees = torch.ones(new, tokens, dtype=torch.bool).tril(tokens - new)
    return scores.masked_fill(~sees, float("-inf")).softmax(-1) @ v

# %% wrong="attend" name="scaled by the width of all heads" keeps=0
def attend(q, k, v):
    shared = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(shared, dim=1), v.repeat_interleave(shared, dim=1)
    scores = q @ k.transpose(-1, -2) / (q.shape[1] * q.shape[-1]) ** 0.5
    new, tokens = scores.shape[-2:]
    sees = torch.ones(new, tokens, dtype=torch.bool).tril(tokens - new)
    return scores.masked_fill(~sees, float("-inf")).softmax(-1) @ v

# %% wrong="attend" name="no causal mask" keeps=2
def attend(q, k, v):
    shared = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(shared, dim=1), v.repeat_interleave(shared, dim=1)
    return (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1) @ v

# %% wrong="attend" name="the mask begins at the first token" keeps=0
def attend(q, k, v):
    shared = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(shared, dim=1), v.repeat_interleave(shared, dim=1)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    sees = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return scores.masked_fill(~sees, float("-inf")).softmax(-1) @ v

# %% wrong="operate" name="crop keeps k" keeps=2
def operate(rows, operations):
    states = []
    for name, what in operations:
        if name == "grow":
            rows = [row + list(new) for row, new in zip(rows, what)]
        elif name == "crop":
            rows = [row[:what] for row in rows]
        elif name in ("reorder", "select"):
            rows = [list(rows[i]) for i in what]
        else:
            rows = [list(row) for row in rows for _ in range(what)]
        states.append(rows)
    return states

# %% wrong="operate" name="rows that came from one stay one list" keeps=2.5
def operate(rows, operations):
    states = []
    for name, what in operations:
        if name == "grow":
            for row, new in zip(rows, what):
                row.extend(new)
        elif name == "crop":
            rows = [row[: len(row) - what] for row in rows]
        elif name in ("reorder", "select"):
            rows = [rows[i] for i in what]
        else:
            rows = [row for row in rows for _ in range(what)]
        states.append([list(row) for row in rows])
    return states

# %% wrong="operate" name="moves row i to place index[i]" keeps=1.5
def operate(rows, operations):
    states = []
    for name, what in operations:
        if name == "grow":
            rows = [row + list(new) for row, new in zip(rows, what)]
        elif name == "crop":
            rows = [row[: len(row) - what] for row in rows]
        elif name in ("reorder", "select"):
            moved = {place: rows[i] for i, place in enumerate(what)}
            rows = [list(moved.get(i, row)) for i, row in enumerate(rows)]
        else:
            rows = [list(row) for row in rows for _ in range(what)]
        states.append(rows)
    return states

# %% wrong="operate" name="repeats the whole batch" keeps=3
def operate(rows, operations):
    states = []
    for name, what in operations:
        if name == "grow":
            rows = [row + list(new) for row, new in zip(rows, what)]
        elif name == "crop":
            rows = [row[: len(row) - what] for row in rows]
        elif name in ("reorder", "select"):
            rows = [list(rows[i]) for i in what]
        else:
            rows = [list(row) for _ in range(what) for row in rows]
        states.append(rows)
    return states

# %% wrong="diagnosis" name="the text reads well: only the beginning is wrong" keeps=2
def diagnose():
    good, bad = ([call.context for call in calls_of(one)] for one in (healthy, suspect))
    at = next(i for i, (a, b) in enumerate(zip(good, bad)) if a != b)
    fault = "stale" if bad[0] > 0 else "ignored" if bad[-1] == 0 else "window" if bad[-1] == bad[-2] else "cropped"
    return {"fault": fault, "call": at + 1, "healthy": good[at], "suspect": bad[at], "lost": -1}

# %% wrong="diagnosis" name="calls numbered from zero" keeps=2.5
def diagnose():
    good, bad = ([call.context for call in calls_of(one)] for one in (healthy, suspect))
    at = next(i for i, (a, b) in enumerate(zip(good, bad)) if a != b)
    fault = "stale" if bad[0] > 0 else "ignored" if bad[-1] == 0 else "window" if bad[-1] == bad[-2] else "cropped"
    return {"fault": fault, "call": at, "healthy": good[at], "suspect": bad[at], "lost": 0 if fault == "stale" else good[-1] - bad[-1]}

# %% wrong="diagnosis" name="healthy and suspect exchanged" keeps=2.5
def diagnose():
    good, bad = ([call.context for call in calls_of(one)] for one in (healthy, suspect))
    at = next(i for i, (a, b) in enumerate(zip(good, bad)) if a != b)
    fault = "stale" if bad[0] > 0 else "ignored" if bad[-1] == 0 else "window" if bad[-1] == bad[-2] else "cropped"
    return {"fault": fault, "call": at + 1, "healthy": bad[at], "suspect": good[at], "lost": 0 if fault == "stale" else good[-1] - bad[-1]}

# %% wrong="the-cache" name="the cache stores the text" keeps={"cache-bytes": 1, "cache-shape": 1, "cache-gain-cost": 1, "cache-axis": 1, "cache-trade-off": 1}
# %%explain the-cache
# state: The cache stores the text of the prompt, so that the model can read it again.
# axis: The token axis of the keys grows from 128 to 151, while the 2 heads and the head_dim of 32 stay the same.
# trade-off: Keeping the cache saves computing the old tokens again, so each call is faster, but the memory grows with every token.
# bytes: 618496 bytes
# token: 4 KiB
# shape: (1, 2, 151, 32)
# crossing: 5765
# gain: memory down
# cost: quality down

# %% wrong="the-cache" name="counts the query heads" keeps={"cache-gain-cost": 1, "cache-state": 1, "cache-trade-off": 1}
# %%explain the-cache
# state: In every layer the cache keeps the key and the value of each token, and the attention of every later call reads them.
# axis: The sequence axis grows to 151, and there are 8 heads in the keys.
# trade-off: Keeping the cache saves computing the old tokens again, so each call is faster, but the memory grows with every token.
# bytes: 2416 KiB
# token: 16 KiB
# shape: (1, 8, 151, 32)
# crossing: 1442
# gain: memory down
# cost: quality down

# %% wrong="the-cache" name="the last token is cached, and fewer heads are free" keeps={"cache-bytes": 0.5, "cache-shape": 0.5, "cache-gain-cost": 0.5, "cache-state": 1, "cache-trade-off": 1}
# %%explain the-cache
# state: In every layer the cache keeps the key and the value of each token, and the attention of every later call reads them.
# axis: The token axis grows from 128 to 500.
# trade-off: You save the computation of all earlier tokens and pay with memory.
# bytes: 608 KiB
# token: 4096 bytes
# shape: (1, 2, 152, 32)
# crossing: 5765
# gain: memory down
# cost: latency up

# %% wrong="the-cache" name="the cache costs time" keeps={"cache-bytes": 1, "cache-shape": 1, "cache-gain-cost": 0, "cache-state": 1, "cache-axis": 1}
# %%explain the-cache
# state: The cache holds keys and values of all tokens so far; the attention of each new token uses them.
# axis: Only the third axis grows, from 128 up to 151 tokens.
# trade-off: The cache makes each call slower and saves memory.
# bytes: 604 KiB
# token: 4096 bytes
# shape: (1, 2, 151, 32)
# crossing: 5765
# gain: memory up
# cost: quality up

# %% wrong="the-cache" name="the cache keeps hidden states" keeps={"cache-bytes": 1, "cache-shape": 1, "cache-gain-cost": 1, "cache-axis": 1, "cache-trade-off": 1}
# %%explain the-cache
# state: The cache keeps the hidden states of all tokens for the next call.
# axis: Only the third axis grows, from 128 up to 151 tokens.
# trade-off: You save the computation of all earlier tokens and pay with memory.
# bytes: 604 KiB
# token: 4096 bytes
# shape: (1, 2, 151, 32)
# crossing: 5765
# gain: memory down
# cost: quality down
