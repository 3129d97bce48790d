"""The hidden tests of lab24-low-precision:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="verdict"
import torch
from torch.utils.flop_counter import FlopCounterMode

def operand(count, rows, columns, width):
    """A tensor without data that takes as many bytes as such numbers do."""
    dtype = torch.bfloat16 if width == 16 else torch.uint8
    return torch.empty(count, rows, columns if width > 4 else columns // 2, dtype=dtype, device="meta")

def truth(times, m, k, n, bits, machine):
    """(gain, ratio of the bytes, ratio of the arithmetic) of the product, by torch's counter."""
    with FlopCounterMode(display=False) as flops:
        result = operand(times, m, k, 16) @ operand(times, n, k, 16).mT
    moved, rates, least = [], [], []
    for left, right in (bits, (16, 16)):
        moved.append(operand(times, m, k, left).nbytes + operand(times, n, k, right).nbytes + result.nbytes)
        rates.append(machine["8-bit" if left <= 8 and right <= 8 else "16-bit"])
        least.append(max(flops.get_total_flops() / rates[-1], moved[-1] / machine["bandwidth"]))
    return least[1] / least[0], moved[1] / moved[0], rates[0] / rates[1]

def judge(*run_of):
    """Holds the learner's verdict of a run against the tensors, and names what it believes."""
    (got, said), (gain, fewer, quicker) = asked_verdict(*run_of), truth(*run_of)
    off_by = abs(got - gain) > 1e-6
    check.mistake("fewer bits are not always faster: this product waits for arithmetic, not for bytes",
                  when=off_by and abs(got - fewer) < 1e-6)
    check.mistake("the 8-bit unit wants 8 bits on both sides: a restored operand is multiplied in 16",
                  when=off_by and max(run_of[4]) == 16 and got > gain)
    check.mistake("arithmetic is not all: this product waits for its bytes",
                  when=off_by and abs(got - quicker) < 1e-6)
    check.close(got, gain, tol=1e-6)
    check.equal(said, "faster" if gain > 1.01 else "only smaller")

with check.part("a linear product in decode", weight=1):
    for width in ((16, 8), (16, 4), (8, 8)):
        judge(1, 3, 1024, 1500, width, desk)
with check.part("a linear product in a long prefill, weights alone", weight=2):
    for width in ((16, 8), (16, 4), (8, 16)):
        judge(1, 6000, 1024, 1500, width, desk)
with check.part("a linear product in a long prefill, both sides", weight=1):
    for width in ((8, 8), (4, 8), (4, 4)):
        judge(1, 6000, 1024, 1500, width, desk)
with check.part("scores, in decode and in prefill", weight=1):
    judge(160, 3, 64, 3000, (16, 8), desk)
    judge(8, 9000, 64, 3000, (8, 8), desk | {"bandwidth": 20e12})
    judge(8, 9000, 64, 3000, (16, 8), desk | {"bandwidth": 20e12})

# %% check="w8a8"
def codes_of(numbers, dim=None, most=127.0):
    """(scale, codes as int64), one scale or one for each slice along `dim`."""
    largest = numbers.abs().amax(dim, keepdim=True) if dim is not None else numbers.abs().max()
    scale = largest / most
    return scale, (numbers / scale).round().to(torch.int64)

def held(seed, tokens=7, rows=5, columns=40):
    """The learner's product of random numbers with an outlier, held against whole numbers of 64 bits."""
    draw = torch.Generator().manual_seed(seed)
    x_given = torch.randn(tokens, columns, generator=draw)
    x_given[2, 3] = 30.0
    w_given = torch.randn(rows, columns, generator=draw) * torch.linspace(0.1, 3, rows)[:, None]
    (of_x, cx), (of_w, cw) = codes_of(x_given, 1), codes_of(w_given, 1)
    got, result = asked_product(x_given, w_given)
    want = cx @ cw.T
    for text, (_, other_x) in (
        ("a scale for each token was asked for, not one for all of `x`", codes_of(x_given)),
        ("activations do not quantize like weights: a scale that follows the input channel stays in the sum",
         codes_of(x_given, 0)),
        ("codes run from -127 to 127: the scale is the largest value over 127", codes_of(x_given, 1, 128.0)),
    ):
        check.mistake(text, when=bool((got == other_x @ cw.T).all()) and not bool((got == want).all()))
    check.mistake("the sum left its dtype: int8 sums wrap around",
                  when=bool(((got - want) % 256 == 0).all()) and not bool((got == want).all()))
    check.equal(torch.equal(got, want.int()), True, "the sums are not those of the codes")
    check.mistake("`y` is a sum of restored numbers: multiply the int32 sum by the scales, that of `x` first",
                  when=not torch.equal(result, want.float() * of_x * of_w.T)
                  and close(result, (cx * of_x) @ (cw * of_w).T, tol=1e-3))
    check.equal(torch.equal(result, want.float() * of_x * of_w.T), True, "`y` differs from the reference")

with check.part("several tokens, a scale for each", weight=3):
    held(1)
    held(2, tokens=4)
with check.part("columns so many that a float32 has not every sum", weight=2):
    wide = torch.full((1, 5000), 2.0)
    tall = torch.ones(2, 5000)
    tall[1, 0] = 126 / 127
    got, _ = asked_product(wide, tall)
    check.mistake("summed in floating point: beyond 2 to the power 24 a float32 has no odd integers",
                  when=abs(int(got[0, 1]) - (5000 * 127 * 127 - 127)) in range(1, 100))
    check.equal(got.tolist(), [[5000 * 127 * 127, 5000 * 127 * 127 - 127]])

# %% check="smooth"
def powers(reach_given, after_given, share):
    """The factors, computed one by one in whole exponents."""
    import math

    found_factors = []
    for channel, most in enumerate(reach_given.tolist()):
        largest = float(after_given[:, channel].abs().max())
        exact_log = share * math.log2(most) - (1 - share) * math.log2(largest) if most and largest else 0.0
        found_factors.append(2.0 ** round(exact_log))
    return torch.tensor(found_factors)

def judge_smooth(before_given, after_given, reach_given, share):
    """Holds factor and weights against the formula."""
    kept = before_given.clone(), after_given.clone()
    got, new_made, new_read = asked_smooth(before_given, after_given, reach_given, share)
    want = powers(reach_given, after_given, share)
    check.true(torch.equal(before_given, kept[0]) and torch.equal(after_given, kept[1]),
               "the arguments were changed")
    check.mistake("the other way round: activations are divided and weights multiplied",
                  when=not bool((want == 1).all()) and close(got, 1 / want))
    check.mistake("alpha says how much is moved: reach has the exponent alpha, the weights 1 - alpha",
                  when=share != 0.5 and close(got, powers(reach_given, after_given, 1 - share)))
    check.true(bool((got.log2() == got.log2().round()).all()),
               "a factor that is no power of two rounds the product")
    check.equal(got.tolist(), want.tolist())
    check.mistake("what makes the channels is divided, what reads them is multiplied",
                  when=torch.equal(new_made, before_given * want[:, None]) and not bool((want == 1).all()))
    check.close(new_made, before_given / want[:, None])
    check.close(new_read, after_given * want)

with check.part("alpha 0.5", weight=2):
    judge_smooth(*layer_of(2), 0.5)
with check.part("alpha 0.8, 0.6 and 1", weight=2):
    for seed, share in ((3, 0.8), (4, 0.6), (6, 1.0)):
        judge_smooth(*layer_of(seed), share)
with check.part("a channel that nobody uses, and one that nobody reads", weight=1):
    made, read, seen_reach = layer_of(5)
    read[:, 4] = 0
    seen_reach[2] = 0
    got, *_ = asked_smooth(made, read, seen_reach, 0.5)
    check.mistake("0 over 0, or a logarithm of 0: such a channel keeps the factor 1",
                  when=not bool(torch.isfinite(got).all()) or bool((got == 0).any()))
    judge_smooth(made, read, seen_reach, 0.5)

# %% check="misleading"
@reference
def misled(number):
    """(set, layer) of a variant, and the tokens of each set."""
    import torch
    from inferlab.lab.kits.low_precision import LinearInputs, calibration_texts
    from inferlab.models import load_language_model

    model, tokenizer = load_language_model("bundled", "cpu", dtype=torch.float32)
    traffic, sets = calibration_texts(tokenizer, number)
    reaches = {}
    for name, texts in {"traffic": traffic, **sets}.items():
        with torch.no_grad(), LinearInputs(model, "down_proj") as seen:
            for one in texts:
                model(one)
        reaches[name] = [float(torch.cat(calls).abs().max()) for calls in seen.seen.values()]
    beyond = {(name, layer): real / reaches[name][layer] for name in sets
              for layer, real in enumerate(reaches["traffic"])}
    return max(beyond, key=beyond.get), {name: sum(one.shape[1] for one in texts)
                                         for name, texts in sets.items()}

(which, where), lengths = misled(check.variant(16))
with check.part("the set", weight=1):
    said, _ = asked_misleading()
    check.mistake("few tokens do not mislead, if all kinds of texts are among them",
                  when=said != which and lengths[said] == min(lengths.values()))
    check.equal(said, which, "in another set's texts a layer's input stays further behind the traffic's")
with check.part("the layer", weight=1):
    answer, told_layer = asked_misleading()
    check.mistake("layers differ in size: compare a layer's reach with the traffic's in the same layer",
                  when=answer == which and told_layer == 7 != where)
    check.equal((answer, told_layer), (which, where))

# %% check="gptq"
def fed_back(w_given, x_given, bits_given):
    """GPTQ in its other form, with a Cholesky factor of the inverse: codes as float64."""
    most = 2 ** (bits_given - 1) - 1
    of_w = w_given.double().abs().amax(1) / most
    gram = x_given.double().T @ x_given.double()
    gram = gram + 0.01 * gram.diagonal().mean() * torch.eye(len(gram), dtype=torch.float64)
    upper = torch.linalg.cholesky(torch.linalg.inv(gram), upper=True)
    rest, codes_found = w_given.double().clone(), torch.zeros(w_given.shape, dtype=torch.float64)
    for i in range(w_given.shape[1]):
        codes_found[:, i] = (rest[:, i] / of_w).round().clamp(-most, most)
        miss = (rest[:, i] - codes_found[:, i] * of_w) / upper[i, i]
        rest[:, i:] -= miss[:, None] * upper[i, i:]
    return codes_found, of_w

def correlated(seed, tokens=200, columns=24, rows=12):
    """Weights, and inputs whose channels go along with each other."""
    draw = torch.Generator().manual_seed(seed)
    few = torch.randn(tokens, 6, generator=draw) @ torch.randn(6, columns, generator=draw)
    return (torch.randn(rows, columns, generator=draw),
            few + 0.3 * torch.randn(tokens, columns, generator=draw))

def product_error(w_given, x_given, restored):
    """Size of what the product misses."""
    return float((x_given.double() @ (restored - w_given.double()).T).norm())

with check.part("the error of the product, against rounding to the nearest", weight=2):
    for seed, bits in ((2, 4), (3, 3)):
        weight, given = correlated(seed)
        got, steps = asked_gptq(weight, given, bits)
        want, of_w = fed_back(weight, given, bits)
        check.close(steps.double(), of_w, tol=1e-6)
        plain_codes = (weight.double() / of_w[:, None]).round()
        plain_error = product_error(weight, given, plain_codes * of_w[:, None])
        mine = product_error(weight, given, got.double() * of_w[:, None]) / plain_error
        best = product_error(weight, given, want * of_w[:, None]) / plain_error
        check.mistake("that is rounding to the nearest: no error was fed back, or the codes come from `w`",
                      when=bool((got == plain_codes).all()))
        check.mistake("the correction has the wrong sign: it adds to the error", when=mine > 1.05)
        check.true(abs(mine - best) < 0.02, f"the error is {mine:.2f} times that of rounding to the nearest; "
                                            f"it should be {best:.2f} times")
with check.part("the codes, one by one", weight=1):
    weight, given = correlated(4)
    got, _ = asked_gptq(weight, given, 4)
    want, _ = fed_back(weight, given, 4)
    check.true(float((got == want).float().mean()) > 0.99, "some columns have other codes")
with check.part("corrected weights beyond the largest code", weight=2):
    weight, given = correlated(5)
    weight[:, 12:] = weight[:, 12:].sign() * weight.abs().amax(1, keepdim=True)
    for bits in (3, 2):
        got, _ = asked_gptq(weight, given, bits)
        most = 2 ** (bits - 1) - 1
        check.mistake("a code beyond the last one: corrected weights must be clamped",
                      when=int(got.abs().max()) > most)
        check.true(float((got == fed_back(weight, given, bits)[0]).float().mean()) > 0.99,
                   "some columns have other codes")
