"""What the explanations of lab18-parallelism are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("two-ranks", """
state: what each rank computes of a layer's output, and what makes the whole hidden state of it
    who: each rank = a rank, every rank, both ranks, all ranks, the ranks / rank 0 alone = only rank 0, one
        rank alone, first rank alone / the all-reduce = all_reduce, allreduce / an all-gather = all_gather,
        allgather / a stage = pipeline stage, first stage, each stage
    computes = makes, produces, gives, calculates: a term of the sum = a term, its term of the sum, its own
        term of the sum, its own term, a partial sum, a partial output, a partial result, part of the sum /
        half of the hidden state = half the hidden state, half of the entries of the output / the whole
        hidden state = the hidden state, the whole output, the full hidden state, the whole sum / half of
        the layers = its own layers, some layers
    adds = sums, sums up, adds up: the terms of all ranks = the terms, the partial sums, the partial
        outputs, the partial results, both terms, the terms of both ranks, the terms of the ranks / the
        weights of all ranks = the weights
    puts side by side = concatenates, joins: the terms of all ranks / the weights of all ranks
    averages = takes the mean of: the terms of all ranks / the weights of all ranks
    passes on = sends on, hands on: the hidden state to the next rank = the hidden state to the next stage /
        the weights to the next rank
    more: in each layer = in every layer, in a layer / twice in each layer = twice a layer, twice in a
        layer, twice in every layer / after each projection = after every projection / from its own slices =
        from its own heads, with its own heads, from its own weights, from its own heads and columns, with
        its own slices, from its slices / on every rank = on each rank, on both ranks, on all ranks
axis: what is halved on a rank and what is not, with the numbers of the table in section 3
    who: the queries = q_proj, output of q_proj, query heads, heads, q / the keys = k_proj, output of
        k_proj, keys and values, values, key/value heads, KV heads, v_proj, KV cache, k / the MLP =
        gate_proj, up_proj, output of gate_proj, MLP width, width of the MLP / the hidden state = hidden
        size, hidden width, output of o_proj, output of down_proj, output of input_layernorm / the layers =
        number of layers / the tokens = the batch, batch axis, token axis
    go from # to # = goes from # to #, are halved from # to #, is halved from # to #, shrink from # to #,
        fall from # to #:
    are # = is #, have #, has #, are # wide, is # wide, are halved to #, shrink to #, fall to #:
    stay # = stay at #, keep #, keep width #, keep a width of #, remain #, stay whole at #, stays # wide:
    are halved = is halved, are cut, is cut, are split, is split:
    stay whole = are whole, is whole, are not halved, is not halved, stay the same, are not cut, is not cut,
        are not split, is not split:
    more: on each rank = on a rank, on every rank, on both ranks / in each layer
trade-off: beside tensor parallelism, what a pipeline gains, and what it costs one user of a big model
    who: a pipeline = the pipeline, PP, pipeline parallelism / tensor parallelism = TP
    exchanges = sends, needs: fewer bytes = less, less traffic, less data, fewer messages, less
        communication, fewer exchanges / more bytes = more, more traffic, more data, more messages, more
        communication, more exchanges / two all-reduces in each layer = two all-reduces a layer / one hidden
        state at each border = one hidden state, a hidden state at each border
    gives a token = makes a token, brings a token, answers, gives each token: sooner = faster, earlier /
        later = slower
    lets the ranks work = makes the ranks work: at the same time = together / one after the other = in turn
bytes: bytes
""")

# %% check="two-ranks-bytes"
from inferlab.lab.explain import typed

check.slot(lambda: typed(check.explanation("two-ranks"), "bytes", 16384, {
    "that is one message: there are two a layer": 1024,
    "two in every layer: one after the attention, one after the MLP": 8192,
    "the embedding's is not inside a layer": 17408,
}, tolerance=0.03), "the bytes that a rank puts in")

# %% check="two-ranks-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("two-ranks"), "state", """
wanted: what each rank computes
    each rank | computes | a term of the sum | in each layer / twice in each layer / from its own slices
wanted: what makes the whole hidden state
    the all-reduce | adds | the terms of all ranks | in each layer / twice in each layer / on every rank
    the all-reduce | computes | the whole hidden state | in each layer / twice in each layer / on every rank
true
    each rank | adds | the terms of all ranks | in each layer / twice in each layer
false: Of a pair of matrices only the second needs the sum: one all-reduce a pair.
    each rank / the all-reduce | computes / adds | * | after each projection
false: No rank is special: each has a term, and all get the sum.
    rank 0 alone | *
false: Every rank works on every layer, at the same time: there are no stages.
    a stage | *
    * | computes | half of the layers
    * | passes on | the hidden state to the next rank
false: One rank has only its term of the sum. What makes the whole of it?
    each rank | computes | the whole hidden state
false: A term has the full width, and the terms are added: nothing is averaged, cut or put side by side.
    * | computes | half of the hidden state
    * | puts side by side / averages | the terms of all ranks
    an all-gather | *
    the all-reduce | computes | a term of the sum
false: Weights stay where they are; activations are summed.
    * | * | the weights of all ranks / the weights to the next rank
"""), "what a rank computes, and what makes the whole")

# %% check="two-ranks-axis"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("two-ranks"), "axis", """
wanted: what is halved, with its numbers
    the queries | go from 256 to 128 / go from (1, 1, 256) to (1, 1, 128) / go from 8 to 4 | | *
    the queries | are 128 / are (1, 1, 128) / are (128, 256) / are 4 | | *
    the keys | go from 64 to 32 / go from (1, 1, 64) to (1, 1, 32) / go from 2 to 1 | | *
    the keys | are 32 / are (1, 1, 32) / are (32, 256) / are 1 | | *
    the MLP | go from 704 to 352 / go from (1, 1, 704) to (1, 1, 352) | | *
    the MLP | are 352 / are (1, 1, 352) / are (352, 256) | | *
wanted: what is not halved
    the hidden state | stay 256 / stay (1, 1, 256) / are 256 / are (1, 1, 256) / stay whole | | *
    the layers | stay 8 / are 8 / stay whole | | *
    the tokens | stay 1 / are 1 / stay whole | | *
true
    the queries / the keys / the MLP | are halved | | *
false: The hidden state is whole on both ranks: what is cut stands between two sums.
    the hidden state | *
false: Every rank has all the layers: it is each layer that is cut.
    the layers | *
false: Both ranks work on the same token of the same user.
    the tokens | *
false: Queries, keys and values, and the MLP are cut by their outputs.
    the queries / the keys / the MLP | stay # / stay whole
false: A rank has half of the heads and of the MLP, and no more.
    the queries / the keys / the MLP | go from # to # / are #
"""), "what is halved, with numbers")

# %% check="two-ranks-trade-off"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("two-ranks"), "trade-off", """
wanted: what a pipeline gains
    a pipeline | exchanges | fewer bytes / one hidden state at each border
    a pipeline | not: exchanges | more bytes / two all-reduces in each layer
    tensor parallelism | exchanges | more bytes / two all-reduces in each layer
wanted: what it costs one user
    a pipeline | gives a token | later
    a pipeline | lets the ranks work | one after the other
    a pipeline | not: gives a token | sooner
    a pipeline | not: lets the ranks work | at the same time
    tensor parallelism | gives a token | sooner
true
    tensor parallelism | lets the ranks work | at the same time
false: A pipeline sends one hidden state at each border of two stages.
    a pipeline | exchanges | more bytes / two all-reduces in each layer
    tensor parallelism | exchanges | fewer bytes / one hidden state at each border
false: One token of one user still passes every stage, one after the other: it comes no sooner.
    a pipeline | gives a token | sooner
    tensor parallelism | gives a token | later
false: For one user only one stage has work at a time.
    a pipeline | lets the ranks work | at the same time
    tensor parallelism | lets the ranks work | one after the other
"""), "what a pipeline gains and costs")
