"""The hidden tests of lab23-under-load:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def really(gap, prompt, new, slots, cost, count):
    """The truth: the library's engine under even arrivals, the first third and the last left out."""
    import torch
    from inferlab.lab.kits.service.load import begins_of, serve_load
    from inferlab.models import load_language_model

    model, _ = load_language_model("bundled", "cpu", draft=True)
    with torch.no_grad():
        run = serve_load(model, [(gap * k, prompt, new) for k in range(count)], slots=slots, cost=cost)
    since, until = run["requests"][count // 3]["arrival"], run["requests"][-1]["arrival"]
    calls = [call for call in run["calls"] if since <= call["start"] < until]
    stays = [run["requests"][r]["tokens"][-1] - begins_of(run)[r] for r in range(count // 3, 2 * count // 3)]
    return {"busy": sum(call["end"] - call["start"] for call in calls) / (until - since),
            "latency": sum(stays) / len(stays),
            "rate": 1000 * sum(since < tick <= until for one in run["requests"] for tick in one["tokens"])
            / (until - since)}

def near(said, truth):
    """Whether a number is within 10% of what was counted."""
    return said is not None and abs(said - truth) <= 0.1 * truth

def held(names, count, *run):
    """Holds entries of the learner's forecast of a run against the run, and names what it believes."""
    gap, prompt, new, _, price = run
    got, want = told_of(*run), really(*run, count)
    alone = price["token"] * (prompt + new - 1) + price["call"] * new
    check.mistake("a call carries a token of every request: its own ticks are shared, so more load fits",
                  when=alone > gap and got["latency"] is None)
    check.mistake("some call runs all the time as soon as requests overlap: that is no share of the capacity",
                  when=alone > gap and got["busy"] < 0.9)
    for name in names:
        check.mistake("busy all the time is not yet full: with more requests in a call each stays longer",
                      when=name == "latency" and alone > gap and not near(got[name], want[name])
                      and near(got[name], alone))
        check.mistake("the prompt takes ticks, too", when=not near(got[name], want[name])
                      and near(got[name], want[name] * (1 - price["token"] * prompt / alone))
                      and name in ("busy", "latency") and alone <= gap)
        check.true(near(got[name], want[name]),
                   f"{name}: you say {got[name]}, the engine's run has {want[name]:.3g}")

with check.part("a light load: busy and latency", weight=1):
    held(["busy", "latency", "rate"], 6, 700, 200, 8, 4, {"call": 30, "token": 1})
with check.part("a busy load: busy, latency and rate", weight=4):
    held(["latency", "busy", "rate"], 24, 100, 24, 12, 8, {"call": 20, "token": 1})
    held(["latency", "busy", "rate"], 24, 120, 30, 8, 8, {"call": 40, "token": 1})
with check.part("too much", weight=2):
    flood = (40, 24, 12, 4, {"call": 20, "token": 1})
    got, want = told_of(*flood), really(*flood, 30)
    check.mistake("the queue grows without end: no latency is steady", when=got["latency"] is not None)
    check.mistake("a service gives no more tokens than it can make: the rate is not that of the arrivals",
                  when=near(got["rate"], 1000 * 12 / 40))
    check.true(near(got["rate"], want["rate"]),
               f"rate: you say {got['rate']}, the engine's run has {want['rate']:.3g}")

# %% check="decide"
with check.part("a prompt in chunks, beside those that decode", weight=1):
    got = decided([("a", 9, 0), ("b", 6, 0), ("c", 12, 30)], [("d", 0, 5)])
    check.mistake("running requests that decode get their token first: the prompt gets what they leave",
                  when=dict(got["chunks"]).get("c", 0) > 18 or not {("a", 1), ("b", 1)} <= set(got["chunks"]))
    check.equal(got, {"chunks": [("a", 1), ("b", 1), ("c", 18)], "evict": 0, "preempt": []})
    got = decided([("a", 9, 0)], [("b", 0, 12), ("c", 0, 12), ("d", 0, 3)])
    check.equal(got["chunks"], [("a", 1), ("b", 12), ("c", 7)])
with check.part("slots, and an order that nobody overtakes", weight=1):
    got = decided([("a", 9, 0)], [("b", 0, 2), ("c", 0, 2)], slots=2)
    check.equal(got["chunks"], [("a", 1), ("b", 2)])
    got = decided([("a", 9, 0)], [("b", 0, 16), ("c", 0, 2)], free=2)
    check.mistake("nobody overtakes: the first that does not fit ends the admission, or it is starved",
                  when=("c", 2) in got["chunks"])
    check.equal(got, {"chunks": [("a", 1)], "evict": 0, "preempt": []})
with check.part("cached blocks go before requests, and no more of them than are needed", weight=2):
    got = decided([("a", 8, 0), ("b", 12, 0)], [("c", 0, 4)], free=1, cached=5)
    check.mistake("cached blocks count as room: nobody needs to wait or go while there are some",
                  when=bool(got["preempt"]) or len(got["chunks"]) < 3)
    check.mistake("more was evicted than is needed: prefix hits are lost", when=got["evict"] > 2)
    check.equal(got, {"chunks": [("a", 1), ("b", 1), ("c", 4)], "evict": 2, "preempt": []})
    got = decided([("a", 9, 0)], [], free=0, cached=5)
    check.equal(got, {"chunks": [("a", 1)], "evict": 0, "preempt": []})
with check.part("the newest goes, and nobody comes in its place", weight=2):
    for newest in (("c", 7, 0), ("c", 7, 9)):
        got = decided([("a", 8, 0), ("b", 12, 0), newest], [("d", 0, 4)], cached=1, free=0)
        check.mistake("the newest is preempted: the oldest is nearest to its end, and has waited longest",
                      when="a" in got["preempt"] or "b" in got["preempt"])
        check.mistake("whoever was preempted would have fitted better: nobody is admitted in this call",
                      when="d" in dict(got["chunks"]))
        check.equal(got, {"chunks": [("a", 1), ("b", 1)], "evict": 1, "preempt": ["c"]})
    got = decided([("a", 8, 0), ("b", 3, 0), ("c", 2, 0)], [], free=0)
    check.equal(got, {"chunks": [("a", 1), ("b", 1)], "evict": 0, "preempt": ["c"]})
    for newest in (("c", 4, 0), ("c", 4, 9)):
        got = decided([("a", 8, 0), ("b", 4, 0), newest], [], free=0)
        check.mistake("room comes from what the one who goes had stored, and from nothing else",
                      when=got["preempt"] == ["c"])
        check.equal(got, {"chunks": [("a", 1)], "evict": 0, "preempt": ["c", "b"]})
    got = decided([("a", 7, 0), ("b", 8, 0)], [], free=0)
    check.mistake("the request without room may be the newest itself", when=got["preempt"] == ["a"])
    check.equal(got, {"chunks": [("a", 1)], "evict": 0, "preempt": ["b"]})
with check.part("whole loads, replayed with your decisions: nobody starves, and the order holds", weight=3):
    from inferlab.lab.kits.service.load import arrivals, replay

    wasted = []

    def watched(state):
        """The learner's decision; `wasted` notes whether it preempts where blocks are enough."""
        told, budget, need = check.plain(check.learner.decide(state)), state["budget"], 0
        for _, stored, left in state["running"]:
            tokens = min(left, budget) if left else 1
            budget -= tokens
            need += -(-(stored + tokens) // state["page"]) + -stored // state["page"]
        gone = isinstance(told, dict) and bool(told.get("preempt"))
        wasted.append(gone and need <= state["free"] + state["cached"])
        return told

    yours = arrivals(100 + check.variant(16), 14, 60)
    for given, pool, seats, most in ((yours, 9, 8, 64), (arrivals(301, 14, 25, long=90), 8, 6, 24),
                                    (arrivals(302, 14, 25, long=90), 10, 4, 24),
                                    (arrivals(115, 14, 60), 9, 8, 64)):
        ran = replay(watched, given, slots=seats, budget=most, page=16, blocks=pool)
        check.true(ran["broken"] is None, ran["broken"])
        check.true(not any(wasted), "a request is preempted while free and cached blocks are enough")
        first = list(dict.fromkeys(request for each in ran["calls"] for request, _ in each["parts"]))
        check.equal(first, sorted(first), "requests are admitted in the order of their arrival")
        inside = []
        for each in ran["calls"]:
            leaving, named = set(each["preempt"]), [request for request, _ in each["parts"]]
            check.true(leaving == set(inside[len(inside) - len(leaving):]),
                       "only the newest of those that run are preempted")
            check.true(not leaving or set(named) <= set(inside), "nobody is admitted in a call that preempts")
            inside = [one for one in inside if one not in leaving]
            check.true(set(inside) <= set(named), "every request that runs has a part in every call")
            inside += [one for one in named if one not in inside]
            inside = [one for one in inside if ran["requests"][one]["tokens"][-1] != each["end"]]
        check.true(any(one["preempted"] for one in ran["requests"]), "the pool is full: somebody must go")

# %% check="verdict"
from inferlab.lab.kits.service.load import VARIANTS

@reference
def pairs(*which):
    """Two services that the lab does not show, or those of a variant."""
    import torch
    from inferlab.lab.kits.service.load import pair_of, two_services
    from inferlab.models import load_language_model

    with torch.no_grad():
        return (two_services if len(which) == 1 else pair_of)(
            load_language_model("bundled", "cpu", draft=True)[0], *which)

def kept(run, promise):
    """Good requests in 1,000 ticks, and what spoils most of the others."""
    good, why = 0, []
    for one in run["requests"]:
        steps = [one["tokens"][k + 1] - one["tokens"][k] for k in range(one["new"] - 1)]
        late = one["tokens"][0] > one["arrival"] + promise["first"]
        if late or max(steps) > promise["gap"]:
            why.append("preemption" if one["preempted"] else "queue" if late else "prefill")
        else:
            good += 1
    rate = 1000 * good / (run["calls"][-1]["end"] - run["requests"][0]["arrival"])
    return rate, max(why, key=why.count, default=None)

with check.part("goodput, where one number of each request decides", weight=1):
    promise = {"first": 30, "gap": 30}
    for tokens, good in (((30, 60, 90), 1), ((31, 60, 90), 0), ((10, 41, 50), 0), ((10, 12, 14, 50), 0)):
        got = judged({"A": single(*tokens), "B": single(90, 190)}, promise)["goodput"]["A"]
        check.mistake("a mean of the gaps hides the one that was too long", when=got and tokens[0] == 10)
        check.close(float(got), 1000 * good / tokens[-1], tol=1e-6)
with check.part("two services of the engine: which is better, and what spoils the other", weight=2):
    promise = {"first": 250, "gap": 100}
    for which in ((check.variant(VARIANTS),), ("queue", False, 3), ("prefill", True, 3),
                  ("preemption", False, 7)):
        pair = pairs(*which)
        got, truth = judged(pair, promise), {name: kept(run, promise) for name, run in pair.items()}
        want = {name: rate for name, (rate, _) in truth.items()}
        best, worst = sorted(want, key=want.get)[::-1]
        stay = {name: sum(one["tokens"][-1] - one["arrival"] for one in run["requests"])
                for name, run in pair.items()}
        check.mistake("the service with the smaller mean latency is not the one that keeps its promise",
                      when=got["better"] == min(stay, key=stay.get) != best)
        busy = {name: sum(each["end"] - each["start"] for each in run["calls"]) / run["calls"][-1]["end"]
                for name, run in pair.items()}
        check.mistake("the service that is busier is not the one that keeps its promise",
                      when=got["better"] == max(busy, key=busy.get) != best)
        check.close({name: float(got["goodput"][name]) for name in pair}, want, tol=1e-6)
        check.equal((got["better"], got["cause"]), (best, truth[worst][1]))
