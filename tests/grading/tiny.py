"""A lab of two exercises and one explanation, small enough to grade in a second, written as every lab is."""

LAB = "lab00-tiny"

TEXT = '''\
# ---
# jupyter:
#   jupytext:
#     text_representation: {format_name: percent}
# ---

# %% [markdown]
# # A tiny lab

# %% tags=["parameters"]
LEARNER = ""
MODEL = "bundled"
DEVICE = "cpu"
SEED = 7

# %%
import torch

print("set up with", MODEL, DEVICE, SEED)

# %% exercise="half" provides=["half"] difficulty=1 minutes=1
def half(x):
    """Half of a tensor."""
    ### BEGIN SOLUTION
    return x / 2
    ### END SOLUTION

# %% check="half" points=2
import torch

from inferlab.lab import Check, close

check = Check("half", points=2)
theirs = check.learner
x = torch.tensor([1.0, -3.0])
with check.part("halves a tensor"):
    check.close(theirs.half(x), torch.tensor([0.5, -1.5]))
### BEGIN HIDDEN TESTS
with check.part("halves a batch"):
    batch = torch.arange(6.0).reshape(2, 3)
    got = theirs.half(batch)
    check.mistake("you divided twice", when=close(got, batch / 4))
    check.close(got, batch / 2)
### END HIDDEN TESTS
check.score()

# %% exercise="loop" provides=["denoise"] difficulty=2 minutes=3
def denoise(unet, timesteps, latents):
    """Subtract what `unet(latents, t)` returns, for every timestep."""
    ### BEGIN SOLUTION
    for t in timesteps:
        latents = latents - unet(latents, t)
    return latents
    ### END SOLUTION

# %% check="loop" points=3
import torch

from inferlab.lab import Check

check = Check("loop", points=3)
theirs = check.learner


def recorder(calls):
    def unet(latents, t):
        calls.append(t)
        return latents / 2

    return unet


with check.part("calls the model once a step"):
    calls = []
    theirs.denoise(recorder(calls), [2, 1, 0], torch.ones(2))
    check.equal(len(calls), 3)
### BEGIN HIDDEN TESTS
with check.part("in the order of the timesteps", weight=2):
    calls = []
    got = theirs.denoise(recorder(calls), [9, 4], torch.full((1, 2), 8.0))
    check.mistake("you went through the timesteps backwards", when=calls == [4, 9])
    check.equal(calls, [9, 4])
    check.close(got, torch.full((1, 2), 2.0))
### END HIDDEN TESTS
check.score()

# %% tags=["demo"]
raise RuntimeError("a demonstration is never run when grading")
'''

WRONG = '''\
# %% wrong="half" name="divided twice" keeps=0
def half(x):
    return x / 4

# %% wrong="loop" name="backwards" keeps=1
def denoise(unet, timesteps, latents):
    for t in reversed(timesteps):
        latents = latents - unet(latents, t)
    return latents
'''
