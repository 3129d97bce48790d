# %% [markdown]
# # Lab 23 · A service under load
#
# Requests come when they like. They queue, share calls (runs of the model) and fight for blocks of the cache.
# You predict how long requests take at several loads, run the library's engine, write the scheduler that
# decides who takes part in each call and who is thrown out, and say which of two services keeps its promise.
#
# **Time** 60 to 85 minutes · **Points** 16, of which 3 are practice · **Reading**
# [A service under load](../../handbook/lab23-under-load.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %%
from inferlab.lab import start

lab = start("lab23-under-load", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from inferlab.lab.kits.service.load import (
    COST, TARGET, arrivals, computed, gaps_of, requests_chart, serve_load,
)
from inferlab.lab.kits.service.load import begins_of, waits_of
from inferlab.models import load_language_model

torch.set_grad_enabled(False)
model, _ = load_language_model(MODEL, lab.device)
small, _ = load_language_model(MODEL, lab.device, draft=True)  # for what is only counted
print("a call of the model takes", COST["call"], "ticks, and", COST["token"], "more for each token in it")

# %% [markdown]
# `serve_load` runs the library's engine. It makes every decision, and each call is real. Only the clock is
# made up. It counts ticks, so that a run is the same on every machine. (`COST` behaves like a large model on
# a large GPU: reading the weights takes as long as computing 20 tokens.)

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say what a load does to each request, and who goes when the pool of blocks is full.

# | word | meaning |
# |---|---|
# | **open loop** | requests arrive at times of their own; nobody waits with a question until the last one is answered |
# | **time to first token** (TTFT) | from the arrival to the first token: waiting in the queue, and the prefill |
# | **gap** (inter-token latency) | from one token of a request to its next one |
# | **tail** | the slowest few: from the 95th percentile to the maximum |
# | **goodput** | requests in a unit of time that keep **every** promise, such as "first token in 250 ticks, no gap over 100" |
# | **Little's law** | requests in the service = arrivals in a tick x ticks that a request stays |
#
# A call carries one token for each request that decodes, and prompts, whole or in **chunks**. All requests
# in a call wait for its end, so its ticks are everybody's gap. A block holds one page, here 16 tokens. When
# the pool of blocks is full, something must go:
#
# | what goes | what is lost |
# |---|---|
# | **cached blocks**: full blocks of requests that are done | a possible prefix hit: a prompt that begins alike |
# | a running request: it is **preempted**, its blocks are freed, and later it is computed again | calls and tokens; it has one long gap |
# | the same, but its blocks are **moved** to the host's memory and back | bytes over a link; it has one long gap |
#
# ![Left, ticks that requests stay against the load: the mean and, above it, the 95th percentile rise
# steeply near the capacity; the machine is busy from half of it on. Right, one long call with a whole prompt,
# or several with a chunk each.](../../handbook/figures/lab23-load.svg)
#
# *From the handbook.* Left: what a load does to latency. Right: what a long prompt does to the others.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · Two loads
#
# *difficulty 3 of 3 · 9 minutes · 3 points*
#
# One request arrives every `gap` ticks, for ever. Each has a prompt of `prompt` tokens. Its first call
# computes the whole prompt and makes the first token. Each later call computes the token made last and makes
# the next, until there are `new`. At most `slots` requests take part in a call. A call takes `cost["call"]`
# ticks, plus `cost["token"]` for each token that it computes. The cache is large enough.
#
# **Before you run anything further**, write `forecast(gap, prompt, new, slots, cost)`. It returns a `dict`
# for the steady state:
#
# | key | value |
# |---|---|
# | `"busy"` | the share of time in which a call runs, 0 to 1 |
# | `"batch"` | mean number of requests in a call |
# | `"latency"` | ticks from a request's first call to its last token; `None` if the queue grows without end |
# | `"rate"` | tokens generated in 1,000 ticks, of all requests together |
#
# It is compared, to within 10%, with runs of the library's engine that this notebook never makes: a light
# load, a busy one, and too much.
#
# <details><summary>Hint 1: a nudge</summary>
#
# In the steady state one request comes and one ends in each <code>gap</code>. How many ticks of it go into
# the tokens of one request? The rest is for the calls' own ticks: how many calls is that? A request takes
# part in <code>new</code> calls. Little's law turns a number of requests into ticks.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>work = token * (prompt + new - 1)</code>. Alone, a request takes <code>work + call * new</code>: if
# that fits into a gap, it is alone. With full slots a request costs <code>full = work + call * new /
# slots</code>: if that is more than a gap, the queue grows, and every <code>full</code> ticks
# <code>new</code> tokens are made. In between the machine is busy all the time, <code>(gap - work) /
# call</code> calls fit into a gap, the batch is <code>new</code> over that number, and the latency is the
# batch times the gap.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=3 minutes=9
def forecast(gap, prompt, new, slots, cost):
    """Busy share, batch, latency and rate of a service with one request every `gap` ticks."""
    # three numbers of ticks: `work`, for the tokens of one request; `alone`, its calls and tokens if it is
    # alone; `full`, what it costs if all slots are full
    ### BEGIN SOLUTION
    work = cost["token"] * (prompt + new - 1)
    alone, full = work + cost["call"] * new, work + cost["call"] * new / slots
    ### END SOLUTION
    if full > gap:  # too much
        ### BEGIN SOLUTION
        return {"busy": 1.0, "batch": slots, "latency": None, "rate": 1000 * new / full}
        ### END SOLUTION
    if alone <= gap:  # a request is gone before the next one comes
        ### BEGIN SOLUTION
        return {"busy": alone / gap, "batch": 1, "latency": alone, "rate": 1000 * new / gap}
        ### END SOLUTION
    # in between: calls follow each other, and requests share them
    ### BEGIN SOLUTION
    batch = new * cost["call"] / (gap - work)
    return {"busy": 1.0, "batch": batch, "latency": batch * gap, "rate": 1000 * new / gap}
    ### END SOLUTION

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)

def told_of(*run):
    """The learner's forecast, once it has the form that the contract asks for."""
    got = check.learner.forecast(*run)
    check.true(isinstance(got, dict) and set(got) == {"busy", "batch", "latency", "rate"},
               "return a dict with exactly the four keys")
    for key in ("busy", "batch", "rate") + (() if got["latency"] is None else ("latency",)):
        got[key] = check.number(got[key], f"{key} is a number")
    return got

with check.part("one request in a thousand ticks", weight=1):
    check.close(told_of(1000, 11, 10, 4, {"call": 30, "token": 2})["busy"], 0.34, tol=1e-6)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# ### A load of your own
#
# Fourteen requests; when they come and how long they are depends on your name. The engine gets 8 slots, 64
# tokens in a call and a cache that is large enough:

# %%
VARIANT = lab.variant(16)
load = arrivals(100 + VARIANT, 14, 60)
print("(arrival, prompt, new):", load[:4], "...")
roomy = serve_load(model, load, budget=64)

# %% tags=["demo"]
for call in roomy["calls"][:8]:
    print(f"{call['start']:5} to {call['end']:5}, {call['held']:2} blocks, (request, tokens):", call["parts"])

# %% [markdown]
# A line is one call. Requests that decode have one token in it. Prompts come in beside them, and one that
# does not fit is cut: no call has more than 64 tokens.
#
# Now the same load, with 9 blocks in the whole pool:

# %%
full = serve_load(model, load, budget=64, blocks=9)

# %% tags=["demo"]
for name, run in {"roomy": roomy, "full pool": full}.items():
    gone = [(r, len(one["preempted"])) for r, one in enumerate(run["requests"]) if one["preempted"]]
    print(f"{name:9} {len(run['calls'])} calls, {computed(run)} tokens computed, last token at "
          f"{run['calls'][-1]['end']}, preempted: {gone}")
print("same answers:", roomy["answers"] == full["answers"])
requests_chart({"roomy": roomy, "full pool": full}, title="A preempted request loses time, and no token")

# %% [markdown]
# The pairs are (request, how often). No token of an answer is lost. The price is more calls, tokens that are
# computed twice, and the time that a preempted request waits.
#
# ### Chunks, and what they cost
#
# One long prompt of 180 tokens arrives among requests that decode. How many tokens may a call have?

# %% tags=["demo"]
crowd = [(0, 8, 16)] * 4 + [(100, 180, 1)]
for budget in (256, 64, 32):
    run = serve_load(small, crowd, budget=budget)
    gaps = [gap for one in run["requests"][:4] for gap in gaps_of(one)]
    print(f"at most {budget:3} tokens: gaps of the others {sum(gaps) / len(gaps):.1f} on average, longest "
          f"{max(gaps):3}; first token of the long prompt after {waits_of(run)[-1]}, "
          f"in {sum(4 in dict(call['parts']) for call in run['calls'])} of {len(run['calls'])} calls")

# %% [markdown]
# The others' longest gap falls with the chunk. **Their mean gap and their mean latency stay the same: both
# hide it.** The long prompt pays: it waits for more calls, 7 instead of 1. (All requests together take 16
# calls each time: the chunks ride in calls that the others need anyway.)
#
# ### Prefix hits
#
# Questions 0, 1, 2 and 4 are about one document of 96 tokens (six full blocks), question 3 is about something
# else. With sharing, a full block that is still in the pool is not computed again. It stays there when its
# request is done, until somebody needs room, as question 3 does in a pool of 9:

# %% tags=["demo"]
document = list(range(300, 396))
asked = [document + [50 + k, 60 + k] for k in range(3)] + [list(range(20, 118)), document + [53, 63]]
for name, more in {"not shared": {}, "shared": {"share": True},
                   "shared, 9 blocks": {"share": True, "blocks": 9}}.items():
    run = serve_load(small, [(400 * k, 98, 3) for k in range(5)], prompts=asked, **more)
    print(f"{name:17} (request, tokens) of each prefill:",
          [part for call in run["calls"] for part in call["parts"] if part[1] > 1])

# %% [markdown]
# ### Reconcile
#
# What does a call cost on **this** machine? The next cell measures some calls, and fits `call` and `token` in
# milliseconds. Then the engine runs on the real clock (`cost=None`), at two loads. (Times are never
# graded.)

# %%
def measured_cost():
    """{"call": ms, "token": ms}, by least squares over the calls of two short runs."""
    calls = serve_load(model, [(0, 200, 3)] * 3, budget=128, cost=None)["calls"]
    calls += serve_load(model, [(0, 16, 10)] * 4, cost=None)["calls"]
    rows = torch.tensor([[1.0, sum(count for _, count in call["parts"])] for call in calls[1:]])
    times = torch.tensor([[call["end"] - call["start"]] for call in calls[1:]])
    found = torch.linalg.lstsq(rows, times).solution.flatten().clamp(min=0.001).tolist()
    return dict(zip(("call", "token"), found))

# %% tags=["demo"]
from inferlab.lab import when_written

cost = measured_cost()
print(f"here: {cost['call']:.2f} ms a call, {cost['token']:.3f} ms a token")
with when_written("forecast"):
    alone = 10 * cost["call"] + 33 * cost["token"]
    for name, gap in {"light": 1.5 * alone, "busy": 0.45 * alone}.items():
        run = serve_load(model, [(gap * k, 24, 10) for k in range(12)], cost=None)
        stays = [run["requests"][r]["tokens"][-1] - begins_of(run)[r] for r in range(3, 9)]
        told = forecast(gap, 24, 10, 8, cost)
        print(f"{name:6} a request every {gap:5.1f} ms: busy {told['busy']:.0%}, latency forecast "
              f"{told['latency'] or float('nan'):6.1f} ms, measured {sum(stays) / len(stays):6.1f} ms")
    for gap in (400, 275, 150, 90, 70, 60):
        told = forecast(gap, 24, 12, 8, COST)
        print(f"every {gap} ticks: busy {told['busy']:4.0%}, batch {told['batch']:4.1f}, "
              f"latency {'without end' if told['latency'] is None else round(told['latency'])}, "
              f"{told['rate']:.0f} tokens in 1,000 ticks")

# %% [markdown]
# Look at `busy` in the last lines. With one request in 275 ticks the machine never rests, and it can still
# take four times as much. **Busy all the time is no goal and no alarm:** it says only that some call runs.
# The batch says how near the capacity is.

# %% [markdown]
# ## 4 · Read
#
# The library's scheduler goes through its candidates, those that decode first. (A candidate is *active* if it
# runs already.)

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.generation.continuous_batching.scheduler import Scheduler

show_source(
    Scheduler._process_candidates,
    {
        "request_len = min(len(request_tokens), token_budget)":
            "A prompt gets what is left of the budget: a chunk.",
        "request_fits = self.cache.can_store_request_tokens(state, request_len)":
            "The blocks of this chunk are taken here, or not at all.",
        "if not request_fits:": "No room: the loop goes on. So a later request may overtake this one.",
        "self.starved_requests.append((state, request_len))":
            "A running request without room for its next token starves.",
    },
    excerpts=[("request_len = min(len(request_tokens), token_budget)",
               "request_len = min(len(request_tokens), token_budget)"),
              ("request_fits = self.cache.can_store_request_tokens(state, request_len)",
               "self.starved_requests.append((state, request_len))")],
    checked="5.24.0",
)

# %% [markdown]
# A request that is done gives its blocks back. Full pages stay in the pool as cached blocks. And what happens
# when somebody starves:

# %% jupyter={"source_hidden": true}
from transformers.generation.continuous_batching.offloading_manager import OffloadingManager

show_source(
    OffloadingManager.offload_requests,
    {
        "cached_blocks_evicted = self.cache.evict_cached_blocks()":
            "First the pages that nobody uses, all of them at once: later prefix hits are lost.",
        "state, _ = starved.pop()":
            "Then the last of those that starve: the newest. The oldest goes on, so somebody finishes.",
        "self.cache.free_blocks(state.request_id, no_cache=True)":
            "Its blocks are free at once. What another request shares with it stays.",
        "cpu_offloaded = self._offload_to_cpu(offloaded, offloaded_block_tables)":
            "Moved to the host's memory, whole blocks, if room was set aside there (`cpu_offload_space`).",
        "new_state = state.create_equivalent_initial_request()":
            "Otherwise it becomes a new request: its prompt and the tokens that it has made are one prompt.",
        "scheduler.add_waiting_request(new_state)": "At the end of the queue, behind whoever came later.",
        "scheduler.block_new_requests = True": "Nobody is admitted until a request is done.",
    },
    excerpts=[("cached_blocks_evicted = self.cache.evict_cached_blocks()",
               "cached_blocks_evicted = self.cache.evict_cached_blocks()"),
              ("state, _ = starved.pop()", "self.cache.free_blocks(state.request_id, no_cache=True)"),
              ("cpu_offloaded = self._offload_to_cpu(offloaded, offloaded_block_tables)",
               "cpu_offloaded = self._offload_to_cpu(offloaded, offloaded_block_tables)"),
              ("new_state = state.create_equivalent_initial_request()",
               "scheduler.block_new_requests = True")],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · A scheduler
#
# *difficulty 3 of 3 · 12 minutes · 5 points*
#
# Write `decide(state)`: who takes part in the next call, how many cached blocks are given up, and who is
# preempted. Only return the decision: whoever calls `decide` carries it out. `state` is a `dict`:
#
# | key | meaning |
# |---|---|
# | `"slots"` | how many requests may run |
# | `"budget"` | how many tokens a call may have; larger than `slots` |
# | `"page"` | tokens in a block |
# | `"free"`, `"cached"` | free blocks; cached blocks, which nobody uses |
# | `"running"` | tuples `(request, stored, left)`, the newest last. `stored`: tokens in its blocks. `left`: tokens of its prompt still to be computed; if 0, it decodes. Only the newest may have some left |
# | `"waiting"` | tuples `(request, 0, left)`, in the order of the queue; who was preempted is at its front |
#
# A request with `n` stored tokens has `n / page` blocks, rounded up. Returns a `dict` with `"chunks"`, a list
# of tuples `(request, tokens)`; `"evict"`, a number of cached blocks, `int`; and `"preempt"`, a list of
# requests. The rules (not quite the library's):
#
# 1. **Running requests first**, in their order. One that decodes gets 1 token. One in its prompt gets what is
#    left of the prompt, or of the budget if that is less.
# 2. Free and cached blocks are the room. While a running request has too little for its tokens, the
#    **newest** running request is preempted, and its blocks are room at once. It may be that request itself.
# 3. Then, **if nobody was preempted**, waiting requests in the order of the queue get tokens as in rule 1.
#    Nobody overtakes: stop at the first one that lacks a slot, budget or room for its chunk.
# 4. **Cached blocks go before requests:** evict only as many as the call needs beyond the free ones. If
#    somebody is preempted, evict all.
#
# The two loops are written. `running`: those who still run. In the first loop, `one` may have been preempted
# already, to make room for an older request. Then skip it. Graded: single states, and whole loads (yours is
# one) that are served by your decisions.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What is the room at the beginning? Who is the newest in <code>running</code>? What changes after each
# chunk?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>while need &gt; room and one in running</code>: pop the last of <code>running</code>, note it, add its
# blocks to the room. If <code>one</code> still runs: note the chunk, lower budget and room. The loop over the
# waiting ones breaks at the first that does not fit. At the end <code>free + cached - room</code> blocks are
# used (if nobody was preempted).
# </details>

# %% exercise="decide" provides=["decide"] difficulty=3 minutes=12
def decide(state):
    """The next call: {"chunks": [(request, tokens), ...], "evict": blocks, "preempt": [requests]}."""
    page, budget = state["page"], state["budget"]
    running, preempt, chunks = list(state["running"]), [], []
    ### BEGIN SOLUTION
    room = state["free"] + state["cached"]
    ### END SOLUTION
    for one in state["running"]:
        request, stored, left = one
        tokens = min(left, budget) if left else 1
        need = -(-(stored + tokens) // page) - -(-stored // page)  # blocks that it does not have yet
        ### BEGIN SOLUTION
        while need > room and one in running:
            victim = running.pop()
            preempt.append(victim[0])
            room += -(-victim[1] // page)
        if one in running:
            chunks.append((request, tokens))
            budget, room = budget - tokens, room - need
        ### END SOLUTION
    ### BEGIN SOLUTION
    if preempt:
        return {"chunks": chunks, "evict": state["cached"], "preempt": preempt}
    ### END SOLUTION
    for request, _, left in state["waiting"]:
        tokens = min(left, budget)
        need = -(-tokens // page)
        ### BEGIN SOLUTION
        if len(running) == state["slots"] or tokens == 0 or need > room:
            break
        running.append(request)
        chunks.append((request, tokens))
        budget, room = budget - tokens, room - need
        ### END SOLUTION
    ### BEGIN SOLUTION
    used = state["free"] + state["cached"] - room
    return {"chunks": chunks, "evict": max(0, used - state["free"]), "preempt": []}
    ### END SOLUTION

# %% check="decide" points=5
from inferlab.lab import Check

check = Check("decide", points=5)

def decided(running=(), waiting=(), free=99, cached=0, slots=4, budget=20):
    """The learner's decision on a state with pages of 4, once it has the form that the contract asks for."""
    state = {"slots": slots, "budget": budget, "page": 4, "free": free, "cached": cached,
             "running": list(running), "waiting": list(waiting)}
    got = check.plain(check.learner.decide(state))
    check.true(isinstance(got, dict) and set(got) == {"chunks", "evict", "preempt"},
               "return a dict with exactly the three keys")
    return got

with check.part("two that decode, and a newcomer", weight=1):
    got = decided([("a", 9, 0), ("b", 6, 0)], [("c", 0, 7)])
    check.equal(got, {"chunks": [("a", 1), ("b", 1), ("c", 7)], "evict": 0, "preempt": []})
### HIDDEN TESTS
check.score()

# %% [markdown]
# Your scheduler and the library's, on your load. With room enough both should make the same calls. In the
# full pool they differ: with yours a preempted request goes to the front of the queue, and nobody overtakes.

# %%
from inferlab.lab.kits.service.load import replay

# %% tags=["demo"]
with when_written("decide"):
    for name, blocks, theirs in (("roomy", 128, roomy), ("full pool", 9, full)):
        mine = replay(decide, load, slots=8, budget=64, page=16, blocks=blocks)
        same = [call["parts"] for call in mine["calls"]] == [call["parts"] for call in theirs["calls"]]
        print(f"{name:9} same calls: {same}; {mine['broken'] or 'no rule broken'}")
        for whose, run in {"yours": mine, "library": theirs}.items():
            if not mine["broken"]:
                gone = sum(len(one["preempted"]) for one in run["requests"])
                print(f"    {whose:8} last token at {run['calls'][-1]['end']}, longest wait for a first "
                      f"token {waits_of(run)[-1]}, preempted {gone} times")

# %% [markdown]
# ### Exercise 3 · Compute again, move, or hand over
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
#
# (This one is practice.) A preempted request is computed again, or its blocks are moved away and back. With
# **separate prefill and decode** one machine computes the prompt, hands its blocks over, and another machine
# decodes. Write `bill(case)`. `case` is a `dict` of numbers:
#
# | key | meaning |
# |---|---|
# | `"layers"`, `"kv_heads"`, `"head_dim"`, `"item_bytes"` | what a token takes in the cache: in each layer a key and a value for each KV head |
# | `"page"` | tokens in a block; only whole blocks are moved |
# | `"prompt"`, `"new"` | tokens of the prompt, and tokens to generate |
# | `"made"` | tokens generated before the preemption, at least 1; the last of them is not stored yet |
# | `"shared"` | how many of the first tokens stay, because another running request has their blocks, too |
# | `"call"`, `"token"`, `"link"` | ticks of a call and of each token in it; bytes that the link moves in a tick |
#
# Returns a `dict`:
#
# | key | value |
# |---|---|
# | `"again"` | tokens in the call that computes it again, and so makes its next token |
# | `"moved"` | bytes over the link if all its blocks, shared ones as well, go out and come back |
# | `"cheaper"` | `"recompute"` (one call with `again` tokens) or `"move"` (`moved` over the link), by ticks; on a tie `"move"` |
# | `"handed"` | bytes that a prefill machine hands over for one prompt |
# | `"together"`, `"apart"` | ticks from the first call to the last token of a request that is alone, on one machine, and on two |
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which tokens are stored when <code>made</code> tokens have been made? What goes out also comes back. Does a
# hand-over shorten any call of a request that is alone?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# A token takes <code>2 * layers * kv_heads * head_dim * item_bytes</code>. Again: <code>prompt + made -
# shared</code>. Moved: twice the blocks of <code>prompt + made - 1</code> tokens. Handed: once the blocks of
# the prompt. Together: <code>new</code> calls with <code>prompt + new - 1</code> tokens in all. Apart: the
# same, plus the hand-over.
# </details>

# %% exercise="bill" provides=["bill"] difficulty=2 minutes=6
def bill(case):
    """Tokens, bytes and ticks of a preemption and of a hand-over."""
    token = 2 * case["layers"] * case["kv_heads"] * case["head_dim"] * case["item_bytes"]
    block = token * case["page"]  # both in bytes; case["token"] is in ticks
    ### BEGIN SOLUTION
    again = case["prompt"] + case["made"] - case["shared"]
    moved = 2 * block * -(-(case["prompt"] + case["made"] - 1) // case["page"])
    handed = block * -(-case["prompt"] // case["page"])
    together = case["call"] * case["new"] + case["token"] * (case["prompt"] + case["new"] - 1)
    computing = case["call"] + case["token"] * again
    return {"again": again, "moved": moved, "handed": handed,
            "cheaper": "recompute" if computing < moved / case["link"] else "move",
            "together": together, "apart": together + handed / case["link"]}
    ### END SOLUTION

# %% check="bill" points=3
from inferlab.lab import Check, reference

check = Check("bill", points=3)
one_layer = {"layers": 1, "kv_heads": 2, "head_dim": 8, "item_bytes": 2, "page": 4, "prompt": 8, "new": 3,
             "made": 1, "shared": 0, "call": 10, "token": 1, "link": 64}

def billed(case):
    """The learner's bill, once it has the form that the contract asks for."""
    got = check.plain(check.learner.bill(dict(case)))
    keys = {"again", "moved", "cheaper", "handed", "together", "apart"}
    check.true(isinstance(got, dict) and set(got) == keys,
               "return a dict with exactly the six keys")
    return got

with check.part("ticks on one machine, where they can be counted in the head", weight=1):
    check.close(billed(one_layer)["together"], 40, tol=1e-9)
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("bill"):
    shape = model.config
    case = {"layers": shape.num_hidden_layers, "kv_heads": shape.num_key_value_heads,
            "head_dim": shape.head_dim, "item_bytes": model.dtype.itemsize, "page": 16, "prompt": 40,
            "new": 12, "made": 6, "shared": 0, "link": 4096, **COST}
    print("a block of the engine:", full["block_bytes"], "bytes;", bill(case))
    print("with a shared prefix: ", {key: bill({**case, "shared": 32})[key] for key in ("again", "cheaper")})

# %% [markdown]
# `apart` is never less than `together`: **a second machine makes no single request faster.** The others gain:
# no prompt comes into the calls of the machine that decodes, so their gaps stay short.
#
# ### Exercise 4 · Which service keeps its promise?
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# Services A and B are the library's engine under the same load, with different settings, which depend on your
# name. Their monitors say:

# %%
from inferlab.lab.kits.service.load import VARIANTS, two_services

services = two_services(small, lab.variant(VARIANTS))

# %% tags=["demo"]
for name, run in services.items():
    stays = [one["tokens"][-1] - one["arrival"] for one in run["requests"]]
    gaps = [gap for one in run["requests"] for gap in gaps_of(one)]
    print(f"{name}: mean latency {sum(stays) / len(stays):.0f}, mean gap {sum(gaps) / len(gaps):.1f}, "
          f"busy {sum(call['end'] - call['start'] for call in run['calls']) / run['calls'][-1]['end']:.0%}")
print("promised:", TARGET)
requests_chart(services, title="Two services, one load")

# %% [markdown]
# Write `verdict(services, target)`. `services` has a `dict` for each name. Its `"requests"` are a `dict`
# each: `"arrival"`, a tick; `"tokens"`, the ticks at which its tokens came; `"preempted"`, the ticks at which
# it lost its blocks. Its `"calls"` have a `"start"` and an `"end"`. A request is **good** if its first token
# comes at most `target["first"]` ticks after its arrival, and none of its gaps is longer than
# `target["gap"]`. (Each has two tokens or more.) Returns a `dict`:
#
# | key | value |
# |---|---|
# | `"goodput"` | for each name the good requests in 1,000 ticks, from the first arrival to the end of the last call |
# | `"better"` | the name with the larger goodput |
# | `"cause"` | the most frequent cause of the **other** service's bad requests (on a tie, the first) |
#
# For a bad request the cause is `"preemption"` if it was ever preempted; otherwise `"queue"` if its first
# token was late; otherwise `"prefill"`: only a prompt in the same call makes a gap that long.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A mean of gaps hides the one that was too long. Which number of a request's gaps decides?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# In <code>cause</code>, compare the first token's wait and the largest gap with the target. Goodput is 1000
# times the number of <code>None</code>, over <code>calls[-1]["end"]</code> minus the first request's arrival.
# </details>

# %% exercise="verdict" provides=["verdict"] difficulty=2 minutes=6
def verdict(services, target):
    """Goodput of each service, which is better, and what spoils the other."""
    def cause(one):
        """Why a request is bad: "preemption", "queue" or "prefill"; None if it is good."""
        ### BEGIN SOLUTION
        tokens = one["tokens"]
        late = tokens[0] - one["arrival"] > target["first"]
        if not late and max(b - a for a, b in zip(tokens, tokens[1:])) <= target["gap"]:
            return None
        return "preemption" if one["preempted"] else "queue" if late else "prefill"
        ### END SOLUTION

    causes = {name: [cause(one) for one in run["requests"]] for name, run in services.items()}
    goodput = {}
    ### BEGIN SOLUTION
    for name, run in services.items():
        ticks = run["calls"][-1]["end"] - run["requests"][0]["arrival"]
        goodput[name] = 1000 * causes[name].count(None) / ticks
    better = max(goodput, key=goodput.get)
    other = [one for name in services if name != better for one in causes[name] if one]
    return {"goodput": goodput, "better": better, "cause": max(other, key=other.count)}
    ### END SOLUTION

# %% check="verdict" points=2
from inferlab.lab import Check, reference

check = Check("verdict", points=2)

def judged(pair, target):
    """The learner's verdict, once it has the form that the contract asks for."""
    got = check.plain(check.learner.verdict(pair, dict(target)))
    check.true(isinstance(got, dict) and set(got) == {"goodput", "better", "cause"}
               and isinstance(got["goodput"], dict) and set(got["goodput"]) == set(pair),
               "return a dict with goodput (a number for each name), better and cause")
    return got

def single(*tokens):
    """A service with one request that arrives at 0."""
    request = {"arrival": 0, "prompt": 4, "new": len(tokens), "tokens": list(tokens), "preempted": []}
    return {"requests": [request],
            "calls": [{"start": 0, "end": tokens[-1], "parts": [(0, 4)], "held": 1}]}

with check.part("one request each: one is on time, one is late", weight=1):
    got = judged({"A": single(10, 20, 50), "B": single(40, 50, 60)}, {"first": 30, "gap": 30})
    check.equal((got["better"], got["cause"]), ("A", "queue"))
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("verdict"):
    print(verdict(services, TARGET))

# %% [markdown]
# ## 6 · Explain
#
# Say what load does to a service. In `state`, `price`, `load` and `apart` you write short sentences, one a
# line, from the tables below: an entry of `who`, a verb and an entry of its row. In `price`, calls are those
# of the long prompt. From section 3, type in `gap` the others' longest gap with at most 32 tokens in a call,
# and in `hit` how many tokens the prefill of question 4 computed in the run `shared, 9 blocks`. Lines that
# begin with `#` are your notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 1 of 3 · 6 minutes · 3 points.* The cell shows how each line is read, and that reading is
# graded when you hand in. A field is worth half a point; one false sentence costs it. `load` needs two
# sentences, the other three fields three each. A line that is not read waits for a person.

# %% explain="load-in-words" difficulty=1 minutes=6
%%explain load-in-words
# ### BEGIN SOLUTION
# state: a preempted request keeps its generated tokens
#   it loses its keys and values and its time
# price: smaller chunks lower the longest gap of the others
#   they raise the number of calls and the first token of the long prompt
# load: a busy share of 100% hides how much more load fits
#   the mean latency hides the tail
# apart: the prefill machine hands over the keys and values of the prompt
#   separate machines lower the longest gap of the others and raise the latency of a single request
# gap: 52
# hit: 98
# ### END SOLUTION

# %% check="words-state" of="load-in-words" points=1
from inferlab.lab import Check

check = Check("words-state", points=1)
with check.part("`state:` and `price:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("load-in-words").get("state"), "`state:` is empty")
    check.true(check.explanation("load-in-words").get("price"), "`price:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-load" of="load-in-words" points=1
from inferlab.lab import Check

check = Check("words-load", points=1)
with check.part("`load:` and `apart:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("load-in-words").get("load"), "`load:` is empty")
    check.true(check.explanation("load-in-words").get("apart"), "`apart:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-entries" of="load-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-entries", points=1)
with check.part("`gap:` and `hit:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("load-in-words").get("gap"), "`gap:` is empty")
    check.true(check.explanation("load-in-words").get("hit"), "`hit:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **A mean latency does not say enough.** A promise is broken by single requests and single gaps.
# * **100% utilization is not the goal.** Long before a service is full, some call runs all the time.
# * **Preemption loses no token of an answer.** It costs time, and tokens that are computed again, or bytes.

# %% [markdown]
# Flashcards on inference, for now or for another day. Some belong to other labs:

# %% tags=["demo"]
from inferlab.lab.cards import show_cards

show_cards("inference")

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
