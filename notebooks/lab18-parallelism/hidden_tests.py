"""The hidden tests of lab18-parallelism:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
with check.part("an 8-billion model on four ranks: attention", weight=1):
    got = ask_forecast(sizes(4096, 14336, 32, 8, 128, 32), 4)
    check.mistake("there are fewer key/value heads than query heads, and it is those that k_proj makes",
                  when=got["k_proj"] == (1024, 4096))
    check.mistake("o_proj eats heads: it is cut by its inputs, not by its outputs",
                  when=got["o_proj"] == (1024, 4096))
    check.equal([got["q_proj"], got["k_proj"], got["o_proj"]], [(1024, 4096), (256, 4096), (4096, 1024)])
with check.part("the MLP and the norm", weight=1):
    got = ask_forecast(sizes(4096, 14336, 32, 8, 128, 32), 4)
    check.mistake("a norm looks at the whole hidden state: every rank has all of it",
                  when=got["norm"] == (1024,))
    check.mistake("down_proj eats the MLP's width: it is cut by its inputs",
                  when=got["down_proj"] == (1024, 14336))
    check.equal([got["gate_proj"], got["down_proj"], got["norm"]], [(3584, 4096), (4096, 3584), (4096,)])
with check.part("the cache", weight=1):
    got = [ask_forecast(sizes(64, 128, 8, 8, 16, 3), 8)["cache"],
           ask_forecast(sizes(4096, 14336, 32, 8, 128, 32), 4)["cache"]]
    check.mistake("a rank keeps the keys and values of its own heads only",
                  when=got == [2 * 3 * 128 * 4, 2 * 32 * 1024 * 4])
    check.mistake("the cache holds keys and values, and it holds them for every layer",
                  when=got[0] in (2 * 16 * 4, 3 * 16 * 4))
    check.equal(got, [2 * 3 * 16 * 4, 2 * 32 * 256 * 4])

# %% check="shards"
check.mistake("a Linear's weight is (outputs, inputs): cutting by outputs cuts its rows",
              when=tuple(got[0].shape) == (8, 3))

# %% check="shards"
with check.part("cut by inputs, in three", weight=1):
    got = cut(matrix, 3, "rowwise")
    check.mistake("these are the outputs: a row-wise cut gives each rank some of the inputs",
                  when=got[0].shape[1] == 6)
    check.equal(got, [matrix[:, :2], matrix[:, 2:4], matrix[:, 4:]])
with check.part("order and dtype", weight=2):
    half = torch.randn(12, 4, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
    got = cut(half, 4, "colwise")
    check.mistake("neighboring rows belong together: they form a head",
                  when=bool((got[0] == half[0::4]).all()))
    check.equal(got, list(half.chunk(4)))
    check.equal(cut(half, 2, "rowwise"), list(half.chunk(2, 1)))

# %% check="rank-mlp"
check.mistake("each rank has only its own term of the sum: nobody added them up", when=not any(given))

# %% check="rank-mlp"
with check.part("exactly one all-reduce, of the hidden state's size", weight=2):
    outs, want, given = together(8, 16, 1, 4, seed=2)
    check.mistake("gate and up need no sum: each rank goes on with its own columns, "
                  "and meets the others once, at the end",
                  when=len(given[0]) > 1)
    check.equal([len(mine) for mine in given], [1, 1, 1, 1])
    check.equal([mine[0].numel() for mine in given], [8] * 4)
with check.part("the bias is added once", weight=1):
    outs, want, given = together(8, 12, 2, 2, with_bias=1.0, seed=3)
    x, b, y, pieces = layer(8, 12, 2, 2, 1.0, 3)
    check.mistake("every rank added the bias before the sum: it is in the result once for each rank",
                  when=close(outs[0], y + b, tol=1e-5))
    check.mistake("the bias is missing", when=close(outs[0], y - b, tol=1e-5))
    check.close(outs[0], want, tol=1e-5)
    check.close(outs[1], want, tol=1e-5)
with check.part("four ranks, a longer input", weight=1):
    outs, want, given = together(16, 32, 7, 4, with_bias=0.5, seed=4)
    for out in outs:
        check.close(out, want, tol=1e-5)

# %% check="fused"
with check.part("gate and up on two ranks", weight=2):
    stacked = torch.arange(16.0).reshape(8, 2)
    got = split_by_learner(stacked, (4, 4), 2)
    check.mistake("rank 0 has all of gate and nothing of up: cut each part, not the stack",
                  when=torch.equal(got[0], stacked[:4]))
    check.mistake("every other row: rows that are neighbors form a head, and belong to one rank",
                  when=torch.equal(got[0], stacked[0::2]))
    check.mistake("the parts of a rank have changed places: gate comes first on every rank",
                  when=got[0].shape == (4, 2) and torch.equal(got[0], stacked[[4, 5, 0, 1]]))
    check.equal(got, [stacked[[0, 1, 4, 5]], stacked[[2, 3, 6, 7]]])
with check.part("q, k and v with fewer key heads", weight=2):
    stacked = torch.randn(16 + 4 + 4, 3, generator=torch.Generator().manual_seed(5))
    got = split_by_learner(stacked, (16, 4, 4), 4)
    check.mistake("keys and values are cut, too: each rank keeps those of its own heads",
                  when=got[0].shape[0] == 12)
    want = [torch.cat([stacked[4 * r:4 * r + 4], stacked[16 + r:17 + r], stacked[20 + r:21 + r]])
            for r in range(4)]
    check.equal(got, want)

# %% check="traffic"
with check.part("tensor parallel, another model, 8 ranks", weight=2):
    got = crossing("TP", 8, 32, 4096, 1, 2)
    check.mistake("one pair in the attention and one in the MLP: that makes two exchanges a layer",
                  when=got["exchanges"] == 32)
    check.mistake("only o_proj and down_proj end a pair: the other projections exchange nothing",
                  when=got["exchanges"] > 64)
    check.equal([got["exchanges"], got["payload"]], [64, 524288])
with check.part("a prompt is more bytes, not more exchanges", weight=1):
    got = crossing("TP", 4, 32, 4096, 512, 2)
    check.mistake("a pass over a prompt is one pass: its messages are longer, not more",
                  when=got["exchanges"] == 64 * 512)
    check.equal([got["exchanges"], got["payload"]], [64, 268435456])
with check.part("what a ring makes a rank send", weight=1):
    got = [crossing("TP", n, 32, 4096, 1, 2)["sent"] for n in (2, 4, 8, 3)]
    check.mistake("in a ring a rank sends nearly twice the message, whatever the number of ranks",
                  when=got == [524288] * 4)
    check.mistake("in a ring nobody sends the whole message to every other rank", when=got[2] == 7 * 524288)
    check.mistake("three ranks share no message of whole bytes: keep the fraction",
                  when=got[3] in (699050, 699051))
    check.close(got, [524288, 786432, 917504, 2 * 2 / 3 * 524288], tol=1e-3)
    got = crossing("TP", 1, 32, 4096, 1, 2)
    check.mistake("a single rank adds nothing up with anybody", when=got["exchanges"] == 64)
    check.close(got, dict.fromkeys(("exchanges", "payload", "sent"), 0), tol=1e-3)
with check.part("a pipeline", weight=1):
    got = crossing("PP", 4, 32, 4096, 3, 2)
    check.mistake("a pipeline sends between stages only, not inside them",
                  when=got["exchanges"] in (32, 64, 31))
    check.mistake("four stages have three borders", when=got["exchanges"] == 4)
    check.equal([got["exchanges"], got["payload"]], [3, 73728])
    check.close(got["sent"], 24576, tol=1e-3)
    got = crossing("PP", 1, 32, 4096, 3, 2)
    check.mistake("a single stage hands nothing on", when=got["sent"] == 24576)
    check.close(got, dict.fromkeys(("exchanges", "payload", "sent"), 0), tol=1e-3)

# %% check="schedule"
def run_pipeline(depth, work):
    """The truth: every pass by its own earliest tick at stage 0."""
    events, free, ready = [], 0, [(0, job, 1) for job, passes in enumerate(work) if passes]
    while ready:
        at, job, number = ready.pop(0)
        enter = max(at, free)
        free = enter + 1
        events += [(enter + stage, stage, job, number) for stage in range(depth)]
        if number < work[job]:
            ready.append((enter + depth, job, number + 1))
    return sorted(events)


with check.part("microbatches follow each other closely", weight=2):
    got = events_of(4, [1] * 3)
    check.mistake("the next microbatch may enter as soon as stage 0 is free: it need not wait until the one "
                  "before it has left the pipeline",
                  when=got and got[-1][0] >= 8)
    check.equal(got, run_pipeline(4, [1] * 3))
with check.part("one user", weight=2):
    got = events_of(3, [3])
    check.mistake("the second token needs the first: its pass cannot enter before the first has left the "
                  "last stage",
                  when=(1, 0, 0, 2) in got)
    check.equal(got, run_pipeline(3, [3]))
with check.part("more users than stages wait their turn", weight=2):
    got = events_of(2, [2, 2, 2])
    check.mistake("users take turns: the second need not wait for the whole answer of the first",
                  when=(2, 0, 0, 2) in got)
    check.equal(got, run_pipeline(2, [2, 2, 2]))
with check.part("jobs of different lengths", weight=1):
    check.equal(events_of(3, [1, 4, 0, 2, 1]), run_pipeline(3, [1, 4, 0, 2, 1]))

# %% check="cost"
from inferlab.lab.kits.parallel.machines import machine

with check.part("tensor parallel", weight=1):
    got = ticks("TP", 4, small)
    check.mistake("two all-reduces a layer, not one", when=abs(got[0] - (100 + 180)) < 1e-6)
    check.mistake("the ranks share the arithmetic, but they must also agree: the all-reduces are missing",
                  when=abs(got[0] - 100) < 1e-6)
    check.close(got, (100 + 360, 100 + 360), tol=1e-6)
with check.part("a pipeline does not shorten a token's way", weight=2):
    got = ticks("PP", 4, small)
    check.mistake("one user's token still goes through every layer, "
                  "one after the other: only the machine as a whole is faster",
                  when=got[0] < 400)
    check.mistake("a full pipeline does not wait for a token to leave before it starts the next",
                  when=got[1] >= 400)
    check.close(got, (415, 100), tol=1e-6)
with check.part("your machine", weight=2):
    box = machine(check.variant(16))
    work = box["layers"] * box["compute"]
    tp = {n: work / n + 4 * box["layers"] * (n - 1) * box["step"] for n in (1, 2, 4, 8)}
    got = check.learner.chosen()
    check.true(isinstance(got, dict) and set(got) == {"latency", "interval"},
               "return a dict with latency and interval")
    check.true(all(isinstance(pair, tuple) and len(pair) == 2 for pair in got.values()),
               "each value is a tuple (plan, ranks)")
    check.mistake("more ranks are not always sooner: at some point the all-reduces cost more than the "
                  "arithmetic they save",
                  when=got["latency"] == ("TP", 8) and min(tp, key=tp.get) != 8)
    check.mistake("a pipeline shortens nobody's wait", when=got["latency"][0] == "PP")
    check.equal(got, {"latency": ("TP", min(tp, key=tp.get)), "interval": ("PP", 8)})
