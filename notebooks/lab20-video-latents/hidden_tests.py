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
    for prompts, frames, height, width, steps, guidance_scale in clips:
        # the library warns of a number of frames that it changes
        with quiet(), trace(pipe, depth=["transformer.rope", "vae.decoder"]) as run:
            pipe(["a red circle"] * prompts, num_frames=frames, height=height, width=width,
                 num_inference_steps=steps, guidance_scale=guidance_scale, max_sequence_length=16,
                 output_type="pt")
        made = [call.outputs.shape for call in run.find("vae.decoder")]
        found.append({"latents": tuple(run["prepare_latents"].outputs.shape),
                      "tokens": int(run["transformer.rope"].outputs[0].shape[1]),
                      "transformer_calls": run["transformer"].calls, "decoder_calls": len(made),
                      "frames": sum(shape[2] for shape in made),
                      # the decoder's channels are 3 colors of 2x2 pixels
                      "chunk": max(shape[2] * 4 * shape[3] * shape[4] for shape in made)})
    return found


CLIPS = [(2, 13, 48, 80, 1, 1.0), (1, 33, 32, 32, 1, 1.0), (3, 1, 64, 32, 1, 1.0), (1, 8, 32, 32, 1, 1.0),
         (1, 15, 32, 32, 1, 1.0), (1, 20, 32, 32, 1, 1.0), (2, 5, 32, 32, 3, 4.0), (1, 5, 32, 32, 2, 1.0),
         (1, 65, 32, 32, 1, 1.0), (1, 17, 32, 32, 1, 1.0), (1, 17, 64, 64, 1, 1.0), (1, 1, 32, 32, 1, 1.0)]
truths = [{key: value for key, value in one.items() if key != "chunk"} for one in traced(CLIPS)]


def ratios(before, after):
    """The true growth from one of the clips to another."""
    first, second = traced(CLIPS)[before], traced(CLIPS)[after]
    keys = ("tokens", "decoder_calls", "chunk")
    return {"scores": (second["tokens"] / first["tokens"]) ** 2,
            **{key: second[key] / first[key] for key in keys}}


with check.part("the latents of two prompts, of a longer clip and of one frame", weight=2):
    for asked, want in list(zip(CLIPS, truths))[:3]:
        got, (prompts, frames, height, width, *_) = ask_forecast(*asked), asked
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
                      when=got["frames"] == asked[1])
        check.equal((got["frames"], got["latents"]), (want["frames"], want["latents"]))
with check.part("calls of the transformer and of the decoder", weight=2):
    for asked, want in (*list(zip(CLIPS, truths))[6:8], (CLIPS[0], truths[0])):
        got, frames = ask_forecast(*asked), asked[1]
        check.mistake("the VAE does not decode frame by frame: one call takes one latent frame",
                      when=got["decoder_calls"] in (frames, asked[0] * frames))
        check.mistake("the decoder is not called once for the whole clip: latent frames go in one by one",
                      when=got["decoder_calls"] == 1)
        check.mistake("one call serves the whole batch",
                      when=asked[0] > 1 and got["decoder_calls"] == asked[0] * want["decoder_calls"])
        check.mistake("with guidance above 1 each step calls the transformer twice; the batch stays as it is",
                      when=asked[5] > 1 and got["transformer_calls"] == asked[4])
        check.equal((got["transformer_calls"], got["decoder_calls"]),
                    (want["transformer_calls"], want["decoder_calls"]))
with check.part("what grows with the frames, and how much", weight=1):
    got, want = ask_growth((17, 32, 32), (65, 32, 32)), ratios(9, 8)
    check.mistake("a call still makes four frames: the largest one does not grow with the clip",
                  when=got["chunk"] in (65 / 17, 17 / 5, 4.0))
    check.mistake("four times the frames do not cost four times everywhere: look at each key by itself",
                  when=len(set(got.values())) == 1)
    check.mistake("every token has a number for every token: scores grow with the square of the tokens",
                  when=close(got["scores"], got["tokens"], tol=1e-6))
    check.mistake("the frames of pixels are not what is counted: 17 and 65 frames are 5 and 17 latent frames",
                  when=close(got["tokens"], 65 / 17, tol=1e-6))
    check.close(got, want, tol=1e-6)
with check.part("what grows with the side, and from one frame to more", weight=1):
    got, want = ask_growth((17, 32, 32), (17, 64, 64)), ratios(9, 10)
    check.mistake("tokens tile an area: twice the side, four times the tokens", when=got["tokens"] == 2)
    check.mistake("the decoder goes over latent frames: its calls do not know the side",
                  when=got["decoder_calls"] > 1)
    check.close(got, want, tol=1e-6)
    got, want = ask_growth((1, 32, 32), (17, 32, 32)), ratios(11, 9)
    check.mistake("the call for the first latent frame makes one frame, and each later one four",
                  when=got["chunk"] == 1)
    check.close(got, want, tol=1e-6)

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


with check.part("the same clip in pieces", weight=4):
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
with check.part("other kernels: two frames, four frames, one place, five places", weight=1):
    for frames, side, lengths in ((2, 5, [1, 1, 3]), (4, 1, [1, 1, 1, 2]), (4, 3, [3, 2])):
        weight, bias = frames_of(3, 2, 3, frames, side, side), frames_of(4, 2)
        given = frames_of(5, 1, 3, 5, 6, 6)
        padded = F.pad(given, (side // 2,) * 4 + (frames - 1, 0))
        want = F.conv3d(padded, weight, bias)
        got, _ = streamed([5], given, weight, bias)
        check.close(got, want, tol=1e-4)
        check.close(streamed(lengths, given, weight, bias)[0], want, tol=1e-4)
with check.part("what is kept: frames that went in, two of them at most", weight=1):
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


@reference
def films_of(states):
    """What the bundled VAE makes of latents."""
    import torch
    from inferlab.models import load_pipeline

    with torch.no_grad():
        return load_pipeline("bundled", "cpu", family="wan").vae.decode(states).sample


with check.part("the real decoder, on a clip of nine frames", weight=1):
    zeros = torch.zeros(1, 16, 3, 2, 2)
    for j, want in enumerate(true_reach(9, False)):
        got = numbers(check.learner.reached(films_of, zeros, j), "reached")
        check.mistake("nothing changed: multiplied by any number, a zero stays zero", when=not got)
        check.mistake("you changed a channel or a clip: frames lie on axis 2",
                      when=j > 0 and got == list(range(9)))
        check.equal(got, want)
with check.part("decoders of the check's own", weight=1):
    def leaks(z):
        """The last latent frame shows in one number of the first frame of the second clip."""
        shown = z[:, :3].clone()
        shown[1, 2, 0, 1, 1] += z[1, 3, -1, 0, 0]
        return shown

    given = torch.zeros(2, 4, 4, 2, 2)
    got = numbers(check.learner.reached(leaks, given, 3), "reached")
    check.mistake("the smallest change counts, in whichever clip, channel and place it is", when=got == [3])
    check.equal(got, [0, 3])
    check.equal(numbers(check.learner.reached(leaks, given, 1), "reached"), [1])
    looped = torch.ones(1, 4, 3, 2, 2)
    got = numbers(check.learner.reached(lambda z: z[:, :3].repeat(1, 1, 2, 1, 1), looped, 1), "reached")
    check.equal(got, [1, 4])
    check.true(bool((looped == 1).all()), "latents must be left as they are")
with check.part("what is behind a frame that the VAE decodes", weight=2):
    for frames in (9, 21):
        reach = true_reach(frames, False)
        for frame in range(frames):
            got = numbers(check.learner.behind(frame, frames, False), "behind")
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
            got = numbers(check.learner.behind(frame, frames, True), "behind")
            want = [j for j, hit in enumerate(reach) if frame in hit]
            check.mistake("causal is the VAE: in the transformer every token looks at every token",
                          when=frame < frames - 4 and got == list(range((frame + 3) // 4 + 1)))
            check.equal(got, want)

# %% check="budget"
@reference
def widest(clips):
    """Bytes of the largest output of a layer of the bundled decoder, for each (frames, height, width)."""
    import torch
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    vae, found = load_pipeline("bundled", "cpu", family="wan").vae, []
    for frames, height, width in clips:
        with torch.no_grad(), trace(vae, depth="decoder*") as run:
            vae.decode(torch.zeros(1, 16, 1 + (frames - 1) // 4, height // 8, width // 8))
        found.append(max(b.bytes_out for b in run.boundaries if b.name.startswith("decoder")))
    return found


SIZES = [(5, 32, 64), (21, 32, 64), (1, 64, 64), (9, 48, 16)]
with check.part("the largest tensor, for other clips", weight=2):
    for size, want in zip(SIZES, widest(SIZES)):
        got = check.number(check.learner.chunk_bytes(*size), "chunk_bytes returns a number of bytes")
        check.mistake("the largest tensor does not grow with the clip: a call takes one latent frame",
                      when=size[0] > 5 and got > want)
        check.mistake("a clip of one frame has only the first call, which makes one frame",
                      when=size[0] == 1 and got == 4 * want)
        check.mistake("it grows with the area of a frame: height and width both count",
                      when=got * size[1] == want * 96 or got * size[2] == want * 96)
        check.equal(got, want)
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
with check.part("too large a tensor: tiles", weight=2):
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
with check.part("both, and sides that must be halved", weight=2):
    for wish, want in (((17, 192, 192, 100, 10**9), (5, 96, 96, None)),
                       ((33, 240, 112, 50, 60000), (5, 112, 48, 16))):
        got = ask_fit(*wish)
        check.mistake("begin anew with the frames that were asked for, once the sides are halved",
                      when=got["frames"] == 1 and want[0] > 1)
        check.mistake("a side stays a multiple of 16", when=got["height"] % 16 or got["width"] % 16)
        check.equal(got, dict(zip(("frames", "height", "width", "tile"), want)))

# %% check="diagnosis"
@reference
def truth(number):
    """Boundary, call, fault and first frame of one variant, by runs of the bundled model."""
    import torch

    from inferlab.lab.identity import scattered
    from inferlab.lab.kits.pipelines.misfilmed import MISFILMED, misfilmed
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    fault = scattered(MISFILMED)[number]
    name = MISFILMED[fault][0]
    sound = load_pipeline("bundled", "cpu", family="wan")
    sound.set_progress_bar_config(disable=True)
    short = {"num_inference_steps": 3, "guidance_scale": 1.0, "num_frames": 9, "height": 96, "width": 96,
             "max_sequence_length": 16, "output_type": "pt"}
    outputs, films = [], []
    for pipe in (sound, misfilmed(sound, number)):
        pipe("a blue square falls on a black background", generator=torch.Generator().manual_seed(0), **short)
        with trace(pipe, depth=name, keep=name) as run:
            films.append(pipe("a red circle moves left on a white background",
                              generator=torch.Generator().manual_seed(1), **short).frames[0])
        found = [b.kept.outputs for b in run.find(name)]
        outputs.append([o if isinstance(o, tuple) else (o,) for o in found])
    differ = [not all(torch.equal(a, b) for a, b in zip(*pair)) for pair in zip(*outputs)]
    frames = [k for k in range(9) if not torch.equal(films[0][k], films[1][k])]
    return {"boundary": name, "fault": fault, "call": differ.index(True), "first_frame": frames[0]}


with check.part("the boundary and the call at which it begins", weight=1):
    got, want = diagnosed(), truth(check.variant(9))
    check.mistake("the frames are where a fault shows, not where it begins",
                  when=got["boundary"] == "video_processor.postprocess_video" != want["boundary"])
    check.true(got["boundary"] == want["boundary"],
               "at that boundary nothing is wrong yet, or it is wrong already: walk from the run's beginning")
    check.mistake("the first call has the number 0",
                  when=check.number(got["call"], "call is an int") == want["call"] + 1)
    check.true(got["call"] == want["call"], "another call of that boundary is the first one that differs")
with check.part("which of the nine it is", weight=2):
    check.true(diagnosed()["fault"] == want["fault"],
               "another fault would have left these values: look at what went in and what came out")
with check.part("the first frame that it spoils", weight=1):
    got = check.number(diagnosed()["first_frame"], "first_frame is an int")
    check.mistake("a call of the decoder is not a frame: call k makes frames 4k - 3 to 4k",
                  when=want["call"] > 0 and got == want["call"] != want["first_frame"])
    check.true(got == want["first_frame"], "the first frame that differs from the healthy clip is another")
