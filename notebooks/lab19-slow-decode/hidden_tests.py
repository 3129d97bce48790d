"""The hidden tests of lab19-slow-decode:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="dissect"
chain = [entry("alone", 1, 100, 10), entry("batching", 10, 100, 10), entry("int8", 10, 50, 10),
         entry("speculation", 10, 50, 10, 1.5)]
with check.part("every sequence brings a cache of its own", weight=2):
    got = parts_of(chain[:2], "alone")
    check.mistake("a batch shares the weights; the caches it does not share, and they are read, too",
                  when=close(got, [("batching", 10.0)], tol=1e-6))
    check.close(got, [("batching", 5.5)], tol=1e-6)
with check.part("each against what was there before it", weight=2):
    got = parts_of(chain, "alone")
    check.mistake("these are factors against the baseline: what did this technique add to what was there "
                  "already?",
                  when=close(got[1:2], [("int8", 5.5 * 200 / 150)], tol=1e-6))
    check.mistake("half of the weights is not half of the bytes: a batch's caches stay",
                  when=close(got[1:2], [("int8", 2.0)], tol=1e-6))
    check.close(got, [("batching", 5.5), ("int8", 200 / 150), ("speculation", 1.5)], tol=1e-6)
with check.part("against another baseline", weight=1):
    got = parts_of(chain, "batching")
    check.mistake("what came before the baseline is in the baseline already", when=len(got) == 3)
    check.close(got, [("int8", 200 / 150), ("speculation", 1.5)], tol=1e-6)

# %% check="bounds"
with check.part("a busy device that waits for its memory", weight=2):
    got = bounds_of(counted(100, 20_000_000, 4_000_000, 10_000_000))
    check.mistake("100% utilization says that some kernel ran all the time. Most of its time it waited "
                  "for bytes", when=got["regime"] == "compute")
    check.mistake("the cache is read in every step, too", when=abs(got["memory"] - 10_000) < 1e-6)
    check.mistake("these are not microseconds",
                  when=abs(got["memory"] - 12_000) > 1e-3
                  and any(abs(got["memory"] * 10.0**n - 12_000) < 1e-3 for n in range(-9, 10)))
    check.close(got, {"launch": 500.0, "memory": 12000.0, "compute": 200.0, "regime": "memory"}, tol=1e-6)
with check.part("a long prompt", weight=1):
    check.close(bounds_of(counted(300, 20_000_000, 1_000_000, 3_000_000_000)),
                {"launch": 1500.0, "memory": 10500.0, "compute": 60000.0, "regime": "compute"}, tol=1e-6)

# %% fixture="served_rows"
@reference
def served_rows(fault):
    """Rows of a real run of the service on the bundled model."""
    from inferlab.lab.kits.service.text_service import serve
    from inferlab.models import load_language_model

    # no name that a cell may have: shared by three
    return vars(serve(*load_language_model("bundled", "cpu"), fault=fault))["rows"]

# %% check="measures"
### FIXTURE served_rows


VARIANTS = ["launch", "tokenizer", "memory", "batch", "cache", "padding"]


def truth(rows, card):
    decode = [r for r in rows if r["kind"] == "decode"]
    kinds = []
    for r in decode:
        times = [r["launches"] * card["launch_us"],
                 (r["weight_bytes"] + r["cache_bytes"]) / card["gb_per_s"] / 1e3,
                 r["flops"] / card["gflop_per_s"] / 1e3]
        kinds.append(("launch", "memory", "compute")[times.index(max(times))])
    n = len(decode)
    return {"sequences": sum(r["sequences"] for r in decode) / n,
            "waiting": max(r["waiting"] for r in rows),
            "useful": sum(r["useful"] for r in rows) / sum(r["positions"] for r in rows),
            "cache_use": sum(r["cache_used"] for r in decode) / sum(r["cache_reserved"] for r in decode),
            "idle": sum(r["kind"] == "idle" for r in rows) / len(rows), "regime": max(kinds, key=kinds.count)}


with check.part("the regime of most decode rows", weight=1):
    got = measured([small[0], small[2], small[2], small[3]], price)["regime"]
    check.mistake("this is one row's regime: which do most decode rows have?", when=got == "memory")
    check.equal(got, "launch")
with check.part("shares are sums over sums", weight=2):
    got, want = measured(small, price), truth(small, price)
    check.mistake("prefill pads, too: all rows count here", when=abs(got["useful"] - 57 / 70) < 1e-9)
    check.mistake("this is the mean of the rows' shares: long rows have to count more",
                  when=abs(got["cache_use"] - (17 / 40 + 0.5) / 2) < 1e-9)
    check.close([got["useful"], got["cache_use"]], [want["useful"], want["cache_use"]], tol=1e-9)
with check.part("real runs", weight=2):
    for fault in (None, VARIANTS[check.variant(6)]):  # the rows that the cells below need as well
        rows = served_rows(fault)
        check.close(measured(rows, price), truth(rows, price), tol=1e-9)

# %% check="diagnosis"
### FIXTURE served_rows


ANSWERS = {  # fault -> the measure that proves it, its remedy
    "batch": ("sequences", "batching"), "cache": ("cache_use", "cache"), "padding": ("useful", "padding"),
    "tokenizer": ("idle", "tokenizer"),
    "launch": ("regime", "launches"), "memory": ("waiting", "precision"),
}
VARIANTS = ["launch", "tokenizer", "memory", "batch", "cache", "padding"]
truth = VARIANTS[check.variant(6)]
rows = served_rows(truth)
decode = [r for r in rows if r["kind"] == "decode"]
values = {
    "sequences": sum(r["sequences"] for r in decode) / len(decode),
    "waiting": max(r["waiting"] for r in rows), "regime": "launch",
    "useful": sum(r["useful"] for r in rows) / sum(r["positions"] for r in rows),
    "idle": sum(r["kind"] == "idle" for r in rows) / len(rows),
    "cache_use": sum(r["cache_used"] for r in decode) / sum(r["cache_reserved"] for r in decode),
}
with check.part("the fault", weight=3):
    got = diagnosis()["fault"]
    check.mistake("there are few sequences in a step, but slots are free: something keeps those who wait "
                  "from entering them",
                  when=got == "batch" and truth in ("cache", "tokenizer"))
    check.mistake("few sequences decode together because only few are there: nobody waits",
                  when=got == "batch" and truth == "memory")
    check.mistake("a step reads all weights in any service; look at what is different in yours",
                  when=got == "memory" and truth != "memory")
    check.true(got == truth, "your rows show another fault")
with check.part("what proves it", weight=1):
    got = diagnosis()
    check.true(got["measure"] == ANSWERS[truth][0],
               "this measure does not prove the fault that your rows have")
    check.close(got["value"], values[got["measure"]], tol=1e-3)
with check.part("what comes first", weight=2):
    order = diagnosis()["order"]
    check.mistake("speculation makes more of each pass, once passes are what you wait for: it is the "
                  "last of the default order", when=order[:1] == ["speculation"])
    check.mistake("the default order is for a memory-bound decode that lacks a batch; yours waits for "
                  "something else",
                  when=order[:1] == ["batching"] and truth != "batch")
    check.true(order[:1] == [ANSWERS[truth][1]], "another remedy is the one for this bottleneck")
with check.part("the whole order", weight=2):
    default = ["precision", "speculation", "batching", "cache"] if truth == "memory" else ["batching",
                                                                                           "cache",
                                                                                           "precision",
                                                                                           "speculation"]
    first = ANSWERS[truth][1]
    check.mistake("nobody waits in this run: more slots and more room go to the end",
                  when=truth == "memory" and diagnosis()["order"][1:2] == ["batching"])
    check.equal(diagnosis()["order"], [first, *(r for r in default if r != first)],
                "after the first remedy the order is another")
