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
# "The GPU is at 100% and users complain. Do we need speculative decoding?" Before that comes another
# question: what does a decode step wait for? You take a claim of "10x" apart and compare two ways to use more
# devices. Then you get a service whose answers are right and whose tokens take long. It has a hidden fault,
# or only few users.
#
# **Time** 55 to 65 minutes · **Points** 16, of which 2 are practice (exercise 2) · **Reading**
# [The decode is slow](../../handbook/lab19-slow-decode.md) in the handbook, before you start

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
# The service always runs the bundled model on the CPU. `MODEL` and `DEVICE` decide only which decode step you
# take apart in section 3.

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say from counts alone what a decode step waits for, which remedies can help and in
# which order, and what a claim such as "10x" is worth.
#
# A step takes at least as long as the longest of three things:
#
# $$t \ge \max\left(\text{launches}\cdot t_{\text{launch}},\;\; \frac{\text{bytes}}{\text{bandwidth}},\;\; \frac{\text{FLOPs}}{\text{peak}}\right)$$
#
# | regime | what a step waits for | what helps | what does not |
# |---|---|---|---|
# | **launch-bound** | the host, which starts one small kernel after the other | fewer launches: CUDA graphs, `torch.compile`, removing kernels that are not needed | fewer bytes, fewer FLOPs |
# | **memory-bound** | weights and cache, read once a step | more sequences a step, smaller weights, more tokens a pass | a faster matrix unit |
# | **compute-bound** | the matrix units | fewer positions (less padding), arithmetic in lower precision | a bigger batch |
#
# And a step serves only requests that have been let in: before the model a request needs the tokenizer, a
# slot, and room in the cache. Each technique attacks one wait:
#
# | technique | attacks |
# |---|---|
# | continuous batching | weights that are read for a single user |
# | paged cache | memory that is reserved and not used, so that few users fit |
# | quantization | bytes of the weights, or of the cache |
# | speculation | passes: several tokens for one reading of the weights. It needs a draft model with the same tokenizer |

# %% [markdown]
# ## 2 · Predict: dissect a claim
#
# ### Exercise 1 · "More than ten times the throughput"
#
# *difficulty 2 of 3 · 9 minutes · 3 points*
#
# A vendor claims more than ten times the throughput for a model of Llama 3 8B's size. The next cell lists the
# techniques, one added after the other, and the counts of a step with each:

# %%
from inferlab.lab.kits.decode.roofline import call_cost
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
          f"cache of a sequence {entry['cache_bytes'] / 1e9:.2f} GB   tokens a pass and sequence "
          f"{entry['tokens_per_pass']}")

# %% [markdown]
# All these steps are memory-bound, so a step takes as long as reading its bytes: the weights once, and the
# cache of **every** sequence. So throughput is measured in tokens per byte. (The bytes of the draft model are
# left out.)
#
# Write `dissect(stack, baseline)`: the factor that each technique contributes, **compared with the entry
# before it**.
#
# | argument | meaning |
# |---|---|
# | `stack` | `list` of `dict` as above: `name`, `batch` (sequences), `weight_bytes`, `cache_bytes` (of one sequence), `tokens_per_pass` |
# | `baseline` | the `name` of the entry that the claim is measured against |
#
# Returns a list of tuples `(name, factor)`, one for each entry after the baseline, in order. The product of
# the factors is the claim.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A step of `batch` sequences makes `batch * tokens_per_pass` tokens. What does it read? Divide neighbors.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The rate of an entry is <code>batch * tokens_per_pass</code> over <code>weight_bytes + batch *
# cache_bytes</code>. From place <code>first</code> on, each entry's factor is its rate over the rate of the
# entry before it: <code>zip(stack[first:], stack[first + 1:])</code>.
# </details>

# %% exercise="dissect" provides=["dissect"] difficulty=2 minutes=9
def dissect(stack, baseline):
    """(name, factor against the entry before it) of every entry after the baseline."""
    def rate(entry):
        """Tokens per byte of one step."""
        ### BEGIN SOLUTION
        read = entry["weight_bytes"] + entry["batch"] * entry["cache_bytes"]
        return entry["batch"] * entry["tokens_per_pass"] / read
        ### END SOLUTION

    first = [entry["name"] for entry in stack].index(baseline)
    ### BEGIN SOLUTION
    return [(now["name"], rate(now) / rate(before)) for before, now in zip(stack[first:], stack[first + 1:])]
    ### END SOLUTION

# %% check="dissect" points=3
from inferlab.lab import Check, close

check = Check("dissect", points=3)


def entry(name, batch, weight_bytes, cache_bytes=0, tokens_per_pass=1.0):
    return {"name": name, "batch": batch, "weight_bytes": weight_bytes, "cache_bytes": cache_bytes,
            "tokens_per_pass": tokens_per_pass}


def parts_of(stack, baseline):
    """The learner's list, once it has pairs of a name and a number."""
    got = check.plain(check.learner.dissect(stack, baseline))
    check.true(isinstance(got, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in got),
               "return a list of tuples (name, factor)")
    check.true(all(isinstance(pair[1], (int, float)) for pair in got),
               "a factor is a number, such as 2.0 for twice as much")
    return got


with check.part("batching alone, with a cache that weighs nothing", weight=1):
    check.close(parts_of([entry("alone", 1, 100), entry("batching", 8, 100)], "alone"), [("batching", 8.0)],
                tol=1e-6)
### HIDDEN TESTS
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
# The same stack gives two numbers. Compared with one request at a time the factor is more than ten, and
# batching is the largest part of it. Against a service that already batches, the same stack gives only about
# 3.7x. Ask of every factor: which techniques, how much from each, **against which baseline**?

# %% [markdown]
# ## 3 · Trace
#
# First one decode step of the model that you chose, on this device, taken apart.

# %%
from inferlab.trace import trace
from transformers import DynamicCache

prompt = torch.tensor([tokenizer("a red circle moves left and a blue square moves up").input_ids],
                      device=model.device)
held = DynamicCache(config=model.config)
for piece in (prompt, prompt[:, -1:]):  # the second call warms up
    model(piece, None, None, held, logits_to_keep=1)
with trace(model, depth="all") as step:
    model(prompt[:, -1:], None, None, held, logits_to_keep=1)
print(len(step.rows()), "boundaries in one decode step of one sequence")

# %% tags=["demo"]
from inferlab.lab.kits.decode.roofline import measure_device, overhead_seconds, regime

rates, overhead = measure_device(lab.device, model.dtype), overhead_seconds(model.config, lab.device,
                                                                            model.dtype)
name, bounds_here = regime(call_cost(model.config, 1, prompt.shape[1], itemsize=model.dtype.itemsize), rates,
                           overhead)
print(f"{rates.name}: this decode step is {name}")
for bound, seconds in bounds_here.items():
    print(f"   {bound:14} at least {1e3 * seconds:7.3f} ms")

# %% [markdown]
# Seconds are shown here, never graded. The bundled model is launch-bound nearly everywhere. From here on,
# times are computed for a made-up accelerator, slow enough that our small model's decode is memory-bound on
# it:

# %%
from inferlab.lab.kits.service.text_service import CARD

CARD

# %% [markdown]
# Now the service: eight questions arrive at once, and up to four decode together. The service really runs,
# and every call of the model is traced. First without a fault:

# %%
from inferlab.lab.kits.service.text_service import serve, show_rows

healthy = serve(served_model, served_tokenizer)
print(show_rows(healthy.rows))

# %% tags=["demo"]
for call in [row for row in healthy.trace.rows() if row["level"] == 0][:4]:
    print(f"input_ids {call['inputs']['input_ids']['shape']} -> logits {call['outputs']['logits']['shape']}")

# %% [markdown]
# A line of the first table is one call of the model. The lines below it show the tensors of the first calls.
# Look at four places:
#
# * **`waiting`** counts requests that are not let in yet, and **`cache used/reserved`** tokens: those in the
#   cache, and those that room is reserved for;
# * **`positions`**: in prefill, the tokens of the padded prompts. In decode, each new token and its padded
#   cache. **`useful`** is the same without padding. A batch is padded to its longest, so a little waste is
#   normal;
# * **`weights`**: the same 23.6 MB in every line, for one sequence or four. That is what a batch shares;
# * **`busy`**: 100% whenever the model runs. A monitor shows this number as "GPU utilization". It says that
#   *some* kernel ran, not what the step waited for.

# %% [markdown]
# ## 4 · Read
#
# Why can a step be launch-bound? Count the kernels in the library's smallest module. It runs twice in every
# layer, in decode on a single token.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.models.llama.modeling_llama import LlamaRMSNorm

show_source(
    LlamaRMSNorm.forward,
    {
        "hidden_states = hidden_states.to(torch.float32)":
            "One launch in 16 bits; none in float32.",
        "variance = hidden_states.pow(2).mean(-1, keepdim=True)": "Two launches, for one number a token.",
        "hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)":
            "Three: add, rsqrt, multiply. The host spends longer starting them than the device doing them.",
        "return self.weight * hidden_states.to(input_dtype)":
            "One or two more. A fused norm is a single kernel; torch.compile writes one.",
    },
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · What bounds a step?
#
# *difficulty 1 of 3 · 4 minutes · 2 points · practice*
#
# Write the three times of `bounds(row, card)`: the lower bounds of section 1 for one row of the service's
# table.
#
# | argument | meaning |
# |---|---|
# | `row` | `dict` with `launches`, `weight_bytes`, `cache_bytes`, `flops`, `busy` and more |
# | `card` | `dict`: `launch_us` (microseconds a launch), `gb_per_s` (1 GB = $10^9$ bytes), `gflop_per_s` |
#
# Returns a `dict`: `"launch"`, `"memory"`, `"compute"` in **microseconds** (`float`), and `"regime"`, the
# name of the longest.
#
# <details><summary>Hint 1: a nudge</summary>
#
# 1 GB/s is 1,000 bytes a microsecond. One entry of the row looks useful and is not.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Launch: <code>launches * launch_us</code>. Memory: weights and cache together, over the GB/s, over 1,000.
# Compute: <code>flops</code> over the GFLOP/s, over 1,000. Put them into the dict <code>times</code>.
# </details>

# %% exercise="bounds" provides=["bounds"] difficulty=1 minutes=4
def bounds(row, card):
    """Microseconds of the three lower bounds of a step, and the name of the longest."""
    ### BEGIN SOLUTION
    times = {
        "launch": row["launches"] * card["launch_us"],
        "memory": (row["weight_bytes"] + row["cache_bytes"]) / card["gb_per_s"] / 1e3,
        "compute": row["flops"] / card["gflop_per_s"] / 1e3,
    }
    ### END SOLUTION
    return {**times, "regime": max(times, key=times.get)}

# %% check="bounds" points=2
from inferlab.lab import Check

check = Check("bounds", points=2)
card = {"launch_us": 5.0, "gb_per_s": 2.0, "gflop_per_s": 50.0}


def counted(launches, weight_bytes, cache_bytes, flops, busy=1.0):
    return {"kind": "decode", "launches": launches, "weight_bytes": weight_bytes, "cache_bytes": cache_bytes,
            "flops": flops, "busy": busy}


def bounds_of(row):
    """The learner's bounds, once they have the four keys."""
    got = check.plain(check.learner.bounds(row, card))
    check.true(isinstance(got, dict) and set(got) == {"launch", "memory", "compute", "regime"},
               "return a dict with launch, memory, compute and regime")
    return got


with check.part("a step of small kernels", weight=1):
    got = bounds_of(counted(1000, 2_000_000, 0, 1_000_000, busy=0.4))
    check.close(got, {"launch": 5000.0, "memory": 1000.0, "compute": 20.0, "regime": "launch"}, tol=1e-6)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 3 · What the rows say
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
#
# `measures(rows, card)` returns six measures of a service, as a `dict`. Three are written; add the three in
# bold. "Decode rows" are those whose `kind` is `"decode"`; there is at least one.
#
# | key | value |
# |---|---|
# | `"sequences"` | mean number of sequences of a decode row |
# | `"waiting"` | the largest `waiting` of all rows |
# | `"idle"` | share of all rows whose `kind` is `"idle"` |
# | **`"useful"`** | sum of `useful` over sum of `positions`, all rows |
# | **`"cache_use"`** | sum of `cache_used` over sum of `cache_reserved`, decode rows |
# | **`"regime"`** | the regime that most decode rows have, by your `bounds` |
#
# <details><summary>Hint 1: a nudge</summary>
#
# <code>max(names, key=names.count)</code> finds the most frequent entry of a list.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The shares are a sum over a sum. The regime is the most frequent <code>bounds(row, card)["regime"]</code>
# of the decode rows.
# </details>

# %% exercise="measures" provides=["measures"] difficulty=2 minutes=6
def measures(rows, card):
    """Six measures of a service's rows."""
    decode = [row for row in rows if row["kind"] == "decode"]
    found = {
        "sequences": sum(row["sequences"] for row in decode) / len(decode),
        "waiting": max(row["waiting"] for row in rows),
        "idle": sum(row["kind"] == "idle" for row in rows) / len(rows),
    }
    ### BEGIN SOLUTION
    found["useful"] = sum(row["useful"] for row in rows) / sum(row["positions"] for row in rows)
    found["cache_use"] = sum(row["cache_used"] for row in decode) / sum(row["cache_reserved"]
                                                                        for row in decode)
    regimes = [bounds(row, card)["regime"] for row in decode]
    found["regime"] = max(regimes, key=regimes.count)
    ### END SOLUTION
    return found

# %% check="measures" points=3
from inferlab.lab import Check, reference

check = Check("measures", points=3)


def line(kind, sequences=0, waiting=0, positions=0, useful=0, used=0, reserved=0, launches=0, weight_bytes=0,
         flops=0):
    return {"step": 0, "kind": kind, "sequences": sequences, "slots": 4, "waiting": waiting,
            "positions": positions, "useful": useful,
            "cache_used": used, "cache_reserved": reserved, "cache_budget": 100, "launches": launches,
            "weight_bytes": weight_bytes,
            "cache_bytes": 0, "flops": flops, "encodes": 0, "busy": 1.0 if sequences else 0.0}


def measured(rows, card):
    """The learner's measures, once they have the six keys."""
    got = check.plain(check.learner.measures(rows, card))
    names = {"sequences", "waiting", "useful", "cache_use", "idle", "regime"}
    check.true(isinstance(got, dict) and set(got) == names,
               "return a dict with exactly the six keys of the contract")
    return got


price = {"launch_us": 4.0, "gb_per_s": 6.0, "gflop_per_s": 100.0, "encode_us": 500.0}
small = [line("idle", waiting=3), line("prefill", 2, 1, positions=20, useful=15, used=15, reserved=40,
                                       launches=300, weight_bytes=6_000_000, flops=9**9),
         line("decode", 2, 1, positions=22, useful=17, used=17, reserved=40, launches=300,
              weight_bytes=6_000_000),
         line("decode", 4, 1, positions=48, useful=40, used=40, reserved=80, launches=100,
              weight_bytes=6_000_000)]
with check.part("all six, of four small rows", weight=1):
    got = measured(small, price)
    check.true(got["regime"] in ("launch", "memory", "compute"), "the regime is one of the three names")
    check.close([got["sequences"], got["waiting"], got["idle"]], [3.0, 3, 0.25], tol=1e-9)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 4 · Your service
#
# *difficulty 3 of 3 · 13 minutes · 4 points*
#
# This service is one of six cases; which one depends on your name. Five have a fault, one has too few users.
# The answers are the same:

# %%
from inferlab.lab.kits.service.text_service import suspect

sick = suspect(served_model, served_tokenizer, lab.variant(6))
print("same answers:", sick.answers == healthy.answers[:len(sick.answers)])
print(show_rows(sick.rows, limit=24))

# %% tags=["demo"]
with when_written("measures", "bounds"):
    for name, rows in {"healthy": healthy.rows, "yours": sick.rows}.items():
        print(f"{name:8}", {key: round(value, 3) if isinstance(value, float) else value for key,
                            value in measures(rows, CARD).items()})

# %% [markdown]
# | fault | what is wrong | the measure that proves it | its remedy |
# |---|---|---|---|
# | `"batch"` | one sequence at a time, while others wait for the only slot | `sequences` | `"batching"` |
# | `"cache"` | most of the reserved cache is never used, so slots stay free | `cache_use` | `"cache"` |
# | `"padding"` | most of the `positions` are padding | `useful` | `"padding"` |
# | `"tokenizer"` | the model waits until texts are tokenized | `idle` | `"tokenizer"` |
# | `"launch"` | the host cannot start kernels fast enough | `regime` | `"launches"` |
# | `"memory"` | no mistake, but few users: all requests decode together, too few for one reading of the weights | `waiting` | `"precision"` |
#
# Write two things in `diagnose()`: your service's `fault`, and `order`, the list of remedies in the order in
# which you would try them. Constants will do. The last two columns of the table stand in `PROOF`.
#
# The order follows a rule. Begin with the remedy of the fault. Then come the remedies of the default order
# `"batching"`, `"cache"`, `"precision"`, `"speculation"` that are not in the list yet. There is one
# exception. If no request ever waits in the whole run, more slots and more room help nobody, and `"batching"`
# and `"cache"` go to the end, in this order. (Requests that are blocked by a full cache or a
# slow tokenizer count as waiting.)
#
# <details><summary>Hint 1: a nudge</summary>
#
# Several measures may look bad, but most are consequences of one fault. Few sequences in a step can mean: no
# slot, no room in the cache, no text yet, or no users. When a request waited, was a slot free? Was the device
# idle?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Ask in this order, and stop at the first yes: much <code>idle</code> (tokenizer); a launch regime (launch);
# less than half of <code>cache_use</code> (cache); less than half <code>useful</code> (padding);
# <code>waiting</code> is 0 (memory); otherwise batch. The order: the remedy of the table, then the default
# order without it. If <code>waiting</code> is 0, precision and speculation come before the other two.
# </details>

# %% exercise="diagnosis" provides=["diagnose"] difficulty=3 minutes=13
PROOF = {"batch": ("sequences", "batching"), "cache": ("cache_use", "cache"),
         "padding": ("useful", "padding"), "tokenizer": ("idle", "tokenizer"),
         "launch": ("regime", "launches"), "memory": ("waiting", "precision")}


def diagnose():
    """Fault, the measure that proves it with its value in your run, and the order of remedies."""
    found = measures(sick.rows, CARD)
    ### BEGIN SOLUTION
    yes = {"tokenizer": found["idle"] > 0.2, "launch": found["regime"] == "launch",
           "cache": found["cache_use"] < 0.5, "padding": found["useful"] < 0.5,
           "memory": found["waiting"] == 0, "batch": True}
    fault = max(yes, key=yes.get)  # the first that is true
    ### END SOLUTION
    measure, first = PROOF[fault]
    ### BEGIN SOLUTION
    rest = ["batching", "cache", "precision", "speculation"]
    if found["waiting"] == 0:
        rest = ["precision", "speculation", "batching", "cache"]
    order = [first, *(remedy for remedy in rest if remedy != first)]
    ### END SOLUTION
    return {"fault": fault, "measure": measure, "value": found[measure], "order": order}

# %% check="diagnosis" points=4
from inferlab.lab import Check, reference

check = Check("diagnosis", points=4)


def diagnosis():
    """The learner's diagnosis, once it has the form that the contract asks for."""
    got = check.plain(check.learner.diagnose())
    check.true(isinstance(got, dict) and set(got) == {"fault", "measure", "value", "order"},
               "return a dict with fault, measure, value and order")
    check.true(got["fault"] in ("batch", "cache", "padding", "tokenizer", "launch", "memory"),
               "the fault is one of the six of the table")
    known = {"batching", "cache", "padding", "tokenizer", "launches", "precision", "speculation"}
    check.true(isinstance(got["order"], list) and all(isinstance(r, str) for r in got["order"]),
               "the order is a list of remedies")
    check.true(set(got["order"]) <= known and len(set(got["order"])) == len(got["order"]),
               "the order names remedies of the table and the default order, each once")
    return got


with check.part("the diagnosis has its form (what it says is graded when you hand it in)", weight=0):
    diagnosis()
### HIDDEN TESTS
check.score()

# %% [markdown]
# Where does the time of a token go? The upper diagram is measured: the decode step of section 3, by modules.
# The lower one is counted: the healthy service and yours. The bar of arithmetic is prefill, which takes more
# than half of the healthy service's time. The regime that you diagnose is that of the **decode** steps; in
# the healthy service they wait for weights and cache.

# %% tags=["demo"]
from inferlab.lab.kits.service.attribution import attribution, part_times, waits

attribution(part_times(step.rows()), {"healthy": waits(healthy.rows, CARD), "yours": waits(sick.rows, CARD)},
            title="A token's time, attributed", device=f"{lab.model} on {lab.device}")

# %% [markdown]
# ![Bars of milliseconds a token for a healthy service and six cases of it, by what was waited for. Batch 1
# waits longest for weights, launch for launches, padding for arithmetic. Only in tokenizer does a token wait
# long for the tokenizer.](../../handbook/figures/lab19-waits.svg)
#
# *From the handbook.* The healthy service and the six cases, with the same questions and answers. (`memory`
# serves only two users.) Which looks like yours?

# %% [markdown]
# ### More devices: pipeline or tensor parallel?
#
# One device is too slow, so a team adds more. Eight users wait for tokens, and a pass takes the same ticks
# for any number of them, because the time goes into reading the weights. With tensor parallelism (TP) each
# rank does its share of every layer, and a layer needs two all-reduces; all users share each pass. With a
# pipeline (PP) a pass goes through all layers, with a hop between neighboring stages, and the users form as
# many groups as there are stages. On slow links a hop and a step of an all-reduce take 40 times as long.
# Which plan gives a user's token sooner on the fast links, which on the slow ones? Say it before you run the
# cell.

# %% tags=["demo"]
from inferlab.lab.kits.parallel.machines import RANKS, machine


def latency_of(plan, ranks, one):
    """Ticks from one token of a user to their next."""
    work = one["layers"] * one["compute"]
    if plan == "TP":
        return work / ranks + one["layers"] * 2 * 2 * (ranks - 1) * one["step"]
    return work + (ranks - 1) * one["hop"]


box = machine(lab.variant(16))
slow = {**box, "step": 40 * box["step"], "hop": 40 * box["hop"]}
for links, one in {"fast links": box, "slow links": slow}.items():
    for plan in ("TP", "PP"):
        ticks = {n: latency_of(plan, n, one) for n in RANKS[1:]}
        print(links, plan, *(f"{n} ranks: {t:.0f} ticks, {8000 / t:.2f} tokens in 1,000 ticks;"
                             for n, t in ticks.items()))

# %% [markdown]
# In training a pipeline is filled with microbatches that do not wait for one another. Here a user's next
# token waits for this one, so every user gets one token in each latency, and the plan with the smaller
# latency also has the larger rate. On fast links that is TP, until the steps of its rings, which grow with
# the ranks, cost more than the reading that they save. On the slow links here it never wins: it has two
# all-reduces in each layer, the pipeline one hop for each border of two stages. Hence the
# usual mix: TP on fast links, PP between machines. (If arithmetic counts, as in a prefill, a pass gets longer
# with its users, and a pipeline has the better rate.)

# %% [markdown]
# ## 6 · Explain
#
# Explain the **healthy** service of section 3, on the accelerator `CARD`. `state`, `axis` and `trade-off` ask
# for two things each; the tables below say which. Write short sentences, one a line: an entry of `who`, a
# verb, then an entry from that verb's row and, if you like, entries of a row `may follow`. An example: `the
# caches of a step grow`. In `first:` you type one remedy: what to try first in a service whose monitor shows
# 100% utilization, whose decode steps have 1 sequence, and in which 7 requests wait for the only slot. Lines
# that begin with `#` are notes of your own.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 2 of 3 · 9 minutes · 4 points, one a field.* When you run the
# cell, it shows how it reads each line. That reading is graded when you hand in. One false sentence in a
# field costs the field's point, so write only what you know. A line that the cell cannot read is judged by a
# person.

# %% explain="slow-decode" difficulty=2 minutes=9
%%explain slow-decode
# ### BEGIN SOLUTION
# state: the weights are read once for all sequences in each step
#   the KV cache is read once for each sequence
# axis: the batch axis goes from 1 to 4
#   the weights of a step stay 23.6 MB
# trade-off: speculation lowers the passes of the target and the latency of a token
#   speculation raises the work and wastes rejected tokens
# first: batching
# ### END SOLUTION

# %% check="slow-first" of="slow-decode" points=1
from inferlab.lab import Check

check = Check("slow-first", points=1)
with check.part("`first:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("slow-decode").get("first"), "`first:` is empty")
### HIDDEN TESTS
check.score()

# %% check="slow-state" of="slow-decode" points=1
from inferlab.lab import Check

check = Check("slow-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("slow-decode").get("state"), "`state:` is empty")
### HIDDEN TESTS
check.score()

# %% check="slow-axis" of="slow-decode" points=1
from inferlab.lab import Check

check = Check("slow-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("slow-decode").get("axis"), "`axis:` is empty")
### HIDDEN TESTS
check.score()

# %% check="slow-trade-off" of="slow-decode" points=1
from inferlab.lab import Check

check = Check("slow-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("slow-decode").get("trade-off"), "`trade-off:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **100% utilization does not mean compute-bound.** It means that some kernel was running. In all six
#   services the monitor says 100% whenever the model runs.
# * **Speculation is not the first thing to try.** It gets more tokens out of a pass. If passes carry one user
#   or wait for the host, other remedies win more.
# * **The order follows the bottleneck.** Batching, cache, precision, speculation is the order for a
#   memory-bound decode. A fault that hides their effects comes first.
# * **Few sequences in a step is a symptom.** It has four causes: no slots, no room, no text, or no users.
# * **The factors of remedies multiply, and each remedy works on what the others left.** Half of the weights
#   is not half of the bytes once a batch has its caches.
# * **A factor without its baseline says nothing.**
#
# Say it aloud, as in an interview: name what a step reads, what grows with the batch, what the step waits
# for, and only then a technique.

# %% [markdown]
# ## 8 · If you have more time
#
# The stated time does not count this section, and nothing that is graded needs it.
#
# ### What a service reaches of its factors
#
# The next cells compare your function of exercise 1 with the tokens per byte that the service
# really reached. Your function gets what is known before a run: the bytes of the weights and of a cached
# token, the lengths of the requests, and how many may decode together: one, two (each reserves half of the
# cache) or four.

# %%
alone = serve(served_model, served_tokenizer, slots=1, requests=3)
# batches too, but reserves room for the longest answer
reserved = serve(served_model, served_tokenizer, fault="cache")

# %% tags=["demo"]
from inferlab.lab.kits.service.text_service import requests_of

sizes = served_model.config
one_token = call_cost(sizes, 1, 0, itemsize=served_model.dtype.itemsize)
asked_for = requests_of(served_tokenizer)
# half of the answer is there, on average
length = sum(len(served_tokenizer(r.text).input_ids) + r.new_tokens / 2 for r in asked_for) / len(asked_for)
known = {"weight_bytes": one_token.weight_bytes, "cache_bytes": length * one_token.cache_written_bytes,
         "tokens_per_pass": 1.0}


def decode_counts(rows):
    """Mean sequences of a decode step, and tokens per byte of all of them."""
    steps = [row for row in rows if row["kind"] == "decode"]
    tokens = sum(row["sequences"] for row in steps)
    return tokens / len(steps), tokens / sum(row["weight_bytes"] + row["cache_bytes"] for row in steps)


with when_written("dissect"):
    places = {"alone": (1, alone), "batching": (2, reserved), "room on demand": (4, healthy)}
    predicted = dissect([{**known, "name": name, "batch": batch} for name, (batch, _) in places.items()],
                        "alone")
    counts = [(batch, *decode_counts(run.rows)) for batch, run in places.values()]
    for (_, _, rate_before), (batch, mean, rate_after), (name, factor) in zip(counts, counts[1:], predicted):
        print(f"{name:14} predicted {factor:.2f}x with {batch} sequences a step, "
              f"counted {rate_after / rate_before:.2f}x tokens per byte with {mean:.2f}")

# %% [markdown]
# The service reaches less than predicted. Near the end of its run no request waits, and slots stay empty:
# look at the mean number of sequences. And the caches of a batch are padded to the longest. A factor that is
# computed from sizes alone assumes a batch that is always full.

# %% [markdown]
# ## 9 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
