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
# Seven questions about serving a language model, three problems to reason through, and nine flashcards to keep. The numbers are
# yours alone: they come from a service that is made for your name. You compute what you would otherwise only say.
#
# **Time** about 75 minutes · **Points** 24, of which 4 are practice · **Reading** [Practice: inference](../../handbook/practice-inference.md) in the handbook, before you start

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
# A model, a machine and its users. Sizes are in tokens, bytes and parameters, rates per second. The model's sizes are published ones, and the
# machine's two rates are those of a data sheet.

# %%
from inferlab.lab.scenarios import scenario

service = scenario(lab.variant(16))
for name, value in service.items():
    print(f"{name:13s}", value if isinstance(value, list) else f"{value:,}" if isinstance(value, int) else f"{value:.4g}")

# %% [markdown]
# | name | meaning |
# |---|---|
# | `weights`, `itemsize` | parameters, and bytes of each; a number in the KV cache has as many |
# | `layers`, `query_heads`, `kv_heads`, `head_dim` | the attention's sizes |
# | `flops`, `bandwidth` | what the machine computes and reads at most, FLOP/s and bytes/s |
# | `prompt`, `new` | tokens of one request's prompt and answer |
# | `batch`, `context` | requests at once, and positions in each one's cache |
# | `outputs`, `slots` | answers' lengths of eight requests that all wait, and places in the batch |
# | `cache_memory`, `longest`, `page`, `typical` | bytes left for the cache; the most tokens that a request may have; tokens of a page; tokens that a request really has |
# | `accepted`, `drafted`, `draft_cost` | chance that a drafted token is kept; tokens drafted before each check; a draft's pass, in passes of the target |
# | `quantized` | bytes of a weight after quantization |
# | `devices`, `hop_ms`, `sum_ms` | devices to split the model over; milliseconds to hand a hidden state on, and for one sum over all of them |
#
# One rule holds for all questions. A weight is read once a call and costs two FLOPs for each token in it, a call takes
# the longer of computing and reading, and attention's FLOPs, launches and what is written are left out:
#
# $$t = \max\left(\frac{2\,W\,\text{tokens}}{\text{flops}},\ \frac{\text{bytes read}}{\text{bandwidth}}\right)$$
#
# That is a *roofline*, and close to a lower bound. (It counts every parameter. The embedding is only looked up, and the prompt needs the head for one position only, so
# the real bound is some per cent lower.) Eager decode of a model of this size is often much slower, because it waits for kernel
# launches (Part C).
#
# Do not round: counts have to be exact, times, shares and factors within 0.2 per cent. Some wrong answers are that close.
#
# Each answer is a function of a service `s`, a `dict` with these names. The checks below try it on `EXAMPLE`, a small service of round numbers
# of which some results are known; when you hand it in, it is tried on yours.

# %%
from inferlab.lab.scenarios import EXAMPLE

EXAMPLE

# %% [markdown]
# ### What such a service really does
#
# The same events on the small model that you have here: one long call, then many short ones.

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
print(turn.request, tokenizer.decode(written[0, inputs.input_ids.shape[1]:], skip_special_tokens=True).strip())
print("tokens in each call:", [b.inputs["input_ids"].shape[1] for b in run.boundaries if b.name == type(model).__name__])

# %% [markdown]
# ## 2 · Seven questions

# %% [markdown]
# ### Exercise 1 · Two phases
#
# *difficulty 1 of 3 · 6 minutes · 2 points*
#
# What are the two phases of a generation, and what does each of them wait for on this machine?
#
# `phases(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"prefill_ms"` | milliseconds of the prefill of `prompt` tokens, one request |
# | `"step_ms"` | milliseconds of one decode step of one request (weights only) |
# | `"prompt_share"` | which share of the whole request's time is prefill; it makes the first token, so `new - 1` steps follow |
#
# <details><summary>Hint</summary>
# Both calls read the same weights once. Which of the two terms of the rule is larger in each?
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
from inferlab.lab.answers import near, numbers
from inferlab.lab.scenarios import EXAMPLE

check = Check("phases", points=2)
with check.part("the keys, and what is known of EXAMPLE: prefill_ms and step_ms", weight=0):
    told = numbers(check, "phases", ["prefill_ms", "step_ms", "prompt_share"], EXAMPLE)
    check.close([told["prefill_ms"], told["step_ms"]], [20.0, 2.0], rtol=0.002)
### BEGIN HIDDEN TESTS
from inferlab.lab.scenarios import scenario

facts = scenario(check.variant(16))
computing = 2e3 * facts["weights"] / facts["flops"]  # ms for one token
reading = 1e3 * facts["weights"] * facts["itemsize"] / facts["bandwidth"]
long = computing * facts["prompt"]
with check.part("the prefill", weight=1):
    told = numbers(check, "phases", ["prefill_ms", "step_ms", "prompt_share"], facts)["prefill_ms"]
    check.mistake("the prompt's tokens share one read of the weights, but each of them is computed: this call waits for arithmetic",
                  when=near(told, reading))
    check.mistake("the weights are read once for the whole prompt, not once a token", when=near(told, reading * facts["prompt"]))
    check.mistake("a multiplication and an addition are two FLOPs", when=near(told, long / 2))
    check.true(near(told, long), "this is not what the rule of section 1 gives for the prefill")
with check.part("a decode step", weight=1):
    told = numbers(check, "phases", ["prefill_ms", "step_ms", "prompt_share"], facts)["step_ms"]
    check.mistake("decode is no small prefill: one token cannot pay for the weights that it reads, so the step waits for bytes",
                  when=near(told, computing) or near(told, computing / 2))
    check.true(near(told, reading), "this is not what the rule of section 1 gives for one token")
with check.part("the prefill's share", weight=2):
    told = numbers(check, "phases", ["prefill_ms", "step_ms", "prompt_share"], facts)["prompt_share"]
    check.mistake("that is the prompt's share of the tokens: a token of the answer takes far longer than one of the prompt",
                  when=near(told, facts["prompt"] / (facts["prompt"] + facts["new"])))
    check.mistake("that is the share of the decode: the prompt's is asked for", when=near(told, 1 - long / (long + (facts["new"] - 1) * reading)))
    check.true(near(told, long / (long + (facts["new"] - 1) * reading)), "compare the prefill's time with that of the whole request")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# Prefill runs the whole prompt in one pass and waits for arithmetic. Decode runs one token a pass and waits for the weights to arrive. A long answer is nearly all decode.
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
# | `"passes_at"` | from which context on, in tokens for each request, that batch's cache is larger than the weights |
#
# <details><summary>Hint</summary>
# Grouped-query attention: several query heads share one key and one value.
# </details>

# %% exercise="cache" provides=["cache"] difficulty=1 minutes=6
def cache(s):
    """The KV cache: the numbers of this service."""
    ### BEGIN SOLUTION
    token = 2 * s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"]
    whole = s["batch"] * s["context"] * token
    return {"bytes_per_token": token, "gigabytes": whole / 1e9, "passes_at": s["weights"] * s["itemsize"] / (s["batch"] * token)}
    ### END SOLUTION

# %% check="cache" points=2
from inferlab.lab import Check
from inferlab.lab.answers import near, numbers
from inferlab.lab.scenarios import EXAMPLE

check = Check("cache", points=2)
with check.part("the keys, and what is known of EXAMPLE: bytes_per_token and gigabytes", weight=0):
    told = numbers(check, "cache", ["bytes_per_token", "gigabytes", "passes_at"], EXAMPLE)
    check.close([told["bytes_per_token"], told["gigabytes"]], [10_240, 2.048], rtol=0.002)
### BEGIN HIDDEN TESTS
from inferlab.lab.scenarios import scenario

facts = scenario(check.variant(16))
token = 2 * facts["layers"] * facts["kv_heads"] * facts["head_dim"] * facts["itemsize"]
KEYS = ["bytes_per_token", "gigabytes", "passes_at"]
with check.part("bytes for a token", weight=2):
    told = numbers(check, "cache", KEYS, facts)["bytes_per_token"]
    check.mistake("queries are not kept: only the key and value heads count", when=near(told, token * facts["query_heads"] / facts["kv_heads"]))
    check.mistake("keys *and* values are kept", when=near(told, token / 2))
    check.mistake("every layer keeps its own", when=near(told, token / facts["layers"]))
    check.true(near(told, token), "count keys and values, layers, kv heads, the head's size, and bytes")
with check.part("the batch's cache", weight=1):
    told = numbers(check, "cache", KEYS, facts)["gigabytes"]
    check.mistake("each request has a cache of its own", when=near(told, facts["context"] * token / 1e9))
    check.true(near(told, facts["batch"] * facts["context"] * token / 1e9), "multiply by positions and requests; GB are 10^9 bytes")
with check.part("where it passes the weights", weight=1):
    told = numbers(check, "cache", KEYS, facts)["passes_at"]
    one = facts["weights"] * facts["itemsize"] / token
    check.mistake("that is the context of a single request; here the whole batch fills the cache", when=near(told, one))
    check.true(near(told, one / facts["batch"]), "set the cache of the whole batch equal to the bytes of the weights")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# Keys and values of every position so far, in every layer, computed once and read at every step.
# It grows with positions, layers, kv heads, head size, and with requests. At a long context it passes the weights.
# </details>

# %% [markdown]
# ### Exercise 3 · Batching
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# Why is batching the largest single win, and why is it not as large as the batch? (These steps all wait for bytes.)
#
# `batching(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"alone_ms"` | milliseconds of a decode step of one request with `context` positions: weights and its cache are read |
# | `"together_ms"` | the same for `batch` such requests in one step |
# | `"gain"` | how many times more tokens a second the batch makes, all requests together |
#
# <details><summary>Hint</summary>
# What is read once a step, and what once a request?
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
from inferlab.lab.answers import near, numbers
from inferlab.lab.scenarios import EXAMPLE

check = Check("batching", points=2)
with check.part("the keys, and what is known of EXAMPLE: alone_ms and together_ms", weight=0):
    told = numbers(check, "batching", ["alone_ms", "together_ms", "gain"], EXAMPLE)
    check.close([told["alone_ms"], told["together_ms"]], [2.2048, 4.048], rtol=0.002)
### BEGIN HIDDEN TESTS
from inferlab.lab.scenarios import scenario

facts = scenario(check.variant(16))
read = facts["weights"] * facts["itemsize"]
kept = 2 * facts["layers"] * facts["kv_heads"] * facts["head_dim"] * facts["itemsize"] * facts["context"]
one, many = (1e3 * (read + n * kept) / facts["bandwidth"] for n in (1, facts["batch"]))
KEYS = ["alone_ms", "together_ms", "gain"]
with check.part("one request", weight=1):
    told = numbers(check, "batching", KEYS, facts)["alone_ms"]
    check.mistake("its cache is read as well", when=near(told, 1e3 * read / facts["bandwidth"], 1e-4))
    check.true(near(told, one, 0.002), "read the weights and one cache; do not round")
with check.part("the batch", weight=1):
    told = numbers(check, "batching", KEYS, facts)["together_ms"]
    check.mistake("the weights are read once a step, not once a request: that is what batching is for", when=near(told, facts["batch"] * one))
    check.mistake("the caches are not shared: each request reads its own", when=near(told, one) or near(told, 1e3 * read / facts["bandwidth"]))
    check.true(near(told, many), "read the weights once, and each request's cache")
with check.part("the gain", weight=2):
    told = numbers(check, "batching", KEYS, facts)["gain"]
    check.mistake("the batch's step is longer than one request's: it reads more caches, so the gain is less than the batch",
                  when=near(told, facts["batch"]))
    check.mistake("that is how each user fares: together they get many tokens a step", when=near(told, one / many) or near(told, many / one))
    check.true(near(told, facts["batch"] * one / many), "tokens a second: the batch makes one for each request and step")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# The weights are read once a step whoever takes part, so a batch of N makes N tokens for that read. Each request's cache is read for it alone; that part is not shared.
# </details>

# %% [markdown]
# ### Exercise 4 · Continuous batching
#
# *difficulty 2 of 3 · 8 minutes · 2 points*
#
# Eight requests wait, and request `r` needs `outputs[r]` iterations, one token each. They are served in their order.
#
# `continuous(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"static"` | iterations until all are done, in batches of `slots` requests: a batch starts when the one before it is done |
# | `"continuous"` | iterations when a free slot is taken before the very next iteration |
# | `"idle"` | how many places (one slot in one iteration, so `slots` of them in each) of the static run make no token |
#
# <details><summary>Hint</summary>
# Static: a batch is as long as its longest request, and the last batch may be smaller. Continuous: keep the time at which each slot becomes free.
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
from inferlab.lab.answers import near, numbers
from inferlab.lab.scenarios import EXAMPLE

check = Check("continuous", points=2)
with check.part("the keys, and what is known of EXAMPLE: static and continuous", weight=0):
    told = numbers(check, "continuous", ["static", "continuous", "idle"], EXAMPLE)
    check.close([told["static"], told["continuous"]], [18, 16], rtol=0.002)
### BEGIN HIDDEN TESTS
from inferlab.lab.scenarios import scenario

facts = scenario(check.variant(16))
lengths, slots = facts["outputs"], facts["slots"]
static = sum(max(lengths[i : i + slots]) for i in range(0, len(lengths), slots))
free = [0] * slots
for length in lengths:
    free[free.index(min(free))] += length
KEYS = ["static", "continuous", "idle"]
with check.part("static", weight=1):
    told = numbers(check, "continuous", KEYS, facts)["static"]
    check.mistake("eight requests do not fit into the slots: one batch comes after the other", when=told == max(lengths))
    check.mistake("a batch ends with its longest request, not with its average one", when=told == -(-sum(lengths) // slots))
    check.equal(told, static)
with check.part("continuous", weight=2):
    told = numbers(check, "continuous", KEYS, facts)["continuous"]
    check.mistake("that would need slots that are never empty; at the end the longest request runs alone", when=told == -(-sum(lengths) // slots))
    check.mistake("that is the static run: here nobody waits for the longest of a batch", when=told == static)
    check.equal(told, max(free))
with check.part("places that make no token", weight=1):
    told = numbers(check, "continuous", KEYS, facts)["idle"]
    check.mistake("those are the places that do make a token", when=told == sum(lengths) != slots * static - sum(lengths))
    last = max(lengths[6:]) * (slots - len(lengths[6:]))
    check.mistake("the slot that the last, smaller batch leaves empty makes no token either", when=told == slots * static - sum(lengths) - last)
    check.equal(told, slots * static - sum(lengths))
### END HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# Before every iteration, whoever is done leaves and whoever waits takes the slot. A static batch is formed once and computes for nobody until its longest request is done.
# </details>

# %% [markdown]
# ### Exercise 5 · Paged attention
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# What does paging solve? (It makes no token's keys and values smaller.)
#
# `paging(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"reserved"` | how many requests fit when each reserves `longest` tokens in `cache_memory` bytes |
# | `"paged"` | how many fit when each has `typical` tokens in pages of `page` tokens, every page its own |
# | `"wasted"` | which share of a reservation a typical request never uses |
#
# <details><summary>Hint</summary>
# A page belongs to one request. The last one is seldom full, and it is taken all the same.
# </details>

# %% exercise="paging" provides=["paging"] difficulty=2 minutes=6
def paging(s):
    """Paged attention: the numbers of this service."""
    ### BEGIN SOLUTION
    token = 2 * s["layers"] * s["kv_heads"] * s["head_dim"] * s["itemsize"]
    pages = s["cache_memory"] // (s["page"] * token)
    each = -(-s["typical"] // s["page"])
    return {"reserved": s["cache_memory"] // (s["longest"] * token), "paged": pages // each, "wasted": 1 - s["typical"] / s["longest"]}
    ### END SOLUTION

# %% check="paging" points=2
from inferlab.lab import Check
from inferlab.lab.answers import near, numbers
from inferlab.lab.scenarios import EXAMPLE

check = Check("paging", points=2)
with check.part("the keys, and what is known of EXAMPLE: reserved and paged", weight=0):
    told = numbers(check, "paging", ["reserved", "paged", "wasted"], EXAMPLE)
    check.close([told["reserved"], told["paged"]], [23, 871], rtol=0.002)
### BEGIN HIDDEN TESTS
from inferlab.lab.scenarios import scenario

facts = scenario(check.variant(16))
token = 2 * facts["layers"] * facts["kv_heads"] * facts["head_dim"] * facts["itemsize"]
pages, each = facts["cache_memory"] // (facts["page"] * token), -(-facts["typical"] // facts["page"])
whole = facts["cache_memory"] // (facts["longest"] * token)
KEYS = ["reserved", "paged", "wasted"]
with check.part("with reservations", weight=1):
    told = numbers(check, "paging", KEYS, facts)["reserved"]
    check.mistake("a reservation is for the longest answer that may come, not for the one that comes", when=told == facts["cache_memory"] // (facts["typical"] * token))
    check.mistake("the last one does not fit: round down", when=told == whole + 1)
    check.equal(told, whole)
with check.part("with pages", weight=2):
    told = numbers(check, "paging", KEYS, facts)["paged"]
    check.mistake("that is the number of pages; a request needs several", when=told == pages)
    check.mistake("that is the number with reservations: pages are taken as a request grows", when=told == whole)
    check.mistake("a page that is not full is taken all the same: round its pages up", when=told == pages // (facts["typical"] // facts["page"]) != pages // each)
    check.equal(told, pages // each)
with check.part("the waste", weight=1):
    told = numbers(check, "paging", KEYS, facts)["wasted"]
    check.mistake("that is the share that is used", when=near(told, facts["typical"] / facts["longest"]))
    check.true(near(told, 1 - facts["typical"] / facts["longest"]), "compare what is used with what is reserved")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# Reserving for the longest possible answer wastes most of the memory. Pages are taken as a request grows and given back when it ends, so more requests fit. The bytes of a token stay what they were.
# </details>

# %% [markdown]
# ### Exercise 6 · Speculative decoding
#
# *difficulty 2 of 3 · 7 minutes · 2 points*
#
# What does a round of speculation bring? The draft proposes `drafted` tokens, the target checks them in one pass.
#
# `speculation(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"all_kept"` | chance that every drafted token of a round is kept, each with chance `accepted`, independently |
# | `"tokens"` | expected tokens of a round: the drafted ones up to the first rejection, and one of the target's own |
# | `"speedup"` | tokens for the time of one target pass, when a round costs one of them and `drafted` passes of the draft |
#
# <details><summary>Hint</summary>
# A round brings k + 1 tokens if the first k are kept. Add the chances that at least 0, 1, 2, ... are kept.
# </details>

# %% exercise="speculation" provides=["speculation"] difficulty=2 minutes=7
def speculation(s):
    """Speculative decoding: the numbers of this service."""
    ### BEGIN SOLUTION
    kept = [s["accepted"] ** k for k in range(s["drafted"] + 1)]
    return {"all_kept": kept[-1], "tokens": sum(kept), "speedup": sum(kept) / (1 + s["drafted"] * s["draft_cost"])}
    ### END SOLUTION

# %% check="speculation" points=2
from inferlab.lab import Check
from inferlab.lab.answers import near, numbers
from inferlab.lab.scenarios import EXAMPLE

check = Check("speculation", points=2)
with check.part("the keys, and what is known of EXAMPLE: tokens", weight=0):
    told = numbers(check, "speculation", ["all_kept", "tokens", "speedup"], EXAMPLE)
    check.close([told["tokens"]], [1.75], rtol=0.002)
### BEGIN HIDDEN TESTS
from inferlab.lab.scenarios import scenario

facts = scenario(check.variant(16))
a, g, cost = facts["accepted"], facts["drafted"], facts["draft_cost"]
tokens = sum(a**k for k in range(g + 1))
KEYS = ["all_kept", "tokens", "speedup"]
with check.part("all kept", weight=1):
    told = numbers(check, "speculation", KEYS, facts)["all_kept"]
    check.mistake("one rejection ends the round: all of them have to be kept, one after the other", when=near(told, a))
    check.true(near(told, a**g), "multiply the chances")
with check.part("tokens of a round", weight=2):
    told = numbers(check, "speculation", KEYS, facts)["tokens"]
    check.mistake("whatever comes after the first rejection is thrown away, too", when=near(told, a * g) or near(told, a * g + 1))
    check.mistake("the target's own token is missing: a round brings at least one", when=near(told, tokens - 1))
    check.mistake("after a full round the target adds a token of its own", when=near(told, tokens - a**g))
    check.true(near(told, tokens), "1 + a + a^2 + ...: up to which power?")
with check.part("the speedup", weight=1):
    told = numbers(check, "speculation", KEYS, facts)["speedup"]
    check.mistake("the draft's passes take time as well", when=near(told, tokens))
    check.true(near(told, tokens / (1 + g * cost)), "tokens of a round over its cost")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# A small draft proposes, the target checks all proposals in one pass, which costs hardly more than one token's. A token drawn from q is kept
# with chance min(1, p/q), and a rejected one is replaced by a draw from the rest of p, so the text is distributed as the target's own.
# </details>

# %% [markdown]
# ### Exercise 7 · Quantization
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# Why does quantizing the weights help decode more than training or prefill? The cache keeps its `itemsize`.
#
# `quantization(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"step_gain"` | how many times faster a decode step of one request with `context` positions becomes when a weight has `quantized` bytes |
# | `"batch_gain"` | the same for `batch` such requests |
# | `"prefill_gain"` | the same for the prefill of `prompt` tokens (weights only), when the weights are unpacked and multiplied as before |
#
# <details><summary>Hint</summary>
# Write down what is read before and after. Which of the two terms of the rule decides in the prefill, before and after?
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
from inferlab.lab.answers import near, numbers
from inferlab.lab.scenarios import EXAMPLE

check = Check("quantization", points=2)
with check.part("the keys, and what is known of EXAMPLE: step_gain and batch_gain", weight=0):
    told = numbers(check, "quantization", ["step_gain", "batch_gain", "prefill_gain"], EXAMPLE)
    check.close([told["step_gain"], told["batch_gain"]], [1.83, 1.328], rtol=0.002)
### BEGIN HIDDEN TESTS
from inferlab.lab.scenarios import scenario

facts = scenario(check.variant(16))
kept = 2 * facts["layers"] * facts["kv_heads"] * facts["head_dim"] * facts["itemsize"] * facts["context"]
before, after = facts["weights"] * facts["itemsize"], facts["weights"] * facts["quantized"]
KEYS = ["step_gain", "prefill_gain", "batch_gain"]
with check.part("one request", weight=1):
    told = numbers(check, "quantization", KEYS, facts)["step_gain"]
    check.mistake("the cache is read as well, and it has not shrunk", when=told == before / after)
    check.true(near(told, (before + kept) / (after + kept), 0.005), "bytes read before, over bytes read after; do not round")
with check.part("a batch", weight=1):
    told = numbers(check, "quantization", KEYS, facts)["batch_gain"]
    check.mistake("quantized weights leave the cache as large as it was", when=near(told, before / after))
    check.mistake("every request brings its own cache", when=near(told, (before + kept) / (after + kept), 0.005))
    many = facts["batch"] * kept
    check.true(near(told, (before + many) / (after + many)), "bytes read before, over bytes read after")
with check.part("the prefill", weight=2):
    told = numbers(check, "quantization", KEYS, facts)["prefill_gain"]
    check.mistake("the prefill waits for arithmetic, and there is as much of it as before", when=near(told, before / after))
    check.true(near(told, 1.0), "which term of the rule decides, before and after?")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# <details><summary>Say it in a sentence, then open this</summary>
# Decode waits for bytes, so fewer bytes a weight mean less waiting. Training and prefill wait for arithmetic, and that stays. The cache stays, too, so a large batch gains less.
# </details>

# %% [markdown]
# ## 3 · Three problems
#
# ### Exercise 8 · Part A: take a claim apart
#
# *difficulty 2 of 3 · 8 minutes · 2 points, practice*
#
# "Ten times the throughput of the baseline." Somebody kept the ledger: techniques were switched on one after the other, with the
# tokens per second after each. `dissect(ledger)` gets a list of pairs `(name, tokens_per_second)`: first `("baseline", ...)`, then
# `("continuous batching", ...)`, then others from this table, some of them, in any order.
#
# | name | | what it may attack | |
# |---|---|---|---|
# | `"continuous batching"` | | `"sharing"` | few requests share a read of the weights |
# | `"paged attention"` | | `"room"` | memory is reserved and never used |
# | `"int4 weights"` | | `"bytes"` | a weight has many bytes |
# | `"speculation"` | | `"passes"` | the large model runs once for every token |
# | `"grouped heads"` | | `"cache"` | a position of the cache has many bytes |
#
# Return a `dict`: `"factors"`, from each technique's name to the factor that *it* brought, when it was switched on; `"attacks"`, from each name to
# one of the five words, each word used once; and `"against_batched"`, the whole claim's factor for a team whose
# baseline already batches continuously.
#
# <details><summary>Hint</summary>
# Factors of things that are switched on one after the other multiply to the whole. For the team, the batching is in the baseline already: what do the lines after it multiply to?
# (They were measured on top of it. A factor that was measured before the batching would be another one after it.)
# </details>

# %% exercise="dissect" provides=["dissect"] difficulty=2 minutes=8
def dissect(ledger):
    """Each technique's own factor and target, and the claim against a better baseline."""
    ### BEGIN SOLUTION
    attacks = {"continuous batching": "sharing", "paged attention": "room", "int4 weights": "bytes", "speculation": "passes",
               "grouped heads": "cache"}
    factors = {name: rate / before for (name, rate), (_, before) in zip(ledger[1:], ledger)}
    whole = ledger[-1][1] / ledger[0][1]
    return {"factors": factors, "attacks": {name: attacks[name] for name in factors},
            "against_batched": whole / factors.get("continuous batching", 1.0)}
    ### END SOLUTION

# %% check="dissect" points=2
from inferlab.lab import Check
from inferlab.lab.answers import near

check = Check("dissect", points=2)


def taken_apart(claim):
    """The learner's dissection, once it has the form of the contract."""
    got = check.learner.dissect(claim)
    names = {name for name, _ in claim[1:]}
    check.true(isinstance(got, dict) and set(got) == {"factors", "attacks", "against_batched"}, "return a dict with the three keys")
    check.true(all(isinstance(got[key], dict) and set(got[key]) == names for key in ("factors", "attacks")),
               "factors and attacks have one entry for each technique of the ledger, and none for the baseline")
    plain = [*got["factors"].values(), got["against_batched"]]
    check.true(all(isinstance(value, int | float) and not isinstance(value, bool) for value in plain), "factors are numbers")
    return got


with check.part("one technique: the whole claim is its own", weight=1):
    told = taken_apart([("baseline", 50), ("continuous batching", 100)])
    check.close(float(told["factors"]["continuous batching"]), 2.0)
### BEGIN HIDDEN TESTS
CLAIMS = (
    [("baseline", 40), ("continuous batching", 200), ("paged attention", 260), ("int4 weights", 364), ("speculation", 400)],
    [("baseline", 30), ("continuous batching", 120), ("grouped heads", 150), ("int4 weights", 300)],
)
with check.part("each technique's own factor", weight=1):
    for claim in CLAIMS:
        told = taken_apart(claim)["factors"]
        base, (second, rate), before = claim[0][1], claim[2], claim[1][1]
        check.mistake("that compares with the baseline; a technique's own factor compares with the line before it", when=near(told[second], rate / base))
        check.mistake("a difference says little: what it multiplied is asked for", when=near(told[second], rate - before))
        for (name, after), (_, earlier) in zip(claim[1:], claim):
            check.true(near(told[name], after / earlier), f"the factor of {name} is not what the ledger says")
with check.part("what each attacks", weight=1):
    truth = {"continuous batching": "sharing", "paged attention": "room", "int4 weights": "bytes", "speculation": "passes", "grouped heads": "cache"}
    for claim in CLAIMS:
        told = taken_apart(claim)["attacks"]
        check.mistake("quantized weights leave the cache as it was, and paging makes no position smaller",
                      when="cache" in (told.get("int4 weights"), told.get("paged attention")))
        check.mistake("speculation makes no weight smaller and serves no more requests: it saves passes of the large model",
                      when=told.get("speculation") in ("bytes", "sharing"))
        check.equal(told, {name: truth[name] for name in told})
with check.part("against a baseline that batches already", weight=1):
    for claim, want in zip(CLAIMS, (2.0, 2.5)):
        told = taken_apart(claim)["against_batched"]
        check.mistake("that is still the whole claim: this team has the batching already", when=near(told, claim[-1][1] / claim[0][1]))
        check.mistake("that is the batching's own factor: the team has it already, what do the others bring?", when=near(told, claim[1][1] / claim[0][1]))
        check.true(near(told, want), "take the factor of the batching out of the product")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Read a claim like this one with three questions: which techniques, in which proportions, and *against what*?

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("dissect"):
    told = dissect([("baseline", 31), ("continuous batching", 170), ("paged attention", 221), ("int4 weights", 287), ("speculation", 316)])
    for technique, factor in told["factors"].items():
        print(f"{technique:20s} x {factor:4.2f}   attacks {told['attacks'][technique]}")
    print(f"for a team that batches already: x {told['against_batched']:.2f}")

# %% [markdown]
# ### Exercise 9 · Part B: one user, several devices
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# Your model is split over `devices` equal machines of your kind, for one user, weights only. **Tensor parallel**: each device reads its share of every layer's weights, all at the
# same time, and two sums over all devices follow in every layer, `sum_ms` each. **Pipeline**: each device holds a share of the layers, one
# works after the other, and the hidden state is handed on `devices - 1` times, `hop_ms` each.
#
# `split(s)` returns a `dict` of numbers:
#
# | key | value |
# |---|---|
# | `"tensor_ms"`, `"pipeline_ms"` | milliseconds of one decode step of this user |
# | `"idle"` | which share of its time a device of the pipeline is idle, with one user (ignore the hops) |
#
# <details><summary>Hint</summary>
# A token passes all layers. What is done at the same time in one split and one after the other in the other one?
# </details>

# %% exercise="split" provides=["split"] difficulty=2 minutes=6
def split(s):
    """One user's step on several devices, split in two ways."""
    ### BEGIN SOLUTION
    step = 1e3 * s["weights"] * s["itemsize"] / s["bandwidth"]
    return {"tensor_ms": step / s["devices"] + 2 * s["layers"] * s["sum_ms"], "pipeline_ms": step + (s["devices"] - 1) * s["hop_ms"],
            "idle": 1 - 1 / s["devices"]}
    ### END SOLUTION

# %% check="split" points=2
from inferlab.lab import Check
from inferlab.lab.answers import near, numbers
from inferlab.lab.scenarios import EXAMPLE

check = Check("split", points=2)
with check.part("the keys, and what is known of EXAMPLE: tensor_ms and pipeline_ms", weight=0):
    told = numbers(check, "split", ["tensor_ms", "pipeline_ms", "idle"], EXAMPLE)
    check.close([told["tensor_ms"], told["pipeline_ms"]], [0.7, 2.3], rtol=0.002)
### BEGIN HIDDEN TESTS
from inferlab.lab.scenarios import scenario

facts = scenario(check.variant(16))
whole = 1e3 * facts["weights"] * facts["itemsize"] / facts["bandwidth"]
share, sums = whole / facts["devices"], 2 * facts["layers"] * facts["sum_ms"]
KEYS = ["tensor_ms", "pipeline_ms", "idle"]
with check.part("tensor parallel", weight=1):
    told = numbers(check, "split", KEYS, facts)["tensor_ms"]
    check.mistake("the sums take time, too, in every layer", when=near(told, share))
    check.mistake("two sums a layer: one after the attention, one after the MLP", when=near(told, share + sums / 2) or near(told, share + 2 * facts["sum_ms"]))
    check.true(near(told, share + sums), "a share of the weights, and two sums in each layer")
with check.part("pipeline", weight=2):
    told = numbers(check, "split", KEYS, facts)["pipeline_ms"]
    hops = (facts["devices"] - 1) * facts["hop_ms"]
    check.mistake("a pipeline divides nobody's token: it passes every layer, one stage after the other", when=near(told, share + hops) or near(told, share))
    check.true(near(told, whole + hops, 0.002), "all layers one after the other, and the hops between the stages; do not round")
with check.part("a device's idle time", weight=1):
    told = numbers(check, "split", KEYS, facts)["idle"]
    check.mistake("that is the share in which it works", when=near(told, 1 / facts["devices"]) and facts["devices"] != 2)
    check.mistake("with one user only one stage has something to do: the next token waits for this one", when=told == 0)
    check.true(near(told, 1 - 1 / facts["devices"]), "how many of the stages work at one moment?")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Training hides those bubbles with microbatches, which do not wait for one another. A conversation cannot: its next token depends on this one.
#
# And this is what you found out about your own service:

# %% tags=["demo"]
for question in ("phases", "cache", "batching", "continuous", "paging", "speculation", "quantization", "split"):
    with when_written(question):
        print(f"{question:13s}", {name: float(f"{value:.4g}") for name, value in globals()[question](service).items()})

# %% [markdown]
#
# ### Exercise 10 · Part C: where to look first
#
# *difficulty 2 of 3 · 8 minutes · 2 points, practice*
#
# A team says that its decode is slow, although "the GPU is at 100%". `plan(report)` gets a `dict`:
#
# | key | value |
# |---|---|
# | `"launch_ms"`, `"bytes_ms"`, `"flops_ms"` | how long one step needs at least for launching its kernels, for what it reads, for what it computes |
# | `"utilization"` | what the monitor shows, 0 to 1: the share of time in which *some* kernel runs |
# | `"waiting"`, `"free"` | requests that wait for a place; the share of the cache's memory that is free |
# | `"itemsize"` | bytes of a weight |
# | `"drafts"` | `list` of models at hand that might draft: `dict` with `parameters` (as a share of the target's) and `same_tokenizer` (`bool`) |
#
# Return a `dict` with `"waits_for"`, one of `"launches"`, `"bytes"`, `"arithmetic"`: the longest of the three; and `"do"`, the list of what to do, in order:
#
# * when it waits for launches, `["graphs"]` (record the step, and measure again);
# * when it waits for arithmetic, `[]`: the machine does what it can;
# * when it waits for bytes, those of the four that apply, **in this order**: `"batch"` if requests wait and more than a tenth of the cache's memory is free; `"cache"`
#   (page it) if requests wait and no more than that is free; `"precision"` if a weight has two bytes or more; `"speculation"` if there is a draft: a model
#   with the target's own tokenizer (its tokens are what the target checks) and at most a fifth of its parameters. A smaller variant of the model's family
#   or a small fine-tune can be one.
#
# <details><summary>Hint</summary>
# One key of the report tells nothing about the bottleneck. Which one?
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
    applies = {"batch": waiting and room, "cache": waiting and not room, "precision": report["itemsize"] >= 2, "speculation": draft}
    return {"waits_for": "bytes", "do": [what for what, yes in applies.items() if yes]}
    ### END SOLUTION

# %% check="plan" points=2
from inferlab.lab import Check

check = Check("plan", points=2)


VARIANT, FINE_TUNE = {"parameters": 0.06, "same_tokenizer": True}, {"parameters": 1.0, "same_tokenizer": True}
STRANGER = {"parameters": 0.1, "same_tokenizer": False}


def planned(launch, read, flops, waiting, room, size, drafts, shown=1.0):
    """The learner's plan for a report, once it has the form of the contract."""
    got = check.learner.plan({"launch_ms": launch, "bytes_ms": read, "flops_ms": flops, "utilization": shown, "waiting": waiting,
                              "free": room, "itemsize": size, "drafts": list(drafts)})
    check.true(isinstance(got, dict) and set(got) == {"waits_for", "do"} and isinstance(got["do"], list), 'return {"waits_for": ..., "do": [...]}')
    return got


with check.part("bytes, with requests that wait, room, and a draft", weight=1):
    check.equal(planned(2.0, 5.0, 0.1, 9, 0.6, 2, [VARIANT]), {"waits_for": "bytes", "do": ["batch", "precision", "speculation"]})
### BEGIN HIDDEN TESTS
with check.part("what the step waits for", weight=1):
    for times, want in (((30.0, 5.0, 0.1), "launches"), ((2.0, 5.0, 0.3), "bytes"), ((2.0, 5.0, 9.0), "arithmetic")):
        told = planned(*times, 4, 0.5, 2, [VARIANT])["waits_for"]
        check.mistake("100% says only that some kernel was running all the time: it may have waited for bytes, or for the next launch",
                      when=told == "arithmetic" != want)
        check.mistake("decode is not always bound by memory: look at the three times", when=told == "bytes" != want)
        check.equal(told, want)
with check.part("what to do, in order", weight=1):
    told = planned(30.0, 5.0, 0.1, 4, 0.5, 2, [VARIANT])["do"]
    check.mistake("the order of the four is for steps that wait for bytes; this one waits for launches", when="batch" in told or "precision" in told)
    check.equal(told, ["graphs"])
    check.equal(planned(2.0, 5.0, 9.0, 4, 0.5, 2, [VARIANT])["do"], [])
    told = planned(2.0, 5.0, 0.3, 4, 0.05, 2, [VARIANT])["do"]
    check.mistake("there is no room for more requests: their caches have to fit first", when=told[:1] == ["batch"])
    check.mistake("speculation comes last: the others bring more, and it needs room of its own", when=told[:1] == ["speculation"])
    check.equal(told, ["cache", "precision", "speculation"])
    check.equal(planned(2.0, 5.0, 0.3, 0, 0.9, 1, [])["do"], [])
    told = planned(2.0, 5.0, 0.3, 0, 0.9, 2, [VARIANT])["do"]
    check.mistake("nobody waits: there is no request to put into a larger batch", when="batch" in told)
    check.equal(told, ["precision", "speculation"])
with check.part("what can draft", weight=1):
    told = planned(2.0, 5.0, 0.3, 0, 0.9, 2, [STRANGER])["do"]
    check.mistake("that model has another tokenizer: the target could not check its tokens", when="speculation" in told)
    check.equal(told, ["precision"])
    told = planned(2.0, 5.0, 0.3, 0, 0.9, 1, [FINE_TUNE])["do"]
    check.mistake("a draft as large as the target costs as much as it saves", when="speculation" in told)
    check.equal(told, [])
    check.equal(planned(2.0, 5.0, 0.3, 0, 0.9, 1, [STRANGER, FINE_TUNE, VARIANT])["do"], ["speculation"])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4 · Explain
#
# *difficulty 2 of 3 · 8 minutes · 4 points: 2 for the typed lines, 2 for the sentences*
#
# A colleague plans a service for users who wait for each word: "We let a small model write most of the text, which costs some quality, and take a pipeline
# over four devices, so that a token comes four times sooner." Set it right.
#
# | line | what it says |
# |---|---|
# | `speculation:` | one or two sentences: what the draft does in a round, and what the target does with it |
# | `trade-off:` | one or two sentences: what tensor parallelism gains for one user, and what it costs |
# | `stages:` | typed: how many of the pipeline's four devices work at the same moment, for one user |
# | `gain:` | typed, such as `bandwidth down`: what tensor parallelism improves for one user |
# | `cost:` | typed: what it makes worse |

# %% explain="two-plans" difficulty=2 minutes=8
# %%explain two-plans
# ### BEGIN SOLUTION
# speculation: The draft proposes a few tokens, and the target checks all of them in one pass. It keeps the accepted tokens and replaces the first rejected one, so the distribution stays its own.
# trade-off: Tensor parallelism lowers the latency of a token, because each device reads only its share of the weights, but it needs more communication: two sums in each layer.
# stages: 1
# gain: latency down
# cost: communication up
# ### END SOLUTION

# %% check="two-plans-stages" of="two-plans" points=1
from inferlab.lab import Check

check = Check("two-plans-stages", points=1)
with check.part("`stages:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-plans").get("stages"), "`stages:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

with check.part("devices that work at the same moment"):
    told = check.explanation("two-plans")
    check.mistake("the next token waits for this one: while one stage works, the others have nothing to do", when=typed(told, "stages", 4).verdict == "award")
    check.mistake("one works, three wait", when=typed(told, "stages", 3).verdict == "award")
    outcome = typed(told, "stages", 1)
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="two-plans-gain-cost" of="two-plans" points=1
from inferlab.lab import Check

check = Check("two-plans-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-plans").get("gain"), "`gain:` is empty")
    check.true(check.explanation("two-plans").get("cost"), "`cost:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

words = {"traffic": "communication, synchronization, synchronisation, all-reduce, all-reduces, sums, exchange, messages"}
check.slot(lambda: typed(check.explanation("two-plans"), "gain", ("latency down", "time down", "speed up"), terms=words), "what one user gains")
check.slot(lambda: typed(check.explanation("two-plans"), "cost", ("traffic up", "transfer up"), terms=words), "what it costs")
### END HIDDEN TESTS
check.score()

# %% check="two-plans-speculation" of="two-plans" points=1
from inferlab.lab import Check

check = Check("two-plans-speculation", points=1)
with check.part("`speculation:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-plans").get("speculation"), "`speculation:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What the draft does in a round, and what the target does with it. We let a small model write most of the text, which costs some quality.",
    lab="What does a round of speculation bring? The draft proposes, the target checks them in one pass. A round brings k + 1 tokens if the first k are kept.",
    terms={
        "draft": "draft, draft model, drafter, small model, small one, smaller model, smaller one, assistant*, little model, little one, helper, cheap model, "
                 "cheap one, intern",
        "target": "target*, target model, large model, large one, larger model, big model, big one, bigger model, main model, verifier, expensive model, "
                  "expensive one, editor",
        "round": "round*",
        "weights": "weight*, parameter*",
    },
    slots={"speculation": Slot(
        learned="practice speculation 2f7a5338c4a2161d",
        # not a direction: what learners say for the two halves of the answer, in phrases (a `not` before one denies it)
        trend=Trend("round", gain={"the draft proposes": "up"}, cost={"the target checks": "up"}, asked="up", says={
            "the draft proposes up": "quick/cheap/fast guesses/proposals/tokens/candidates, come/comes from .. draft/small/little/smaller, "
                                     "draft/small/little .. makes/suggests/predicts/guesses, "
                                     "draft/drafter/small/smaller/little/assistant/cheap/helper/intern/model/one/it .. "
                                     "propose/proposes/proposing/suggest/suggests/guess/guesses/draft/drafts/ahead/scribbles/scribble/samples/sample/predicts/"
                                     "predict/generates/generate/proposal/proposals/suggestions/offers/throws/jots/says/produces/makes/bet, "
                                     "proposes/writes/guesses next, k cheap proposals, a/the few/handful proposals/guesses/suggestions/candidates/tokens, "
                                     "scribbles the next, as suggestions, only/merely suggests, "
                                     "draft/drafter/small/smaller/little/assistant .. k/few/several/some/four/4/five/5/next/successive/cheap .. "
                                     "token/tokens/proposals/guesses/candidates/words, "
                                     "draft/drafter/small/smaller/little/assistant/cheap/helper/intern/it/that/who .. "
                                     "pencils/pencil/sketches/sketch/spits/spit/submits/submit/hands/lists/jots/pitches .. token/tokens/words/guesses/proposals/candidates/next/over/in/out, "
                                     "propose/proposed/suggested/guessed/drafted/generated/sampled .. by/from .. draft/drafter/small/smaller/little/assistant, "
                                     "generation to .. cheap/small, "
                                     "drafted position/positions/token/tokens, token/tokens/candidates/words/positions .. drafted/proposed/suggested/guessed, "
                                     "proposes/suggests/guesses/drafts .. token/tokens/words/positions/few/next/candidates",
            "the target checks up": "check/checks/verify/verifies/score/scores/judge/judges/test/tests .. at/in once/parallel/one, "
                                    "verify/verifies/verified/check/checks/checked/validate/validates/validated/confirm/confirms/examine/examines/evaluates/"
                                    "scores/judges/controls/inspects .. token/tokens/them/all/guess/guesses/proposal/proposals/candidates/suggestions/it, "
                                    "then verified/checked/validated by, "
                                    "target/big/bigger/large/larger/main/expensive/verifier/editor/model/one/it/which/and .. "
                                    "check/checks/checking/verify/verifies/verifying/verification/examine/examines/look/looks/evaluate/evaluates/score/scores/"
                                    "control/controls/confirm/confirms/judge/judges/reads/decide/decides/inspects/validates/tests/approves/reject/rejects/keeps/"
                                    "keep/does .. pass, "
                                    "check/checks/checked/verify/verifies/verified/verification/examined/evaluated/scored/judged/confirmed .. by/to/from .. "
                                    "target/big/large/main/expensive/bigger/larger, "
                                    "check/checks/checked/verify/verifies/verified/verification/examined/evaluated/scored/judged/confirmed/graded in one/a/the, "
                                    "grade/grades/grading/graded/review/reviews/vet/vets/inspect/inspects .. the/them/all/lot/tokens/guesses/proposals, "
                                    "single/one/same .. pass/forward/reading/call/go .. verifies/verify/checks/confirms/rejects/over/of, "
                                    "in/at one/once/a .. pass/go/forward/call/reading, all at once, lot at once, in parallel, one pass/forward/call, "
                                    "a single pass/call/forward/reading, "
                                    "goes/go over, "
                                    "keeps/drops/replaces/rewrites/fixes/swapped/swaps/decides/supplies/confirms/discards "
                                    "the/those/what/accepted/them/it/only/everything/whatever/all/for/which/whether/a/its/up/or, "
                                    "accepts a/the/some/those/until/each/one/or, rejects/refuses the/some/those/each/one/or, cuts it/them off",
        }),
        deny={
            "says: draft/small/little/assistant/model writes/write/generates/decides/makes most/half/much, half of the text, most of the text/output/answer, "
            "straight to the user, go straight to, directly to the user, jumps in, only for the hard, only used for, "
            "writes the text/output/answer, writes the easy": "The draft only proposes. Every token that stays has passed the target's rule.",
            "says: lose/loses/losing quality, lose/loses/losing/lost/costs/cost some/a/bit/of/little/quality/accuracy bit/quality/of/in, "
            "lower/worse/less quality, quality is/gets/becomes worse/lower, quality drops/suffers/falls, a bit of quality, "
            "quality is given/traded/sacrificed, gives/give up .. quality, trade/trades/sacrifice/sacrifices .. quality, output/text/answer/result becomes/is/gets .. worse, "
            "worse than the target's, accept/accepts/keep/keeps .. plausible/similar/close/roughly, close enough, differ/differs a little/bit":
                "The rule keeps the target's distribution: no quality is lost.",
            "says: target/big/large/main model/propose/proposes/guesses/drafts/suggests/guess many/several/some/tokens/a/first/few/ahead, "
            "target propose/proposes/drafts/suggests/guesses, big/large model/one proposes/propose/drafts/suggests/guesses, "
            "draft/small/little/assistant model/one checks/verifies/check/verify/accepts/rejects/judges, "
            "draft checks/verifies/check/verify/accepts/rejects/judges, checked/verified by the draft/small, draft decides/controls": "The draft proposes and the target checks, not the other way round.",
            "says: pass/run/call/time for every/each suggestion/token/proposal/guess/draft, one whole pass for, pass of its/their own, own pass/run, "
            "in a pass of, separate times/passes/runs, runs/run once/again for each/every, five/four/several/k/4/5 passes, "
            "target/big/large/checks/verifies/checked/verified .. one by one, checks/verifies .. one after the other, "
            "token by token with the target":
                "All proposals are checked in one pass: that is what is saved.",
            "says: all/the tokens of the round are/get discarded/dropped/thrown, whole/entire/complete/full round is/gets discarded/dropped/thrown/repeated, "
            "whole/entire/complete/full proposal/draft/block/batch is/gets discarded/dropped/thrown, accepted ones before it, accepted ones too, all k tokens again":
                "What was accepted before the first rejected token stays.",
            "says: averages/averaging/average/mixes/mixing/blends/blending .. probabilities/distributions/predictions/outputs, mix/mixture/average/blend of both/the/two":
                "Nothing is mixed: a token is kept or replaced, so that the distribution is the target's.",
            "says: trains/train/training/teaches/finetunes/updates the draft/small/drafter, draft/drafter/small/model learns, "
            "acceptance rate/ratio grows/rises/increases/improves": "Nothing is learned in a round: no weight changes.",
            "says: pass/it costs/takes/needs k/n/four/five/several times, skip/skips/skipping .. layers, quality becomes/gets/is better/higher, better than .. target, "
            "better quality than, target gets slower": "The pass costs about as much as an ordinary one; what it saves are passes, and the output stays as it was.",
            "says: without a/any check, without checking, emitted directly, checks/verifies only those/some": "Every proposal is checked before it stays.",
            "* shrinks weights": "No weight changes: passes of the large model are saved.",
            "says: does something": "Say what it does.",
        },
        names=["draft", "target"],
    )},
    must_award={"speculation": [
        "The draft proposes a few tokens and the target verifies all of them in a single pass, keeping the accepted tokens.",
        "A small model drafts some tokens; the large model checks these tokens in one pass and replaces the first rejected one.",
        "The draft generates four tokens, and the target decides in one pass which tokens stay.",
        "Several tokens are proposed by the draft model, and the target keeps the accepted tokens.",
        "The draft hands a few tokens over to the target, which grades all of them in one call and keeps the ones that it accepts.",
        "the little model runs ahead a few words and the big one looks them over in one go, the first bad guess is swapped for its own",
    ]},
    must_deny={"speculation": [
        "The draft writes the text and the target is only used for the prompt.",
        "The draft decides which tokens of the target are kept.",
        "Half of the text is written by the draft, so the quality is worse.",
        "The draft writes most of the output and the target writes the rest of the output.",
        "The target proposes tokens, and the draft checks them in one pass.",
        "The draft suggests five tokens and the target runs one whole pass for each suggestion.",
        "The draft proposes four tokens, the target checks them in one pass and also keeps the ones that are close enough, so the text gets slightly worse.",
        "The draft proposes k tokens and the target checks them in one pass; after the first rejection the whole round is thrown away.",
        "The draft proposes tokens and the target checks them in one pass; it averages the probabilities of the two.",
        "Draft guesses some tokens, the target verifies them in one pass, and that trains the draft for the next round.",
    ]},
)
check.slot(lambda: grade(check.explanation("two-plans"), RUBRIC, {})["speculation"], "what draft and target do in a round")
### END HIDDEN TESTS
check.score()

# %% check="two-plans-trade-off" of="two-plans" points=1
from inferlab.lab import Check

check = Check("two-plans-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-plans").get("trade-off"), "`trade-off:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What tensor parallelism gains for one user, and what it costs.",
    lab="Each device reads its share of every layer's weights, all at the same time, "
        "and two sums over all devices follow in every layer. A token passes all layers.",
    terms={
        "tensor": "tensor parallel*, tensor parallelism, tp, tensor split, splitting the layers, splitting within the layers, layer's halves, two halves, both halves, the halves, save a lot of time, save lots of time",
        "pipeline": "pipeline*, pipeline parallelism, pp",
        "traffic": "communication*, data, message*, exchange*, all-reduces, all-reduce, allreduces, collective*, synchronisation, synchronization, "
                   "synchronisations, sums, data exchanged, all-reduce traffic, interconnect, interconnect traffic, "
                   "many times, several times, again and again, network, bandwidth between devices, chatter, talking, network traffic, with slow, over slow, on slow, with a slow, over a slow, "
                   "on a slow, a slow link, a slow cable, a slow network, a slow connection, a slow interconnect, and slow links, and slow cables, that's slow without, that is slow without, "
                   "a fast link, a fast network, a fast interconnect, fast links, fast cables, faster links, "
                   # time that the sums take: it is part of the cost and no contradiction to a step that is faster
                   "wait for each other, waits for each other, waiting for each other, wait on each other, waiting on each other, waiting for the others, wait for the others, "
                   "wait for the slowest, and wait for it, devices must wait, devices have to wait, cards must wait, cards have to wait, gpus must wait, gpus have to wait, "
                   "time for communication, time for the communication, time for communicating, time for the sums, time for sums, time for synchronisation, "
                   "time for synchronization, time for the exchange, time on communication, time on communicating, time on summing, time on the sums, "
                   "time on exchanging, time on synchronising, time on synchronizing, time to communicate, time to exchange, time to sum, communication time, "
                   "synchronisation time, synchronization time, communication latency, communication delay, communication overhead, "
                   "communication takes time, communication costs time, communication needs time, communication also takes time, "
                   "exchange takes time, exchange costs time, synchronisation takes time, synchronization takes time, sync takes time, "
                   "sums take time, sums cost time, all-reduces take time, all-reduces cost time, messages take time, these take time, these cost time, "
                   "which takes time, which costs time, this costs time, that costs time, "
                   "take extra time, takes extra time, take some extra time, takes some extra time, cost extra time, costs extra time, add extra time, adds extra time, "
                   "fixed delay, small delay, delay to each layer, delay to every layer, delay in each layer, delay in every layer, "
                   "whose time does not, whose latency does not, their time does not, their latency does not, "
                   "limits the speedup, limits the speed-up, limit the speedup, limits the gain, limit the gain, limits how fast",
    },
    slots={"trade-off": Slot(
        learned="practice trade-off a45344b95b6bcc4c",
        deny={
            "says: full copy of, copy of the model, memory is wasted, only one device works, gains nothing, gains something, costs something, "
            "less/fewer/lower/saves communication/messages/exchanges/traffic/synchronization, whole layers, hands the state to the next, to the next device, "
            "in flight at once, passes it on to the next, one device after the other, "
            "stages work, no communication, without communication, works/work on a different/another/its token/request/user/sequence, works/work on its own token/request/user, "
            "own stage, between stages, between the stages, device holds/has other/different/own layers, devices hold/have other/different/own layers, from each/one device to the next, state from each, to the following device": "Every device works on every layer, and all of them must agree twice in each.",
            "says: communication/traffic .. zero, almost/nearly/practically/hardly any/no/zero communication/traffic/messages, little/hardly communication, "
            "one/single all-reduce/sum/exchange/message per/a/for token, only/just once per/a token, at the very end, none inside the":
                "Two sums in each layer, for every token.",
            "says: read/reads more weights, more weights than, each/every device/card/gpu reads/holds/has/keeps all, "
            "each/every device/card/gpu reads/holds/has/keeps the whole/entire/full, "
            "more memory for the kv/cache, heads .. stored on each/every, whole/full/entire cache/model/weights on/in each/every, all the weights on each/every":
                "A device holds and reads its share of the weights and of the heads, and no more.",
            "says: quality goes down, quality drops/suffers/falls/decreases, quality gets/is/becomes lower/worse, worse answer/answers/text/result/results/output, quality of the answer/answers/text goes/gets/drops/suffers, "
            "costs/cost quality/accuracy, loses/lose/losing quality/accuracy, accuracy drops/suffers/falls, sums are approximated, pipeline bubble, serves a different/another":
                "The sums put the parts together: the result is the same, for the same user.",
            "says: sums are what the user gains, communication is what the user gains, gains/gain communication/messages": "The sums are the price; what the user gains is time.",
        },
        trend=Trend(
            "tensor", gain={"time": "down"}, cost={"traffic": "up", "transfer": "up"}, switch=True, asked="up",
            says={
                "time down": "save/saves a lot of time, save/saves lots of time, response time .. improves/improve/better/shorter, shorter/less/smaller .. time/step/latency/wait/path/pass, "
                             "fraction/quarter/part/share of the time/latency/weights, "
                             "shortens/shorten .. step/steps/token/tokens, "
                              "gets/get there quicker/faster/sooner, wait/waits less, sooner, earlier, quicker, faster, "
                             "shortens/shorten/cuts/reduces/lowers .. time/latency/path/wait, multiplies/multiply/pools .. bandwidth, "
                             "latency/time/wait .. improves/improve/improved/better, gain/gains/gained .. latency/speed, "
                             "latency .. drops/falls/shrinks/decreases/down, time .. drops/falls/shrinks/decreases/down",
                "traffic up": "sum/sums/summed/exchange/exchanges/sync/syncs/synchronise/synchronize/talk/communicate/agree/add/added/all-reduce/"
                              "all-reduces .. each/every/all/both/per/twice/constantly/across/between/many/again/other/devices/cards/gpus, "
                              "wait/waits/waiting for/on each/the, partial sums/results, add their, time for/on/to the/communication/communicating/sums/summing/exchange/exchanging/synchronisation/synchronization, "
                              "communication/synchronisation/synchronization/sums/exchange .. take/takes/cost/costs time, introduces .. communication/synchronisation/synchronization, "
                              "slow links/link/cables/network/interconnect, slow without, sync/syncing/synchronising/synchronizing up, "
                              "two/twice/many/constant/frequent .. sum/sums/exchange/exchanges/all-reduce/all-reduces/messages/syncs/times/layer, "
                              "messages/traffic/communication between, "
                              "takes/adds/needs/requires/costs/cost/is/increases/pays/pay .. "
                              "communication/synchronisation/synchronization/interconnect/messages/exchanges, "
                              "cost is/are communication/sums/messages, pay in/with messages/communication, "
                              "have/has/need/needs to .. talk/communicate/sync/synchronise/synchronize/coordinate/exchange/sum/agree, needs/requires/wants fast/faster/good, "
                              "calls/asks for fast/faster/good, "
                              "synchronisation/synchronization/communication .. price/cost, slow cables/links/network would, all devices exchange, "
                              "at the cost of two",
            }))},
    must_award={"trade-off": [
        "Tensor parallelism lowers the latency of a token, but it needs more communication.",
        "With tensor parallelism each token is faster, at the price of more all-reduces.",
        "The user waits less for each token, but the communication goes up.",
        "Tensor parallelism makes a step take less time and increases the synchronization in every layer.",
        "One user's token is ready faster since each card reads a quarter of the weights, but the cards have to wait for each other twice in each layer.",
        "It shortens the step, but the communication takes time: two sums in every layer.",
        "A word comes sooner as all cards read their part of a layer together, but they have to sum up between them twice in each layer.",
    ]},
    must_deny={"trade-off": [
        "Tensor parallelism raises the latency of a token and needs less communication.",
        "Tensor parallelism makes a token slower, but it needs more communication.",
        "Tensor parallelism lowers the latency and also lowers the communication.",
        "With tensor parallelism a token takes longer and fewer messages are sent.",
        "Each device holds whole layers and hands the state to the next device.",
        "The latency goes down as each device holds other layers, at the cost of a transfer of activations between the stages.",
        "A token is faster, the devices sum in every layer, and the quality goes down since each of them knows only a part of the model.",
        "The step takes less time, and the communication stays almost at zero: one all-reduce per token at the very end.",
        "A token takes less time since each card works on a different token, and the state is sent from one device to the next.",
        "One user waits less, but all heads must be stored on each device and there is more communication.",
    ]},
)
check.slot(lambda: grade(check.explanation("two-plans"), RUBRIC, {})["trade-off"], "what one user gains, and what it costs")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 5 · Nine cards
#
# Click a card, or press Enter when it has the focus, to turn it. Tab goes from the card to its buttons, Space presses one. A card that you know comes back after
# 1, 3, 7, 14 and 30 days; any other comes again in this round. What is due stands in `inference.cards.json` beside this notebook.
# To print them, one a page: `inferlab cards inference --to cards.html` in a terminal, then open that file.

# %% tags=["demo"]
from inferlab.lab.cards import show_cards

show_cards("inference")

# %% [markdown]
# ## 6 · Notice
#
# - **Decode is no small prefill.** The same weights are read; what differs is how many tokens pay for it.
# - **A batch shares the weights only.** With a long context, the caches are what the step reads, and the gain stays well below the batch.
# - **Paging and quantized weights are two things that leave a position of the cache as large as it is.**
# - **"100% utilized" is no bottleneck.** It says that some kernel is running. Ask for launches, bytes and arithmetic first, then for the remedy.
# - **A factor without its baseline says nothing.** The same techniques are worth ten to one team and two to another.
#
# Say it out loud, as in an interview: name the regime, the resource that is shared, and the trade-off.

# %% [markdown]
# ## 7 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
