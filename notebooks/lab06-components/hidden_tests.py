"""The hidden tests of lab06-components:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def counted(calls):
    """The truth: these calls, made on the bundled folder, and the bytes of weights held after each."""
    import torch
    from diffusers import StableDiffusionImg2ImgPipeline, StableDiffusionPipeline
    from inferlab.lab.kits.pipelines.holdings import held as holds
    from inferlab.models.pictures import WEIGHTS as shipped

    dtypes = {"float16": torch.float16, "float32": torch.float32}
    made, found = {}, []
    for kind, name, *rest in calls:
        if kind == "load":
            given = {part: owner and getattr(made[owner], part) for part, owner in rest[1].items()}
            made[name] = StableDiffusionPipeline.from_pretrained(shipped, dtype=dtypes[rest[0]], **given)
        elif kind == "from_pipe":
            named = {} if rest[1] is None else {"dtype": dtypes[rest[1]]}
            made[name] = StableDiffusionImg2ImgPipeline.from_pipe(made[rest[0]], **named)
        else:
            del made[name]
        found.append(sum(holds(*made.values()).values()))
    return found

@reference
def counts():
    """Weights of each network of the bundled folder."""
    from inferlab.models import load_pipeline

    model = load_pipeline("bundled", "cpu")
    return {name: sum(p.numel() for p in getattr(model, name).parameters())
            for name in ("text_encoder", "unet", "vae")}

WHOLE = sum(counts().values())
with check.part("from_pipe with a dtype, one of two dropped", weight=2):
    calls = [("load", "a", "float16", {}), ("from_pipe", "b", "a", "float16"), ("drop", "a"), ("drop", "b")]
    got = ask_forecast(counts(), calls)
    check.mistake("from_pipe copies nothing: the new pipeline holds the same objects",
                  when=got[1] == 4 * WHOLE)
    check.mistake("what a is dropped for, b still holds", when=got[2] < got[1] == 2 * WHOLE)
    check.equal(got, counted(calls))
with check.part("from_pipe without a dtype", weight=2):
    calls = [("load", "x", "float16", {}), ("from_pipe", "y", "x", None)]
    got = ask_forecast(counts(), calls)
    check.mistake("nothing said does not mean: as it is", when=got[1] == 2 * WHOLE)
    check.mistake("from_pipe copies nothing: the cast is made on the networks that both hold",
                  when=got[1] == 6 * WHOLE)
    check.equal(got, counted(calls))
with check.part("from_pipe of a pipeline with another's VAE", weight=1):
    calls = [("load", "p", "float32", {}), ("load", "q", "float16", {"vae": "p"}),
             ("from_pipe", "r", "q", "float16"), ("drop", "q"), ("drop", "p")]
    got, size = ask_forecast(counts(), calls), counts()
    check.mistake("the cast reaches every pipeline that shares a network, also p",
                  when=got[2] > got[1] or got[2] == got[1] == 4 * WHOLE + 2 * (WHOLE - size["vae"]))
    check.equal(got, counted(calls))

# %% check="header"
import json

several = {
    "b.bias": torch.tensor([1.5, -2.0, 7.25], dtype=torch.bfloat16),
    "a.weight": torch.arange(24.0).reshape(2, 3, 4) / 7,
    "steps": torch.tensor(123456789012),
    "half": torch.linspace(-1, 1, 5).to(torch.float16),
}
noted = save(several, metadata={"format": "pt", "note": "for people"})
with check.part("a file with a note for people in it, and several dtypes", weight=2):
    lead = 8 + int.from_bytes(noted[:8], "little")
    offsets = {label: entry["data_offsets"] for label, entry in json.loads(noted[8:lead]).items()
               if label != "__metadata__"}
    for label, want in several.items():
        got = check.learner.read_tensor(noted, label)
        check.true(isinstance(got, torch.Tensor), "return a tensor")
        check.mistake("the bytes were read as another dtype than the header says",
                      when=got.dtype != want.dtype)
        raw = got.reshape(-1).view(torch.uint8).numpy().tobytes()
        first, last = offsets[label]
        check.mistake("the offsets count from the beginning of the third part, not of the file",
                      when=raw == noted[first:last])
        check.mistake("the 8 bytes in front of the header are missing",
                      when=raw == noted[lead - 8 + first:lead - 8 + last])
        check.mistake("the values are right and the shape is not: the header says it",
                      when=got.shape != want.shape and torch.equal(got.reshape(-1), want.reshape(-1)))
        check.equal(got, want)

# %% check="diagnosis"
from inferlab.lab.kits.pipelines.misconfigured import HARMLESS, MISCONFIGURED, entry_of_variant

wrong_entry = entry_of_variant(check.variant(9))
begins_at = MISCONFIGURED[wrong_entry][1:]
with check.part("the boundary at which it begins", weight=1):
    got = said_fault["boundary"], said_fault["side"]
    check.mistake("the picture is where a fault shows, not where it begins",
                  when=got[0] in ("vae.decode", "image_processor.postprocess") and got[0] != begins_at[0])
    check.mistake("its inputs are wrong already: somebody before it is at fault",
                  when=got in (("unet", "inputs"), ("scheduler.step", "inputs")))
    check.equal(got, begins_at)
with check.part("the one entry that does harm", weight=2):
    check.mistake("this entry differs, and the run never looks at it",
                  when=said_fault["key"] in {entry for _, entry in HARMLESS})
    check.equal(said_fault["key"], wrong_entry[1])
