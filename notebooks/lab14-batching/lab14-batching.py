# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 14 · Batching
#
# A decode step reads every weight of the model to make one token. If several requests share the step, the
# weights are read once for all of them. In this lab you count what that gains and what it costs. You see why
# a batch that is formed only once soon runs half empty, and you write the scheduler that refills it. Your
# scheduler is compared with the library's own continuous batching, iteration by iteration.
#
# **Time** 60 to 75 minutes · **Points** 16, of which 3 are practice · **Reading**
# [Batching](../../handbook/lab14-batching.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 7

# %% [markdown]
# `"full"` builds a model of Llama 3 8B's size with random weights, `"hub"` downloads a real one. Grading
# always uses `"bundled"` on the CPU.

# %%
from inferlab.lab import start

lab = start("lab14-batching", LEARNER, MODEL, DEVICE, SEED)

# %%
import gc

import torch
from inferlab.models import load_language_model
from inferlab.models.stories import questions
from inferlab.trace import trace
from transformers import GenerationConfig, StoppingCriteria

torch.set_grad_enabled(False)
model, tokenizer = load_language_model(MODEL, lab.device)
asked = questions(6, seed=SEED, kind="scene")
prompts = [tokenizer(document.prompt(turn)).input_ids for document, turn in asked]
print("lengths of the prompts, in tokens:", [len(prompt) for prompt in prompts])
gc.freeze()  # an engine that stops collects garbage: this makes it faster

# %% [markdown]
# ## 1 · Goal and mental model
#
# | in one decode step | read or computed | grows with the batch? |
# |---|---|---|
# | **weights** | read once, used for every row | no: this is what batching shares |
# | **KV cache** | read by its own request only | yes: nothing is shared |
# | **FLOPs** | two for each weight and row, and the attention | yes |
#
# So the *intensity* of the step, its FLOPs for each byte, rises with the number $B$ of requests in the batch.
# A model has $W$ weights of $s$ bytes each. Each request has a context of $T$ positions, and each position
# takes $c$ bytes of cache and $a$ FLOPs of attention:
#
# $$I(B) = \frac{B\,(2W + a\,T)}{W s + B\,T c}$$
#
# A machine has a *ridge*: its peak FLOP/s over its bytes/s. Below the ridge the step waits for memory. One
# more request then costs only the reading of its own cache, which is very little with a short context. Above
# the ridge, each further request makes the step longer for all. So with a larger batch all requests together
# get more tokens a second, but a single request gets no more than alone, and often fewer.
#
# An **iteration** is one call of the model. Each request that takes part gets one token from it. A **slot**
# is room for one request in the iteration.
#
# | method | when may a request join? | when is its slot free again? |
# |---|---|---|
# | one at a time | when nobody else is running | when it is done |
# | **static** (naive) batching | when the whole batch before it is done | when the *longest* request of its batch is done |
# | **continuous** batching | before any iteration, if a slot is free | when it is done itself |

# %% [markdown]
# ![Intensity against batch size for contexts of 0, 200, 1,000 and 8,000 positions; only the first two cross
# the horizontal line of the ridge.](../../handbook/figures/lab14-intensity.svg)
#
# *From the handbook.* FLOPs per byte of a decode step against the batch, for four lengths of context. Only
# the two short ones cross the ridge, where arithmetic becomes the limit.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · What does the model get?
#
# *difficulty 2 of 3 · 7 minutes · 3 points*
#
# Two runs answer the same requests. The **padded** one is `generate` with all of them in one rectangle:
# shorter prompts get padding on the left. The **packed** run is the library's continuous batching with at
# most `slots` requests in an iteration. It puts the tokens of all requests one after the other into *one*
# row, without padding; another list says where each request begins. Every request generates exactly
# `new_tokens` (at least 2). Neither run cuts a prompt into pieces.
#
# Write `forecast(lengths, new_tokens, slots)`; `lengths` are the prompts' lengths in tokens. It returns a
# `dict`:
#
# | key | value |
# |---|---|
# | `"padded_first"`, `"padded_next"` | shape of `input_ids` in the first call and in each later one, tuples of `int` |
# | `"padded_calls"` | calls of the model, `int` |
# | `"padding"` | how many positions of the first call hold no token of any prompt, `int` |
# | `"packed_first"`, `"packed_next"` | shape of `input_ids` in the first and in the second call of the packed run |
# | `"packed_calls"` | calls of the model until all requests are done, `int` |
#
# The function is graded on runs that this notebook never makes.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The prefill makes the first token, so <code>n</code> tokens are <code>n</code> calls. The length of a packed
# row is the sum of the tokens that take part. All requests generate equally many tokens, so they leave the
# slots in groups. How many groups are there?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Padded: the shapes are (requests, longest) and then (requests, 1), in <code>new_tokens</code> calls; the
# padding is requests times longest, minus the sum of the lengths. Packed: the shapes are (1, sum of the first
# <code>slots</code> lengths) and then (1, requests that take part). Each group of <code>slots</code> requests
# needs <code>new_tokens</code> calls, and a last group that is not full needs them, too.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=7
def forecast(lengths, new_tokens, slots):
    """Shapes and calls of a padded run and of a packed run of the same requests."""
    ### BEGIN SOLUTION
    count, longest = len(lengths), max(lengths)
    groups = -(-count // slots)
    return {
        "padded_first": (count, longest),
        "padded_next": (count, 1),
        "padded_calls": new_tokens,
        "padding": count * longest - sum(lengths),
        "packed_first": (1, sum(lengths[:slots])),
        "packed_next": (1, min(slots, count)),
        "packed_calls": groups * new_tokens,
    }
    ### END SOLUTION

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)
KEYS = {"padded_first", "padded_next", "padded_calls", "padding", "packed_first", "packed_next",
        "packed_calls"}


def foretold(*run):
    """The learner's forecast, once it has the form of the contract."""
    got = check.plain(check.learner.forecast(*run))
    check.true(isinstance(got, dict) and set(got) == KEYS,
               "return a dict with exactly the seven keys of the contract")
    shapes = [got[key] for key in KEYS if key.endswith(("first", "next"))]
    check.true(all(isinstance(shape, tuple) for shape in shapes), "each shape is a tuple, such as (2, 7)")
    return got


with check.part("the padded shapes of two prompts with 7 and 4 tokens", weight=1):
    told = foretold([7, 4], 3, 2)
    check.equal([told["padded_first"], told["padded_next"]], [(2, 7), (2, 1)])
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# Two real runs of six requests. The number of new tokens of each request is fixed here, so that everything
# can be counted. (In a service nobody knows this number: the model's end token decides.)

# %%
OUTPUTS, SLOTS = (3, 14, 5, 4, 9, 2), 3
tokenizer.padding_side = "left"
padded_inputs = tokenizer.pad({"input_ids": prompts}, return_tensors="pt").to(lab.device)


class OwnLength(StoppingCriteria):
    """Ends each row of the batch after its own number of new tokens."""

    def __call__(self, input_ids, scores, **kwargs):
        new = input_ids.shape[1] - padded_inputs["input_ids"].shape[1]
        return torch.tensor([new >= n for n in OUTPUTS], device=input_ids.device)


# %% [markdown]
# **Padded**, one static batch:

# %% tags=["demo"]
with trace(model) as padded:
    rectangle = model.generate(**padded_inputs, min_new_tokens=max(OUTPUTS), max_new_tokens=max(OUTPUTS),
                               do_sample=False,
                               stopping_criteria=[OwnLength()])
print(padded.table(level=1))

# %% [markdown]
# **Packed**, by the library's engine. The engine runs in its own thread, takes requests whenever they come,
# and answers each as soon as it is done. (Without the sizes of `batching_config` the engine would reserve the
# whole memory of the machine for its cache.)

# %% tags=["demo"]
from inferlab.lab.kits.batching import batching_config, calls_of

greedy = GenerationConfig(do_sample=False, max_new_tokens=max(OUTPUTS), pad_token_id=tokenizer.pad_token_id,
                          eos_token_id=-1)  # no token ends an answer early
engine = model.init_continuous_batching(generation_config=greedy,
                                        continuous_batching_config=batching_config(SLOTS, tokens=512))
finished = []
with trace(model) as packed:
    for prompt, n in zip(prompts, OUTPUTS):
        engine.add_request(prompt, max_new_tokens=n)
    engine.start()
    while len(finished) < len(prompts):
        answer = engine.get_result(timeout=1)
        finished += [answer] if answer is not None else []
    engine.stop(block=True)
print("answered in this order:", ", ".join(answer.request_id for answer in finished))

# %% tags=["demo"]
print(packed.table(level=0))

# %% [markdown]
# Look at three places of the two tables:
#
# * **the first calls**: the padded run has six rows as long as the longest prompt; the packed run has one row
#   with the tokens of three prompts. The packed row's batch axis is always 1. `cu_seq_lens_q` says where each
#   request begins, and `position_ids` starts again at 0 for each prompt;
# * **the last calls of the padded run**: `input_ids` stays `(6, 1)` to the end, although most rows are done
#   long before. They are still computed, and the results are thrown away;
# * **the longer calls of the packed run**: now and then a call has more than three tokens. A request has
#   left, and the whole prompt of the next request comes in *beside* the decode steps of the others. That is
#   continuous batching.

# %% tags=["demo"]
calls = calls_of(packed)
sizes = [b.inputs["input_ids"].shape for b in padded.boundaries if b.name == "LlamaForCausalLM"]
print("padded: tokens in each call", [rows * columns for rows, columns in sizes])
print("packed: tokens in each call", [tokens for tokens, _ in calls])
print("packed: requests in each   ", [requests for _, requests in calls])

# %% [markdown]
# **Reconcile.** In these runs the requests have different numbers of new tokens, so your forecast of the
# packed calls does not apply. All the rest does:

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("forecast"):
    told = forecast([len(prompt) for prompt in prompts], max(OUTPUTS), SLOTS)
    seen = {"padded_first": tuple(sizes[0]), "padded_next": tuple(sizes[1]), "padded_calls": len(sizes),
            "padding": int((padded_inputs["attention_mask"] == 0).sum()),
            "packed_first": (1, calls[0][0]), "packed_next": (1, calls[1][0])}
    for key, value in seen.items():
        print(f"{key:13} forecast {told[key]!s:8}  traced {value}")

# %% [markdown]
# **No answer changes.** `generate_batch` is the short form: it takes prompts and returns answers. Here the
# model's end token decides when an answer ends. Each request gets the same answer as alone:

# %% tags=["demo"] jupyter={"source_hidden": true}
ends = GenerationConfig(do_sample=False, max_new_tokens=14, eos_token_id=tokenizer.eos_token_id,
                        pad_token_id=tokenizer.pad_token_id)
batched = model.generate_batch(prompts, generation_config=ends,
                               continuous_batching_config=batching_config(SLOTS, tokens=512), warmup=False)
same = 0
for prompt, answer in zip(prompts, batched.values()):
    ids = torch.tensor([prompt], device=lab.device)
    alone = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=14, do_sample=False)
    same += alone[0, len(prompt):].tolist() == list(answer.generated_tokens)
print(f"{same} of {len(prompts)} answers are the same as alone")

# %% [markdown]
# ## 4 · Read
#
# Before each iteration the engine lists its requests: first those that already decode, so none is paused for
# a newcomer, then the waiting ones in the order of arrival. This is the installed code that decides which of
# them take part. There are three budgets: slots, tokens, and room in the cache. In this lab the cache is
# large enough; lab 15 is about its size.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.generation.continuous_batching.scheduler import Scheduler

show_source(
    Scheduler._process_candidates,
    {
        "request_budget = self.max_requests_per_batch": "The slots.",
        "request_len = min(len(request_tokens), token_budget)":
            "A prompt longer than the tokens that are left is cut: it is prefilled in chunks.",
        "token_budget -= request_len":
            "A decoding request costs one token of the budget, a new one its whole prompt.",
        "request_budget -= 1": "Either of them costs one slot.",
        "if token_budget == 0 or": "A budget is used up: the others wait for the next iteration.",
    },
    excerpts=[
        ("request_budget = self.max_requests_per_batch", "request_budget = self.max_requests_per_batch"),
        ("for state in candidates:", "for state in candidates:"),
        ("request_len = min(len(request_tokens), token_budget)",
         "request_len = min(len(request_tokens), token_budget)"),
        ("token_budget -= request_len", "request_budget -= 1"),
        ("if token_budget == 0 or", "if token_budget == 0 or"),
    ],
    checked="5.24.0",
)

# %% [markdown]
# After the call, requests that are done give back their slot and their cache *before* the next list is made.
# So no slot stays empty while a request waits, if there are tokens and cache enough.

# %% [markdown]
# ## 5 · Build
#
# First what a batch does to one step, then what a scheduler does to the batch.

# %% [markdown]
# ### Exercise 2 · The critical batch size
#
# *difficulty 2 of 3 · 7 minutes · 3 points, practice*
#
# `intensity` is the equation of section 1. (Writes and activations are left out: they are small.) Its sizes
# are those of Llama 3 8B, its ridge that of one H100 (989 TFLOP/s in bfloat16, 3.35 TB/s: NVIDIA's data
# sheet).

# %%
llama = {
    "linear": 7_504_658_432,  # weights in matrix multiplications, two FLOPs each for each request
    "itemsize": 2,  # bytes of a weight
    "attention": 4 * 32 * 32 * 128,  # FLOPs for each request and position of its context, over all layers
    "cache": 2 * 32 * 8 * 128 * 2,  # bytes for each request and position, over all layers
}
ridge = 989e12 / 3.35e12


def intensity(batch, context, sizes):
    """FLOPs per byte read of one decode step."""
    flops = batch * (2 * sizes["linear"] + sizes["attention"] * context)
    return flops / (sizes["linear"] * sizes["itemsize"] + batch * context * sizes["cache"])


for context in (0, 200, 400, 1000, 8000):
    print(f"context {context:5d}: intensity {intensity(1, context, llama):5.2f} at batch 1, "
          f"{intensity(64, context, llama):6.2f} at batch 64; the ridge is {ridge:.0f}")

# %% [markdown]
# `critical_batch(ridge, context, sizes)` returns the smallest batch, `int`, whose step has an intensity of at
# least `ridge` (`float`). If no batch reaches the ridge, it returns `None`. `sizes` has the four keys above.
#
# <details><summary>Hint 1: a nudge</summary>
# Solve I(B) = ridge for B. Ask before you divide: towards which value does I(B) go when B becomes very large?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Solved for B, the denominator is <code>2 * linear + context * (attention - ridge * cache)</code>: what one
# more request gains. If that is 0 or less, there is no such batch. Otherwise the batch is <code>ridge *
# linear * itemsize</code> divided by that, rounded up.
# </details>

# %% exercise="critical" provides=["critical_batch"] difficulty=2 minutes=7
def critical_batch(ridge, context, sizes):
    """The smallest batch that makes a decode step compute-bound, or None."""
    ### BEGIN SOLUTION
    from math import ceil

    gain = 2 * sizes["linear"] + context * (sizes["attention"] - ridge * sizes["cache"])
    if gain <= 0:
        return None
    return ceil(ridge * sizes["linear"] * sizes["itemsize"] / gain)
    ### END SOLUTION

# %% check="critical" points=3
from inferlab.lab import Check

check = Check("critical", points=3)
LARGE = {"linear": 7_504_658_432, "itemsize": 2, "attention": 524_288, "cache": 131_072}
SMALL = {"linear": 5_898_240, "itemsize": 4, "attention": 8_192, "cache": 4_096}


def critical(*args):
    """The learner's batch, once it is an int or None."""
    got = check.plain(check.learner.critical_batch(*args))
    check.true(got is None or (isinstance(got, int) and not isinstance(got, bool)), "return an int, or None")
    return got


with check.part("two bytes a weight, no context: the ridge itself", weight=1):
    check.equal(critical(295.0, 0, LARGE), 295)
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("critical_batch"):
    for context in (0, 200, 400, 1000, 8000):
        print(f"context {context:5d}: critical batch {critical_batch(ridge, context, llama)}")

# %% [markdown]
# A rule of thumb says that the critical batch *is* the ridge. It holds for two bytes a weight and no context.
# With 400 tokens of context or more, the step stays below the ridge at any batch, because each request also
# reads a cache of its own. At 1,000 tokens it reads 131 MB for 15.5 GFLOP, which is 119 FLOPs per byte.
# Decode then stays memory-bound, and the memory for caches limits the batch: the subject of the next lab.

# %% [markdown]
# ### Static batches
#
# From here on, time is counted in iterations, from 0. Request `r` arrives just before iteration `arrivals[r]`
# and needs `outputs[r]` iterations, one for each token. The arrivals never decrease. A scheduler returns **a
# list of iterations; each iteration is a list of the numbers of the requests that get a token in it**, in
# ascending order. If nothing runs and no request has arrived, the iteration is `[]`. The list ends with the
# last token.
#
# This is static batching. When nothing is running, the server takes the requests that have arrived, at most
# `slots` of them, first come first served, and runs them until the longest is done. Nobody joins in between:

# %%
def static(arrivals, outputs, slots):
    """The iterations of static batching: who gets a token in each."""
    waiting, iterations = list(range(len(arrivals))), []
    while waiting:
        batch = [r for r in waiting if arrivals[r] <= len(iterations)][:slots]
        waiting = [r for r in waiting if r not in batch]
        if not batch:
            iterations.append([])
        for k in range(max((outputs[r] for r in batch), default=0)):
            iterations.append([r for r in batch if outputs[r] > k])
    return iterations


print(static([0, 0, 0], [1, 3, 2], slots=2))

# %% [markdown]
# ### Exercise 3 · Continuous batching
#
# *difficulty 3 of 3 · 12 minutes · 3 points*
#
# Write `continuous(arrivals, outputs, slots)`: the same arguments and the same result, but another rule.
# **Before every iteration** the requests that are done leave, and requests that have arrived take the free
# slots, first come first served. No running request is paused.
#
# It is graded on other streams, and against the library's engine: in each call the engine must have as many
# requests as your list says.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Between two iterations some requests leave and others join. Which must come first, so that no slot stays
# empty while a request waits?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# Keep a dict from each running request to the number of its tokens still to come. In each iteration: let
# requests in, write down who runs, subtract one from each, and drop those that are at zero. A slot that
# becomes free in iteration k serves another request in iteration k + 1.
# </details>

# %% exercise="continuous" provides=["continuous"] difficulty=3 minutes=12
def continuous(arrivals, outputs, slots):
    """The iterations of continuous batching: who gets a token in each."""
    ### BEGIN SOLUTION
    waiting, running, iterations = list(range(len(arrivals))), {}, []
    while waiting or running:
        while waiting and len(running) < slots and arrivals[waiting[0]] <= len(iterations):
            newcomer = waiting.pop(0)
            running[newcomer] = outputs[newcomer]
        iterations.append(sorted(running))
        running = {r: left - 1 for r, left in running.items() if left > 1}
    return iterations
    ### END SOLUTION

# %% check="continuous" points=3
from inferlab.lab import Check, reference
from inferlab.lab.kits.batching import workload

check = Check("continuous", points=3)


def refilled(arrivals, outputs, slots):
    """The learner's iterations, once they are lists of request numbers."""
    got = check.plain(check.learner.continuous(list(arrivals), list(outputs), slots))
    form = isinstance(got, list) and all(isinstance(now,
                                                    list) and all(type(r) is int for r in now) for now in got)
    check.true(form, "return a list of iterations, each a list of request numbers")
    return got


with check.part("three requests, two slots", weight=1):
    check.equal(refilled([0, 0, 0], [1, 3, 2], 2), [[0, 1], [1, 2], [1, 2]])
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Your scheduler against the library's
#
# The packed run of section 3, forecast from its numbers of new tokens alone:

# %% tags=["demo"]
with when_written("continuous"):
    mine = continuous([0] * len(OUTPUTS), OUTPUTS, SLOTS)
    print("yours:  ", [len(now) for now in mine])
    print("library:", [requests for _, requests in calls])

# %% [markdown]
# The next cells draw a stream of requests as a service sees it: most answers are short, some are long.

# %%
from inferlab.lab.kits.batching import workload

# %% tags=["demo"]
from inferlab.lab.kits.batching import occupancy_chart

stream = workload(SEED, requests=26, gap=2.2, short=4, long=22)  # gap: mean iterations between arrivals
with when_written("continuous"):
    runs = {"static": static(stream.arrivals, stream.outputs, 4),
            "continuous": continuous(stream.arrivals, stream.outputs, 4)}
    display(occupancy_chart(runs, 4,
                            title="A static batch waits for its longest request; a continuous one refills "
                                  "its slots"))

# %% [markdown]
# The numbers in the bars are requests; a dotted slot makes no token.
#
# ### What the users notice
#
# `report(iterations, arrivals, slots)` sums up the run of a scheduler: how many of the slots make a token
# (`"occupancy"`), and the waiting time at the median and at the 99th percentile (`"median"`, `"p99"`). A
# request's **waiting time** is the number of iterations between its arrival and the one in which it gets its
# first token. The 99th percentile is the *tail*: 99 of 100 requests wait no longer.
#
# **Waiting for a full batch.** The simplest server collects requests until its slots are full. With four
# slots, a request of each four starts only when the last of them has come. The next cell counts the waits of
# eight requests from their arrivals:

# %%
from inferlab.lab.kits.batching import report

# %% tags=["demo"]
arrivals, outputs = [0, 1, 2, 3, 4, 9, 20, 40], [6, 3, 8, 4, 5, 7, 3, 6]
assembled = [3, 3, 3, 3, 40, 40, 40, 40]  # when the last of each four has come
with when_written("continuous"):
    for label, rows in (("full batches", static(assembled, outputs, 4)),
                        ("static", static(arrivals, outputs, 4)),
                        ("continuous", continuous(arrivals, outputs, 4))):
        seen = report(rows, arrivals, 4)
        print(f"{label:12s} longest wait {seen['p99']:2d}, {seen['occupancy']:.0%} of the slots make a token")

# %% [markdown]
# The early requests of a group wait for requests that have not come yet. If requests are rare, that wait has
# no upper limit.

# %% [markdown]
# ### Exercise 4 · How many slots does your service need?
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# Your service has a stream of requests of its own (it depends on your name) and keeps a promise: 99 of 100
# requests wait at most `LIMIT` iterations for their first token. It runs a model of Llama 3 8B's sizes, with
# 8,000 tokens of context, on the H100 of exercise 2.

# %%
v = lab.variant(8)
service = workload(100 + v, requests=160, gap=(1.6, 1.8, 2.0, 2.2, 2.4, 2.6, 2.8, 3.0)[v])
LIMIT = (6, 8, 10, 5, 7, 9, 4, 6)[v]
print(f"{len(service.arrivals)} requests in {service.arrivals[-1]} iterations, "
      f"{sum(service.outputs)} tokens; p99 of the wait: at most {LIMIT}")

# %% [markdown]
# Write `choose()`, which returns a `dict`:
#
# * `"slots"`: the smallest number of slots, from 1, with which continuous batching keeps the promise, `int`;
# * `"static"`: the 99th percentile of the wait if static batching is given the same number of slots, `int`;
# * `"slower"`: the time of an iteration with all these slots in use, divided by the time of an iteration with
#   one request, `float`. The time of an iteration is the larger of two: its bytes over the machine's bytes/s,
#   and its FLOPs over the machine's FLOP/s. With 8,000 tokens of context, which is the larger (exercise 2)?
#
# <details><summary>Hint 1: a nudge</summary>
# Give <code>service.arrivals</code> and <code>service.outputs</code> to <code>continuous</code>, and try 1,
# 2, 3, ... slots. For <code>"slower"</code> you need no seconds, only a ratio of bytes. The weights are read
# once, the cache once for each request.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>slots</code> is the smallest n for which <code>report(continuous(service.arrivals, service.outputs,
# n), service.arrivals, n)["p99"]</code> is at most <code>LIMIT</code>. <code>static</code> is the same
# expression with <code>static</code> for that n. <code>slower</code> uses the sizes of <code>llama</code>:
# (weights + n * 8,000 positions) over (weights + 8,000 positions), all in bytes.
# </details>

# %% exercise="choose" provides=["choose"] difficulty=2 minutes=8
def choose():
    """Slots that keep the promise, what static batching would do with them, and what an iteration then
    costs."""
    ### BEGIN SOLUTION
    def p99(scheduler, slots):
        return report(scheduler(service.arrivals, service.outputs, slots), service.arrivals, slots)["p99"]

    def step_bytes(batch):
        return llama["linear"] * llama["itemsize"] + batch * 8000 * llama["cache"]

    slots = next(n for n in range(1, 100) if p99(continuous, n) <= LIMIT)
    return {"slots": slots, "static": p99(static, slots), "slower": step_bytes(slots) / step_bytes(1)}
    ### END SOLUTION

# %% check="choose" points=3
from inferlab.lab import Check

check = Check("choose", points=3)


def choice():
    """The learner's choice, once it has the three keys."""
    got = check.plain(check.learner.choose())
    check.true(isinstance(got, dict) and set(got) == {"slots", "static", "slower"},
               "return a dict with slots, static and slower")
    return got


with check.part("the form of the answer", weight=0):
    got = choice()
    check.true(isinstance(got["slots"], int) and isinstance(got["static"], int),
               '"slots" and "static" are whole numbers')
    check.true(isinstance(got["slower"], float | int), '"slower" is a factor')
### HIDDEN TESTS
check.score()

# %% [markdown]
# With the same slots, a static batch serves this stream far worse. More slots shorten its queue, but a
# request that comes just after a batch has begun still waits for the longest request in it.
#
# Does batching help latency? Only where requests would otherwise queue. In a stream with one request in 60
# iterations, the median wait is 0 with any number of slots.

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 8 minutes · 4 points: 1 for the typed line, 3 for the sentences*
#
# A colleague says: "We batch six requests, so they start together and end together, and everyone is served
# faster." Correct this with the runs of section 3: six requests with 3, 14, 5, 4, 9 and 2 new tokens, padded
# in one batch, and packed in three slots.
#
# In the fields `state`, `axis` and `trade-off` you write short sentences, one a line, from the tables below:
# an entry of `who`, a verb, an entry of its row and, if you like, entries of a row `may follow`. An example:
# `the first axis has length 1 in the packed run`. In `state`, say what continuous batching does between two
# iterations. In `axis`, say what the axes of `input_ids` count in a decode step. In `trade-off`, say what one
# gains with a larger batch, and what one pays. In `idle` you type a number. A place is one row of one call:
# in how many places of the padded run's 14 calls was the row's request already done?
#
# Lines that begin with `#` are notes of your own.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# When you run the next cell, it shows how it reads each line. That reading is graded when you hand in.
# One false sentence in a field costs the field's point, so write only what you know. A line that the cell
# cannot read is judged by a person.

# %% explain="batch-in-words" difficulty=2 minutes=8
# %%explain batch-in-words
# ### BEGIN SOLUTION
# state: the scheduler removes the finished requests before each iteration
#   the scheduler admits the waiting requests into the free slots
# axis: the first axis counts 6 requests in the padded run to the end
#   the second axis counts 3 tokens of different requests in the packed run
# trade-off: a larger batch raises the throughput, the latency of each token and the memory for the caches
# idle: 47
# ### END SOLUTION

# %% check="batch-words-idle" of="batch-in-words" points=1
from inferlab.lab import Check

check = Check("batch-words-idle", points=1)
with check.part("`idle:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("batch-in-words").get("idle"), "`idle:` is empty")
### HIDDEN TESTS
check.score()

# %% check="batch-words-state" of="batch-in-words" points=1
from inferlab.lab import Check

check = Check("batch-words-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("batch-in-words").get("state"), "`state:` is empty")
### HIDDEN TESTS
check.score()

# %% check="batch-words-axis" of="batch-in-words" points=1
from inferlab.lab import Check, reference

check = Check("batch-words-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("batch-in-words").get("axis"), "`axis:` is empty")
### HIDDEN TESTS
check.score()

# %% check="batch-words-trade-off" of="batch-in-words" points=1
from inferlab.lab import Check

check = Check("batch-words-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("batch-in-words").get("trade-off"), "`trade-off:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# - **A batch shares the weights and nothing else.** With a long context no batch reaches the ridge.
# - **A batch does not end together.** In a static batch the longest request decides.
# - **Batching does not make a step faster.** It helps latency where requests would otherwise queue, and only
#   there.
# - **Continuous batching has several names:** iteration-level scheduling (Orca, 2022), in-flight batching,
#   and sometimes *dynamic* batching. Serving stacks such as vLLM work this way. In NVIDIA Triton, *dynamic*
#   batching means another thing: requests that arrive close together are collected into one static batch.
# - **The model does not need padding.** Padding only makes a rectangle; a mask keeps it out of attention. A
#   packed row has no padding. There attention must know where each request begins.
# - **The answers stay the same.** If a batch gives other tokens, a mask is missing, or two scores were so
#   close that rounding decided.
#
# Say it aloud, as in an interview: name what is shared and what is not, who decides between two iterations,
# and the trade-off.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
