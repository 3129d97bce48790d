"""The hidden tests of lab22-attention-kernel:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def counted_run(queries, keys, heads, kv_heads, width, blocks, item_bytes):
    """The truth: both kernels walked through real tensors, every read and write counted."""
    import torch
    from inferlab.lab.kits.attention import Moved

    dtype = {2: torch.bfloat16, 4: torch.float32}[item_bytes]
    q, k, v = (torch.randn(n, rows, width).to(dtype)
               for n, rows in ((heads, queries), (kv_heads, keys), (kv_heads, keys)))
    with Moved() as moved:
        ((q.reshape(kv_heads, -1, width) @ k.mT).softmax(-1) @ v).reshape(q.shape)
    one_pass_bytes = 0
    for rows in q.tensor_split(blocks, 1):
        one_pass_bytes += 2 * rows.numel() * item_bytes
        for some, values in zip(k.split(16, 1), v.split(16, 1), strict=True):
            one_pass_bytes += (some.numel() + values.numel()) * item_bytes
    return {"naive": moved.bytes, "one pass": one_pass_bytes}

def judge(name, *run):
    """Holds an entry of the learner's forecast of a run against the run, and names what it believes."""
    queries, keys, heads, kv_heads, width, _, item_bytes = run
    said, want = ask_forecast(*run)[name], counted_run(*run)
    ends, pair = 2 * heads * queries * width, 2 * kv_heads * keys * width
    if name == "naive":
        check.mistake("the naive kernel writes the scores and the weights, and reads both again",
                      when=said in [item_bytes * (ends + pair + n * heads * queries * keys)
                                    for n in range(4)])
    else:
        check.mistake("no score is written: the table never exists",
                      when=said >= want["naive"] > want["one pass"])
        check.mistake("each block of queries reads the keys again",
                      when=said == item_bytes * (ends + pair) != want["one pass"])
        check.mistake("queries are read and outputs written once, whatever the blocks",
                      when=said == item_bytes * run[5] * (ends + pair) != want["one pass"])
    check.equal(said, want[name])

with check.part("the naive bytes, one query and many, 6 heads on 2", weight=1):
    judge("naive", 1, 50, 6, 2, 8, 1, 4)
    judge("naive", 30, 30, 6, 2, 8, 4, 2)
with check.part("one pass, with one block of queries and with several", weight=2):
    judge("one pass", 45, 45, 6, 2, 8, 3, 2)
    judge("one pass", 1, 50, 6, 2, 8, 1, 4)
    judge("one pass", 64, 64, 2, 2, 8, 4, 4)
    judge("one pass", 10, 40, 6, 2, 8, 4, 4)

# %% check="one-pass"
def walk_of(queries, keys, size, mask):
    """The blocks of keys that a kernel must fetch, in order."""
    return [(start, min(start + size, keys)) for first in range(0, queries, size)
            for start in range(0, min(keys, first + size) if mask else keys, size)]

with check.part("several blocks, the last one shorter", weight=2):
    for seed, (queries, keys, size) in enumerate(((5, 19, 4), (9, 9, 1), (3, 32, 5))):
        given = three(2, 2, queries, keys, seed + 10)
        mine, sums, _ = served(*given, size)
        flat = served(*given[:2], torch.ones_like(given[2]), size)[0]
        check.mistake("the sum is rescaled when the maximum grows, and the output is not",
                      when=flat.max() > 1.001)
        check.mistake("the output is rescaled when the maximum grows, and the sum is not",
                      when=flat.min() < 0.999)
        check.mistake("that is the mean of the blocks' own answers: blocks have different sums of weights",
                      when=close(mine, torch.stack([theirs(given[0], some, values) for some, values in zip(
                          given[1].split(size, 1), given[2].split(size, 1), strict=True)]).mean(0), tol=1e-4))
        check.close(mine, theirs(*given), tol=1e-5)
        check.close(sums, (given[0] @ given[1].mT * 8**-0.5).logsumexp(-1), tol=1e-4)
with check.part("scores in the hundreds, all far above zero or all far below it", weight=2):
    noise = three(2, 2, 6, 40, 20)
    for low, high in ((4, 10), (-10, -4)):
        keys_given = noise[1] / 10 + torch.linspace(low, high, 40)[:, None]
        given = (10 + noise[0] / 10, keys_given, noise[2])
        mine, sums, _ = served(*given, 8)
        finite = torch.isfinite(mine).all() and torch.isfinite(sums).all()
        check.mistake("an exponential overflows: subtract the running maximum", when=low > 0 and not finite)
        check.mistake("all exponentials are 0: the first maximum is that of the first block, also below zero",
                      when=high < 0 and not finite)
        check.close(mine, theirs(*given), tol=1e-3)
with check.part("each block is fetched once, and none that is masked", weight=1):
    for queries, keys, size, mask in ((6, 21, 4, False), (21, 21, 4, True), (16, 16, 8, True)):
        asked = served(*three(1, 1, queries, keys, 30), size, mask)[2]
        want = walk_of(queries, keys, size, mask)
        check.mistake("the maximum need not be known first: the blocks were fetched twice",
                      when=sorted(asked) == sorted(want * 2))
        check.equal(asked, want)
with check.part("a causal mask and grouped heads", weight=2):
    for count, size in ((21, 8), (16, 4)):
        given = three(6, 2, count, count, 40)
        check.close(served(*given, size, True)[0], theirs(*given, mask=True), tol=1e-5)

# %% check="join"
def asked_whole(score_table, value_table, lengths):
    """The learner's join of such parts, and the answer over all keys."""
    made = parts_of(score_table, value_table, lengths)
    return *asked_join(*made), torch.nan_to_num(score_table.softmax(-1)) @ value_table, made

source = torch.Generator().manual_seed(70)
with check.part("parts of different lengths and different sums", weight=2):
    for lengths in ([3, 20, 7], [1] * 30, [30]):
        table = 3 * torch.randn(2, 4, 30, generator=source)
        values_given = torch.randn(2, 30, 8, generator=source)
        joined, sums, want, made = asked_whole(table, values_given, lengths)
        weights = torch.tensor(lengths)[:, None, None, None] / 30
        check.mistake("that is a plain mean: a worker counts by the sum of its weights",
                      when=len(lengths) > 1 and close(joined, made[0].mean(0), tol=1e-4))
        check.mistake("keys are not equal: a worker counts by the sum of its weights, not by its keys",
                      when=len(lengths) > 1 and close(joined, (made[0] * weights).sum(0), tol=1e-4))
        check.mistake("the shares are those of the log-sum-exps themselves: e to their power is the sum",
                      when=len(lengths) > 1
                      and close(joined, (made[0] * (made[1] / made[1].sum(0))[..., None]).sum(0), tol=1e-3))
        check.close(joined, want, tol=1e-5)
        check.mistake("the largest log-sum-exp is not that of all keys",
                      when=len(lengths) > 1 and close(sums, made[1].amax(0)))
        check.close(sums, table.logsumexp(-1), tol=1e-4)
with check.part("log-sum-exps in the hundreds", weight=1):
    # far above zero, far below, and one head beside the other
    for far in (400, -400, torch.tensor([[[400.0]], [[0.0]]])):
        table = far + torch.randn(2, 4, 30, generator=source)
        joined, sums, want, made = asked_whole(table, torch.randn(2, 30, 8, generator=source), [12, 18])
        check.mistake("an exponential overflows, or all are 0: subtract before you take it",
                      when=not (torch.isfinite(joined).all() and torch.isfinite(sums).all()))
        check.close(joined, want, tol=1e-3)
with check.part("a worker without a key, and a query without any", weight=2):
    table = torch.randn(2, 4, 30, generator=source)
    table[:, :2, 10:20] = -torch.inf
    table[:, 3] = -torch.inf
    joined, sums, want, made = asked_whole(table, torch.randn(2, 30, 8, generator=source), [10, 10, 10])
    check.mistake("0 times NaN is NaN: an empty worker's output must not be used",
                  when=torch.isnan(joined[:, :2]).any())
    check.mistake("a query that sees no key gets zeros and -inf", when=torch.isnan(joined[:, 3]).any()
                  or torch.isnan(sums).any())
    check.close(joined, want, tol=1e-5)
    check.equal(sums[:, 3], torch.full((2, 4), -torch.inf)[:, 3])

# %% check="step"
def ramps(high):
    """Scores that grow from block to block, up to `high`, and values."""
    draw = torch.Generator().manual_seed(80)
    table = torch.linspace(-high, high, 40) + torch.randn(2, 5, 40, generator=draw)
    return table, torch.randn(2, 40, 8, generator=draw)

def weighed(table, given, factor):
    """The output if earlier terms are multiplied by `factor(old maximum, new maximum)`."""
    top = torch.full((2, 5, 1), -1e9)
    total = out = torch.zeros(2, 5, 1)
    for some, of_them in zip(table.split(8, -1), given.split(8, 1), strict=True):
        new = torch.maximum(top, some.amax(-1, keepdim=True))
        times = torch.where(top < -1e8, 0.0, factor(top, new))
        total = total * times + (some - new).exp().sum(-1, keepdim=True)
        out, top = out * times + (some - new).exp() @ of_them, new
    return out / total

with check.part("the largest score last", weight=2):
    table, given = ramps(3.0)
    mine = walked(table, given, 8)
    check.mistake("no term is rescaled: each block counts from a maximum of its own. The weights add up to "
                  "1, so the test with ones passes, and they are the wrong weights",
                  when=close(mine, weighed(table, given, lambda old, new: torch.ones_like(old)), tol=1e-4))
    check.mistake("the factor is turned over: a term from a smaller maximum must become smaller",
                  when=close(mine, weighed(table, given, lambda old, new: (new - old).exp()), tol=1e-4))
    check.close(mine, table.softmax(-1) @ given, tol=1e-5)
with check.part("scores in the hundreds, the largest last", weight=1):
    table, given = ramps(300.0)
    mine = walked(table, given, 8)
    check.mistake("an exponential overflows: the maximum must move with the blocks",
                  when=not torch.isfinite(mine).all())
    check.close(mine, table.softmax(-1) @ given, tol=1e-3)
