# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# Named wrong answers of lab12-prefill-decode: each replaces one exercise's cell and keeps exactly the points it says.

# %% wrong="forecast" name="the last token is fed back, too" keeps=1
def forecast(prompt, new, batch=1, kv_heads=2, head_dim=32, vocab=1024):
    fed = prompt + new
    return {"calls": new + 1, "first": (batch, prompt), "later": (batch, 1), "logits": (batch, 1, vocab),
            "keys": (batch, kv_heads, fed, head_dim), "positions": batch * fed}

# %% wrong="forecast" name="query heads are cached" keeps=2
def forecast(prompt, new, batch=1, kv_heads=2, head_dim=32, vocab=1024):
    fed = prompt + new - 1
    return {"calls": new, "first": (batch, prompt), "later": (batch, 1), "logits": (batch, 1, vocab),
            "keys": (batch, 4 * kv_heads, fed, head_dim), "positions": batch * fed}

# %% wrong="forecast" name="logits of every prompt position" keeps=2.5
def forecast(prompt, new, batch=1, kv_heads=2, head_dim=32, vocab=1024):
    fed = prompt + new - 1
    return {"calls": new, "first": (batch, prompt), "later": (batch, 1), "logits": (batch, prompt, vocab),
            "keys": (batch, kv_heads, fed, head_dim), "positions": batch * fed}

# %% wrong="forecast" name="everything is computed again for each token" keeps=2.5
def forecast(prompt, new, batch=1, kv_heads=2, head_dim=32, vocab=1024):
    fed = prompt + new - 1
    return {"calls": new, "first": (batch, prompt), "later": (batch, 1), "logits": (batch, 1, vocab),
            "keys": (batch, kv_heads, fed, head_dim), "positions": batch * sum(range(prompt, prompt + new))}

# %% wrong="forecast" name="the prompt goes in token by token" keeps=2
def forecast(prompt, new, batch=1, kv_heads=2, head_dim=32, vocab=1024):
    fed = prompt + new - 1
    return {"calls": fed, "first": (batch, 1), "later": (batch, 1), "logits": (batch, 1, vocab),
            "keys": (batch, kv_heads, fed, head_dim), "positions": batch * fed}

# %% wrong="greedy" name="feeds the whole sequence each time" keeps=1.5
def greedy(forward, prompt, n, eos):
    tokens = prompt
    for _ in range(n):
        logits, _ = forward(tokens, None)
        token = logits[:, -1:].argmax(-1)
        tokens = torch.cat([tokens, token], dim=1)
        if int(token) == eos:
            break
    return tokens

# %% wrong="greedy" name="feeds everything again on top of the state" keeps=0.375
def greedy(forward, prompt, n, eos):
    tokens, state = prompt, None
    for _ in range(n):
        logits, state = forward(tokens, state)
        token = logits[:, -1:].argmax(-1)
        tokens = torch.cat([tokens, token], dim=1)
        if int(token) == eos:
            break
    return tokens

# %% wrong="greedy" name="drops the state" keeps=1.125
def greedy(forward, prompt, n, eos):
    tokens, feed = prompt, prompt
    for _ in range(n):
        logits, _ = forward(feed, None)
        feed = logits[:, -1:].argmax(-1)
        tokens = torch.cat([tokens, feed], dim=1)
        if int(feed) == eos:
            break
    return tokens

# %% wrong="greedy" name="feeds the last token, too" keeps=1.875
def greedy(forward, prompt, n, eos):
    tokens = prompt
    logits, state = forward(prompt, None)
    for _ in range(n):
        feed = logits[:, -1:].argmax(-1)
        tokens = torch.cat([tokens, feed], dim=1)
        logits, state = forward(feed, state)
        if int(feed) == eos:
            break
    return tokens

# %% wrong="greedy" name="goes on after the end token" keeps=2.25
def greedy(forward, prompt, n, eos):
    tokens, feed, state = prompt, prompt, None
    for _ in range(n):
        logits, state = forward(feed, state)
        feed = logits[:, -1:].argmax(-1)
        tokens = torch.cat([tokens, feed], dim=1)
    return tokens

# %% wrong="greedy" name="takes the first position's logits" keeps=1.875
def greedy(forward, prompt, n, eos):
    tokens, feed, state = prompt, prompt, None
    for _ in range(n):
        logits, state = forward(feed, state)
        feed = logits[:, :1].argmax(-1)
        tokens = torch.cat([tokens, feed], dim=1)
        if int(feed) == eos:
            break
    return tokens

# %% wrong="latencies" name="total time by the number of tokens" keeps=1
def latencies(start, ends):
    itl = [after - before for before, after in zip(ends, ends[1:])]
    return {"ttft": ends[0] - start, "itl": itl, "mean_itl": (ends[-1] - start) / len(ends)}

# %% wrong="latencies" name="the clock instead of the wait" keeps=1
def latencies(start, ends):
    itl = [after - before for before, after in zip(ends, ends[1:])]
    return {"ttft": ends[0], "itl": itl, "mean_itl": sum(itl) / len(itl) if itl else None}

# %% wrong="latencies" name="the first wait is a gap, too" keeps=0.5
def latencies(start, ends):
    stamps = [start, *ends]
    itl = [after - before for before, after in zip(stamps, stamps[1:])]
    return {"ttft": ends[0] - start, "itl": itl, "mean_itl": sum(itl) / len(itl) if itl else None}

# %% wrong="latencies" name="prefill makes no token" keeps=0.5
def latencies(start, ends):
    itl = [after - before for before, after in zip(ends[1:], ends[2:])]
    return {"ttft": ends[min(1, len(ends) - 1)] - start, "itl": itl, "mean_itl": sum(itl) / len(itl) if itl else None}

# %% wrong="regime" name="decode is memory-bound, prefill compute-bound" keeps=1.5
def regime(flops, nbytes, overhead, flop_rate, byte_rate):
    if flops > 100 * nbytes:
        return "compute-bound", flops / flop_rate
    return "memory-bound", nbytes / byte_rate

# %% wrong="regime" name="the three times add up" keeps=1
def regime(flops, nbytes, overhead, flop_rate, byte_rate):
    floors = {"launch-bound": overhead, "memory-bound": nbytes / byte_rate, "compute-bound": flops / flop_rate}
    return max(floors, key=floors.get), sum(floors.values())

# %% wrong="regime" name="the smallest bound" keeps=0
def regime(flops, nbytes, overhead, flop_rate, byte_rate):
    floors = {"launch-bound": overhead, "memory-bound": nbytes / byte_rate, "compute-bound": flops / flop_rate}
    return min(floors, key=floors.get), min(floors.values())

# %% wrong="regime" name="more FLOPs than bytes means compute-bound" keeps=0.5
def regime(flops, nbytes, overhead, flop_rate, byte_rate):
    if flops >= nbytes:
        return "compute-bound", flops / flop_rate
    return "memory-bound", nbytes / byte_rate

# %% wrong="flops" name="one FLOP a multiply-add" keeps=0
def count_flops(sizes, new, context, batch=1):
    width, inner, layers = sizes["hidden_size"], sizes["intermediate_size"], sizes["num_hidden_layers"]
    queries, keys = sizes["num_attention_heads"] * sizes["head_dim"], sizes["num_key_value_heads"] * sizes["head_dim"]
    layer = 2 * width * queries + 2 * width * keys + 3 * width * inner
    return {"linear": batch * (new * layers * layer + width * sizes["vocab_size"]),
            "attention": 2 * layers * batch * new * (context + new) * queries}

# %% wrong="flops" name="logits of every position" keeps=2
def count_flops(sizes, new, context, batch=1):
    width, inner, layers = sizes["hidden_size"], sizes["intermediate_size"], sizes["num_hidden_layers"]
    queries, keys = sizes["num_attention_heads"] * sizes["head_dim"], sizes["num_key_value_heads"] * sizes["head_dim"]
    layer = 2 * width * queries + 2 * width * keys + 3 * width * inner
    return {"linear": 2 * batch * new * (layers * layer + width * sizes["vocab_size"]),
            "attention": 4 * layers * batch * new * (context + new) * queries}

# %% wrong="flops" name="forgot lm_head" keeps=1.5
def count_flops(sizes, new, context, batch=1):
    width, inner, layers = sizes["hidden_size"], sizes["intermediate_size"], sizes["num_hidden_layers"]
    queries, keys = sizes["num_attention_heads"] * sizes["head_dim"], sizes["num_key_value_heads"] * sizes["head_dim"]
    layer = 2 * width * queries + 2 * width * keys + 3 * width * inner
    return {"linear": 2 * batch * new * layers * layer, "attention": 4 * layers * batch * new * (context + new) * queries}

# %% wrong="flops" name="grouped-query attention saves FLOPs" keeps=1.5
def count_flops(sizes, new, context, batch=1):
    width, inner, layers = sizes["hidden_size"], sizes["intermediate_size"], sizes["num_hidden_layers"]
    queries, keys = sizes["num_attention_heads"] * sizes["head_dim"], sizes["num_key_value_heads"] * sizes["head_dim"]
    layer = 2 * width * queries + 2 * width * keys + 3 * width * inner
    return {"linear": 2 * batch * (new * layers * layer + width * sizes["vocab_size"]),
            "attention": 4 * layers * batch * new * (context + new) * keys}

# %% wrong="flops" name="a new token does not see itself" keeps=1.5
def count_flops(sizes, new, context, batch=1):
    width, inner, layers = sizes["hidden_size"], sizes["intermediate_size"], sizes["num_hidden_layers"]
    queries, keys = sizes["num_attention_heads"] * sizes["head_dim"], sizes["num_key_value_heads"] * sizes["head_dim"]
    layer = 2 * width * queries + 2 * width * keys + 3 * width * inner
    return {"linear": 2 * batch * (new * layers * layer + width * sizes["vocab_size"]),
            "attention": 4 * layers * batch * new * (context or new) * queries}

# %% wrong="bytes" name="weights are read for every token" keeps=1.5
def count_bytes(weights, sizes, new, context, batch=1, itemsize=4):
    token = 2 * sizes["num_hidden_layers"] * sizes["num_key_value_heads"] * sizes["head_dim"] * itemsize
    return {"weights": new * weights * itemsize, "cache_read": batch * context * token, "cache_written": batch * new * token}

# %% wrong="bytes" name="weights are read for every sequence" keeps=1.5
def count_bytes(weights, sizes, new, context, batch=1, itemsize=4):
    token = 2 * sizes["num_hidden_layers"] * sizes["num_key_value_heads"] * sizes["head_dim"] * itemsize
    return {"weights": batch * weights * itemsize, "cache_read": batch * context * token, "cache_written": batch * new * token}

# %% wrong="bytes" name="query heads are cached" keeps=1
def count_bytes(weights, sizes, new, context, batch=1, itemsize=4):
    token = 2 * sizes["num_hidden_layers"] * sizes["num_attention_heads"] * sizes["head_dim"] * itemsize
    return {"weights": weights * itemsize, "cache_read": batch * context * token, "cache_written": batch * new * token}

# %% wrong="bytes" name="keys without values" keeps=1
def count_bytes(weights, sizes, new, context, batch=1, itemsize=4):
    token = sizes["num_hidden_layers"] * sizes["num_key_value_heads"] * sizes["head_dim"] * itemsize
    return {"weights": weights * itemsize, "cache_read": batch * context * token, "cache_written": batch * new * token}

# %% wrong="bytes" name="the cache is written anew in every call" keeps=1.5
def count_bytes(weights, sizes, new, context, batch=1, itemsize=4):
    token = 2 * sizes["num_hidden_layers"] * sizes["num_key_value_heads"] * sizes["head_dim"] * itemsize
    return {"weights": weights * itemsize, "cache_read": batch * context * token, "cache_written": batch * (context + new) * token}

# %% wrong="chunked" name="an empty cache for every chunk" keeps=0.5
def chunked(forward, ids, size):
    parts, state = [], None
    for piece in ids.split(size, dim=1):
        logits, state = forward(piece, None)
        parts.append(logits)
    return torch.cat(parts, dim=1), state

# %% wrong="chunked" name="the short rest is dropped" keeps=0
def chunked(forward, ids, size):
    parts, state = [], None
    for at in range(0, ids.shape[1] - size + 1, size):
        logits, state = forward(ids[:, at:at + size], state)
        parts.append(logits)
    return torch.cat(parts, dim=1) if parts else ids.float(), state

# %% wrong="chunked" name="only the last chunk's logits" keeps=1
def chunked(forward, ids, size):
    state = None
    for piece in ids.split(size, dim=1):
        logits, state = forward(piece, state)
    return logits, state

# %% wrong="chunked" name="one token at a time" keeps=0.5
def chunked(forward, ids, size):
    parts, state = [], None
    for piece in ids.split(1, dim=1):
        logits, state = forward(piece, state)
        parts.append(logits)
    return torch.cat(parts, dim=1), state

# %% wrong="diagnosis" name="the same tokens, so the same work" keeps=1.25
def diagnose():
    seen = [[(c.new, c.context, c.head) for c in calls_of(one)] for one in (healthy, suspect)]
    call = next(i for i, (a, b) in enumerate(zip(*seen), 1) if a != b)
    bad = seen[1][call - 1]
    fault = "no cache" if call > 1 else "all logits" if bad[2] > 1 else "padding" if bad[0] > seen[0][0][0] else "chunks"
    return {"fault": fault, "call": call, "positions": short + few - 1, "head_positions": few}

# %% wrong="diagnosis" name="calls numbered from zero" keeps=1.75
def diagnose():
    seen = [[(c.new, c.context, c.head) for c in calls_of(one)] for one in (healthy, suspect)]
    call = next(i for i, (a, b) in enumerate(zip(*seen), 1) if a != b)
    bad = seen[1][call - 1]
    fault = "no cache" if call > 1 else "all logits" if bad[2] > 1 else "padding" if bad[0] > seen[0][0][0] else "chunks"
    return {"fault": fault, "call": call - 1, "positions": sum(new for new, _, _ in seen[1]), "head_positions": sum(head for *_, head in seen[1])}

# %% wrong="diagnosis" name="the last token is counted, too" keeps=0.75
def diagnose():
    seen = [[(c.new, c.context, c.head) for c in calls_of(one)] for one in (healthy, suspect)]
    call = next(i for i, (a, b) in enumerate(zip(*seen), 1) if a != b)
    bad = seen[1][call - 1]
    fault = "no cache" if call > 1 else "all logits" if bad[2] > 1 else "padding" if bad[0] > seen[0][0][0] else "chunks"
    return {"fault": fault, "call": call, "positions": sum(new for new, _, _ in seen[1]) + 1, "head_positions": sum(head for *_, head in seen[1]) + 1}

# %% wrong="diagnosis" name="slow, so it must be the missing cache" keeps=1.25
def diagnose():
    seen = [[(c.new, c.context, c.head) for c in calls_of(one)] for one in (healthy, suspect)]
    return {"fault": "no cache", "call": 2, "positions": sum(new for new, _, _ in seen[1]), "head_positions": sum(head for *_, head in seen[1])}

# %% wrong="two-phases" name="decode is a small prefill" keeps={"phases-calls": 1, "phases-gain-cost": 1, "phases-axis": 1, "phases-trade-off": 1}
# %%explain two-phases
# state: Each decode call recomputes the prompt together with its new token, like a small prefill.
# axis: The token axis differs: 128 tokens go into the first call and 1 token into each later one, while the cache grows from 128 to 151 tokens.
# trade-off: A larger batch reads the weights once for all sequences, so the throughput goes up, but each call takes longer and the caches need more memory.
# calls: 24
# length: 151
# readings: 23
# shape: (1, 129)
# again: 151
# gain: throughput up
# cost: latency up

# %% wrong="two-phases" name="the last token is fed back" keeps={"phases-calls": 0, "phases-again": 1, "phases-gain-cost": 1, "phases-state": 1, "phases-trade-off": 1}
# %%explain two-phases
# state: Each decode call reads the keys and values of all earlier tokens from the KV cache, so it computes only its new token.
# axis: The token axis differs: 128 tokens go into the first call and 1 token into each later one, while the cache grows from 128 to 152 tokens.
# trade-off: A larger batch reads the weights once for all sequences, so the throughput goes up, but each call takes longer and the caches need more memory.
# calls: 25
# length: 152
# readings: 24
# shape: (1, 1)
# again: 3348
# gain: throughput up
# cost: latency up

# %% wrong="two-phases" name="the batch grows, 24 calls of 128, and the weights are read once" keeps={"phases-calls": 0.5, "phases-again": 0.5, "phases-gain-cost": 1, "phases-state": 1, "phases-trade-off": 1}
# %%explain two-phases
# state: A decode step uses the KV cache that prefill filled, which saves it from running the prompt again.
# axis: The batch axis grows from 1 to 24 because every call adds one sequence.
# trade-off: Batching gives more tokens per second, but the caches need more memory.
# calls: 24
# length: 151
# readings: 1
# shape: (1, 1)
# again: 3072
# gain: throughput up
# cost: memory up

# %% wrong="two-phases" name="batching always helps latency" keeps={"phases-calls": 1, "phases-again": 1, "phases-gain-cost": 0, "phases-state": 1, "phases-axis": 1}
# %%explain two-phases
# state: The cache holds the keys and values of the 128 prompt tokens, so a decode step does not have to compute them again.
# axis: The number of tokens drops from 128 to 1 after the first call, and the KV cache grows to 151 tokens.
# trade-off: Batching makes each user's latency lower and needs less memory.
# calls: 24
# length: 151
# readings: 23
# shape: (1, 1)
# again: 3348
# gain: latency down
# cost: throughput down

# %% wrong="two-phases" name="the cache keeps hidden states" keeps={"phases-calls": 1, "phases-again": 1, "phases-gain-cost": 1, "phases-axis": 1, "phases-trade-off": 1}
# %%explain two-phases
# state: The cache keeps the hidden states of the earlier tokens.
# axis: The number of tokens drops from 128 to 1 after the first call, and the KV cache grows to 151 tokens.
# trade-off: A larger batch raises the throughput, but each call takes longer.
# calls: 24
# length: 151
# readings: 23
# shape: (1, 1)
# again: 3348
# gain: throughput up
# cost: latency up

# %% wrong="two-phases" name="the first reading counts as a later one" keeps={"phases-calls": 0.5, "phases-again": 1, "phases-gain-cost": 1, "phases-state": 1, "phases-axis": 1, "phases-trade-off": 1}
# %%explain two-phases
# state: The cache holds the keys and values of the 128 prompt tokens, so a decode step does not have to compute them again.
# axis: The number of tokens drops from 128 to 1 after the first call, and the KV cache grows to 151 tokens.
# trade-off: A larger batch raises the throughput, but each call takes longer.
# calls: 24
# length: 151
# readings: 24
# shape: (1, 1)
# again: 3348
# gain: throughput up
# cost: latency up
