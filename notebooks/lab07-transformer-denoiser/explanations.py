"""What the explanations of lab07-transformer-denoiser are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("denoiser-in-words", """
denoiser: what is predicted, by whom, and who computes the next latents
    who: the transformer = network / the UNet / the scheduler = scheduler.step / the VAE
    predicts = answers with, estimates: the velocity / the noise = noise_pred / the picture
    computes = makes: the next latents = next tokens, new latents, latents of next noise level / the
        picture = image
    more: from the tokens = from latents / from the velocity / from the noise / in each step = in every
        step / once after the loop
text: how text and picture meet, and which vector of the prompt acts on every block besides
    who: the picture tokens = tokens of picture, latent tokens / the text tokens = tokens of text, T5
        tokens / the timestep = noise level / the pooled text = pooled vector, CLIP vector / the prompt
        string = prompt
    attend to = look at, see: the picture tokens / the text tokens / each other = one another
    modulate = scale and shift, scale shift and gate: every block = each block, blocks, all blocks
    are put beside = are concatenated with, is concatenated with, is put beside: the picture tokens / the
        text tokens
    stay the same = do not change:
    more: in one attention = in same attention, in joint attention / in cross-attention / in all blocks =
        in every block, in each block
guidance: what each kind of guidance costs
    who: the embedded scale = guidance_scale, embedded guidance / true guidance = true_cfg_scale, true CFG
    needs = costs, takes: one call a step = one pass a step, one call per step, one pass per step, one call
        / two calls a step = two passes a step, two calls per step, two passes per step, two calls, two
        passes, second call, second pass / a negative prompt
    is an input of = goes into: the network = transformer / the scheduler
    doubles: the number of calls = calls / the batch
""")

# %% check="words-denoiser"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("denoiser-in-words"), "denoiser", """
wanted: what is predicted, and by whom
    the transformer | predicts | the velocity | from the tokens / in each step
wanted: who computes the next latents
    the scheduler | computes | the next latents | from the tokens / from the velocity / in each step
true
    the VAE | computes | the picture | from the tokens / once after the loop
false: Diffusion does not mean UNet. There is none in this pipeline.
    the UNet | * | *
false: This network was trained to answer with the velocity, the noise minus the clean latents.
    the transformer | predicts | the noise
    * | * | * | from the noise
false: There are no pixels before the VAE. It works once, after the loop.
    * | predicts / computes | the picture
    the VAE | * | *
false: Predicting is the transformer's part, and stepping the scheduler's.
    the scheduler | predicts | *
    the transformer | computes | *
"""), "what is predicted, and by whom")

# %% check="words-text"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("denoiser-in-words"), "text", """
wanted: how text and picture meet
    the picture tokens / the text tokens | attend to | each other | in one attention / in all blocks
    the picture tokens | attend to / are put beside | the text tokens | in one attention / in all blocks
    the text tokens | attend to / are put beside | the picture tokens | in one attention / in all blocks
wanted: that the pooled text acts on every block
    the pooled text | modulate | every block | in all blocks
true
    the timestep | modulate | every block | in all blocks
    the picture tokens / the text tokens | attend to | * | in one attention / in all blocks
    the timestep / the pooled text | stay the same | | in all blocks
    the prompt string | stay the same | | in all blocks
false: No string arrives at the blocks. T5 makes token vectors of it, and CLIP one pooled vector.
    the prompt string | attend to / modulate / are put beside | *
false: There is no cross-attention here. Text and picture stand in one sequence.
    * | * | * | in cross-attention
false: Both streams leave a block changed. The text is no fixed condition.
    the picture tokens / the text tokens | stay the same
false: Tokens attend; timestep and pooled text are no tokens. They modulate.
    the timestep / the pooled text | attend to / are put beside | *
    the picture tokens / the text tokens | modulate | *
"""), "how text and picture meet")

# %% check="words-guidance"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("denoiser-in-words"), "guidance", """
wanted: what the embedded scale costs
    the embedded scale | needs | one call a step
    the embedded scale | not: needs | two calls a step
    the embedded scale | not: doubles | the number of calls
wanted: what true guidance costs
    true guidance | needs | two calls a step
    true guidance | doubles | the number of calls
true
    the embedded scale | is an input of | the network
    true guidance | needs | a negative prompt
false: An embedded scale is a number that each call is told. Guidance need not cost a second pass.
    the embedded scale | needs | two calls a step / a negative prompt
    the embedded scale | doubles | *
false: This pipeline calls the network again; each call has the same batch as before.
    true guidance | doubles | the batch
false: True guidance combines two answers of the network, so it asks twice.
    true guidance | needs | one call a step
false: true_cfg_scale stands in a formula after the two calls. The network is not told it.
    true guidance | is an input of | *
false: The scheduler knows nothing of guidance.
    the embedded scale | is an input of | the scheduler
"""), "what guidance is and costs")
