"""What the explanations of lab25-newer-models are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="looked_up"
@reference
def looked_up():
    """How many tokens of the library's drafts are kept in the text of the section on drafts."""
    import torch
    from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

    text, done, kept = [ord(one) for one in "abcdefab" "cdgcdeh"], 8, 0
    library = PromptLookupCandidateGenerator(None, 4, 2, 1000)
    while done < len(text):
        draft = library.get_candidates(torch.tensor([text[:done]]))[0][0, done:].tolist()
        agree = [*(a == b for a, b in zip(draft, text[done:])), False].index(False)
        kept, done = kept + agree, done + agree + 1
    return kept

# %% fixture="words"
from inferlab.lab import Words

words = Words("newer-in-words", """
experts: what a pass of 64 tokens reads in section 3, and what more experts cost a token
    who: a pass of one token = one token, batch 1 / a pass of 64 tokens = 64 tokens, batch 64 /
        more experts with the same k = more experts
    reads: few experts = few of the experts / nearly all experts = almost all experts, most experts, nearly
        all of them, almost every expert, nearly every expert
    costs: as many products = as much arithmetic, no more products / more products = more arithmetic
    more: for each token = per token
window: what a layer with a window forgets, and what a linear layer keeps
    who: a sliding layer = a layer with a window, the window / a full layer = a layer that sees everything /
        a linear layer = linear attention
    keeps = caches: the newest tokens = the last tokens / all tokens = every token / a state of fixed size =
        a fixed state
    forgets = drops: older tokens = tokens before the window / nothing
latent: which two things the cache of latent attention keeps for a token, and which matrix is absorbed where
    who: the cache / the query / the latent
    keeps = stores, holds: one latent = a latent, a single latent / one rotary key = a rotary key, k_rope /
        keys of all heads = keys of each head / values of all heads = values of each head
    absorbs = takes in: the key matrix = W_K / the value matrix = W_V
kept: a number of tokens
""")

# %% check="words-fields"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("newer-in-words"), "experts", """
true
    a pass of one token | reads | few experts | for each token
wanted: what 64 tokens read
    a pass of 64 tokens | reads | nearly all experts
wanted: what more experts cost a token
    more experts with the same k | costs | as many products | for each token
    more experts with the same k | not: costs | more products | for each token
false: Each token chooses for itself, and a pass reads what any of them chose.
    a pass of 64 tokens | reads | few experts
false: A token multiplies with the k experts that it chose, however many there are.
    more experts with the same k | costs | more products
false: One token reads the experts that it chose, and no other.
    a pass of one token | reads | nearly all experts
"""), "what is read")
check.slot(lambda: words.grade(check.explanation("newer-in-words"), "window", """
wanted: what a sliding layer forgets
    a sliding layer | forgets | older tokens
wanted: what a linear layer keeps
    a linear layer | keeps | a state of fixed size
true
    a sliding layer | keeps | the newest tokens
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

# %% check="words-kept"
from inferlab.lab.explain import typed

### FIXTURE looked_up

check.slot(lambda: typed(check.explanation("newer-in-words"), "kept", looked_up(), {
    "the first place counts, and if two tokens are nowhere, one is looked for": 3,
    "that is what was drafted, kept or not": 8,
}, unit="tokens"), "what prompt lookup gets accepted")
