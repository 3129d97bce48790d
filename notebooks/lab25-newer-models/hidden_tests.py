"""The hidden tests of lab25-newer-models:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def measured(tokens, experts, chosen):
    """Distinct experts, on average over 3,000 random routings."""
    import torch

    draw = torch.Generator().manual_seed(1)
    return sum(torch.rand(tokens, experts, generator=draw).topk(chosen).indices.unique().numel()
               for _ in range(3000)) / 3000

with check.part("distinct experts, measured on random routings", weight=1):
    for many, pool, each in ((5, 16, 4), (64, 256, 8), (64, 32, 2)):
        said = ask_forecast(many, pool, each, 0, 72)[0]
        check.mistake("each token chooses for itself: a batch reads what any of its tokens chose",
                      when=said == each)
        check.mistake("two tokens may choose the same expert", when=said == min(many * each, pool))
        check.mistake("a token's choices are different experts: one is left out with 1 - chosen / experts",
                      when=abs(said - pool * (1 - (1 - 1 / pool) ** (many * each))) < 1e-9)
        check.close(said, measured(many, pool, each), rtol=0.01)
with check.part("the weights that are read, shared experts included", weight=1):
    for many, pool, each, common in ((64, 64, 6, 2), (1, 16, 4, 1)):
        said = ask_forecast(many, pool, each, common, 72)[1] / 72
        read = measured(many, pool, each)
        check.mistake("each token chooses for itself: a batch reads what any of its tokens chose",
                      when=many > 1 and said == each + common)
        check.mistake("an expert without a token is not read", when=said == pool + common)
        check.close(said, read + common, rtol=0.01)
with check.part("the products", weight=2):
    for many, pool, each, common in ((1, 16, 4, 1), (64, 128, 8, 0), (64, 64, 6, 2)):
        said = ask_forecast(many, pool, each, common, 72)[2] / 72
        check.mistake("more experts do not cost a token more: it multiplies with those that it chose",
                      when=said == many * (pool + common))
        check.mistake("weights are read once in a pass; products are made for each token",
                      when=many > 1 and said == each + common)
        check.equal(said, many * (each + common))

# %% check="route"
@reference
def libraries(kind, layer, name):
    """(logits, table of weights, bias) of the library's router, for 40 random tokens."""
    import torch
    from inferlab.lab.kits.newer_models import tiny

    gate = tiny(kind, seed=7).model.layers[layer].mlp.gate
    with torch.no_grad():
        found, weights, experts = gate(torch.randn(40, 64, generator=torch.Generator().manual_seed(8)))
    return (found, torch.zeros_like(found).scatter_add(1, experts, weights),
            getattr(gate, "e_score_correction_bias", None))

with check.part("as in Mixtral and in Qwen3-MoE", weight=1):
    for family, k, divided in (("mixtral", 2, True), ("qwen3_moe", 4, False)):
        logits, want, _ = libraries(family, 0, "softmax")
        got = table(check.learner.route(logits, k, divided), *logits.shape, k)
        check.mistake("these weights must not be normalized: the softmax is over all experts",
                      when=not divided and close(got.sum(1), torch.ones(len(got)), tol=1e-5))
        check.mistake("the weights of a token are not divided by their sum",
                      when=divided and close(got / got.sum(1, keepdim=True), want, tol=1e-5)
                      and not close(got, want, tol=1e-5))
        check.close(got, want, tol=1e-5)
logits, want, bias = libraries("deepseek_v3", 1, "groups")
with check.part("as in DeepSeek-V3: which experts", weight=1):
    got = table(check.learner.route_in_groups(logits, bias, 4, 4, 2, 2.5), *logits.shape, 4) != 0
    unbiased = table(check.learner.route_in_groups(logits, 0 * bias, 4, 4, 2, 2.5), *logits.shape, 4) != 0
    check.mistake("choose by worth, which has the bias", when=bool((got == unbiased).all()))
    check.mistake("only experts of open groups may be chosen",
                  when=bool((got.view(40, 4, 4).any(-1).sum(-1) > 2).any()))
    check.equal(got, want != 0)
with check.part("as in DeepSeek-V3: their weights", weight=1):
    got = table(check.learner.route_in_groups(logits, bias, 4, 4, 2, 2.5), *logits.shape, 4)
    biased = (logits.sigmoid() + bias) * (want != 0)
    check.mistake("the bias chooses and does not weigh: the weights are the scores without it",
                  when=close(got, biased / biased.sum(1, keepdim=True) * 2.5, tol=1e-4))
    check.close(got, want, tol=1e-5)

# %% check="cache"
@reference
def real_cache(kind, rows, count, changes):
    """(sizes, bytes) of a real cache of a tiny model."""
    import torch
    from inferlab.lab.kits.newer_models import bytes_in_cache, cache_sizes, filled_cache, tiny

    model = tiny(kind, **dict(changes))
    ids = torch.zeros(rows, count, dtype=torch.int64)
    return cache_sizes(model.config), bytes_in_cache(filled_cache(model, ids))

@reference
def published(kind, count):
    """(sizes, bytes) of the library's cache of a published config, in 16 bits, on tensors without memory."""
    import torch
    from inferlab.lab.kits.newer_models import bytes_in_cache, cache_sizes
    from transformers import AutoConfig, DynamicCache

    config = AutoConfig.for_model(kind)
    store, get = DynamicCache(config=config), lambda name: getattr(config, name, None)
    for number, layer in enumerate(store.layers):
        if hasattr(layer, "conv_states"):
            channels = 2 * config.linear_num_key_heads * config.linear_key_head_dim \
                + config.linear_num_value_heads * config.linear_value_head_dim
            layer.update_conv_state(torch.empty(1, channels, config.linear_conv_kernel_dim,
                                                dtype=torch.bfloat16, device="meta"))
            layer.update_recurrent_state(torch.empty(
                1, config.linear_num_value_heads, config.linear_key_head_dim,
                config.linear_value_head_dim, device="meta"))
        else:
            shapes = [(1, 1, count, get("kv_lora_rank")), (1, 1, count, get("qk_rope_head_dim"))]
            if not get("kv_lora_rank"):
                width = get("head_dim") or config.hidden_size // config.num_attention_heads
                shapes = [(1, config.num_key_value_heads, count, width)] * 2
            store.update(*(torch.empty(shape, dtype=torch.bfloat16, device="meta") for shape in shapes),
                         number)
    return cache_sizes(config), bytes_in_cache(store)

def grew(sizes, one):
    """Whether the learner's bytes are those of a model without windows."""
    plain = dict(sizes, layer_types=["full_attention"] * len(sizes["layer_types"]))
    return ask_cache(sizes, *one) == ask_cache(plain, *one)

with check.part("layers with windows: real caches, shorter and longer than the window", weight=1):
    for family, count in (("mistral", 5), ("mistral", 8), ("mistral", 23), ("gemma2", 40)):
        given, want = real_cache(family, 3, count, ())
        check.mistake("a window forgets: older tokens are no longer in the cache",
                      when=count > 8 and grew(given, (count, 3, 4)))
        check.mistake("a short text does not fill the window: the cache grows",
                      when=count < 8 and ask_cache(given, count, 3, 4) > want)
        check.mistake("one row too many: the window counts the token that comes next",
                      when=count > 8 and ask_cache(dict(given, sliding_window=7), count, 3, 4) == want)
        check.equal(ask_cache(given, count, 3, 4), want)
with check.part("published sizes with windows", weight=1):
    for family in ("mistral", "gemma2", "gpt_oss", "mixtral"):
        given, want = published(family, 9000)
        check.equal(ask_cache(given, 9000, 1, 2), want)
tiny_latents = real_cache("deepseek_v3", 2, 11, (("kv_lora_rank", 28),))
with check.part("latents, tiny and published", weight=1):
    for (given, want), rows, item in ((tiny_latents, 22, 4), (published("deepseek_v3", 9000), 9000, 2)):
        said, scale = ask_cache(given, rows, 1, item), rows * item * len(given["layer_types"])
        check.mistake("a latent cache stores no keys and no values, and its latents have no heads",
                      when=said == 2 * given["num_key_value_heads"] * given["head_dim"] * scale
                      or said == given["num_key_value_heads"] * want)
        check.mistake("the key that carries the position is cached, too",
                      when=said == given["kv_lora_rank"] * scale)
        check.mistake("one latent serves keys and values: it is there once", when=said == 2 * want)
        check.equal(said, want)
with check.part("linear layers beside others, tiny and published", weight=1):
    tiny_states = real_cache("qwen3_next", 2, 11, (("linear_conv_kernel_dim", 3),))
    for (given, want), *run_of in ((tiny_states, 11, 2, 4), (published("qwen3_next", 9000), 9000, 1, 2)):
        check.equal(ask_cache(given, *run_of), want)

# %% check="absorb"
@reference
def library_step():
    """(arguments, output) of a decode step of the library's attention."""
    import torch
    from inferlab.lab.kits.attention import SdpaCalls
    from inferlab.lab.kits.newer_models import filled_cache, tiny

    deep = tiny("deepseek_v3", seed=9)
    with torch.no_grad(), SdpaCalls() as seen:
        store = filled_cache(deep, torch.arange(17)[None])
    layer, call, attention = store.layers[1], seen.calls[-3], deep.model.layers[1].self_attn
    return (*call["query"][0].split([16, 8], -1), layer.keys[0, 0], layer.values[0, 0],
            *attention.kv_b_proj.weight.detach().view(4, 28, 20).split([16, 12], 1),
            attention.scaling), call["output"][0]

def latent_case(seed, heads, nope, rope, rank, width, tokens):
    """Arguments of `absorbed` of a normal distribution."""
    draw = torch.Generator().manual_seed(seed)
    shapes = ((heads, 1, nope), (heads, 1, rope), (tokens, rank), (tokens, rope), (heads, nope, rank),
              (heads, width, rank))
    return *(torch.randn(*shape, generator=draw) for shape in shapes), 0.3

def plainly(q_nope, q_rope, latent, k_rope, w_k, w_v, scale):
    """(query, out) with keys and values made for every head."""
    keys = torch.cat([latent @ w_k.mT, k_rope.expand(len(q_nope), -1, -1)], -1)
    weights = (torch.cat([q_nope, q_rope], -1) @ keys.mT * scale).softmax(-1)
    return torch.einsum("hqn,hnr->hqr", q_nope, w_k), weights @ (latent @ w_v.mT)

with check.part("the query that meets the latents", weight=1):
    for given in (latent_case(1, 3, 4, 2, 6, 4, 9), latent_case(2, 2, 5, 3, 5, 3, 7)):
        got, want = ask_absorbed(*given)[0], plainly(*given)[0]
        check.mistake("the same matrix for all heads: each head has its own",
                      when=close(got, given[0] @ given[4][:1], tol=1e-4))
        check.close(got, want, tol=1e-5)
with check.part("the output", weight=1):
    for given in (latent_case(3, 3, 4, 2, 6, 4, 9), latent_case(4, 2, 5, 3, 5, 3, 7)):
        got = ask_absorbed(*given)[1]
        mixed = plainly(*given[:5], torch.eye(given[2].shape[1]).expand(len(given[0]), -1, -1), given[6])[1]
        check.mistake("the key matrix is not that of the values",
                      when=given[4].shape == given[5].shape and close(got, mixed @ given[4].mT, tol=1e-4))
        check.close(got, plainly(*given)[1], tol=1e-5)
with check.part("a layer of the library", weight=1):
    given, want = library_step()
    check.close(ask_absorbed(*given)[1], want, tol=1e-5)

# %% check="diagnosis"
@reference
def truth(variant):
    """(layer, fault) of a variant."""
    from inferlab.lab.kits.newer_models import routing_fault

    return routing_fault(variant)[::-1]

at, broken_by = truth(check.variant(16))
with check.part("which layer", weight=1):
    got = diagnosis()[0]
    check.mistake("layers are numbered from 0", when=got == at + 1)
    check.equal(got, at)
with check.part("which fault", weight=1):
    got = diagnosis()[1]
    check.mistake("an uneven load is normal", when=got == "collapsed" != broken_by)
    check.true(got == broken_by, "the routers show another fault")
