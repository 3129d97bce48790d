"""Makes a new lab: four small files that are proven as they are, with a TODO wherever the author writes."""

import re

from inferlab.grading.course import Course, CourseError

from .build import build_lab
from .hidden_tests import EXPLANATIONS, HIDDEN_TESTS
from .wrong_answers import WRONG_ANSWERS

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
LESSON = '''\
# %% [markdown]
# # TITLE
#
# TODO: one or two sentences: what a learner can do after this lab.
#
# **Time** 15 to 20 minutes · **Points** 4 · **Reading** TODO: a link to the handbook, if there is a section

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %%
from inferlab.lab import start

lab = start("LAB", LEARNER, MODEL, DEVICE, SEED)

# %% [markdown]
# ## 1 · Goal
#
# TODO: the idea in a few sentences, with one table or one formula.
#
# ## 2 · Trace
#
# TODO: say what to look for before it runs. Each row of the table is a boundary that data crossed.

# %%
from inferlab.models import load_pipeline
from inferlab.trace import trace

pipe = load_pipeline(MODEL, lab.device)
with trace(pipe) as run:
    pipe("a red circle", num_inference_steps=4, output_type="latent")
run

# %% [markdown]
# ## 3 · Build
#
# ### Exercise 1 · How often the UNet runs
#
# *difficulty 1 of 3 · 3 minutes · 2 points*
#
# TODO: the contract: each argument, what comes back, with shapes, dtypes and units.
#
# | argument | meaning |
# |---|---|
# | `steps` | steps of the loop, `int` |
# | `prompts` | prompts in one call of the pipeline, `int` |
#
# Returns the number of calls of the UNet, `int`.
#
# <details><summary>Hint 1: a nudge</summary>
#
# TODO: what to look at, without the answer. Here: what do the prompts of one batch share?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# TODO: what is left is to write it down. Here: all prompts go through the UNet in one call of each step.
# </details>

# %% exercise="unet-calls" provides=["unet_calls"] difficulty=1 minutes=3
def unet_calls(steps, prompts):
    """Calls of the UNet in one call of the pipeline."""
    ### BEGIN SOLUTION
    return steps
    ### END SOLUTION

# %% check="unet-calls" points=2
from inferlab.lab import Check

check = Check("unet-calls", points=2)
with check.part("the run above"):
    check.equal(check.learner.unet_calls(4, 1), 4)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4 · Explain
#
# Say what happened in the run of section 2. In `calls` you type how often the UNet ran. In `state` you
# write short sentences, one a line, from the tables below: an entry of `who`, a verb, an entry of its row
# and, if you like, entries of a row `may follow`. Lines that begin with `#` are notes of your own.
#
# TODO: an example: a sentence that is true and not wanted.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 1 of 3 · 3 minutes · 2 points.* When you run it, the cell shows how each line is read. That
# reading is graded when you hand in. One false sentence in a field costs its point, so say what you know; a
# line that is not read waits for a person.

# %% explain="one-run" difficulty=1 minutes=3
%%explain one-run
# ### BEGIN SOLUTION
# calls: 4
# state: the UNet predicts the noise in each step
#   the scheduler computes the next latents from the noise
# ### END SOLUTION

# %% check="one-run-calls" of="one-run" points=1
from inferlab.lab import Check

check = Check("one-run-calls", points=1)
with check.part("`calls:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-run").get("calls"), "`calls:` is empty")
### HIDDEN TESTS
check.score()

# %% check="one-run-state" of="one-run" points=1
from inferlab.lab import Check

check = Check("one-run-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-run").get("state"), "`state:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 5 · Check and hand in

# %% tags=["demo"]
from inferlab.lab import submit

submit()
'''
TESTS = '''\
"""The hidden tests of LAB: a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="unet-calls"
with check.part("a run that the lab never makes"):
    got = check.learner.unet_calls(10, 3)
    check.mistake("the prompts of a batch share one call of the UNet", when=got == 30)
    check.equal(got, 10)
'''
HELD_AGAINST = '''\
"""What the explanations of LAB are held against: a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("one-run", """
calls: a number
state: what the UNet does in each step, and what the scheduler does with it
    who: the UNet = the model / the scheduler / the VAE
    predicts = estimates: the noise = noise prediction / the next latents / the picture = the image
    computes = makes: the next latents / the picture
    more: from the noise / in each step = in every step / after the loop
""")

# %% check="one-run-calls"
from inferlab.lab.explain import typed

check.slot(lambda: typed(check.explanation("one-run"), "calls", 4), "the calls of the run")

# %% check="one-run-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("one-run"), "state", """
wanted: what the UNet does
    the UNet | predicts | the noise | in each step
wanted: what the scheduler does with it
    the scheduler | computes | the next latents | from the noise / in each step
false: Predicting is the UNet's part: the scheduler only does arithmetic.
    the scheduler | predicts | *
false: The UNet only predicts. What applies its prediction to the latents?
    the UNet | computes | the next latents
    the UNet | predicts | the next latents
false: This run stops at the latents: nobody makes a picture.
    the VAE | *
    * | predicts / computes | the picture
"""), "who predicts, and who computes")
'''
MISTAKES = '''\
# Named wrong answers: each is a patch of the lab's solution and keeps exactly the points that it says.
# TODO: at least three for each exercise and explanation, mistakes that somebody makes and believes in.

[[unet-calls]]
name = "one call for each prompt"
keeps = 1
replace = "return steps"
by = "return steps * prompts"

[[one-run]]
name = "guidance doubles the calls"
keeps = { one-run-state = 1 }
says.calls = "8"

[[one-run]]
name = "the scheduler predicts"
keeps = { one-run-calls = 1 }
says.state = "the scheduler predicts the noise and computes the next latents"

[[one-run]]
name = "every sentence that there is"
keeps = { one-run-calls = 1 }
says.state = "the UNet, the scheduler and the VAE compute the next latents and the picture"
'''


def new_lab(course: Course, lab: str) -> list[str]:
    """Write the four files of a new lab and build it; returns the files' names, relative to the course.

    Raises `CourseError` for a name that is no lab's name and for a lab that is there already.
    """
    if not NAME.fullmatch(lab):
        raise CourseError(f"'{lab}' cannot be a lab's name: small letters, digits and '-', "
                          "such as lab20-guidance")
    lesson = course.text(lab)
    if lesson.parent.exists():
        raise CourseError(f"notebooks/{lab} is there already")
    lesson.parent.mkdir()
    number, _, topic = lab.removeprefix("lab").partition("-")
    topic = topic.replace("-", " ").capitalize()
    title = f"Lab {number} · {topic}" if number.isdigit() else lab.replace("-", " ").capitalize()
    texts = {lesson.name: LESSON, HIDDEN_TESTS: TESTS, EXPLANATIONS: HELD_AGAINST, WRONG_ANSWERS: MISTAKES}
    for name, text in texts.items():
        lesson.with_name(name).write_text(text.replace("LAB", lab).replace("TITLE", title), "utf-8")
    build_lab(course, lab)
    return [f"notebooks/{lab}/{name}" for name in texts]
