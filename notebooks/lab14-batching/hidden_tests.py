"""The hidden tests of lab14-batching: a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def really(lengths, new_tokens, slots):
    """The truth: both runs, made with the bundled model and traced."""
    import torch
    from inferlab.lab.kits.batching import engine_run
    from inferlab.models import load_language_model
    from inferlab.trace import trace

    model, _ = load_language_model("bundled", "cpu")
    longest = max(lengths)
    ids = torch.tensor([[0] * (longest - n) + [9] * n for n in lengths])
    mask = torch.tensor([[0] * (longest - n) + [1] * n for n in lengths])
    with torch.no_grad(), trace(model) as run:
        model.generate(ids, attention_mask=mask, max_new_tokens=new_tokens, min_new_tokens=new_tokens,
                       do_sample=False)
    facts = run.facts()
    shapes = facts["LlamaForCausalLM.inputs.input_ids.shapes"]
    _, calls = engine_run(model, [[9] * n for n in lengths], [new_tokens] * len(lengths), slots)
    return {"padded_first": tuple(shapes[0]), "padded_next": tuple(shapes[1]),
            "padded_calls": facts["LlamaForCausalLM.calls"],
            "padding": int((mask == 0).sum()), "packed_first": (1, calls[0][0]),
            "packed_next": (1, calls[1][0]),
            "packed_calls": len(calls)}


RUNS = ([11, 3, 8, 5, 2], 4, 2), ([4, 9], 3, 5)
with check.part("the padding", weight=1):
    for run in RUNS:
        told, truth = foretold(*run), really(*run)
        check.mistake("padding is computed once, in the prefill: later calls hold one token a row",
                      when=told["padding"] != truth["padding"]
                      and told["padding"] == truth["padding"] * run[1])
        check.equal(told["padding"], truth["padding"])
with check.part("the numbers of calls", weight=2):
    for run in RUNS:
        told, truth = foretold(*run), really(*run)
        pair = [told["padded_calls"], told["packed_calls"]]
        check.mistake("one call serves every row of the batch: requests do not multiply the calls",
                      when=told["padded_calls"] == len(run[0]) * run[1])
        check.mistake("the prefill makes the first token: n tokens are n calls",
                      when=told["padded_calls"] == run[1] + 1)
        check.mistake("five requests in two slots are three groups: the last one is not full, "
                      "and needs its calls all the same",
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
        check.equal([told["packed_first"], told["packed_next"]],
                    [truth["packed_first"], truth["packed_next"]])

# %% check="critical"
with check.part("four bytes a weight", weight=1):
    got = critical(40.0, 0, SMALL)
    check.mistake("a weight of four bytes brings its two FLOPs for twice the bytes", when=got == 40)
    check.equal(got, 80)
with check.part("with a context", weight=1):
    for edge, context, sizes, want in ((295.0, 200, LARGE, 600), (206.0, 400, LARGE, 700),
                                       (40.0, 50, SMALL, 236)):
        got, simple = critical(edge, context, sizes), round(edge * sizes["itemsize"] / 2)
        check.mistake("the cache is read as well, and more of it with every request", when=got == simple)
        check.mistake("a whole batch that has passed the ridge: round up", when=got == want - 1)
        check.equal(got, want)
with check.part("a batch that never gets there", weight=1):
    for edge, context, sizes in ((295.0, 1000, LARGE), (206.0, 8000, LARGE), (40.0, 2000, SMALL)):
        got = critical(edge, context, sizes)
        check.mistake("with this context every request reads more bytes than its FLOPs are worth at the "
                      "ridge: no batch is large enough",
                      when=got is not None)
        check.equal(got, None)

# %% check="continuous"
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
    from inferlab.lab.kits.batching import engine_run
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
        check.mistake("a batch does not end together: a free slot is filled in the very next iteration",
                      when=got == together != want)
        check.mistake("there are only so many slots", when=max(got) > slots)
        check.mistake("a slot that becomes free in one iteration serves somebody else in the next: yours "
                      "stays empty in between",
                      when=joined == sorted(joined) and got != together and sum(got) == sum(want)
                      and len(got) > len(want))
        check.equal(got, want)
with check.part("late arrivals", weight=1):
    got = refilled([1, 1, 4], [1, 1, 2], 2)
    check.mistake("a request cannot run before it has arrived", when=got[:1] != [[]])
    check.equal(got, [[], [0, 1], [], [], [2], [2]])
    got = refilled([0, 2], [1, 1], 2)
    check.mistake("nobody waits until a batch is full: whoever is there takes a free slot at once",
                  when=got[:2] == [[], []])
    check.equal(got, [[0], [], [1]])
with check.part("a long stream, in the order of arrival", weight=2):
    for seed in (5, 6):
        load = workload(seed, 60, 2.0, 3, 15)
        got, want = refilled(load.arrivals, load.outputs, 4), by_slots(load.arrivals, load.outputs, 4)
        first = [r for now in got for r in now]
        order = sorted(set(first), key=first.index)
        check.mistake("first come, first served: the lengths are not known beforehand, "
                      "so nobody can be let in for being short",
                      when=order != sorted(order))
        check.equal(got, want)

# %% check="choose"
from inferlab.lab.kits.batching import workload


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
    """The smallest number of slots whose wait at this percentile is at most the limit, with continuous
    batching."""
    return next(slots for slots in range(1, 161) if wait(load, refilling, slots, percent) <= limit)


v = check.variant(8)
load = workload(100 + v, 160, (1.6, 1.8, 2.0, 2.2, 2.4, 2.6, 2.8, 3.0)[v])
limit = (6, 8, 10, 5, 7, 9, 4, 6)[v]
enough = needed(load, 99, limit)
with check.part("slots with continuous batching", weight=2):
    got = choice()["slots"]
    check.mistake("that keeps the promise for the median only: half of the users wait longer",
                  when=got == needed(load, 50, limit))
    check.mistake("that many slots keep the promise, but fewer do as well",
                  when=isinstance(got, int) and got > enough)
    check.equal(got, enough)
with check.part("the wait with static batching", weight=1):
    got = choice()["static"]
    check.mistake("a static batch ends with its longest request: who comes while it runs waits for that, "
                  "however many of its slots are idle",
                  when=got == wait(load, refilling, enough, 99))
    check.equal(got, wait(load, batching, enough, 99))
with check.part("what an iteration costs then", weight=1):
    got, slots = choice()["slower"], enough
    weights, own = 7_504_658_432 * 2, 8000 * 131_072
    check.mistake("a batch does not make a step faster: everybody waits for the same, longer step",
                  when=got < 1)
    check.mistake("the weights are read once for all of them: a step with twice the requests does not "
                  "take twice as long", when=abs(got - slots) < 1e-6)
    check.mistake("each request reads its own cache in the step", when=abs(got - 1) < 1e-9)
    check.close(got, (weights + slots * own) / (weights + own), rtol=1e-3, tol=0)
