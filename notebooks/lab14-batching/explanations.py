"""What the explanations of lab14-batching are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("batch-in-words", """
state: in continuous batching, which requests leave, which come in, and who sees to it
    who: the scheduler = engine, server, batcher, FIFO scheduler, continuous batching / the GPU = hardware,
        machine, kernels / the model = LLM, attention / the longest request = slowest request
    removes = lets out, drops, takes out, releases, kicks out, frees slots of, frees slot of: the finished
        requests = completed requests, done requests, requests that are done, requests that have finished,
        finished requests from the batch, requests that are done from the batch, finished ones, whoever is
        done, whoever has finished, finished sequences / the running requests = unfinished requests, active
        requests
    admits = lets in, adds, inserts, takes in, brings in: the waiting requests = queued requests, new
        requests, next requests, next waiting requests, waiting ones, requests in queue, requests that wait,
        requests that have arrived, newcomers, waiting sequences / the finished requests
    waits for: the longest request / the whole batch = entire batch, all requests
    pauses = interrupts, stops: the running requests
    pads = fills up: the waiting requests
    decides = chooses, selects: who takes part = who runs, requests of next iteration
    more: before each iteration = before every iteration, between iterations, between two iterations, after
        each iteration, after every iteration, in each iteration, before each call, before every call, after
        each call, after every call, before each step, after each step, between two steps, at once / into
        the free slots = in free slots, into their slots, in their slots, in their place, into the batch, to
        the batch / in the order of arrival = by arrival, first come first served / in the order of length =
        by length, shortest first / when the whole batch is done = after whole batch, when all are done,
        when longest request is done / instead of a running request = in place of running request
axis: what the first axis counts in a padded decode step, and the second one in a packed step of three
    who: the first axis = axis 0, batch axis, rows, row / the second axis = axis 1, columns, sequence axis,
        token axis, last axis
    counts = holds, is, has: # requests = # sequences, # of the requests / # tokens = # new tokens / # tokens
        of different requests = # tokens of running requests, # tokens of requests / # tokens of the same
        request = # tokens of single request, # tokens of one request / # positions of the prompt = # prompt
        tokens, # tokens of prompt
    has length # = length #, #, is # long, is #, has size #, counts # rows, has # rows, is # rows:
    more: in the padded run = in padded batch, in padded step, in static batch / in the packed run = in
        packed step, in packed row / to the end = in every decode step
trade-off: what a larger batch gains, and what it costs
    who: a larger batch = bigger batch, larger batches, more requests at once, more slots, batching
    raises = increases, needs more: the throughput = total throughput, tokens per second, total tokens per
        second, tokens per second in all / the intensity = arithmetic intensity, FLOPs per byte, utilization,
        utilisation / the latency of each token = latency, time of each step, time of step, step time, time
        per token, time per output token, inter-token latency, ITL, latency of each request, latency per
        token, time per step / the memory for the caches = memory, cache memory, KV cache, KV cache memory,
        memory for KV cache, memory for the cache, memory of caches / the memory for the weights
    lowers = decreases, reduces: the throughput / the latency of each token / the speed of each request =
        speed for each request, tokens per second of each request, tokens per second for each request,
        tokens per second per request / the weight reads for each token = weight reads, weight traffic,
        weight reads per token, bytes per token, bytes read for each token / the waiting time in the queue =
        waiting time, queueing time, time to first token, TTFT / the memory for the caches
    leaves alone = does not change, keeps: the throughput / the memory for the caches / the memory for the
        weights
idle: a number
""")

# %% check="batch-words-idle"
from inferlab.lab.explain import typed

lengths = (3, 14, 5, 4, 9, 2)
check.slot(lambda: typed(check.explanation("batch-in-words"), "idle", sum(14 - n for n in lengths), {
    "those are the tokens that were made; the rest of the 6 x 14 places is idle.": sum(lengths),
    "a batch does not end together: five of the six requests are done before the last call.": 0,
}), "rows that were computed for nobody")

# %% check="batch-words-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("batch-in-words"), "state", """
wanted: which requests leave
    the scheduler | removes | the finished requests | before each iteration
wanted: which come in
    the scheduler | admits | the waiting requests | before each iteration / into the free slots / in the
        order of arrival
true
    the scheduler | decides | who takes part | before each iteration / in the order of arrival
false: That is static batching: here who is in the batch is decided anew before every iteration.
    the longest request | *
    * | waits for | *
    * | * | * | when the whole batch is done
false: The machine computes what it is given. What chooses the requests of an iteration?
    the GPU / the model | *
false: Nobody who runs is paused or sent back: only the finished leave.
    * | pauses / removes | the running requests
    * | * | * | instead of a running request
false: It is the finished that leave, and the waiting that come in.
    * | admits | the finished requests
false: Nothing is padded for a newcomer: the requests lie end to end in one row.
    * | pads | *
false: First come, first served: nobody knows how long an answer becomes.
    * | * | * | in the order of length
"""), "what happens between two iterations")

# %% check="batch-words-axis"
### FIXTURE words


@reference
def facts():
    """input_ids of decode steps of both runs; the prompts' texts do not matter."""
    import torch
    from inferlab.lab.kits.batching import engine_run
    from inferlab.models import load_language_model
    from inferlab.trace import trace

    model, _ = load_language_model("bundled", "cpu")
    ids = torch.full((6, 3), 9)
    with torch.no_grad(), trace(model) as run:
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=2, min_new_tokens=2,
                       do_sample=False)
    calls = engine_run(model, [[5, 6, 7]] * 6, (3, 14, 5, 4, 9, 2), 3)[1]
    return {"padded step": tuple(run.facts()["LlamaForCausalLM.inputs.input_ids.shapes"][1]),
            "packed step": (1, calls[1][0]), "last packed step": (1, calls[-1][0])}


def numbers():
    """How many rows the padded step has, and tokens the second and the last packed one."""
    shapes = facts()
    return {"rows": shapes["padded step"][0], "tokens": shapes["packed step"][1],
            "last": shapes["last packed step"][1]}


check.slot(lambda: words.grade(check.explanation("batch-in-words"), "axis", """
wanted: what the first axis counts in the padded run, and how many
    the first axis | counts | {rows} requests | in the padded run / to the end
wanted: what the second axis counts in the packed run, and how many
    the second axis | counts | {tokens} tokens / {tokens} tokens of different requests / {tokens} requests |
        in the packed run
true
    the first axis | counts | {rows} tokens / {rows} tokens of different requests | in the padded run / to
        the end
    the first axis | has length {rows} | | in the padded run / to the end
    the first axis | has length 1 | | in the packed run / to the end
    the second axis | counts | {last} tokens / {last} tokens of different requests / {last} requests | in the
        packed run / to the end
    the second axis | counts | 1 tokens / 1 tokens of the same request | in the padded run / to the end
    the second axis | has length 1 | | in the padded run / to the end
    the second axis | has length {tokens} / has length {last} | | in the packed run
false: In a decode step the prompt is in the cache: each request that takes part brings one new token.
    * | counts | # positions of the prompt
false: The packed row of a decode step holds one token of each request that runs.
    the second axis | counts | # tokens of the same request | in the packed run
    the first axis | counts | # requests / # tokens of different requests | in the packed run
false: In the padded run the requests are rows, and all of them stay to the end.
    the second axis | counts | # requests / # tokens / # tokens of different requests | in the padded run
    the first axis | counts | # tokens of the same request
    the first axis | counts | # requests | in the padded run
""", numbers()), "which axis counts what, with its numbers")

# %% check="batch-words-trade-off"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("batch-in-words"), "trade-off", """
wanted: what a larger batch gains
    a larger batch | raises | the throughput / the intensity
    a larger batch | lowers | the weight reads for each token / the waiting time in the queue
wanted: what it costs
    a larger batch | raises | the latency of each token / the memory for the caches
    a larger batch | lowers | the speed of each request
true
    a larger batch | leaves alone | the memory for the weights
false: A step with more rows is never faster: each request gets its next token no sooner than alone.
    a larger batch | lowers | the latency of each token
false: The weights are read once a step, so each further request gets tokens out of the same reading.
    a larger batch | lowers / leaves alone | the throughput
false: The weights are there once, however many share the batch.
    a larger batch | raises | the memory for the weights
false: Each request has its own cache; what is shared is the reading of the weights.
    a larger batch | lowers / leaves alone | the memory for the caches
"""), "what a larger batch gains and costs")
