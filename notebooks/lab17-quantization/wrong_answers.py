# Named wrong answers of lab 17: what a learner might write, and the points that it keeps. Never built into a notebook.

# %% wrong="ledger" name="quantized weights shrink the cache too" keeps=1.875
def ledger(linear, vocabulary, width, norms, tied, cache):
    table = vocabulary * width
    inside = sum(rows * columns for rows, columns in linear)
    before = 4 * (inside + norms + table + (0 if tied else table))
    scales = 4 * (sum(rows for rows, _ in linear) + vocabulary)
    return {"weights_before": before, "weights_after": inside + table + scales + 4 * (norms + table), "cache_after": cache // 4}

# %% wrong="ledger" name="a fourth of everything" keeps=1.875
def ledger(linear, vocabulary, width, norms, tied, cache):
    table = vocabulary * width
    before = 4 * (sum(rows * columns for rows, columns in linear) + norms + table + (0 if tied else table))
    return {"weights_before": before, "weights_after": before // 4, "cache_after": cache}

# %% wrong="ledger" name="head and embedding stay one tensor" keeps=1.875
def ledger(linear, vocabulary, width, norms, tied, cache):
    table = vocabulary * width
    inside = sum(rows * columns for rows, columns in linear)
    before = 4 * (inside + norms + table + (0 if tied else table))
    scales = 4 * (sum(rows for rows, _ in linear) + vocabulary)
    return {"weights_before": before, "weights_after": inside + table + scales + 4 * norms + (0 if tied else 4 * table), "cache_after": cache}

# %% wrong="ledger" name="codes without scales" keeps=1.125
def ledger(linear, vocabulary, width, norms, tied, cache):
    table = vocabulary * width
    inside = sum(rows * columns for rows, columns in linear)
    before = 4 * (inside + norms + 2 * table)
    return {"weights_before": before, "weights_after": inside + table + 4 * (norms + table), "cache_after": cache}

# %% wrong="absmax" name="one level too many" keeps=1.5
def quantize(w, bits, group):
    groups = w.unflatten(-1, (-1, group))
    largest = groups.abs().amax(-1)
    scales = torch.where(largest > 0, largest / 2 ** (bits - 1), torch.ones_like(largest))
    return (groups / scales[..., None]).round().clamp(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1).to(torch.int8).flatten(-2), scales


def restore(codes, scales):
    group = codes.shape[-1] // scales.shape[-1]
    return (codes.unflatten(-1, (-1, group)) * scales[..., None]).flatten(-2)

# %% wrong="absmax" name="one scale for the whole matrix" keeps=1
def quantize(w, bits, group):
    scale = w.abs().max() / (2 ** (bits - 1) - 1)
    return (w / scale).round().to(torch.int8), scale.expand(w.shape[0], w.shape[1] // group).clone()


def restore(codes, scales):
    group = codes.shape[-1] // scales.shape[-1]
    return (codes.unflatten(-1, (-1, group)) * scales[..., None]).flatten(-2)

# %% wrong="absmax" name="cuts off instead of rounding, and divides by zero" keeps=1.5
def quantize(w, bits, group):
    groups = w.unflatten(-1, (-1, group))
    scales = groups.abs().amax(-1) / (2 ** (bits - 1) - 1)
    return (groups / scales[..., None]).to(torch.int8).flatten(-2), scales


def restore(codes, scales):
    group = codes.shape[-1] // scales.shape[-1]
    return (codes.unflatten(-1, (-1, group)) * scales[..., None]).flatten(-2)

# %% wrong="pack" name="the first of a pair goes on top" keeps=1
def pack(codes):
    shifted = (codes + 8).to(torch.uint8)
    return 16 * shifted[:, 0::2] + shifted[:, 1::2]


def bits_per_weight(bits, group, scale_bits):
    return bits + scale_bits / group

# %% wrong="pack" name="scales are free" keeps=1
def pack(codes):
    shifted = (codes + 8).to(torch.uint8)
    return shifted[:, 0::2] + 16 * shifted[:, 1::2]


def bits_per_weight(bits, group, scale_bits):
    return float(bits)

# %% wrong="pack" name="each weight has a scale of its own" keeps=1
def pack(codes):
    shifted = (codes + 8).to(torch.uint8)
    return shifted[:, 0::2] + 16 * shifted[:, 1::2]


def bits_per_weight(bits, group, scale_bits):
    return float(bits + scale_bits)

# %% wrong="outlier" name="looks at rows" keeps=1
def find_outlier():
    best, place = 0.0, {}
    for number, layer in enumerate(suspect.model.layers):
        largest = layer.mlp.down_proj.weight.abs().amax(1)
        if float((largest / largest.median()).max()) > best:
            best, place = float((largest / largest.median()).max()), {"layer": number, "channel": int(largest.argmax())}
    return place

# %% wrong="outlier" name="the largest output of the MLP" keeps=0
def find_outlier():
    return {"layer": 99, "channel": 0}

# %% wrong="outlier" name="the largest row of up_proj" keeps=0
def find_outlier():
    sizes = [layer.mlp.up_proj.weight.abs().amax(1) for layer in suspect.model.layers]
    number = max(range(len(sizes)), key=lambda n: float(sizes[n].max()))
    return {"layer": number, "channel": int(sizes[number].argmax())}

# %% wrong="migrate" name="clips the outlier" keeps=0
def migrate(up, down):
    size = down.abs().amax(0)
    limit = torch.where(size > 2 * size.median(), 2 * size.median(), size)
    return up.clone(), down.clamp(-limit, limit)

# %% wrong="migrate" name="scales one side only" keeps=0
def migrate(up, down):
    size = down.abs().amax(0)
    factor = torch.where(size > 2 * size.median(), 2.0 ** torch.floor(torch.log2(size / size.median())), torch.ones_like(size))
    return up.clone(), down / factor

# %% wrong="migrate" name="makes all columns equal, with factors that round" keeps=0.6
def migrate(up, down):
    factor = down.abs().amax(0) / down.abs().amax(0).median()
    return up * factor[:, None], down / factor

# %% wrong="migrate" name="leaves everything as it is" keeps=0.6
def migrate(up, down):
    return up.clone(), down.clone()

# %% wrong="cache-ledger" name="the last token is fed back" keeps=0
def cache_ledger(layers, kv_heads, head_dim, prompt, new, group, residual):
    full = new % residual
    values = 2 * layers * kv_heads * head_dim
    coded = values * (prompt + new - full)
    return {"codes": coded, "scales": 4 * coded // group, "full": 4 * values * full}

# %% wrong="cache-ledger" name="the residual only grows" keeps=2
def cache_ledger(layers, kv_heads, head_dim, prompt, new, group, residual):
    values = 2 * layers * kv_heads * head_dim
    return {"codes": values * prompt, "scales": 4 * values * prompt // group, "full": 4 * values * (new - 1)}

# %% wrong="cache-ledger" name="forgets the values" keeps=0
def cache_ledger(layers, kv_heads, head_dim, prompt, new, group, residual):
    full = (new - 1) % residual
    values = layers * kv_heads * head_dim
    coded = values * (prompt + new - 1 - full)
    return {"codes": coded, "scales": 4 * coded // group, "full": 4 * values * full}

# %% wrong="speedup" name="the ratio of the bits" keeps=0.75
def speedup(n, tokens, training, bits, flops, bandwidth):
    return 16 / bits


def survives(w, update, bits, group):
    step = w.unflatten(-1, (-1, group)).abs().amax(-1, keepdim=True) / (2 ** (bits - 1) - 1)
    return float((update.unflatten(-1, (-1, group)).abs() > step / 2).float().mean())

# %% wrong="speedup" name="FLOPs shrink as well" keeps=1
def speedup(n, tokens, training, bits, flops, bandwidth):
    def least(width):
        moved = n * (2 * width / 8 + 28) if training else n * width / 8
        return max((6 if training else 2) * n * tokens / flops * width / 16, moved / bandwidth)

    return float(least(16) / least(bits))


def survives(w, update, bits, group):
    step = w.unflatten(-1, (-1, group)).abs().amax(-1, keepdim=True) / (2 ** (bits - 1) - 1)
    return float((update.unflatten(-1, (-1, group)).abs() > step / 2).float().mean())

# %% wrong="speedup" name="the optimizer reads and writes nothing" keeps=1.75
def speedup(n, tokens, training, bits, flops, bandwidth):
    def least(width):
        moved = n * 2 * width / 8 if training else n * width / 8
        return max((6 if training else 2) * n * tokens / flops, moved / bandwidth)

    return float(least(16) / least(bits))


def survives(w, update, bits, group):
    step = w.unflatten(-1, (-1, group)).abs().amax(-1, keepdim=True) / (2 ** (bits - 1) - 1)
    return float((update.unflatten(-1, (-1, group)).abs() > step / 2).float().mean())

# %% wrong="speedup" name="an update needs a whole step" keeps=1.5
def speedup(n, tokens, training, bits, flops, bandwidth):
    def least(width):
        moved = n * (2 * width / 8 + 28) if training else n * width / 8
        return max((6 if training else 2) * n * tokens / flops, moved / bandwidth)

    return float(least(16) / least(bits))


def survives(w, update, bits, group):
    step = w.unflatten(-1, (-1, group)).abs().amax(-1, keepdim=True) / (2 ** (bits - 1) - 1)
    return float((update.unflatten(-1, (-1, group)).abs() > step).float().mean())

# %% wrong="speedup" name="one step for all groups" keeps=1.5
def speedup(n, tokens, training, bits, flops, bandwidth):
    def least(width):
        moved = n * (2 * width / 8 + 28) if training else n * width / 8
        return max((6 if training else 2) * n * tokens / flops, moved / bandwidth)

    return float(least(16) / least(bits))


def survives(w, update, bits, group):
    step = w.abs().amax() / (2 ** (bits - 1) - 1)
    return float((update.unflatten(-1, (-1, group)).abs() > step / 2).float().mean())

# %% wrong="what-shrank" name="the cache shrank" keeps={"shrank-cache": 0, "shrank-dtype-table": 0, "shrank-gain-cost": 0, "shrank-state": 0, "shrank-axis": 0, "shrank-trade-off": 0}
%%explain what-shrank
# state: Quantization shrinks the cache and the weights to int8, so more requests fit.
# axis: The scale is shared by the whole matrix of 99 rows.
# trade-off: Smaller groups make the error larger and need less memory.
# cache: 85 KiB
# dtype: int8
# table: lm_head
# gain: error down
# cost: memory up

# %% wrong="what-shrank" name="nothing is said" keeps={"shrank-cache": 0, "shrank-dtype-table": 0, "shrank-gain-cost": 0, "shrank-state": 0, "shrank-axis": 0, "shrank-trade-off": 0}
%%explain what-shrank
# state: Quantization is an important technique for efficient inference.
# axis: There is an axis.
# trade-off: It is a trade-off.
# cache: less
# dtype: float16
# table: norm
# gain: latency down
# cost: latency down

# %% wrong="what-shrank" name="right lines, sentences that say the opposite" keeps={"shrank-cache": 1, "shrank-dtype-table": 1, "shrank-gain-cost": 1, "shrank-state": 0, "shrank-axis": 0, "shrank-trade-off": 0}
%%explain what-shrank
# state: The quantization converts the cache to int8 codes, and the weights stay as they are.
# axis: There is one scale for groups of 128 weights in a row.
# trade-off: With smaller groups the quality goes down, and the memory goes down as well.
# cache: 340 KiB
# dtype: float32
# table: model.embed_tokens.weight
# gain: memory down
# cost: error up
