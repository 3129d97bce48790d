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
# # Practice · Inference
#
# Eleven questions about serving a language model, three problems to reason through, and flashcards. The
# numbers come from a service that depends on your name.
#
# **Time** 35 to 45, 30 to 40 and 35 to 45 minutes, in three sittings, or 15 without code · **Points** 32, of
# which 4 are practice · **Reading** [Practice: inference](../../handbook/practice-inference.md) in the
# handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 7

# %%
from inferlab.lab import start

lab = start("practice-inference", LEARNER, MODEL, DEVICE, SEED)

# %% [markdown]
# ## 1 · Your service
#
# Your service is a model, a machine and its users. Sizes are in tokens, bytes and parameters, rates per
# second. The model's sizes are published, and the machine's two rates are those of a data sheet.

# %%
from inferlab.lab.kits.service.scenarios import scenario

service = scenario(lab.variant(16))
for name, value in service.items():
    print(f"{name:13s}", value if isinstance(value, list) else f"{value:,}" if isinstance(value,
                                                                                          int)
          else f"{value:.4g}")

# %% [markdown]
# | name | meaning |
# |---|---|
# | `weights`, `itemsize` | number of parameters; bytes of a parameter and of a number in the KV cache |
# | `layers`, `query_heads`, `kv_heads`, `head_dim` | the attention's sizes |
# | `flops`, `bandwidth` | the most that the machine computes and reads, FLOP/s and bytes/s |
# | `prompt`, `new` | tokens of one request's prompt and answer |
# | `batch`, `context` | requests at once, and positions in each one's cache |
# | `outputs`, `slots` | tokens in the answers of eight requests that wait; places in the batch |
# | `cache_memory`, `longest`, `page`, `typical` | bytes for all caches; the most tokens that a request may have; tokens of a page; tokens that a request really has |
# | `accepted`, `drafted`, `draft_cost` | chance that a drafted token is kept; tokens drafted in a round; time of a draft's pass, in passes of the target |
# | `quantized` | bytes of a weight after quantization |
# | `devices`, `hop_ms`, `sum_ms` | devices that share the model; milliseconds to send a hidden state to the next device; milliseconds of one sum over all devices |
# | `flops_8`, and all names from `block` on | see section 5 |
#
# One rule holds for all questions. A call reads each weight once, and does two FLOPs with it for each token.
# The call takes as long as the longer of computing and reading. FLOPs of attention, launches and writes are
# left out:
#
# $$t = \max\left(\frac{2\,W\,\text{tokens}}{\text{flops}},\ \frac{\text{bytes read}}{\text{bandwidth}}\right)$$
#
# This is a *roofline*, a lower bound. (It counts every parameter, although a call only looks up a few rows of
# the embedding. The real bound is some per cent lower.) Eager decode is often much slower, because it waits
# for kernel launches (Part C).
#
# Do not round. Counts must be exact; times, shares and factors, within 0.2 per cent.
#
# Each answer is a function of a service `s`, a `dict` with these names. The checks try your function on
# `EXAMPLE`, a small service of round numbers, and show some of the right results. Your hand-in is graded on
# your own service.

# %%
from inferlab.lab.kits.service.scenarios import EXAMPLE

EXAMPLE

# %% [markdown]
# ### What such a service does
#
# This notebook's small model answers one question. The trace shows one long call and then many short ones.

# %% tags=["demo"]
import torch

from inferlab.models import load_language_model
from inferlab.models.stories import questions
from inferlab.trace import trace

torch.set_grad_enabled(False)
model, tokenizer = load_language_model(MODEL, lab.device)
document, turn = questions(1, seed=SEED, kind="story")[0]
inputs = tokenizer(document.prompt(turn), return_tensors="pt").to(lab.device)
with trace(model) as run:
    written = model.generate(**inputs, max_new_tokens=12, do_sample=False)
print(turn.request, tokenizer.decode(written[0, inputs.input_ids.shape[1]:],
                                     skip_special_tokens=True).strip())
print("tokens in each call:",
      [b.inputs["input_ids"].shape[1] for b in run.boundaries if b.name == type(model).__name__])

# %% [markdown]
# ![Four bars of bytes read for each token: one request, a batch of 16, with int4 weights, with speculation;
# weights and caches apart.](../../handbook/figures/practice-bytes.svg)
#
# *From the handbook.* The bytes that a decode step reads for each token, as one remedy is added after the
# other (8B sizes, 2,000 positions). The bytes of the draft model are left out.

# %% [markdown]
# ## 2 · Seven questions
#
# **Fifteen minutes, no code.** Go through these questions, the three problems of section 3 and the questions
# of section 5. Answer each one aloud, in a sentence or two, and only then open the fold-out below its check.
# Begin the code with those that you could not answer.

# %% [markdown]
# ### Exercise 1 · Two phases
#
# *difficulty 1 of 3 · 6 minutes · 2 points*
#
# What are the two phases of a generation, and what does each phase wait for on this machine?
#
# `phases(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"prefill_ms"` | milliseconds of the prefill of `prompt` tokens, one request |
# | `"step_ms"` | milliseconds of one decode step of one request (weights only) |
# | `"prompt_share"` | the time of the prefill over the time of the whole request. (The prefill makes the first token, so `new - 1` steps follow) |
#
# <details><summary>Hint 1: a nudge</summary>
# Both calls read the same weights once. Which of the two terms of the rule is larger in each?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Reading takes weights × itemsize over the bandwidth. The prefill takes the larger of that and 2 × weights ×
# prompt over the FLOP/s, a step the larger of that and 2 × weights over the FLOP/s. The share is the prefill
# over the sum of the prefill and <code>new - 1</code> steps.
# </details>

# %% exercise="phases" provides=["phases"] difficulty=1 minutes=6
def phases(s):
    """Two phases: the numbers of this service."""
    ### BEGIN SOLUTION
    read = s["weights"] * s["itemsize"] / s["bandwidth"]
    prefill = max(2 * s["weights"] * s["prompt"] / s["flops"], read)
    step = max(2 * s["weights"] / s["flops"], read)
    total = prefill + (s["new"] - 1) * step
    return {"prefill_ms": 1e3 * prefill, "step_ms": 1e3 * step, "prompt_share": prefill / total}
    ### END SOLUTION

# %% check="phases" points=2
from inferlab.lab import Check
from inferlab.lab.checks.answers import near, numbers
from inferlab.lab.kits.service.scenarios import EXAMPLE

check = Check("phases", points=2)
with check.part("the keys, and what is known of EXAMPLE: prefill_ms and step_ms", weight=0):
    told = numbers(check, "phases", ["prefill_ms", "step_ms", "prompt_share"], EXAMPLE)
    check.close([told["prefill_ms"], told["step_ms"]], [20.0, 2.0], rtol=0.002)
### HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# Prefill runs the whole prompt in one pass and waits for arithmetic. Decode runs one token a pass and waits
# for the weights. A long answer is nearly all decode.
# </details>

# %% [markdown]
# ### Exercise 2 · The KV cache
#
# *difficulty 1 of 3 · 6 minutes · 2 points*
#
# What does the cache hold, and what does it grow with?
#
# `cache(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"bytes_per_token"` | bytes that one position of one request takes, over all layers |
# | `"gigabytes"` | GB (10^9 bytes) of the cache with `batch` requests of `context` positions |
# | `"passes_at"` | the context, in tokens for each request, at which the cache of the whole batch is as large as the weights |
#
# <details><summary>Hint 1: a nudge</summary>
# Grouped-query attention: several query heads share one key and one value.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# A position has 2 × layers × kv_heads × head_dim numbers of <code>itemsize</code> bytes. The gigabytes are
# that times batch and context, over 10<sup>9</sup>. The context is the weights' bytes over (batch × the bytes
# of a position).
# </details>

# %% exercise="cache" provides=["cache"] difficulty=1 minutes=6
def cache(s):
    """The KV cache: the numbers of this service."""
    ### BEGIN SOLUTION
    token = 2 * s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"]
    whole = s["batch"] * s["context"] * token
    return {"bytes_per_token": token, "gigabytes": whole / 1e9,
            "passes_at": s["weights"] * s["itemsize"] / (s["batch"] * token)}
    ### END SOLUTION

# %% check="cache" points=2
from inferlab.lab import Check
from inferlab.lab.checks.answers import near, numbers
from inferlab.lab.kits.service.scenarios import EXAMPLE

check = Check("cache", points=2)
with check.part("the keys, and what is known of EXAMPLE: bytes_per_token and gigabytes", weight=0):
    told = numbers(check, "cache", ["bytes_per_token", "gigabytes", "passes_at"], EXAMPLE)
    check.close([told["bytes_per_token"], told["gigabytes"]], [10_240, 2.048], rtol=0.002)
### HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# The cache holds keys and values of every position so far, in every layer. They are computed once and read at
# every step. The cache grows with positions and requests. At a long context it is larger than the weights.
# </details>

# %% [markdown]
# ### Exercise 3 · Batching
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# Why does batching usually gain the most, and why less than the size of the batch? (These steps all wait for
# bytes.)
#
# `batching(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"alone_ms"` | milliseconds of a decode step of one request with `context` positions, which reads the weights and the request's cache |
# | `"together_ms"` | the same for `batch` such requests in one step |
# | `"gain"` | tokens a second of the whole batch over those of one request alone |
#
# <details><summary>Hint 1: a nudge</summary>
# What is read once a step, and what once a request?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Let w be the weights' bytes and c the bytes of one request's cache. Alone is (w + c) over the bandwidth,
# together (w + batch × c) over the bandwidth. The gain is batch × alone over together.
# </details>

# %% exercise="batching" provides=["batching"] difficulty=2 minutes=6
def batching(s):
    """Batching: the numbers of this service."""
    ### BEGIN SOLUTION
    weights = s["weights"] * s["itemsize"]
    kept = 2 * s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"] * s["context"]
    alone = 1e3 * (weights + kept) / s["bandwidth"]
    together = 1e3 * (weights + s["batch"] * kept) / s["bandwidth"]
    return {"alone_ms": alone, "together_ms": together, "gain": s["batch"] * alone / together}
    ### END SOLUTION

# %% check="batching" points=2
from inferlab.lab import Check
from inferlab.lab.checks.answers import near, numbers
from inferlab.lab.kits.service.scenarios import EXAMPLE

check = Check("batching", points=2)
with check.part("the keys, and what is known of EXAMPLE: alone_ms and together_ms", weight=0):
    told = numbers(check, "batching", ["alone_ms", "together_ms", "gain"], EXAMPLE)
    check.close([told["alone_ms"], told["together_ms"]], [2.2048, 4.048], rtol=0.002)
### HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# The weights are read once a step, however many requests take part, so a batch of N makes N tokens for that
# read. Each request's cache is read for that request only.
# </details>

# %% [markdown]
# ### Exercise 4 · Continuous batching
#
# *difficulty 2 of 3 · 8 minutes · 2 points*
#
# What does a static batch waste? Eight requests wait, and request `r` needs `outputs[r]` iterations, one for
# each token. They are served in order.
#
# `continuous(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"static"` | iterations until all are done, in batches of `slots` requests: a batch starts when the one before it is done |
# | `"continuous"` | iterations until all are done, if a waiting request takes a free slot before the next iteration |
# | `"idle"` | a place is one slot in one iteration. How many places of the static run make no token? |
#
# <details><summary>Hint 1: a nudge</summary>
# Static: a batch is as long as its longest request, and the last batch may be smaller. Continuous: keep the
# time at which each slot becomes free.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Static: cut the list into pieces of <code>slots</code> and add up the largest of each piece. Continuous:
# begin with <code>slots</code> zeros; each request adds its length to the smallest; the answer is the largest
# at the end. Idle: slots × static minus the sum of the lengths.
# </details>

# %% exercise="continuous" provides=["continuous"] difficulty=2 minutes=8
def continuous(s):
    """Continuous batching: the numbers of this service."""
    ### BEGIN SOLUTION
    lengths, slots = s["outputs"], s["slots"]
    static = sum(max(lengths[i : i + slots]) for i in range(0, len(lengths), slots))
    free = [0] * slots
    for length in lengths:
        first = free.index(min(free))
        free[first] += length
    return {"static": static, "continuous": max(free), "idle": slots * static - sum(lengths)}
    ### END SOLUTION

# %% check="continuous" points=2
from inferlab.lab import Check
from inferlab.lab.checks.answers import near, numbers
from inferlab.lab.kits.service.scenarios import EXAMPLE

check = Check("continuous", points=2)
with check.part("the keys, and what is known of EXAMPLE: static and continuous", weight=0):
    told = numbers(check, "continuous", ["static", "continuous", "idle"], EXAMPLE)
    check.close([told["static"], told["continuous"]], [18, 16], rtol=0.002)
### HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# Continuous batching: before every iteration, requests that are done leave, and waiting ones take their
# slots. A static (naive) batch is formed once, and its free slots stay empty until its longest request is
# done.
# </details>

# %% [markdown]
# ### Exercise 5 · Paged attention
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# What does paging solve? (A token's keys and values take the same bytes.)
#
# `paging(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"reserved"` | how many requests fit when each reserves `longest` tokens in `cache_memory` bytes |
# | `"paged"` | how many fit when each has `typical` tokens in pages of `page` tokens, and no page is shared |
# | `"wasted"` | the share of its reservation that a typical request never uses |
#
# <details><summary>Hint 1: a nudge</summary>
# A page belongs to one request. A request's last page is rarely full, but it takes all its bytes.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# With the bytes of a token from exercise 2: reserved is the memory over (<code>longest</code> × that),
# rounded down. Paged is the number of whole pages in the memory, over the pages of a typical request
# (rounded up), rounded down. Wasted is 1 - typical / longest.
# </details>

# %% exercise="paging" provides=["paging"] difficulty=2 minutes=6
def paging(s):
    """Paged attention: the numbers of this service."""
    ### BEGIN SOLUTION
    token = 2 * s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"]
    pages = s["cache_memory"] // (s["page"] * token)
    each = -(-s["typical"] // s["page"])
    return {"reserved": s["cache_memory"] // (s["longest"] * token), "paged": pages // each,
            "wasted": 1 - s["typical"] / s["longest"]}
    ### END SOLUTION

# %% check="paging" points=2
from inferlab.lab import Check
from inferlab.lab.checks.answers import near, numbers
from inferlab.lab.kits.service.scenarios import EXAMPLE

check = Check("paging", points=2)
with check.part("the keys, and what is known of EXAMPLE: reserved and paged", weight=0):
    told = numbers(check, "paging", ["reserved", "paged", "wasted"], EXAMPLE)
    check.close([told["reserved"], told["paged"]], [23, 871], rtol=0.002)
### HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# A reservation for the longest possible answer wastes most of the memory. Pages are taken as a request grows
# and given back when it ends, so more requests fit. The bytes of a token stay the same.
# </details>

# %% [markdown]
# ### Exercise 6 · Speculative decoding
#
# *difficulty 2 of 3 · 7 minutes · 2 points*
#
# What does a round of speculation bring? The draft proposes `drafted` tokens, and the target checks them in
# one pass.
#
# `speculation(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"all_kept"` | chance that all drafted tokens of a round are kept, if each is kept with chance `accepted`, independently of the others |
# | `"tokens"` | expected tokens of a round: the drafted tokens before the first rejection, and one more of the target's |
# | `"speedup"` | tokens in the time of one target pass, if a round takes one target pass and `drafted` passes of the draft |
#
# <details><summary>Hint 1: a nudge</summary>
# A round brings k + 1 tokens if the first k are kept. Add the chances that at least 0, 1, 2, ... are kept.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The chance that the first k are kept is <code>accepted ** k</code>. The tokens are its sum over k from 0
# to <code>drafted</code>, <code>"all_kept"</code> is its last term, and the speedup is the tokens over 1 +
# drafted × draft_cost.
# </details>

# %% exercise="speculation" provides=["speculation"] difficulty=2 minutes=7
def speculation(s):
    """Speculative decoding: the numbers of this service."""
    ### BEGIN SOLUTION
    kept = [s["accepted"] ** k for k in range(s["drafted"] + 1)]
    return {"all_kept": kept[-1], "tokens": sum(kept),
            "speedup": sum(kept) / (1 + s["drafted"] * s["draft_cost"])}
    ### END SOLUTION

# %% check="speculation" points=2
from inferlab.lab import Check
from inferlab.lab.checks.answers import near, numbers
from inferlab.lab.kits.service.scenarios import EXAMPLE

check = Check("speculation", points=2)
with check.part("the keys, and what is known of EXAMPLE: tokens", weight=0):
    told = numbers(check, "speculation", ["all_kept", "tokens", "speedup"], EXAMPLE)
    check.close([told["tokens"]], [1.75], rtol=0.002)
### HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# A small draft proposes tokens, and the target checks all of them in one pass, which takes hardly longer than
# a pass for one token. A token drawn from q is kept with chance min(1, p/q), and a rejected one is replaced
# by a draw from the rest of p, so the text is distributed as the target's own.
# </details>

# %% [markdown]
# ### Exercise 7 · Quantization
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# Why does quantizing the weights help decode more than training or prefill? (The cache is not quantized.)
#
# `quantization(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"step_gain"` | a decode step of one request with `context` positions: its time before, over its time with `quantized` bytes a weight |
# | `"batch_gain"` | the same for `batch` such requests |
# | `"prefill_gain"` | the same for the prefill of `prompt` tokens (weights only); the FLOPs stay the same |
#
# <details><summary>Hint 1: a nudge</summary>
# Write down what is read before and after. Which of the two terms of the rule decides in the prefill, before
# and after?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Let b and a be the weights' bytes before and after, and c the bytes of one request's cache. The gains are
# (b + c) / (a + c) and (b + batch × c) / (a + batch × c). The prefill takes the larger of computing and
# reading: compute it with b and with a, and divide.
# </details>

# %% exercise="quantization" provides=["quantization"] difficulty=2 minutes=6
def quantization(s):
    """Quantization: the numbers of this service."""
    ### BEGIN SOLUTION
    kept = 2 * s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"] * s["context"]
    before, after = s["weights"] * s["itemsize"], s["weights"] * s["quantized"]
    computing = 2 * s["weights"] * s["prompt"] / s["flops"]
    prefill = max(computing, before / s["bandwidth"]) / max(computing, after / s["bandwidth"])
    return {"step_gain": (before + kept) / (after + kept), "prefill_gain": prefill,
            "batch_gain": (before + s["batch"] * kept) / (after + s["batch"] * kept)}
    ### END SOLUTION

# %% check="quantization" points=2
from inferlab.lab import Check
from inferlab.lab.checks.answers import near, numbers
from inferlab.lab.kits.service.scenarios import EXAMPLE

check = Check("quantization", points=2)
with check.part("the keys, and what is known of EXAMPLE: step_gain and batch_gain", weight=0):
    told = numbers(check, "quantization", ["step_gain", "batch_gain", "prefill_gain"], EXAMPLE)
    check.close([told["step_gain"], told["batch_gain"]], [1.83, 1.328], rtol=0.002)
### HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# Decode waits for bytes, so fewer bytes a weight mean less waiting. Training and prefill wait for arithmetic,
# which stays the same. The caches stay the same, too, so a large batch gains less.
# </details>

# %% [markdown]
# **A good place to stop.** Save the notebook here. When you come back, run all cells above this one again (in
# JupyterLab: the menu Run, then Run All Above Selected Cell).

# %% [markdown]
# ## 3 · Three problems
#
# ### Exercise 8 · Part A: take a claim apart
#
# *difficulty 2 of 3 · 8 minutes · 2 points, practice*
#
# "Ten times the throughput of the baseline." Which techniques are behind such a claim, and what does each
# attack? Techniques were switched on one after the other, and a ledger has the tokens per second after each.
# `dissect(ledger)` gets a list of pairs `(name, tokens_per_second)`: first `("baseline", ...)`, then
# `("continuous batching", ...)`, then others from this table, in any order.
#
# | name | | what it may attack | |
# |---|---|---|---|
# | `"continuous batching"` | | `"sharing"` | few requests share a read of the weights |
# | `"paged attention"` | | `"room"` | memory is reserved and never used |
# | `"int4 weights"` | | `"bytes"` | a weight has many bytes |
# | `"speculation"` | | `"passes"` | the large model runs once for every token |
# | `"grouped heads"` | | `"cache"` | a position of the cache has many bytes |
#
# The left and the right half of the table are in different orders. Return a `dict`: `"factors"`, from each
# technique's name to the factor that it brought when it was switched on; `"attacks"`, from each name to one
# of the five words; and `"against_batched"`, the factor of the whole claim for a team whose baseline already
# has continuous batching.
#
# <details><summary>Hint 1: a nudge</summary>
# The factors of techniques that are switched on one after the other multiply to the whole. For the team,
# batching is in the baseline: what do the factors after it multiply to?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Each factor is a line's rate over the rate of the line before it. The whole is the last rate over the first.
# For the team, divide it by the factor of batching, or by 1 if there is none. Sharing belongs to batching,
# room to paging.
# </details>

# %% exercise="dissect" provides=["dissect"] difficulty=2 minutes=8
def dissect(ledger):
    """Each technique's own factor and target, and the claim against a better baseline."""
    ### BEGIN SOLUTION
    attacks = {"continuous batching": "sharing", "paged attention": "room", "int4 weights": "bytes",
               "speculation": "passes",
               "grouped heads": "cache"}
    factors = {name: rate / before for (name, rate), (_, before) in zip(ledger[1:], ledger)}
    whole = ledger[-1][1] / ledger[0][1]
    return {"factors": factors, "attacks": {name: attacks[name] for name in factors},
            "against_batched": whole / factors.get("continuous batching", 1.0)}
    ### END SOLUTION

# %% check="dissect" points=2
from inferlab.lab import Check
from inferlab.lab.checks.answers import near

check = Check("dissect", points=2)


def taken_apart(claim):
    """The learner's dissection, once it has the form of the contract."""
    got = check.plain(check.learner.dissect(claim))
    names = {name for name, _ in claim[1:]}
    check.true(isinstance(got, dict) and set(got) == {"factors", "attacks", "against_batched"},
               "return a dict with the three keys")
    check.true(all(isinstance(got[key], dict) and set(got[key]) == names for key in ("factors", "attacks")),
               "factors and attacks have one entry for each technique of the ledger, "
               "and none for the baseline")
    plain = [*got["factors"].values(), got["against_batched"]]
    check.true(all(isinstance(value, int | float) and not isinstance(value, bool) for value in plain),
               "factors are numbers")
    return got


with check.part("one technique: the whole claim is its own", weight=1):
    told = taken_apart([("baseline", 50), ("continuous batching", 100)])
    check.close(float(told["factors"]["continuous batching"]), 2.0)
### HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# Continuous batching shares each reading of the weights among many requests, and usually brings the largest
# factor. Paged attention makes room for more requests. Quantization reads fewer bytes a step. Speculation
# makes several tokens in one pass of the large model. Grouped heads shrink the cache. A factor of ten comes
# from several of them.
# </details>
#
# Ask three questions of such a claim: which techniques, how much from each, and *against what*?

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("dissect"):
    told = dissect([("baseline", 31), ("continuous batching", 170), ("paged attention", 221),
                    ("int4 weights", 287), ("speculation", 316)])
    for technique, factor in told["factors"].items():
        print(f"{technique:20s} x {factor:4.2f}   attacks {told['attacks'][technique]}")
    print(f"for a team that batches already: x {told['against_batched']:.2f}")

# %% [markdown]
# ### Exercise 9 · Part B: one user, several devices
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# Why is pipeline parallelism less common at inference than in training, while tensor parallelism is
# comfortable in both?
#
# Your model is split over `devices` equal devices, for one user; count the weights only. **Tensor parallel**:
# all devices read their shares of a layer's weights at the same time, and each layer needs two sums over all
# devices, `sum_ms` each. **Pipeline**: each device holds a share of the layers. The devices work one after
# the other, and the hidden state is sent on `devices - 1` times, `hop_ms` each.
#
# `split(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"tensor_ms"`, `"pipeline_ms"` | milliseconds of one decode step of this user |
# | `"idle"` | the share of its time in which a device of the pipeline is idle, with one user (without the hops) |
# | `"training_idle"` | the same in training, from the start of the first microbatch until the last has left. 32 microbatches go into the pipeline one after the other, and none waits for another's result |
#
# <details><summary>Hint 1: a nudge</summary>
# What is done at the same time in one split, and one after the other in the other split? A tick is the time
# of one stage. How many ticks do 32 microbatches need for all stages, and in how many of them does a device
# work?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# A step alone takes the weights' bytes over the bandwidth. Tensor parallel: that time over the devices, plus
# 2 × layers sums. Pipeline: the whole time, plus <code>devices - 1</code> hops. Of n devices, one works at a
# time. In training there are 32 + n - 1 ticks, and a device works in 32 of them.
# </details>

# %% exercise="split" provides=["split"] difficulty=2 minutes=6
def split(s):
    """One user's step on several devices, split in two ways."""
    ### BEGIN SOLUTION
    step = 1e3 * s["weights"] * s["itemsize"] / s["bandwidth"]
    return {"tensor_ms": step / s["devices"] + 2 * s["layers"] * s["sum_ms"],
            "pipeline_ms": step + (s["devices"] - 1) * s["hop_ms"],
            "idle": 1 - 1 / s["devices"],
            "training_idle": (s["devices"] - 1) / (32 + s["devices"] - 1)}
    ### END SOLUTION

# %% check="split" points=2
from inferlab.lab import Check
from inferlab.lab.checks.answers import near, numbers
from inferlab.lab.kits.service.scenarios import EXAMPLE

check = Check("split", points=2)
with check.part("the keys, and what is known of EXAMPLE: tensor_ms and pipeline_ms", weight=0):
    told = numbers(check, "split", ["tensor_ms", "pipeline_ms", "idle", "training_idle"], EXAMPLE)
    check.close([told["tensor_ms"], told["pipeline_ms"]], [0.7, 2.3], rtol=0.002)
### HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# In a pipeline a token still passes all layers, one stage after the other, so a user waits for all of them,
# and with one user most stages are idle. In training, microbatches do not wait for one another and fill the
# pipeline. A conversation cannot do that, because its next token depends on this one. Tensor parallelism
# splits every layer, so all devices work on the same token or microbatch: that shortens a user's wait and a
# training step, at the price of sums between devices.
# </details>
#
# Your results for your own service:

# %% tags=["demo"]
for question in ("phases", "cache", "batching", "continuous", "paging", "speculation", "quantization",
                 "split"):
    with when_written(question):
        print(f"{question:13s}", {name: round(value, 4) for name,
                                  value in globals()[question](service).items()})

# %% [markdown]
# ### Exercise 10 · Part C: where to look first
#
# *difficulty 2 of 3 · 8 minutes · 2 points, practice*
#
# A team reports that its decode runs at very low GPU utilization. Where do you look first, and in which order
# after that? `plan(report)` gets a `dict`:
#
# | key | value |
# |---|---|
# | `"launch_ms"`, `"bytes_ms"`, `"flops_ms"` | the least time of one step for launching its kernels, for reading, and for computing |
# | `"utilization"` | the share of the device's FLOP/s that decode reaches, 0 to 1 |
# | `"busy"` | what the monitor shows, 0 to 1: the share of time in which *some* kernel runs; often 1.0 where the utilization is very low |
# | `"waiting"`, `"free"` | number of requests that wait; the share of the cache's memory that is free |
# | `"itemsize"` | bytes of a weight |
# | `"drafts"` | `list` of models that the team has: each a `dict` with `parameters` (as a share of the target's) and `same_tokenizer` (`bool`) |
#
# Return a `dict` with `"waits_for"`, one of `"launches"`, `"bytes"`, `"arithmetic"`: the longest of the
# three; and `"do"`, the list of what to do, in order:
#
# * if the step waits for launches, `["graphs"]` (record the step, and measure again);
# * if it waits for arithmetic, `[]`: none of the four helps;
# * if it waits for bytes, those of the four that apply, **in this order**: `"batch"` if requests wait and
#   more than a tenth of the cache's memory is free; `"cache"` (page it) if requests wait and at most a tenth
#   is free; `"precision"` if a weight has two bytes or more; `"speculation"` if the list `drafts` has a model
#   with the target's tokenizer and at most a fifth of its parameters.
#
# <details><summary>Hint 1: a nudge</summary>
# Two keys of the report do not help to find the bottleneck. Which ones?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The longest of the three times names what the step waits for. For launches and arithmetic return at once.
# For bytes test four conditions in order: waiting, and free above 0.1; waiting, and free at most 0.1;
# itemsize at least 2; any draft with the same tokenizer and at most 0.2 of the parameters.
# </details>

# %% exercise="plan" provides=["plan"] difficulty=2 minutes=8
def plan(report):
    """What a step waits for, and what to do about it, in order."""
    ### BEGIN SOLUTION
    times = {"launches": report["launch_ms"], "bytes": report["bytes_ms"], "arithmetic": report["flops_ms"]}
    waits_for = max(times, key=times.get)
    if waits_for != "bytes":
        return {"waits_for": waits_for, "do": ["graphs"] if waits_for == "launches" else []}
    waiting, room = report["waiting"] > 0, report["free"] > 0.1
    draft = any(one["same_tokenizer"] and one["parameters"] <= 0.2 for one in report["drafts"])
    applies = {"batch": waiting and room, "cache": waiting and not room, "precision": report["itemsize"] >= 2,
               "speculation": draft}
    return {"waits_for": "bytes", "do": [what for what, yes in applies.items() if yes]}
    ### END SOLUTION

# %% check="plan" points=2
from inferlab.lab import Check

check = Check("plan", points=2)


VARIANT, FINE_TUNE = {"parameters": 0.06, "same_tokenizer": True}, {"parameters": 1.0, "same_tokenizer": True}
STRANGER = {"parameters": 0.1, "same_tokenizer": False}


def planned(launch, read, flops, waiting, room, size, drafts, shown=1.0):
    """The learner's plan for a report, once it has the form of the contract."""
    got = check.learner.plan({"launch_ms": launch, "bytes_ms": read, "flops_ms": flops,
                              "utilization": flops / max(launch, read, flops), "busy": shown,
                              "waiting": waiting,
                              "free": room, "itemsize": size, "drafts": list(drafts)})
    check.true(isinstance(got, dict) and set(got) == {"waits_for", "do"} and isinstance(got["do"], list),
               'return {"waits_for": ..., "do": [...]}')
    return got


with check.part("bytes, with requests that wait, room, and a draft", weight=1):
    check.equal(planned(2.0, 5.0, 0.1, 9, 0.6, 2, [VARIANT]),
                {"waits_for": "bytes", "do": ["batch", "precision", "speculation"]})
### HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# First ask what a step waits for: launches, bytes or arithmetic. If it waits for bytes, look at the batch
# first: many requests at once are nearly always the largest gain. If the memory for caches keeps the batch
# small, page the cache. Then take fewer bits a weight, and then speculation, if there is a draft model.
# </details>

# %% [markdown]
# ## 4 · Explain
#
# A colleague plans a service for users who wait for each word: "We let a small model write most of the
# text, which costs some quality, and take a pipeline over four devices, so that a token comes four times
# sooner." Correct this. In the fields `speculation` and `trade-off` you write short sentences, one a line,
# from the tables below: an entry of `who`, a verb, then an entry from that verb's row and, if you like,
# entries of a row `may follow`. An example: `the target keeps the accepted proposals in each round`. In
# `gain` and `cost` you name one quantity and its direction, such as `quality down`: what tensor parallelism
# improves for one user, and what it makes worse. In `stages` you type how many of the pipeline's four devices
# work at the same moment, for one user. Lines that begin with `#` are notes of your own.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 2 of 3 · 8 minutes · 4 points: 2 for the typed lines, 2 for the sentences.* When you run the
# cell, it shows how it reads each line. That reading is graded when you hand in. One false sentence in a
# field costs the field's point, so write only what you know. A line that the cell cannot read is judged by a
# person.

# %% explain="two-plans" difficulty=2 minutes=8
# %%explain two-plans
# ### BEGIN SOLUTION
# speculation: the draft proposes several tokens
#   the target checks all proposals in one pass
#   the target keeps the accepted proposals and replaces the first rejected proposal
# trade-off: tensor parallelism lowers the latency of a token
#   tensor parallelism needs two sums in each layer
# stages: 1
# gain: latency down
# cost: communication up
# ### END SOLUTION

# %% check="two-plans-stages" of="two-plans" points=1
from inferlab.lab import Check

check = Check("two-plans-stages", points=1)
with check.part("`stages:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-plans").get("stages"), "`stages:` is empty")
### HIDDEN TESTS
check.score()

# %% check="two-plans-gain-cost" of="two-plans" points=1
from inferlab.lab import Check

check = Check("two-plans-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-plans").get("gain"), "`gain:` is empty")
    check.true(check.explanation("two-plans").get("cost"), "`cost:` is empty")
### HIDDEN TESTS
check.score()

# %% check="two-plans-speculation" of="two-plans" points=1
from inferlab.lab import Check

check = Check("two-plans-speculation", points=1)
with check.part("`speculation:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-plans").get("speculation"), "`speculation:` is empty")
### HIDDEN TESTS
check.score()

# %% check="two-plans-trade-off" of="two-plans" points=1
from inferlab.lab import Check

check = Check("two-plans-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-plans").get("trade-off"), "`trade-off:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# **Another good place to stop.** When you come back, run all cells above again.

# %% [markdown]
# ## 5 · Four questions on labs 22 to 25
#
# | name | meaning |
# |---|---|
# | `block` | size of the one-pass kernel's blocks, the same for queries and keys |
# | `call_ms`, `token_ms`, `every_ms` | milliseconds of a call, and of each token in it; one request arrives every `every_ms` |
# | `flops_8` | FLOP/s if both sides of a product have 8 bits |
# | `reach`, `span` | lists with an entry for each of four input channels: its largest absolute activation in a token; the largest absolute weight that multiplies it |
# | `experts`, `chosen`, `expert_part` | experts in a layer; how many a token chooses; the share of all weights that are experts' |
# | `latent`, `rotary` | numbers of a cached latent, and of its rotary key |
#
# ### Exercise 11 · Attention in one pass
#
# *difficulty 2 of 3 · 8 minutes · 2 points · after lab 22*
#
# What does a one-pass kernel save in the prefill of `prompt` tokens, and what does it still compute? (One
# request, one layer, a causal mask. The naive kernel computes the whole table and masks it.)
#
# `attention(s)` returns a `dict` of numbers; MB are 10^6 bytes, and a number has `itemsize` bytes:
#
# | key | value |
# |---|---|
# | `"table_mb"` | MB that the naive kernel moves for its two tables alone. Each query head has a table of scores and one of weights; each table is written once and read once |
# | `"one_pass_mb"` | MB that one pass moves: queries and output once. Each block of queries reads the keys and values from 0 to the block's own last position, once per key/value head. (The last block may be shorter) |
# | `"scored"` | scores that one pass computes, over those of the naive kernel |
#
# <details><summary>Hint 1: a nudge</summary>
# A block of queries that begins at <code>first</code> reaches the keys up to its own end. Each of its queries
# meets all of them, also where the mask hides some.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# For each <code>first</code> in <code>range(0, prompt, block)</code> the end is <code>min(first + block,
# prompt)</code>. Read rows: the sum of the ends. Scores: the sum of (end - first) × end, over prompt². One
# pass moves 2 × query_heads × prompt × head_dim numbers, and 2 × kv_heads × read rows × head_dim.
# </details>

# %% exercise="attention" provides=["attention"] difficulty=2 minutes=8
def attention(s):
    """Attention in one pass: the numbers of this service."""
    ### BEGIN SOLUTION
    prompt, width = s["prompt"], s["head_dim"] * s["itemsize"]
    blocks = [(first, min(first + s["block"], prompt)) for first in range(0, prompt, s["block"])]
    read = sum(end for _, end in blocks)
    scored = sum((end - first) * end for first, end in blocks)
    ends = 2 * s["query_heads"] * prompt * width
    return {"table_mb": 4 * s["query_heads"] * prompt**2 * s["itemsize"] / 1e6,
            "one_pass_mb": (ends + 2 * s["kv_heads"] * read * width) / 1e6, "scored": scored / prompt**2}
    ### END SOLUTION

# %% check="attention" points=2
from inferlab.lab import Check
from inferlab.lab.checks.answers import near, numbers
from inferlab.lab.kits.service.scenarios import EXAMPLE

check = Check("attention", points=2)
with check.part("the keys, and what is known of EXAMPLE: table_mb and scored", weight=0):
    told = numbers(check, "attention", ["table_mb", "one_pass_mb", "scored"], EXAMPLE)
    check.close([told["table_mb"], told["scored"]], [128.0, 0.625], rtol=0.002)
### HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# One pass keeps a running maximum, sum and output for each query, so it never writes the table of scores. It
# gives the same result but for rounding, and without a mask it multiplies as much. With a causal mask it
# skips whole blocks of keys, which the naive kernel does not.
# </details>

# %% [markdown]
# ### Exercise 12 · Under load
#
# *difficulty 2 of 3 · 7 minutes · 2 points · after lab 23*
#
# How many requests can come, and how long does each take? Here a call takes `call_ms`, and `token_ms` more
# for each token in it. A request takes part in `new` calls: the first one computes its prompt, and each later
# one a token. (The last token is never fed back.)
#
# `load(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"alone_ms"` | milliseconds from a request's first call to its last token, with nobody else there |
# | `"most_per_second"` | the most requests in a second, on average, if every call has `batch` requests |
# | `"latency_ms"` | the time from first call to last token if one request arrives every `every_ms`. (Calls follow each other without a pause, and the queue does not grow) |
#
# <details><summary>Hint 1: a nudge</summary>
# In the steady state one request comes and one goes in <code>every_ms</code>. Its tokens take their time, and
# the rest is for calls. How many calls is that? Then Little's law.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The work is token_ms × (prompt + new - 1), and alone is that plus call_ms × new. In full calls a request
# costs the work plus call_ms × new / batch. Between two arrivals c = (every_ms - work) / call_ms calls fit,
# so a call lasts every_ms / c on average, and a request stays for <code>new</code> calls.
# </details>

# %% exercise="load" provides=["load"] difficulty=2 minutes=7
def load(s):
    """Under load: the numbers of this service."""
    ### BEGIN SOLUTION
    work, calls = s["token_ms"] * (s["prompt"] + s["new"] - 1), s["call_ms"] * s["new"]
    present = calls / (s["every_ms"] - work)
    return {"alone_ms": work + calls, "most_per_second": 1e3 / (work + calls / s["batch"]),
            "latency_ms": present * s["every_ms"]}
    ### END SOLUTION

# %% check="load" points=2
from inferlab.lab import Check
from inferlab.lab.checks.answers import near, numbers
from inferlab.lab.kits.service.scenarios import EXAMPLE

check = Check("load", points=2)
with check.part("the keys, and what is known of EXAMPLE: alone_ms and most_per_second", weight=0):
    told = numbers(check, "load", ["alone_ms", "most_per_second", "latency_ms"], EXAMPLE)
    check.close([told["alone_ms"], told["most_per_second"]], [1120.0, 4.7393], rtol=0.002)
### HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# Requests that share a call share its fixed time, so a service takes far more of them than one after the
# other, and each stays longer. Near the capacity the queue grows, long after some call runs all the time.
# Means hide the slowest few, so a promise is checked request by request.
# </details>

# %% [markdown]
# ### Exercise 13 · Low precision
#
# *difficulty 2 of 3 · 7 minutes · 2 points · after lab 24*
#
# Why are activations hard to quantize, and what do 8 bits on both sides bring? A token has one scale for its
# int8 codes: its largest absolute activation over 127. Smoothing divides the activations of channel `i` by
# `(reach[i] / span[i]) ** 0.5`, and multiplies the weights that read it by the same factor. (Without
# rounding.)
#
# `precision(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"scale_before"`, `"scale_after"` | the scale of a token with the activations `reach`, before and after smoothing |
# | `"prefill_gain"` | the prefill of `prompt` tokens by the rule of section 1: its time with `itemsize` bytes a weight at the rate `flops`, over its time with one byte a weight at the rate `flops_8` |
#
# <details><summary>Hint 1: a nudge</summary>
# What is left of each channel's reach after the division? Which of the two terms of the rule decides in the
# prefill, before and after?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Before: <code>max(reach) / 127</code>. After: the largest of <code>r / (r / w) ** 0.5</code> over the
# channels, over 127. A prefill takes the larger of 2 × weights × prompt over the rate and the weights' bytes
# over the bandwidth.
# </details>

# %% exercise="precision" provides=["precision"] difficulty=2 minutes=7
def precision(s):
    """Low precision: the numbers of this service."""
    ### BEGIN SOLUTION
    smoothed = [r / (r / w) ** 0.5 for r, w in zip(s["reach"], s["span"])]
    flops = 2 * s["weights"] * s["prompt"]
    before = max(flops / s["flops"], s["weights"] * s["itemsize"] / s["bandwidth"])
    after = max(flops / s["flops_8"], s["weights"] / s["bandwidth"])
    return {"scale_before": max(s["reach"]) / 127, "scale_after": max(smoothed) / 127,
            "prefill_gain": before / after}
    ### END SOLUTION

# %% check="precision" points=2
from inferlab.lab import Check
from inferlab.lab.checks.answers import near, numbers
from inferlab.lab.kits.service.scenarios import EXAMPLE

check = Check("precision", points=2)
with check.part("the keys, and what is known of EXAMPLE: scale_before and scale_after", weight=0):
    told = numbers(check, "precision", ["scale_before", "scale_after", "prefill_gain"], EXAMPLE)
    check.close([told["scale_before"], told["scale_after"]], [0.50394, 0.031496], rtol=0.002)
### HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# A few channels of the activations are far larger than the rest. No scale may follow an input channel,
# because the sum runs over it, so one large channel makes the step coarse for all. Smoothing moves a part of
# it into the weights. Codes on both sides are multiplied by the 8-bit unit, so the prefill gains, too.
# </details>

# %% [markdown]
# ### Exercise 14 · Newer models
#
# *difficulty 2 of 3 · 6 minutes · 2 points · after lab 25*
#
# What would change if your model had experts and a latent cache? Each token chooses `chosen` different
# experts in each layer, all choices are equally likely, and tokens choose independently. All experts have the
# same size.
#
# `experts(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"one_share"`, `"batch_share"` | the share of all weights that a decode step reads, for one request, and on average for `batch` requests |
# | `"latent_gain"` | how many times as many positions fit into the same memory, if each layer keeps a latent and a rotary key for a position, instead of keys and values |
#
# <details><summary>Hint 1: a nudge</summary>
# With which probability does nobody in the batch choose a given expert? Which weights does every step read?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The share is <code>1 - expert_part</code>, and <code>expert_part</code> times the share of experts that are
# used: <code>1 - (1 - chosen / experts) ** n</code> with n tokens. The gain is 2 × kv_heads × head_dim over
# latent + rotary.
# </details>

# %% exercise="experts" provides=["experts"] difficulty=2 minutes=6
def experts(s):
    """Newer models: the numbers of this service."""
    ### BEGIN SOLUTION
    one, many = (1 - s["expert_part"] * (1 - s["chosen"] / s["experts"]) ** n for n in (1, s["batch"]))
    return {"one_share": one, "batch_share": many,
            "latent_gain": 2 * s["kv_heads"] * s["head_dim"] / (s["latent"] + s["rotary"])}
    ### END SOLUTION

# %% check="experts" points=2
from inferlab.lab import Check
from inferlab.lab.checks.answers import near, numbers
from inferlab.lab.kits.service.scenarios import EXAMPLE

check = Check("experts", points=2)
with check.part("the keys, and what is known of EXAMPLE: one_share and latent_gain", weight=0):
    told = numbers(check, "experts", ["one_share", "batch_share", "latent_gain"], EXAMPLE)
    check.close([told["one_share"], told["latent_gain"]], [0.4, 4.0], rtol=0.002)
### HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# A sparse model reads few experts for one token, and a large part of them for a batch, because tokens choose
# different ones. A latent cache keeps one latent and one rotary key for a position, for all heads together.
# Keys and values are made from them, or their matrices are absorbed into the query and the output.
# </details>
#
# Your results for your own service:

# %% tags=["demo"]
for question in ("attention", "load", "precision", "experts"):
    with when_written(question):
        told = globals()[question](service)
        print(f"{question:10s}", {name: round(value, 4) for name, value in told.items()})

# %% [markdown]
# ## 6 · The cards
#
# To turn a card, click it, or press Enter when it has the focus. Tab goes from the card to its buttons, Space
# presses one. A card that you know comes back after 1, 3, 7, 14 and 30 days; any other card comes again in
# this round. The file `inference.cards.json` beside this notebook keeps the dates. To print the cards, run
# `inferlab cards inference --to cards.html` in a terminal and open that file.

# %% tags=["demo"]
from inferlab.lab.cards import show_cards

show_cards("inference")

# %% [markdown]
# ## 7 · Notice
#
# - **Decode is not a small prefill.** Both read the same weights; but in decode one token pays for it.
# - **A batch shares the weights only.** With a long context a step reads mostly caches, and the gain stays
#   far below the size of the batch.
# - **Neither paging nor weight quantization shrinks a cached token.** Fewer key/value heads and a quantized
#   cache do.
# - **"100% utilized" is no bottleneck.** It says that some kernel is running. First ask about launches, bytes
#   and arithmetic, then choose the remedy.
# - **A factor without its baseline says nothing.** The same techniques bring one team a factor of ten and
#   another a factor of two.
#
# Say it aloud, as in an interview: name the regime, the resource that is shared, and the trade-off.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
