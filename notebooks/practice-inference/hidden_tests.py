"""The hidden tests of practice-inference:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="phases"
from inferlab.lab.kits.service.scenarios import scenario

facts = scenario(check.variant(16))
computing = 2e3 * facts["weights"] / facts["flops"]  # ms for one token
reading = 1e3 * facts["weights"] * facts["itemsize"] / facts["bandwidth"]
long = computing * facts["prompt"]
with check.part("the prefill", weight=1):
    told = numbers(check, "phases", ["prefill_ms", "step_ms", "prompt_share"], facts)["prefill_ms"]
    check.mistake("the prompt's tokens share one read of the weights, "
                  "but each of them is computed: this call waits for arithmetic",
                  when=near(told, reading))
    check.mistake("the weights are read once for the whole prompt, not once a token",
                  when=near(told, reading * facts["prompt"]))
    check.mistake("a multiplication and an addition are two FLOPs", when=near(told, long / 2))
    check.true(near(told, long), "this is not what the rule of section 1 gives for the prefill")
with check.part("a decode step", weight=1):
    told = numbers(check, "phases", ["prefill_ms", "step_ms", "prompt_share"], facts)["step_ms"]
    check.mistake("decode is no small prefill: one token cannot pay for the weights that it reads, "
                  "so the step waits for bytes",
                  when=near(told, computing) or near(told, computing / 2))
    check.true(near(told, reading), "this is not what the rule of section 1 gives for one token")
with check.part("the prefill's share", weight=2):
    told = numbers(check, "phases", ["prefill_ms", "step_ms", "prompt_share"], facts)["prompt_share"]
    check.mistake("that is the prompt's share of the tokens: a token of the answer takes far longer than "
                  "one of the prompt",
                  when=near(told, facts["prompt"] / (facts["prompt"] + facts["new"])))
    check.mistake("that is the share of the decode: the prompt's is asked for",
                  when=near(told, 1 - long / (long + (facts["new"] - 1) * reading)))
    check.true(near(told, long / (long + (facts["new"] - 1) * reading)),
               "compare the prefill's time with that of the whole request")

# %% check="cache"
from inferlab.lab.kits.service.scenarios import scenario

facts = scenario(check.variant(16))
token = 2 * facts["layers"] * facts["kv_heads"] * facts["head_dim"] * facts["itemsize"]
KEYS = ["bytes_per_token", "gigabytes", "passes_at"]
with check.part("bytes for a token", weight=2):
    told = numbers(check, "cache", KEYS, facts)["bytes_per_token"]
    check.mistake("queries are not kept: only the key and value heads count",
                  when=near(told, token * facts["query_heads"] / facts["kv_heads"]))
    check.mistake("keys *and* values are kept", when=near(told, token / 2))
    check.mistake("every layer keeps its own", when=near(told, token / facts["layers"]))
    check.true(near(told, token), "count keys and values, layers, kv heads, the head's size, and bytes")
with check.part("the batch's cache", weight=1):
    told = numbers(check, "cache", KEYS, facts)["gigabytes"]
    check.mistake("each request has a cache of its own", when=near(told, facts["context"] * token / 1e9))
    check.true(near(told, facts["batch"] * facts["context"] * token / 1e9),
               "multiply by positions and requests; GB are 10^9 bytes")
with check.part("where it passes the weights", weight=1):
    told = numbers(check, "cache", KEYS, facts)["passes_at"]
    one = facts["weights"] * facts["itemsize"] / token
    check.mistake("that is the context of a single request; here the whole batch fills the cache",
                  when=near(told, one))
    check.true(near(told, one / facts["batch"]),
               "set the cache of the whole batch equal to the bytes of the weights")

# %% check="batching"
from inferlab.lab.kits.service.scenarios import scenario

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
    check.mistake("the weights are read once a step, not once a request: that is what batching is for",
                  when=near(told, facts["batch"] * one))
    check.mistake("the caches are not shared: each request reads its own",
                  when=near(told, one) or near(told, 1e3 * read / facts["bandwidth"]))
    check.true(near(told, many), "read the weights once, and each request's cache")
with check.part("the gain", weight=2):
    told = numbers(check, "batching", KEYS, facts)["gain"]
    check.mistake("the batch's step is longer than one request's: it reads more caches, "
                  "so the gain is less than the batch",
                  when=near(told, facts["batch"]))
    check.mistake("that is how each user fares: together they get many tokens a step",
                  when=near(told, one / many) or near(told, many / one))
    check.true(near(told, facts["batch"] * one / many),
               "tokens a second: the batch makes one for each request and step")

# %% check="continuous"
from inferlab.lab.kits.service.scenarios import scenario

facts = scenario(check.variant(16))
lengths, slots = facts["outputs"], facts["slots"]
static = sum(max(lengths[i : i + slots]) for i in range(0, len(lengths), slots))
free = [0] * slots
for length in lengths:
    free[free.index(min(free))] += length
KEYS = ["static", "continuous", "idle"]
with check.part("static", weight=1):
    told = numbers(check, "continuous", KEYS, facts)["static"]
    check.mistake("eight requests do not fit into the slots: one batch comes after the other",
                  when=told == max(lengths))
    check.mistake("a batch ends with its longest request, not with its average one",
                  when=told == -(-sum(lengths) // slots))
    check.equal(told, static)
with check.part("continuous", weight=2):
    told = numbers(check, "continuous", KEYS, facts)["continuous"]
    check.mistake("that would need slots that are never empty; at the end the longest request runs alone",
                  when=told == -(-sum(lengths) // slots))
    check.mistake("that is the static run: here nobody waits for the longest of a batch", when=told == static)
    check.equal(told, max(free))
with check.part("places that make no token", weight=1):
    told = numbers(check, "continuous", KEYS, facts)["idle"]
    check.mistake("those are the places that do make a token",
                  when=told == sum(lengths) != slots * static - sum(lengths))
    last = max(lengths[6:]) * (slots - len(lengths[6:]))
    check.mistake("the slot that the last, smaller batch leaves empty makes no token either",
                  when=told == slots * static - sum(lengths) - last)
    check.equal(told, slots * static - sum(lengths))

# %% check="paging"
from inferlab.lab.kits.service.scenarios import scenario

facts = scenario(check.variant(16))
token = 2 * facts["layers"] * facts["kv_heads"] * facts["head_dim"] * facts["itemsize"]
pages, each = facts["cache_memory"] // (facts["page"] * token), -(-facts["typical"] // facts["page"])
whole = facts["cache_memory"] // (facts["longest"] * token)
KEYS = ["reserved", "paged", "wasted"]
with check.part("with reservations", weight=1):
    told = numbers(check, "paging", KEYS, facts)["reserved"]
    check.mistake("a reservation is for the longest answer that may come, not for the one that comes",
                  when=told == facts["cache_memory"] // (facts["typical"] * token))
    check.mistake("the last one does not fit: round down", when=told == whole + 1)
    check.equal(told, whole)
with check.part("with pages", weight=2):
    told = numbers(check, "paging", KEYS, facts)["paged"]
    check.mistake("that is the number of pages; a request needs several", when=told == pages)
    check.mistake("that is the number with reservations: pages are taken as a request grows",
                  when=told == whole)
    check.mistake("a page that is not full is taken all the same: round its pages up",
                  when=told == pages // (facts["typical"] // facts["page"]) != pages // each)
    check.equal(told, pages // each)
with check.part("the waste", weight=1):
    told = numbers(check, "paging", KEYS, facts)["wasted"]
    check.mistake("that is the share that is used", when=near(told, facts["typical"] / facts["longest"]))
    check.true(near(told, 1 - facts["typical"] / facts["longest"]),
               "compare what is used with what is reserved")

# %% check="speculation"
from inferlab.lab.kits.service.scenarios import scenario

facts = scenario(check.variant(16))
a, g, cost = facts["accepted"], facts["drafted"], facts["draft_cost"]
tokens = sum(a**k for k in range(g + 1))
KEYS = ["all_kept", "tokens", "speedup"]
with check.part("all kept", weight=1):
    told = numbers(check, "speculation", KEYS, facts)["all_kept"]
    check.mistake("one rejection ends the round: all of them have to be kept, one after the other",
                  when=near(told, a))
    check.true(near(told, a**g), "multiply the chances")
with check.part("tokens of a round", weight=2):
    told = numbers(check, "speculation", KEYS, facts)["tokens"]
    check.mistake("whatever comes after the first rejection is thrown away, too",
                  when=near(told, a * g) or near(told, a * g + 1))
    check.mistake("the target's own token is missing: a round brings at least one",
                  when=near(told, tokens - 1))
    check.mistake("after a full round the target adds a token of its own", when=near(told, tokens - a**g))
    check.true(near(told, tokens), "1 + a + a^2 + ...: up to which power?")
with check.part("the speedup", weight=1):
    told = numbers(check, "speculation", KEYS, facts)["speedup"]
    check.mistake("the draft's passes take time as well", when=near(told, tokens))
    check.true(near(told, tokens / (1 + g * cost)), "tokens of a round over its cost")

# %% check="quantization"
from inferlab.lab.kits.service.scenarios import scenario

facts = scenario(check.variant(16))
kept = 2 * facts["layers"] * facts["kv_heads"] * facts["head_dim"] * facts["itemsize"] * facts["context"]
before, after = facts["weights"] * facts["itemsize"], facts["weights"] * facts["quantized"]
KEYS = ["step_gain", "prefill_gain", "batch_gain"]
with check.part("one request", weight=1):
    told = numbers(check, "quantization", KEYS, facts)["step_gain"]
    check.mistake("the cache is read as well, and it has not shrunk", when=told == before / after)
    check.true(near(told, (before + kept) / (after + kept), 0.005),
               "bytes read before, over bytes read after; do not round")
with check.part("a batch", weight=1):
    told = numbers(check, "quantization", KEYS, facts)["batch_gain"]
    check.mistake("quantized weights leave the cache as large as it was", when=near(told, before / after))
    check.mistake("every request brings its own cache",
                  when=near(told, (before + kept) / (after + kept), 0.005))
    many = facts["batch"] * kept
    check.true(near(told, (before + many) / (after + many)), "bytes read before, over bytes read after")
with check.part("the prefill", weight=2):
    told = numbers(check, "quantization", KEYS, facts)["prefill_gain"]
    check.mistake("the prefill waits for arithmetic, and there is as much of it as before",
                  when=near(told, before / after))
    check.true(near(told, 1.0), "which term of the rule decides, before and after?")

# %% check="dissect"
CLAIMS = (
    [("baseline", 40), ("continuous batching", 200), ("paged attention", 260), ("int4 weights", 364),
     ("speculation", 400)],
    [("baseline", 30), ("continuous batching", 120), ("grouped heads", 150), ("int4 weights", 300)],
)
with check.part("each technique's own factor", weight=1):
    for claim in CLAIMS:
        told = taken_apart(claim)["factors"]
        base, (second, rate), before = claim[0][1], claim[2], claim[1][1]
        check.mistake("that compares with the baseline; a technique's own factor compares with the "
                      "line before it", when=near(told[second], rate / base))
        check.mistake("a difference says little: what it multiplied is asked for",
                      when=near(told[second], rate - before))
        for (name, after), (_, earlier) in zip(claim[1:], claim):
            check.true(near(told[name], after / earlier), f"the factor of {name} is not what the ledger says")
with check.part("what each attacks", weight=1):
    truth = {"continuous batching": "sharing", "paged attention": "room", "int4 weights": "bytes",
             "speculation": "passes", "grouped heads": "cache"}
    for claim in CLAIMS:
        told = taken_apart(claim)["attacks"]
        check.mistake("quantized weights leave the cache as it was, and paging makes no position smaller",
                      when="cache" in (told.get("int4 weights"), told.get("paged attention")))
        check.mistake("speculation makes no weight smaller and serves no more requests: it saves passes of "
                      "the large model",
                      when=told.get("speculation") in ("bytes", "sharing"))
        check.equal(told, {name: truth[name] for name in told})
with check.part("against a baseline that batches already", weight=1):
    for claim, want in zip(CLAIMS, (2.0, 2.5)):
        told = taken_apart(claim)["against_batched"]
        check.mistake("that is still the whole claim: this team has the batching already",
                      when=near(told, claim[-1][1] / claim[0][1]))
        check.mistake("that is the batching's own factor: the team has it already, what do the others bring?",
                      when=near(told, claim[1][1] / claim[0][1]))
        check.true(near(told, want), "take the factor of the batching out of the product")

# %% check="split"
from inferlab.lab.kits.service.scenarios import scenario

facts = scenario(check.variant(16))
whole = 1e3 * facts["weights"] * facts["itemsize"] / facts["bandwidth"]
share, sums = whole / facts["devices"], 2 * facts["layers"] * facts["sum_ms"]
KEYS = ["tensor_ms", "pipeline_ms", "idle", "training_idle"]
with check.part("tensor parallel", weight=1):
    told = numbers(check, "split", KEYS, facts)["tensor_ms"]
    check.mistake("the sums take time, too, in every layer", when=near(told, share))
    check.mistake("two sums a layer: one after the attention, one after the MLP",
                  when=near(told, share + sums / 2) or near(told, share + 2 * facts["sum_ms"]))
    check.true(near(told, share + sums), "a share of the weights, and two sums in each layer")
with check.part("pipeline", weight=1):
    told = numbers(check, "split", KEYS, facts)["pipeline_ms"]
    hops = (facts["devices"] - 1) * facts["hop_ms"]
    check.mistake("a pipeline divides nobody's token: it passes every layer, one stage after the other",
                  when=near(told, share + hops) or near(told, share))
    check.true(near(told, whole + hops, 0.002),
               "all layers one after the other, and the hops between the stages; do not round")
with check.part("a device's idle time", weight=1):
    told = numbers(check, "split", KEYS, facts)["idle"]
    check.mistake("that is the share in which it works",
                  when=near(told, 1 / facts["devices"]) and facts["devices"] != 2)
    check.mistake("with one user only one stage has something to do: the next token waits for this one",
                  when=told == 0)
    check.true(near(told, 1 - 1 / facts["devices"]), "how many of the stages work at one moment?")
with check.part("a device's idle time in training", weight=1):
    told = numbers(check, "split", KEYS, facts)["training_idle"]
    check.mistake("microbatches do not wait for one another: they fill the pipeline",
                  when=near(told, 1 - 1 / facts["devices"]))
    check.mistake("a pipeline has to fill and to drain: that is its bubble", when=told == 0)
    check.true(near(told, (facts["devices"] - 1) / (31 + facts["devices"]), 0.002),
               "how many ticks pass from the first microbatch's start to the last one's end?")

# %% check="plan"
with check.part("what the step waits for", weight=1):
    for times, want in (((30.0, 5.0, 0.1), "launches"), ((2.0, 5.0, 0.3), "bytes"),
                        ((2.0, 5.0, 9.0), "arithmetic")):
        told = planned(*times, 4, 0.5, 2, [VARIANT])["waits_for"]
        check.mistake("100% says only that some kernel was running all the time: it may have waited for "
                      "bytes, or for the next launch",
                      when=told == "arithmetic" != want)
        check.mistake("decode is not always bound by memory: look at the three times",
                      when=told == "bytes" != want)
        check.equal(told, want)
with check.part("what to do, in order", weight=1):
    told = planned(30.0, 5.0, 0.1, 4, 0.5, 2, [VARIANT])["do"]
    check.mistake("the order of the four is for steps that wait for bytes; this one waits for launches",
                  when="batch" in told or "precision" in told)
    check.equal(told, ["graphs"])
    check.equal(planned(2.0, 5.0, 9.0, 4, 0.5, 2, [VARIANT])["do"], [])
    told = planned(2.0, 5.0, 0.3, 4, 0.05, 2, [VARIANT])["do"]
    check.mistake("there is no room for more requests: their caches have to fit first",
                  when=told[:1] == ["batch"])
    check.mistake("speculation comes last: the others bring more, and it needs room of its own",
                  when=told[:1] == ["speculation"])
    check.equal(told, ["cache", "precision", "speculation"])
    check.equal(planned(2.0, 5.0, 0.3, 0, 0.9, 1, [])["do"], [])
    told = planned(2.0, 5.0, 0.3, 0, 0.9, 2, [VARIANT])["do"]
    check.mistake("nobody waits: there is no request to put into a larger batch", when="batch" in told)
    check.equal(told, ["precision", "speculation"])
with check.part("what can draft", weight=1):
    told = planned(2.0, 5.0, 0.3, 0, 0.9, 2, [STRANGER])["do"]
    check.mistake("that model has another tokenizer: the target could not check its tokens",
                  when="speculation" in told)
    check.equal(told, ["precision"])
    told = planned(2.0, 5.0, 0.3, 0, 0.9, 1, [FINE_TUNE])["do"]
    check.mistake("a draft as large as the target costs as much as it saves", when="speculation" in told)
    check.equal(told, [])
    check.equal(planned(2.0, 5.0, 0.3, 0, 0.9, 1, [STRANGER, FINE_TUNE, VARIANT])["do"], ["speculation"])

# %% check="attention"
from inferlab.lab.kits.service.scenarios import scenario

facts = scenario(check.variant(16))
size, tokens, grain = facts["itemsize"], facts["prompt"], facts["block"]
reached = [min(first + grain, tokens) for first in range(0, tokens, grain)]
row = facts["head_dim"] * size / 1e6  # MB of one head's query, key, value or output of one token
table = 4 * facts["query_heads"] * tokens**2 * size / 1e6
outer = 2 * facts["query_heads"] * tokens * row
KEYS = ["table_mb", "one_pass_mb", "scored"]
with check.part("the tables", weight=1):
    told = numbers(check, "attention", KEYS, facts)["table_mb"]
    check.mistake("heads of a group share keys and values; each has a table of scores of its own",
                  when=near(told, table * facts["kv_heads"] / facts["query_heads"]))
    check.mistake("two tables, and each is written and read", when=near(told, table / 2)
                  or near(told, table / 4))
    check.true(near(told, table), "count query heads, queries, keys, two tables, and a write and a read")
with check.part("one pass", weight=2):
    told = numbers(check, "attention", KEYS, facts)["one_pass_mb"]
    grouped = 2 * facts["kv_heads"] * row
    check.mistake("blocks of keys that none of these queries may see are not read",
                  when=near(told, outer + grouped * len(reached) * tokens, 0.001))
    check.mistake("the query heads of a group share one read of each block",
                  when=near(told, outer + 2 * facts["query_heads"] * row * sum(reached), 0.001))
    check.mistake("each block of queries reads its keys again",
                  when=near(told, outer + grouped * tokens, 0.001))
    check.true(near(told, outer + grouped * sum(reached), 0.002),
               "queries and output once, and what each block of queries can reach")
with check.part("what is computed", weight=1):
    told = numbers(check, "attention", KEYS, facts)["scored"]
    check.mistake("with a causal mask whole blocks are skipped", when=near(told, 1.0, 0.001))
    check.mistake("a block that is read is multiplied whole, also where the mask hides some",
                  when=near(told, (tokens + 1) / (2 * tokens), 0.001) or told == 0.5)
    starts = range(0, tokens, grain)
    whole = sum((end - first) * end for first, end in zip(starts, reached))
    check.true(near(told, whole / tokens**2, 0.002), "add up queries times keys, block by block")

# %% check="load"
from inferlab.lab.kits.service.scenarios import scenario

facts = scenario(check.variant(16))
work = facts["token_ms"] * (facts["prompt"] + facts["new"] - 1)
fixed, between = facts["call_ms"] * facts["new"], facts["every_ms"]
KEYS = ["alone_ms", "most_per_second", "latency_ms"]
with check.part("alone", weight=1):
    told = numbers(check, "load", KEYS, facts)["alone_ms"]
    check.mistake("a request that is alone pays every call whole",
                  when=near(told, work + fixed / facts["batch"]))
    check.true(near(told, work + fixed), "all its calls, and all its tokens")
with check.part("the capacity", weight=1):
    told = numbers(check, "load", KEYS, facts)["most_per_second"]
    check.mistake("requests do not wait for each other's end: they share calls",
                  when=near(told, 1e3 / (work + fixed)))
    check.mistake("calls are shared, tokens are not: each request brings its own",
                  when=near(told, 1e3 * facts["batch"] / (work + fixed)))
    check.true(near(told, 1e3 / (work + fixed / facts["batch"])),
               "what does a request cost if it pays its part of each call?")
with check.part("the latency at this load", weight=2):
    told = numbers(check, "load", KEYS, facts)["latency_ms"]
    check.mistake("that is the latency alone: the tokens of others are in the same calls",
                  when=near(told, work + fixed))
    check.mistake("at this load not every call has as many requests as it may have",
                  when=near(told, facts["batch"] * between))
    check.true(near(told, between * fixed / (between - work)),
               "how many calls fit between two arrivals, and how many requests are there?")

# %% check="precision"
from inferlab.lab.kits.service.scenarios import scenario

facts = scenario(check.variant(16))
pairs = list(zip(facts["reach"], facts["span"]))
KEYS = ["scale_before", "scale_after", "prefill_gain"]
with check.part("before", weight=1):
    told = numbers(check, "precision", KEYS, facts)["scale_before"]
    check.mistake("one scale serves all channels of a token: the largest decides",
                  when=near(told, sum(facts["reach"]) / 4 / 127))
    check.true(near(told, max(facts["reach"]) / 127), "the largest activation becomes the code 127")
with check.part("after", weight=2):
    told = 127 * numbers(check, "precision", KEYS, facts)["scale_after"]
    check.mistake("the activations are divided, and the weights are multiplied",
                  when=near(told, max(r * (r / w) ** 0.5 for r, w in pairs)))
    check.mistake("that moves all of the reach into the weights: then these have the outlier",
                  when=near(told, 1.0) or near(told, max(facts["span"])))
    check.true(near(told, max((r * w) ** 0.5 for r, w in pairs)), "divide, then take the largest")
with check.part("the prefill", weight=1):
    told = numbers(check, "precision", KEYS, facts)["prefill_gain"]
    check.mistake("that holds for weights alone: here codes are multiplied, at the rate for 8 bits",
                  when=near(told, 1.0))
    check.mistake("fewer bytes and faster products do not multiply: a call takes the longer of the two",
                  when=near(told, 4.0))
    check.true(near(told, facts["flops_8"] / facts["flops"], 0.005), "which term decides, before and after?")

# %% check="experts"
from inferlab.lab.kits.service.scenarios import scenario

facts = scenario(check.variant(16))
ratio, part = facts["chosen"] / facts["experts"], facts["expert_part"]
one, many = (1 - part + part * (1 - (1 - ratio) ** n) for n in (1, facts["batch"]))
KEYS = ["one_share", "batch_share", "latent_gain"]
with check.part("one request", weight=1):
    told = numbers(check, "experts", KEYS, facts)["one_share"]
    check.mistake("the rest of the model is read in every step, too", when=near(told, ratio)
                  or near(told, part * ratio))
    check.true(near(told, one), "what is no expert, and the chosen experts")
with check.part("a batch", weight=2):
    told = numbers(check, "experts", KEYS, facts)["batch_share"]
    check.mistake("a sparse model does not read few experts at any batch: tokens choose different ones",
                  when=near(told, one))
    check.mistake("some tokens choose the same expert, and it is read once",
                  when=near(told, 1 - part + part * min(1, facts["batch"] * ratio), 0.001))
    check.mistake("the rest of the model is read in every step, too",
                  when=near(told, 1 - (1 - ratio) ** facts["batch"], 0.001))
    check.true(near(told, many, 0.002), "with which probability is a given expert used by somebody?")
with check.part("the latent cache", weight=1):
    told = numbers(check, "experts", KEYS, facts)["latent_gain"]
    plain, latent = 2 * facts["kv_heads"] * facts["head_dim"], facts["latent"] + facts["rotary"]
    check.mistake("one latent and one rotary key serve all heads",
                  when=near(told, plain / latent / facts["kv_heads"]) or near(told, plain / latent / 2))
    check.mistake("the rotary key is kept as well", when=near(told, plain / facts["latent"]))
    check.mistake("queries are not kept", when=near(told, plain / latent * facts["query_heads"]
                                                    / facts["kv_heads"]))
    check.true(near(told, plain / latent), "numbers of a position before, over numbers after")
