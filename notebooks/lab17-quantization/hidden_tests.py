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
with check.part("a group of zeros", weight=1):
    zero = torch.cat([torch.zeros(2, 8), W[:2, :8]], dim=1)
    codes, scales = asked_codes(zero, 4, 8)
    check.equal(codes[:, :8], torch.zeros(2, 8, dtype=torch.int8))
    check.close(scales[:, 0], torch.ones(2), tol=0)

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

with check.part("the repair", weight=1):
    kept = check.learner.kept
    check.true(isinstance(kept, set), "kept is a set of names")
    check.mistake("a clipped weight is another model: its size must go somewhere", when="clip" in kept)
    check.mistake("only one of the two matrices was scaled", when="shrink" in kept)
    check.mistake("a factor that is no power of two rounds every weight that it touches",
                  when="move by 10" in kept)
    check.equal(kept, {"move by 16"})

# %% check="books"
v = check.variant(8)
prompt, new = (40, 50, 60, 70, 80, 90, 100, 110)[v], (12, 14, 15, 20, 23, 11, 30, 26)[v]
values, fed = 2 * 8 * 2 * 32, new - 1
coded = values * (prompt + fed - fed % 8)
with check.part("bits that a weight takes", weight=1):
    got = said("packed", "unpacked")
    check.mistake("the scale is stored as well: a group of 32 with a 16-bit scale adds half a bit to "
                  "each weight", when=got[0] == 4)
    check.mistake("the scale is shared by the group", when=got[0] == 20)
    check.mistake("a code that is kept in an int8 takes eight bits", when=got[1] == 5)
    check.mistake("the scale is in float32 here: 32 bits for 32 weights", when=got[1] in (8, 8.5))
    check.close(got, [4.5, 9.0], tol=1e-6)
with check.part("the residual", weight=1):
    got = said("full")
    check.mistake("the last token is never fed back: there are new - 1 tokens behind the prompt",
                  when=got == [4 * values * (new % 8)])
    check.mistake("the residual does not grow for ever: it is quantized when it is full",
                  when=got == [4 * values * fed])
    check.mistake("keys and values: two of everything", when=got == [2 * values * (fed % 8)])
    check.mistake("the residual is full precision: four bytes a value", when=got == [values * (fed % 8)])
    check.equal(got, [4 * values * (fed % 8)])
with check.part("codes", weight=1):
    got = said("codes")
    check.mistake("keys and values: two of everything", when=got[0] * 2 == coded)
    check.mistake("what is full becomes codes, and only the rest of the fed tokens is in the residual",
                  when=got[0] == values * prompt)
    check.equal(got, [coded])

# %% check="gains"
with check.part("a training step of 8,192 tokens", weight=1):
    got = told("training")[0]
    check.mistake("the FLOPs do not shrink: restored weights are multiplied in 16 bits",
                  when=close(got, 4.0, tol=0.05))
    check.mistake("this step is bound by arithmetic, not by bytes", when=got > 1.05)
    check.close(got, 1.0, rtol=0.02)
with check.part("decode with some and with many sequences", weight=2):
    got = told("some", "many")
    check.mistake("fewer bits are not always faster: at 512 sequences the arithmetic is the limit",
                  when=got[1] > 1.05)
    check.close(got, [200 / (64, 80, 100, 125, 160, 120, 75, 96)[check.variant(8)], 1.0], rtol=0.02)
