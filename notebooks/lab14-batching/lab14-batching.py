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
# A decode step reads every weight of the model to make one token. Let several requests share the step, and the weights are
# read once for all of them. In this lab you count what that buys and what it does not, see why a batch that is formed once
# runs half empty, and write the scheduler that fills it again: checked, iteration by iteration, against the
# library's own continuous batching.
#
# **Time** about 65 minutes · **Points** 24, of which 8 are practice · **Reading** [Batching](../../handbook/lab14-batching.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 7

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
gc.freeze()  # an engine that stops collects garbage twice; not over all that was imported here

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say how many requests a machine should serve at once, what each of them pays for it, and what a
# scheduler has to do between two iterations so that the machine does not compute for nobody.
#
# | in one decode step | read or computed | grows with the batch? |
# |---|---|---|
# | **weights** | read once, used for every row | no: this is what batching shares |
# | **KV cache** | read by its own request only | yes: nothing is shared |
# | **FLOPs** | two for each weight and row, and the attention | yes |
#
# So the step's intensity, its FLOPs for each byte, rises with the batch $B$ (context $T$, weights $W$ with $s$ bytes each,
# cache $c$ bytes and attention $a$ FLOPs for each position of the context):
#
# $$I(B) = \frac{B\,(2W + a\,T)}{W s + B\,T c}$$
#
# A machine has a ridge: its peak FLOP/s over its bytes/s. Below the ridge the step waits for memory, and one more request
# costs the reading of its own cache, and with a short context next to nothing. Above it, every further request makes everybody's step longer. (On small models there is a third regime,
# in which the step waits for neither, but for Python to launch its kernels. Section 3 shows in which one you are.)
#
# An **iteration** is one call of the model. Each request that takes part gets one token from it. A **slot** is a place for
# one request in the iteration.
#
# | method | when may a request join? | when is its slot free again? |
# |---|---|---|
# | one at a time | when nobody else is running | when it is done |
# | **static** (naive) batching | when the whole batch before it is done | when the *longest* request of its batch is done |
# | **continuous** batching | before any iteration, if a slot is free | when it is done itself |

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · What does the model get?
#
# *difficulty 2 of 3 · 7 minutes · 3 points*
#
# Two runs answer the same requests. The **padded** one is `generate` with all of them in one rectangle, the shorter prompts
# filled up with padding on the left. The **packed** one is the library's continuous batching, with at most `slots` requests
# in an iteration: it lays the tokens of its requests end to end in *one* row, without padding, and notes elsewhere where each
# request begins. Every request generates exactly `new_tokens` (at least 2), and both prefill whole prompts in one call.
#
# Write `forecast(lengths, new_tokens, slots)`; `lengths` are the prompts' lengths in tokens. It returns a `dict`:
#
# | key | value |
# |---|---|
# | `"padded_first"`, `"padded_next"` | shape of `input_ids` in the first call and in each later one, tuples of `int` |
# | `"padded_calls"` | calls of the model, `int` |
# | `"padding"` | how many places of the first call hold no token of any prompt, `int` |
# | `"packed_first"`, `"packed_next"` | shape of `input_ids` in the first and in the second call of the packed run |
# | `"packed_calls"` | calls of the model until all requests are done, `int` |
#
# It is graded on runs that this notebook never makes.
#
# <details><summary>Hint</summary>
#
# The prefill makes the first token, so <code>n</code> tokens are <code>n</code> calls. A packed row has length
# "sum of the tokens that take part". All generate equally many tokens, so they leave the slots in groups: how many groups are there?
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
KEYS = {"padded_first", "padded_next", "padded_calls", "padding", "packed_first", "packed_next", "packed_calls"}


def foretold(*run):
    """The learner's forecast, once it has the form of the contract."""
    got = check.learner.forecast(*run)
    check.true(isinstance(got, dict) and set(got) == KEYS, "return a dict with exactly the seven keys of the contract")
    shapes = [got[key] for key in KEYS if key.endswith(("first", "next"))]
    check.true(all(isinstance(shape, tuple) for shape in shapes), "each shape is a tuple, such as (2, 7)")
    return got


with check.part("the padded shapes of two prompts with 7 and 4 tokens", weight=1):
    told = foretold([7, 4], 3, 2)
    check.equal([told["padded_first"], told["padded_next"]], [(2, 7), (2, 1)])
### BEGIN HIDDEN TESTS
@reference
def really(lengths, new_tokens, slots):
    """The truth: both runs, made with the bundled model and traced."""
    import torch
    from inferlab.lab.slots import engine_run
    from inferlab.models import load_language_model
    from inferlab.trace import trace

    model, _ = load_language_model("bundled", "cpu")
    longest = max(lengths)
    ids = torch.tensor([[0] * (longest - n) + [9] * n for n in lengths])
    mask = torch.tensor([[0] * (longest - n) + [1] * n for n in lengths])
    with torch.no_grad(), trace(model) as run:
        model.generate(ids, attention_mask=mask, max_new_tokens=new_tokens, min_new_tokens=new_tokens, do_sample=False)
    facts = run.facts()
    shapes = facts["LlamaForCausalLM.inputs.input_ids.shapes"]
    _, calls = engine_run(model, [[9] * n for n in lengths], [new_tokens] * len(lengths), slots)
    return {"padded_first": tuple(shapes[0]), "padded_next": tuple(shapes[1]), "padded_calls": facts["LlamaForCausalLM.calls"],
            "padding": int((mask == 0).sum()), "packed_first": (1, calls[0][0]), "packed_next": (1, calls[1][0]),
            "packed_calls": len(calls)}


RUNS = ([11, 3, 8, 5, 2], 4, 2), ([4, 9], 3, 5)
with check.part("the padding", weight=1):
    for run in RUNS:
        told, truth = foretold(*run), really(*run)
        check.mistake("padding is computed once, in the prefill: later calls hold one token a row",
                      when=told["padding"] != truth["padding"] and told["padding"] == truth["padding"] * run[1])
        check.equal(told["padding"], truth["padding"])
with check.part("the numbers of calls", weight=2):
    for run in RUNS:
        told, truth = foretold(*run), really(*run)
        pair = [told["padded_calls"], told["packed_calls"]]
        check.mistake("one call serves every row of the batch: requests do not multiply the calls",
                      when=told["padded_calls"] == len(run[0]) * run[1])
        check.mistake("the prefill makes the first token: n tokens are n calls", when=told["padded_calls"] == run[1] + 1)
        check.mistake("five requests in two slots are three groups: the last one is not full, and needs its calls all the same",
                      when=told["packed_calls"] == len(run[0]) // run[2] * run[1] != truth["packed_calls"])
        check.mistake("not everybody fits: requests beyond the slots wait for a free one",
                      when=told["packed_calls"] == run[1] != truth["packed_calls"])
        check.equal(pair, [truth["padded_calls"], truth["packed_calls"]])
with check.part("the packed shapes", weight=2):
    for run in RUNS:
        told, truth = foretold(*run), really(*run)
        check.mistake("a packed call is no rectangle: the requests lie end to end in one row",
                      when=told["packed_first"] == (min(run[2], len(run[0])), max(run[0][:run[2]])))
        check.mistake("only as many requests as there are slots take part in the first call",
                      when=told["packed_first"] == (1, sum(run[0])) != truth["packed_first"])
        check.equal([told["packed_first"], told["packed_next"]], [truth["packed_first"], truth["packed_next"]])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# Two real runs of six requests. So that everything can be counted, each request is given its own number of new tokens (a
# service does not know it: there, the model's end token decides; `min_new_tokens` keeps it out here).

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
# **Padded**, one static batch (the tables are printed as text, one line a call):

# %% tags=["demo"]
with trace(model) as padded:
    rectangle = model.generate(**padded_inputs, min_new_tokens=max(OUTPUTS), max_new_tokens=max(OUTPUTS), do_sample=False,
                               stopping_criteria=[OwnLength()])
print(padded.table(level=1))

# %% [markdown]
# **Packed**, the engine behind `generate_batch`. It runs in a thread of its own, takes requests whenever they come, and
# answers each as soon as it is done. (`batching_config` fixes the sizes, without which the engine fits its cache to the whole machine.)

# %% tags=["demo"]
from inferlab.lab.slots import batching_config, calls_of

greedy = GenerationConfig(do_sample=False, max_new_tokens=max(OUTPUTS), eos_token_id=-1, pad_token_id=tokenizer.pad_token_id)
engine = model.init_continuous_batching(generation_config=greedy, continuous_batching_config=batching_config(SLOTS, tokens=512))
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
# Stop at three places:
#
# * **the first calls**: six rows as long as the longest prompt, against one row with the tokens of three prompts. The packed
#   row has no batch axis to speak of. Who is who stands in `cu_seq_lens_q`, and `position_ids` begins again at 0 for each prompt;
# * **the last calls of the padded run**: `input_ids` stays `(6, 1)` to the end, although most rows were done long before. They are
#   computed and thrown away, because a batch that was formed once ends with its longest request;
# * **the bumps in the packed run**: every now and then a call is longer than three tokens. A request has left, and the next one's
#   whole prompt comes in *beside* the decode steps of the others. That is continuous batching, visible in one shape.

# %% tags=["demo"]
calls = calls_of(packed)
sizes = [b.inputs["input_ids"].shape for b in padded.boundaries if b.name == "LlamaForCausalLM"]
print("padded: tokens in each call", [rows * columns for rows, columns in sizes])
print("packed: tokens in each call", [tokens for tokens, _ in calls])
print("packed: requests in each   ", [requests for _, requests in calls])

# %% [markdown]
# **Reconcile.** In these runs the outputs differ, so your forecast of the calls does not apply. The shapes do:

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("forecast"):
    told = forecast([len(prompt) for prompt in prompts], 2, SLOTS)
    print("padded, forecast:", told["padded_first"], " traced:", tuple(padded["LlamaForCausalLM"].inputs["input_ids"].shape))
    print("packed, forecast:", told["packed_first"], " traced:", (1, calls[0][0]))

# %% [markdown]
# **Nobody's answer changes.** `generate_batch` is the short form: prompts in, answers out, and here the model's own end token
# decides when. The answers are the ones that each request gets alone:

# %% tags=["demo"]
ends = GenerationConfig(do_sample=False, max_new_tokens=14, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
batched = model.generate_batch(prompts, generation_config=ends, continuous_batching_config=batching_config(SLOTS, tokens=512), warmup=False)
for prompt, answer in zip(prompts, batched.values()):
    ids = torch.tensor([prompt], device=lab.device)
    alone = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=14, do_sample=False)[0, len(prompt):]
    same = alone.tolist() == list(answer.generated_tokens)
    print(f"same as alone: {same} · {len(answer.generated_tokens):2d} tokens ·", tokenizer.decode(alone, skip_special_tokens=True).strip())

# %% [markdown]
# **In which regime are you?** Time of one decode step on this machine as the batch grows (shown, never graded):

# %% tags=["demo"]
from time import perf_counter

from transformers import DynamicCache


def step_seconds(batch, repeats=3):
    """Seconds of the fastest of some decode steps of `batch` requests, with 16 tokens of context each."""
    cache = DynamicCache(config=model.config)
    model(torch.full((batch, 16), 5, device=lab.device), None, None, cache, logits_to_keep=1)
    best = float("inf")
    for _ in range(repeats):
        began = perf_counter()
        int(model(torch.full((batch, 1), 5, device=lab.device), None, None, cache).logits[0, 0].argmax())
        best = min(best, perf_counter() - began)
    return best


for batch in (1, 8, 64):
    seconds = step_seconds(batch)
    print(f"batch {batch:3d}: {1e3 * seconds:6.1f} ms a step, {batch / seconds:7.0f} tokens/s in all, {1 / seconds:6.0f} tokens/s for each request")

# %% [markdown]
# Two numbers move in opposite directions. All requests together get many more tokens a second; each of them gets no more than
# alone, and in the end fewer. On this small model the first rows are *launch-bound*: the step's time is Python and kernel launches, so
# company costs next to nothing. A large model at small batch is *memory-bound*, with the same consequence. When the batch has passed
# the ridge, the step is *compute-bound*, and its time grows with the batch.

# %% [markdown]
# ## 4 · Read
#
# Here is the scheduler that made those calls, as installed. First whom it considers, in which order:

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.generation.continuous_batching.scheduler import FIFOScheduler, Scheduler

show_source(
    FIFOScheduler.schedule_batch,
    {
        "if state.status == RequestStatus.DECODING:": "Whoever is already answering comes first: nobody is paused for a newcomer.",
        "elif state.status == RequestStatus.PREFILLING:": "A prompt that did not fit into one iteration goes on before new ones begin.",
        "second_priority_states.extend(self._get_waiting_candidates())": "Then those who wait, in the order of their arrival. This list is asked for in every iteration.",
        "candidates = priority_states + second_priority_states": "One list, one order. What is left to do is to go through it until the budgets end.",
    },
    excerpts=[("for state in self.active_requests.values():", "candidates = priority_states + second_priority_states")],
    checked="5.24.0",
)

# %% [markdown]
# And whom it takes. There are three budgets: slots, tokens, and the cache, of which a call can read only so much and which needs room for the new tokens.
# In this lab there is cache enough; lab 15 is about it.

# %% jupyter={"source_hidden": true}
show_source(
    Scheduler._process_candidates,
    {
        "request_budget = self.max_requests_per_batch": "The slots.",
        "for state in candidates:": "In order, until a budget is used up.",
        "if not in_safety_margin and scheduled_requests": "Little of the cache is free: those who are answering go on, and no newcomer joins them.",
        "request_len = min(len(request_tokens), token_budget)": "A prompt longer than the tokens that are left is cut: it is prefilled in chunks.",
        "if not request_fits:": "No room in the cache: this one is skipped, not the end of the list. So with little memory a later one may pass it.",
        "self._schedule_request(": "From here on the request is part of the next call.",
        "token_budget -= request_len": "A decoding request costs one token of the budget, a new one its whole prompt.",
        "request_budget -= 1": "Either of them costs one slot.",
        "if token_budget == 0 or": "A budget is used up: the others wait for the next iteration.",
    },
    excerpts=[
        ("request_budget = self.max_requests_per_batch", "request_len = min(len(request_tokens), token_budget)"),
        ("request_fits = self.cache.can_store_request_tokens(", "request_budget -= 1"),
        ("if token_budget == 0 or", "if token_budget == 0 or"),
    ],
    checked="5.24.0",
)

# %% [markdown]
# After the call, whoever is done leaves *before* the next list is made, so where tokens and cache suffice, no slot is empty while somebody waits:

# %% jupyter={"source_hidden": true}
from transformers.generation.continuous_batching.continuous_api import ContinuousBatchProcessor

show_source(
    ContinuousBatchProcessor.update_batch,
    {
        "is_finished = state.update_and_check_completion(": "The new token is appended; an end token or the limit ends the request.",
        "self.scheduler.finish_request(state.request_id)": "Its blocks of the cache are given back, and it is active no more.",
    },
    excerpts=[("token = new_tokens[current_logits_index]", "self.scheduler.finish_request(state.request_id)")],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# First what a batch does to one step, then what a scheduler does to the batch.

# %% [markdown]
# ### Exercise 2 · The intensity of a decode step
#
# *difficulty 1 of 3 · 5 minutes · 2 points, practice*
#
# `intensity(batch, context, sizes)`: FLOPs for each byte that a decode step of `batch` requests reads, as a `float`. Each of them
# has `context` positions in its cache. `sizes` is a `dict` of `int`:
#
# | key | meaning |
# |---|---|
# | `"linear"` | weights in matrix multiplications: each is used once for each row, one multiplication and one addition |
# | `"itemsize"` | bytes of a weight |
# | `"attention"` | FLOPs of attention for each row and position of the context, over all layers |
# | `"cache"` | bytes of the cache for each request and position, over all layers |
#
# What is written, and the activations, are left out: they are small.
#
# <details><summary>Hint</summary>
# It is the equation of section 1. Which of the four sizes is multiplied by the batch, above and below the line?
# </details>

# %% exercise="intensity" provides=["intensity"] difficulty=1 minutes=5
def intensity(batch, context, sizes):
    """FLOPs per byte read of one decode step."""
    ### BEGIN SOLUTION
    flops = batch * (2 * sizes["linear"] + sizes["attention"] * context)
    read = sizes["linear"] * sizes["itemsize"] + batch * context * sizes["cache"]
    return flops / read
    ### END SOLUTION

# %% check="intensity" points=2
from inferlab.lab import Check

check = Check("intensity", points=2)
SMALL = {"linear": 5_898_240, "itemsize": 4, "attention": 8_192, "cache": 4_096}


def dense(*args):
    """The learner's intensity, once it is a number."""
    got = check.learner.intensity(*args)
    check.true(isinstance(got, float | int) and not isinstance(got, bool), "return one number")
    return got


with check.part("one request without context: two FLOPs for the four bytes of each weight", weight=1):
    check.close(dense(1, 0, SMALL), 0.5, tol=1e-9)
### BEGIN HIDDEN TESTS
LARGE = {"linear": 7_504_658_432, "itemsize": 2, "attention": 524_288, "cache": 131_072}
with check.part("the batch shares the weights", weight=1):
    got = dense(16, 0, LARGE)
    check.mistake("the weights are read once a step, not once a request: that is what batching is for", when=abs(got - 1) < 1e-9)
    check.close(got, 16.0, tol=1e-9)
with check.part("each request reads its own cache", weight=2):
    for batch, context, sizes in ((8, 900, SMALL), (64, 2000, LARGE), (1, 4000, LARGE)):
        got = dense(batch, context, sizes)
        flops = batch * (2 * sizes["linear"] + sizes["attention"] * context)
        once = sizes["linear"] * sizes["itemsize"]
        check.mistake("the cache is not shared: each request reads its own",
                      when=batch > 1 and abs(got / (flops / (once + context * sizes["cache"])) - 1) < 1e-6)
        check.mistake("the cache has to be read, too: it is what ends the free ride", when=abs(got / (flops / once) - 1) < 1e-6)
        check.mistake("attention computes as well, for each position of the context",
                      when=abs(got / (2 * batch * sizes["linear"] / (once + batch * context * sizes["cache"])) - 1) < 1e-6)
        check.close(got, flops / (once + batch * context * sizes["cache"]), rtol=1e-6, tol=0)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 3 · The critical batch size
#
# *difficulty 2 of 3 · 7 minutes · 2 points*
#
# `critical_batch(ridge, context, sizes)`: the smallest whole batch whose step has an intensity of at least `ridge` (peak FLOP/s over
# bytes/s of the machine, `float`), as an `int`. If no batch ever gets there, `None`.
#
# <details><summary>Hint</summary>
# Solve I(B) = ridge for B. Ask before you divide: towards which value does I(B) go when B becomes very large?
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

# %% check="critical" points=2
from inferlab.lab import Check

check = Check("critical", points=2)
LARGE = {"linear": 7_504_658_432, "itemsize": 2, "attention": 524_288, "cache": 131_072}
SMALL = {"linear": 5_898_240, "itemsize": 4, "attention": 8_192, "cache": 4_096}


def critical(*args):
    """The learner's batch, once it is an int or None."""
    got = check.learner.critical_batch(*args)
    check.true(got is None or (isinstance(got, int) and not isinstance(got, bool)), "return an int, or None")
    return got


with check.part("two bytes a weight, no context: the ridge itself", weight=1):
    check.equal(critical(295.0, 0, LARGE), 295)
### BEGIN HIDDEN TESTS
with check.part("four bytes a weight", weight=1):
    got = critical(40.0, 0, SMALL)
    check.mistake("a weight of four bytes brings its two FLOPs for twice the bytes", when=got == 40)
    check.equal(got, 80)
with check.part("with a context", weight=1):
    for edge, context, sizes, want in ((295.0, 200, LARGE, 600), (206.0, 400, LARGE, 700), (40.0, 50, SMALL, 236)):
        got, simple = critical(edge, context, sizes), round(edge * sizes["itemsize"] / 2)
        check.mistake("the cache is read as well, and more of it with every request", when=got == simple)
        check.mistake("a whole batch that has passed the ridge: round up", when=got == want - 1)
        check.equal(got, want)
with check.part("a batch that never gets there", weight=1):
    for edge, context, sizes in ((295.0, 1000, LARGE), (206.0, 8000, LARGE), (40.0, 2000, SMALL)):
        got = critical(edge, context, sizes)
        check.mistake("with this context every request reads more bytes than its FLOPs are worth at the ridge: no batch is large enough",
                      when=got is not None)
        check.equal(got, None)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# What that means for a model of Llama 3 8B's sizes on one H100 (989 TFLOP/s in bfloat16, 3.35 TB/s: NVIDIA's data sheet):

# %%
llama = {"linear": 7_504_658_432, "itemsize": 2, "attention": 4 * 32 * 32 * 128, "cache": 2 * 32 * 8 * 128 * 2}
ridge = 989e12 / 3.35e12

# %% tags=["demo"]
with when_written("intensity", "critical_batch"):
    print(f"ridge {ridge:.0f} FLOPs per byte")
    for context in (0, 200, 400, 1000, 8000):
        print(f"context {context:5d}: intensity {intensity(1, context, llama):5.2f} at batch 1, {intensity(64, context, llama):6.2f} at batch 64,"
              f" critical batch {critical_batch(ridge, context, llama)}")

# %% [markdown]
# The rule of thumb that the critical batch *is* the ridge holds for two bytes a weight and a context of zero. With a thousand tokens of
# context the caches, whose bytes bring only four FLOPs each, keep the step below the ridge for ever: decode stays memory-bound, and it is the size of the cache that
# limits the batch. That is why the next lab is about memory.

# %% [markdown]
# ### Exercise 4 · A rectangle of prompts
#
# *difficulty 1 of 3 · 4 minutes · 2 points, practice*
#
# `pad_left(prompts, pad)` makes the input of the padded run: `prompts` is a list of lists of token ids, `pad` a token id. It returns
# a `dict` with `"input_ids"` and `"attention_mask"`, both `(B, longest)` and `int64`; the mask is 1 where a token belongs to a prompt.
# Padding goes to the left, so that the last column holds every row's last token: the next one is predicted there.
# The bundled model must make the same greedy tokens from your two tensors as from each prompt alone.
#
# <details><summary>Hint</summary>
# Make both from the lengths. Whether a place is padding cannot be told from the token: a prompt may contain the same id.
# </details>

# %% exercise="pad-left" provides=["pad_left"] difficulty=1 minutes=4
def pad_left(prompts, pad):
    """input_ids and attention_mask of a batch, padded on the left."""
    ### BEGIN SOLUTION
    longest = max(len(prompt) for prompt in prompts)
    ids = [[pad] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
    mask = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}
    ### END SOLUTION

# %% check="pad-left" points=2
import torch
from inferlab.lab import Check, reference

check = Check("pad-left", points=2)


def rectangle_of(rows, pad):
    """The learner's two tensors, once they have the form of the contract."""
    got = check.learner.pad_left(rows, pad)
    check.true(isinstance(got, dict) and set(got) == {"input_ids", "attention_mask"}, "return a dict with input_ids and attention_mask")
    for value in got.values():
        check.tensor(value, shape=(len(rows), max(map(len, rows))), dtype=torch.int64)
    return got["input_ids"], got["attention_mask"]


with check.part("shape and dtype of both", weight=1):
    rectangle_of([[5, 6, 7], [8]], 0)
### BEGIN HIDDEN TESTS
@reference
def one_at_a_time():
    """Three prompts of very different lengths, and the four greedy tokens that the bundled model makes from each alone."""
    import torch
    from inferlab.models import load_language_model
    from inferlab.models.stories import questions

    model, tokenizer = load_language_model("bundled", "cpu")
    rows = [tokenizer(document.prompt(turn)).input_ids for document, turn in questions(3, seed=5, kind="scene")]
    rows[1] = rows[1][-9:]  # with a mask of ones this row's answer changes
    with torch.no_grad():
        alone = [model.generate(torch.tensor([row]), attention_mask=torch.ones(1, len(row), dtype=torch.int64), max_new_tokens=4, min_new_tokens=4,
                                do_sample=False)[0, len(row):].tolist() for row in rows]
    return {"rows": rows, "alone": alone}


def in_a_batch(ids, mask):
    """The same from the learner's rectangle."""
    from inferlab.models import load_language_model

    with torch.no_grad():
        made = load_language_model("bundled", "cpu")[0].generate(ids, attention_mask=mask, max_new_tokens=4, min_new_tokens=4, do_sample=False)
    return made[:, ids.shape[1]:].tolist()


with check.part("the tokens, on the right side", weight=1):
    ids, _ = rectangle_of([[5, 6, 7], [8], [9, 4]], 3)
    check.mistake("padding on the right: the last column, from which the next token comes, would hold padding",
                  when=ids.tolist() == [[5, 6, 7], [8, 3, 3], [9, 4, 3]])
    check.equal(ids.tolist(), [[5, 6, 7], [3, 3, 8], [3, 9, 4]])
with check.part("the mask", weight=2):
    ids, mask = rectangle_of([[0, 6, 7, 0], [0, 8]], 0)
    check.mistake("every place counts as a token: the model would read the padding", when=bool(mask.all()))
    check.mistake("the mask is 1 for tokens and 0 for padding", when=mask.tolist() == [[0, 0, 0, 0], [1, 1, 0, 0]])
    check.mistake("a prompt may contain the id that you pad with: make the mask from the lengths, not from the tokens",
                  when=mask.tolist() == [[0, 1, 1, 0], [0, 0, 0, 1]])
    check.equal(mask.tolist(), [[1, 1, 1, 1], [0, 0, 1, 1]])
    known = one_at_a_time()
    check.true(in_a_batch(*rectangle_of(known["rows"], 0)) == known["alone"],
               "greedy decoding from your two tensors gives other tokens than each prompt alone")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# What the mask is for: the scores of each row's next token, in the batch and alone.

# %% tags=["demo"]
def next_scores(ids, mask):
    """Scores of the next token of each row, (B, vocabulary)."""
    return model(ids.to(lab.device), mask.to(lab.device), None, logits_to_keep=1).logits[:, 0]


with when_written("pad_left"):
    rows = pad_left(prompts, tokenizer.pad_token_id)
    one_by_one = torch.cat([next_scores(torch.tensor([p]), torch.ones(1, len(p), dtype=torch.int64)) for p in prompts])
    for label, mask in (("with the mask", rows["attention_mask"]), ("a mask of ones", torch.ones_like(rows["attention_mask"]))):
        error = (next_scores(rows["input_ids"], mask) - one_by_one).abs().amax(dim=1)
        print(f"{label:15s} largest difference of a score, row by row:", "  ".join(f"{float(e):.0e}" for e in error))

# %% [markdown]
# With the mask, what is left is rounding. Without it, every row that has padding gets other scores, and nothing complains: whether the
# answer changes as well depends on how sure the model is.

# %% [markdown]
# ### Exercise 5 · Static batches
#
# *difficulty 2 of 3 · 7 minutes · 2 points, practice*
#
# Now time is counted in iterations, from 0. Request `r` arrives before iteration `arrivals[r]` (never decreasing) and needs `outputs[r]` iterations,
# one token each. `static(arrivals, outputs, slots)` returns what runs, as **a list of iterations, each a list of the
# numbers of those requests that get a token in it**, in ascending order.
#
# When nothing is running, the server takes the requests that have arrived, at most `slots` of them, first come first served, and runs them
# until the longest is done. Nobody joins in between. A request that is done gets no more tokens, and so it is not listed, but its slot stays taken.
# If nobody has arrived, an iteration passes with `[]`. The list ends with the last token. (Some servers even wait until a batch is full, which
# makes the first to come wait for strangers as well. Ours does not: it starts with whoever is there.)
#
# <details><summary>Hint</summary>
# One loop over batches. A batch adds <code>max(outputs of its members)</code> iterations; in the k-th of them (from 0) the members with
# more than k tokens to make are listed.
# </details>

# %% exercise="static" provides=["static"] difficulty=2 minutes=7
def static(arrivals, outputs, slots):
    """The iterations of static batching: who gets a token in each."""
    ### BEGIN SOLUTION
    waiting, iterations = list(range(len(arrivals))), []
    while waiting:
        batch = [r for r in waiting if arrivals[r] <= len(iterations)][:slots]
        waiting = [r for r in waiting if r not in batch]
        if not batch:
            iterations.append([])
        for k in range(max((outputs[r] for r in batch), default=0)):
            iterations.append([r for r in batch if outputs[r] > k])
    return iterations
    ### END SOLUTION

# %% check="static" points=2
from inferlab.lab import Check
from inferlab.lab.slots import workload

check = Check("static", points=2)


def batches(arrivals, outputs, slots):
    """The learner's iterations, once they are lists of request numbers."""
    got = check.learner.static(list(arrivals), list(outputs), slots)
    form = isinstance(got, list) and all(isinstance(now, list) and all(type(r) is int for r in now) for now in got)
    check.true(form, "return a list of iterations, each a list of request numbers")
    return got


with check.part("three requests, two slots", weight=1):
    check.equal(batches([0, 0, 0], [1, 3, 2], 2), [[0, 1], [1], [1], [2], [2]])
### BEGIN HIDDEN TESTS
def by_batches(arrivals, outputs, slots):
    """Static batching, as the contract says."""
    waiting, rows = list(range(len(arrivals))), []
    while waiting:
        batch = [r for r in waiting if arrivals[r] <= len(rows)][:slots]
        waiting = [r for r in waiting if r not in batch]
        steps = max((outputs[r] for r in batch), default=0)
        rows += [[r for r in batch if outputs[r] > k] for k in range(steps)] if batch else [[]]
    return rows


with check.part("late arrivals", weight=1):
    got = batches([2, 3, 3], [2, 1, 1], 2)
    check.mistake("nobody has arrived yet in iterations 0 and 1: they pass empty", when=got[0] != [])
    check.mistake("some servers wait until a batch is full; this one takes whoever is there", when=got[:4] == [[], [], [], [0, 1]])
    check.mistake("request 1 came while a batch was running: it waits until the batch is done", when=got[3] == [0, 1])
    check.equal(got, [[], [], [0], [0], [1, 2]])
with check.part("a long stream", weight=2):
    for seed in (3, 4):
        load = workload(seed, 40, 2.0, 3, 15)
        got, want = batches(load.arrivals, load.outputs, 4), by_batches(load.arrivals, load.outputs, 4)
        check.mistake("a request that is done gets no more tokens: its slot stays taken, but it is not listed",
                      when=sum(map(len, got)) > sum(load.outputs))
        check.mistake("a batch ends with its longest request: nobody joins before that", when=len(got) < len(want))
        check.equal(got, want)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 6 · Continuous batching
#
# *difficulty 3 of 3 · 12 minutes · 3 points*
#
# The same contract, the other rule: `continuous(arrivals, outputs, slots)`. **Before every iteration** whoever is done leaves, and
# the requests that have arrived take the free slots, first come first served. Nobody who runs is paused. Return the iterations in
# the same form.
#
# It is graded on streams of its own, and against the library's engine: the number of requests in each of its calls must be yours.
#
# <details><summary>Hint</summary>
# Keep a dict from each running request to its tokens still to come. In each iteration: let in, write down, subtract one, drop the zeros.
# A slot that becomes free in iteration k serves somebody else in k + 1.
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
from inferlab.lab.slots import workload

check = Check("continuous", points=3)


def refilled(arrivals, outputs, slots):
    """The learner's iterations, once they are lists of request numbers."""
    got = check.learner.continuous(list(arrivals), list(outputs), slots)
    form = isinstance(got, list) and all(isinstance(now, list) and all(type(r) is int for r in now) for now in got)
    check.true(form, "return a list of iterations, each a list of request numbers")
    return got


with check.part("three requests, two slots", weight=1):
    check.equal(refilled([0, 0, 0], [1, 3, 2], 2), [[0, 1], [1, 2], [1, 2]])
### BEGIN HIDDEN TESTS
def by_slots(arrivals, outputs, slots):
    """Continuous batching, as the contract says."""
    ahead, left, rows = list(range(len(arrivals))), {}, []
    while ahead or left:
        free = slots - len(left)
        here = [r for r in ahead if arrivals[r] <= len(rows)][:free]
        ahead = [r for r in ahead if r not in here]
        left.update({r: outputs[r] for r in here})
        rows.append(sorted(left))
        left = {r: n - 1 for r, n in left.items() if n > 1}
    return rows


@reference
def library(outputs, slots):
    """Requests in each call of the library's engine, all of them there from the start."""
    from inferlab.lab.slots import engine_run
    from inferlab.models import load_language_model

    model, _ = load_language_model("bundled", "cpu")
    prompts = [list(range(5, 8 + k % 4)) for k in range(len(outputs))]
    return [requests for _, requests in engine_run(model, prompts, outputs, slots)[1]]


with check.part("the library's engine, call by call", weight=2):
    for outputs, slots in (((3, 8, 1, 5, 2, 2), 3), ((2, 2, 6, 1), 2)):
        rows, want = refilled([0] * len(outputs), outputs, slots), library(outputs, slots)
        got, joined = [len(now) for now in rows], list(dict.fromkeys(r for now in rows for r in now))
        groups = [outputs[at:at + slots] for at in range(0, len(outputs), slots)]
        together = [sum(n > k for n in group) for group in groups for k in range(max(group))]
        check.mistake("a batch does not end together: a free slot is filled in the very next iteration", when=got == together != want)
        check.mistake("there are only so many slots", when=max(got) > slots)
        check.mistake("a slot that becomes free in one iteration serves somebody else in the next: yours stays empty in between",
                      when=joined == sorted(joined) and got != together and sum(got) == sum(want) and len(got) > len(want))
        check.equal(got, want)
with check.part("late arrivals", weight=1):
    got = refilled([1, 1, 4], [1, 1, 2], 2)
    check.mistake("a request cannot run before it has arrived", when=got[:1] != [[]])
    check.equal(got, [[], [0, 1], [], [], [2], [2]])
with check.part("a long stream, in the order of arrival", weight=2):
    for seed in (5, 6):
        load = workload(seed, 60, 2.0, 3, 15)
        got, want = refilled(load.arrivals, load.outputs, 4), by_slots(load.arrivals, load.outputs, 4)
        first = [r for now in got for r in now]
        order = sorted(set(first), key=first.index)
        check.mistake("first come, first served: the lengths are not known beforehand, so nobody can be let in for being short",
                      when=order != sorted(order))
        check.equal(got, want)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Your scheduler against the library's
#
# The packed run of section 3, from its lengths alone:

# %% tags=["demo"]
with when_written("continuous"):
    mine = continuous([0] * len(OUTPUTS), OUTPUTS, SLOTS)
    print("yours:  ", [len(now) for now in mine])
    print("library:", [requests for _, requests in calls])

# %% [markdown]
# And a stream of requests as a service sees it: most answers short, some long.

# %%
from inferlab.lab.slots import workload

# %% tags=["demo"]
from inferlab.lab.slots import occupancy_chart

stream = workload(SEED, 26, 2.2, 4, 22)
with when_written("static", "continuous"):
    runs = {"static": static(stream.arrivals, stream.outputs, 4), "continuous": continuous(stream.arrivals, stream.outputs, 4)}
    display(occupancy_chart(runs, 4, title="A static batch waits for its longest request; a continuous one refills its slots"))

# %% [markdown]
# The numbers in the bars are requests; dotted places are computed for nobody. The same requests, the same slots, the same model.

# %% [markdown]
# ### Exercise 7 · What the users notice
#
# *difficulty 2 of 3 · 6 minutes · 2 points, practice*
#
# `report(iterations, arrivals, slots)` sums a run up, for either scheduler: a `dict` with
#
# * `"iterations"`: how many there were, `int`;
# * `"occupancy"`: tokens made, over slots times iterations, `float`;
# * `"median"` and `"p99"`: the waiting time at the 50th and the 99th percentile, `int`. A request's waiting time is the number of iterations
#   between its arrival and the one in which it gets its first token (0 if it gets one at once).
#
# Percentiles by nearest rank: of $n$ sorted values the $p$-th percentile is the one with rank $\lceil p\,n/100 \rceil$, counted from 1.
#
# <details><summary>Hint</summary>
# For the first token: walk through the iterations once and keep each request's first index (<code>dict.setdefault</code>). Integer
# arithmetic for the rank: <code>-(-p * n // 100)</code>.
# </details>

# %% exercise="report" provides=["report"] difficulty=2 minutes=6
def report(iterations, arrivals, slots):
    """Iterations, occupancy, and the median and 99th percentile of the waiting time."""
    ### BEGIN SOLUTION
    first = {}
    for at, running in enumerate(iterations):
        for request in running:
            first.setdefault(request, at)
    waits = sorted(first[r] - arrivals[r] for r in first)
    rank = {p: -(-p * len(waits) // 100) for p in (50, 99)}
    return {
        "iterations": len(iterations),
        "occupancy": sum(map(len, iterations)) / (slots * len(iterations)),
        "median": waits[rank[50] - 1],
        "p99": waits[rank[99] - 1],
    }
    ### END SOLUTION

# %% check="report" points=2
from inferlab.lab import Check
from inferlab.lab.slots import workload

check = Check("report", points=2)


def summed(rows, arrivals, slots):
    """The learner's report, once it has the four keys."""
    got = check.learner.report([list(now) for now in rows], list(arrivals), slots)
    check.true(isinstance(got, dict) and set(got) == {"iterations", "occupancy", "median", "p99"}, "return a dict with the four keys of the contract")
    return got


with check.part("three requests in two slots", weight=1):
    got = summed([[0, 1], [1, 2], [1, 2]], [0, 0, 0], 2)
    check.equal([got["iterations"], got["median"]], [3, 0])
### BEGIN HIDDEN TESTS
def refill(arrivals, outputs, slots):
    """Continuous batching, for a run with real waiting times."""
    ahead, left, rows = list(range(len(arrivals))), {}, []
    while ahead or left:
        here = [r for r in ahead if arrivals[r] <= len(rows)][: slots - len(left)]
        ahead = [r for r in ahead if r not in here]
        left.update({r: outputs[r] for r in here})
        rows.append(sorted(left))
        left = {r: n - 1 for r, n in left.items() if n > 1}
    return rows


with check.part("occupancy", weight=1):
    rows = [[], [0, 1], [1], [], [2, 3]]
    got = summed(rows, [1, 1, 4, 4], 3)["occupancy"]
    check.mistake("an iteration in which nobody runs has empty slots, too", when=abs(got - 5 / 9) < 1e-9)
    check.mistake("slots that hold nobody count below the line", when=abs(got - 1) < 1e-9)
    check.close(got, 5 / 15, tol=1e-9)
with check.part("waiting times of 250 requests", weight=2):
    load = workload(11, 250, 2.6)
    rows = refill(load.arrivals, load.outputs, 5)
    start = {r: min(at for at, now in enumerate(rows) if r in now) for r in range(250)}
    waits = sorted(start[r] - load.arrivals[r] for r in start)
    got = summed(rows, load.arrivals, 5)
    said = [got["median"], got["p99"]]
    last = {r: max(at for at, now in enumerate(rows) if r in now) for r in range(250)}
    check.mistake("waiting ends with the first token, not with the last", when=said[0] == sorted(last[r] - load.arrivals[r] for r in last)[124])
    check.mistake("the 99th percentile is not the maximum: of 250 values it is the 248th", when=said[1] == waits[-1])
    check.mistake("that is the mean: a few long waits pull it up", when=abs(said[0] - sum(waits) / 250) <= 1 and said[0] != waits[124])
    check.equal(said, [waits[124], waits[247]])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 8 · How many slots does your service need?
#
# *difficulty 2 of 3 · 8 minutes · 2 points*
#
# Your service has its own stream of requests (it depends on your name) and a promise to keep: 99 of 100 requests wait at most `LIMIT`
# iterations for their first token. It runs a model of Llama 3 8B's sizes with 8,000 tokens of context on the H100 of above.

# %%
v = lab.variant(8)
service = workload(100 + v, 160, (1.6, 1.8, 2.0, 2.2, 2.4, 2.6, 2.8, 3.0)[v])
LIMIT = (6, 8, 10, 5, 7, 9, 4, 6)[v]
print(f"{len(service.arrivals)} requests in {service.arrivals[-1]} iterations, {sum(service.outputs)} tokens; p99 of the wait: at most {LIMIT}")

# %% [markdown]
# Write `choose()`, which returns a `dict`:
#
# * `"slots"`: the smallest number of slots, from 1, with which continuous batching keeps the promise, `int`;
# * `"static"`: the 99th percentile of the wait if static batching is given the same number of slots, `int`;
# * `"slower"`: by which factor a full iteration with that many slots takes longer than one with a single request, `float`. An iteration
#   takes as long as the slower of its two halves: its bytes over the machine's bytes/s, its FLOPs over the machine's FLOP/s.
#   With 8,000 tokens of context, which of the two is it (exercise 3)?
#
# <details><summary>Hint</summary>
# <code>service.arrivals</code> and <code>service.outputs</code> go into your own functions; try the slots one after the other. For
# <code>"slower"</code> you need no seconds: a ratio of bytes. Weights are read once, a cache for each request.
# </details>

# %% exercise="choose" provides=["choose"] difficulty=2 minutes=8
def choose():
    """Slots that keep the promise, what static batching would do with them, and what an iteration then costs."""
    ### BEGIN SOLUTION
    def p99(scheduler, slots):
        return report(scheduler(service.arrivals, service.outputs, slots), service.arrivals, slots)["p99"]

    def step_bytes(batch):
        return llama["linear"] * llama["itemsize"] + batch * 8000 * llama["cache"]

    slots = next(n for n in range(1, 100) if p99(continuous, n) <= LIMIT)
    return {"slots": slots, "static": p99(static, slots), "slower": step_bytes(slots) / step_bytes(1)}
    ### END SOLUTION

# %% check="choose" points=2
from inferlab.lab import Check

check = Check("choose", points=2)


def choice():
    """The learner's choice, once it has the three keys."""
    got = check.learner.choose()
    check.true(isinstance(got, dict) and set(got) == {"slots", "static", "slower"}, "return a dict with slots, static and slower")
    return got


with check.part("the form of the answer", weight=0):
    got = choice()
    check.true(isinstance(got["slots"], int) and isinstance(got["static"], int), '"slots" and "static" are whole numbers')
    check.true(isinstance(got["slower"], float | int), '"slower" is a factor')
### BEGIN HIDDEN TESTS
from inferlab.lab.slots import workload


def refilling(load, slots):
    """First iterations of continuous batching."""
    ahead, left, first, at = list(range(len(load.arrivals))), {}, {}, 0
    while ahead or left:
        while ahead and len(left) < slots and load.arrivals[ahead[0]] <= at:
            r = ahead.pop(0)
            left[r], first[r] = load.outputs[r], at
        left = {r: n - 1 for r, n in left.items() if n > 1}
        at += 1
    return first


def batching(load, slots):
    """First iterations of static batching."""
    ahead, first, at = list(range(len(load.arrivals))), {}, 0
    while ahead:
        batch = [r for r in ahead if load.arrivals[r] <= at][:slots]
        ahead = [r for r in ahead if r not in batch]
        first.update(dict.fromkeys(batch, at))
        at += max((load.outputs[r] for r in batch), default=1)
    return first


def wait(load, first_of, slots, percent):
    """The wait at this percentile, by nearest rank."""
    first = first_of(load, slots)
    waits = sorted(first[r] - load.arrivals[r] for r in first)
    return waits[-(-percent * len(waits) // 100) - 1]


def needed(load, percent, limit):
    """The smallest number of slots whose wait at this percentile is at most the limit, with continuous batching."""
    return next(slots for slots in range(1, 161) if wait(load, refilling, slots, percent) <= limit)


v = check.variant(8)
load = workload(100 + v, 160, (1.6, 1.8, 2.0, 2.2, 2.4, 2.6, 2.8, 3.0)[v])
limit = (6, 8, 10, 5, 7, 9, 4, 6)[v]
enough = needed(load, 99, limit)
with check.part("slots with continuous batching", weight=2):
    got = choice()["slots"]
    check.mistake("that keeps the promise for the median only: half of the users wait longer", when=got == needed(load, 50, limit))
    check.mistake("that many slots keep the promise, but fewer do as well", when=isinstance(got, int) and got > enough)
    check.equal(got, enough)
with check.part("the wait with static batching", weight=1):
    got = choice()["static"]
    check.mistake("a static batch ends with its longest request: who comes while it runs waits for that, however many of its slots are idle",
                  when=got == wait(load, refilling, enough, 99))
    check.equal(got, wait(load, batching, enough, 99))
with check.part("what an iteration costs then", weight=1):
    got, slots = choice()["slower"], enough
    weights, own = 7_504_658_432 * 2, 8000 * 131_072
    check.mistake("a batch does not make a step faster: everybody waits for the same, longer step", when=got < 1)
    check.mistake("the weights are read once for all of them: a step with twice the requests does not take twice as long", when=abs(got - slots) < 1e-6)
    check.mistake("each request reads its own cache in the step", when=abs(got - 1) < 1e-9)
    check.close(got, (weights + slots * own) / (weights + own), rtol=1e-3, tol=0)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# The same slots serve a static batch far worse. More of them shorten its queue, but never below the length of a batch: somebody always comes
# just after one has begun.
#
# Does batching help latency? Only where somebody would have to wait. With one request every 60 iterations, the median is 0
# however many slots there are, and only the rare one that comes during a long answer gains from a second; with your service's stream they change everything:

# %% tags=["demo"]
with when_written("continuous", "report"):
    for label, load in (("one request in 60 iterations", workload(SEED, 160, 60.0)), ("your service", service)):
        for slots in (1, 4, 16):
            seen = report(continuous(load.arrivals, load.outputs, slots), load.arrivals, slots)
            print(f"{label:29s} {slots:2d} slots: wait {seen['median']:4d} at the median, {seen['p99']:4d} at p99, {seen['occupancy']:4.0%} in use")

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 10 minutes · 6 points: 3 for the typed lines, 3 for the sentences*
#
# A colleague says: "We batch eight requests, so they start together and end together, and everyone is served faster." Set it right, with the
# runs of section 3: six requests with 3, 14, 5, 4, 9 and 2 new tokens, padded in one batch, and packed in three slots.
#
# | line | what it says |
# |---|---|
# | `state:` | one or two sentences: what continuous batching does with the requests between two iterations, and what does it |
# | `axis:` | one or two sentences: which axis of `input_ids` counts what in a decode step of the padded run and of the packed one, with its numbers |
# | `trade-off:` | one or two sentences: what a larger batch gains, and what it costs |
# | `shape:` | typed: the shape of `input_ids` in the second call of the packed run |
# | `idle:` | typed: in how many places of the padded run's 14 calls a row was computed whose request was already done (a row of one call is one place) |
# | `gain:` | typed, in the form of `compute up`: what a larger batch improves |
# | `cost:` | typed: what it makes worse for each request, or for the machine |

# %% tags=["demo"]
explained = packed  # %%explain looks the numbers of your answer up in the newest trace that has a name

# %% explain="batch-in-words" difficulty=2 minutes=10
# %%explain batch-in-words
# ### BEGIN SOLUTION
# state: Between two iterations the scheduler removes the requests that are done from the batch, and it moves waiting requests into the free slots.
# axis: In the padded run the batch axis counts the requests, so a step is (6, 1) to the end. In the packed run the batch axis is 1 and the second axis counts the tokens, so a step of three requests is (1, 3).
# trade-off: A larger batch raises the throughput, because the weights are read once for all, but each step takes longer, so the latency of each token goes up, and the cache needs more memory.
# shape: (1, 3)
# idle: 47
# gain: throughput up
# cost: latency up
# ### END SOLUTION

# %% check="batch-words-shape" of="batch-in-words" points=1
from inferlab.lab import Check, reference

check = Check("batch-words-shape", points=1)
with check.part("`shape:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("batch-in-words").get("shape"), "`shape:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed


@reference
def second_call():
    """input_ids of the second call of the packed run; the prompts' texts do not matter."""
    from inferlab.lab.slots import engine_run
    from inferlab.models import load_language_model

    model, _ = load_language_model("bundled", "cpu")
    return (1, engine_run(model, [[5, 6, 7]] * 6, (3, 14, 5, 4, 9, 2), 3)[1][1][0])


with check.part("what the second call of the packed run gets"):
    told = check.explanation("batch-in-words")
    check.mistake("that is a rectangle with one row a request; the packed run has one row for all", when=typed(told, "shape", (3, 1)).verdict == "award")
    check.mistake("that is the padded run: six rows", when=typed(told, "shape", (6, 1)).verdict == "award")
    outcome = typed(told, "shape", second_call())
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="batch-words-idle" of="batch-in-words" points=1
from inferlab.lab import Check

check = Check("batch-words-idle", points=1)
with check.part("`idle:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("batch-in-words").get("idle"), "`idle:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

with check.part("rows that were computed for nobody"):
    told, lengths = check.explanation("batch-in-words"), (3, 14, 5, 4, 9, 2)
    check.mistake("those are the tokens that were made; the rest of the 6 x 14 places is idle", when=typed(told, "idle", sum(lengths)).verdict == "award")
    check.mistake("a batch does not end together: five of the six requests are done before the last call", when=typed(told, "idle", 0).verdict == "award")
    outcome = typed(told, "idle", sum(14 - n for n in lengths))
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="batch-words-gain-cost" of="batch-in-words" points=1
from inferlab.lab import Check

check = Check("batch-words-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("batch-in-words").get("gain"), "`gain:` is empty")
    check.true(check.explanation("batch-in-words").get("cost"), "`cost:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

words = {"intensity": "intensity, arithmetic intensity, flops per byte", "utilization": "utilization, utilisation, occupancy, use of the machine",
         "waiting": "queue, queueing, queueing time, wait, waiting, waiting time, time to first token, ttft",
         "weight reads": "weight reads, weight traffic, reads of weights",
         "bandwidth": "bandwidth, memory bandwidth, bandwidth use, memory traffic, traffic, bytes read, bytes per token"}
gains = ("throughput up", "intensity up", "utilization up", "waiting down", "weight reads down", "bandwidth down")
check.slot(lambda: typed(check.explanation("batch-in-words"), "gain", gains, terms=words), "what a larger batch gains")
costs = ("latency up", "time up", "speed down", "memory up", "cache up")
check.slot(lambda: typed(check.explanation("batch-in-words"), "cost", costs, terms={"cache": "cache, kv cache, cache size, cache bytes"}),
           "what a larger batch costs")
### END HIDDEN TESTS
check.score()

# %% check="batch-words-state" of="batch-in-words" points=1
from inferlab.lab import Check

check = Check("batch-words-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("batch-in-words").get("state"), "`state:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="We batch eight requests, so they start together and end together, and everyone is served faster. What continuous batching "
    "does with the requests between two iterations, and what does it.",
    lab="Before every iteration whoever is done leaves, and the requests that have arrived take the free slots, first come first served. "
    "Nobody who runs is paused. A static batch ends with its longest request.",
    terms={
        "scheduler": "scheduler*, schedular*, fifoscheduler*, engine, fifo scheduler, server, continuous batching, schedule_batch, continuous batcher, batcher, serving loop",
        "requests": "request*, sequence*",
        "longest": "longest, longest request, slowest, slowest request, longest one, whole batch, entire batch, last request",
        "weights": "weight*, parameters",
        "turnover": "turnover",
        "joined": "not only when, not just when, not when, not only once, not only after, instead of when, rather than when",  # not as in a static batch
        "people": "whoever, person, people, somebody, someone, guy",
        "places": "slot*, seat, seats, place, places",
        "pause": "pause*, interrupt*",
        "times": "iteration*, step*, call*",
        "others": "gpu*, hardware, client*, cuda, kernel*, driver*, operating system, tokenizer*, attention",
    },
    slots={
        "state": Slot(
            learned="lab14 state 1f65b355e0a3b695",
            names=["scheduler"],
            deny={
                "longest decide": "That is static batching: here nobody's length decides for the others.",
                "scheduler changes/splits/shrinks weights": "The weights stay as they are; what changes is who is in the batch.",
                "others decide": "The machine computes what it is given. What chooses the requests of an iteration?",
                "others decide/remove/drop/swap/replace/pull requests": "The machine computes what it is given. What chooses the requests of an iteration?",
                "says: throw/kick/take out running/active/unfinished, throw/kick/take out the running/active/unfinished, remove/drop/evict/discard running/active/unfinished, remove/drop/evict/discard the running/active/unfinished, remove/drop/evict/discard/kick waiting/queued, remove/drop/evict/discard the waiting/queued, admit/add/insert finished/completed/done, admit/add/insert the finished/completed/done": "It is the finished that leave, and the waiting that come in.",
                "says: gpu/hardware/kernel/client/mask/tokenizer/user frees/fills/lets/swaps/removes/throws/deletes/admits/decides/kicks, mask does this/it, model itself drops/notices/throws/removes":
                    "The machine computes what it is given. What chooses the requests of an iteration?",
                "scheduler stop requests": "Nobody who runs is paused.",
                "says: swap/swaps/replace/replaces running/active/unfinished, swap/swaps/replace/replaces the running/active/unfinished, sends/send/puts/put/moves/move .. running .. back, pauses/pause/interrupts/interrupt the/others one/requests/request/others":
                    "Nobody who runs is paused or sent back: only the finished leave.",
                "says: pads/pad each/every/the/all/new, fill/fills .. with padding": "Nothing is padded for a newcomer: the requests lie end to end in one row.",
                "says: sorts/sort the/all/waiting, sorts/sort requests/them": "First come, first served: nobody knows how long an answer becomes.",
                "says: takes/take over the/its kv/cache, takes/take over the kv cache, hands/passes/hand/pass .. cache on, hands/passes/gives/hand/pass/give .. cache to the/a next/newcomer/new": "A cache is its request's own; a newcomer's prompt is prefilled.",
                'says: "waits till", "waits until", "waits for the longest", "waits for the slowest", "waits for all", "scheduler waits for", "engine waits for", "server waits for", batch waits for, leave/leaves together, keeps the same, share of the weights, leave at the same, all requests/sequences leave, nobody can join/enter, no one can join/enter, no/without scheduler, without a scheduler, '
                "never replace/remove/admit/swap/free, pauses/interrupts/stops the running, pauses/interrupts/stops the requests/sequences": "That is static batching: here who is in the batch is decided anew before every iteration.",
            },
            trend=Trend(  # two ideas are wanted beside the name of who does it: the finished leave, and the waiting come in
                "turnover", gain={"left": "up"}, cost={"joined": "up"}, asked="up",
                says={
                    "left up":
                        "remove/drop/evict/kick/retire/release/discard/clear/throw/take/pull/swap/replace/free/eject/expel/delete/let/pop/strip/exchange/vacate/reclaim/send/recycle/reassign/move "
                        ".. finished/done/completed/complete/ready/ended/end/finish/reach/reached/hit/produced/old/over/last/eos, "
                        "finished/done/completed/complete/ready/ended/over/whoever/tokens/token/end/old .. leave/leaves/out/removed/dropped/evicted/kicked/retired/released/discarded/go/goes/exit/freed/replaced/swapped/"
                        "give/gives/free/frees/thrown/cleared/vacate/departs, "
                        "kick/throw/send/take/put/move/get them out, kick/throw/send/take/move out, remove/drop/evict/discard/clear/delete/retire/eject them/these/those, they/these/those go/leave out/away, they leave/exit, slots of finished/completed/done, frees its/their/the slot/slots/place/seat, "
                        "finished/done/completed/complete/ended/ready .. by/with/for .. waiting/queued/next/new/one, take/takes/kick/kicks/throw/throws/put/puts/drop/drops it/them/him/those out/off, "
                        "slot/slots/places/seats/which .. become/became/becomes/fallen free/empty, got/gets free, one/ones/somebody leaves/left, leave/leaves the room/batch/group/slot, request/sequence leave/leaves/left, make/makes place/room for, as soon as .. done/complete/finished/over, when/once .. is/are done/complete/finished, when/once .. has/have finished, first/former go/leave/out, "
                        "who/which/what/request/somebody/someone is/was/has finish/done/finished, crosses/cross off, takes/take/drops/drop/removes/remove .. done, back their/its slot/slots/seat/cache/blocks, finished/done .. dropped/replaced/swapped, "
                        "has/have finished/ended are/is/gets removed, who/which/that is/are done/finished/ready",
                    "left down": "keeps/hold/leaves finished/completed/done, keeps/hold/leaves the finished/completed/done, stay/stays in the/their/same slot/slots, finished/done .. stay/remain, finished/done .. keep their",
                    "joined up":
                        "swap in waiting/queued/new/next/the, swaps in waiting/queued/new/next/the, admit/add/let/bring/put/take/insert/give/fill/pull/move/assign/accept/load/start/hand/replace/get/enter/bring/seat/schedule/place/push/offer/include/pick/launch/begin "
                        ".. waiting/queued/queue/new/next/arrived/pending/newcomer/newcomers/arrival/arrivals/waits/wait/others/another, "
                        "waiting/queued/queue/next/new/pending/arrived/waits/newcomer/newcomers/arrivals .. in/enter/join/get/gets/take/takes/fill/occupy/admitted/added/let/put/come/comes/inserted/start/use/move/seat/receive, "
                        "for/by/with/w waiting/queued/next/new/pending, lets/let .. in/into/enter, with/by .. waiting/queued/pending/queue/next, assign/give/hand it to, takes it over, takes over, takes its/their place/slot/seat, fill/fills the/its/a/their/that slot/place/seat/slots, "
                        "refill/refills, whoever .. waiting, "
                        "for/by/with a/the/another waiting/queued/next/new, waiting/queued/new/next ones/one/requests/request in/into/to, slots/slot in/into .. waiting/new/next, give/gives/hand/hands/assign/assigns them/it/these to, "
                        "gives/give/assigns/assign/hands/hand .. slot/place/seat/slots .. to, tops/top/fill/fills .. up, tops/top up, fills/fill the holes/gaps/seats, from the waiting/queue, head/front/top of the queue/line, next/first in line/queue, "
                        "in their/its place/stead, into their/its place/slot/slots, who/which/that waits/wait, calls/call/invites/invite in .. next/waiting/new, invites/invite .. waits/waiting/next, adds/add what/who waits",
                    "joined down": "nobody/none .. join/enter/joins, no new .. join/enter/comes, "
                                   "when/once/after all requests/sequences/slots/of/are .. done/finished/complete/through/over/ready, soon as all requests/sequences/slots/of/are .. done/finished/complete/through/over/ready, "
                                   "when/once/after everyone/everybody .. done/finished/through, when/once/after the/whole whole/entire/longest/slowest/batch .. done/finished/complete/through/over/ready, "
                                   "soon as the whole/entire/longest/slowest .. done/finished/complete/through/over/ready",
                },
            ),
        )
    },
    must_award={
        "state": [
            "After each iteration the scheduler removes finished requests from the batch and admits waiting ones into the free slots.",
            "The scheduler drops whatever request is done and fills its slot with the next waiting request.",
            "Before every iteration the scheduler frees the slots of finished requests and puts waiting requests in them.",
            "Finished requests leave the batch, and waiting requests are put into the free slots by the scheduler.",
            "The engine takes completed sequences out of the batch and adds new sequences in their place.",
            "scheduler kicks out whoever is done and lets the next one from the queue sit down, every step",
            "Before each call the scheduler decides who participates: the ones who finished are released and the ones in the queue occupy their slot.",
            "Finished leave, waiting join; the scheduler does it before each call.",
            "The scheduler swaps each finished request for a waiting one after every call.",
            "When a request is done, the scheduler takes it out and gives its slot to the next in line.",
            "The scheduler looks which slots have become free and gives them to requests from the queue.",
        ]
    },
    must_deny={
        "state": [
            "The scheduler waits for the longest request and then starts the next batch.",
            "The longest request decides when the batch changes.",
            "The batch waits for the slowest request before anything changes.",
            "The scheduler changes the weights between two iterations.",
            "The scheduler pauses the requests that run and keeps the finished ones in their slots until the whole batch is complete.",
            "No scheduler is involved: the finished requests stay in their slots and no new ones join.",
            "The GPU decides who runs and drops the requests that are done.",
            "The scheduler pauses the running requests and admits the waiting ones in their place.",
            "The GPU frees the slots of the finished requests and fills them from the queue, while the scheduler only starts it.",
            "The scheduler swaps the running requests for waiting ones, so that everybody gets a turn.",
            "The scheduler removes the finished request and hands its KV cache on to the next in line.",
            "After each call the scheduler takes out the finished ones and pads the new ones to the length of the others.",
        ]
    },
)
check.slot(lambda: grade(check.explanation("batch-in-words"), RUBRIC, {})["state"], "what happens between two iterations")
### END HIDDEN TESTS
check.score()

# %% check="batch-words-axis" of="batch-in-words" points=1
from inferlab.lab import Check, reference

check = Check("batch-words-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("batch-in-words").get("axis"), "`axis:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Amounts, Rubric, Slot, grade


@reference
def facts():
    """input_ids of a decode step of both runs; the prompts' texts do not matter."""
    import torch
    from inferlab.lab.slots import engine_run
    from inferlab.models import load_language_model
    from inferlab.trace import trace

    model, _ = load_language_model("bundled", "cpu")
    ids = torch.full((6, 3), 9)
    with torch.no_grad(), trace(model) as run:
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=2, min_new_tokens=2, do_sample=False)
    padded = run.facts()["LlamaForCausalLM.inputs.input_ids.shapes"][1]
    return {"padded step": tuple(padded), "packed step": (1, engine_run(model, [[5, 6, 7]] * 6, (3, 14, 5, 4, 9, 2), 3)[1][1][0])}


RUBRIC = Rubric(
    question="Which axis of input_ids counts what in a decode step of the padded run and of the packed one, with its numbers.",
    lab="Six rows as long as the longest prompt, against one row with the tokens of three prompts. The packed row has no batch axis to speak of. "
    "input_ids stays to the end, although most rows were done long before. The requests lie end to end in one row.",
    terms={
        "padded": "padded*, padding, pad, padded run, padded batch, padded step, static, static run, static batch, rectangle",
        "packed": "packed*, packing, packd, packed run, packed row, packed batch, packed step, continuous, continuous run, continuous batching",
        "batch": "batch axis, batch dimension, batch size, first axis, first dimension, first number, leading dimension, leading axis, rows, row, axis 0, dim 0, dimension 0",
        "tokens": "token*, second axis, second dimension, second number, trailing dimension, sequence axis, length axis, axis 1, dim 1, dimension 1, columns, column, cols, last axis",
        "requests": "request*, sequences, reqs, people, users",
        "slots": "slot*",
        "calls": "call*, iteration*",
    },
    slots={
        "axis": Slot(
            learned="lab14 axis 4f75427129be9440",
            topic=["batch", "tokens"],
            deny={
                "says: positions/tokens of one/a/the prompt, three/3 tokens of/from one/1/single/a request, requests in both, 6 in both, six in both, same in both, axis .. in both runs, tokens of one/1/the same request, tokens of a single request, is the length of the prompt, "
                "counts the prompt/length, columns are the prompt": "The packed row of a decode step holds one token of each request that runs.",
                "says: axis/dimension/dim is/counts/means/holds the layers/heads/vocabulary/features/width/embedding, axis/dimension/dim is/counts/means/holds layers/heads/vocabulary/features/width/embedding": "The axes of input_ids count requests and tokens, nothing of the model.",
                "says: axis/dim/dimension 0 shrinks/drops/decreases, axis 0 become/becomes/gets smaller/shorter, first axis/dimension shrinks/drops/decreases, shrinks as they/requests/rows, finished rows are dropped": "input_ids of the padded run keeps its six rows to the end.",
                "says: is/counts/means the longest/prompt, is/means/counts the number of layers/heads/positions, counts the layers/positions/heads, tokens in each/the prompt, how many padding, three/3 tokens have been, made so far, two of the/these three, two of three":
                    "The axes of input_ids count requests and their new tokens in this step, nothing else.",
                "says: that one/a request makes/generates/produces, each single request generates/makes, serves 1/one request, single request with three/3": "The packed row of a decode step holds one token of each request that runs.",
                "says: axis/dim/dimension 1 counts/is/are/holds/has/means six/6, axis/dim/dimension 1 counts/holds/means the/all six/6, second axis/dimension counts/is/holds/has six/6, second axis/dimension counts/holds the six/6, "
                "axis/dim/dimension 0 counts/holds/means three/3, axis/dim/dimension 0 counts/holds/means the three/3, first axis/dimension counts/holds three/3, first axis/dimension counts/holds the three/3, "
                "axis/dim/dimension 1 of the padded .. six/6, axis/dim/dimension 0 that counts the three/3, counted by axis 1 in the padded, axis 0 is its/their one/single token, axis 0 is the one/single token": "In the padded run the six requests are rows, axis 0; in the packed one their three tokens lie along axis 1.",
                "says: axis/dim/dimension 0 counts/is/are/holds/means tokens, axis/dim/dimension 0 counts/is/holds the tokens, first axis/dimension counts/is/holds tokens, "
                "first axis/dimension counts/is/holds the tokens, rows/row count/are/is/counts tokens, rows/row count/are/is/counts the tokens": "A row of the padded run is a request.",
            },
            amounts=Amounts(
                shapes=["padded step", "packed step", (1, 2)],
                counts={"batch": [6, 1], "tokens": [1, 2, 3], "requests": [6, 3, 2, 1], "slots": 3, "calls": 14},
                key=["tokens=3"],
                of={"padded": ["padded step"], "packed": ["packed step", (1, 1), (1, 2)]},
            ),
        )
    },
    must_award={
        "axis": [
            "In the padded run the batch axis counts the requests, so a step is (6, 1); in the packed run the second axis counts the tokens, so it is (1, 3).",
            "The padded step is (6, 1): its first axis has 6 rows, one for each request. The packed step is (1, 3): one row with 3 tokens.",
            "The first axis is 6 in the padded run and 1 in the packed run, where the second axis holds 3 tokens, one for each request.",
            "The batch axis has 6 rows in the padded run; the packed run has 1 row and lays the tokens along the second axis, (1, 3).",
            "Padded is (6, 1) to the end, each row is a request. Packed is one row, (1, 3): the columns are the tokens of three requests.",
        ]
    },
    example_facts={"padded step": (6, 1), "packed step": (1, 3)},
    must_deny={
        "axis": [
            "The batch axis is 14 in the padded run, because it makes 14 tokens.",
            "The packed run has a batch axis of 8 rows and the padded one has 8 rows as well.",
            "The batch axis has 12 rows.",
            "The first axis of the packed run has 5 rows.",
            "Padded is (6, 1), rows are requests. Packed is (1, 3), three tokens of one request.",
            "In the padded run axis 0 counts requests, (6, 1) at first, and shrinks as they finish; in the packed run axis 1 counts 3 tokens.",
            "Padded is (6, 1), where axis 0 is the longest prompt, and packed is (1, 3), where axis 1 counts the layers.",
            "In the padded run, (6, 1), axis 1 counts the six requests. In the packed run, (1, 3), axis 0 counts the three of them.",
        ]
    },
)
check.slot(lambda: grade(check.explanation("batch-in-words"), RUBRIC, facts())["axis"], "which axis counts what, with its numbers")
### END HIDDEN TESTS
check.score()

# %% check="batch-words-trade-off" of="batch-in-words" points=1
from inferlab.lab import Check

check = Check("batch-words-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("batch-in-words").get("trade-off"), "`trade-off:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What a larger batch gains, and what it costs.",
    lab="All requests together get many more tokens a second; each of them gets no more than alone, and in the end fewer. The weights are read once "
    "a step. Each request reads its own cache.",
    terms={
        "batch": "batch*, batch size, batching, slots, number of slots, number of requests, requests at once, concurrent requests, more requests, more sequences, more users",
        "throughput": "throughput, troughput, tokens per second, total throughput, tokens a second, tokens in a second, tokens in the second, words per second, total output, output of the machine, total tokens/s, overall tokens/s, aggregate tokens/s, aggregate tokens per second, overall tokens per second, "
        "output from the machine, total tokens, overall tokens, intensity, arithmetic intensity, flops per byte, flops for each byte, utilization, utilisation",
        "memory": "kv cache*, cache*, caches, cache memory, kv memory, memory bill, cache bytes, memory for caches, memory for the caches, kv storage, kv footprint, has to fit, have to fit, must fit, have all to fit",
        "weights": "weight*, parameters",
        "share": "tokens per second for each user, tokens per second for each request, tokens per second for every user, tokens per second per user, tokens per second per request, tokens per second of each user, "  # what one user gets
                 "tokens per second of each request, tokens/s for each user, tokens/s for each request, tokens/s per user, tokens/s per request, tokens/s of each user, tokens/s of each request, tokens per second than alone, tokens/s than alone, "
                 "user .. fewer tokens, request .. fewer tokens, rider .. fewer tokens, person .. fewer tokens, each .. fewer tokens, one .. fewer tokens, sequence .. fewer tokens, per-user throughput, per-request throughput, per-user tokens/s, per-user tokens per second, "
                 "each user .. more tokens, each request .. more tokens, each person .. more tokens, every user .. more tokens, every request .. more tokens, every person .. more tokens, single user .. more tokens, single request .. more tokens",
    },
    slots={"trade-off": Slot(learned="lab14 trade-off 6e2205b876160c44", deny={
            "says: copy/copies of the weights, own copy of them, weights occupy/take/need more": "The weights are there once, however many share the batch.",
            "says: one/common cache for all, share/shares/sharing one/a kv/cache, use/uses one common kv/cache, cache is shared by/among/between all": "Each has its own cache; what is shared is the reading of the weights.",
            "says: attend/attends to each other, influence/influences each other": "The sequences of a batch do not see each other.",
        }, trend=Trend(
        "batch", gain={"throughput": "up"}, cost={"time": "up", "memory": "up", "share": "down"}, asked="up",
        says={
            "throughput up":
                "shorter queue/queues/queueing, queue/queues .. shorter, less queueing, "
                "more/many tokens/words/answers/output per/a/in/each/every second, more tokens/words/answers .. per/a/each/every second, more tokens/output .. for/from/out every/each/one/same byte/read/reading/weight, "
                "weights/parameters .. read/loaded/fetched/transferred/streamed once/one, read/load/loading/fetch/reading .. weights/parameters .. once/one, weights/parameters .. once/one for all/everyone/everybody, "
                "one/same read/reading/load/sweep/fetch/pass of/over weights/parameters, weight read/traffic/reads .. shared/amortised/amortized/divided, "
                "weights/parameters .. shared/amortised/amortized/divided/spread, reading of .. weights .. divided/shared/amortised, "
                "share/shares/amortise/amortises/amortize/amortizes/divides/spreads .. weight/weights/parameters/reading, ride along, output multiplies, "
                "used/use/uses/using .. more efficiently/efficient, more efficient/efficiently .. hardware/gpu/machine/device, do/does more .. byte/weight/read, more tokens/output .. out of the/one/same/each, more work/flops/arithmetic/computation for/per/of/from each/every/a/one byte/weight/read, "
                "great/good for .. throughput, serves/serve .. tokens rather/instead, "
                "more total/overall tokens/output/throughput, better use/utilisation/utilization of .. hardware/gpu/machine/device/card/bandwidth, "
                "hardware/gpu/machine/device/card .. used better, hardware/gpu/machine/device/card .. better used, nearly/almost free, "
                "cost/price per/of a/each/one/every token .. falls/drops/decreases/lower/less/shrinks, cost/price per token .. falls/drops/decreases/lower/less/shrinks, cheaper tokens, "
                "token/tokens .. cheaper, cheaper per token, better use .. units/arithmetic/cores/weights, towards/toward compute-bound, better amortisation/amortization, "
                "tokens per second of/for/from the/all/whole .. up/rise/grow/increase, uses/use .. hardware/gpu/machine/device .. better, more flops .. for/per/from each/every/a/the byte, less idle, more tokens per weight/read, higher/better efficiency, machine/server/gpu/device produces/makes/yields/does more, "
                "higher/bigger/greater total/overall rate/output/speed",
            "share down": "fewer/less tokens .. for/of each/every user/request/person/sequence, fewer/less tokens .. per user/request/person/sequence, fewer/less tokens s for/of each/every user/request/person/sequence, "
                          "fewer/less tokens s per user/request, fewer/less tokens .. than alone, fewer/less tokens s than alone, user/request/rider/person/each/one/sequence .. fewer tokens",
            "share up": "each/every/single user/request/person .. more tokens",
            "throughput down": "weights/parameters .. once for/per every/each sequence/request/user, weights/parameters .. read/loaded once for/per every/each/sequence, "
                               "once for every/each sequence/request, once per sequence/request/user, fewer/less tokens/words/output/rows/sequences, less/fewer total tokens, used worse, worse used, more/towards/toward memory-bound, worse use/utilisation/utilization, degrade/degrades/lowers/hurts/harms the/its/total throughput/utilisation/utilization/intensity, degrade/degrades/lowers/hurts throughput/utilisation/utilization",
            "memory up": "cache for each/every/all, kv cache/caches for each/every/all, kv cache/caches per sequence/request/user, adds/add its/their/a cache/kv, cache per sequence/request/user, own cache/caches, sets/set of notes/cache/caches/keys, caches .. store/stored/held/hold/kept/keep/pay/grow/add, "
                         "hold/store/keep/save/need/needs/have .. caches, memory .. cache/caches/sequence, cache memory times, memory .. scales/grows/times/multiplies, multiplies .. memory/cache, "
                         "has/have/must .. fit, pay for .. caches/cache, brings/bring/needs/need/has/have .. own cache/kv/notes/memory, caches .. memory",
            "time up": "speed .. goes/go/falls/drops/decreases down, speed .. falls/drops/decreases, nobody/none/not/never/isn't/doesn't .. faster/sooner/quicker/speeds, no one/user/request .. faster/sooner/quicker, token/tokens .. later/delayed, answer .. later/delayed, everyone .. delayed/waits/wait, everybody .. delayed/waits/wait, "
                       "each/every/single user .. waits/wait/slower, longer/more time/interval/gap/wait/step/pause .. token/tokens, each/every/one call/step takes/gets/is/becomes longer/slower",
        }))},
    must_award={
        "trade-off": [
            "A larger batch raises the throughput, but each step takes longer, so the latency of a token goes up.",
            "With more slots the throughput increases, and the latency of each request increases as well.",
            "A bigger batch gives higher throughput at the price of a higher latency and more memory for the caches.",
            "A smaller batch is faster for each request, but the throughput drops.",
            "The weights are fetched once for more requests, hence more total tokens per second, at the cost of fewer tokens per second per request.",
            "The weights are read once for all, so tokens get cheaper; the memory for the KV caches grows.",
        ]
    },
    must_deny={
        "trade-off": [
            "A larger batch lowers the latency of every request and also raises the throughput.",
            "A larger batch makes each step faster, but it lowers the throughput.",
            "With a larger batch the throughput falls and the latency falls.",
            "A bigger batch is faster for everyone, and the throughput stays the same.",
            "A larger batch makes fewer tokens per second in total, but each request is faster.",
            "Each request gets more tokens per second, but the memory for the caches grows.",
        ]
    },
)
check.slot(lambda: grade(check.explanation("batch-in-words"), RUBRIC, {})["trade-off"], "what a larger batch gains and costs")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# - **A batch shares the weights and nothing else.** The cache is each request's own, and so is its attention. With a long context no batch
#   reaches the ridge, and the rule of thumb for the critical batch is wrong.
# - **A batch does not end together.** In a static one the longest request decides, and everybody else's row is computed for nobody. Nobody can
#   tell beforehand who it will be.
# - **Batching does not make a step faster.** It lets more requests share one. It helps latency where requests would otherwise queue, and only there.
# - **Iteration-level scheduling is an old idea with a simple core:** after every call, let out, let in. Orca (2022) called it by this name;
#   others say continuous or in-flight batching, and serving stacks such as vLLM work this way. Some also say *dynamic* batching; in NVIDIA Triton that is
#   another thing: the server collects whole requests that arrive close together into one batch, which then runs as a static one.
# - **Padding is a way to get a rectangle, not a need of the model.** Packed rows do without, if attention knows where each request begins.
#   (The CPU's attention knows it by a mask only: it computes the scores between different requests, too, and hides them. A packed kernel leaves them out.)
# - **The answers stay the same.** Whoever sees other tokens in a batch has forgotten a mask, or has found a difference of rounding.
#
# Say it out loud, as in an interview: name what is shared and what is not, who decides between two iterations, and the trade-off. These are facts of
# transformers 5.17 to 5.24; the annotated source says so when your version differs.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
