# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 19 · The decode is slow
#
# "The GPU is at 100% and users complain. Shall we buy speculation?" This lab is about the question before that one: what does a decode step wait
# for? You take a claim of "10x" apart, compare two ways to use more devices, and then get a service with a hidden fault, a different one for each
# learner, in which every answer is right and every answer is late.
#
# **Time** about 65 minutes · **Points** 21, of which 2 are practice · **Reading** [The decode is slow](../../handbook/lab19-slow-decode.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 7

# %%
from inferlab.lab import start

lab = start("lab19-slow-decode", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from inferlab.models import load_language_model

torch.set_grad_enabled(False)
model, tokenizer = load_language_model(MODEL, lab.device)
on_cpu = MODEL == "bundled" and lab.device == "cpu"
served_model, served_tokenizer = (model, tokenizer) if on_cpu else load_language_model("bundled", "cpu")

# %% [markdown]
# The service below always runs the bundled model on the CPU. `MODEL` and `DEVICE` decide which decode step you take apart in section 3.

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can name what bounds a decode step from counts alone, say which remedy can help and in which order to try, and read somebody
# else's factor critically.
#
# A step takes at least as long as the longest of three things:
#
# $$t \ge \max\left(\text{launches}\cdot t_{\text{launch}},\;\; \frac{\text{bytes}}{\text{bandwidth}},\;\; \frac{\text{FLOPs}}{\text{peak}}\right)$$
#
# | regime | what a step waits for | what helps | what does not |
# |---|---|---|---|
# | **launch-bound** | the host, which starts one small kernel after the other | fewer launches: CUDA graphs, `torch.compile`, removing what need not run | fewer bytes, fewer FLOPs |
# | **memory-bound** | weights and cache, read once a step | more sequences a step, smaller weights, more tokens a pass | a faster matrix unit |
# | **compute-bound** | the matrix units | fewer positions (padding!), lower precision arithmetic | a bigger batch |
#
# And a step can only serve who has been let in: before the model stand the tokenizer, the slots and the room in the cache. Each technique attacks
# one of these.
#
# | technique | attacks |
# |---|---|
# | continuous batching | weights that are read for one user only |
# | paged cache | room that is reserved and not used, so that few users fit |
# | quantization | bytes of the weights (and, if it is the cache's, of the cache) |
# | speculation | passes: several tokens for one reading of the weights. It needs a draft with the same tokenizer: a smaller variant of the model, or a small fine-tune |

# %% [markdown]
# ## 2 · Predict: dissect a claim
#
# ### Exercise 1 · "More than ten times the throughput"
#
# *difficulty 2 of 3 · 10 minutes · 3 points*
#
# A vendor's stack claims that factor for a model of Llama-3-8B's size. Here is what was changed, one thing after the other, with the counts of a step:

# %%
from inferlab.lab.roofline import call_cost
from inferlab.models.language import FULL, FULL_COMMON

big = {**FULL["target"], **FULL_COMMON}
weights = call_cost(big, 1, itemsize=2).weight_bytes  # read once a step, 16 bits a value
cache = call_cost(big, 1, 2047, itemsize=2).cache_read_bytes  # one sequence of 2,047 tokens
common = {"cache_bytes": cache, "weight_bytes": weights, "tokens_per_pass": 1.0}
STACK = [
    {**common, "name": "one request at a time", "batch": 1},
    {**common, "name": "continuous batching", "batch": 3},
    {**common, "name": "paged cache", "batch": 5},
    {**common, "name": "8-bit weights", "batch": 5, "weight_bytes": weights // 2},
    {**common, "name": "speculation", "batch": 5, "weight_bytes": weights // 2, "tokens_per_pass": 1.25},
]
for entry in STACK:
    print(f"{entry['name']:22} batch {entry['batch']}   weights {entry['weight_bytes'] / 1e9:5.2f} GB   "
          f"cache of a sequence {entry['cache_bytes'] / 1e9:.2f} GB   tokens a pass and sequence {entry['tokens_per_pass']}")

# %% [markdown]
# All of this is memory-bound, so a step takes as long as its bytes: the weights once, and the cache of **every** sequence. Throughput is tokens per byte. (The draft's own bytes are left out.)
#
# Write `dissect(stack, baseline)`: the factor that each technique contributed, **against what was there before it**.
#
# | argument | meaning |
# |---|---|
# | `stack` | `list` of `dict` as above: `name`, `batch` (sequences), `weight_bytes`, `cache_bytes` (of one sequence), `tokens_per_pass` |
# | `baseline` | the `name` of the entry that the claim is measured against |
#
# Returns a list of tuples `(name, factor)`, one for each entry after the baseline, in order. The product of the factors is the claim. It is graded on
# stacks that this notebook does not have.
#
# <details><summary>Hint</summary>
#
# Write a small function for the tokens per byte of one entry first. Then divide neighbors.
# </details>

# %% exercise="dissect" provides=["dissect"] difficulty=2 minutes=10
def dissect(stack, baseline):
    """(name, factor against the entry before it) of every entry after the baseline."""
    ### BEGIN SOLUTION
    def rate(entry):
        read = entry["weight_bytes"] + entry["batch"] * entry["cache_bytes"]
        return entry["batch"] * entry["tokens_per_pass"] / read

    first = [entry["name"] for entry in stack].index(baseline)
    return [(now["name"], rate(now) / rate(before)) for before, now in zip(stack[first:], stack[first + 1:])]
    ### END SOLUTION

# %% check="dissect" points=3
from inferlab.lab import Check, close

check = Check("dissect", points=3)


def entry(name, batch, weight_bytes, cache_bytes=0, tokens_per_pass=1.0):
    return {"name": name, "batch": batch, "weight_bytes": weight_bytes, "cache_bytes": cache_bytes, "tokens_per_pass": tokens_per_pass}


def parts_of(stack, baseline):
    """The learner's list, once it has pairs of a name and a number."""
    got = check.learner.dissect(stack, baseline)
    check.true(isinstance(got, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in got), "return a list of tuples (name, factor)")
    check.true(all(isinstance(pair[1], (int, float)) for pair in got), "a factor is a number, such as 2.0 for twice as much")
    return got


with check.part("batching alone, with a cache that weighs nothing", weight=1):
    check.close(parts_of([entry("alone", 1, 100), entry("batching", 8, 100)], "alone"), [("batching", 8.0)], tol=1e-6)
### BEGIN HIDDEN TESTS
chain = [entry("alone", 1, 100, 10), entry("batching", 10, 100, 10), entry("int8", 10, 50, 10), entry("speculation", 10, 50, 10, 1.5)]
with check.part("every sequence brings a cache of its own", weight=2):
    got = parts_of(chain[:2], "alone")
    check.mistake("a batch shares the weights; the caches it does not share, and they are read, too", when=close(got, [("batching", 10.0)], tol=1e-6))
    check.close(got, [("batching", 5.5)], tol=1e-6)
with check.part("each against what was there before it", weight=2):
    got = parts_of(chain, "alone")
    check.mistake("these are factors against the baseline: what did this technique add to what was there already?",
                  when=close(got[1:2], [("int8", 5.5 * 200 / 150)], tol=1e-6))
    check.mistake("half of the weights is not half of the bytes: a batch's caches stay", when=close(got[1:2], [("int8", 2.0)], tol=1e-6))
    check.close(got, [("batching", 5.5), ("int8", 200 / 150), ("speculation", 1.5)], tol=1e-6)
with check.part("against another baseline", weight=1):
    got = parts_of(chain, "batching")
    check.mistake("what came before the baseline is in the baseline already", when=len(got) == 3)
    check.close(got, [("int8", 200 / 150), ("speculation", 1.5)], tol=1e-6)
### END HIDDEN TESTS
check.score()

# %% tags=["demo"]
import math

from inferlab.lab import when_written

with when_written("dissect"):
    for baseline in ("one request at a time", "continuous batching"):
        found = dissect(STACK, baseline)
        print(f"against {baseline!r}: {math.prod(factor for _, factor in found):.1f}x")
        for name, factor in found:
            print(f"    {name:22} {factor:.2f}x")

# %% [markdown]
# The same stack, two numbers. Against one request at a time it is more than ten, and the largest part is batching. Whoever already batches gets a
# third of it. Read every factor with three questions: which techniques, in which proportions, **against which baseline**.

# %% [markdown]
# ## 3 · Trace
#
# First one decode step of the model that you chose, on this device, taken apart.

# %%
from inferlab.trace import trace
from transformers import DynamicCache

prompt = torch.tensor([tokenizer("a red circle moves left and a blue square moves up").input_ids], device=model.device)
held = DynamicCache(config=model.config)
for piece in (prompt, prompt[:, -1:]):  # the second call warms up
    model(piece, None, None, held, logits_to_keep=1)
with trace(model, depth="all") as step:
    model(prompt[:, -1:], None, None, held, logits_to_keep=1)
print(len(step.rows()), "boundaries in one decode step of one sequence")

# %% tags=["demo"]
from inferlab.lab.roofline import measure_device, overhead_seconds, regime

rates, overhead = measure_device(lab.device, model.dtype), overhead_seconds(model.config, lab.device, model.dtype)
name, bounds_here = regime(call_cost(model.config, 1, prompt.shape[1], itemsize=model.dtype.itemsize), rates, overhead)
print(f"{rates.name}: this decode step is {name}")
for bound, seconds in bounds_here.items():
    print(f"   {bound:14} at least {1e3 * seconds:7.3f} ms")

# %% [markdown]
# Seconds are shown here, never graded. A model this small is launch-bound nearly everywhere, so from here on
# the lab counts, and prices the counts with an accelerator on which the bundled model behaves as a big one does on a big card:

# %%
from inferlab.lab.service import CARD

CARD

# %% [markdown]
# Now the service: eight questions arrive at once, up to four decode together. It really runs, and every call of the model is traced. This is how it should be:

# %%
from inferlab.lab.service import serve, show_rows

healthy = serve(served_model, served_tokenizer)
print(show_rows(healthy.rows))

# %% tags=["demo"]
for call in [row for row in healthy.trace.rows() if row["level"] == 0][:4]:
    print(f"input_ids {call['inputs']['input_ids']['shape']} -> logits {call['outputs']['logits']['shape']}")

# %% [markdown]
# A line of the first table is one call of the model, and the trace below it shows the same calls by their tensors. Stop at three places:
#
# * **`positions` and `useful`**: `positions` counts what a call computes or attends to: in a prefill the padded prompts, in a decode step each sequence's new token and its padded
#   cache. `useful` leaves the padding out. Prompts differ in length, so a batch is padded to the longest. A little waste is normal;
# * **`weights`**: the same 23.6 MB in every line, whether one sequence decodes or four. That is what a batch shares;
# * **`busy`**: 100% wherever the model runs. A monitor shows this number as "GPU utilization". It says that *some* kernel ran, not what it waited for.
#
# **Reconcile.** Your function of exercise 1, fed with what is known before a run, beside the tokens per byte that the service really reached. Known are the bytes of the weights and of a cached token,
# the lengths of the requests, and how many may decode together: one, two (each reserves half of the cache) or four.

# %%
alone = serve(served_model, served_tokenizer, slots=1, requests=3)
reserved = serve(served_model, served_tokenizer, fault="cache")  # batches too, but reserves room for the longest answer

# %% tags=["demo"]
from inferlab.lab.service import requests_of

sizes = served_model.config
one_token = call_cost(sizes, 1, 0, itemsize=served_model.dtype.itemsize)
asked_for = requests_of(served_tokenizer)
length = sum(len(served_tokenizer(r.text).input_ids) + r.new_tokens / 2 for r in asked_for) / len(asked_for)  # half of the answer is there, on average
known = {"weight_bytes": one_token.weight_bytes, "cache_bytes": length * one_token.cache_written_bytes, "tokens_per_pass": 1.0}


def decode_counts(rows):
    """Mean sequences of a decode step, and tokens per byte of all of them."""
    steps = [row for row in rows if row["kind"] == "decode"]
    tokens = sum(row["sequences"] for row in steps)
    return tokens / len(steps), tokens / sum(row["weight_bytes"] + row["cache_bytes"] for row in steps)


with when_written("dissect"):
    places = {"alone": (1, alone), "batching": (2, reserved), "room on demand": (4, healthy)}
    predicted = dissect([{**known, "name": name, "batch": batch} for name, (batch, _) in places.items()], "alone")
    counts = [(batch, *decode_counts(run.rows)) for batch, run in places.values()]
    for (_, _, rate_before), (batch, mean, rate_after), (name, factor) in zip(counts, counts[1:], predicted):
        print(f"{name:14} predicted {factor:.2f}x with {batch} sequences a step, counted {rate_after / rate_before:.2f}x tokens per byte with {mean:.2f}")

# %% [markdown]
# The service reaches less than predicted. Near the end of its run nobody waits, and places stay empty: look at the mean number of sequences. And the caches of a batch are padded
# to the longest. A factor that is computed from sizes alone supposes that the batch is always full.

# %% [markdown]
# ## 4 · Read
#
# Why is there such a thing as launch-bound? Count the kernels in the library's smallest module. One of these runs twice in every layer, on a single token.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaRMSNorm

show_source(
    LlamaRMSNorm.forward,
    {
        "hidden_states = hidden_states.to(torch.float32)": "A launch of its own in 16 bits; in float32 it is none.",
        "variance = hidden_states.pow(2).mean(-1, keepdim=True)": "Two launches, for one number a token.",
        "hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)": "Three: add, rsqrt, multiply. The host spends longer starting them than the device doing them.",
        "return self.weight * hidden_states.to(input_dtype)": "One or two more. A fused norm is a single kernel; torch.compile writes one.",
    },
    checked="5.24.0",
)

# %% jupyter={"source_hidden": true}
show_source(
    LlamaMLP.forward,
    {
        "down_proj = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))":
            "Five launches, and three of them read a weight: with one token, megabytes for a vector; with four tokens the same megabytes.",
    },
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · Pipeline or tensor parallel?
#
# *difficulty 3 of 3 · 10 minutes · 3 points*
#
# One device is too slow, so a team adds seven. Lab 18 counted one user's token. Now many users are there, and a pass carries a batch of them. Decode is memory-bound: what takes
# the time is reading the weights, so **a pass takes the same ticks for any number of users** (their caches, read as well, are left out).
#
# | `machine` | meaning, in ticks |
# |---|---|
# | `layers`, `compute` | layers (a count); one layer of a pass on one rank |
# | `step`, `hop` | one step of a ring (two all-reduces a layer, 2 (n − 1) steps each); one hand-over to the next stage |
#
# Write `parallel(plan, ranks, users, machine)`, which returns a tuple: a token's **latency** for one user, and the **rate**, tokens of all users in 1,000 ticks.
# With `"TP"` all users share each pass. With `"PP"` they form as many groups as there are stages (`users >= ranks`), so that every stage is at work;
# a user gets a token each time that their group has passed all stages.
# Then write `pick(ranks, machine)`: `"TP"` or `"PP"`, whichever has the smaller latency on that many ranks.
#
# <details><summary>Hint</summary>
#
# How many tokens does every user get in the time of one latency? And how many users are there?
# </details>

# %% exercise="parallel" provides=["parallel", "pick"] difficulty=3 minutes=10
def parallel(plan, ranks, users, machine):
    """(latency of a token in ticks, tokens of all users in 1,000 ticks)."""
    ### BEGIN SOLUTION
    work = machine["layers"] * machine["compute"]
    if plan == "TP":
        latency = work / ranks + machine["layers"] * 2 * 2 * (ranks - 1) * machine["step"]
    else:
        latency = work + (ranks - 1) * machine["hop"]
    return latency, 1000 * users / latency
    ### END SOLUTION


def pick(ranks, machine):
    """The plan with the smaller latency on this many ranks."""
    ### BEGIN SOLUTION
    return min(("TP", "PP"), key=lambda plan: parallel(plan, ranks, ranks, machine)[0])
    ### END SOLUTION

# %% check="parallel" points=3
from inferlab.lab import Check

check = Check("parallel", points=3)
near = {"layers": 10, "compute": 40, "step": 1, "hop": 5}
far = {"layers": 10, "compute": 40, "step": 30, "hop": 60}


def asked(*question):
    """The learner's pair of numbers."""
    got = check.learner.parallel(*question)
    check.true(isinstance(got, tuple) and len(got) == 2 and all(isinstance(value, (int, float)) for value in got),
               "return a tuple of two numbers, (latency, rate)")
    return got


with check.part("a single rank, four users in one pass", weight=1):
    check.close([asked("TP", 1, 4, near), asked("PP", 1, 4, near)], [(400, 10), (400, 10)], tol=1e-6)
### BEGIN HIDDEN TESTS
with check.part("tensor parallel: every user in every pass", weight=2):
    got = asked("TP", 4, 8, near)
    check.mistake("one pass makes a token for every user of the batch", when=abs(got[1] - 1000 / 220) < 1e-6)
    check.mistake("ranks that share a layer must agree twice a layer", when=abs(got[0] - 100) < 1e-6)
    check.close(got, (220, 8000 / 220), tol=1e-6)
with check.part("a pipeline shortens nobody's wait", weight=2):
    got = asked("PP", 4, 8, near)
    check.mistake("a token still passes every layer, one after the other", when=got[0] < 400)
    check.mistake("a user's next token waits for this one: with all stages at work, each user still gets one token a latency",
                  when=got[1] > 8000 / 415 + 1e-6)
    check.close(got, (415, 8000 / 415), tol=1e-6)
with check.part("near and far", weight=3):
    got = [check.learner.pick(4, near), check.learner.pick(8, near), check.learner.pick(8, far), check.learner.pick(2, far)]
    check.true(all(plan in ("TP", "PP") for plan in got), "return 'TP' or 'PP'")
    check.mistake("over slow links the all-reduces cost more than the arithmetic that they save", when=got == ["TP"] * 4)
    check.mistake("a pipeline never shortens a token's way: where links are fast, tensor parallelism does", when=got == ["PP"] * 4)
    check.equal(got, ["TP", "TP", "PP", "PP"])
### END HIDDEN TESTS
check.score()

# %% tags=["demo"]
from inferlab.lab.machines import RANKS, machine

with when_written("parallel", "pick"):
    box = machine(lab.variant(16))
    for name, one in {"fast links": box, "slow links": {**box, "step": 40 * box["step"]}}.items():
        print(f"{name}: pick(8) -> {pick(8, one)}")
        for plan in ("TP", "PP"):
            print("   ", plan, *(f"{n} ranks: {parallel(plan, n, 8, one)[0]:8.0f} ticks, {parallel(plan, n, 8, one)[1]:5.2f} tokens" for n in RANKS[1:]))

# %% [markdown]
# In training a pipeline is filled with microbatches that do not wait for one another, and its rate grows with the stages. Here a user's next token waits for this one. So every user
# gets one token a latency, and **as long as a pass costs the same for any number of users**, filling the stages with groups adds nothing that one large batch does not have: the plan
# with the smaller latency wins on both columns. The premise ends where passes carry so much that arithmetic counts (a prefill, a very large batch). There a pass gets longer with its users, stages
# share that work without any all-reduce, and the rate of a pipeline is worth having. Hence the usual mix: TP where links are fast, PP between machines, or where a model fits no other way.

# %% [markdown]
# ### Exercise 3 · What bounds a step?
#
# *difficulty 1 of 3 · 6 minutes · 2 points · practice*
#
# Write `bounds(row, card)`: the three times of section 1 for one row of the service, and which of them is the longest.
#
# | argument | meaning |
# |---|---|
# | `row` | `dict` with `launches`, `weight_bytes`, `cache_bytes`, `flops`, `busy` and more |
# | `card` | `dict`: `launch_us` (microseconds a launch), `gb_per_s` (1 GB = $10^9$ bytes), `gflop_per_s` |
#
# Returns a `dict`: `"launch"`, `"memory"`, `"compute"` in **microseconds** (`float`), and `"regime"`, the name of the longest.
#
# <details><summary>Hint</summary>
#
# 1 GB/s is 1,000 bytes a microsecond. One of the row's entries is a trap.
# </details>

# %% exercise="bounds" provides=["bounds"] difficulty=1 minutes=6
def bounds(row, card):
    """Microseconds of the three lower bounds of a step, and the name of the longest."""
    ### BEGIN SOLUTION
    times = {
        "launch": row["launches"] * card["launch_us"],
        "memory": (row["weight_bytes"] + row["cache_bytes"]) / card["gb_per_s"] / 1e3,
        "compute": row["flops"] / card["gflop_per_s"] / 1e3,
    }
    return {**times, "regime": max(times, key=times.get)}
    ### END SOLUTION

# %% check="bounds" points=2
from inferlab.lab import Check

check = Check("bounds", points=2)
card = {"launch_us": 5.0, "gb_per_s": 2.0, "gflop_per_s": 50.0}


def counted(launches, weight_bytes, cache_bytes, flops, busy=1.0):
    return {"kind": "decode", "launches": launches, "weight_bytes": weight_bytes, "cache_bytes": cache_bytes, "flops": flops, "busy": busy}


def bounds_of(row):
    """The learner's bounds, once they have the four keys."""
    got = check.learner.bounds(row, card)
    check.true(isinstance(got, dict) and set(got) == {"launch", "memory", "compute", "regime"}, "return a dict with launch, memory, compute and regime")
    return got


with check.part("a step of small kernels", weight=1):
    got = bounds_of(counted(1000, 2_000_000, 0, 1_000_000, busy=0.4))
    check.close(got, {"launch": 5000.0, "memory": 1000.0, "compute": 20.0, "regime": "launch"}, tol=1e-6)
### BEGIN HIDDEN TESTS
with check.part("a busy device that waits for its memory", weight=2):
    got = bounds_of(counted(100, 20_000_000, 4_000_000, 10_000_000))
    check.mistake("100% utilization says that some kernel ran all the time. Most of its time it waited for bytes", when=got["regime"] == "compute")
    check.mistake("the cache is read in every step, too", when=abs(got["memory"] - 10_000) < 1e-6)
    check.mistake("these are not microseconds", when=abs(got["memory"] - 12_000) > 1e-3 and any(abs(got["memory"] * 10.0**n - 12_000) < 1e-3 for n in range(-9, 10)))
    check.close(got, {"launch": 500.0, "memory": 12000.0, "compute": 200.0, "regime": "memory"}, tol=1e-6)
with check.part("a long prompt", weight=1):
    check.close(bounds_of(counted(300, 20_000_000, 1_000_000, 3_000_000_000)),
                {"launch": 1500.0, "memory": 10500.0, "compute": 60000.0, "regime": "compute"}, tol=1e-6)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 4 · What the rows say
#
# *difficulty 2 of 3 · 10 minutes · 3 points*
#
# Write `measures(rows, card)`: seven numbers that tell services apart, as a `dict`. "Decode rows" are those whose `kind` is `"decode"`; there is at least one.
#
# | key | value |
# |---|---|
# | `"sequences"` | mean number of sequences of a decode row |
# | `"free"` | share of the decode rows in which a slot is free although somebody waits |
# | `"waiting"` | the largest `waiting` of all rows |
# | `"useful"` | share of all `positions` (prefill and decode) that are `useful`, sum over sum |
# | `"cache_use"` | share of the reserved cache that is used, all decode rows together (sum over sum) |
# | `"idle"` | share of all rows whose `kind` is `"idle"` |
# | `"regime"` | the regime that most decode rows have, by the three bounds of exercise 3 |
#
# <details><summary>Hint</summary>
#
# You may call your <code>bounds</code>. <code>max(names, key=names.count)</code> finds the most frequent entry of a list.
# </details>

# %% exercise="measures" provides=["measures"] difficulty=2 minutes=10
def measures(rows, card):
    """Seven numbers of a service's rows."""
    ### BEGIN SOLUTION
    decode = [row for row in rows if row["kind"] == "decode"]
    regimes = [bounds(row, card)["regime"] for row in decode]
    return {
        "sequences": sum(row["sequences"] for row in decode) / len(decode),
        "free": sum(row["sequences"] < row["slots"] and row["waiting"] > 0 for row in decode) / len(decode),
        "waiting": max(row["waiting"] for row in rows),
        "useful": sum(row["useful"] for row in rows) / sum(row["positions"] for row in rows),
        "cache_use": sum(row["cache_used"] for row in decode) / sum(row["cache_reserved"] for row in decode),
        "idle": sum(row["kind"] == "idle" for row in rows) / len(rows),
        "regime": max(regimes, key=regimes.count),
    }
    ### END SOLUTION

# %% check="measures" points=3
from inferlab.lab import Check, reference

check = Check("measures", points=3)


def line(kind, sequences=0, waiting=0, positions=0, useful=0, used=0, reserved=0, launches=0, weight_bytes=0, flops=0):
    return {"step": 0, "kind": kind, "sequences": sequences, "slots": 4, "waiting": waiting, "positions": positions, "useful": useful,
            "cache_used": used, "cache_reserved": reserved, "cache_budget": 100, "launches": launches, "weight_bytes": weight_bytes,
            "cache_bytes": 0, "flops": flops, "encodes": 0, "busy": 1.0 if sequences else 0.0}


def measured(rows, card):
    """The learner's measures, once they have the seven keys."""
    got = check.learner.measures(rows, card)
    names = {"sequences", "free", "waiting", "useful", "cache_use", "idle", "regime"}
    check.true(isinstance(got, dict) and set(got) == names, "return a dict with exactly the seven keys of the contract")
    return got


price = {"launch_us": 4.0, "gb_per_s": 6.0, "gflop_per_s": 100.0, "encode_us": 500.0}
small = [line("idle", waiting=3), line("prefill", 2, 1, positions=20, useful=15, used=15, reserved=40, launches=300, weight_bytes=6_000_000, flops=9**9),
         line("decode", 2, 1, positions=22, useful=17, used=17, reserved=40, launches=300, weight_bytes=6_000_000),
         line("decode", 4, 1, positions=48, useful=40, used=40, reserved=80, launches=100, weight_bytes=6_000_000)]
with check.part("sequences and waiting of four small rows", weight=1):
    got = measured(small, price)
    check.close([got["sequences"], got["waiting"]], [3.0, 3], tol=1e-9)
### BEGIN HIDDEN TESTS
@reference
def served_rows(fault):
    """Rows of a real run of the service on the bundled model."""
    from inferlab.lab.service import serve
    from inferlab.models import load_language_model

    return vars(serve(*load_language_model("bundled", "cpu"), fault=fault))["rows"]  # no name that a cell may have: shared by three


VARIANTS = ["launch", "tokenizer", "memory", "batch", "cache", "padding"]


def truth(rows, card):
    decode = [r for r in rows if r["kind"] == "decode"]
    kinds = []
    for r in decode:
        times = [r["launches"] * card["launch_us"], (r["weight_bytes"] + r["cache_bytes"]) / card["gb_per_s"] / 1e3, r["flops"] / card["gflop_per_s"] / 1e3]
        kinds.append(("launch", "memory", "compute")[times.index(max(times))])
    n = len(decode)
    return {"sequences": sum(r["sequences"] for r in decode) / n, "free": sum(r["sequences"] < r["slots"] and r["waiting"] > 0 for r in decode) / n,
            "waiting": max(r["waiting"] for r in rows), "useful": sum(r["useful"] for r in rows) / sum(r["positions"] for r in rows),
            "cache_use": sum(r["cache_used"] for r in decode) / sum(r["cache_reserved"] for r in decode),
            "idle": sum(r["kind"] == "idle" for r in rows) / len(rows), "regime": max(kinds, key=kinds.count)}


with check.part("free slots, idle steps", weight=1):
    got = measured(small, price)
    check.mistake("a slot is only wasted while somebody waits for it, and only decode rows are asked for", when=got["free"] in (0.75, 0.25, 1.0))
    check.close([got["free"], got["idle"]], [0.5, 0.25], tol=1e-9)
with check.part("shares are sums over sums", weight=2):
    got, want = measured(small, price), truth(small, price)
    check.mistake("prefill pads, too: all rows count here", when=abs(got["useful"] - 57 / 70) < 1e-9)
    check.mistake("this is the mean of the rows' shares: long rows have to count more", when=abs(got["cache_use"] - (17 / 40 + 0.5) / 2) < 1e-9)
    check.close([got["useful"], got["cache_use"]], [want["useful"], want["cache_use"]], tol=1e-9)
with check.part("real runs", weight=2):
    for fault in (None, VARIANTS[check.variant(6)]):  # the rows that the cells below need as well
        rows = served_rows(fault)
        check.close(measured(rows, price), truth(rows, price), tol=1e-9)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 5 · Your service
#
# *difficulty 3 of 3 · 15 minutes · 4 points*
#
# Here is a service with one fault. Which, depends on your name. The questions are the same, and so are the answers:

# %%
from inferlab.lab.service import suspect

sick = suspect(served_model, served_tokenizer, lab.variant(6))
print("same answers:", sick.answers == healthy.answers[:len(sick.answers)])
print(show_rows(sick.rows, limit=24))

# %% tags=["demo"]
with when_written("measures", "bounds"):
    for name, rows in {"healthy": healthy.rows, "yours": sick.rows}.items():
        print(f"{name:8}", {key: round(value, 3) if isinstance(value, float) else value for key, value in measures(rows, CARD).items()})

# %% [markdown]
# | fault | what is wrong | the measure that proves it | its remedy |
# |---|---|---|---|
# | `"batch"` | one sequence at a time, although others wait for the only slot | `sequences` | `"batching"` |
# | `"cache"` | room is reserved that nobody uses, so slots stay free | `cache_use` | `"cache"` |
# | `"padding"` | most of the `positions` are padding | `useful` | `"padding"` |
# | `"tokenizer"` | the model waits for text | `idle` | `"tokenizer"` |
# | `"launch"` | the host cannot start kernels fast enough | `regime` | `"launches"` |
# | `"memory"` | nothing is wrong: all who are there decode together, and the weights are read for few | `waiting` | `"precision"` |
#
# Write `diagnose()`: a `dict` with
#
# | key | value |
# |---|---|
# | `"fault"` | one of the six |
# | `"measure"`, `"value"` | the name of the measure that proves it, and its value in **your** run |
# | `"order"` | a `list` of remedies, in the order in which you would try them |
#
# The order is a rule. Begin with the remedy of the bottleneck: nothing else can show before that is gone. Then follow those of the default order `"batching"`, `"cache"`, `"precision"`, `"speculation"`
# (by impact, for a memory-bound decode) that are not in the list yet. Who waits for room or for text counts as waiting: once the first remedy has brought it, it is a slot that they
# wait for. But if in the whole run nobody ever waits, more slots and more room serve nobody: then `"batching"` and `"cache"` go to the end, in this order.
# (`"speculation"` stays last of what is left, and is open only to a team that has a draft: a smaller variant of its model, or a small fine-tune.)
#
# <details><summary>Hint</summary>
#
# Several measures may look bad, and most are consequences. Few sequences in a step can have three causes: no slots, no room, no text. Look at what was free when somebody waited.
# </details>

# %% exercise="diagnosis" provides=["diagnose"] difficulty=3 minutes=15
def diagnose():
    """Fault, the measure that proves it with its value, and the order of remedies."""
    ### BEGIN SOLUTION
    found = measures(sick.rows, CARD)
    if found["idle"] > 0.2:
        fault, measure, first = "tokenizer", "idle", "tokenizer"
    elif found["regime"] == "launch":
        fault, measure, first = "launch", "regime", "launches"
    elif found["cache_use"] < 0.5:
        fault, measure, first = "cache", "cache_use", "cache"
    elif found["useful"] < 0.5:
        fault, measure, first = "padding", "useful", "padding"
    elif found["waiting"] == 0:
        fault, measure, first = "memory", "waiting", "precision"
    else:
        fault, measure, first = "batch", "sequences", "batching"
    rest = ["batching", "cache", "precision", "speculation"]
    if found["waiting"] == 0:
        rest = ["precision", "speculation", "batching", "cache"]
    return {"fault": fault, "measure": measure, "value": found[measure], "order": [first, *(remedy for remedy in rest if remedy != first)]}
    ### END SOLUTION

# %% check="diagnosis" points=4
from inferlab.lab import Check, reference

check = Check("diagnosis", points=4)


def diagnosis():
    """The learner's diagnosis, once it has the form that the contract asks for."""
    got = check.learner.diagnose()
    check.true(isinstance(got, dict) and set(got) == {"fault", "measure", "value", "order"}, "return a dict with fault, measure, value and order")
    check.true(got["fault"] in ("batch", "cache", "padding", "tokenizer", "launch", "memory"), "the fault is one of the six of the table")
    known = {"batching", "cache", "padding", "tokenizer", "launches", "precision", "speculation"}
    check.true(isinstance(got["order"], list) and all(isinstance(r, str) for r in got["order"]), "the order is a list of remedies")
    check.true(set(got["order"]) <= known and len(set(got["order"])) == len(got["order"]), "the order names remedies of the table and the default order, each once")
    return got


with check.part("the diagnosis has its form (what it says is graded when you hand it in)", weight=0):
    diagnosis()
### BEGIN HIDDEN TESTS
@reference
def served_rows(fault):
    """Rows of a real run of the service on the bundled model."""
    from inferlab.lab.service import serve
    from inferlab.models import load_language_model

    return vars(serve(*load_language_model("bundled", "cpu"), fault=fault))["rows"]  # no name that a cell may have: shared by three


ANSWERS = {  # fault -> the measure that proves it, its remedy
    "batch": ("sequences", "batching"), "cache": ("cache_use", "cache"), "padding": ("useful", "padding"), "tokenizer": ("idle", "tokenizer"),
    "launch": ("regime", "launches"), "memory": ("waiting", "precision"),
}
VARIANTS = ["launch", "tokenizer", "memory", "batch", "cache", "padding"]
truth = VARIANTS[check.variant(6)]
rows = served_rows(truth)
decode = [r for r in rows if r["kind"] == "decode"]
values = {
    "sequences": sum(r["sequences"] for r in decode) / len(decode), "waiting": max(r["waiting"] for r in rows), "regime": "launch",
    "useful": sum(r["useful"] for r in rows) / sum(r["positions"] for r in rows), "idle": sum(r["kind"] == "idle" for r in rows) / len(rows),
    "cache_use": sum(r["cache_used"] for r in decode) / sum(r["cache_reserved"] for r in decode),
}
with check.part("the fault", weight=3):
    got = diagnosis()["fault"]
    check.mistake("there are few sequences in a step, but slots are free: something keeps those who wait from entering them",
                  when=got == "batch" and truth in ("cache", "tokenizer"))
    check.mistake("few sequences decode together because only few are there: nobody waits", when=got == "batch" and truth == "memory")
    check.mistake("a step reads all weights in any service; look at what is different in yours", when=got == "memory" and truth != "memory")
    check.true(got == truth, "your rows show another fault")
with check.part("what proves it", weight=1):
    got = diagnosis()
    check.true(got["measure"] == ANSWERS[truth][0], "this measure does not prove the fault that your rows have")
    check.close(got["value"], values[got["measure"]], tol=1e-3)
with check.part("what comes first", weight=2):
    order = diagnosis()["order"]
    check.mistake("speculation makes more of each pass, once passes are what you wait for: it is the last of the default order", when=order[:1] == ["speculation"])
    check.mistake("the default order is for a memory-bound decode that lacks a batch; yours waits for something else",
                  when=order[:1] == ["batching"] and truth != "batch")
    check.true(order[:1] == [ANSWERS[truth][1]], "another remedy is the one for this bottleneck")
with check.part("the whole order", weight=2):
    default = ["precision", "speculation", "batching", "cache"] if truth == "memory" else ["batching", "cache", "precision", "speculation"]
    first = ANSWERS[truth][1]
    check.mistake("nobody waits in this run: more slots and more room go to the end", when=truth == "memory" and diagnosis()["order"][1:2] == ["batching"])
    check.equal(diagnosis()["order"], [first, *(r for r in default if r != first)], "after the first remedy the order is another")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Where does the time of a token go? Above, measured: the decode step of section 3, by modules. Below, counted: your service beside the healthy one.

# %% tags=["demo"]
from inferlab.lab.serviceplots import attribution, part_times, waits

attribution(part_times(step.rows()), {"healthy": waits(healthy.rows, CARD), "yours": waits(sick.rows, CARD)},
            title="A token's time, attributed", device=f"{lab.model} on {lab.device}")

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 12 minutes · 6 points: 3 for the typed lines, 3 for the sentences*
#
# About the **healthy** service of section 3, on the accelerator `CARD`.
#
# | line | what it says |
# |---|---|
# | `state:` | one or two sentences: what a decode step reads once however many sequences it has, and what it reads for each sequence |
# | `axis:` | one or two sentences: which axis grows when four sequences decode together instead of one, and which count stays, with numbers from the rows |
# | `trade-off:` | one or two sentences: what you gain and what you pay when speculation is switched on |
# | `bytes:` | typed, with a unit: the weights that one decode step reads |
# | `calls:` | typed: how often the model was called in all (prefill and decode) |
# | `regime:` | typed: `launch`, `memory` or `compute`, what bounds a decode step of the healthy service |
# | `first:` | typed: the remedy to try first in a service whose monitor shows 100% utilization, whose decode steps have 1 sequence, and in which 7 requests wait for the only slot |
# | `gain:` | typed, such as `bandwidth down`: what 8-bit weights improve in this service |
# | `cost:` | typed: what they may make worse |

# %%
explained = healthy.trace  # %%explain looks the numbers of your answer up in the newest trace that has a name

# %% explain="slow-decode" difficulty=2 minutes=12
%%explain slow-decode
# ### BEGIN SOLUTION
# state: A decode step reads the weights once for the whole batch, and it reads the cache of each sequence on top.
# axis: The batch axis grows from 1 to 4 sequences, so the input is (4, 1), while the weights stay at 23.6 MB in every step.
# trade-off: With speculation the latency goes down because the target needs fewer passes, but more compute is spent on drafts that are thrown away.
# bytes: 23.6 MB
# calls: 21
# regime: memory
# first: batching
# gain: latency down
# cost: error up
# ### END SOLUTION

# %% check="slow-counts" of="slow-decode" points=1
from inferlab.lab import Check, reference

check = Check("slow-counts", points=1)
with check.part("`bytes:` and `calls:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("slow-decode").get("bytes"), "`bytes:` is empty")
    check.true(check.explanation("slow-decode").get("calls"), "`calls:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed


@reference
def served_rows(fault):
    """Rows of a real run of the service on the bundled model."""
    from inferlab.lab.service import serve
    from inferlab.models import load_language_model

    return vars(serve(*load_language_model("bundled", "cpu"), fault=fault))["rows"]  # no name that a cell may have: shared by three


with check.part("the weights of a decode step"):
    told, rows = check.explanation("slow-decode"), served_rows(None)
    weight = rows[-1]["weight_bytes"]
    check.mistake("a step reads the weights once for all sequences", when=typed(told, "bytes", 4 * weight, tolerance=0.03).verdict == "award")
    outcome = typed(told, "bytes", weight, tolerance=0.06)
    check.true(outcome.verdict == "award", outcome.reason)
with check.part("the calls of the model"):
    told, rows = check.explanation("slow-decode"), served_rows(None)
    check.mistake("these are the decode steps: prompts were prefilled, too",
                  when=typed(told, "calls", sum(r["kind"] == "decode" for r in rows)).verdict == "award")
    outcome = typed(told, "calls", len(rows))
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="slow-names" of="slow-decode" points=1
from inferlab.lab import Check

check = Check("slow-names", points=1)
with check.part("`regime:` and `first:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("slow-decode").get("regime"), "`regime:` is empty")
    check.true(check.explanation("slow-decode").get("first"), "`first:` is empty")
### BEGIN HIDDEN TESTS
import re


def only(label, words):
    """The one of these words that stands on a typed line; a line that holds several says nothing."""
    told = check.explanation("slow-decode").get(label).casefold()
    found = [word for word, pattern in words.items() if re.search(rf"\b({pattern})", told)]
    check.true(not re.search(r"\b(not|no|never)\b", told), f"`{label}:` says what it is not")
    check.true(len(found) == 1, f"`{label}:` wants one of {', '.join(words)}")
    return found[0]


with check.part("the regime"):
    name = only("regime", {"launch": "launch", "memory": "memory|bandwidth", "compute": "comput"})
    check.mistake("busy is not compute-bound: the arithmetic of this step is a small part of its time", when=name == "compute")
    check.true(name == "memory", "another bound is longer on this accelerator")
with check.part("what comes first"):
    name = only("first", {"batching": "batch|continuous", "cache": "cache|paged|paging", "precision": "precision|quanti|int8|8-bit",
                          "speculation": "specul|draft", "launches": "launch|compile|graph", "compute": "faster|bigger|more gpu"})
    check.mistake("speculation first: it is the last of the default order, and here seven requests wait for a batch", when=name == "speculation")
    check.mistake("100% utilization does not mean compute-bound", when=name == "compute")
    check.true(name == "batching", "something else has more impact here")
### END HIDDEN TESTS
check.score()

# %% check="slow-gain-cost" of="slow-decode" points=1
from inferlab.lab import Check

check = Check("slow-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("slow-decode").get("gain"), "`gain:` is empty")
    check.true(check.explanation("slow-decode").get("cost"), "`cost:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

check.slot(lambda: typed(check.explanation("slow-decode"), "gain", ("latency down", "memory down", "traffic down", "throughput up", "bandwidth down", "transfer down")),
           "what 8-bit weights gain")
check.slot(lambda: typed(check.explanation("slow-decode"), "cost", ("error up", "quality down", "precision down", "accuracy down"),
                         terms={"precision": "numerical precision, exactness"}), "what they cost")
### END HIDDEN TESTS
check.score()

# %% check="slow-state" of="slow-decode" points=1
from inferlab.lab import Check

check = Check("slow-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("slow-decode").get("state"), "`state:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What a decode step reads once however many sequences it has, and what it reads for each sequence.",
    lab="All of this is memory-bound, so a step takes as long as its bytes: the weights once, and the cache of every sequence. That is what a batch shares.",
    terms={
        "weights": "weight*, parameter*, model weight*, weight matri*, parameter matri*, the model, the net, whole net, whole model, entire model, network, "
                   "matrices",
        "cache": "cache*, kv cache*, kv-cache*, keys and values, key/value cache*, keys, values, kv, k and v, k/v, keys/values, history",
        "step": "decode step*, step*, decode pass*, pass, iteration*, forward, service, gpu, device, it",
        "sequence": "sequence*, request*, user*, person, people, conversation*, passenger*, client*, each one",
        "batch": "batch*, all sequences, everyone, everybody, all of them, whole group",
        "prompt": "prompt*, text, tokenizer*, vocabulary, embedding*, logits",
    },
    slots={"state": Slot(
        learned="lab19 state a2cd29cd33e0a618",
        # not a direction: what learners say for the two halves of the answer, in phrases (a `not` before one denies it)
        trend=Trend("prompt", gain={"weights once": "up"}, cost={"a cache for each": "up"}, asked="up", says={
            "weights once up": "weight/weights/parameter/parameters/model/net/network/matrices .. "
                               "once/one/single/shared/share/common/amortised/amortized/everybody/everyone/together/whole/all, "
                               "once/one/single/common/share/shares/shared/sharing/same .. weight/weights/parameter/parameters/model/net/network/matrices, once, "
                               "one time/read/reading/load/sweep/pass, a single time/read/reading/load/sweep/pass/trip, read/reads/loads/loaded a single time, "
                               "fixed part/cost/amount, constant part/cost/amount, weights/parameters 1x, "
                               "weight/weights/parameters .. no matter/independent/regardless/whatever/irrespective/however/whether, "
                               "once per step/pass/trip/iteration/batch, all share/shares the",
            "a cache for each up": "for every sequence/user/request/row/one/person, by every/each sequence/user/request, everyone's/everybody's own, "
                                   "as often as there are, for each row, per row, cache/caches/kv/keys/values/history/k .. "
                                   "each/every/per/own/private/personal/individual/individually/separate/separately/apiece/proportional/scale/scales, "
                                   "each/every/per/own/private/personal/individual/one/separate/his/her/their .. cache/caches/kv/keys/values/history/k, "
                                   "each/every/per sequence/user/request/one/person/conversation .. cache/caches/kv/keys/values/history/own, "
                                   "everybody's/everyone's/sequence's/user's/request's/person's .. cache/caches/kv/keys/values/history, its own, "
                                   "per sequence/request/user/conversation/person, individual/specific/private/particular/own to each, individually, separately, "
                                   "belong/belongs to a/one/each/its, for it alone, for that/each one alone, n/N/times a/the cache/caches, one for/per each, "
                                   "for each sequence/user/request/one/conversation, for each of the/them/these, of that/its/this/each/every sequence/user/request, "
                                   "that/this/each one's cache, each/every passenger/guest/rider/client/customer .. own/his/its, specific to a/each/every/one, cache/caches/kv/keys/values .. once for each/every, "
                                   "cache/caches of each/every/all, has/have .. in .. cache, all the caches, cache/kv .. times as many/four times",
        }),
        deny={
            "says: each/every sequence/user/request/one/conversation reads/loads/fetches/needs/streams/brings/has/uses the/its/all/own/their weights/parameters, "
            "each/every sequence/user/request reads/loads/fetches/needs/has its/all own/the weights/parameters, sequences read/load/need/fetch their weights, "
            "weights it reads for/per each/every/sequence, each reads/loads the/all/its weights, own quarter/part/share of the weights, nothing is shared, "
            "weights once per sequence/user/request, weights once for each/every sequence/user/request, weights are read/loaded once per sequence/user/request, "
            "weights are read/loaded once for each/every": "The weights are read once a step, for all sequences together.",
            "says: weights are/get/is read/loaded/fetched/needed/streamed per/for/by each/every/sequence/user/request, weights per sequence/user/request, "
            "weights for each/every/itself/themselves, weights again, "
            "read/reads/loaded/loads/fetched again for, own copy of, own weights, copy of the weights/model, weights four/4 times, reads weights separately, weights of .. are read for each/every, each/every sequence .. must/has/have/needs read/reads/load/loads all, "
            "each/every sequence .. read/reads/load/loads all the/its weights, read/reads/load/loads them four/4/n times": "The weights are read once a step, for all sequences together.",
            "says: only those/some/the weights that, only the needed weights, skips the rest, weights that .. current token": "A step needs all the weights.",
            "says: weights were/are stored/kept in the cache/kv, because they were stored, whole/entire/full prompt .. again, prompt .. through all/the layers":
                "The weights come from memory in every step; of the prompt only keys and values are read, from the cache.",
            "says: share/shares/shared/sharing the/a/one/its cache, cache is/are/gets shared/common, "
            "cache/caches/kv/keys/values once for all/the/everyone/everybody/them, cache/caches/kv/keys/values is/are read/loaded/fetched/needed once for all/the/everyone/everybody/them, "
            "cache/caches/kv is/are read/loaded/fetched only/just once, cache/kv/caches is/are read/loaded/fetched once per/a/in/and/while/but/however, cache it reads once, cache is what, "
            "caches are what, share/shares/sharing the same keys/cache/kv, read/reads the same cache/kv/keys, weights and .. cache/caches .. once, cache and .. weights .. once, caches are shared/common, common cache, shared cache, one cache for all, "
            "single cache for": "A sequence's cache is its own; the weights are what the batch shares.",
            "* recomputes cache": "The cache is read, not computed again.",
            "says: when the server starts, never again, at the start, computed/calculated/built anew/again, read at start": "Both are read in every step.",
            "says: tokenizer/vocabulary/prompt/embedding/logits is/gets/are read/loaded once, tokenizer's vocabulary": "The weights are what is read once, all of them.",
        },
        topic=["weights"],
        names=["weights", "cache"],
    )},
    must_award={"state": [
        "The weights are read once a step for all sequences, and the cache of every sequence is read as well.",
        "A step loads the weights once for the whole batch; each sequence brings a KV cache of its own that is read too.",
        "One decode step reads all parameters a single time, plus the keys and values of each request.",
        "It reads the weights once and the kv cache per sequence.",
        "The weights are read once per step, and the KV cache is read once for each sequence.",
        "However many sequences there are, the step loads the weights a single time; then it reads the keys and values of each of them.",
        "the whole model comes over from memory one time and everybody shares that, but the cache is private to each user",
    ]},
    must_deny={"state": [
        "Each sequence reads the weights again, and the cache is read once.",
        "The batch shares the cache, and every sequence loads the weights for itself.",
        "Every sequence reads the weights for itself; the cache is shared.",
        "The step recomputes the cache of each sequence and does not touch the weights.",
        "The weights are not read once for all sequences.",
        "A step reads the KV cache once and the weights once per sequence.",
        "The cache is what the step reads once, while the weights of the model are read for each sequence.",
        "The weights are read once, since they were stored in the cache, and the whole prompt is run again for each sequence.",
        "The step reads once only the weights that the token needs, and each sequence adds its cache.",
    ]},
)
check.slot(lambda: grade(check.explanation("slow-decode"), RUBRIC, {})["state"], "what is read once, and what for each sequence")
### END HIDDEN TESTS
check.score()

# %% check="slow-axis" of="slow-decode" points=1
from inferlab.lab import Check

check = Check("slow-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("slow-decode").get("axis"), "`axis:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Amounts, Rubric, Slot, grade

RUBRIC = Rubric(
    question="Which axis grows when four sequences decode together instead of one, and which count stays, with numbers from the rows.",
    lab="The same 23.6 MB in every line, whether one sequence decodes or four. That is what a batch shares.",
    terms={
        "batch": "batch*, batch axis, batch size, batch dimension, first axis, first dimension, leading axis, leading dimension, axis 0, dim 0, dimension 0, "
                 "rows, row, sequence*, request*, user*, number of sequences",
        "weights": "weight*, parameter*, weight bytes, weight traffic, bytes of weights, weights read, model, bytes read, weights column, megabytes, bytes, bytes of a step, what is read, amount read",
        "layers": "layer*",
        "length": "sequence length, sequence axis, sequence dimension, sequence length axis, token axis, time axis, time dimension, second axis, "
                  "second dimension, last axis",
        "tokens": "token*, position*, new token*",
        "hidden": "hidden axis, hidden size, hidden dimension, width, vocabulary*, vocabulary axis, head*",
        "launches": "launch*, kernel*, call*",
    },
    slots={"axis": Slot(
        learned="lab19 axis 27d34ce538405bfa",
        names=["batch", "weights"],
        deny={"says: grows is/are the number of calls/steps/passes, number of model calls, calls per step, four/4 calls, one call for/per each sequence, one call per sequence": "The four sequences go through the model in one call; what grows is its batch.",
                  
            "says: weights shrink/shrinks/fall/falls/drop/drops/decrease/decreases/halve, weights .. fall/falls/drop/drops/shrink/shrinks/decrease/decreases from, "
            "weights .. rise/rises/grow/grows/climb/increase/increases from, weight bytes/traffic/reads grow/grows/rise/rises/increase/increases, "
            "so do the weights, so do weights, reads/loads/needs its/their own, own copy of, own weights, stays is the cache/batch, stays/constant is the batch": "A step reads the same weights, once, however many sequences there are; what grows is the batch.",
            "says: cache/caches/kv stays/stay/remains/is/are the same, cache stays/remains, share/shares/sharing one/a/the cache, cache is shared, one cache of, cache that .. stays":
                "Each sequence brings a cache of its own; what stays are the weights.",
            "says: calls/launches/kernels/passes grow/grows/increase/rise, calls/launches/kernels/passes go/goes from/up, one call/pass/step/launch per/for sequence/each/every":
                "All four sequences go through in one call.",
            "says: token/tokens/length/time axis .. goes/grows, token/tokens/length/time axis that, tokens are added to the sequence, tokens to the/one sequence":
                "One token of each sequence goes in: it is the batch that grows.",
            "says: weights grow/grows/increase/increases/double/rise/quadruple/multiply, weights go/goes/went up, weights .. larger/bigger, weights .. grow/grows with, "
            "weights for each of the four, weights four times, four times the weights": "The weights are read once, however many sequences there are.",
            "says: layers grow/increase, layers go up, more layers": "The number of layers has nothing to do with the batch.",
            "hidden grow/increase/extend/expand": "Only the batch axis grows.",
            "says: read/reads/loaded/needed 4/four times": "The weights are read once, however many sequences there are.",
            "length grow/increase/extend/expand/lengthen": "One token of each sequence goes in, however many sequences there are: it is the batch that grows.",
            "says: 4 down to 1, from 4 to 1, 4 to 1, four to one, from four to one, batch shrinks/drops/falls/decreases, "
            "batch axis shrinks/drops/falls/decreases, batch goes down, sequence length grows/increases, length axis become/becomes/gets longer, "
            "length becomes/gets longer, more tokens of/for one, 4 tokens for/of one, token axis grows/increases, "
            "batch axis does not grow, batch does not grow, batch stays/remains/is unchanged, batch axis stays, batch stays, batch size stays, get merged, are merged into": "Four sequences are four rows of the batch instead of one.",
        },
        amounts=Amounts(shapes=["four", "one"], counts={"batch": [1, 4], "weights": ["weights", 23.6], "tokens": [1, 4], "length": [1, 4], "layers": [8]}, key=["batch=4"]),
        loose=True,
    )},
    must_award={"axis": [
        "The batch axis grows from 1 to 4, while the weights stay at 23.6 MB.",
        "The batch dimension is 4 instead of 1, and a step still reads the same weights.",
        "The first axis of input_ids goes from 1 to 4; the weights stay the same.",
        "The input becomes (4, 1): the batch grows, but the weights that are read do not change.",
        "There are four rows in the batch now where it was one, each with 1 new token, and the model still reads 23.6 MB.",
    ]},
    must_deny={"axis": [
        "The weights grow from 23.6 MB to 94 MB because each sequence needs them.",
        "The batch grows to 8 sequences in each step.",
        "The weights increase with the batch of 4.",
        "The layers grow from 8 to 32, with a batch of 4.",
        "The sequence length grows from 1 to 4 tokens.",
        "The batch axis shrinks from 4 to 1.",
        "The batch goes from 1 to 4, and the weights that a step reads fall from 23.6 MB to 5.9 MB.",
        "The batch is 4 now, and the cache stays the same since all of them share one cache of 23.6 MB.",
        "The batch grows from 1 to 4, and so do the weights.",
        "It is the token axis that goes from 1 to 4; the weights stay at 23.6 MB.",
        "The batch axis grows from 1 to 4, and each sequence reads its own 23.6 MB of weights.",
        "The number of calls grows from 1 to 4, one call per sequence, with the same weights.",
    ]},
    example_facts={"four": (4, 1), "one": (1, 1), "weights": 23_610_368},
)
check.slot(lambda: grade(check.explanation("slow-decode"), RUBRIC, {"four": (4, 1), "one": (1, 1), "weights": 23_610_368})["axis"], "which axis grows and what stays")
### END HIDDEN TESTS
check.score()

# %% check="slow-trade-off" of="slow-decode" points=1
from inferlab.lab import Check

check = Check("slow-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("slow-decode").get("trade-off"), "`trade-off:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What you gain and what you pay when speculation is switched on.",
    lab="Speculation attacks passes: several tokens for one reading of the weights.",
    terms={
        "speculation": "speculation, speculative decoding, speculating, each pass, one pass, a pass, per pass, every pass, each target pass, each reading, "
                       "single pass, one reading, a single reading, one forward, each forward, per forward, "
                       "per weight read, each weight read, per reading of the weights, for one reading of the weights, save a lot of time, save lots of time",
        "target": "target pass*, passes of the target, passes of the big model, passes of the large model, passes, big model passes, weight reads, "
                  "readings of the weights, target calls, target forwards, rounds of the slow model, calls of the big model, fetched less often, read less often, "
                  "loaded less often, streamed less often, runs less often, run less often, called less often, used less often, needed less often, weight traffic, "
                  "runs fewer times, run fewer times, read fewer times, fetched fewer times, loaded fewer times, called fewer times, used fewer times, called less, runs less, "
                  "weights less often, weights fewer times",
        "wasted": "rejected token*, wasted token*, discarded token*, wasted work, wasted computation, wasted compute, wasted arithmetic, draft .. time, "
                  "drafting .. time, passes of its own, its own passes, passes of the draft, tokens that are dropped, tokens that get dropped, guesses that are dropped, "
                  "dropped tokens, dropped guesses",
    },
    slots={"trade-off": Slot(
        learned="lab19 trade-off 843f896e4defe6f7",
        deny={
            "says: worse/lower quality, worse answers/output/text, quality drops/suffers/falls/declines, quality goes down, quality is/gets worse/lower, "
            "loses/lose/losing quality, changes the output/answers/distribution, changed output, "
            "pay/pays/paid with quality/accuracy/precision, costs/cost quality/precision/accuracy, gets less accurate/exact, answers less accurate/exact, answers that are less, "
            "answers are less, less accurate answers, different distribution, answers become/get worse": "What the target would not have said is rejected: the output stays the "
                                                                                       "target's.",
            "says: pay/pays/pay is nothing, paid is nothing, nothing is paid, costs nothing, nothing in compute, for free, comes free, is free, without any cost, "
            "weights .. read/loaded two/2 times, weights .. read/loaded twice": "The draft has to run, and what is rejected was work for nothing.",
            "says: skip/skips/skipping .. layers, weights smaller, weights of the model get bigger, batch bigger, until the batch is full, once more for every":
                "A draft proposes, and the whole target checks several tokens in one pass; weights and batch stay as they are.",
            "says: big/large/target model/one guesses/guess/proposes/drafts/propose, target guesses/proposes/drafts/suggests, "
            "small/little/draft model/one checks/verifies/judges/check, draft checks/verifies/judges":
                "The draft proposes and the target checks, not the other way round.",
        },
        trend=Trend(
            "speculation", gain={"time": "down", "target": "down", "throughput": "up", "transfer": "down"}, cost={"compute": "up", "memory": "up", "wasted": "up"}, switch=True, asked="up",
            says={
                "time down": "earlier, sooner, save/saves a lot of time, save/saves lots of time",
                "target down": "more/several/multiple/many/two/three/couple .. token/tokens/words .. "
                               "pass/read/reading/readings/trip/forward/round/call/sweep/run/target/time/once, "
                               "more/several/multiple/many/couple .. from/out/of .. pass/trip/target/model, "
                               "token/tokens/words per .. pass/read/reading/forward/call up, tokens/words per pass, more than one token, "
                               "several/multiple/few/many candidate/drafted tokens at once/together, a few tokens at a time, "
                               "fewer/less .. pass/passes/reads/readings/rounds/calls/trips/sweeps/forwards/runs, "
                               "one/a/each/every/per/single pass .. give/gives/yields/yield/hands/produces/makes .. more/several/multiple/many/few/tokens/couple, "
                               "pass/passes .. give/gives/yields/yield/hands/produce/produces .. more/several/multiple/many/few, "
                               "read/fetched/loaded/streamed/runs/run/called/used/weights less often, read/fetched/loaded/runs/run/called/used/weights fewer times, called/runs less, "
                               "fewer .. per token, fewer/less rides, "
                               "one/a/each/every/per/single pass/ride/run/verification/check/round .. deliver/delivers/brings/confirm/confirms/accept/accepts/keeps/yield/yields .. "
                               "more/several/multiple/many/few/tokens/couple/two/three, "
                               "token/tokens/words .. accepted/confirmed/kept/checked in/by/with/per one/a/each/single, "
                               "several/multiple/more tokens/words for .. one/a/single",
                # work for nothing is work
                "compute up": "reject/rejected/discarded/refused/binned/wrong/bad/missed/thrown/failed/unaccepted .. "
                              "token/tokens/guess/guesses/proposal/proposals/draft/drafts/candidate/candidates, "
                              "work/token/tokens/guess/guesses/proposal/proposals/draft/drafts/candidate/candidates/ones .. "
                              "reject/rejected/discarded/refused/binned/thrown/wasted/lost/miss/dropped/nobody/nothing/wrong, "
                              "work/token/tokens/guess/guesses/proposal/proposals/draft/drafts/candidate/candidates .. not/aren't/isn't accepted/kept/used, "
                              "waste/wastes/wasting work/compute/flops/arithmetic/computation/effort, misses are wasted, "
                              "for nothing, in vain, wasted, thrown away/out, nobody keeps, is lost, work .. discarded/dropped/unused/rejected, get/gets thrown, "
                              "get/gets rejected/discarded/dropped, not used, of junk, not accepted, "
                              "second/additional/extra/another/little/small model .. run/runs/running/memory/compute/eats/needs/next/stored/beside/well, "
                              "running .. second/little/small/draft/extra/another model, "
                              "draft .. run/runs/running/executed/execute/execution/cost/costs/time/passes/stored/memory, draft's cost/passes/compute/flops/runs, "
                              "drafting passes/cost/costs, cost/costs/execution/running/run/runs of .. draft/drafting/drafter, "
                              "draft model must/has/needs, draft has to, "
                              "extra/additional/surplus/more/another .. model/arithmetic/flops/compute/computation/work, "
                              "pay/pays/paid/paying .. draft/drafting/drafts, has/have to run .. draft, also running, an additional model",
            }))},
    must_award={"trade-off": [
        "Speculation makes the tokens come sooner, but it needs more compute because some drafts are rejected.",
        "With speculation a token comes sooner, but the draft model costs extra memory and extra FLOPs.",
        "Tokens come faster, and more FLOPs are spent.",
        "The latency drops while the compute goes up.",
        "The target runs fewer times for the same text, at the price of a draft that runs too and of guesses that are thrown away.",
        "You get more tokens per weight read, and waste work on the guesses that turn out wrong.",
        "One pass of the big model gives several tokens, but a draft must run too, and what is rejected was work for nothing.",
    ]},
    must_deny={"trade-off": [
        "Speculation makes decoding slower and needs less compute.",
        "With speculation the latency goes up but the FLOPs go down.",
        "Speculation raises the latency and saves memory.",
        "Tokens come later, but less compute is needed.",
        "The tokens come faster, but the quality drops since a small model writes them.",
        "Fewer passes are needed for the same tokens, and the draft costs nothing.",
    ]},
)
check.slot(lambda: grade(check.explanation("slow-decode"), RUBRIC, {})["trade-off"], "what speculation gains and costs")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **100% utilization does not mean compute-bound.** It means that some kernel was running. In all six services the monitor says 100% wherever the model runs.
# * **Speculation is not the first thing to try.** It makes more of each pass. While passes carry one user, or wait for the host, there is more to win elsewhere.
# * **The order follows the bottleneck.** Batching, cache, precision, speculation is the order of a memory-bound decode. In front of it stand the faults that hide what comes after them.
# * **Few sequences in a step is a symptom.** No slots, no room, no text, no users: four causes, four remedies.
# * **Remedies do not add up, they multiply, and each works on what the others left.** Half of the weights is not half of the bytes once a batch brings its caches.
# * **A factor without its baseline says nothing.**
#
# Say it out loud, as in an interview: name what a step reads, what grows with the batch, and what bounds it, and only then a technique.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
