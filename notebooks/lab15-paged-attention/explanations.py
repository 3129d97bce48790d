"""What the explanations of lab15-paged-attention are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("pages-in-words", """
state: which object says where keys and values lie, what it maps to what, and whom one such object serves
    who: the block table = page table, table, list of
        blocks, block list / the reference count = refcount, reference counts / the list of free blocks =
        free list / the scheduler = batcher / the model = attention, kernel
    maps = translates, turns, converts: each page to a block = pages to blocks, positions to blocks, page to
        block, each page of positions to a block, each page to its block, each position to a block, page
        number to block number, positions to block numbers, logical blocks to physical blocks, logical pages
        to physical blocks, pages to physical blocks, positions to physical blocks, each page to a physical
        block, each logical page to a physical block, each page to a block number, each position into a block,
        each position to its block, each page into a block, pages into blocks, positions into blocks / each
        block back to its position = blocks to positions, blocks to pages, each block to a position, each
        block to a page / each layer to a block = layers to blocks, heads to blocks
    holds = contains, stores, lists, has: the numbers of its blocks = numbers of the request's blocks, numbers
        of blocks, block numbers / the keys and values = K and V / the free blocks = numbers of the free
        blocks
    says = tells, shows, knows: where the keys and values lie = where they lie, place of the keys and
        values, where keys and values are / how many requests have a block = how many hold a block, how many
        requests use a block / who runs next = who takes part, which request runs
    moves = compacts, shifts: the blocks
    shrinks = compresses: the keys and values
    more: for each request = for one request, per request, for every request, of each request, of the request,
        for its request / for all requests together = shared by all requests / for all layers = for all layers
        and heads, in all layers / for each layer alone = for each single layer, per layer / in order = in
        order of its positions, in order of positions
axis: which axis of the cache is cut, and how many positions and blocks the last request has at the end
    who: the position axis = token axis, sequence axis, axis of positions, axis of tokens, positions, tokens
        / the head axis = heads, axis of heads, KV heads / the layer axis = layers, axis of layers / the
        last request = request 3, last one
    is cut into pages of # = is cut in pages of #, is cut in pages of # tokens, is cut in pages of #
        positions, is split into pages of #, is divided into pages of #, is cut into pages of # positions,
        is cut into pages of # tokens:
    stays whole = is not cut:
    holds # positions = # positions, # tokens, has # positions, fills # positions, stores # positions, holds
        # tokens, has # tokens, stores # tokens:
    takes # blocks = # blocks, holds # blocks, needs # blocks, has # blocks, uses # blocks:
    leaves # positions empty = leaves # empty, leaves # places empty:
    fills # blocks to the end = fills # whole blocks, fills # blocks completely:
    more: in its last call = in last call, at the end
trade-off: what smaller pages gain, or larger ones lose, and what they cost, or spare
    who: smaller pages = small pages, finer pages, smaller blocks, smaller page size / larger pages = large
        pages, bigger pages, larger blocks, larger page size
    raise = increase: the empty memory = waste, wasted memory, fragmentation, internal fragmentation, empty
        positions, unused positions, unused memory, memory / the length of the tables = block tables,
        tables, table length, table entries, number of table entries, number of blocks, lookups, bookkeeping
        / the number of requests that fit = number of requests, batch size, batch, capacity, requests at
        once / the time to read the cache = time, latency, reading time, read time / the bytes of a position
        = bytes per position, bytes per token, bytes of a token, memory per token
    lower = decrease, reduce: the empty memory / the length of the tables / the number of requests that fit
        / the time to read the cache / the bytes of a position
    leave alone = do not change, keep: the empty memory / the length of the tables / the bytes of a position
per-token: bytes
""")

# %% check="pages-words-per-token"
from inferlab.lab.explain import typed


@reference
def position_bytes():
    """Bytes of a position over all layers, from the memory of a real paged cache."""
    from inferlab.lab.kits.paging.blocks import paged_run, pool_of
    from inferlab.models import load_language_model

    model, _ = load_language_model("bundled", "cpu")
    cache = paged_run(model, [[7, 8]], [2], 1, page=16).cache
    return sum(t[0].nbytes for layer in range(model.config.num_hidden_layers)
               for t in pool_of(cache, layer)) // 16


def per_token():
    """The typed bytes of one position."""
    want = position_bytes()
    return typed(check.explanation("pages-in-words"), "per-token", want, {
        "paging does not make the cache smaller per token.": want // 16,
        "that is one layer; a position is stored in all of them.": want // 8,
        "the query heads are not stored: count the KV heads.": want * 4,
        "keys and values: two tensors.": want // 2,
    })


check.slot(per_token, "bytes of one position")

# %% check="pages-words-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("pages-in-words"), "state", """
wanted: which object says where keys and values lie, and what it maps to what
    the block table | maps | each page to a block | for each request / for all layers / in order
    the block table | holds | the numbers of its blocks | for each request / for all layers / +in order
wanted: whom one such object serves: which requests, or which layers
    the block table | maps / holds / says | each page to a block / the numbers of its blocks / where the keys
        and values lie | +for each request / +for all layers / in order
    the block table | not: maps / holds / says | each page to a block / the numbers of its blocks / where the
        keys and values lie | +for all requests together / +for each layer alone
true
    the reference count | says | how many requests have a block | for all layers / for all requests together
    the list of free blocks | holds | the free blocks | for all requests together / for all layers
    the scheduler | says | who runs next | for all layers / for all requests together
false: One table a request serves all layers and heads.
    * | maps | each layer to a block
    the block table | * | * | for each layer alone
false: Each request has a table of its own: page 0 of two requests lies in two blocks, unless they share it.
    the block table | * | * | for all requests together
false: The other way round: the table is asked with a position, and answers with a block.
    * | maps | each block back to its position
false: It tells how many have a block, which blocks are free, or who runs: not where keys and values lie.
    the reference count / the list of free blocks / the scheduler / the model | maps / holds / says | *
false: The table holds numbers of blocks of one request; keys and values lie in the blocks.
    the block table | holds / says | *
false: Nothing is moved or made smaller: the table says where things are, and they may be anywhere.
    * | moves / shrinks | *
"""), "what says where keys and values lie")

# %% check="pages-words-axis"
### FIXTURE words


def last_request(prompt=21, new=30, page=16):
    """What the tables of section 3 say of the last request in its last call: its last token is not stored."""
    positions = prompt + new - 1
    return {"page": page, "positions": positions, "one too many": positions + 1, "full": positions // page,
            "blocks": -(-positions // page), "empty": -positions % page}


check.slot(lambda: words.grade(check.explanation("pages-in-words"), "axis", """
wanted: which axis is cut
    the position axis | is cut into pages of {page} | | in its last call
wanted: how many positions the last request holds
    the last request | holds {positions} positions | | in its last call
wanted: how many blocks it takes
    the last request | takes {blocks} blocks | | in its last call
true
    the head axis / the layer axis | stays whole | | in its last call
    the last request | is cut into pages of {page} | | in its last call
    the last request | leaves {empty} positions empty | | in its last call
    the last request | fills {full} blocks to the end | | in its last call
    the position axis | holds {positions} positions | | in its last call
    the position axis | takes {blocks} blocks | | in its last call
    the position axis | leaves {empty} positions empty | | in its last call
    the position axis | fills {full} blocks to the end | | in its last call
false: The heads and the layers stay whole: what is cut is the axis along which the cache grows.
    the head axis / the layer axis | *
    the position axis / the last request | stays whole
false: The prompt and the new tokens are stored, all but the last one.
    * | holds # positions
false: Divide the positions by the page and round up: the last block is not full.
    * | takes # blocks / fills # blocks to the end / leaves # positions empty
""", last_request()), "which axis is cut, with its numbers")

# %% check="pages-words-trade-off"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("pages-in-words"), "trade-off", """
wanted: what smaller pages gain, or larger ones lose
    smaller pages | raise | the number of requests that fit
    smaller pages | lower | the empty memory
    larger pages | raise | the empty memory
    larger pages | lower | the number of requests that fit
wanted: what smaller pages cost, or larger ones spare
    smaller pages | raise | the length of the tables / the time to read the cache
    larger pages | lower | the length of the tables / the time to read the cache
true
    * | leave alone | the bytes of a position
false: A page is an arrangement, not a compression: a position takes the same bytes.
    * | * | the bytes of a position
false: Only a request's last block has empty positions, less than a page of them: what does a smaller page do?
    * | * | the empty memory / the number of requests that fit
false: The table has one entry for each page: how many pages are there, if each is smaller?
    * | * | the length of the tables / the time to read the cache
"""), "what smaller pages gain and cost")
