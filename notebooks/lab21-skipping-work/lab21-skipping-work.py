# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 21 · Skipping work
#
# A denoiser runs the same blocks in every step, and from one step to the next the blocks compute nearly the
# same. Some of what they computed can be used again. In this lab you run the *first-block cache* of diffusers
# on a real `FluxPipeline` and build it yourself. Then you find a cache that gives one request's data to the
# next request.
#
# **Time** 50 to 60 minutes, and 15 more for what is optional · **Points** 16, of which 4 are practice ·
# **Reading**
# [Skipping work](../../handbook/lab21-skipping-work.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 7

# %% [markdown]
# `"bundled"` is a small trained model. `"full"` builds the architecture of FLUX.1-dev with random weights
# (true shapes and costs, but no pictures; it needs a GPU with 40 GB). `"hub"` downloads the real checkpoint.
# Grading always uses `"bundled"` on the CPU.

# %%
from inferlab.lab import start

lab = start("lab21-skipping-work", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from diffusers import FirstBlockCacheConfig
from inferlab.models import load_pipeline
from inferlab.trace import trace

torch.set_grad_enabled(False)
pipe = load_pipeline(MODEL, lab.device, family="flux")
pipe.set_progress_bar_config(disable=True)
transformer = pipe.transformer
DOUBLES, SINGLES = transformer.config.num_layers, transformer.config.num_single_layers
WIDTH = transformer.config.num_attention_heads * transformer.config.attention_head_dim
SIDE = pipe.default_sample_size * pipe.vae_scale_factor
print(f"{type(transformer).__name__}: {DOUBLES} double and {SINGLES} single blocks, {WIDTH} numbers a token")

# %% [markdown]
# ## 1 · Goal and mental model
#
# A transformer block *adds* something to its input. What the first block adds is called its **residual**,
# $r$. (FLUX's first block is a double one: $r$ is what it adds to the picture's tokens, not to the text's.) A
# step in which all blocks run is called **whole**. The cache rests on a guess: if the first block adds nearly
# the same as at the last whole step, so will the other blocks. The first block runs in every step. If its
# residual has hardly changed, the other blocks are *skipped*, and what they added at the last whole step is
# added again.
#
# $$d = \frac{\operatorname{mean}\,|r - r_\text{kept}|}{\operatorname{mean}\,|r_\text{kept}|}
# \qquad d > \text{threshold}: \text{run all blocks} \qquad \text{otherwise}: \text{skip}$$
#
# The means run over all tokens and all pictures of a batch. So there is one $d$ and one decision for all.
#
# A whole step keeps two things: its $r$, from then on $r_\text{kept}$, and what the other blocks added. At
# the first step nothing is kept yet: all blocks run. `enable_cache` gives each block a *hook*: a function
# that is called in the block's place, and runs the block or answers without it.

# %% [markdown]
# ## 2 · Predict
#
# In section 3 you draw one picture without the cache and with it. The settings:

# %%
PROMPT, STEPS, THRESHOLD = "a red circle left of a blue square", 10, 0.2
settings = {"guidance_scale": 3.5, "max_sequence_length": 64, "height": SIDE, "width": SIDE}


def draw(prompt, steps=STEPS, **more):
    """The last latents of one picture, always from the same noise."""
    return pipe(prompt, num_inference_steps=steps, output_type="latent",
                generator=torch.Generator().manual_seed(SEED), **settings, **more).images


print(f"{SIDE}x{SIDE} pixels, {STEPS} steps, threshold {THRESHOLD}")

# %% [markdown]
# ### Exercise 1 · What is skipped, and what is saved
#
# *difficulty 2 of 3 · 4 minutes · 3 points*
#
# **Before you run anything further**, complete `forecast`: how often do things run in one picture? It is
# graded on runs that this notebook never makes. Of `steps` steps, `whole` are whole; this number is given,
# because it depends on the prompt. `doubles` and `singles` are the numbers of blocks of the two kinds; the
# first block is a double one. `passes` is 2 with true guidance: each step then calls the network twice, and
# each pass has a cache of its own, with the same number of whole steps. You write three numbers:
#
# * `network`: calls of the network;
# * `first`: runs of the first block;
# * `others`: runs of all other blocks, added up.
#
# <details><summary>Hint 1: a nudge</summary>
# Does the pipeline know that blocks are skipped? Which block must run before the cache can decide?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# The network is called <code>steps * passes</code> times, and its first block runs each time. The others,
# <code>doubles - 1 + singles</code> of them, run in <code>whole * passes</code> calls.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=4
def forecast(steps, whole, doubles, singles, passes=1):
    """How often the network, its first block and its other blocks run."""
    ### BEGIN SOLUTION
    network = steps * passes
    first = steps * passes
    others = whole * passes * (doubles - 1 + singles)
    ### END SOLUTION
    return {"network": network, "first block": first, "other blocks": others}

# %% [markdown]
# ## 3 · Trace
#
# First the run without the cache, then the run with it. The trace records the attention of every block.
# `whole_steps` lists the whole steps of a traced run: it looks whether the second block ran.

# %%
from inferlab.lab.kits.pipelines.step_cache import ATTENTIONS, whole_steps

with trace(pipe, depth=ATTENTIONS) as plain:
    exact = draw(PROMPT)
transformer.enable_cache(FirstBlockCacheConfig(threshold=THRESHOLD))
with trace(pipe, depth=ATTENTIONS) as cached:
    quick = draw(PROMPT)
transformer.disable_cache()
print("steps in which all blocks ran:", whole_steps(plain), "and", whole_steps(cached))

# %% tags=["demo"]
cached.table(level=2)

# %% [markdown]
# Read the table at three places:
#
# * **`transformer`** runs in every step. The pipeline calls it as if there were no cache;
# * **the attention of block 0** runs in every step, too. The decision is made from this block's residual;
# * **all other attentions** are missing in some steps.
#
# **Reconcile** your forecast.

# %% tags=["demo"]
from inferlab.lab import when_written

attentions = [b.name for b in cached.boundaries if b.name.endswith(".attn")]
in_first = attentions.count("transformer.transformer_blocks.0.attn")
print("the run: ", {"network": cached["transformer"].calls, "first block": in_first,
                    "other blocks": len(attentions) - in_first})
with when_written("forecast"):
    print("forecast:", forecast(STEPS, len(whole_steps(cached)), DOUBLES, SINGLES))

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)


def ask_forecast(*run):
    """The learner's forecast, once it has the form that the contract asks for."""
    got = check.plain(check.learner.forecast(*run))
    check.true(isinstance(got, dict) and set(got) == {"network", "first block", "other blocks"},
               "return a dict with exactly the three keys")
    return got


with check.part("4 steps, 3 of them whole, 2 double and 6 single blocks, one pass", weight=1):
    got = ask_forecast(4, 3, 2, 6, 1)
    check.true(all(isinstance(count, int) for count in got.values()), "the three counts are int")
    ### HIDDEN TESTS
### HIDDEN TESTS
check.score()

# %% [markdown]
# What the cache costs: memory, and an error in the picture. The error is the distance from the latents of the
# run without a cache, as a share of their size. A run with a threshold of 1.0, which skips more steps, shows
# it more clearly.

# %% tags=["demo"]
from inferlab.lab import filmstrip
from inferlab.lab.kits.pipelines.step_cache import cached_run, decoded, latent_error

rough, held = cached_run(transformer, 1.0, draw, PROMPT)
shown = {"no cache": exact, f"threshold {THRESHOLD}": quick, "threshold 1.0": rough}
print({label: f"error {latent_error(latents, exact):.3f}" for label, latents in shown.items()})
print(f"the cache holds {held:,} bytes after a step")
filmstrip([decoded(pipe, one) for one in shown.values()], list(shown), "A cache is not free", size=1.9)

# %% [markdown]
# ## 4 · Read
#
# Two places of the first block's hook, in the installed code. Which of them runs in a skipped step?

# %% jupyter={"source_hidden": true}
from diffusers.hooks.first_block_cache import FBCHeadBlockHook
from inferlab.lab import show_source

show_source(FBCHeadBlockHook.new_forward, {
    "shared_state.tail_block_residuals[0] + output[self._metadata.return_hidden_states_index]":
        "In a skipped step: what the other blocks added then, plus the first block's output of *now*.",
    "shared_state.head_block_residual = hidden_states_residual":
        "In whole steps only. So many small changes add up until they pass the threshold.",
}, excerpts=[
    ("shared_state.tail_block_residuals[0] + output[self._metadata.return_hidden_states_index]",
     "shared_state.tail_block_residuals[0] + output[self._metadata.return_hidden_states_index]"),
    ("shared_state.head_block_residual = hidden_states_residual",
     "shared_state.head_block_residual = hidden_states_residual"),
], checked="0.42.1")

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · One step with a memory
#
# *difficulty 2 of 3 · 6 minutes · 4 points*
#
# (This one is practice.) Now the cache itself, for a network with one stream of tokens (no separate text).
# One call of `cached_step` makes one step. `first` and `others` are functions: the first block, and all other
# blocks one after the other. `change` is the $d$ of section 1. `memory` is what the step before returned:
# `None` at the first step of a run, later a `dict` with `"residual"`, the kept residual, and `"added"`, what
# the other blocks added to the first block's output at the last whole step.
#
# The whole step is given. **Write the skipped step:**
#
# * when a step is skipped;
# * what it then returns: the last block's output, put together from `y` and what is kept, and the memory for
#   the next step.
#
# The check compares your decisions with the library's.
#
# <details><summary>Hint 1: a nudge</summary>
# In a skipped step, what do you add to what? And does the memory change then?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# If there is a memory and <code>change(residual, memory["residual"]) &lt;= threshold</code>: return <code>y +
# memory["added"]</code>, and the memory as it was.
# </details>

# %%
def change(residual, kept):
    """How much the first block's residual has changed, relative to the kept one."""
    return (residual - kept).abs().mean() / kept.abs().mean()


# %% exercise="cached-step" provides=["cached_step"] difficulty=2 minutes=6
def cached_step(first, others, x, memory, threshold):
    """The output of one step, and the memory for the next."""
    y = first(x)
    residual = y - x
    ### BEGIN SOLUTION
    if memory is not None and change(residual, memory["residual"]) <= threshold:
        return y + memory["added"], memory
    ### END SOLUTION
    out = others(y)
    return out, {"residual": residual, "added": out - y}

# %% check="cached-step" points=4
import torch
from inferlab.lab import Check, close, reference

check = Check("cached-step", points=4)


@reference
def library(threshold, steps, prompt):
    """A real run with the library's cache: what the first block added at each step, and the whole steps."""
    from diffusers import FirstBlockCacheConfig
    from inferlab.lab.kits.pipelines.step_cache import leader
    from inferlab.models import load_pipeline

    pipeline = load_pipeline("bundled", "cpu", family="flux")
    pipeline.set_progress_bar_config(disable=True)
    pipeline.transformer.enable_cache(FirstBlockCacheConfig(threshold=threshold))
    hook, seen = leader(pipeline.transformer), []
    rule = hook._should_compute_remaining_blocks

    def noted(residual):
        seen.append((residual.clone(), rule(residual)))
        return seen[-1][1]

    hook._should_compute_remaining_blocks = noted
    with torch.no_grad():
        pipeline(prompt, num_inference_steps=steps, height=64, width=64, max_sequence_length=16,
                 output_type="latent", generator=torch.Generator().manual_seed(0))
    return [residual for residual, _ in seen], [step for step, (_, whole) in enumerate(seen) if whole]


def replay(first, others, states, threshold):
    """The learner's step over a run: outputs, and at which steps `others` ran."""
    memory, outputs, whole = None, [], []
    for number, x in enumerate(states):
        asked = []

        def noted_first(value):
            asked.append("first")
            return first(value)

        def noted_others(value):
            asked.append("others")
            return others(value)

        got = check.learner.cached_step(noted_first, noted_others, x.clone(), memory, threshold)
        check.true(isinstance(got, tuple) and len(got) == 2, "return two things: the output and the memory")
        check.tensor(got[0], shape=tuple(x.shape))
        check.true(asked.count("first") == 1, "the first block runs once in every step")
        check.true(asked.count("others") <= 1, "call the other blocks at most once in a step")
        outputs.append(got[0])
        memory = got[1]
        if "others" in asked:
            whole.append(number)
    return outputs, whole


with check.part("three steps of a stand-in network", weight=1):
    start_at = torch.ones(1, 2, 3)
    outputs, whole = replay(lambda x: 2 * x, lambda y: y + 5, [start_at, 1.1 * start_at, 3 * start_at], 0.5)
    check.equal(whole, [0, 2])
    ### HIDDEN TESTS
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Which steps may be skipped?
#
# Three runs: in each, one step is skipped, and all others are whole. Which of them has the smallest error?

# %% tags=["demo"]
from inferlab.lab.kits.pipelines.step_cache import measured, skipping

one_skipped = {}
for step in (2, STEPS // 2 + 1, STEPS):
    with skipping(transformer, {step}):
        one_skipped[step] = draw(PROMPT)
filmstrip([decoded(pipe, latents) for latents in one_skipped.values()],
          [f"step {step}: error {latent_error(latents, exact):.3f}" for step, latents in one_skipped.items()],
          "One step skipped, all others whole", size=1.9)

# %% [markdown]
# The one in the middle: the steps after it correct most of its error. An early step decides the layout; later
# steps build on its error and hardly correct it. After the last step, none is left to correct anything.
#
# ![Left, a curve of the error over the one step that was skipped: high at step 2, lowest in the middle, and
# higher again at step 10. Right, a grid of steps for four thresholds and two prompts, with filled cells
# where all blocks ran and the error at the end of each row.](../../handbook/figures/lab21-steps.svg)
#
# *From the handbook*, with other noise. Left: the error for every step. Right: the whole steps with four
# thresholds, for two prompts.
#
# Next, runs with five thresholds, for two prompts each:

# %% tags=["demo"]
PROMPTS = [PROMPT, "a green triangle"]
table = measured(pipe, draw, [0.1, 0.15, 0.2, 0.3, 0.5], PROMPTS)
print("threshold  " + "  ".join(f"{prompt:>34s}" for prompt in PROMPTS))
for threshold, row in table.items():
    print(f"{threshold:9.2f}  " + "  ".join(f"{n:14d} whole, error {e:.3f}" for n, e in row))

# %% [markdown]
# The same threshold skips different steps for different prompts (see the figure), and the errors differ. It
# also matters which steps are whole: nine were in the run that skipped only step 2, and its error is larger
# than the first prompt's with threshold 0.15.
#
# ### Exercise 3 · A threshold under a budget
#
# *difficulty 1 of 3 · 3 minutes · 2 points*
#
# `choose(table, budget)` gets a table as above: for each threshold a pair (whole steps, error) for each
# prompt. Of the thresholds that fit, it returns the one with the fewest whole steps. **Write `fits`:**
# whether the error of **every** prompt is at most `budget`.
#
# <details><summary>Hint 1: a nudge</summary>
# Does the mean error tell you what the worst prompt gets?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# Compare <code>max(errors)</code> with the budget.
# </details>

# %% exercise="budget" provides=["choose"] difficulty=1 minutes=3
def choose(table, budget):
    """The threshold that saves most and keeps every prompt's error within the budget, or None."""
    fitting = []  # pairs (whole steps of all prompts together, threshold)
    for threshold, row in table.items():
        errors = [error for _, error in row]
        ### BEGIN SOLUTION
        fits = max(errors) <= budget
        ### END SOLUTION
        if fits:
            fitting.append((sum(whole for whole, _ in row), threshold))
    return min(fitting)[1] if fitting else None

# %% check="budget" points=2
from inferlab.lab import Check, reference

check = Check("budget", points=2)
with check.part("one prompt, three thresholds", weight=1):
    given = {0.1: [(10, 0.0)], 0.2: [(7, 0.03)], 0.4: [(4, 0.2)]}
    check.equal(check.learner.choose(given, 0.05), 0.2)
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("choose"):
    for budget in (0.005, 0.05, 0.1, 0.2):
        print(f"budget {budget}: threshold {choose(table, budget)}")

# %% [markdown]
# ### Exercise 4 · A memory that outlives its request
#
# *difficulty 3 of 3 · 7 minutes · 3 points*
#
# A service draws one picture after the other, with one pipeline and one cache. Now and then a client goes
# away, and its run is stopped in the middle. The next cell runs such an hour (it depends on your name):

# %%
from inferlab.lab.kits.pipelines.step_cache import SERVICE_THRESHOLD, run_hour, stopped_hour

service = load_pipeline("bundled", "cpu", family="flux")
service.set_progress_bar_config(disable=True)
service.transformer.enable_cache(FirstBlockCacheConfig(threshold=SERVICE_THRESHOLD))
log = run_hour(service, stopped_hour(lab.variant(8)))
for request, entry in log.items():
    print(request, entry)

# %% [markdown]
# `"steps"` is the number of steps that a request made, at least one, and `"whole"` lists its whole steps,
# counted from 1. The service catches the exception that stops a run: nobody sees an error, and every shape is
# right. But `FluxPipeline.__call__` empties the caches at its end, and a stopped `__call__` never gets there.
# So one request had the `added` of another request put into its picture.
#
# **a)** *1 point.* `foreign(log)` returns the requests to which this happened; in another hour there may be
# none or several. Write `used`, whether it happened to this request. Which step can a cache that starts empty
# never skip?
#
# **b)** *2 points.* The library's key is the pass alone. Choose the key for a repaired service. It keeps its
# memories in one `dict`: each call of `cached_step` gets `memories.get(memory_key(call))`, and what it
# returns is filed under the same key, until the request ends. A `call` is a `dict`: `"request"` (a number
# that no other request has), `"prompt"` (two requests may have the same), `"pass"` (`"cond"` or `"uncond"`:
# with true guidance each step makes both calls) and `"step"`. Return the key, a string or a tuple: each call
# must find what the step before kept for the same request and pass, and nothing else. Calls of several
# requests may be mixed.
#
# The visible checks look only at the form of your answers. The rest is graded when you hand in.
#
# <details><summary>Hint 1: a nudge</summary>
# a) What must a request do in its first step, if it has no memory of its own yet? b) What must differ
# between requests and between passes, and stay the same in all steps of one run?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# a) A request that uses only its own memory has step 1 in <code>whole</code>. b) Put the request beside the
# pass.
# </details>

# %% exercise="memory" provides=["foreign", "memory_key"] difficulty=3 minutes=7
def foreign(log):
    """The requests that used what another request left in the cache."""
    found = []
    for request, entry in log.items():
        ### BEGIN SOLUTION
        used = 1 not in entry["whole"]
        ### END SOLUTION
        if used:
            found.append(request)
    return found


def memory_key(call):
    """Under which key the memory of this call is kept."""
    ### BEGIN SOLUTION
    return (call["request"], call["pass"])
    ### END SOLUTION

# %% tags=["demo"]
with when_written("foreign"):
    print("had the `added` of another request put in:", foreign(log))

# %% check="foreign" of="memory" points=1
from inferlab.lab import Check

check = Check("foreign", points=1)


def named(given):
    """The learner's answer for a log, once it is a list."""
    got = check.learner.foreign(given)
    check.true(isinstance(got, list), "return a list of request numbers")
    return got


with check.part("a log in which nobody was stopped", weight=0):
    calm = {0: {"prompt": "a", "steps": 4, "whole": [1, 3]}, 1: {"prompt": "b", "steps": 4, "whole": [1, 2]}}
    check.equal(named(calm), [])
### HIDDEN TESTS
check.score()

# %% check="memory-key" of="memory" points=2
import torch
from inferlab.lab import Check, reference

check = Check("memory-key", points=2)


def served(calls):
    """Serves the calls with the learner's keys: at each call, whose residuals were used, or "whole"."""
    kept, used = {}, []
    for call in calls:
        key = check.learner.memory_key(dict(call))
        check.true(isinstance(key, (str, int, tuple)), "a key is a string, a number or a tuple of them")
        # a stand-in for the rule: what is kept is good for two more steps
        memory = kept.get(key)
        if memory is not None and memory["good"] > 0:
            memory["good"] -= 1
            used.append((memory["request"], memory["pass"]))
        else:
            kept[key] = {"request": call["request"], "pass": call["pass"], "good": 2}
            used.append("whole")
    return used


def a_call(request, step, prompt="a ring", which="cond"):
    """One call of the network."""
    return {"request": request, "prompt": prompt, "pass": which, "step": step}


with check.part("one request, four steps, one pass", weight=0):
    got = served([a_call(0, step) for step in (1, 2, 3, 4)])
    check.true(got[0] == "whole", "the first step of a request has nothing to reuse")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Where do speed-ups come from?
#
# Four people each show that `pipe(...)` takes less time. One uses the cache. One takes 6 steps instead of 10.
# One encodes the prompt before the call, which gets its vectors. One compiles the blocks beforehand:
# `compile_repeated_blocks` compiles one block of each kind and uses it for all blocks of that kind. Who
# leaves work out, who only moves it, and who does the same work? Decide before you run the next cell. It
# counts the floating point operations of the first three, as shares of the plain call. For the fourth it runs
# the compiler's front half alone, which captures the operations and runs them unchanged.

# %% tags=["demo"]
from inferlab.lab.kits.pipelines.step_cache import compiled_blocks, operation_shares

for name, (call, elsewhere) in operation_shares(pipe, draw, PROMPT, THRESHOLD).items():
    print(f"{name:18s} in the call {call:6.1%}, elsewhere {elsewhere:.1%}")
graphs, compiled = compiled_blocks(transformer, lambda: draw(PROMPT))
print(f"compiled blocks    {graphs} graphs for {DOUBLES + SINGLES} blocks, "
      f"largest difference {float((compiled - exact).abs().max())}")

# %% [markdown]
# * **The cache and six steps** leave work out: another picture comes of it.
# * **Text encoded beforehand** only moves work: the total is the same.
# * **Compiling** does the same work. A complete compiler joins operations, so that there are fewer launches
#   and fewer trips through memory; its result differs by rounding. This cell shows neither.

# %% [markdown]
# ## 6 · Explain
#
# Say what is so in sections 3 and 5. You write short sentences from the tables below: an entry of `who`, a
# verb, and an entry of its row. A field's second and third sentence have a line of their own, indented.
#
# * `decision` needs two sentences: what is compared with what, and what one threshold does to two prompts;
# * `places` needs one: whether the last step is cheap to skip, next to one in the middle;
# * `speedups` needs three: one on the cache or on fewer steps, one on the text, one on compiling.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 2 of 3 · 5 minutes · 4 points.* (`speedups` has 2.) The cell shows how it reads each line, and
# that reading is graded when you hand in. One false sentence costs its field all points. A line that the cell
# cannot read is graded by a person.

# %% explain="skipping-in-words" difficulty=2 minutes=5
%%explain skipping-in-words
# ### BEGIN SOLUTION
# decision: the first block's residual is compared with the residual of the last whole step
#   the same threshold skips other steps for another prompt
# places: a skipped last step costs more than one in the middle
# speedups: the first-block cache changes the picture
#   encoding the text beforehand moves work
#   compiling computes the same operations
# ### END SOLUTION

# %% check="words-decision" of="skipping-in-words" points=1
from inferlab.lab import Check

check = Check("words-decision", points=1)
with check.part("`decision:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("skipping-in-words").get("decision"), "`decision:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-places" of="skipping-in-words" points=1
from inferlab.lab import Check

check = Check("words-places", points=1)
with check.part("`places:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("skipping-in-words").get("places"), "`places:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-speedups" of="skipping-in-words" points=2
from inferlab.lab import Check

check = Check("words-speedups", points=2)
with check.part("`speedups:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("skipping-in-words").get("speedups"), "`speedups:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **A cache is not free.** It keeps tensors, and puts an old answer in the place of a new one.
# * **"Late steps don't matter" is untrue.** No later step corrects an error of the last one.
# * **A threshold belongs to a model, a number of steps and a set of prompts.** Look at the worst prompt, not
#   at the mean.
# * **State has an owner:** one request and one pass.

# %% [markdown]
# ## 8 · Further (optional)
#
# **15 minutes that nothing graded needs.** If your time is up, go on to section 9. First, flashcards on
# diffusion, for another day:

# %% tags=["demo"]
from inferlab.lab.cards import show_cards

show_cards("diffusion")

# %% [markdown]
# ### One picture on two processes
#
# Here no work is skipped: it is divided. *Context parallelism* gives each process, called a *rank*, a part of
# the tokens. Only attention needs the other ranks, because every token looks at every token. The next cell
# starts two processes in the background. Each draws the picture alone. Then they try to draw it together, in
# two ways.

# %% tags=["demo"]
from inferlab.lab.kits.parallel.ranks import start_context_ranks

RANKS, TEXT_TOKENS, CP_STEPS = 2, 64, 2
ranks = start_context_ranks(PROMPT, ["ulysses", "ring"], steps=CP_STEPS, text_tokens=TEXT_TOKENS, ranks=RANKS)

# %% [markdown]
# diffusers has two ways to do this, Ulysses and ring. Its docstring says what a rank holds in each:

# %% jupyter={"source_hidden": true}
from diffusers import ContextParallelConfig
from diffusers.models.attention_dispatch import TemplatedRingAttention, TemplatedUlyssesAttention

show_source(ContextParallelConfig, {
    "passed sequentially around ring. Lower memory (only holds 1/N":
        "A claim. Below, look at what `forward` gathers.",
    "local QKV, then all-gathers all KV chunks to compute full attention in one pass.":
        "A second claim.",
}, excerpts=[
    ("Number of devices to use for Ring Attention.", "of KV at a time), overlaps compute"),
    ("Number of devices to use for Ulysses Attention.", "KV), requires high-bandwidth"),
], checked="0.42.1")

# %% jupyter={"source_hidden": true}
show_source(TemplatedUlyssesAttention.forward, {
    "query, key, value = (_all_to_all_single(x, group) for x in (query, key, value))":
        "An all-to-all, no all-gather. Before it: 1/N of the tokens, all heads. After it: all tokens, 1/N of "
        "the heads. So a rank holds 1/N of the keys and values.",
    "out = _all_to_all_single(out, group)": "The output goes back: the fourth exchange of this attention.",
}, excerpts=[
    ("B, S_Q_LOCAL, H, D = query.shape", "query, key, value = (x.flatten(0, 1)"),
    ("out = out.reshape(B, world_size", "out = out.flatten(0, 1)"),
], checked="0.42.1")

# %% jupyter={"source_hidden": true}
show_source(TemplatedRingAttention.forward, {
    "kv_buffer = torch.cat([key.flatten(), value.flatten()]).contiguous()":
        "This rank's keys and values: 1/N of the tokens.",
    "kv_buffer = funcol.all_gather_tensor(kv_buffer, gather_dim=0, group=ring_mesh.get_group())":
        "Each rank has all keys and values before the first turn. Nothing travels around a ring.",
    "kv = kv_buffer[next_rank]": "One call of the attention uses 1/N of them. The buffer keeps all.",
}, excerpts=[
    ("kv_buffer = torch.cat", "next_rank = (next_rank + 1) % world_size"),
], checked="0.42.1")

# %% [markdown]
# So the installed code does the opposite of its docstring. With Ulysses a rank holds 1/N of the keys and
# values; with ring it holds all of them. (A ring that passes parts on would hold 1/N. This one uses an
# all-gather, `rotate_method="allgather"`, and has no other method.)
#
# How many bytes does a rank put into all exchanges of Ulysses? How many bytes of one attention's
# keys and values does a rank hold with ring? Write both down, then look at the formulas and at the run.

# %%
def put_in(tokens, width, blocks, steps, ranks, item_bytes=4):
    """Bytes that one rank puts into the all-to-alls of a run: query, key, value and output of each block."""
    return steps * blocks * 4 * (tokens // ranks) * width * item_bytes


def gathered(tokens, width, item_bytes=4):
    """Bytes of all keys and values of one attention."""
    return 2 * tokens * width * item_bytes

# %% tags=["demo"]
reports = ranks.results()
ulysses, ring = reports["ulysses"][0], reports["ring"][0]
small = load_pipeline("bundled", "cpu", family="flux").transformer.config  # what the ranks ran
blocks = small.num_layers + small.num_single_layers
tokens = 64 + TEXT_TOKENS  # the picture's tokens and the text's
width = small.num_attention_heads * small.attention_head_dim
print("enable_parallelism, without help:", ulysses["refused"])
print("into the first attention of rank 0:", ulysses["attention"])
exchanges = [line["bytes"] for line in ulysses["log"] if line["op"] == "all_to_all"]
print(f"Ulysses: {len(exchanges)} all-to-alls, {sum(exchanges):,} bytes put in, "
      f"predicted {put_in(tokens, width, blocks, CP_STEPS, RANKS):,}; "
      f"largest difference from one process {ulysses['apart']:.1e}")
gather = ring["log"][0]
print(f"ring: {gather['op']} in {gather['module']}, {gather['bytes']:,} bytes put in by each rank, so each "
      f"holds {RANKS * gather['bytes']:,}, predicted {gathered(tokens, width):,}")
print("ring, then:", ring["failed"])

# %% [markdown]
# Three things to see:
#
# * **The parts of both ranks together are the picture of one process**, up to rounding.
# * **It does not start on a CPU without help.** `enable_parallelism` computes `rank % device_count()`, and
#   without an accelerator the count is 0. So the kit replaced `torch.accelerator.device_count`, in these two
#   processes only, by a function that returns 2, and gave the ranks a mesh of the CPU.
# * **Ring gathered everything and then stopped.** To combine partial results it needs the logarithms of the
#   softmax sums, and PyTorch's native attention does not return them. On a GPU, a flash backend does.

# %% [markdown]
# ## 9 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
