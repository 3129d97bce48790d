"""The engine's general English: quantities, directions, verbs, negators, hedges. No lab's subject is in here."""

from .listed import listed
from .words import phrase

GOOD = {"time": -1, "memory": -1, "quality": +1, "compute": -1, "speed": +1, "throughput": +1, "transfer": -1}
"""Which way of a quantity one wants: +1 more, -1 less."""

_QUANTITIES = {
    ("time", +1): (
        "time, latency, latencies, runtime, run time, running time, wall time, wall clock, wall-clock, duration, delay, wait, "
        "waiting, waiting time, seconds, milliseconds, second, sec, secs, ms, minutes, ttft, itl, elapsed, time per token, "
        "computation time, inference time, generation time, response time, slowness, patience, clock time, render time, "
        "computing time, calculation time, time of calculation, time of computation, time of execution, execution time, "
        "processing time, sampling time, decode time, decoding time, waiting times"
    ),
    ("speed", +1): "speed, pace, responsiveness, quickness, speedup, rapidity, velocity",
    ("throughput", +1): (
        "throughput, thruput, total speed, overall speed, aggregate speed, total tokens per second, tokens per sec, "
        "tokens/sec, tokens a second, total throughput, requests served, users served, tokens per second, tokens/s, "
        "requests per second, images per second, samples per second"
    ),
    ("memory", +1): (
        "memory, mem, vram, ram, hbm, gpu memory, memory peak, peak memory, peak, footprint, memory use, memory usage, "
        "storage, bytes, megabytes, gigabytes, mib, gib, mb, gb, allocation, memory consumption, memory cost, working set, "
        "activation memory, activations, activation, memory demand, memory requirement, memory requirements, memory need, "
        "memory needs, ram usage, vram usage, memory pressure, memory high-water mark, high-water mark, feature maps, "
        'intermediate tensors, "buffers", memory budget, maximum of memory, memory maximum, memory spike, spike'
    ),
    ("memory", -1): "headroom, free memory, memory headroom, elbow room",
    ("quality", +1): (
        "quality, fidelity, detail, details, sharpness, accuracy, clarity, realism, coherence, crispness, exactness, "
        "precision, correctness, faithfulness, resemblance, prompt fidelity, image quality, picture quality, output quality, "
        "good, goodness, accurate, detailed, faithful, precise, refined, refinement, polished, realistic, convincing, exact, "
        "beautiful, crisp, sharp, coherent, fine, closeness, agreement, adherence, prompt adherence, fit to the prompt, "
        "obedience, conformity, conformance, alignment, faithfulness to the prompt, prompt following, prompt alignment, "
        'prompt match, prompt agreement, correspondence, sharpness of the picture, polish, finesse, look, looks, "match", '
        '"correct", similarity'
    ),
    ("quality", -1): (
        "error, errors, artifact, artifacts, artefact, artefacts, blur, blurriness, blurry, mistake, mistakes, "
        "discretisation error, discretization error, graininess, residual noise, leftover noise, distortion, distortions, "
        "fuzziness, noisy, rough, roughness, grainy, noisiness, seam, seams, flaw, flaws, defects, inaccuracy, inaccuracies, "
        "imprecision, deviation, deviations, numerical error, rounding error, approximation error, solver error, glitch, "
        "glitches, imperfection, imperfections, divergence, wrong, crude, approximation"
    ),
    ("compute", +1): (
        '"compute", computation, computations, calls, passes, forward passes, forwards, evaluations, flops, flop, "work", '
        "recomputation, network evaluations, function evaluations, invocations, cost, costs, expense, energy, arithmetic, "
        "forward calls, calculation, calculations, computing, computing power, processing, operations, maths, math, sums, "
        '"workload", "load", effort, gpu work, compute cost, compute load, evaluation, evaluations, runs of the network, '
        "multiplications, matmuls, computational cost, computational work, computational effort, compute work, network calls, "
        "unet calls, unet passes, gpu time, redundant work, duplicate work, duplicated work, overhead"
    ),
    ("transfer", +1): (
        "transfer, transfers, traffic, memory traffic, copies, pcie traffic, bandwidth, memory bandwidth, bandwidth use, data movement, communication, comms, comunication, "
        "network traffic, messages, exchanges, exchange, syncs, synchronisation, synchronization, synchronizations, "
        "data transfer, sending"
    ),
}


def _table(groups: dict) -> dict[tuple[str, ...], object]:
    return {phrase(item): value for value, items in groups.items() for item in items.split(",")}


QUANTITIES = _table(_QUANTITIES)

MODIFIERS = _table({
    +1: (
        "more, higher, greater, bigger, larger, extra, additional, redundant, longer, heavier, high, many, another, further, "
        "twice as many, double the, twice the, as many more, five times as many, a lot of, lots of, increased number of, "
        "twice as much, twofold, two times the, two times as many, two times as much, more of, extra of, a higher number of, "
        "a greater number of, a larger number of, nearly double the, about double the, double of the, the double of, double of"
    ),
    -1: "less, fewer, lower, smaller, shorter, lesser, lighter, few, least, minimal, half, half as many, half the, half of the, half of, low, "
        "half as much, a half of, only half, a fraction of, less of, the half of, fewer of, a lower number of, a smaller number of, a quarter of",
})
PARTICLES = _table({+1: "up, upward, upwards", -1: "down, downward, downwards"})
BETTER = _table({+1: "better, improved, nicer, best", -1: "worse, worser, more worse, poorer, poor, degraded, bad, worst, inferior"})
CARRIERS = _table({
    ("time", -1): (
        "faster, quicker, speedier, fast, quick, quickly, swifter, sooner, speedily, rapid, rapidly, fastest, snappier, "
        "speeds up, wait less, waiting less, you wait less, less of a wait, sooner, in no time, twice as fast, finish sooner, "
        "finishes sooner, done sooner, shortens the run, shorten the run, shorter run, shortening the run, less waiting, "
        "speed up, speed things up, speeds things up, finish earlier, finishes earlier, less long, less slow, more fast, "
        "more quick, more quickly, more rapid, more rapidly, half as long, in half the time, half the time, no longer wait, "
        "not as slow, takes less long, save you time, saves you time, quickly done, ready sooner, ready earlier, done earlier, "
        "wait about half, wait half, wait only half, is over sooner, accelerate, accelerates, accelerating, acceleration, "
        "hurry, nippier, brisk, brisker, snappy, zippier, wait shorter"
    ),
    ("time", +1): (
        "slower, slow, slowly, slows, slows down, slow down, longer to, takes longer, take longer, took longer, taking longer, "
        "wait longer, waits longer, waiting longer, runs longer, run longer, lasts longer, needs longer, slowed, slowing, "
        "slowing down, slowed down, be waiting, have to wait, must wait, wait for it, wait more, keep waiting, makes you wait, "
        "wait for longer, sit there waiting, slower to, longer run, longer wait, sluggish, slowest, time consuming, "
        "takes time, slow things down, slows things down, takes a while longer, lengthier, lengthen, more slow, more slowly, "
        "more long, takes more long, take more long, too slow, twice as long, five times as long, times as long, wait around, "
        "sit around, patience, slowdown, slow down the, less fast, less quick, less quickly, not as fast, isn't as fast, "
        "not so fast, takes ages, take ages, takes forever, finishes later, finish later, drags, drag on, is slow, drawn out"
    ),
    ("quality", +1): (
        "sharper, finer, cleaner, crisper, prettier, clearer, smoother, closer to, higher fidelity, truer, sharpen, closer, "
        "less blurry, less noisy, more faithful, more accurate, more detailed, more convincing, more exact, more precise, "
        "more correct, more clean, more sharp, more clear, more good, more nice, more beautiful, more realistic, more similar, "
        "more refined, more crisp, more true, more close, more coherent, more faithfully, more closely, more strictly, "
        "more precisely, more accurately, more tightly, more strongly, more literally, more exactly, more obey, more obeying, "
        "fewer mistakes, fewer errors, fewer artifacts, fewer flaws, less error, less blur, looks good, look good, "
        "looks great, tidier, neater, neat, nearer, nearer to, lovelier, richer, less rough, less crude, less grainy, "
        "less fuzzy, less wrong, better looking, looks better, look better, comes out better, turns out better, "
        "comes out nicer, higher quality, better quality, good looking, purer, polished, well defined, better defined, "
        "better resolved"
    ),
    ("quality", -1): (
        "not as good, isn't as good, isn't that good, not as sharp, isn't as sharp, not so good, isn't so good, not as nice, "
        "isn't as nice, not quite as good, aren't as good, less good, less nice, less beautiful, less correct, less realistic, "
        "less similar, less refined, less close, less closely, less strictly, less true, less coherent, less crisp, "
        "less clear, less convincing, more noisy, more blurry, more rough, more crude, more coarse, more grainy, more wrong, "
        "more bad, more ugly, more fuzzy, less finished, unfinished, half-baked, half baked, murkier, hazier, vaguer, looser, "
        "farther from, further from, further away from, far from, drifts, drift away, drifts away, drift off, differs from, "
        "strays, farther off, further off, drifts from, departs from, deviates from, deviate from, strays from, poorly, "
        "crudely, more crudely, more coarsely, coarsely, roughly drawn, less well, imprecise, inaccurate, degraded, "
        "more artifacts, more errors, more mistakes, more error, more blur, looks worse, look worse, comes out worse, "
        "turns out worse, off from, less polished, less defined, smeared, sketchier, sketchy, less good, less faithful, "
        "less accurate, less exact, less precise, less detailed, less detail, less clean, mushy, blurrier, rougher, noisier, "
        "coarser, uglier, grainier, cruder, messier, sloppier, less sharp, lossy, blur, coarse, blurs, fuzzier, muddier"
    ),
    ("compute", -1): (
        "cheaper, cheap, cheapest, less expensive, less costly, more cheap, half as often, less often, fewer times, "
        "half as many calls, more economical, economical, lighter work"
    ),
    ("memory", -1): (
        "avoid oom, avoids oom, avoiding oom, prevents oom, no oom, no more oom, without oom, avoids out of memory, "
        "avoid out of memory, fits on, fits in, fits into, fit on, fit in, fit into, fitting on, fitting into, less heavy, "
        "out of memory less, no out of memory, does not run out of memory, doesn't run out of memory, "
        "without running out of memory, not run out of memory"
    ),
    ("memory", +1): (
        "run out of memory, runs out of memory, running out of memory, goes oom, oom, out of memory, memory hungry, "
        "memory-hungry, memory heavy, memory-heavy, memory intensive"
    ),
    ("compute", +1): (
        "pricier, expensive, costlier, more expensive, costly, dearer, more costly, less cheap, heavier, twice as often, "
        "double as often, more work, more often, more frequently, calculate more, compute more, calculates more, "
        "computes more, does more, do more, heavy, double work, double the work, does double"
    ),
})
VERBS_UP = _table({+1: (
        "increase, raise, rise, grow, climb, double, triple, boost, inflate, go up, shoot up, elevate, multiply, scale up, "
        "scale, quadruple, expand, lengthen, crank, bump, crank up, turn up, push up, drive up, swell, add, adding, gain, "
        "bump up, ramp up, quadruples, augment, enlarge, balloon, explode, mount, soar, heighten, intensify, go higher, "
        "blow up, surge"
    )})
VERBS_DOWN = _table({-1: (
        "decrease, reduce, lower, drop, fall, shrink, cut, save, halve, go down, decline, minimise, minimize, limit, free, "
        "diminish, trim, lessen, come down, cut down, cap, relieve, slash, bring down, push down, avoid, spare, shave, "
        "cut back, ease, dial down, turn down, dip, shorten, skip, eliminate, remove, drive down, curb, lessen, bound, sink, "
        "plunge, plummet, dwindle, go lower, downsize, economise, economize, economise on, economize on, economise in, "
        "conserve, lighten, flatten, hold down, keep down, keep low, tame, compress, contract, wane, deduct, quarter"
    )})
SPEND = _table({+1: (
        "take, need, use, require, consume, spend, burn, eat, demand, involve, entail, incur, necessitate, absorb, invest, "
        "carry, run up, occupy, want, eat up, use up, take up, sink"
    )})
LOSE = _table({-1: (
        "bad is, bad thing is, bad part is, bad news is, cost, pay, sell, pay with, pay in, pays with, paid in, paid with, "
        "pay by, paid by, paid for with, paid for in, paid for by, pay for it in, pay for it with, pay for this in, "
        "pay for this with, pay for that in, pay for that with, pays for it in, pays for it with, pays for this with, "
        "pays for this in, pays for that with, pays for that in, repay with, pay using, lose, forfeit, forgo, worse in, "
        "impair, weaken, undermine, diminish in, shortfall in, loss in, losing, at the expense of the, in exchange you give, "
        "give away, surrender, trade away, the expense is, expense is, inconvenience is, inconvenient is, disadvantage is, "
        "catch is, bill is, payment is, cost comes in, in terms of cost, what you lose is, bad side is, minus is, con is, "
        "cons are, toll on, suffer in, suffers in, sacrifices, price comes as, charged in, bills you in, bills you for, "
        "to the detriment of, sacrifice, hurt, degrade, harm, suffer, worsen, deteriorate, give up, compromise, damage, "
        "penalise, penalize, ruin, at the price of, at the cost of, at the expense of, at a cost of, at a price of, price is, "
        "penalty in, spoil, detrimental to, bad for, harmful to, price you pay is, price i pay is, price to pay is, "
        "price for this is, price for that is, cost is, downside is, penalty is, drawback is, loss of, lost, price in, "
        "cost in, giving up, with the cost of, with the price of"
    )})
WIN = _table({+1: (
        "improve, enhance, help, in exchange for, gain in, in return for, good is, good thing is, good part is, nice thing is, "
        "good news is, benefit is, benefit, benefits from, profits from, win, buy, upgrade, for the sake of, beneficial to, "
        "beneficial for, good for, advantage is, gain is, benefit in, improvement in, optimise, optimize, gain, better, "
        "purchase, receive in return, pays off in, pay for, pays for, paid for, reward is, upside is, plus is, pro is, "
        "pros are, good side is, profit is, win is, winning, gain comes in, enjoy, earn, obtain, favour, favor, favours, "
        "enrich, strengthen, ameliorate, perfect, in favor of, in favour of"
    )})
AGAIN = _table({0: (
        "recompute, recalculate, redo, reprocess, compute again, computed again, calculate again, calculated again, "
        "process again, processed again, processed twice, computed twice, compute twice, compute it again, compute them again, "
        "calculate it again, calculate them again, calculate old keys again, compute old keys again, start over, do it again, "
        "do them again, recomputed from scratch"
    )})
"""Work that is done a second time: `compute` up, or down where it does not happen."""
SAME = _table({0: "unchanged, the same, constant, unaffected, identical, fixed, stay the same, stays the same, same"})

NEGATORS = frozenset(listed("""not no never neither nor cannot without don't doesn't didn't isn't aren't wasn't weren't won't can't couldn't
wouldn't shouldn't hasn't haven't hadn't ain't dont doesnt didnt isnt arent wasnt werent wont cant nobody nothing none
hardly scarcely barely rarely seldom"""))
HEDGES = _table({0: (
        "maybe, perhaps, possibly, might, not sure, no idea, don't know, dont know, not certain, unsure, could be, either way, "
        'or something, who knows, or maybe, it depends, "depending", supposedly, up or down, more or less, faster or slower, '
        "slower or faster, better or worse, not entirely sure, i suppose, kind of maybe, up and down, and/or, whichever, "
        "one or the other, hard to tell, or both, it may be the, may or may not, might or might not, or perhaps, or not, "
        "depends on how, depends how, some number like, can be 1 or, could be 1 or, or the other way, or vice versa, "
        "or opposite, or the opposite, hard to say"
    )})
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
