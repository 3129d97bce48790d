"""The hidden tests of lab13-kv-cache: a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def real_cache(prompt, new, batch, capacity):
    """The truth: a real run of the bundled model, float32."""
    import torch
    from inferlab.lab.kits.kv_caches import real_bytes
    from inferlab.models import cache_argument, load_language_model
    from transformers import DynamicCache, StaticCache

    model, _ = load_language_model("bundled", "cpu")
    cache = StaticCache(config=model.config,
                        max_cache_len=capacity) if capacity else DynamicCache(config=model.config)
    asked = torch.arange(10, 10 + prompt).repeat(batch, 1)
    with torch.no_grad():
        model.generate(asked, attention_mask=torch.ones_like(asked), min_new_tokens=new, max_new_tokens=new,
                       do_sample=False,
                       **cache_argument(cache))
    return {"length": int(cache.get_seq_length()), "shape": tuple(cache.layers[0].keys.shape),
            "bytes": real_bytes(cache)}


with check.part("how many tokens it holds", weight=1):
    want, got = real_cache(9, 4, 3, None), ask_forecast(9, 4, 3, 8, 8, 2, 32, "float32")
    check.mistake("the last token was returned and never fed, so nothing of it is in the cache",
                  when=got["length"] == 13)
    check.mistake("the tokens that were fed one by one are cached, too", when=got["length"] == 9)
    check.equal(got["length"], want["length"])
with check.part("bytes, to the byte", weight=2):
    want, got = real_cache(9, 4, 3, None)["bytes"], ask_forecast(9, 4, 3, 8, 8, 2, 32, "float32")["bytes"]
    check.mistake("the query heads are not cached: eight of them share two keys here", when=got == 4 * want)
    check.mistake("keys and values: there are two of them", when=2 * got == want)
    check.mistake("every layer has keys and values of its own", when=8 * got == want)
    check.mistake("every sequence of the batch has a cache of its own", when=3 * got == want)
    check.equal(got, want)
with check.part("a static cache", weight=2):
    want, got = real_cache(9, 4, 3, 40), ask_forecast(9, 4, 3, 8, 8, 2, 32, "float32", 40)
    check.mistake("a static cache takes all of its memory at the first call, however little of it is filled",
                  when=got["shape"][2] == 12)
    check.mistake("its capacity is not what it holds", when=got["length"] == 40)
    check.equal(got, want)
with check.part("Llama 3 8B, 64 sequences, three widths of a number", weight=2):
    got = [ask_forecast(4000, 97, 64, 32, 32, 8, 128, kind)["bytes"]
           for kind in ("float32", "bfloat16", "float8_e4m3fn")]
    check.equal(got, [size * 2 * 32 * 8 * 128 * 4096 * 64 for size in (4, 2, 1)])

# %% check="attend"
def library(q, k, v, scale=None, causal=True, order="interleave"):
    """torch's own attention; the options make the mistakes that the hidden parts look for."""
    times = q.shape[1] // k.shape[1]
    k, v = ((x.repeat_interleave(times, 1) if order == "interleave" else x.repeat(1, times, 1, 1))
            for x in (k, v))
    mask = torch.ones(q.shape[2], k.shape[2],
                      dtype=torch.bool).tril(k.shape[2] - q.shape[2]) if causal else None
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


with check.part("eight query heads on two key heads, one new token", weight=2):
    q, k, v = case(1, 9)
    got = ask_attend(q, k, v)
    check.mistake("right shape, wrong partner: head h was given key head h % 2; neighbours share a key head",
                  when=close(got, library(q, k, v, order="tile")))
    mean = library(q, k.mean(1, keepdim=True), v.mean(1, keepdim=True))
    check.mistake("the key heads were averaged: they are shared, not merged", when=close(got, mean))
    check.close(got, library(q, k, v))
with check.part("the scale", weight=1):
    q, k, v = case(1, 9, heads=2)
    got = ask_attend(q, k, v)
    check.mistake("the scores were not scaled", when=close(got, library(q, k, v, scale=1.0)))
    check.mistake("scale by the size of one head, not by the width of all",
                  when=close(got, library(q, k, v, scale=12**-0.5)))
    check.mistake("one over the root of d, not one over d", when=close(got, library(q, k, v, scale=1 / 6)))
    check.close(got, library(q, k, v))
with check.part("several new tokens do not look ahead", weight=2):
    q, k, v = case(6, 6, heads=2)
    got = ask_attend(q, k, v)
    check.mistake("a token looked at the tokens after it", when=close(got, library(q, k, v, causal=False)))
    check.close(got, library(q, k, v))
    q, k, v = case(3, 10, heads=2)
    got = ask_attend(q, k, v)
    wrong = torch.nn.functional.scaled_dot_product_attention(q, k, v,
                                                             attn_mask=torch.ones(3, 10,
                                                                                  dtype=torch.bool).tril())
    check.mistake("the queries are those of the newest tokens: the first of them already sees all of "
                  "the cache", when=close(got, wrong))
    check.close(got, library(q, k, v))

# %% check="operate"
def real(rows, operations):
    """The truth: the library's own cache, one layer of one head with the labels for keys."""
    from transformers import DynamicCache

    def states(labels):
        return torch.tensor(labels, dtype=torch.float32)[:, None, :, None]

    cache, seen = DynamicCache(), []
    cache.update(states(rows), states(rows), 0)
    for name, what in operations:
        if name == "grow":
            cache.update(states(what), states(what), 0)
        elif name == "crop":
            cache.crop(-what)
        else:
            cache.batch_select_indices(torch.tensor(what))
        seen.append([[int(label) for label in row] for row in cache.layers[0].keys[:, 0, :, 0]])
    return seen


three = [[11, 12, 13, 14, 15], [21, 22, 23, 24, 25], [31, 32, 33, 34, 35]]
with check.part("crop", weight=1):
    got = ask_operate(three, [("crop", 2), ("crop", 1)])
    check.mistake("crop takes the last k tokens off; you kept k", when=len(got[0][0]) == 2)
    check.mistake("the last tokens go, not the first", when=got[0][0] == [13, 14, 15])
    check.equal(got, real(three, [("crop", 2), ("crop", 1)]))
    check.equal(ask_operate(three, [("crop", 0)]), real(three, [("crop", 0)]))
with check.part("select", weight=2):
    got = ask_operate(three, [("select", [1, 2, 0])])
    check.mistake("row i of the result is row index[i] of before; you moved row i to place index[i]",
                  when=[row[0] for row in got[0]] == [31, 11, 21])
    check.equal(got, real(three, [("select", [1, 2, 0])]))
    steps = [("select", [2, 0]), ("grow", [[36], [16]]), ("select", [1])]
    check.equal(ask_operate(three, steps), real(three, steps))
with check.part("two beams that came from one go their own ways", weight=2):
    steps = [("select", [0, 0, 2]), ("grow", [[91], [92], [93]]), ("crop", 1), ("grow", [[94], [95], [96]])]
    got = ask_operate(three, steps)
    check.mistake("two rows are one list: growing one grew the other",
                  when=any(91 in row and 92 in row for row in got[1]))
    check.mistake("an earlier state changed afterwards: give each operation's result lists of its own",
                  when=got[0] != real(three, steps)[0] or got[1] != real(three, steps)[1])
    check.equal(got, real(three, steps))

# %% check="diagnosis"
def mishandled(variant):
    """(fault, first call that differs, healthy context, suspect context, lost at the last call)."""
    prompt, new = (38, 45, 51, 58)[variant // 4], (9, 10, 11, 12)[variant // 4]
    last = prompt + new - 2  # context of the last call
    return [
        ("stale", 1, 0, 12, 0),
        ("ignored", 2, prompt, 0, last),
        ("cropped", 5, prompt + 3, prompt + 2, 1),
        ("window", 2, prompt, 32, last - 32),
    ][variant % 4]


fault, first, good_context, bad_context, lost = mishandled(check.variant(16))
with check.part("which fault", weight=2):
    got = diagnosis()["fault"]
    check.mistake("a crop takes tokens off once; here the cache never grows again",
                  when=got == "cropped" and fault == "window")
    check.true(got == fault, "your two traces show another fault")
with check.part("where it first shows", weight=1):
    got = diagnosis()["call"]
    check.mistake("calls are numbered from 1", when=got == first - 1)
    check.mistake("the fourth call is still right: what it left behind is not",
                  when=fault == "cropped" and got == 4)
    check.equal(got, first)
with check.part("the evidence", weight=1):
    got = diagnosis()
    check.mistake("healthy and suspect have changed places",
                  when=(got["healthy"], got["suspect"]) == (bad_context, good_context))
    check.equal([got["healthy"], got["suspect"]], [good_context, bad_context])
with check.part("what the last call could not see", weight=2):
    got = diagnosis()["lost"]
    check.mistake("everything of this request is there; it is somebody else's tokens that are too many",
                  when=fault == "stale" and abs(got) == 12)
    check.mistake("the last call's own token is no loss: it is not in the cache yet, in any run",
                  when=got == lost + 1)
    check.equal(got, lost)
