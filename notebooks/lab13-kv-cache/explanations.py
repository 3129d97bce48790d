"""What the explanations of lab13-kv-cache are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("the-cache", """
state: what the cache keeps of each token, and what uses it in later calls
    who: the cache = KV cache, DynamicCache / attention = attention of later tokens, attention of later calls,
        attention in later calls, later tokens, next tokens, new tokens, queries of later tokens / the MLP =
        feed-forward, feed-forward block / lm_head / the backward pass
    keeps = stores, holds, remembers, saves, contains: the keys and values = key and value, K and V, KV /
        the queries = query / the attention scores = attention weights, scores / the hidden states =
        activations / the logits / the text = words, prompt / the weights = parameters
    uses = reads, needs, computes with, attends to, looks at: old keys and values = keys and values, them,
        key and value, K and V, KV, cached keys and values, earlier keys and values, kept keys and values,
        stored keys and values, keys and values of earlier tokens / old queries = cached queries, kept
        queries, stored queries / old attention scores = cached attention scores, kept attention scores,
        stored attention scores / the stored text = text, kept text, cached text
    changes = updates, recomputes, overwrites: old keys and values
    leaves alone = does not change, does not recompute: old keys and values
    more: in all layers = in each layer, in every layer, per layer / in the last layer only = only in last
        layer / of all tokens = of all tokens so far, of every token so far, of every token, of each token,
        per token, for every token, for each token, for all tokens, for every token so far / of the newest
        token only = only of newest token, of last token only, only of last token / per query head = for
        every query head, for each query head / in later calls = in every later call, in each later call,
        in all later calls, in every call, in each call
axis: which axis of the keys grows, how long it is in the first and the last call; how many heads there are
    who: the token axis = tokens, sequence axis, sequence length, sequence, third axis, axis 2, length,
        number of tokens / the head axis = heads, axis of heads, kv heads, key/value heads, kv head axis,
        number of heads, number of kv heads, second axis, axis 1 / head_dim = head size, last axis, axis 3 /
        the batch axis = batch, batch size, first axis, axis 0
    goes from # to # = grows from # to #, increases from # to #, gets longer from # to #:
    grows by # = gets longer by #, increases by #, gets # longer:
    is # long = has length #, has size #, is #, has # entries:
    stays at # = stays #, remains #, remains at #, keeps at #:
    stays the same = does not change, is fixed, is constant, remains the same, does not grow:
    drops = loses, evicts, overwrites: the oldest tokens = first tokens, old tokens
    more: in the first call = in prefill, after first call, after prefill / in every later call = in each
        later call, with every later call, with each later call, in every decode call, in each decode call,
        with every decode call, with each decode call / in the last call = at the end, after last call
trade-off: what keeping the cache saves in later calls; what it costs, and what makes this cost grow
    who: the cache = keeping the cache, caching
    lowers = reduces, saves, decreases, shortens, avoids: the time of later calls = time, latency, time of
        each later call, time of every later call, time of a later call, latency of later calls, time per
        token, latency per token / the computation of later calls = computation, compute, work,
        recomputation, computation of earlier tokens, work of later calls, computation of each later call,
        recomputation of earlier tokens / the time of the prefill = prefill, prefill time, latency of
        prefill / the memory = memory use, bytes, space / the size of the weights = weights / the quality =
        quality of answers
    raises = increases, costs, takes, needs: the time of later calls / the computation of later calls /
        the time of the prefill / the memory / the size of the weights / the quality
    leaves alone: the time of later calls / the computation of later calls / the time of the prefill / the
        memory / the size of the weights / the quality
    more: with every token = per token, for every token, for each token, with each token, with number of
        tokens, with every further token, with length, with tokens, with sequence length, with every new
        token, with every call, with each call / with every weight = with number of weights, with weights /
        once at the start = once, at once, at start
crossing: a number
gain: a quantity and its direction
    who: quality = expressiveness / error / memory = cache, cache size, size of cache, bytes / memory
        traffic = bandwidth, memory bandwidth, bytes read, bytes per token, traffic / batch = batch size,
        requests that fit / latency = time / throughput
    up = goes up, rises, grows:
    down = goes down, falls, shrinks:
cost: a quantity and its direction
    who: quality / error / memory / memory traffic / batch / latency / throughput
    up:
    down:
""")

# %% check="cache-crossing"
from inferlab.lab.explain import typed


@reference
def sizes():
    """Bytes of the model's weights, and of one token in its cache."""
    import torch
    from inferlab.lab.kits.kv_caches import real_bytes
    from inferlab.models import load_language_model
    from transformers import DynamicCache

    model, _ = load_language_model("bundled", "cpu")
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(torch.tensor([[5]]), None, None, cache)
    return sum(p.nbytes for p in model.parameters()), real_bytes(cache)


def crossing():
    """The typed number of tokens, to within 2%."""
    weights, token = sizes()
    return typed(check.explanation("the-cache"), "crossing", -(-weights // token), {
        "the query heads are not cached: eight of them share two keys.": weights // (4 * token),
        "keys and values: there are two of them.": 2 * weights // token,
    }, tolerance=0.02)


check.slot(crossing, "where the cache would pass the weights")

# %% check="cache-gain-cost"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("the-cache"), "gain", """
wanted: what fewer key/value heads improve
    memory / memory traffic / latency | down
    batch / throughput | up
"""), "what fewer key/value heads gain")
check.slot(lambda: words.grade(check.explanation("the-cache"), "cost", """
wanted: what fewer key/value heads may make worse
    quality | down
    error | up
"""), "what they may cost")

# %% check="cache-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("the-cache"), "state", """
wanted: what the cache keeps
    the cache | keeps | the keys and values | in all layers / of all tokens / in later calls
wanted: what uses it later
    attention | uses | old keys and values | in all layers / of all tokens / per query head / in later calls
true
    * | leaves alone | old keys and values | in all layers / of all tokens / per query head / in later calls
false: The cache has one key and one value for each of the 2 key/value heads.
    the cache | keeps | the keys and values | per query head
false: Every layer keeps its own keys and values.
    the cache / attention | keeps / uses | * | in the last layer only
false: The keys and values of all tokens so far are kept, and read.
    the cache / attention | keeps / uses | * | of the newest token only
false: A query is used once, by its own token, and makes its own scores: neither is kept.
    the cache | keeps | the queries / the attention scores
    * | uses | old queries / old attention scores
false: The tokens themselves are not kept: each layer keeps a key and a value for each.
    the cache | keeps | the text
    * | uses | the stored text
false: Hidden states and logits are thrown away, and the weights are elsewhere, the same for every request.
    the cache | keeps | the hidden states / the logits / the weights
false: It is the cache that keeps, and attention that uses. There is no backward pass here.
    * | keeps / uses | *
false: A key and a value stay as they are; the attention of later tokens reads them.
    * | changes | *
"""), "what is kept, and what uses it")

# %% check="cache-axis"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("the-cache"), "axis", """
wanted: how long the growing axis is in the first call
    the token axis | goes from 128 to 151
    the token axis | is 128 long | | +in the first call
wanted: how long the growing axis is in the last call
    the token axis | goes from 128 to 151
    the token axis | is 151 long | | in the last call
wanted: how many heads the keys have
    the head axis | stays at 2 / is 2 long | | *
true
    the token axis | goes from 0 to 128 / grows by 128 | | in the first call
    the token axis | goes from 150 to 151 / grows by 1 | | in the last call
    the token axis | goes from 128 to 129 / grows by 1 | | in every later call
    the token axis | goes from 0 to 151 / grows by 23 / grows by 151
    head_dim | stays at 32 / is 32 long | | *
    the batch axis | stays at 1 / is 1 long | | *
    the head axis / head_dim / the batch axis | stays the same | | *
false: 23 of the 24 new tokens are fed back: the last one is not in the cache.
    the token axis | goes from 128 to 152 / is 152 long / grows by 24
false: The heads (the 2 of keys and values, not those of the queries), their size and the batch are fixed.
    the head axis / head_dim / the batch axis | goes from # to # / grows by # / is # long / stays at #
false: Nothing is dropped and nothing is overwritten: each call appends to the keys.
    * | drops | the oldest tokens
false: Each later call appends one token: 128 in the first call become 151 in the last.
    the token axis | stays at # / stays the same
"""), "which axis grows, with its numbers")

# %% check="cache-trade-off"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("the-cache"), "trade-off", """
wanted: what the cache saves in later calls
    the cache | lowers | the time of later calls / the computation of later calls | with every token
wanted: what it costs, and what makes this cost grow
    the cache | raises | the memory | +with every token
true
    the cache | leaves alone | the time of the prefill | with every token
    the cache | leaves alone | the size of the weights / the quality | with every token
false: Nothing is computed again, so each later call is shorter than one without a cache.
    the cache | raises / leaves alone | the time of later calls / the computation of later calls
false: The keys and values of every token are held in memory.
    the cache | lowers / leaves alone | the memory
false: This cache takes no room at the start; it gets one token longer with every call, whatever the weights.
    the cache | raises | the memory | once at the start / with every weight
false: The cache changes neither the prefill nor the answers nor the weights.
    the cache | lowers / raises | the time of the prefill / the size of the weights / the quality
"""), "what the cache gains and costs")
