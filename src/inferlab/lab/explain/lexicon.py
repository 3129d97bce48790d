"""The engine's general English: quantities, directions, verbs, negators, hedges. No lab's subject is in here."""

from .listed import listed
from .words import phrase

GOOD = {"time": -1, "memory": -1, "quality": +1, "compute": -1, "speed": +1, "throughput": +1, "transfer": -1}
"""Which way of a quantity one wants: +1 more, -1 less."""

_QUANTITIES = {
    ("time", +1): "time, latency, latencies, runtime, run time, running time, wall time, wall clock, wall-clock, duration, delay, wait, "
                  "waiting, waiting time, seconds, milliseconds, second, sec, secs, ms, minutes, ttft, itl, elapsed, time per token, computation time, "
                  "inference time, generation time, response time, slowness",
    ("speed", +1): "speed, pace, responsiveness, quickness, speedup",
    ("throughput", +1): "throughput, tokens per second, tokens/s, requests per second, images per second, samples per second",
    ("memory", +1): "memory, mem, vram, ram, hbm, gpu memory, memory peak, peak memory, peak, footprint, memory use, memory usage, storage, "
                    "bytes, megabytes, gigabytes, mib, gib, mb, gb, allocation, memory consumption, memory cost, working set, activation memory",
    ("quality", +1): "quality, fidelity, detail, details, sharpness, accuracy, clarity, realism, coherence, crispness, exactness, precision, "
                     "correctness, faithfulness, resemblance, prompt fidelity, image quality, picture quality, output quality, good, goodness, accurate, detailed, "
                     "faithful, precise, refined, refinement, polished, realistic, convincing",
    ("quality", -1): "error, errors, artifact, artifacts, artefact, artefacts, blur, blurriness, blurry, mistake, mistakes, discretisation error, "
                     "discretization error, graininess, residual noise, leftover noise, distortion, distortions, fuzziness, noisy, rough, roughness, "
                     "grainy, noisiness, seam, seams, flaw, flaws, defects",
    ("compute", +1): "\"compute\", computation, computations, calls, passes, forward passes, forwards, evaluations, flops, flop, \"work\", "
                     "recomputation, network evaluations, function evaluations, invocations, cost, costs, expense, energy, arithmetic, forward calls",
    ("transfer", +1): "transfer, transfers, traffic, copies, pcie traffic, bandwidth use, data movement",
}


def _table(groups: dict) -> dict[tuple[str, ...], object]:
    return {phrase(item): value for value, items in groups.items() for item in items.split(",")}


QUANTITIES = _table(_QUANTITIES)

MODIFIERS = _table({
    +1: "more, higher, greater, bigger, larger, extra, additional, longer, heavier, high, many, another, further, most, "
        "twice as many, double the, twice the, as many more, much, five times as many, a lot of, lots of, increased number of, twice as much",
    -1: "less, fewer, lower, smaller, shorter, lesser, lighter, few, least, minimal, half, half as many, half the, half of the, half of, low, "
        "half as much, a half of, only half, a fraction of",
})
PARTICLES = _table({+1: "up, upward, upwards", -1: "down, downward, downwards"})
BETTER = _table({+1: "better, improved, nicer, best", -1: "worse, poorer, poor, degraded, bad, worst, inferior"})
CARRIERS = _table({
    ("time", -1): "faster, quicker, speedier, fast, quick, quickly, swifter, sooner, speedily, rapid, rapidly, fastest, snappier, speeds up, "
                  "wait less, waiting less, you wait less, less of a wait, sooner, in no time, twice as fast, finish sooner, finishes sooner, done sooner, shortens the run, shorten the run, shorter run, shortening the run, less waiting, "
                  "speed up, speed things up, speeds things up, finish earlier, finishes earlier",
    ("time", +1): "slower, slow, slowly, slows, slows down, slow down, longer to, takes longer, take longer, took longer, taking longer, wait longer, waits longer, "
                  "waiting longer, runs longer, run longer, lasts longer, needs longer, slowed, slowing, slowing down, slowed down, "
                  "be waiting, have to wait, must wait, wait for it, wait more, you wait, keep waiting, makes you wait, wait for longer, sit there waiting, "
                  "slower to, longer run, longer wait, sluggish, slowest, time consuming, takes time, slow things down, slows things down, takes a while longer, lengthier, lengthen, later",
    ("quality", +1): "sharper, finer, cleaner, crisper, prettier, clearer, smoother, closer to, higher fidelity, truer, sharpen, "
                     "closer, less blurry, less noisy, more faithful, more accurate, more detailed, more convincing",
    ("quality", -1): "not as good, isn't as good, isn't that good, not as sharp, isn't as sharp, not so good, isn't so good, not as nice, isn't as nice, not quite as good, "
                     "aren't as good, less good, less faithful, less accurate, less exact, less precise, less detailed, less detail, less clean, mushy, blurrier, rougher, noisier, coarser, uglier, grainier, cruder, messier, sloppier, less sharp, lossy, blur, coarse, blurs, fuzzier, muddier",
    ("compute", -1): "cheaper, cheap, cheapest",
    ("compute", +1): "pricier, expensive, costlier, more expensive, costly, dearer",
})
VERBS_UP = _table({+1: "increase, raise, rise, grow, climb, double, triple, boost, inflate, go up, shoot up, elevate, multiply, "
                       "scale up, scale, quadruple, expand, lengthen, crank, bump, crank up, turn up, push up, drive up, swell, "
                       "add, adding, gain, bump up, ramp up, quadruples"})
VERBS_DOWN = _table({-1: "decrease, reduce, lower, drop, fall, shrink, cut, save, halve, go down, decline, minimise, minimize, limit, "
                         "free, diminish, trim, lessen, come down, cut down, cap, relieve, slash, bring down, push down, avoid, spare, "
                         "shave, cut back, ease, dial down, turn down, dip, shorten, skip, eliminate, remove, drive down, curb"})
SPEND = _table({+1: "cost, take, need, use, require, consume, spend, burn, eat, pay, demand, occupy, want, eat up, use up, take up, sink"})
LOSE = _table({-1: "lose, sacrifice, hurt, degrade, harm, suffer, worsen, deteriorate, give up, compromise, damage, penalise, penalize, "
                   "ruin, at the price of, at the cost of, at the expense of, at a cost of, at a price of, price is, penalty in, spoil, "
                   "detrimental to, bad for, harmful to, price you pay is, price i pay is, price to pay is, price for this is, price for that is, cost is, downside is, penalty is, drawback is, loss of, lost, price in, cost in, giving up, with the cost of, with the price of"})
WIN = _table({+1: "improve, enhance, help, in exchange for, gain in, in return for, benefit is, benefit, benefits from, profits from, win, buy, upgrade, for the sake of, "
                  "beneficial to, beneficial for, good for, advantage is, gain is, benefit in, improvement in, optimise, optimize, gain, better"})
AGAIN = _table({0: "recompute, recalculate, redo, reprocess, compute again, computed again, calculate again, calculated again, process again, processed again, "
                   "processed twice, computed twice, compute twice, compute it again, compute them again, calculate it again, calculate them again, "
                   "calculate old keys again, compute old keys again, start over, do it again, do them again, recomputed from scratch"})
"""Work that is done a second time: `compute` up, or down where it does not happen."""
SAME = _table({0: "unchanged, the same, constant, unaffected, identical, fixed, stay the same, stays the same, same"})

NEGATORS = frozenset(listed("""not no never neither nor cannot without don't doesn't didn't isn't aren't wasn't weren't won't can't couldn't
wouldn't shouldn't hasn't haven't hadn't ain't dont doesnt didnt isnt arent wasnt werent wont cant nobody nothing none
hardly scarcely barely rarely seldom"""))
HEDGES = _table({0: "maybe, perhaps, possibly, might, not sure, no idea, don't know, dont know, not certain, unsure, could be, either way, "
                    "or something, i guess, who knows, or maybe, it depends, depending, presumably, supposedly, up or down, "
                    "more or less, faster or slower, slower or faster, better or worse, not entirely sure, probably, i suppose, kind of maybe, "
                    "up and down, and/or, whichever, one or the other, or the other way, or vice versa, or opposite, or the opposite, hard to say"})
SATURATION = _table({0: "saturate, saturates, plateau, plateaus, diminishing, diminishing returns, at some point, beyond, after a while, after a "
                        "point, eventually, flatten, flattens, level off, levels off, until, past a certain, marginal, hardly any further, up to a "
                        "point, converge, barely, no longer, stops, stop, at which point, further improvement, past that, past about, after that"})
OFF = _table({-1: "without, disable, disabling, drop, dropping, remove, removing, turn off, turning off, switch off, switching off, off, no, "
                  "skip, skipping, disabled, lack of, absence of, stop using, take away, throw away, throwing away, discard, discarding, otherwise, "
                  "if you don't, if we don't, if not, not using"})
INSTEAD = _table({0: "instead of, rather than, not, as opposed to, compared to, compared with, versus, vs, unlike, in place of, than"})

BREAKS = frozenset(listed("but while whereas although though because since so which and however yet hence therefore thus then "
                   "meaning where when if as unless thereby even otherwise after before once"))
AUXILIARY = frozenset(listed("be is are was were been being am do does did have has had will would can could may might must shall should get gets got "
                      "getting gotten become becomes became seem seems to"))
