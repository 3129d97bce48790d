"""What the explanations of lab25-newer-models are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="rerun"
@reference
def rerun():
    """(last position that changes with the first token, shape of the cached latents), run again."""
    import torch
    from inferlab.lab.kits.newer_models import filled_cache, tiny

    ids = torch.randint(0, 512, (1, 40), generator=torch.Generator().manual_seed(1))
    other = ids.clone()
    other[0, 0] += 1
    model = tiny("mistral")
    with torch.no_grad():
        reach = (model(ids).logits != model(other).logits).any(-1)[0].nonzero().max()
    deep = filled_cache(tiny("deepseek_v3"), torch.zeros(1, 41, dtype=torch.int64))
    return int(reach), tuple(deep.layers[0].keys.shape)

# %% fixture="words"
from inferlab.lab import Words

words = Words("newer-in-words", """
experts: what passes of one token and of 64 read in section 3, and what more experts cost a token
    who: a pass of one token = one token, batch 1 / a pass of 64 tokens = 64 tokens, batch 64 /
        more experts with the same k = more experts
    reads: few experts = few of the experts / nearly all experts = almost all experts, most experts
    costs: as many products = as much arithmetic, no more products / more products = more arithmetic
    more: for each token = per token
window: what a layer with a window keeps and forgets, and what a linear layer keeps
    who: a sliding layer = a layer with a window, the window / a full layer = a layer that sees everything /
        a linear layer = linear attention
    keeps = caches: the newest tokens = the last tokens / all tokens = every token / a state of fixed size =
        a fixed state
    forgets = drops: older tokens = tokens before the window / nothing
latent: what the cache of latent attention keeps for a token, and which matrix is absorbed where
    who: the cache / the query / the latent
    keeps = stores, holds: one latent = a latent, a single latent / one rotary key = a rotary key, k_rope /
        keys of all heads = keys of each head / values of all heads = values of each head
    absorbs = takes in: the key matrix = W_K / the value matrix = W_V
draft: what prompt lookup reads and drafts from, and what multi-token prediction drafts from
    who: prompt lookup = lookup / multi-token prediction = MTP, an MTP layer
    reads: no weights / the weights of one layer = one layer / all weights = every weight
    drafts from = takes its draft from: the text so far = the earlier text / the last hidden state =
        the hidden state
reach: a number
shape: a shape
""")

# %% check="words-sparse"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("newer-in-words"), "experts", """
wanted: what one token reads
    a pass of one token | reads | few experts | for each token
wanted: what 64 tokens read
    a pass of 64 tokens | reads | nearly all experts
wanted: what more experts cost a token
    more experts with the same k | costs | as many products | for each token
false: Each token chooses for itself, and a pass reads what any of them chose.
    a pass of 64 tokens | reads | few experts
false: A token multiplies with the k experts that it chose, however many there are.
    more experts with the same k | costs | more products
false: One token reads the experts that it chose, and no other.
    a pass of one token | reads | nearly all experts
"""), "what is read")
check.slot(lambda: words.grade(check.explanation("newer-in-words"), "draft", """
wanted: what prompt lookup reads
    prompt lookup | reads | no weights
wanted: where prompt lookup takes its draft from
    prompt lookup | drafts from | the text so far
wanted: what multi-token prediction drafts from
    multi-token prediction | drafts from | the last hidden state
true
    multi-token prediction | reads | the weights of one layer
false: Prompt lookup compares tokens; no model runs.
    prompt lookup | reads | the weights of one layer / all weights
    prompt lookup | drafts from | the last hidden state
false: Its layer has weights of its own.
    multi-token prediction | reads | no weights
false: It is one layer besides the target's.
    multi-token prediction | reads | all weights
"""), "the drafts")

# %% check="words-cache"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("newer-in-words"), "window", """
wanted: what a sliding layer keeps
    a sliding layer | keeps | the newest tokens
wanted: what it forgets
    a sliding layer | forgets | older tokens
wanted: what a linear layer keeps
    a linear layer | keeps | a state of fixed size
true
    a full layer | keeps | all tokens
    a full layer | forgets | nothing
false: A window forgets: your run shows where a token's influence ends.
    a sliding layer | forgets | nothing
    a sliding layer | keeps | all tokens
false: A linear layer's cache has the same bytes for any number of tokens.
    a linear layer | keeps | all tokens
"""), "the window")
check.slot(lambda: words.grade(check.explanation("newer-in-words"), "latent", """
wanted: what is cached of the content
    the cache | keeps | one latent
wanted: what is cached of the position
    the cache | keeps | one rotary key
wanted: which matrix is absorbed, and where
    the query | absorbs | the key matrix
false: The tensor is called keys, and holds latents: look at its heads and its width.
    the cache | keeps | keys of all heads / values of all heads
false: The latents are cached as they are. What is multiplied is the query.
    the latent / the cache | absorbs | *
false: The value matrix is used behind the mixture of latents.
    the query | absorbs | the value matrix
"""), "the latent")

# %% check="words-entries"
from inferlab.lab.explain import typed

### FIXTURE rerun

check.slot(lambda: typed(check.explanation("newer-in-words"), "reach", rerun()[0]), "the reach")
check.slot(lambda: typed(check.explanation("newer-in-words"), "shape", rerun()[1]), "the cached shape")
