"""The hidden tests of lab11-end-to-end-trace:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="order"
import random


@reference
def traced_order(guidance, steps, output_type):
    """The truth: a real run of the bundled pipeline, traced."""
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as run:
        pipe("a red circle", num_inference_steps=steps, guidance_scale=guidance, height=64, width=64,
             output_type=output_type)
    helpers = ("prepare_extra_step_kwargs", "run_safety_checker")
    return [(row["name"], row["step"]) for row in run.rows() if row["level"] == 1
            and row["name"] not in helpers]


def both(*run):
    """The learner's order of a run's cards, and the run's own."""
    truth = traced_order(*run)
    return ordered(random.Random(3).sample(truth, len(truth))), truth


with check.part("before and after the loop", weight=1):
    got, truth = both(4.0, 2, "pil")
    outside = [card for card in got if card[1] is None]
    check.mistake("the VAE decodes once, after the last step: no picture exists before or inside the loop",
                  when=got.index(("vae.decode", None)) < got.index(("scheduler.step", 2)))
    check.mistake("the schedule is laid out before the latents are drawn: their scale belongs to the "
                  "schedule",
                  when=outside.index(("scheduler.set_timesteps", None))
                  > outside.index(("prepare_latents", None)))
    check.equal(outside, [card for card in truth if card[1] is None])
with check.part("the loop goes step by step", weight=1):
    got, truth = both(4.0, 2, "pil")
    inside = [card for card in got if card[1] is not None]
    check.mistake("guidance combines the UNet's answers before the scheduler sees them",
                  when=inside.index(("guidance", 1)) > inside.index(("scheduler.step", 1)))
    check.equal(inside, [card for card in truth if card[1] is not None])
with check.part("a run without guidance and without a decode", weight=1):
    got, truth = both(1.0, 3, "latent")
    check.equal(got, truth)

# %% check="changes"
@reference
def traced_rows(guidance, output_type, bf16):
    """Rows of a real run of the bundled pipeline: two steps at 64x64."""
    import torch
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu", torch.bfloat16 if bf16 else None)
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as run:
        pipe("a red circle", num_inference_steps=2, guidance_scale=guidance, height=64, width=64,
             output_type=output_type)
    return [{key: row[key] for key in ("name", "step", "inputs", "outputs")} for row in run.rows()
            if row["level"] == 1]


with check.part("changes between boundaries", weight=2):
    rows = [row("a", {}, spec(1, 4), 1), row("b", {"x": spec(2, 4)}, spec(2, 4), 1)]
    got = told(rows)
    check.mistake("b received another shape than a gave: that happened inline, "
                  "and comparing a boundary with itself cannot see it",
                  when=got == [])
    check.mistake("the change was there when b received it: it belongs to b's inputs, not to its outputs",
                  when=[line[2] for line in got] == ["outputs"])
    check.equal(got, [("b", 1, "inputs", "shape", (1, 4), (2, 4))])
with check.part("dtype and device, in the order of the contract", weight=1):
    rows = [row("unet", {"sample": spec(1, 4, dtype="float16", device="cuda:0")},
                spec(1, 4, dtype="float16", device="cuda:0"), 2),
            row("postprocess", {"image": spec(1, 4, dtype="float16", device="cuda:0")},
                spec(1, 4, device="numpy"))]
    got = told(rows)
    check.mistake("only shapes were compared: dtype and device cross boundaries, too", when=got == [])
    check.equal(got, [("postprocess", None, "outputs", "dtype", "float16", "float32"),
                      ("postprocess", None, "outputs", "device", "cuda:0", "numpy")])
with check.part("tensors deep inside, and sides without any", weight=1):
    rows = [row("draw", {}, spec(1, 4)),
            row("encode", {"prompt": "a"}, ({"ids": [None, spec(1, 8, dtype="int64")]}, 3)),
            row("setup", {"steps": 4, "image": {"image": "RGB", "size": (8, 8)}}, None),
            row("text", {"input_ids": spec(2, 8, dtype="int64")},
                {"last_hidden_state": spec(2, 8, 16), "pooled": spec(2, 16)})]
    got = told(rows)
    check.mistake("setup holds no tensor, so there is nothing to report of it",
                  when=any(line[0] == "setup" for line in got))
    check.mistake("tensors lie inside tuples and lists, too, at any depth",
                  when=all(line[0] != "encode" for line in got))
    check.mistake("a side without a tensor is skipped: the last tensor before it is compared with the next "
                  "one after it",
                  when=all(line[2] != "inputs" for line in got))
    check.equal(got, [("encode", None, "outputs", "shape", (1, 4), (1, 8)),
                      ("encode", None, "outputs", "dtype", "float32", "int64"),
                      ("text", None, "inputs", "shape", (1, 8), (2, 8)),
                      ("text", None, "outputs", "shape", (2, 8), (2, 8, 16)),
                      ("text", None, "outputs", "dtype", "int64", "float32")])
with check.part("a real run with guidance", weight=2):
    shapes = [line for line in told(traced_rows(4.0, "pil", False)) if line[3] == "shape"]
    wide, narrow = (2, 4, 8, 8), (1, 4, 8, 8)
    check.equal(shapes[-5:], [
        ("scheduler.scale_model_input", 1, "inputs", "shape", narrow, wide),
        ("guidance", 1, "outputs", "shape", wide, narrow),
        ("scheduler.scale_model_input", 2, "inputs", "shape", narrow, wide),
        ("guidance", 2, "outputs", "shape", wide, narrow),
        ("vae.decode", None, "outputs", "shape", narrow, (1, 3, 64, 64)),
    ])
with check.part("a real run in bfloat16 that returns an array", weight=1):
    got = [line for line in told(traced_rows(1.0, "np", True))
           if line[0] not in ("scheduler.set_timesteps", "prepare_latents")]
    check.equal([line[:4] for line in got if line[0] == "image_processor.postprocess"],
                [("image_processor.postprocess", None, "outputs", field)
                 for field in ("shape", "dtype", "device")])
    check.equal([line[0] for line in got if line[3] == "dtype"], ["image_processor.postprocess"])

# %% check="causes"
@reference
def diffs():
    """Real diffs of the bundled pipeline: one switch flipped, and two at once. One step, 64 pixels."""
    import torch
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipes = {dtype: load_pipeline("bundled", "cpu", dtype) for dtype in (torch.float32, torch.bfloat16)}

    def run(guidance=4.0, width=64, dtype=torch.float32):
        pipes[dtype].set_progress_bar_config(disable=True)
        with trace(pipes[dtype]) as t:
            pipes[dtype]("a red circle", num_inference_steps=1, guidance_scale=guidance, height=64,
                         width=width)
        return t

    plain = run()
    flipped = {"guidance": run(guidance=1.0), "size": run(width=96), "dtype": run(dtype=torch.bfloat16),
               "guidance and size": run(guidance=1.0, width=96)}
    return {name: plain.diff(other, slower=float("inf")).rows() for name, other in flipped.items()}


def every(switch, kinds=None):
    """What the learner says of each row of a real diff, beside the row."""
    rows = [row for row in diffs()[switch] if kinds is None or row["kind"] in kinds]
    return [(row, ask_causes(*[row[key] for key in ("kind", "name", "where", "before", "after")]))
            for row in rows]


with check.part("every row of a real diff: guidance", weight=2):
    for row, got in every("guidance"):
        check.mistake("a batch that halves is guidance, not another size of the picture",
                      when=row["kind"] == "shape" and got == {"size"})
        check.true(got == {"guidance"},
                   f"{row['kind']} at {row['name']}: only guidance was switched off in this run")
with check.part("every row of a real diff: size", weight=1):
    for row, got in every("size"):
        check.mistake("height and width changed, the batch did not: this is no guidance",
                      when=got == {"guidance"})
        check.true(got == {"size"}, f"{row['kind']} at {row['name']}: only the width was changed in this run")
with check.part("every row of a real diff: dtype", weight=1):
    for row, got in every("dtype"):
        check.mistake("a dtype is also passed along as an argument: that row is a `value`",
                      when=row["kind"] == "value" and got != {"dtype"})
        check.true(got == {"dtype"},
                   f"{row['kind']} at {row['name']}: only the dtype was changed in this run")
with check.part("two switches at once", weight=1):
    rows = [(row, got) for row, got in every("guidance and size",
                                             {"shape"}) if row["name"] == "unet"
            and row["where"] == "inputs.sample"]
    check.mistake("two axes of this shape differ, and each has a cause of its own", when=len(rows[0][1]) == 1)
    check.equal(rows[0][1], {"guidance", "size"})
    check.equal([got for row, got in every("guidance and size", {"shape"}) if row["name"] == "vae.decode"],
                [{"size"}] * 2)
with check.part("offload, and what proves nothing", weight=2):
    # what a real run with offload had more than one without, on a GPU
    for name in ("text_encoder.pre_forward", "unet.to", "maybe_free_model_hooks", "enable_model_cpu_offload",
                 "to"):
        check.equal(ask_causes("appeared", name), {"offload"})
    check.equal(ask_causes("vanished", "vae.to"), {"offload"})
    check.equal(ask_causes("device", "vae.decode", "inputs.z", "cpu", "cuda:0"), {"offload"})
    got = ask_causes("slower", "unet", "", "90.1 ms", "310.4 ms")
    check.mistake("a run can be slower for a hundred reasons: a time alone explains nothing", when=bool(got))
    check.equal(got, set())

# %% check="diagnosis"
TRUTH = [
    ("loop", "scheduler.set_timesteps", 4, 2),
    ("dtype", "text_encoder", "float32", "bfloat16"),
    ("shape", "vae.decode", (1, 3, 128, 128), (1, 3, 64, 128)),
    ("dtype", "unet", "float32", "bfloat16"),
    ("shape", "tokenizer", (1, 16), (1, 12)),
    ("loop", "scheduler.set_timesteps", 4, 8),
    ("dtype", "vae.decode", "float32", "bfloat16"),
    ("loop", "scheduler.set_timesteps", 4, 3),
    ("shape", "prepare_latents", (1, 4, 16, 16), (1, 4, 8, 8)),
]
kind, boundary, good, bad = TRUTH[check.variant(9)]
LATER = {
    "scheduler.set_timesteps": {"unet", "scheduler.step", "scheduler.scale_model_input", "guidance",
                                "scheduler"},
    "text_encoder": {"encode_prompt", "unet"},
    "tokenizer": {"encode_prompt", "text_encoder", "unet"},
    "prepare_latents": {"scheduler.scale_model_input", "unet", "guidance", "scheduler.step", "vae.decode",
                        "image_processor.postprocess"},
    "unet": {"guidance", "scheduler.step"},
    "vae.decode": {"run_safety_checker", "image_processor.postprocess", "StableDiffusionPipeline"},
}
with check.part("the kind of fault", weight=1):
    check.true(diagnosis()["kind"] == kind, "your two traces show another kind of fault")
with check.part("where it begins", weight=2):
    got = diagnosis()["boundary"]
    check.mistake("this boundary only receives the fault, or only calls the part that has it: look further "
                  "upstream and inside",
                  when=got in LATER[boundary])
    check.mistake("the name of the model or of the pipeline is no diagnosis: name a boundary of the trace",
                  when="diffusion" in got.casefold())
    check.true(got == boundary, "the fault does not begin at this boundary")
with check.part("the evidence", weight=1):
    got = diagnosis()["broken"]
    check.mistake("this is the healthy run's value", when=got == good)
    check.equal(got, bad)
