"""The hidden tests of lab15-paged-attention:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def really(prompt, new, page):
    """The truth: the library's engine with the bundled model, its block table noted at each call."""
    from inferlab.lab.kits.paging.blocks import paged_run
    from inferlab.models import load_language_model

    model, _ = load_language_model("bundled", "cpu")
    run = paged_run(model, [[7] * prompt], [new], 1, page=page)
    held = [len(call.tables[0]) for call in run.calls]
    stored = sum(call.tokens for call in run.calls)
    grows = [k for k in range(1, len(held)) if held[k] > held[k - 1]]
    return {"blocks": held[-1], "empty": held[-1] * page - stored, "grows": grows}


RUNS = (19, 30, 16), (10, 23, 8), (5, 2, 4), (9, 8, 8)
with check.part("blocks in the last call", weight=1):
    for case in RUNS:
        got, want = foretold(*case)["blocks"], really(*case)["blocks"]
        check.mistake("the last token is never fed back: its keys and values are never computed",
                      when=got == want + 1)
        check.mistake("a page that is begun needs a whole block: round up", when=got == want - 1)
        check.equal(got, want)
with check.part("what stays empty", weight=1):
    for case in RUNS:
        got, want = foretold(*case)["empty"], really(*case)["empty"]
        check.mistake("the last token is never fed back: its keys and values are never computed",
                      when=got in (want - 1, want - 1 + case[2]))
        check.mistake("only the last block has empty positions: less than a page",
                      when=isinstance(got, int) and got >= case[2])
        check.equal(got, want)
with check.part("when it grows", weight=3):
    for case in RUNS:
        got, want = foretold(*case)["grows"], really(*case)["grows"]
        check.mistake("blocks are taken when they are needed, not all in advance",
                      when=bool(want) and got == [])
        check.mistake("one call too late: the block must be there before the call that fills its first "
                      "position",
                      when=bool(want) and got == [k + 1 for k in want])
        check.mistake("one call too early: there is still one position free in the last block",
                      when=bool(want) and got == [k - 1 for k in want])
        check.equal(got, want)

# %% check="apply"
def by_hand(ops, blocks, page):
    """The contract, carried out."""
    spare, held, sizes, log = set(range(blocks)), {}, {}, []
    for op in ops:
        if op[0] == "free":
            back = sorted(held.pop(op[1]))
            del sizes[op[1]]
            spare |= set(back)
            log.append(("gave", back))
            continue
        _, who, n = op
        need = -(-(sizes.get(who, 0) + n) // page) - len(held.get(who, []))
        if need > len(spare):
            log.append(("full", need - len(spare)))
            continue
        new = sorted(spare)[:need]
        spare -= set(new)
        held[who] = held.get(who, []) + new
        sizes[who] = sizes.get(who, 0) + n
        log.append(("took", new))
    return log


with check.part("freed blocks come back, the lowest first", weight=1):
    ops = [("append", "a", 8), ("append", "b", 4), ("append", "a", 1), ("free", "a"), ("append", "c", 16)]
    got = events_of(ops, 7, 4)
    check.mistake("blocks that were given back are free again", when=got[4][0] == "full")
    check.mistake("the free block with the lowest number first, whenever it became free",
                  when=got[4] == ("took", [4, 5, 6, 0]))
    check.equal(got, by_hand(ops, 7, 4))
with check.part("a pool that is full", weight=2):
    ops = [("append", "a", 9), ("append", "b", 5), ("append", "a", 4), ("append", "b", 3), ("free", "b"),
           ("append", "a", 1), ("append", "a", 3)]
    got, want = events_of(ops, 5, 4), by_hand(ops, 5, 4)
    check.mistake("an append that does not fit changes nothing: its tokens are not stored, "
                  "and no block is taken for them",
                  when=got[:3] == want[:3] and got[3:] != want[3:])
    check.equal(got, want)
with check.part("a long log", weight=2):
    rng = random.Random(4)
    ops, alive = [], []
    for step in range(120):
        if alive and rng.random() < 0.25:
            ops.append(("free", alive.pop(rng.randrange(len(alive)))))
        elif alive and rng.random() < 0.6:
            ops.append(("append", rng.choice(alive), rng.randint(1, 9)))
        else:
            alive.append(step)
            ops.append(("append", step, rng.randint(1, 30)))
    got, want = events_of(ops, 400, 8), by_hand(ops, 400, 8)
    check.mistake("a page that is not full takes the next tokens: not every append needs a block of its own",
                  when=sum(len(e[1]) for e in got if e[0] == "took")
                  > sum(len(e[1]) for e in want if e[0] == "took"))
    check.equal(got, want)

# %% check="attention"
def expected(table, length, group=3):
    """Attention over the gathered positions, without any page."""
    flat = [pool[list(table)].flatten(0, 1)[:length] for pool in pools]
    return contiguous_attention(asking, *[t.repeat_interleave(group, 1) for t in flat])


with check.part("blocks in any order, the last one not full", weight=2):
    for table, length in (([7, 2, 5], 10), ([3], 2), ([8, 0, 1, 4], 13)):
        got = check.learner.paged_attention(asking, pools[0], pools[1], list(table), length)
        check.tensor(got, shape=(6, 8))
        check.mistake("the last block is not full: what lies behind the last position is somebody else's",
                      when=close(got, expected(table, 4 * len(table)), tol=1e-5))
        check.mistake("the blocks follow each other in the order of the table, not of their numbers",
                      when=close(got, expected(sorted(table), length), tol=1e-5)
                      and list(table) != sorted(table))
        check.mistake("the keys of a request lie in the blocks of its table, "
                      "not at the beginning of the pool",
                      when=close(got, expected(range(len(table)), length), tol=1e-5))
        check.close(got, expected(table, length), tol=1e-5)
with check.part("other requests' blocks do not matter", weight=1):
    first = check.learner.paged_attention(asking, pools[0], pools[1], [7, 2], 6)
    other = pools.clone()
    other[:, [0, 1, 3, 4, 5, 6, 8]] = 1e3
    other[:, 2, 2:] = 1e3
    again = check.learner.paged_attention(asking, other[0], other[1], [7, 2], 6)
    check.tensor(first, shape=(6, 8))
    check.true(close(first, again, tol=1e-5),
               "your result changes with blocks, or places in a block, that are not this request's")
    check.close(first, expected([7, 2], 6), tol=1e-5)

# %% check="share"
with check.part("the same page behind another beginning", weight=1):
    got = shares_of([("start", "a", ASK + [9]), ("start", "b", [1, 2, 3, 0, 5, 6, 7, 8, 9]),
                     ("start", "c", [5, 6, 7, 8, 9])])
    check.mistake("the same tokens behind other tokens have other keys and values: everything before the "
                  "page counts",
                  when=got[1]["shared"] != [] or got[2]["shared"] != [])
    check.equal(got, [{"shared": [], "took": [0, 1, 2]}, {"shared": [], "took": [3, 4, 5]},
                      {"shared": [], "took": [6, 7]}])
with check.part("pages that are not full, and prompts that are known to the end", weight=2):
    got = shares_of([("start", "a", ASK + [9, 10]), ("start", "b", ASK + [9, 10]), ("start", "c", ASK)])
    check.mistake("a page that is not full is never shared: its owner goes on writing into it",
                  when=got[1].get("shared") == [0, 1, 2])
    check.mistake("one token must be left to compute, or there is no next token: the last page of c is "
                  "its own", when=got[2].get("shared") == [0, 1])
    check.equal(got, [{"shared": [], "took": [0, 1, 2]}, {"shared": [0, 1], "took": [3]},
                      {"shared": [0], "took": [4]}])
with check.part("reference counts", weight=2):
    ops = [("start", "a", ASK + [9]), ("start", "b", ASK + [10]), ("free", "a"), ("start", "c", ASK + [11]),
           ("free", "b"), ("free", "c"), ("start", "d", ASK + [9])]
    got = shares_of(ops)
    check.mistake("b still reads the first two blocks: a block is given back when its last reference is gone",
                  when=got[2]["gave"] == [0, 1, 2])
    check.mistake("c found the page while b still held it: it counts as well",
                  when=got[2]["gave"] == [2] and got[4]["gave"] != [3])
    check.mistake("nobody holds those pages any more: they are free, and forgotten",
                  when=got[6].get("shared") == [0, 1])
    check.equal(got, [{"shared": [], "took": [0, 1, 2]}, {"shared": [0, 1], "took": [3]}, {"gave": [2]},
                      {"shared": [0, 1], "took": [2]},
                      {"gave": [3]}, {"gave": [0, 1, 2]}, {"shared": [], "took": [0, 1, 2]}])

# %% check="diagnose"
from inferlab.lab.kits.paging.allocator_logs import suspect

steps, seen_events, wrong_at, wrong_kind = suspect(check.variant(16))
with check.part("the event", weight=1):
    at = diagnosis()["event"]
    check.mistake("that event follows from the fault; the fault is earlier",
                  when=isinstance(at, int) and at > wrong_at)
    check.mistake("that event is in order: the books still agree after it",
                  when=isinstance(at, int) and at < wrong_at)
    check.equal(at, wrong_at)
with check.part("the kind", weight=1):
    check.equal(diagnosis()["kind"], wrong_kind)
