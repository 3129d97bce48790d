"""What the explanations of lab12-prefill-decode are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("two-phases", """
state: what a decode call reads that the calls before it have left, and what it need not compute for that
    who: a decode call = decode, decode step, decode pass, later call, every decode call, each decode call,
        attention, new token / the first call = prefill, prefill call
    reads = takes, finds, reuses, fetches, uses, loads: the keys and values of all earlier tokens = keys and
        values, keys and values of earlier tokens, keys and values of old tokens, keys and values of previous
        tokens, cached keys and values, all keys and values, stored keys and values, keys and values that the
        earlier calls have left, keys and values of the calls before, K and V of earlier tokens, K and V, KV
        cache, cache / the keys and values of the last token only = only the keys and values of the last token
        / the hidden states of the earlier tokens = hidden states, activations / the queries of the earlier
        tokens = queries / the text of the earlier tokens = text / the weights = all weights, every weight
    leaves = adds, appends, writes: the keys and values of the new token = its own keys and values, own keys
        and values / the keys and values of the prompt
    computes = processes, runs, works on: the new token only = only the new token, just the new token, one
        token, only one token, just one token, one new token, only one new token, new token, new token alone /
        the earlier tokens again = earlier tokens, old tokens, previous tokens, prompt again, old tokens
        again, all tokens again, everything again / the whole prompt = prompt
    avoids = skips, spares, saves, does not need, does without: the computation of the earlier tokens =
        recomputation of earlier tokens, recomputation, computing the earlier tokens again, computation of
        old tokens, computation of prompt, recomputing the earlier tokens,
        recomputing the prompt, recomputation of prompt, recomputation of old tokens / the
        reading of the weights = reading weights / the attention to the earlier tokens / memory
    more: from the cache = from KV cache / in the cache = in KV cache, to the cache, into the cache / because
        of the cache = thanks to the cache, with the cache, because of KV cache / in each layer = of each
        layer, in every layer, in all layers
axis: how many tokens go into the first call and into each later one, and how long the cache is at the end
    who: the token axis = token axis of input_ids, sequence axis, axis 1, second axis, input_ids, number of
        tokens that go in, input / the batch axis = axis 0, first axis, batch / the cache = KV cache, cache
        length, length of the cache, keys and values / the vocabulary axis of the logits = vocabulary axis,
        logits, vocabulary / the first call / each later call = every later call, each decode call, every
        decode call, a decode call, each call of decode
    takes # = takes # tokens, gets # tokens, processes # tokens, computes # tokens, is given # tokens:
    has length # = length #, #, is #, is # long, holds #, holds # tokens, has # tokens, is # tokens long,
        grows to #, grows to # tokens, ends at #, reaches #:
    goes from # to # = grows from # to #, shrinks from # to #, drops from # to #, changes from # to #, goes
        from # to # tokens, grows from # to # tokens, drops from # to # tokens:
    grows by # = grows by # token, gets # longer, gets # token longer, gains # token:
    stays the same = is the same from the first call to the last, stays the same from the first call to the
        last, is the same in the first call and later, is the same, never changes, does not change:
    more: in the first call = in prefill / in each later call = in every later call, in each decode call, in
        every decode call, in each call of decode / during decode = in decode, in later calls / after
        prefill = after the first call / in the last call = at the end, after the last call
trade-off: what you gain, and what you pay, when more sequences share each decode call
    who: a larger batch = bigger batch, larger batches, more sequences in a call, more sequences, batching
    raises = increases, needs more: the throughput = total throughput, tokens per second, total tokens per
        second, tokens per second in all / the intensity = arithmetic intensity, FLOPs per byte, utilization,
        utilisation / the latency of each token = latency, time of each call, time of a call, time per token,
        time per output token, latency per token, latency of each call, time per call, inter-token latency,
        ITL / the memory for the caches = memory, cache memory, KV cache, KV cache memory, memory for KV
        cache, memory for the cache, memory of caches / the memory for the weights
    lowers = decreases, reduces: the throughput / the latency of each token / the speed of each sequence =
        speed for each user, speed of each user, tokens per second of each sequence, tokens per second for
        each user, tokens per second of each user / the weight reads for each token = weight reads, weight
        traffic, weight reads per token, bytes per token, bytes read for each token / the memory for the
        caches
    leaves alone = does not change, keeps: the throughput / the memory for the caches / the memory for the
        weights
readings: a number
""")

# %% fixture="facts"
@reference
def facts():
    """The run of section 3, traced again; its shapes and counts do not depend on the prompt's words."""
    import torch
    from inferlab.models import cache_argument, load_language_model
    from inferlab.trace import trace
    from transformers import DynamicCache

    model, _ = load_language_model("bundled", "cpu")
    cache, ids = DynamicCache(config=model.config), torch.arange(10, 138).reshape(1, 128)
    with torch.no_grad(), trace(model) as again:
        model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=24, max_new_tokens=24,
                       do_sample=False,
                       **cache_argument(cache))
    shapes = [tuple(call.inputs["input_ids"].shape) for call in again["LlamaForCausalLM"]]
    lengths = list(range(shapes[0][1], int(cache.get_seq_length()) + 1))
    return again.facts() | {"prompt": shapes[0][1], "calls": len(shapes), "length": lengths[-1],
                            "vocabulary": model.config.vocab_size}

# %% check="phases-counts"
from inferlab.lab.explain import typed


### FIXTURE facts


check.slot(lambda: typed(check.explanation("two-phases"), "readings", facts()["calls"] - 1, {
    "the first reading is prefill's, and it makes the first token.": facts()["calls"],
    "the prompt does not dominate a long answer: every later call reads all weights again.": 1,
}), "the readings of the weights after the first token")

# %% check="phases-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("two-phases"), "state", """
wanted: what a decode call reads that the calls before it have left
    a decode call | reads | the keys and values of all earlier tokens | from the cache / in the cache /
        because of the cache / in each layer
wanted: what it need not compute for that
    a decode call | computes | the new token only | from the cache / because of the cache / in each layer
    a decode call | avoids | the computation of the earlier tokens | because of the cache / in each layer
    a decode call | not: computes | the earlier tokens again / the whole prompt | because of the cache
true
    a decode call / the first call | reads | the weights | in each layer
    a decode call | leaves | the keys and values of the new token | in the cache / in each layer
    the first call | leaves | the keys and values of the prompt | in the cache / in each layer
    the first call | computes | the whole prompt | in each layer
false: Every call reads all weights and attends to all tokens: only the old tokens are not computed again.
    * | reads | the weights | from the cache
    * | avoids | the reading of the weights / the attention to the earlier tokens
false: The cache takes memory; what it saves is computing the old tokens again.
    * | avoids | memory
false: The first call computes the whole prompt and leaves its keys and values; it is decode that reads them.
    the first call | *
false: Keys and values of all earlier tokens are kept, in each layer: no hidden states, queries, or text.
    * | reads | *
false: Decode is no small prefill: only its new token goes through the layers, and leaves its keys and values.
    a decode call | computes / leaves | *
"""), "what a decode call reads, and what that saves")

# %% check="phases-axis"
### FIXTURE facts

### FIXTURE words

check.slot(lambda: words.grade(check.explanation("two-phases"), "axis", """
wanted: how many tokens go into the first call
    the token axis | has length {prompt} / takes {prompt} | | +in the first call
    the first call | has length {prompt} / takes {prompt}
    the token axis | goes from {prompt} to 1 | | during decode / in each later call / after prefill
wanted: how many tokens go into each later call
    the token axis | has length 1 / takes 1 | |
        +in each later call / +during decode / +after prefill / in the last call
    each later call | has length 1 / takes 1 | | during decode / after prefill
    the token axis | goes from {prompt} to 1
wanted: what grows, and how far
    the cache | goes from {prompt} to {length} | | during decode / in the last call / after prefill
    the cache | has length {length} / goes from 0 to {length} | | in the last call
    the cache | grows by 1 | | +in each later call / in the last call / during decode / after prefill
    the cache | grows by {later calls} | | +during decode / +after prefill
true
    the cache | has length {prompt} | | in the first call / after prefill
    the cache | goes from 0 to {prompt} / grows by {prompt} | | in the first call
    the token axis | stays the same | | +during decode / +in each later call / +after prefill
    the batch axis | has length 1 / stays the same | | *
    the vocabulary axis of the logits | has length {vocabulary} / stays the same | | *
false: The batch is 1, and the vocabulary is what it is: what grows is what attention looks back at.
    the batch axis / the vocabulary axis of the logits | *
false: The last token was returned and never fed, so the cache has nothing of it.
    the cache | has length {one too many} / goes from {prompt} to {one too many}
false: The first call takes the whole prompt, each later one a single token: so the cache starts and grows.
    the token axis / the first call / each later call / the cache | *
""", facts() | {"later calls": facts()["calls"] - 1, "one too many": facts()["length"] + 1}),
    "which axis differs and what grows, with its numbers")

# %% check="phases-trade-off"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("two-phases"), "trade-off", """
wanted: what you gain
    a larger batch | raises | the throughput / the intensity
    a larger batch | lowers | the weight reads for each token
wanted: what you pay
    a larger batch | raises | the latency of each token / the memory for the caches
    a larger batch | lowers | the speed of each sequence
true
    a larger batch | leaves alone | the memory for the weights
false: A call with more rows is never faster: each user gets the next token no sooner than alone.
    a larger batch | lowers | the latency of each token
false: The weights are read once a call, so each further sequence gets tokens out of the same reading.
    a larger batch | lowers / leaves alone | the throughput
false: The weights are there once, however many share the batch.
    a larger batch | raises | the memory for the weights
false: Each sequence has its own cache; what is shared is the reading of the weights.
    a larger batch | lowers / leaves alone | the memory for the caches
"""), "what a larger batch gains and costs")
