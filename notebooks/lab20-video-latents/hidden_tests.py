"""The hidden tests of lab20-video-latents:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def traced(clips):
    """The truth: real runs of the bundled pipeline, traced."""
    from inferlab.models import load_pipeline
    from inferlab.models.quiet import quiet
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu", family="wan")
    pipe.set_progress_bar_config(disable=True)
    found = []
    for prompts, frames, height, width in clips:
        # the library warns of a number of frames that it changes
        with quiet(), trace(pipe, depth=["transformer.rope", "vae.decoder"]) as run:
            pipe(["a red circle"] * prompts, num_frames=frames, height=height, width=width,
                 num_inference_steps=1, guidance_scale=1.0, max_sequence_length=16,
                 output_type="pt")
        made = [call.outputs.shape for call in run.find("vae.decoder")]
        found.append({"latents": tuple(run["prepare_latents"].outputs.shape),
                      "tokens": int(run["transformer.rope"].outputs[0].shape[1]),
                      "decoder_calls": len(made)})
    return found


CLIPS = [(2, 13, 48, 80), (1, 33, 32, 32), (3, 1, 64, 32), (1, 8, 32, 32), (1, 15, 32, 32),
         (1, 20, 32, 32)]
truths = traced(CLIPS)
with check.part("the latents of two prompts, of a longer clip and of one frame", weight=2):
    for asked, want in list(zip(CLIPS, truths))[:3]:
        got, (prompts, frames, _, _) = ask_forecast(*asked), asked
        shape = got["latents"]
        check.mistake("frames are no batch axis: the batch counts clips, and frames have axis 2",
                      when=shape[:1] != (prompts,) and len(shape) == 4)
        check.mistake("the channels come before the frames: (B, C, F, H, W)",
                      when=shape[1:3] == want["latents"][2:0:-1])
        check.mistake("these are frames of pixels: four of them make one latent frame, after the first",
                      when=shape[2:3] == (frames,) and frames > 1)
        check.mistake("the first frame stands apart: 1 + 4k frames are 1 + k latent frames",
                      when=shape[2:3] in ((frames // 4,), (round(frames / 4),), (frames / 4,)))
        check.equal(shape, want["latents"])
        check.mistake("a token covers 2x2 places of the latents: 16 pixels a side",
                      when=got["tokens"] == 4 * want["tokens"])
        check.mistake("every latent frame has tokens of its own, and all of them meet in one attention",
                      when=frames > 1 and got["tokens"] == want["tokens"] // want["latents"][2])
        check.mistake("a clip of the batch has its own attention: do not count the tokens of the others",
                      when=prompts > 1 and got["tokens"] == prompts * want["tokens"])
        check.equal(got["tokens"], want["tokens"])
with check.part("numbers of frames that are not 1 + 4k", weight=1):
    for asked, want in list(zip(CLIPS, truths))[3:6]:
        got = ask_forecast(*asked)
        check.mistake("the pipeline films only 1 + 4k frames, and makes the number one of these first",
                      when=got["latents"][2:3] != want["latents"][2:3])
        check.equal(got["latents"], want["latents"])
with check.part("calls of the decoder", weight=2):
    for asked, want in list(zip(CLIPS, truths))[:3]:
        got, frames = ask_forecast(*asked), asked[1]
        check.mistake("the VAE does not decode frame by frame: one call takes one latent frame",
                      when=frames > 1 and got["decoder_calls"] in (frames, asked[0] * frames))
        check.mistake("the decoder is not called once for the whole clip: latent frames go in one by one",
                      when=frames > 1 and got["decoder_calls"] == 1)
        check.mistake("one call serves the whole batch",
                      when=asked[0] > 1 and got["decoder_calls"] == asked[0] * want["decoder_calls"])
        check.equal(got["decoder_calls"], want["decoder_calls"])

# %% check="causal"
def around(given, left, right, mode="constant"):
    """The same weights with other frames before and after."""
    padded = F.pad(F.pad(given, (0, 0, 0, 0, left, right), mode=mode), (1, 1, 1, 1))
    return F.conv3d(padded, tool.weight, tool.bias).detach()


check.mistake("a frame must not see the frame after it: all zeros go before the first frame",
              when=close(got, around(given, 1, 1), tol=1e-4) or close(got, around(given, 0, 2), tol=1e-4))
check.mistake("what lies before the clip is zero here, not the first frame again",
              when=close(got, around(given, 2, 0, "replicate"), tol=1e-4))
singly = F.conv2d(given[0].transpose(0, 1), tool.weight[:, :, -1], tool.bias, padding=1).detach()
check.mistake("frames are no batch: a frame depends on those before it, too",
              when=close(got[0], singly.transpose(0, 1), tol=1e-4))

# %% check="causal"
def streamed(lengths, x, weight, bias):
    """The learner's output for pieces of these lengths, and the cache after each."""
    cache, outputs, caches = None, [], []
    for piece in x.split(lengths, dim=2):
        y, cache = ask_conv(piece, weight, bias, cache)
        outputs.append(y)
        caches.append(cache)
    return torch.cat(outputs, 2), caches


with check.part("the same clip in pieces", weight=1):
    tool, given = layer_of(2, 4, 3), frames_of(2, 2, 4, 9, 5, 4)
    weight, bias, want = tool.weight.detach(), tool.bias.detach(), tool(given).detach()
    for lengths in ([1, 4, 4], [4, 5], [1] * 9, [2, 1, 1, 5]):
        got, _ = streamed(lengths, given, weight, bias)
        fresh = torch.cat([tool(piece).detach() for piece in given.split(lengths, dim=2)], 2)
        check.mistake("every piece began as if it were a clip of its own: the cache was not used",
                      when=close(got, fresh, tol=1e-4))
        check.mistake("right until a piece is shorter than the cache: its last frame is still needed then",
                      when=1 in lengths and close(got[:, :, :2], want[:, :, :2], tol=1e-4)
                      and not close(got, want, tol=1e-4))
        check.close(got, want, tol=1e-4)
with check.part("other kernels: two frames, four frames, one place, five places", weight=0.5):
    for frames, side, lengths in ((2, 5, [1, 1, 3]), (4, 1, [1, 1, 1, 2]), (4, 3, [3, 2])):
        weight, bias = frames_of(3, 2, 3, frames, side, side), frames_of(4, 2)
        given = frames_of(5, 1, 3, 5, 6, 6)
        padded = F.pad(given, (side // 2,) * 4 + (frames - 1, 0))
        want = F.conv3d(padded, weight, bias)
        got, _ = streamed([5], given, weight, bias)
        check.close(got, want, tol=1e-4)
        check.close(streamed(lengths, given, weight, bias)[0], want, tol=1e-4)
with check.part("what is kept: frames that went in, two of them at most", weight=0.5):
    tool, given = layer_of(6, 3, 3), frames_of(6, 1, 3, 4, 4, 4)
    together, caches = streamed([1, 1, 2], given, tool.weight.detach(), tool.bias.detach())
    check.mistake("kept is what went in: the next frames are not computed from what came out",
                  when=close(caches[-1], together[:, :, -2:], tol=1e-4))
    check.mistake("two frames are enough: the cache must not grow with the clip",
                  when=caches[-1].shape[2] > 2)
    for cache, seen in zip(caches, (1, 2, 4)):
        check.close(cache, given[:, :, max(0, seen - 2):seen])

# %% check="reach"
@reference
def true_reach(frames, denoised):
    """For each latent frame, the frames that change with it: the bundled model asked."""
    import torch
    from inferlab.models import load_pipeline

    pipe = load_pipeline("bundled", "cpu", family="wan")
    many = 1 + (frames - 1) // 4
    noise = torch.randn(1, 16, many, 4, 4, generator=torch.Generator().manual_seed(3))
    states = noise.repeat(many + 1, 1, 1, 1, 1)
    for j in range(many):
        states[j + 1, :, j] += 1
    with torch.no_grad():
        if denoised:
            text, _ = pipe.encode_prompt("a red circle", do_classifier_free_guidance=False,
                                         max_sequence_length=16)
            states = torch.cat([state[None] - pipe.transformer(state[None], torch.tensor([999.0]), text,
                                                               return_dict=False)[0] for state in states])
        # one at a time: in a batch, bits may depend on the place
        films = torch.cat([pipe.vae.decode(state[None]).sample for state in states])
    changed = (films[1:] != films[:1]).transpose(1, 2).flatten(2).any(2)
    return [row.nonzero().flatten().tolist() for row in changed]


with check.part("what is behind a frame that the VAE decodes", weight=1):
    for frames in (9, 21):
        reach = true_reach(frames, False)
        for frame in range(frames):
            got = numbers(frame, frames, False)
            want = [j for j, hit in enumerate(reach) if frame in hit]
            check.mistake("the VAE does not decode frame by frame: what went before is in the cache",
                          when=len(want) > 1 and got == want[-1:])
            check.mistake("a frame of pixels is not a latent frame: four of them come from one",
                          when=frame > 1 and got == list(range(frame + 1)))
            check.mistake("the decoder goes in order: no later latent frame is known yet",
                          when=got == list(range(len(reach))) != want)
            check.mistake("the first frame stands apart: frames 1 to 4 come from latent frame 1",
                          when=frame > 0 and got == list(range(frame // 4 + 1)) != want)
            check.equal(got, want)
with check.part("what is behind a frame when the transformer comes first", weight=1):
    for frames in (9, 21):
        reach = true_reach(frames, True)
        for frame in (0, 3, frames - 1):
            got = numbers(frame, frames, True)
            want = [j for j, hit in enumerate(reach) if frame in hit]
            check.mistake("causal is the VAE: in the transformer every token looks at every token",
                          when=frame < frames - 4 and got == list(range((frame + 3) // 4 + 1)))
            check.equal(got, want)

# %% check="budget"
with check.part("too many tokens: fewer frames", weight=1):
    for wish, want in (((33, 96, 96, 200, 10**9), (17, 96, 96, None)),
                       ((17, 64, 96, 200, 10**9), (17, 64, 96, None)),
                       ((81, 480, 832, 32759, 10**9), (77, 480, 832, None))):
        got = ask_fit(*wish)
        check.mistake("tiles are for the decoder: the tokens meet before it", when=got["tile"] is not None)
        check.mistake("the first latent frame is one frame, and each other one four: 1 + 4k",
                      when=got["frames"] % 4 != 1)
        check.mistake("sides change only if not even one frame fits",
                      when=(got["height"], got["width"]) != wish[1:3])
        check.mistake("more frames would fit", when=got["frames"] < want[0])
        check.mistake("that clip has more tokens than the budget allows", when=got["frames"] > want[0])
        check.equal(got, dict(zip(("frames", "height", "width", "tile"), want)))
with check.part("too large a tensor: tiles", weight=1):
    for wish, square in (((65, 128, 192, 10**6, 1769472), 96), ((5, 480, 832, 10**6, 20 * 10**6), 320),
                         ((1, 96, 96, 10**6, 400000), 80), ((9, 96, 96, 10**6, 1769472), None)):
        got = ask_fit(*wish)
        check.mistake("fewer frames leave the decoder's largest tensor as it is: frames stay",
                      when=got["frames"] != wish[0])
        check.mistake("sides stay: a tile is what the decoder gets at once",
                      when=(got["height"], got["width"]) != wish[1:3])
        check.mistake("it fits without tiles", when=square is None and got["tile"] is not None)
        check.mistake("that tile's tensor is too large", when=square and got["tile"] and got["tile"] > square)
        check.mistake("a larger tile fits", when=square and got["tile"] and got["tile"] < square)
        check.equal(got["tile"], square)
with check.part("both, and sides that must be halved", weight=1):
    for wish, want in (((17, 192, 192, 100, 10**9), (5, 96, 96, None)),
                       ((33, 240, 112, 50, 60000), (5, 112, 48, 16))):
        got = ask_fit(*wish)
        check.mistake("a side stays a multiple of 16", when=got["height"] % 16 or got["width"] % 16)
        check.equal(got, dict(zip(("frames", "height", "width", "tile"), want)))

# %% check="diagnosis"
@reference
def truth(number):
    """The fault of one variant, and those that begin where it does."""
    from inferlab.lab.identity import scattered
    from inferlab.lab.kits.pipelines.misfilmed import MISFILMED

    fault = scattered(MISFILMED)[number]
    return fault, [name for name in MISFILMED if MISFILMED[name][0] == MISFILMED[fault][0]]


with check.part("which of the nine it is", weight=1):
    got, (fault, near) = diagnosed(), truth(check.variant(9))
    check.mistake("that fault begins at the same boundary as yours, but it would have left other values",
                  when=got != fault and got in near)
    check.true(got == fault, "that fault begins at another boundary than yours, or is not in the table")
