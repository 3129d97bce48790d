"""The hidden tests of lab17-quantization:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="ledger"
@reference
def really_stored(tied, width, vocabulary):
    """Bytes of a tiny model before and after torchao quantized it, and the shapes that the ledger is asked
    about."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from inferlab.lab.kits.low_bits import int8_weights, stored_bytes
    from inferlab.models.quiet import quiet

    config = LlamaConfig(vocab_size=vocabulary, hidden_size=width, intermediate_size=3 * width,
                         num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, head_dim=16, tie_word_embeddings=tied, bos_token_id=None,
                         eos_token_id=None, pad_token_id=None)
    with quiet():
        model = LlamaForCausalLM(config).eval()
        before, after = (sum(stored_bytes(m).values()) for m in (model, int8_weights(model)))
    shapes = [tuple(m.weight.shape) for m in model.model.layers.modules() if isinstance(m, torch.nn.Linear)]
    return before, after, shapes, sum(w.numel() for w in model.parameters() if w.dim() == 1)


with check.part("weights before, tied and not", weight=1):
    for tied in (True, False):
        before, after, shapes, norms = really_stored(tied, 64, 96)
        got = asked_ledger(shapes, 96, 64, norms, tied, 1000)["weights_before"]
        check.mistake("one tensor for two modules is stored once", when=tied and got == before + 4 * 96 * 64)
        check.equal(got, before)
with check.part("weights after", weight=3):
    for tied, width, vocabulary in ((True, 64, 96), (False, 32, 200)):
        before, after, shapes, norms = really_stored(tied, width, vocabulary)
        got, table = asked_ledger(shapes, vocabulary, width, norms, tied,
                                  1000)["weights_after"], vocabulary * width
        check.mistake("codes alone restore nothing: each row has a scale of four bytes",
                      when=got == after - 4 * (sum(r for r, _ in shapes) + vocabulary))
        check.mistake("the head holds codes now and the embedding floats: they cannot be one tensor any more",
                      when=got == after - 4 * table)
        check.mistake("the embedding is looked up, not multiplied with: it stays float32",
                      when=got in (after - 3 * table, after - 4 * table - 4 * vocabulary))
        check.mistake("norms stay float32", when=got == after - 3 * norms)
        check.equal(got, after)
with check.part("the cache after", weight=3):
    got = asked_ledger([(6, 4)], 10, 4, 12, True, 640)["cache_after"]
    check.mistake("weights-only quantization does not touch keys and values: they are as they were",
                  when=got == 160)
    check.equal(got, 640)

# %% check="absmax"
check.mistake("one level too many: with 127 on both sides, zero stays zero and nothing overflows",
              when=close(scales, largest / 128))
check.mistake("bits give 2 ** (bits - 1) - 1 levels on each side", when=close(scales, largest / 255))
check.mistake("one scale for the whole matrix: each group has its own largest number",
              when=close(scales, W.abs().max().expand(6, 2) / 127))

# %% check="absmax"
def reference_codes(w, bits, group):
    """The codes and scales, written apart from the lab's solution."""
    top = 2 ** (bits - 1) - 1
    pieces = w.reshape(w.shape[0], w.shape[1] // group, group)
    scales = pieces.abs().max(dim=-1).values / top
    scales[scales == 0] = 1.0
    return torch.round(pieces / scales.unsqueeze(-1)).reshape(w.shape).to(torch.int8), scales


with check.part("the codes, from 2 to 8 bits", weight=2):
    for bits, group in ((8, 16), (4, 8), (3, 32), (2, 4)):
        codes, scales = asked_codes(W, bits, group)
        want, want_scales = reference_codes(W, bits, group)
        check.mistake("codes are rounded to the nearest, not cut off",
                      when=bool((codes == (W.unflatten(-1, (-1, group)) / want_scales[...,
                                                                                      None]).trunc().flatten(
                                                                                          -2)).all()))
        check.close(scales, want_scales, tol=1e-7)
        check.equal(codes, want)
with check.part("restored", weight=2):
    for bits, group in ((8, 16), (4, 8)):
        want, want_scales = reference_codes(W, bits, group)
        got = check.learner.restore(want, want_scales)
        check.tensor(got, shape=(6, 32), dtype=torch.float32)
        check.close(got, (want.unflatten(-1, (-1, group)) * want_scales[..., None]).flatten(-2), tol=1e-6)
        check.true(float((got - W).abs().max()) <= float(want_scales.max()) / 2 + 1e-6,
                   "no weight may be off by more than half a step")
with check.part("a group of zeros", weight=1):
    zero = torch.cat([torch.zeros(2, 8), W[:2, :8]], dim=1)
    codes, scales = asked_codes(zero, 4, 8)
    check.equal(codes[:, :8], torch.zeros(2, 8, dtype=torch.int8))
    check.close(scales[:, 0], torch.ones(2), tol=0)

# %% check="pack"
check.mistake("the first of a pair goes into the low four bits", when=got.tolist() == [[0x1F, 0x89]])

# %% check="pack"
with check.part("a whole matrix, unpacked again", weight=1):
    codes = torch.randint(-7, 8, (5, 24), generator=torch.Generator().manual_seed(2), dtype=torch.int8)
    got = check.learner.pack(codes)
    check.tensor(got, shape=(5, 12), dtype=torch.uint8)
    check.equal(torch.stack([(got % 16).to(torch.int8) - 8, (got // 16).to(torch.int8) - 8],
                            dim=-1).flatten(-2), codes)
with check.part("bits a weight", weight=2):
    got = [check.learner.bits_per_weight(4, 32, 16), check.learner.bits_per_weight(4, 16, 32),
           check.learner.bits_per_weight(8, 64, 32)]
    check.mistake("the scale is stored as well: a group of 32 with a 16-bit scale adds half a bit to "
                  "each weight", when=close(got, [4, 4, 8]))
    check.mistake("the scale is shared by the group", when=close(got, [20, 36, 40]))
    check.mistake("scale_bits are bits, not bytes", when=close(got, [4 + 4, 4 + 16, 8 + 4]))
    check.close(got, [4.5, 6.0, 8.5], tol=1e-9)

# %% check="outlier"
from inferlab.lab.kits.low_bits import PLACES

layer, channel = PLACES[check.variant(16)]
with check.part("the layer", weight=1):
    check.equal(asked_place()["layer"], layer, "another layer's matrix is the one that 4 bits ruin")
with check.part("the channel", weight=2):
    got = asked_place()
    check.mistake("that is a row of down_proj (an output); the channel is a column",
                  when=got["channel"] < 256 and got["channel"] != channel)
    check.equal(got, {"layer": layer, "channel": channel}, "look at the columns of down_proj, one by one")

# %% check="migrate"
shrunk = (new_down / down).amax(0) - (new_down / down).amin(0)
check.mistake("a clipped weight is another model: its size must go somewhere",
              when=close(new_up, up) and float(shrunk.max()) > 1e-3)
check.mistake("only one of the two matrices was scaled", when=close(new_up, up) != close(new_down, down))

# %% check="migrate"
with check.part("the outlier is gone, the others are where they were", weight=2):
    for seed, channel, by in ((1, 5, 64.0), (3, 20, 37.0)):
        up, down = fixture(seed, channel, by)
        new_up, new_down = migrated(up, down)
        size, median = down.abs().amax(0), down.abs().amax(0).median()
        check.mistake("nothing has moved", when=close(new_down, down))
        check.true(close(new_down @ new_up, down @ up, tol=1e-3),
                   "the two matrices together are another model now")
        check.mistake("columns that do not stand out must stay as they are",
                      when=not close(new_down[:, size <= 2 * median], down[:, size <= 2 * median]))
        after = new_down[:, size > 2 * median].abs().amax(0)
        check.true(bool(((after >= median * 0.999) & (after <= 2 * median * 1.001)).all()),
                   "an outlying column must end up between m and 2 m")
with check.part("exact, and it helps", weight=2):
    up, down = fixture(4, 11, 50.0)
    new_up, new_down = migrated(up, down)
    check.true(torch.equal(new_down @ new_up, down @ up) or close(new_down @ new_up, down @ up, tol=1e-4),
               "down @ up must stay what it was")
    ratio = (new_down / down)[0]
    check.mistake("a factor that is no power of two rounds every weight it touches",
                  when=not bool((torch.log2(ratio) == torch.log2(ratio).round()).all()))

    def error(w):
        step = w.abs().amax(-1, keepdim=True) / 7
        return float(((w / step).round() * step - w)[:, torch.arange(24) != 11].norm())

    check.true(error(new_down) < 0.3 * error(down),
               "in 4 bits with one scale a row, the other weights must come out better than before")

# %% check="cache-ledger"
@reference
def really_cached(prompt, new, group, residual):
    """Bytes of a quantized cache after a real run of a tiny model with 2 layers, 4 query and 2 kv heads of
    16."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from inferlab.lab.kits.low_bits import cache_bytes, small_cache
    from inferlab.models import cache_argument
    from inferlab.models.quiet import quiet

    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
                         num_attention_heads=4,
                         num_key_value_heads=2, head_dim=16, bos_token_id=None, eos_token_id=None,
                         pad_token_id=None)
    with quiet(), torch.no_grad():
        model = LlamaForCausalLM(config).eval()
        cache = small_cache(config, 8, group, residual)
        ids = torch.arange(1, prompt + 1)[None]
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False,
                       **cache_argument(cache))
    return cache_bytes(cache)


VALUES = 2 * 2 * 2 * 16
with check.part("a residual that is not full yet", weight=2):
    want, got = really_cached(10, 5, 8, 8), asked_cache(2, 2, 16, 10, 5, 8, 8)
    check.mistake("the last token is never fed back: there are new - 1 tokens behind the prompt",
                  when=got["full"] == 4 * VALUES * 5)
    check.mistake("keys and values: two of everything", when=got["codes"] * 2 == want["codes"])
    check.mistake("only the key-value heads are kept, not the query heads",
                  when=got["codes"] == 2 * want["codes"])
    check.mistake("the residual is full precision: four bytes a value", when=got["full"] * 4 == want["full"])
    check.equal(got, want)
with check.part("when the residual is full", weight=2):
    for prompt, new, group, residual in ((9, 9, 16, 4), (7, 13, 8, 5), (12, 9, 16, 8)):
        want, got = really_cached(prompt, new, group, residual), asked_cache(2, 2, 16, prompt, new, group,
                                                                             residual)
        check.mistake("at `residual` tokens all becomes codes, and the residual is empty",
                      when=want["full"] == 0 and got["full"] == 4 * VALUES * residual)
        check.mistake("the residual does not grow for ever: it is quantized when it is full",
                      when=got["full"] == 4 * VALUES * (new - 1) and want["full"] != got["full"])
        check.equal(got, want)
with check.part("another model, a longer run", weight=1):
    check.equal(asked_cache(32, 8, 128, 4000, 97, 64, 128),
                {"codes": 2 * 32 * 8 * 128 * 4000, "scales": 4 * 2 * 32 * 8 * 128 * 4000 // 64,
                 "full": 4 * 2 * 32 * 8 * 128 * 96})

# %% check="speedup"
with check.part("a training step of 8,192 tokens", weight=2):
    got = asked_speedup(8e9, 8192, True, 4, 800e12, 4e12)
    check.mistake("the FLOPs do not shrink: restored weights are multiplied in 16 bits",
                  when=close(got, 4.0, tol=1e-6))
    check.mistake("this step is bound by arithmetic, not by bytes", when=got > 1.05)
    check.close(got, 1.0, tol=1e-6)
with check.part("decode with many sequences", weight=2):
    got = [asked_speedup(8e9, tokens, False, 4, 800e12, 4e12) for tokens in (32, 100, 512)]
    check.mistake("fewer bits are not always faster: at 512 sequences the arithmetic is the limit",
                  when=got[2] > 1.05)
    check.close(got, [4.0, 2.0, 1.0], tol=1e-6)
with check.part("a training step of a single token", weight=1):
    got = asked_speedup(1e9, 1, True, 8, 800e12, 4e12)
    check.mistake("the optimizer's bytes stay: 24 a weight",
                  when=close(got, 2.0, tol=1e-6) or close(got, 8 / 6, tol=1e-6))
    check.close(got, 32 / 30, tol=1e-6)
with check.part("the share of an update that survives", weight=2):
    grid, moves = torch.tensor([[7.0, -2, 1, 3, 70, 20, -10, 30]]), torch.tensor([[0.4, -0.6, 0.7, 1.2, -6,
                                                                                   5.5, -0.9, 3]])
    got = [check.learner.survives(grid, moves, 4, group) for group in (4, 8)]
    check.true(all(isinstance(value, float) for value in got), "return a float")
    check.mistake("half a step is enough: rounding goes to the nearest code",
                  when=close(got, [1 / 8, 0.0], tol=1e-6))
    check.mistake("an update goes up or down: its size counts", when=close(got, [3 / 8, 1 / 8], tol=1e-6))
    check.mistake("this is the share that is lost: an update of less than half a step is rounded away",
                  when=close(got, [3 / 8, 6 / 8], tol=1e-6))
    check.mistake("each group has a step of its own, and a finer one where its largest weight is small",
                  when=got[0] == got[1])
    check.close(got, [5 / 8, 2 / 8], tol=1e-6)
    fine = torch.where(grid == 7, 127.0, torch.where(grid == 70, 1270.0, grid))  # the same steps, with 8 bits
    check.close(check.learner.survives(fine, moves, 8, 4), 5 / 8, tol=1e-6)
