"""What the explanations of lab06-components are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="rerun"
@reference
def rerun():
    """Bytes of weights held after `from_pipe` without dtype."""
    import torch
    from diffusers import StableDiffusionImg2ImgPipeline, StableDiffusionPipeline
    from inferlab.lab.kits.pipelines.holdings import held as holds
    from inferlab.models.pictures import WEIGHTS as shipped

    first = StableDiffusionPipeline.from_pretrained(shipped, dtype=torch.float16)
    second = StableDiffusionImg2ImgPipeline.from_pipe(first)
    return sum(holds(first, second).values())

# %% fixture="words"
from inferlab.lab import Words

words = Words("one-folder", """
pipeline: what the pipeline does with the networks and when, and whose the weights are
    who: the pipeline = pipe, pipeline object / the networks = network, models / the scheduler
    calls = asks, runs: the networks / the pipeline / the scheduler
    holds = has, keeps, contains: the weights = all weights
    more: one after the other = one at a time, in turn, one by one / all at once = at once, all at the same
        time
sharing: what from_pipe gives the new pipeline, and whom the cast at its end reaches
    who: from_pipe / its cast = cast, the cast at the end, cast of from_pipe
    hands over = gives, passes on, shares: the same networks = same objects / copies of the networks = a
        copy of the networks
    copies: the networks / the weights
    reaches = changes: both pipelines = old and new pipeline, old pipeline and new pipeline / the old
        pipeline = old pipeline too / the new pipeline / only the new pipeline = new pipeline only
bytes: bytes
""")

# %% check="words-pipeline"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("one-folder"), "pipeline", """
wanted: what the pipeline does with the networks
    the pipeline | calls | the networks | one after the other
wanted: who holds the weights
    the networks | holds | the weights
    the pipeline | not: holds | the weights
true
    the pipeline | calls | the scheduler | one after the other
false: Not everything is needed at once. Each stage of a run needs one network.
    * | * | * | all at once
false: The pipeline is not the model. It refers to networks and calls them; each network holds its weights.
    the pipeline | holds | the weights
    the networks | calls | *
false: A scheduler has a config and no weights.
    the scheduler | holds | the weights
"""), "pipeline and networks")

# %% check="words-sharing"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("one-folder"), "sharing", """
wanted: what the new pipeline gets
    from_pipe | hands over | the same networks
    from_pipe | not: hands over | copies of the networks
    from_pipe | not: copies | the networks / the weights
wanted: whom the cast reaches
    its cast | reaches | both pipelines / the old pipeline
true
    from_pipe | reaches | both pipelines / the old pipeline / the new pipeline
    its cast | reaches | the new pipeline
false: `from_pipe` copies nothing. `b.unet is a.unet`.
    * | hands over | copies of the networks
    from_pipe | copies | *
false: A cast changes the networks themselves. Who else holds them sees it.
    * | reaches | only the new pipeline
"""), "from_pipe")

# %% check="words-entries"
from inferlab.lab.explain import typed

### FIXTURE rerun

check.slot(lambda: typed(check.explanation("one-folder"), "bytes", rerun()), "bytes held together")
