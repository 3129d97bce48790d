# %% [markdown]
# # Lab 23 · A service under load
#
# Requests come when they like. They queue, share calls (runs of the model) and fight for blocks of the cache.
# You predict how long requests take at several loads, run the library's engine, write the core of a
# scheduler, and say which of two services keeps its promise.
#
# **Time** 50 to 60 minutes · **Points** 16 · **Reading**
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
    COST, TARGET, arrivals, begins_of, computed, gaps_of, requests_chart, serve_load, waits_of,
)
from inferlab.models import load_language_model

torch.set_grad_enabled(False)
model, _ = load_language_model(MODEL, lab.device)
small, _ = load_language_model(MODEL, lab.device, draft=True)  # a smaller model, where only calls are counted
print("a call of the model takes", COST["call"], "ticks, and", COST["token"], "more for each token in it")

# %% [markdown]
# `serve_load` runs the library's engine. It makes every decision, and each call is real. Only the clock is
# made up: it counts ticks, so that a run is the same on every machine. Each call reads all weights, which
# here takes as long as computing 20 tokens (on a large GPU it is hundreds).

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say what a load does to each request, and who goes when the pool of blocks is full.

# | word | meaning |
# |---|---|
# | **time to first token** | from the arrival to the first token: waiting in the queue, and the prefill |
# | **gap** | from one token of a request to its next one |
# | **tail** | the slowest few |
# | **goodput** | requests in a unit of time that keep **every** promise, such as "first token in 250 ticks, no gap over 100" |
# | **Little's law** | requests in the service = arrivals in a tick x ticks that a request stays |
#
# A call carries one token for each request that decodes, and prompts, whole or in **chunks**. All requests in
# a call wait for its end, so its ticks are everybody's gap. A block holds one page, here 16 tokens. When the
# pool of blocks is full, something must go: first **cached blocks**, full blocks of requests that are done (a
# prompt that begins alike could have used them: a **prefix hit**). Then a running request is **preempted**:
# its blocks are freed, and later it is computed again; or its blocks are **moved** to the host's memory and
# back.
#
# ![Left, ticks that requests stay against the load: the mean and, above it, the 95th percentile rise
# steeply near the capacity; the machine is busy from half of it on. Right, one long call with a whole prompt,
# or several with a chunk each.](../../handbook/figures/lab23-load.svg)
#
# *From the handbook.*

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · A steady load
#
# *difficulty 3 of 3 · 9 minutes · 4 points*
#
# One request arrives every `gap` ticks, for ever, and does not wait for answers (an **open loop**). Each has
# a prompt of `prompt` tokens. Its first call computes the whole prompt and makes the first token. Each later
# call computes the token made last and makes the next, until there are `new`. At most `slots` requests take
# part in a call. A call takes `cost["call"]` ticks, plus `cost["token"]` for each token that it computes. The
# cache is large enough.
#
# **Before you run anything further**, complete `forecast`. It returns for the steady state `"busy"`, the
# share of time in which a call runs; `"latency"`, ticks from a request's first call to its last token, or
# `None` if the queue grows without end; and `"rate"`, tokens generated in 1,000 ticks. Write:
#
# * First place: `full`, what a request costs if all slots are full, so that `slots` requests share
#   `cost["call"]` of each call.
# * Second place, where calls follow each other without a pause: `batch`, the mean number of requests in a
#   call, and `latency`. In each `gap` one request comes and one ends.
#
# Your forecast is compared, to within 10%, with runs of the engine that this notebook never makes.
#
# <details><summary>Hint 1: a nudge</summary>
#
# How many ticks of a <code>gap</code> go into the tokens of one request? The rest is for the calls' own
# ticks: how many calls is that? A request takes part in <code>new</code> calls. Little's law turns a number
# of requests into ticks.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>full = work + call * new / slots</code>. <code>(gap - work) / call</code> calls fit into a gap, the
# batch is <code>new</code> over that number, and the latency is the batch times the gap.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=3 minutes=9
def forecast(gap, prompt, new, slots, cost):
    """Busy share, latency and rate of a service with one request every `gap` ticks."""
    work = cost["token"] * (prompt + new - 1)  # ticks for the tokens of one request
    alone = work + cost["call"] * new  # if nobody shares its calls
    ### BEGIN SOLUTION
    full = work + cost["call"] * new / slots
    ### END SOLUTION
    busy, latency = 1.0, None
    if alone <= gap:  # a request is gone before the next one comes
        busy, latency = alone / gap, alone
    elif full <= gap:
        ### BEGIN SOLUTION
        batch = new * cost["call"] / (gap - work)
        latency = batch * gap
        ### END SOLUTION
    return {"busy": busy, "latency": latency, "rate": 1000 * new / max(gap, full)}

# %% check="forecast" points=4
from inferlab.lab import Check, reference

check = Check("forecast", points=4)

def told_of(*run):
    """The learner's forecast, once it has the form that the contract asks for."""
    got = check.learner.forecast(*run)
    check.true(isinstance(got, dict) and set(got) == {"busy", "latency", "rate"},
               "return a dict with exactly the three keys")
    for key in ("busy", "rate") + (() if got["latency"] is None else ("latency",)):
        got[key] = check.number(got[key], f"{key} is a number")
    return got

with check.part("too much, where the rate can be counted in the head", weight=1):
    check.close(told_of(50, 11, 10, 3, {"call": 30, "token": 2})["rate"], 71.43, tol=0.01)
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
for call in roomy["calls"][:6]:
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
# The pairs are (request, how often). No token of an answer is lost. The price is tokens that are computed
# twice, and the time that a preempted request waits.
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
          f"{max(gaps):3}, mean latency {sum(one['tokens'][-1] for one in run['requests'][:4]) / 4:.0f}; "
          f"first token of the long prompt after {max(waits_of(run))}")

# %% [markdown]
# The others' longest gap falls with the chunk. **Their mean gap and their mean latency stay the same: both
# hide it.** The long prompt pays: it waits for more calls.
#
# ### Prefix hits
#
# Questions 0, 1, 2 and 4 are about one document of 96 tokens (six full blocks), question 3 is about something
# else. With sharing, a full block that is still in the pool is not computed again. It stays there when its
# request is done, until somebody needs room, as question 3 does in a pool of 9:

# %% tags=["demo"]
document = list(range(300, 396))
asked = [document + [50 + k, 60 + k] for k in range(3)] + [list(range(20, 118)), document + [53, 63]]
for blocks in (128, 9):
    run = serve_load(small, [(400 * k, 98, 3) for k in range(5)], prompts=asked, share=True, blocks=blocks)
    print(f"{blocks:3} blocks, (request, tokens) of each prefill:",
          [part for call in run["calls"] for part in call["parts"] if part[1] > 1])

# %% [markdown]
# With 9 blocks request 4 computes the whole document again: its blocks were evicted for question 3.
#
# ### Reconcile
#
# Your forecast at several loads, and the engine's run:

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("forecast"):
    for gap in (400, 275, 150, 90, 70, 60):
        run = serve_load(small, [(gap * k, 24, 12) for k in range(24)])
        stays = [run["requests"][r]["tokens"][-1] - begins_of(run)[r] for r in range(8, 16)]
        told = forecast(gap, 24, 12, 8, COST)
        print(f"every {gap} ticks: busy {told['busy']:4.0%}, {told['rate']:3.0f} tokens in 1,000 ticks, "
              f"latency {told['latency'] and round(told['latency'])}, of the engine {sum(stays) / 8:.0f}")

# %% [markdown]
# With one request in 275 ticks the machine never rests, and it can still take four times as much. **Busy all
# the time is no goal and no alarm:** it says only that some call runs. (In the last line the queue grows: a
# run that never ended would have no latency.)
#
# And on this machine's clock: the cell measures in milliseconds what a call and a token cost, by least
# squares over a few calls. From these costs your forecast predicts two loads. (Times are never graded.)

# %% tags=["demo"]
calls = serve_load(model, [(0, 200, 3)] * 3, budget=128, cost=None)["calls"][1:]
calls += serve_load(model, [(0, 16, 10)] * 4, cost=None)["calls"][1:]
rows = torch.tensor([[1.0, sum(tokens for _, tokens in call["parts"])] for call in calls])
times = torch.tensor([[call["end"] - call["start"]] for call in calls])
found = torch.linalg.lstsq(rows, times).solution.flatten().clamp(min=0.001).tolist()
cost = dict(zip(("call", "token"), found))
print(f"{cost['call']:.2f} ms a call, {cost['token']:.3f} ms a token")
with when_written("forecast"):
    alone, full_cost = (33 * cost["token"] + 10 * cost["call"] / sharing for sharing in (1, 8))
    for name, gap in {"light": 1.5 * alone, "busy": (alone + full_cost) / 2}.items():
        run = serve_load(model, [(gap * k, 24, 10) for k in range(10)], cost=None)
        stays = [run["requests"][r]["tokens"][-1] - begins_of(run)[r] for r in range(3, 8)]
        print(f"{name:5} a request every {gap:4.0f} ms: latency predicted "
              f"{forecast(gap, 24, 10, 8, cost)['latency'] or 0:4.0f} ms, measured {sum(stays) / 5:4.0f} ms")

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
        "new_state = state.create_equivalent_initial_request()":
            "If it is not moved, it becomes a new request: its prompt and the tokens that it has made.",
        "scheduler.add_waiting_request(new_state)": "At the end of the queue, behind whoever came later.",
    },
    excerpts=[("cached_blocks_evicted = self.cache.evict_cached_blocks()",
               "cached_blocks_evicted = self.cache.evict_cached_blocks()"),
              ("state, _ = starved.pop()", "state, _ = starved.pop()"),
              ("new_state = state.create_equivalent_initial_request()",
               "scheduler.add_waiting_request(new_state)")],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · A scheduler
#
# *difficulty 3 of 3 · 12 minutes · 5 points*
#
# Complete `decide(state)`: who takes part in the next call, how many cached blocks are given up, and who is
# preempted. It only returns the decision. `state` is a `dict`:
#
# | key | meaning |
# |---|---|
# | `"slots"` | how many requests may run |
# | `"budget"` | how many tokens a call may have; larger than `slots` |
# | `"page"` | tokens in a block |
# | `"free"`, `"cached"` | free blocks; cached blocks, which nobody uses |
# | `"running"` | tuples `(request, stored, left)`, the newest last. `stored`: tokens in its blocks. `left`: tokens of its prompt still to be computed (after a preemption also those that it had made); if 0, it decodes. Only the newest may have some left |
# | `"waiting"` | tuples `(request, 0, left)`, in the order of the queue; who was preempted is at its front |
#
# It returns `"chunks"`, a list of tuples `(request, tokens)`; `"evict"`, a number of cached blocks; and
# `"preempt"`, a list of requests. The rules (not quite the library's), of which the code has 1, 3 and 5:
#
# 1. **Running requests first**, in their order. One that decodes gets 1 token. One in its prompt gets what is
#    left of the prompt, or of the budget if that is less.
# 2. Free and cached blocks are the room: **cached blocks go before requests**. While a running request needs
#    more, the **newest** running request is preempted, and its blocks are room at once. It may be that
#    request itself.
# 3. If somebody was preempted, nobody is admitted, and all cached blocks are evicted.
# 4. Otherwise waiting requests get tokens as in rule 1, in the order of the queue. Nobody overtakes: stop at
#    the first one that lacks a slot, budget (no `tokens` are left for it) or room for its chunk.
# 5. Without a preemption, evict only as many cached blocks as the call needs beyond the free ones.
#
# Write the three places: `room`, a preemption, the condition to stop. In the code `running` are those who
# still run, and `need` is how many blocks a request lacks. Graded: single states, and whole loads (yours is
# one) that are served by your decisions.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What is the room at the beginning? Who is the newest in <code>running</code>? Which blocks does a preemption
# free?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Preempt: <code>victim = running.pop()</code>, append <code>victim[0]</code> to <code>preempt</code>, add
# <code>blocks(victim[1])</code> to the room. Stop if <code>len(running) == state["slots"]</code>, or no
# tokens are left, or <code>need &gt; room</code>.
# </details>

# %% exercise="decide" provides=["decide"] difficulty=3 minutes=12
def decide(state):
    """The next call: {"chunks": [(request, tokens), ...], "evict": blocks, "preempt": [requests]}."""
    def blocks(tokens):
        return -(-tokens // state["page"])

    running, budget, preempt, chunks = list(state["running"]), state["budget"], [], []
    ### BEGIN SOLUTION
    room = state["free"] + state["cached"]
    ### END SOLUTION
    for one in state["running"]:
        request, stored, left = one
        tokens = min(left, budget) if left else 1
        need = blocks(stored + tokens) - blocks(stored)
        while need > room and one in running:
            ### BEGIN SOLUTION
            victim = running.pop()
            preempt.append(victim[0])
            room += blocks(victim[1])
            ### END SOLUTION
        if one in running:
            chunks.append((request, tokens))
            budget, room = budget - tokens, room - need
    if preempt:
        return {"chunks": chunks, "evict": state["cached"], "preempt": preempt}
    for request, _, left in state["waiting"]:
        tokens = min(left, budget)
        need = blocks(tokens)
        ### BEGIN SOLUTION
        if len(running) == state["slots"] or tokens == 0 or need > room:
            break
        ### END SOLUTION
        running.append((request, 0, left))
        chunks.append((request, tokens))
        budget, room = budget - tokens, room - need
    evict = max(0, state["cached"] - room)
    return {"chunks": chunks, "evict": evict, "preempt": []}

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
                      f"token {max(waits_of(run))}, preempted {gone} times")

# %% [markdown]
# ### Compute again, move, or hand over
#
# A preempted request is computed again: its prompt and the tokens made so far, as a prompt. Or its blocks are
# moved away and back, whole blocks over a link. Which is cheaper depends on the link.
#
# With **separate prefill and decode** one machine computes the prompt and hands its blocks over, once, and
# another machine decodes. A request that is alone has the same calls as before, and the hand-over: **a second
# machine makes no request that is alone faster.** Under load, those that decode gain: no prompt comes into
# their calls, so their gaps stay short.
#
# **Predict.** Llama 3 8B has 32 layers, 8 key/value heads of 128 numbers, and 2 bytes a number. A block has
# 16 tokens, and whole blocks are handed over, keys and values. How many bytes are that for a prompt of 1,000
# tokens? You type them in section 6.
#
# ### Exercise 3 · Which service keeps its promise?
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
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
# A request is **good** if its first token comes at most `target["first"]` ticks after its arrival, and none
# of its gaps is longer than `target["gap"]`. Complete `verdict(services, target)`:
#
# * `slow`: is a gap of the request `one` too long? `gaps_of(one)` lists them.
# * `goodput[name]`: good requests in 1,000 ticks. `ticks` is the length of the run.
# * `better`: the name with the larger goodput.
#
# The code finds the most frequent cause of the **other** service's bad requests: `"preemption"` if it was
# preempted; else `"queue"` if its first token was late; else `"prefill"`, a gap made longer by someone's
# prompt.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A mean of gaps hides the one that was too long. Which number of a request's gaps decides?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>max(gaps_of(one)) &gt; target["gap"]</code>. Goodput is 1000 times
# <code>causes[name].count(None)</code> over <code>ticks</code>.
# </details>

# %% exercise="verdict" provides=["verdict"] difficulty=2 minutes=6
def verdict(services, target):
    """Goodput of each service, which is better, and what spoils the other."""
    goodput, causes = {}, {}
    for name, run in services.items():
        causes[name] = []  # of each request, None if it is good
        for one in run["requests"]:
            late = one["tokens"][0] - one["arrival"] > target["first"]
            ### BEGIN SOLUTION
            slow = max(gaps_of(one)) > target["gap"]
            ### END SOLUTION
            cause = "preemption" if one["preempted"] else "queue" if late else "prefill"
            causes[name].append(cause if late or slow else None)
        ticks = run["calls"][-1]["end"] - run["requests"][0]["arrival"]
        ### BEGIN SOLUTION
        goodput[name] = 1000 * causes[name].count(None) / ticks
        ### END SOLUTION
    ### BEGIN SOLUTION
    better = max(goodput, key=goodput.get)
    ### END SOLUTION
    bad = [one for name in services if name != better for one in causes[name] if one]
    return {"goodput": goodput, "better": better, "cause": max(bad, key=bad.count)}

# %% check="verdict" points=3
from inferlab.lab import Check, reference

check = Check("verdict", points=3)

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
# Say what load does to a service. In `preempted`, `load` and `apart` you write two short sentences each, one
# a line, from the tables below: an entry of `who`, a verb and an entry of its row. In `handed` type the bytes
# that you predicted for the hand-over. Lines that begin with `#` are notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 1 of 3 · 5 minutes · 4 points.* The cell shows how each line is read, and that is graded when
# you hand in. A field is worth a point; a false sentence or number costs it. A line that is not read waits
# for a person.

# %% explain="load-in-words" difficulty=1 minutes=5
%%explain load-in-words
# ### BEGIN SOLUTION
# preempted: a preempted request keeps its generated tokens
#   it loses its keys and values
# load: a busy share of 100% hides how much more load fits
#   the mean latency hides the tail
# apart: the prefill machine hands over the keys and values of the prompt
#   separate machines raise the latency of a lone request
# handed: 132120576 bytes
# ### END SOLUTION

# %% check="words-fields" of="load-in-words" points=3
from inferlab.lab import Check

check = Check("words-fields", points=3)
with check.part("`preempted:`, `load:` and `apart:` are filled in (graded when you hand it in)", weight=0):
    for field in ("preempted", "load", "apart"):
        check.true(check.explanation("load-in-words").get(field), f"`{field}:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-handed" of="load-in-words" points=1
from inferlab.lab import Check

check = Check("words-handed", points=1)
with check.part("`handed:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("load-in-words").get("handed"), "`handed:` is empty")
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
