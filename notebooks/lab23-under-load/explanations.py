"""What the explanations of lab23-under-load are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="rerun"
@reference
def rerun():
    """(longest gap beside chunks of a long prompt, tokens of the prefill after an eviction), served again."""
    import torch
    from inferlab.lab.kits.service.load import gaps_of, serve_load
    from inferlab.models import load_language_model

    model, _ = load_language_model("bundled", "cpu", draft=True)
    document = list(range(300, 396))
    asked = [document + [50 + k, 60 + k] for k in range(3)] + [list(range(20, 118)), document + [53, 63]]
    with torch.no_grad():
        chunks = serve_load(model, [(0, 8, 16)] * 4 + [(100, 180, 1)], budget=32)
        hits = serve_load(model, [(400 * k, 98, 3) for k in range(5)], prompts=asked, share=True, blocks=9)
    parts = [part for call in hits["calls"] for part in call["parts"]]
    return (max(max(gaps_of(one)) for one in chunks["requests"][:4]),
            max(count for request, count in parts if request == 4))

# %% fixture="words"
from inferlab.lab import Words

words = Words("load-in-words", """
state: what a request that is preempted and computed again keeps, and what it loses
    who: a preempted request = the preempted request, preempted requests, it that is preempted
    keeps = retains: its generated tokens = generated tokens, tokens of its answer, tokens that it has made,
        tokens that they have made / its keys and values = keys and values, its cache, its KV cache,
        its blocks
    loses: its generated tokens / its keys and values / time = some time / nothing
    gets = ends with: the same answer / another answer = a different answer
price: what smaller chunks do to the others' gaps, to the long prompt's first token, and to the calls
    who: smaller chunks = small chunks, chunks, chunked prefill
    lower = reduce, shorten: the longest gap of the others = longest gap, gaps of the others, longest gap of
        the requests that decode / the first token of the long prompt = time to first token of the long
        prompt, TTFT of the long prompt, wait for the first token of the long prompt / the number of calls =
        calls
    raise = lengthen, increase: the longest gap of the others / the first token of the long prompt / the
        number of calls
    leave alone = do not change: the longest gap of the others / the first token of the long prompt / the
        number of calls
load: what a busy share of 100% shows or hides, and what a mean latency shows or hides
    who: a busy share of 100% = 100% busy, a utilization of 100%, utilization of 100%, full utilization,
        100% utilization / the mean latency = mean, average latency, average
    shows = tells, says: the tail = slowest requests / how much more load fits = capacity, how near the
        capacity is / that some call runs = some call runs
    hides = leaves open, conceals: the tail / how much more load fits
apart: what is handed over, and what separate prefill and decode do to gaps and to a single request
    who: the prefill machine / separate machines = separate prefill and decode, disaggregation, two machines
    hand over = send, transfer: the keys and values of the prompt = blocks of the prompt, cache of the
        prompt, KV cache of the prompt, keys and values / the weights
    lower = reduce, shorten: the longest gap of the others / the latency of a single request = latency of one
        request, a single request
    raise = lengthen, increase: the longest gap of the others / the latency of a single request
gap: a number of ticks
hit: a number of tokens
""")

# %% check="words-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("load-in-words"), "state", """
wanted: what it keeps
    a preempted request | keeps | its generated tokens
    a preempted request | gets | the same answer
wanted: what it loses of the cache
    a preempted request | loses | its keys and values
wanted: what else it loses
    a preempted request | loses | time
false: Preemption loses no token of the answer, but its blocks are gone, and it waits and is computed again.
    a preempted request | loses | nothing
    a preempted request | keeps | its keys and values
false: The tokens that it has made become part of its prompt: compare the answers of section 3.
    a preempted request | loses | its generated tokens
    a preempted request | gets | another answer
"""), "what preemption loses")
check.slot(lambda: words.grade(check.explanation("load-in-words"), "price", """
wanted: the gaps
    smaller chunks | lower | the longest gap of the others
wanted: the long prompt
    smaller chunks | raise | the first token of the long prompt
wanted: the calls
    smaller chunks | raise | the number of calls
false: Every chunk is a call, and every call reads the weights.
    smaller chunks | lower / leave alone | the first token of the long prompt / the number of calls
false: A call is everybody's gap: less of the prompt in it makes it shorter.
    smaller chunks | raise / leave alone | the longest gap of the others
"""), "the price of chunks")

# %% check="words-load"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("load-in-words"), "load", """
wanted: what a busy share of 100% hides
    a busy share of 100% | hides | how much more load fits
    a busy share of 100% | not: shows | how much more load fits
wanted: what a mean latency hides
    the mean latency | hides | the tail
    the mean latency | not: shows | the tail
true
    a busy share of 100% | shows | that some call runs
    a busy share of 100% | hides | the tail
    the mean latency | hides | how much more load fits
false: The mean can stay as it is while the tail changes: compare the gaps in the runs with chunks.
    the mean latency | shows | the tail
false: One number of all requests says nothing of those that come on top, nor of the slowest.
    the mean latency | shows | how much more load fits
    a busy share of 100% | shows | the tail
false: The machine is busy all the time from a small load on: look at the batch.
    a busy share of 100% | shows | how much more load fits
"""), "what numbers say about load")
check.slot(lambda: words.grade(check.explanation("load-in-words"), "apart", """
wanted: what is handed over
    the prefill machine / separate machines | hand over | the keys and values of the prompt
wanted: the gaps of the others
    separate machines / the prefill machine | lower | the longest gap of the others
wanted: a single request
    separate machines | raise | the latency of a single request
    separate machines | not: lower | the latency of a single request
false: A single request has the same calls on two machines, and the hand-over comes on top.
    separate machines / the prefill machine | lower | the latency of a single request
false: Both machines have the weights. What the decode machine lacks is what was computed of the prompt.
    separate machines / the prefill machine | hand over | the weights
false: No prompt comes into the calls of the machine that decodes.
    separate machines / the prefill machine | raise | the longest gap of the others
"""), "separate prefill and decode")

# %% check="words-entries"
from inferlab.lab.explain import typed

### FIXTURE rerun

check.slot(lambda: typed(check.explanation("load-in-words"), "gap", rerun()[0], unit="ticks"),
           "the longest gap")
check.slot(lambda: typed(check.explanation("load-in-words"), "hit", rerun()[1], unit="tokens"),
           "the prefill of question 4")
