"""Verb classes for claims: `changes` covers updates, transforms, turns into, ..."""

from .listed import listed
from .words import phrase

VERBS = {
    "changes": "change, update, transform, modify, turn, convert, advance, rewrite, overwrite, replace, refine, evolve, alter, adjust, "
               "step, map, nudge, push, shift, swap, clean, clean up, subtract, remove, strip, correct, bring, carry, "
               "move, take to, mutate, improve, integrate, iterate, propagate, progress, apply, revise, edit, transition, own, "
               "responsible, handle, perform, write, walk, drive, tweak, touch, work on, act on, operate on, set, go from, steer, peel off, take away, "
               "fold, blend, clear, reduce, feed back, reassign, become, rework, repaint, redraw, retouch, pull, tug, drag, recalculate, recompute, manipulate, treat, chew, chew on, work over, whittle, sculpt, massage, polish, chip away, process, upgrade, renew, refresh, supersede, carry forward, take forward, move on, move forward, take further, push toward, reshape, turn around, execute, act, act upon, alternate, tidy, tidy up, purify, wash, scrub, evolve into, morph, settle, combine, merge, commit, take out, pull out, does it, do it, does this, does that, does so",
    "denoises": "denoise, de-noise",
    "makes": "make, produce, return, give, generate, output, compute, calculate, yield, create, emit, build, derive, form, "
             "deliver, construct, draw, paint, render, spit out, come out, provide, work out, hand back, pass back, hand over, hand, "
             "arrive at, result in, write, issue, supply, synthesise, synthesize, determine, figure out, spit, put out, come up with, evaluate, send out, pop out, materialize, materialise, commit, realise, realize",
    "predicts": "predict, estimate, guess, infer, tell, say, approximate, forecast, identify, judge, regress, anticipate, propose",
    "obtains": "obtain, get, receive, end up with",
    "uses": "use, find, look up, consult, reuse, load, fetch, pick up, draw on, fall back on, benefit, exploit, take, consume, receive, combine, read, need, see, get, accept, ingest, rely on, work with, require, mix, employ, plug, involve, want",
    "keeps": "keep, store, hold, save, cache, remember, retain, reuse, append, add, concatenate, write, preserve, collect, record, stash, accumulate, "
             "memorise, memorize, contain, gather, stack, extend, put, tack on, insert, push, attach, hang on to, hold on to, maintain, stay",
    "splits": "split, slice, cut, divide, chop, tile, chunk, separate, break, partition, segment, carve, dice, process, portion, crop, fragment, window, section, partitioned, subdivide, part, make smaller, shorten, scissor, shard, share out, break up, decompose, iterate",
    "grows": "grow, increase, extend, expand, lengthen, append, get longer, gets longer, become longer, becomes longer, go from, reach, rise, accumulate, get bigger, "
             "gets bigger, get larger, get one longer, go up, climb, stretch, add, increment, concatenate, enlarge, fill, longer, go, change, run from, run, gain, widen, build up",
    "decodes": "decode, paint, render, develop, visualise, visualize, translate back, unpack, reconstruct, upsample, turn, convert, map, transform, render, process, decompress, expand, translate, run, pass, push, feed, handle, go, take, work on, do",
    "moves": "move, transfer, copy, offload, send, ship, migrate, bring, put, place, load, swap, shift, page, relocate, park, stream, fetch, push",
    "avoids": "avoid, skip, save, spare, prevent, eliminate, omit, dodge, bypass, get rid of, no need",
    "recomputes": "recompute, recalculate, redo, re-run, rerun, rebuild, regenerate, reprocess, compute again, calculate again, recomputation, recomputing, re-compute",
    "shrinks": "shrink, reduce, lower, cut, decrease, compress, halve, drop, lessen, limit, save, diminish, bound, cap, trim",
    "calls": "call, invoke, run, evaluate, execute, apply, query, ask, use, go through, pass through, visit",
    "controls": "control, set, decide, define, determine, choose, fix, dictate, govern, steer, pick, specify, give, say, own, count",
    "shows": "show, display, track, report, count, print, log, indicate, monitor, visualise, visualize",
    "is": "be, equal, mean, remain, stay, consist of, represent",
    "passes": "pass, feed, hand, go, send, flow, travel, give, enter, move, cross, come, deliver, receive",
    "other": "belong, live, sit, happen, let, cause, start, begin, end, seem, look, know, want, follow, come, depend, matter, allow, help, try, "
             "lie, do, have, keep on, continue, finish, stop, wait, leave, force, enable, compare, repeat, serve, act, behave, double, halve, influence, affect",
    "checks": "check, verify, double-check",
    "matches": "match, agree, fit, correspond, interchangeable, swap, compatible, exchange",
}
"""Class -> its verbs. A verb may be in several classes."""


def _index() -> dict[tuple[str, ...], frozenset[str]]:
    out: dict[tuple[str, ...], set[str]] = {}
    for name, verbs in VERBS.items():
        for verb in verbs.split(","):
            out.setdefault(phrase(verb), set()).add(name)
    return {k: frozenset(v) for k, v in out.items()}


VERB_INDEX = _index()
PARTICIPLES = frozenset(listed("""split cut made given taken kept held fed rewritten grown gone written sent built drawn put set read run lost paid
spent shrunk overwritten chosen bought done shown seen understood known found left brought become redone rerun rebuilt got gotten swept"""))
