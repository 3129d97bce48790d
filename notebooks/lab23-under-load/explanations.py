"""What the explanations of lab23-under-load are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("load-in-words", """
preempted: what a request that is preempted and computed again keeps, and what it loses
    who: a preempted request = the preempted request, preempted requests, it that is preempted
    keeps = retains: its generated tokens = generated tokens, tokens of its answer, tokens that it has made,
        tokens that they have made / its keys and values = keys and values, its cache, its KV cache,
        its blocks
    loses: its generated tokens / its keys and values / time = some time / nothing
    gets = ends with: the same answer / another answer = a different answer
load: what a busy share of 100% shows or hides, and what a mean latency shows or hides
    who: a busy share of 100% = 100% busy, a utilization of 100%, utilization of 100%, full utilization,
        100% utilization / the mean latency = mean, average latency, average
    shows = tells, says: the tail = slowest requests / how much more load fits = capacity, how near the
        capacity is / that some call runs = some call runs
    hides = leaves open, conceals: the tail / how much more load fits
apart: what is handed over, and what separate prefill and decode do to a request that is alone
    who: the prefill machine / separate machines = separate prefill and decode, disaggregation, two machines
    hand over = send, transfer: the keys and values of the prompt = blocks of the prompt, cache of the
        prompt, KV cache of the prompt, keys and values / the weights
    lower = reduce, shorten: the longest gap of the others = longest gap, gaps of the others / the latency of
        a lone request = latency of one request, latency of a single request, a lone request, a single request
    raise = lengthen, increase: the longest gap of the others / the latency of a lone request
handed: bytes of the hand-over
""")

# %% check="words-fields"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("load-in-words"), "preempted", """
wanted: what it keeps
    a preempted request | keeps | its generated tokens
    a preempted request | gets | the same answer
wanted: what it loses of the cache
    a preempted request | loses | its keys and values
true
    a preempted request | loses | time
false: Preemption loses no token of the answer, but its blocks are gone, and it waits and is computed again.
    a preempted request | loses | nothing
    a preempted request | keeps | its keys and values
false: The tokens that it has made become part of its prompt: compare the answers of section 3.
    a preempted request | loses | its generated tokens
    a preempted request | gets | another answer
"""), "what preemption loses")
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
true
    separate machines / the prefill machine | lower | the longest gap of the others
wanted: a request that is alone
    separate machines | raise | the latency of a lone request
    separate machines | not: lower | the latency of a lone request
false: A request that is alone has the same calls on two machines, and the hand-over comes on top.
    separate machines / the prefill machine | lower | the latency of a lone request
false: Both machines have the weights. What the decode machine lacks is what was computed of the prompt.
    separate machines / the prefill machine | hand over | the weights
false: No prompt comes into the calls of the machine that decodes.
    separate machines / the prefill machine | raise | the longest gap of the others
"""), "separate prefill and decode")

# %% check="words-handed"
from inferlab.lab.explain import typed

token_of = 2 * 32 * 8 * 128 * 2  # bytes of a token in Llama 3 8B
check.slot(lambda: typed(check.explanation("load-in-words"), "handed", 63 * 16 * token_of, {
    "only whole blocks are handed over": 1000 * token_of,
    "a hand-over goes one way": 2 * 63 * 16 * token_of,
    "a token has a key and a value": 63 * 8 * token_of,
}, unit="the hand-over"), "the bytes of the hand-over")
