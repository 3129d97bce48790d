"""What the explanations of lab20-video-latents are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("clip-in-words", """
time: what the batch axis of the latents counts, and what the transformer sees
    who: the batch axis = batch, axis 0 / the frame axis = time axis, axis 2 / the transformer = denoiser,
        network / the decoder = VAE, VAE's decoder
    counts = holds: the clips = prompts / the latent frames / the frames of pixels = pixel frames, frames,
        video frames
    sees = looks at, depends on: all latent frames = every latent frame, whole clip, earlier and later latent
        frames / only this and earlier latent frames = only earlier latent frames, no later latent frame /
        only this latent frame = this latent frame alone, no other latent frame
decode: what a later decoder call makes, and what the cache keeps
    who: the first call / each later call = every later call, later calls, other calls /
        the cache = feature cache
    makes = gives, returns: one frame = single frame, 1 frame / four frames = 4 frames, four / all frames
    takes = gets: one latent frame = single latent frame / all latent frames
    keeps = holds: features of the two frames before = features of earlier frames, features of last
        two frames, two frames of features /
        finished frames = frames of pixels / keys and values
    is emptied = is reset, is cleared: before each clip = for each clip, between clips / before each call = in
        each call, between calls
cost: what four times the latent frames do to the scores, and to a decoder call's largest tensor
    who: the longer clip = longer clip of four times the latent frames
    multiplies: the tokens / the scores = attention scores / the decoder calls = calls of the decoder / the
        largest tensor of a decoder call = largest tensor, decoder's largest tensor / the weights
    leaves alone = does not change, keeps as it is: the tokens / the scores / the decoder calls / the largest
        tensor of a decoder call / the weights
    more: by # = # times, #-fold
""")

# %% check="words-time"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("clip-in-words"), "time", """
wanted: what the batch axis counts
    the batch axis | counts | the clips
wanted: which latent frames the transformer sees
    the transformer | sees | all latent frames
true
    the decoder | sees | only this and earlier latent frames
    the frame axis | counts | the latent frames
false: Frames are no batch axis. The batch counts clips, which know nothing of each other.
    the batch axis | counts | the latent frames / the frames of pixels
    the frame axis | counts | the clips
false: The transformer never meets a frame of pixels: 17 of them are 5 latent frames.
    the frame axis | counts | the frames of pixels
false: In its attention, every token of the clip looks at every token, also of later frames.
    the transformer | sees | only this and earlier latent frames / only this latent frame
false: The decoder goes over latent frames in order: none that comes later is known yet.
    the decoder | sees | all latent frames
false: The decoder does not work frame by frame: its cache brings what earlier calls left.
    the decoder | sees | only this latent frame
"""), "where frames lie, and which see which")

# %% check="words-decode"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("clip-in-words"), "decode", """
wanted: what each later call makes
    each later call | makes | four frames
wanted: what the cache keeps
    the cache | keeps | features of the two frames before
true
    the first call | makes | one frame
    the cache | is emptied | before each clip
    the first call / each later call | takes | one latent frame
false: The VAE does not decode frame by frame: a later call makes four frames of one latent frame.
    each later call | makes | one frame
false: The first latent frame stands apart: it holds one frame.
    the first call | makes | four frames
false: No call makes the whole clip. There is one for each latent frame.
    * | makes | all frames
    * | takes | all latent frames
false: What is kept is what went into each convolution. Finished frames are not read again.
    the cache | keeps | finished frames
false: This is no KV cache: the slots belong to convolutions.
    the cache | keeps | keys and values
false: Emptied in every call, the cache would keep nothing for the next frames.
    the cache | is emptied | before each call
"""), "how a clip is decoded")

# %% check="words-cost"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("clip-in-words"), "cost", """
wanted: what happens to the scores
    the longer clip | multiplies | the scores | +by 16
wanted: what happens to the largest tensor of a decoder call
    the longer clip | leaves alone | the largest tensor of a decoder call
true
    the longer clip | multiplies | the tokens / the decoder calls | +by 4
    the longer clip | leaves alone | the weights
false: Four times the frames do not cost four times everywhere: a call still takes one latent frame.
    the longer clip | multiplies | the largest tensor of a decoder call
false: Every token scores every other one: four times the tokens, sixteen times the scores.
    the longer clip | multiplies | the scores | by #
    the longer clip | leaves alone | the scores
false: Each latent frame has tokens of its own, and a decoder call of its own.
    the longer clip | multiplies | the tokens / the decoder calls | by #
    the longer clip | leaves alone | the tokens / the decoder calls
false: No weight knows how long the clip is.
    the longer clip | multiplies | the weights
"""), "what a longer clip costs")
