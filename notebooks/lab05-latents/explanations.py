"""What the explanations of lab05-latents are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("latents-in-words", """
latents: what one place of the latents stands for, and what one channel is
    who: a place = place of latents, position, one place, each place, every place, places /
        a channel = channel of latents, latent channel, one channel, each channel, every channel, channels,
        one latent channel
    stands for = covers, describes: a patch of 8x8 pixels = 8x8 pixels, patch, 64 pixels / one pixel =
        pixel, single pixel / the whole picture = whole image
    is: a learned number = learned feature, learned value, number that was learned, value
        that was learned / a color = red, green,
        blue, brightness / a smaller picture = small picture, thumbnail
noise: who predicts or takes out the noise in latents (one is enough), and what the VAE does with it
    who: the VAE = decoder, encoder / the UNet = denoiser / the scheduler = scheduler.step
    takes out = removes: the noise = noise in latents, noise of latents
    draws = shows, decodes: the noise / the clean picture = clean image
    predicts = estimates: the noise
tiling: what a tile takes its means over
    who: a tile = each tile, every tile, tiles / tiling
    takes its means over = normalizes over: the tile alone = tile, its own places, itself, themselves,
        their own places /
        the whole picture
    changes = moves: the colors = values / the shape
    leaves alone = keeps: the colors / the shape
""")

# %% check="words-latents"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("latents-in-words"), "latents", """
wanted: what a place stands for
    a place | stands for | a patch of 8x8 pixels
wanted: what a channel is
    a channel | is | a learned number
false: Latents are no small pictures: edited like one, they decode to something else. No channel is a color.
    * | is | a smaller picture / a color
false: There is one place for each 8x8 pixels.
    a place | stands for | one pixel / the whole picture
"""), "what latents are")

# %% check="words-noise"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("latents-in-words"), "noise", """
wanted: who takes the noise out
    the UNet / the scheduler | takes out | the noise
    the UNet | predicts | the noise
wanted: what the VAE does with noise
    the VAE | draws | the noise
false: The VAE does not denoise. Noise in the latents becomes blotches; the denoiser takes it out before.
    the VAE | takes out / predicts | *
    the VAE | draws | the clean picture
false: The denoiser and the scheduler never see a picture. They work on latents.
    the UNet / the scheduler | draws | *
false: Predicting is the UNet's part.
    the scheduler | predicts | *
"""), "noise in latents")

# %% check="words-tiling"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("latents-in-words"), "tiling", """
wanted: what a tile takes its means over
    a tile / tiling | takes its means over | the tile alone
true
    tiling / a tile | changes | the colors
    tiling / a tile | leaves alone | the shape
    tiling / a tile | not: changes | the shape
false: A tile sees nothing of its neighbors, so its means are its own.
    * | takes its means over | the whole picture
false: Tiling is not lossless. Compare the means of the halves, whole and in tiles.
    * | leaves alone | the colors
false: The tiles are put together to the same shape.
    * | changes | the shape
"""), "tiling")
