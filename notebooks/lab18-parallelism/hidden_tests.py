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

# %% check="traffic"
v = check.variant(16)
ranks, layers, message = (4, 8)[v % 2], (24, 28, 32, 36, 40, 48, 56, 80)[v // 2], 4096 * 2
payload = 2 * layers * message
with check.part("tensor parallel, one token", weight=1):
    got = crossing("tp_exchanges", "tp_payload")
    check.mistake("one pair in the attention and one in the MLP: that makes two exchanges a layer",
                  when=got[0] == layers)
    check.mistake("only o_proj and down_proj end a pair: the other projections exchange nothing",
                  when=got[0] > 2 * layers)
    check.equal(got, [2 * layers, payload])
with check.part("a pipeline", weight=1):
    got = crossing("pp_exchanges", "pp_payload")
    check.mistake("a pipeline sends between stages only, not inside them",
                  when=got[0] in (layers, 2 * layers, layers - 1))
    check.mistake(f"{ranks} stages have {ranks - 1} borders", when=got[0] == ranks)
    check.equal(got, [ranks - 1, (ranks - 1) * message])

# %% check="schedule"
v = check.variant(16)
depth, many = (3, 4, 5, 6)[v % 4], (5, 6, 8, 10)[v // 4]


def first_user(users):
    """The truth: the ticks of the first user's tokens, every pass by its own earliest tick at stage 0."""
    out, free, ready = [], 0, [(0, user, 1) for user in range(users)]
    while ready:
        at, user, number = ready.pop(0)
        enter = max(at, free)
        free = enter + 1
        out += [enter + depth - 1] if user == 0 else []
        if number < 3:
            ready.append((enter + depth, user, number + 1))
    return out


with check.part("microbatches follow each other closely", weight=1):
    check.mistake("the next microbatch may enter as soon as stage 0 is free: it need not wait until the one "
                  "before it has left the pipeline",
                  when=close(said("idle"), 1 - 1 / depth, tol=0.006))
    check.close(said("idle"), (depth - 1) / (many + depth - 1), tol=0.006)
with check.part("one user", weight=1):
    check.mistake("the second token needs the first: its pass cannot enter before the first has left the "
                  "last stage",
                  when=said("alone") == [depth - 1, depth, depth + 1])
    check.equal(said("alone"), first_user(1))
with check.part("as many users as stages", weight=1):
    check.mistake("the queue is empty when the first user's pass joins it: nobody is before it",
                  when=said("full")[1] > 2 * depth - 1)
    check.equal(said("full"), first_user(depth))
with check.part("more users than stages wait their turn", weight=1):
    check.mistake("users take turns: the second need not wait for the whole answer of the first",
                  when=said("crowd") == first_user(1))
    check.equal(said("crowd"), first_user(2 * depth))

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
    got = check.plain(check.learner.chosen())
    check.true(isinstance(got, dict) and set(got) == {"latency", "interval"},
               "return a dict with latency and interval")
    check.true(all(isinstance(pair, tuple) and len(pair) == 2 for pair in got.values()),
               "each value is a tuple (plan, ranks)")
    check.mistake("more ranks are not always sooner: at some point the all-reduces cost more than the "
                  "arithmetic they save",
                  when=got["latency"] == ("TP", 8) and min(tp, key=tp.get) != 8)
    check.mistake("a pipeline shortens nobody's wait", when=got["latency"][0] == "PP")
    check.equal(got, {"latency": ("TP", min(tp, key=tp.get)), "interval": ("PP", 8)})
