"""The hidden tests of lab12-prefill-decode:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def traced_generate(prompt, new, batch):
    """The truth: a real run of the bundled model, traced."""
    import torch
    from inferlab.models import cache_argument, load_language_model
    from inferlab.trace import trace
    from transformers import DynamicCache

    model, _ = load_language_model("bundled", "cpu")
    cache, asked = DynamicCache(config=model.config), torch.arange(10, 10 + prompt).repeat(batch, 1)
    with torch.no_grad(), trace(model) as run:
        model.generate(asked, attention_mask=torch.ones_like(asked), min_new_tokens=new, max_new_tokens=new,
                       do_sample=False, **cache_argument(cache))
    calls = run["LlamaForCausalLM"]
    shapes = [tuple(call.inputs["input_ids"].shape) for call in calls]
    return {"calls": len(shapes), "logits": tuple(calls[0].outputs["logits"].shape),
            "keys": tuple(cache.layers[0].keys.shape)}


with check.part("how many calls", weight=1):
    want, got = traced_generate(7, 5, 1), ask_forecast(prompt=7, new=5)
    check.mistake("the last token is returned, not fed back: n tokens need n calls", when=got["calls"] == 6)
    check.mistake("one call makes one token: a long answer is not one pass", when=got["calls"] == 1)
    check.mistake("the prompt goes in at once: its tokens are no calls", when=got["calls"] >= 7)
    check.equal(got["calls"], want["calls"])
with check.part("the logits of the first call", weight=1):
    want, got = traced_generate(7, 5, 3), ask_forecast(prompt=7, new=5, batch=3)
    check.mistake("only the last position chooses the next token: generate asks for its logits alone",
                  when=got["logits"] == (3, 7, 1024))
    check.equal(got["logits"], want["logits"])
with check.part("the cache that is left", weight=3):
    want, got = traced_generate(9, 4, 3), ask_forecast(prompt=9, new=4, batch=3)
    check.mistake("the last token was never fed to the model, so nothing of it is in the cache",
                  when=got["keys"] == (3, 2, 13, 32))
    check.mistake("only the key/value heads are cached; the query heads share them",
                  when=got["keys"] == (3, 8, 12, 32))
    check.equal(got["keys"], want["keys"])
    check.equal(ask_forecast(prompt=9, new=4, batch=3, kv_heads=8, head_dim=64)["keys"], (3, 8, 12, 64))

# %% check="block"
looked_up = MADE_UP["embed"](token_card)
mixed = MADE_UP["attend"](MADE_UP["norm1"](looked_up))
half_way = looked_up + mixed
with check.part("what attention gets", weight=1):
    run_block()
    check.mistake("the norm comes before attention, not after it",
                  when=torch.equal(parts_given["attend"], looked_up))
    check.equal(parts_given["norm1"], looked_up)
    check.equal(parts_given["attend"], MADE_UP["norm1"](looked_up))
with check.part("what the second half begins with", weight=2):
    run_block()
    check.mistake("what attention computes is added to the state, and does not replace it",
                  when=torch.equal(parts_given["norm2"], mixed))
    check.mistake("the sum is over the state itself, not over its normalized copy",
                  when=torch.equal(parts_given["norm2"], MADE_UP["norm1"](looked_up) + mixed))
    check.mistake("the second half works on what the first half left, not on the embedding",
                  when=torch.equal(parts_given["norm2"], looked_up))
    check.equal(parts_given["norm2"], half_way)
    check.equal(parts_given["mlp"], MADE_UP["norm2"](half_way))
with check.part("what leaves the block", weight=2):
    got, added = run_block(), MADE_UP["mlp"](MADE_UP["norm2"](half_way))
    check.mistake("what the MLP computes is added to the state, and does not replace it",
                  when=torch.equal(got, added))
    check.mistake("the MLP's result is added to the state after attention, not to the embedding",
                  when=torch.equal(got, looked_up + added))
    check.close(got, half_way + added)

# %% check="greedy"
check.mistake("the first position's logits were used: the next token is predicted at the last one",
              when=got.shape[1] > 5 and int(got[0, 5]) == int(scores(prompt_card)[0, 0].argmax()))
check.mistake("the prompt is missing from what you return", when=got.shape[1] == 6)

# %% check="greedy"
with check.part("the prompt once, then one token a call", weight=2):
    run_greedy(6)
    sizes = [part.shape[1] for part, _ in fed]
    check.mistake("the whole sequence was fed again: what the state holds must not be fed twice",
                  when=sizes[1:2] == [6])
    check.mistake("the prompt went in token by token: that is decode's price for prefill's work",
                  when=sizes[:5] == [1] * 5)
    check.true(sizes[:1] == [5] and set(sizes[1:]) == {1}, f"the calls got {sizes} tokens")
with check.part("each call gets the state of the call before", weight=2):
    run_greedy(6)
    held = [before for _, before in fed]
    check.mistake("the state was dropped: the model forgets the prompt after its first call",
                  when=held[1:2] == [0])
    check.equal(held[:6], [0, 5, 6, 7, 8, 9])
with check.part("as many calls as tokens", weight=1):
    for n in (1, 6):
        run_greedy(n)
        check.mistake("the last token was fed, and nobody needs what comes after it", when=len(fed) == n + 1)
        check.equal(len(fed), n)
with check.part("stops after the end token, and keeps it", weight=2):
    want = right(9)
    eos = int(want[0, 5 + 3])  # the fourth new token, if it is the first of its kind
    stop = 5 + [int(token) for token in want[0, 5:]].index(eos) + 1
    got = run_greedy(9, eos)
    check.mistake("the end token belongs to the answer", when=got.shape[1] == stop - 1)
    check.mistake("decoding went on after the end token", when=got.shape[1] > stop)
    check.equal(got, want[:, :stop])
    check.true(len(fed) == stop - 5, "after the end token nothing is fed")

# %% check="flops"
check.mistake("a multiply-add is two FLOPs", when=got == 5_898_240)
check.mistake("lm_head is missing: the largest single matrix of a small model", when=got == 11_272_192)
check.mistake("the embedding is looked up, not multiplied", when=got == 11_796_480 + 2 * 262_144)

# %% check="flops"
def truth(sizes, new, context, batch):
    """The count; tests/lab/test_roofline.py proves it against torch's FLOP counter on running models."""
    cost = call_cost(sizes, new, context, batch)
    return {"linear": cost.linear_flops, "attention": cost.attention_flops}


OTHERS = [SMALL | {"num_key_value_heads": kv, "num_hidden_layers": 3, "head_dim": 48} for kv in (1, 4, 8)]
with check.part("the matrices of a prefill: lm_head on the last position only", weight=2):
    got, want = ask_flops(SMALL, 100, 0, 3)["linear"], truth(SMALL, 100, 0, 3)["linear"]
    check.mistake("logits of every position: generate asks for the last one of each sequence",
                  when=got == call_cost(SMALL, 100, 0, 3, all_logits=True).linear_flops)
    check.equal(got, want)
    check.equal([ask_flops(sizes, 7, 5, 2)["linear"] for sizes in OTHERS],
                [truth(sizes, 7, 5, 2)["linear"] for sizes in OTHERS])
with check.part("attention in prefill and decode", weight=2):
    for new, context, batch in ((100, 0, 3), (1, 256, 1)):
        got, want = ask_flops(SMALL, new, context, batch)["attention"], truth(SMALL, new, context,
                                                                              batch)["attention"]
        check.mistake("a new token attends to itself too: the keys are context + new",
                      when=context and got == want // (context + 1) * context)
        check.mistake("there are two products, with the keys and with the values", when=got * 2 == want)
        check.equal(got, want)
with check.part("attention with other numbers of key/value heads", weight=1):
    got = [ask_flops(sizes, 1, 63, 2)["attention"] for sizes in OTHERS]
    check.mistake("shared key heads save bytes, not FLOPs: every query head multiplies",
                  when=got[0] * 8 == got[2])
    check.equal(got, [truth(sizes, 1, 63, 2)["attention"] for sizes in OTHERS])

# %% check="diagnosis"
def wasteful(variant):
    """(fault, positions, positions of the healthy run)."""
    prompt, new = (38, 45, 51, 58)[variant // 4], (9, 11, 13, 14)[variant // 4]
    fed = prompt + new - 1
    return [
        ("no cache", sum(range(prompt, prompt + new)), fed), ("all logits", fed, fed),
        ("padding", 96 + new - 1, fed), ("chunks", fed, fed),
    ][variant % 4]


fault, positions, healthy_positions = wasteful(check.variant(16))
with check.part("which fault", weight=3):
    got = diagnosis()["fault"]
    check.mistake("a chunk is shorter than the prompt; here the first call is longer than the prompt",
                  when=got == "chunks" and fault == "padding")
    check.true(got == fault, "your two traces show another fault")
with check.part("the positions that went through the layers", weight=3):
    got = diagnosis()["positions"]
    check.mistake("this is what the healthy run computed", when=got == healthy_positions != positions)
    check.mistake("the last token is never fed", when=got == positions + 1)
    check.equal(got, positions)
