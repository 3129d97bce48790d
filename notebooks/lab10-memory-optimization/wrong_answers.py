# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# Named wrong answers of lab 10: what a learner might write, and the points that it keeps. Never built into a notebook.

# %% wrong="decode-peak" name="the latents' size, not the picture's" keeps=0
def decode_peak(batch, height, width, channels, value_bytes=4, slicing=False, tiling=False, tile=16):
    if slicing:
        batch = 1
    if tiling:
        height, width = min(height, tile), min(width, tile)
    return 3 * batch * channels[1] * height * width * value_bytes

# %% wrong="decode-peak" name="one map instead of three" keeps=0
def decode_peak(batch, height, width, channels, value_bytes=4, slicing=False, tiling=False, tile=16):
    if slicing:
        batch = 1
    if tiling:
        height, width = min(height, tile), min(width, tile)
    return batch * channels[1] * (8 * height) * (8 * width) * value_bytes

# %% wrong="decode-peak" name="the channels that leave the last block" keeps=0
def decode_peak(batch, height, width, channels, value_bytes=4, slicing=False, tiling=False, tile=16):
    if slicing:
        batch = 1
    if tiling:
        height, width = min(height, tile), min(width, tile)
    return 3 * batch * channels[0] * (8 * height) * (8 * width) * value_bytes

# %% wrong="decode-peak" name="every value has four bytes" keeps=2.5
def decode_peak(batch, height, width, channels, value_bytes=4, slicing=False, tiling=False, tile=16):
    if slicing:
        batch = 1
    if tiling:
        height, width = min(height, tile), min(width, tile)
    return 3 * batch * channels[1] * (8 * height) * (8 * width) * 4

# %% wrong="decode-peak" name="slicing halves the batch" keeps=2.5
def decode_peak(batch, height, width, channels, value_bytes=4, slicing=False, tiling=False, tile=16):
    if slicing:
        batch = batch / 2
    if tiling:
        height, width = min(height, tile), min(width, tile)
    return 3 * batch * channels[1] * (8 * height) * (8 * width) * value_bytes

# %% wrong="decode-peak" name="tiling cuts the batch too" keeps=2
def decode_peak(batch, height, width, channels, value_bytes=4, slicing=False, tiling=False, tile=16):
    if slicing:
        batch = 1
    if tiling:
        batch = 1
        height, width = min(height, tile), min(width, tile)
    return 3 * batch * channels[1] * (8 * height) * (8 * width) * value_bytes

# %% wrong="decode-peak" name="small latents become a whole tile" keeps=2
def decode_peak(batch, height, width, channels, value_bytes=4, slicing=False, tiling=False, tile=16):
    if slicing:
        batch = 1
    if tiling:
        height, width = tile, tile
    return 3 * batch * channels[1] * (8 * height) * (8 * width) * value_bytes

# %% wrong="knobs" name="offload shrinks" keeps=1.5
def classified():
    return {
        "model offload": ({"shrink"}, {"weights"}),
        "group offload": ({"shrink"}, {"weights"}),
        "sequential offload": ({"shrink"}, {"weights"}),
        "vae slicing": ({"shrink"}, {"activations"}),
        "vae tiling": ({"shrink", "recompute"}, {"activations"}),
        "attention slicing": ({"shrink"}, {"activations"}),
        "float16 instead of float32": ({"shrink"}, {"weights", "activations"}),
        "batch of 1 instead of 4": ({"shrink"}, {"activations"}),
        "gradient checkpointing (training)": ({"shrink", "recompute"}, {"activations"}),
        "fused attention instead of explicit scores": ({"shrink"}, {"activations"}),
    }

# %% wrong="knobs" name="tiling computes nothing twice" keeps=1.5
def classified():
    return {
        "model offload": ({"move"}, {"weights"}),
        "group offload": ({"move"}, {"weights"}),
        "sequential offload": ({"move"}, {"weights"}),
        "vae slicing": ({"shrink"}, {"activations"}),
        "vae tiling": ({"shrink"}, {"activations"}),
        "attention slicing": ({"shrink"}, {"activations"}),
        "float16 instead of float32": ({"shrink"}, {"weights", "activations"}),
        "batch of 1 instead of 4": ({"shrink"}, {"activations"}),
        "gradient checkpointing (training)": ({"shrink", "recompute"}, {"activations"}),
        "fused attention instead of explicit scores": ({"shrink"}, {"activations"}),
    }

# %% wrong="knobs" name="a dtype is a matter of weights" keeps=1.5
def classified():
    return {
        "model offload": ({"move"}, {"weights"}),
        "group offload": ({"move"}, {"weights"}),
        "sequential offload": ({"move"}, {"weights"}),
        "vae slicing": ({"shrink"}, {"activations"}),
        "vae tiling": ({"shrink", "recompute"}, {"activations"}),
        "attention slicing": ({"shrink"}, {"activations"}),
        "float16 instead of float32": ({"shrink"}, {"weights"}),
        "batch of 1 instead of 4": ({"shrink"}, {"activations"}),
        "gradient checkpointing (training)": ({"shrink", "recompute"}, {"activations"}),
        "fused attention instead of explicit scores": ({"shrink"}, {"activations"}),
    }

# %% wrong="knobs" name="checkpointing is free, a small batch has smaller weights" keeps=1
def classified():
    return {
        "model offload": ({"move"}, {"weights"}),
        "group offload": ({"move"}, {"weights"}),
        "sequential offload": ({"move"}, {"weights"}),
        "vae slicing": ({"shrink"}, {"activations"}),
        "vae tiling": ({"shrink", "recompute"}, {"activations"}),
        "attention slicing": ({"shrink"}, {"activations"}),
        "float16 instead of float32": ({"shrink"}, {"weights", "activations"}),
        "batch of 1 instead of 4": ({"shrink"}, {"weights", "activations"}),
        "gradient checkpointing (training)": ({"shrink"}, {"activations"}),
        "fused attention instead of explicit scores": ({"shrink"}, {"activations"}),
    }

# %% wrong="residency" name="every policy moves at each call" keeps=2
def simulate(calls, policy, chain):
    events = []
    for name in calls:
        if policy == "none" or name not in chain:
            events.append(("run", name))
        else:
            events += [("in", name), ("run", name), ("out", name)]
    return events

# %% wrong="residency" name="only one component at a time, whoever it was" keeps=3
def simulate(calls, policy, chain):
    events, here = [], set()
    for name in calls:
        if policy == "none" or name not in chain:
            events.append(("run", name))
        elif policy == "each call":
            events += [("in", name), ("run", name), ("out", name)]
        else:
            for other in sorted(here - {name}):
                here.remove(other)
                events.append(("out", other))
            if name not in here:
                here.add(name)
                events.append(("in", name))
            events.append(("run", name))
    return events

# %% wrong="residency" name="the last one goes home at the end" keeps=2
def simulate(calls, policy, chain):
    events, here = [], set()
    for name in calls:
        if policy == "none" or name not in chain:
            events.append(("run", name))
        elif policy == "each call":
            events += [("in", name), ("run", name), ("out", name)]
        else:
            place = chain.index(name)
            before = chain[place - 1] if place else None
            if before in here:
                here.remove(before)
                events.append(("out", before))
            if name not in here:
                here.add(name)
                events.append(("in", name))
            events.append(("run", name))
    if policy == "model":
        events += [("out", name) for name in sorted(here)]
    return events

# %% wrong="residency" name="comes in again although it is there" keeps=3
def simulate(calls, policy, chain):
    events, here = [], set()
    for name in calls:
        if policy == "none" or name not in chain:
            events.append(("run", name))
        elif policy == "each call":
            events += [("in", name), ("run", name), ("out", name)]
        else:
            place = chain.index(name)
            before = chain[place - 1] if place else None
            if before in here:
                here.remove(before)
                events.append(("out", before))
            here.add(name)
            events.append(("in", name))
            events.append(("run", name))
    return events

# %% wrong="residency" name="weights stay until the run is over" keeps=2.5
def simulate(calls, policy, chain):
    events, here = [], set()
    for name in calls:
        if policy == "none" or name not in chain:
            events.append(("run", name))
        elif policy == "each call":
            events += [("run", name)] if name in here else [("in", name), ("run", name)]
            here.add(name)
        else:
            place = chain.index(name)
            before = chain[place - 1] if place else None
            if before in here:
                here.remove(before)
                events.append(("out", before))
            if name not in here:
                here.add(name)
                events.append(("in", name))
            events.append(("run", name))
    return events

# %% wrong="idle-knob" name="looked at the peak only" keeps=2.5
def did_nothing(measure_with, knobs):
    plain = measure_with(None)
    idle = []
    for name in knobs:
        run = measure_with(name)
        same_peak = abs(run["peak"] - plain["peak"]) <= 0.01 * plain["peak"]
        if same_peak:
            idle.append(name)
    return idle

# %% wrong="idle-knob" name="looked at the pictures only" keeps=1
def did_nothing(measure_with, knobs):
    plain = measure_with(None)
    idle = []
    for name in knobs:
        run = measure_with(name)
        if torch.equal(run["pictures"], plain["pictures"]):
            idle.append(name)
    return idle

# %% wrong="idle-knob" name="a knob works only if the peak goes down" keeps=2
def did_nothing(measure_with, knobs):
    plain = measure_with(None)
    idle = []
    for name in knobs:
        run = measure_with(name)
        same_peak = run["peak"] >= 0.99 * plain["peak"]
        if same_peak and torch.equal(run["pictures"], plain["pictures"]):
            idle.append(name)
    return idle

# %% wrong="idle-knob" name="the pictures look the same" keeps=2.5
def did_nothing(measure_with, knobs):
    plain = measure_with(None)
    idle = []
    for name in knobs:
        run = measure_with(name)
        same_peak = abs(run["peak"] - plain["peak"]) <= 0.01 * plain["peak"]
        if same_peak and torch.allclose(run["pictures"], plain["pictures"], atol=1e-3):
            idle.append(name)
    return idle

# %% wrong="idle-knob" name="believed the documentation" keeps=0
def did_nothing(measure_with, knobs):
    return []

# %% wrong="choose" name="stack every optimization" keeps=0.5
PRICES = {"slicing": 1, "tiling": 2, "offload": 4}


def choose(estimate, budget):
    plain, kept = estimate(()), ["offload", "slicing", "tiling"]
    proof = {name: sum(estimate(tuple(k for k in kept if k != name)).values()) for name in kept}
    return {"bottleneck": max(plain, key=plain.get), "knobs": kept, "proof": proof}

# %% wrong="choose" name="the fewest knobs, whatever they cost" keeps=3.5
PRICES = {"slicing": 1, "tiling": 2, "offload": 4}


def choose(estimate, budget):
    from itertools import combinations

    plain = estimate(())
    found = {"bottleneck": max(plain, key=plain.get), "knobs": None, "proof": {}}
    sets = [kept for count in range(4) for kept in combinations(sorted(PRICES), count)]
    for kept in sorted(sets, key=lambda names: (len(names), sum(PRICES[name] for name in names))):
        if sum(estimate(kept).values()) <= budget:
            found["knobs"] = list(kept)
            found["proof"] = {name: sum(estimate(tuple(k for k in kept if k != name)).values()) for name in kept}
            break
    return found

# %% wrong="choose" name="never thought of the weights" keeps=3
PRICES = {"slicing": 1, "tiling": 2, "offload": 4}


def choose(estimate, budget):
    from itertools import combinations

    PRICES = {"slicing": 1, "tiling": 2}
    plain = estimate(())
    found = {"bottleneck": max(plain, key=plain.get), "knobs": None, "proof": {}}
    sets = [kept for count in range(4) for kept in combinations(sorted(PRICES), count)]
    for kept in sorted(sets, key=lambda names: sum(PRICES[name] for name in names)):
        if sum(estimate(kept).values()) <= budget:
            found["knobs"] = list(kept)
            found["proof"] = {name: sum(estimate(tuple(k for k in kept if k != name)).values()) for name in kept}
            break
    return found

# %% wrong="choose" name="always the activations" keeps=3.5
PRICES = {"slicing": 1, "tiling": 2, "offload": 4}


def choose(estimate, budget):
    from itertools import combinations

    found = {"bottleneck": "activations", "knobs": None, "proof": {}}
    sets = [kept for count in range(4) for kept in combinations(sorted(PRICES), count)]
    for kept in sorted(sets, key=lambda names: sum(PRICES[name] for name in names)):
        if sum(estimate(kept).values()) <= budget:
            found["knobs"] = list(kept)
            found["proof"] = {name: sum(estimate(tuple(k for k in kept if k != name)).values()) for name in kept}
            break
    return found

# %% wrong="choose" name="a best effort where nothing fits" keeps=3.5
PRICES = {"slicing": 1, "tiling": 2, "offload": 4}


def choose(estimate, budget):
    from itertools import combinations

    plain = estimate(())
    found = {"bottleneck": max(plain, key=plain.get), "knobs": None, "proof": {}}
    sets = [kept for count in range(4) for kept in combinations(sorted(PRICES), count)]
    for kept in sorted(sets, key=lambda names: sum(PRICES[name] for name in names)):
        if sum(estimate(kept).values()) <= budget:
            found["knobs"] = list(kept)
            found["proof"] = {name: sum(estimate(tuple(k for k in kept if k != name)).values()) for name in kept}
            break
    if found["knobs"] is None:
        found["knobs"] = sorted(PRICES)
    return found

# %% wrong="choose" name="a proof of each knob alone" keeps=1
PRICES = {"slicing": 1, "tiling": 2, "offload": 4}


def choose(estimate, budget):
    from itertools import combinations

    plain = estimate(())
    found = {"bottleneck": max(plain, key=plain.get), "knobs": None, "proof": {}}
    sets = [kept for count in range(4) for kept in combinations(sorted(PRICES), count)]
    for kept in sorted(sets, key=lambda names: sum(PRICES[name] for name in names)):
        if sum(estimate(kept).values()) <= budget:
            found["knobs"] = list(kept)
            found["proof"] = {name: sum(estimate((name,)).values()) for name in kept}
            break
    return found

# %% wrong="tiling-in-words" name="tiling cuts the batch" keeps={"tiling-shape": 0, "tiling-calls": 1, "offload-gain-cost": 1, "tiling-state": 1, "tiling-axis": 0, "tiling-trade-off": 1}
# %%explain tiling-in-words
# state: Tiling splits the latents into overlapping tiles, and the decoder decodes one tile after the other.
# axis: Tiling splits the batch axis from 2 into 1, so that each picture is decoded alone.
# trade-off: Tiling lowers the peak memory of the decode, but it takes longer because the overlaps are computed twice.
# shape: (1, 4, 16, 16)
# calls: 18
# offload-gain: memory down
# offload-cost: latency up

# %% wrong="tiling-in-words" name="tiles do not overlap" keeps={"tiling-shape": 1, "tiling-calls": 0, "offload-gain-cost": 1, "tiling-state": 1, "tiling-axis": 1, "tiling-trade-off": 1}
# %%explain tiling-in-words
# state: Tiling splits the latents into overlapping tiles, and the decoder decodes one tile after the other.
# axis: Height and width are cut from 32 to tiles of 16 latents; the batch of 2 stays whole, so the decoder gets (2, 4, 16, 16).
# trade-off: Tiling lowers the peak memory of the decode, but it takes longer because the overlaps are computed twice.
# shape: (2, 4, 16, 16)
# calls: 8
# offload-gain: memory down
# offload-cost: latency up

# %% wrong="tiling-in-words" name="offload makes it faster" keeps={"tiling-shape": 1, "tiling-calls": 1, "offload-gain-cost": 0.5, "tiling-state": 1, "tiling-axis": 1, "tiling-trade-off": 1}
# %%explain tiling-in-words
# state: Tiling splits the latents into overlapping tiles, and the decoder decodes one tile after the other.
# axis: Height and width are cut from 32 to tiles of 16 latents; the batch of 2 stays whole, so the decoder gets (2, 4, 16, 16).
# trade-off: Tiling lowers the peak memory of the decode, but it takes longer because the overlaps are computed twice.
# shape: (2, 4, 16, 16)
# calls: 18
# offload-gain: memory down
# offload-cost: latency down

# %% wrong="tiling-in-words" name="tiling is free" keeps={"tiling-shape": 1, "tiling-calls": 1, "offload-gain-cost": 1, "tiling-state": 1, "tiling-axis": 1, "tiling-trade-off": 0}
# %%explain tiling-in-words
# state: Tiling splits the latents into overlapping tiles, and the decoder decodes one tile after the other.
# axis: Height and width are cut from 32 to tiles of 16 latents; the batch of 2 stays whole, so the decoder gets (2, 4, 16, 16).
# trade-off: Tiling lowers the peak memory and makes the decode faster.
# shape: (2, 4, 16, 16)
# calls: 18
# offload-gain: memory down
# offload-cost: latency up

# %% wrong="tiling-in-words" name="tiling moves weights" keeps={"tiling-shape": 1, "tiling-calls": 1, "offload-gain-cost": 1, "tiling-state": 0, "tiling-axis": 1, "tiling-trade-off": 1}
# %%explain tiling-in-words
# state: Tiling moves the weights of the VAE to the CPU, one layer after the other.
# axis: Height and width are cut from 32 to tiles of 16 latents; the batch of 2 stays whole, so the decoder gets (2, 4, 16, 16).
# trade-off: Tiling lowers the peak memory of the decode, but it takes longer because the overlaps are computed twice.
# shape: (2, 4, 16, 16)
# calls: 18
# offload-gain: memory down
# offload-cost: latency up

# %% wrong="tiling-in-words" name="keywords without a sentence" keeps={"tiling-shape": 1, "tiling-calls": 1, "offload-gain-cost": 1, "tiling-state": 0, "tiling-axis": 0, "tiling-trade-off": 0}
# %%explain tiling-in-words
# state: latents tiles decoder split decode VAE
# axis: height width batch 2 16 32 tiles
# trade-off: memory down latency up tiling overlap
# shape: (2, 4, 16, 16)
# calls: 18
# offload-gain: memory down
# offload-cost: latency up
