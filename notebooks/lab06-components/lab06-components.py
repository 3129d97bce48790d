# %% [markdown]
# # Lab 06 · Components
#
# `from_pretrained` takes a second, and afterwards there is "the model". In this lab you see what happens in
# that second. You predict how many bytes of weights several pipelines need together, read a weights file by
# hand, see how one wrong line of a config changes a picture without any error, and find such a line in a
# folder that opens without a warning.
#
# **Time** 45 to 60 minutes without the reading, 10 more for what is optional · **Points** 12, of which 3 are
# practice (exercise 2) · **Reading** [Components](../../handbook/lab06-components.md), before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %% [markdown]
# Grading always uses `"bundled"`, a small trained model, on the CPU. `"full"` has the architecture of Stable
# Diffusion 1.5 with random weights: files, bytes and dtypes are real, pictures mean nothing.

# %%
from inferlab.lab import start

lab = start("lab06-components", LEARNER, MODEL, DEVICE, SEED)

# %%
import tempfile
from pathlib import Path

import torch
from diffusers import StableDiffusionImg2ImgPipeline, StableDiffusionPipeline
from inferlab.models import load_pipeline
from inferlab.trace import trace

torch.set_grad_enabled(False)
pipe = load_pipeline(MODEL, lab.device)
pipe.set_progress_bar_config(disable=True)
scratch = tempfile.TemporaryDirectory(prefix="lab06-", ignore_cleanup_errors=True)
room = Path(scratch.name)  # for folders that this lab writes
folder = Path(pipe.name_or_path or room / "full")
if not folder.exists():  # "full" is made from configs alone: write its files
    pipe.save_pretrained(folder)

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say what `from_pretrained` builds from which file, which dtype each part has, which
# pipelines share weights, and what the loader checks (little).
#
# **A pipeline is a folder.** Here it is, with the bytes of each file:

# %%
for path in sorted(folder.rglob("*")):
    if path.is_file() and path.suffix in (".json", ".safetensors"):
        print(f"{path.stat().st_size:13,}  {path.relative_to(folder)}")

# %% [markdown]
# `model_index.json` names the class of each component, and a `config.json` has the arguments with which that
# class is built. The weights are in the `.safetensors` files. These Python objects were built from the
# folder:

# %%
print("is the pipeline a network?", isinstance(pipe, torch.nn.Module))
for name, part in pipe.components.items():
    if isinstance(part, torch.nn.Module):
        weights = sum(p.numel() for p in part.parameters())
        print(f"{name:17} {type(part).__name__:22} {weights:13,} weights  {part.dtype}  {part.device}")
    elif part is not None:
        print(f"{name:17} {type(part).__name__:22}")

# %% [markdown]
# **The pipeline is not the model.** It is a Python object with a place for each component, and a `__call__`
# that asks one component after the other. All weights belong to networks, and there are three of them, each
# with its own dtype and device. The scheduler and the tokenizer have no weights, so `to(...)` does not move
# them: even when the networks are on a GPU, the scheduler's table of noise levels stays on the CPU.

# %% [markdown]
# ![Seven small pictures under the line of a config that differs. The first and the last show a red circle
# left of a blue square on brown. The five between show other places, specks, paler colors, a grey
# background, and two rings.](../../handbook/figures/lab06-wrong-lines.svg)
#
# *From the handbook.* The same prompt and noise. Each of the five pictures between has one wrong line in a
# config, the last one eight harmless changes. Nothing raised an error. (Exercise 3 has other lines.)

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · How many bytes are in memory?
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
#
# **Before you run anything further**: a program opens pipelines, makes others from them, and deletes some. A
# pipeline refers to networks; a network holds its weights, and stays in memory as long as any pipeline refers
# to it. How many bytes of weights are in memory after each call? These are the calls:
#
# | call | means |
# |---|---|
# | `("load", "a", "float16", {})` | `a = StableDiffusionPipeline.from_pretrained(folder, dtype=torch.float16)` |
# | `("load", "b", "float32", {"vae": "a", "unet": None})` | the same with `vae=a.vae, unet=None` and another dtype |
# | `("from_pipe", "c", "a", "float16")` | `c = StableDiffusionImg2ImgPipeline.from_pipe(a, dtype=torch.float16)` |
# | `("from_pipe", "c", "a", None)` | the same, without `dtype=` |
# | `("scheduler", "a")` | `a` gets another scheduler |
# | `("drop", "a")` | `del a` |
#
# The frame is written. In it a network is a small list such as `["unet", 2]` (2 bytes for each weight), and a
# pipeline is a `dict` from component name to such a list. **The same list twice is the same network twice**;
# it is counted once. Fill two gaps: what a handed-over component does, and what `from_pipe` does.
#
# Three questions decide, and you can only guess now. Does `from_pipe` copy the networks? Which dtype does it
# use when you name none (`dtype` is `None`)? Does a component that you hand over keep its dtype? Write your
# guess; section 3 makes such calls, and then you may change your answer.
#
# <details><summary>Hint 1: a nudge</summary>
#
# <code>dict(pipelines[source])</code> is a new pipeline with the <i>same</i> lists. What you write
# <i>into</i> a list, every pipeline with that list sees.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Handed over: <code>pipelines[name][part] = pipelines[owner][part]</code>, and perhaps a cast.
# <code>from_pipe</code>: <code>pipelines[name] = dict(pipelines[source])</code>, or new lists; and then
# <code>network[1] = size[dtype or "..."]</code> for each <code>network</code>, with your guess for the dots.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=6
def forecast(weights, calls):
    """Bytes of weights in memory after each call; `weights`: network -> how many weights."""
    size = {"float16": 2, "float32": 4}
    pipelines, held_after = {}, []
    for kind, name, *rest in calls:
        if kind == "load":
            dtype, given = rest  # given: component -> name of the pipeline whose part it is, or None
            pipelines[name] = {part: [part, size[dtype]] for part in weights if part not in given}
            for part, owner in given.items():
                if owner is not None:
                    ### BEGIN SOLUTION
                    pipelines[name][part] = pipelines[owner][part]
                    ### END SOLUTION
        elif kind == "from_pipe":
            source, dtype = rest
            ### BEGIN SOLUTION
            pipelines[name] = dict(pipelines[source])
            for network in pipelines[name].values():
                network[1] = size[dtype or "float32"]
            ### END SOLUTION
        elif kind == "drop":
            del pipelines[name]
        networks = {id(network): network for parts in pipelines.values() for network in parts.values()}
        held_after.append(sum(weights[part] * width for part, width in networks.values()))
    return held_after

# %% [markdown]
# ## 3 · Trace
#
# ### Who shares what
#
# Now we make such calls. `held` adds up the bytes of the weights of some pipelines; a network that several
# pipelines share counts once. A component that is given as `None`, such as the safety checker here, is not
# loaded.

# %%
from inferlab.lab.kits.pipelines.holdings import held

NO_CHECKER = {"safety_checker": None, "requires_safety_checker": False}
a = StableDiffusionPipeline.from_pretrained(folder, dtype=torch.float16, **NO_CHECKER)
moments = {"a = from_pretrained(float16)": held(a)}

b = StableDiffusionImg2ImgPipeline.from_pipe(a, dtype=torch.float16)
moments["b = from_pipe(a, float16)"] = held(a, b)
print("one UNet for both:", b.unet is a.unet, "  one scheduler for both:", b.scheduler is a.scheduler)

# %% [markdown]
# **`from_pipe` copies nothing.** The new pipeline has another class with another `__call__` (it starts from a
# picture), but its components are the *same objects*. Now the same call, without `dtype=`:

# %%
print("before:", a.unet.dtype, a.vae.dtype, a.text_encoder.dtype)
c = StableDiffusionImg2ImgPipeline.from_pipe(a)
moments["c = from_pipe(a)"] = held(a, b, c)
print("after: ", a.unet.dtype, a.vae.dtype, a.text_encoder.dtype)

# %% [markdown]
# No line above changes `a` directly. But `from_pipe` ends with a cast, to `float32` if you name no dtype, and
# a cast of shared networks changes every pipeline that shares them. So the bytes doubled, although no
# component was copied. (In this way, a second pipeline can fill a GPU that holds `float16` networks.)
#
# Then a load **by parts**: one network is handed over, one is `None`.

# %%
d = StableDiffusionPipeline.from_pretrained(folder, dtype=torch.float16, vae=a.vae, text_encoder=None,
                                            tokenizer=None, **NO_CHECKER)
moments["d = from_pretrained(float16) by parts"] = held(a, b, c, d)
for name in ("text_encoder", "unet", "vae"):
    part = getattr(d, name)
    print(f"d.{name:13}", "nobody" if part is None else f"{part.dtype}, a's own: {part is getattr(a, name)}")
del a
moments["del a"] = held(b, c, d)

# %% [markdown]
# A component that is handed over keeps its dtype: `dtype=` applies only to components that are *loaded*. And
# `del a` frees nothing, because other pipelines still refer to all of its networks.

# %% [markdown]
# **Reconcile.** Your forecast of these five lines, beside what was counted:

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("forecast"):
    sizes = {name: sum(p.numel() for p in getattr(pipe, name).parameters()) for name in held(pipe)}
    told = forecast(sizes, [("load", "a", "float16", {}), ("from_pipe", "b", "a", "float16"),
                            ("from_pipe", "c", "a", None),
                            ("load", "d", "float16", {"vae": "a", "text_encoder": None}), ("drop", "a")])
    for said, (moment, parts) in zip(told, moments.items()):
        print(f"{moment:38} forecast {said:13,}   counted {sum(parts.values()):13,}")

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)

def ask_forecast(weights, calls):
    """The learner's forecast, once it is a list of one whole number for each call."""
    got = check.learner.forecast(weights, calls)
    check.true(isinstance(got, list) and len(got) == len(calls), "return a list: one number for each call")
    return [check.number(value, "return a list of whole numbers") for value in got]

with check.part("two opened with one VAE, one dropped", weight=1):
    small = {"text_encoder": 10, "unet": 100, "vae": 20}
    few = [("load", "a", "float16", {}), ("load", "b", "float16", {"vae": "a"}), ("drop", "a")]
    check.equal(ask_forecast(small, few), [260, 480, 260])
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Who is needed when
#
# Now a picture, traced.

# %%
PROMPT = "a large red circle left of a small blue square"
SIDE = pipe.unet.config.sample_size * pipe.vae_scale_factor
SETTINGS = {"num_inference_steps": 4, "guidance_scale": 4.0, "height": SIDE, "width": SIDE}


def drawn(pipeline, **changes):
    """The picture that a pipeline draws of PROMPT, always from the same noise."""
    generator = torch.Generator().manual_seed(SEED)
    return pipeline(PROMPT, **(SETTINGS | changes), generator=generator).images[0]


with trace(pipe) as run:
    picture = drawn(pipe)
run.table(level=1)

# %% [markdown]
# The pipeline calls the text encoder only at the beginning, then the UNet in each step, then the VAE once.
# **So not all networks have to be in memory at once** (section 8 opens them one after the other).

# %% [markdown]
# ## 4 · Read
#
# The loop in which `from_pretrained` builds the components, in the installed diffusers:

# %% jupyter={"source_hidden": true}
from diffusers import DiffusionPipeline
from inferlab.lab import show_source

show_source(
    DiffusionPipeline.from_pretrained,
    {
        "if name in passed_class_obj and passed_class_obj[name] is None:":
            "A component that you leave empty: its files are not opened.",
        "for name, (library_name, class_name) in logging.tqdm(init_dict.items(), **logging_tqdm_kwargs):":
            "One component after the other, each by the `from_pretrained` of its own class.",
        "loaded_sub_model = passed_class_obj[name]": "Taken as it is: no copy, no cast.",
        "dtype.get(name, dtype.get(\"default\", torch.float32)) if isinstance(dtype, dict) else dtype":
            "One dtype for all, or one for each component: dtype={'vae': torch.float32, 'default': ...}.",
    },
    excerpts=[
        ("def load_module(name, value):", "init_dict = {k: v for k, v in init_dict.items() if load_module("),
        ("for name, (library_name, class_name) in logging.tqdm",
         "for name, (library_name, class_name) in logging.tqdm"),
        ("if name in passed_class_obj:", "dtype.get(name, dtype.get("),
    ],
    checked="0.42.1",
)

# %% [markdown]
# And the end of `from_pipe`:

# %% jupyter={"source_hidden": true}
show_source(
    DiffusionPipeline.from_pipe,
    {
        "dtype = _resolve_dtype(kwargs.pop(\"dtype\", None), torch_dtype) or torch.float32":
            "No dtype means float32. It does not mean: keep the dtype.",
        "original_class_obj[name] = component": "The new pipeline gets the same object.",
        "new_pipeline.to(dtype=dtype)": "The cast. It also changes the old pipeline's components.",
    },
    excerpts=[("torch_dtype = kwargs.pop(\"torch_dtype\", None)",
               "dtype = _resolve_dtype(kwargs.pop(\"dtype\", None), torch_dtype) or torch.float32"),
              ("for name, component in pipeline.components.items():", "original_class_obj[name] = component"),
              ("new_pipeline = pipeline_class(**pipeline_kwargs)", "return new_pipeline")],
    checked="0.42.1",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · A weights file, by hand
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
#
# A `.safetensors` file has three parts, one after the other:
#
# | bytes | what |
# |---|---|
# | 8 | the length *n* of the header, an unsigned whole number, **little-endian** |
# | *n* | the header: JSON text (filled up with spaces) |
# | the rest | the values of all tensors, without gaps |
#
# The header is an object: name → `{"dtype": "F16", "shape": [3, 4], "data_offsets": [0, 24]}`. The two
# offsets, begin and end of the tensor, count **from the beginning of the third part**. One name is no tensor
# and is left out: `"__metadata__"` (the visible check's file has none). The first bytes of the VAE's file:

# %%
VAE_FILE = folder / "vae" / "diffusion_pytorch_model.safetensors"
data = VAE_FILE.read_bytes()
print(data[:8])
print(data[8:230].decode(), "...")

# %% [markdown]
# Write two functions; both get `data`, the whole file as `bytes`.
#
# | function | returns |
# |---|---|
# | `read_header(data)` | a `dict` from each tensor's name to the tuple `(dtype, shape, begin, end)`: a `str` as in the file, a tuple of `int`, and two positions **in the file**: `data[begin:end]` are the tensor's bytes |
# | `read_tensor(data, name)` | the tensor of that name, in its dtype and shape. The file's dtypes are keys of the table `TORCH` |
#
# <details><summary>Hint 1: a nudge</summary>
#
# How many bytes are before the third part? `int.from_bytes` takes the byte order as its second argument.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>n = int.from_bytes(data[:8], "little")</code>, then <code>json.loads(data[8:8 + n])</code>; add
# <code>8 + n</code> to both offsets. For a tensor:
# <code>torch.frombuffer(bytearray(data[begin:end]), dtype=TORCH[dtype])</code>, and <code>reshape</code>.
# </details>

# %% exercise="header" provides=["read_header", "read_tensor"] difficulty=2 minutes=6
import json

TORCH = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64}


def read_header(data):
    """Name -> (dtype, shape, begin, end) of each tensor; positions in the file."""
    ### BEGIN SOLUTION
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + n])
    header.pop("__metadata__", None)
    return {name: (told["dtype"], tuple(told["shape"]), *(8 + n + offset for offset in told["data_offsets"]))
            for name, told in header.items()}
    ### END SOLUTION


def read_tensor(data, name):
    """The tensor of that name."""
    dtype, shape, begin, end = read_header(data)[name]
    ### BEGIN SOLUTION
    return torch.frombuffer(bytearray(data[begin:end]), dtype=TORCH[dtype]).reshape(shape)
    ### END SOLUTION

# %% check="header" points=3
import torch
from inferlab.lab import Check
from safetensors.torch import save

check = Check("header", points=3)
small_file = save({"wide": torch.arange(6.0).reshape(2, 3), "narrow": torch.arange(4).to(torch.float16)})

def described(blob):
    """The learner's header, once it has the form that the contract asks for."""
    got = check.learner.read_header(blob)
    check.true(isinstance(got, dict) and all(isinstance(x, tuple) and len(x) == 4 for x in got.values()),
               "return a dict whose values are tuples (dtype, shape, begin, end)")
    return got

with check.part("names, dtypes and shapes of a small file", weight=1):
    check.equal({label: line[:2] for label, line in described(small_file).items()},
                {"wide": ("F32", (2, 3)), "narrow": ("F16", (4,))})
### HIDDEN TESTS
check.score()

# %% [markdown]
# Your functions and the library, on the VAE's own file. Names, dtypes, shapes and sizes are known before any
# tensor is read, and the file has no place for a program. (Older checkpoints are *pickles*, which are
# programs: section 8.)

# %% tags=["demo"]
with when_written("read_header", "read_tensor"):
    rows = read_header(data)
    name = next(iter(rows))
    print(f"{len(rows)} tensors, dtypes {sorted({row[0] for row in rows.values()})}, "
          f"{sum(row[3] - row[2] for row in rows.values()):,} bytes of values in {len(data):,} bytes of file")
    same = torch.equal(read_tensor(data, name).to(pipe.vae.dtype), pipe.vae.state_dict()[name].cpu())
    print(f"{name}: {rows[name]}, equal to the loaded weight: {same}")

# %% [markdown]
# ### The peak while loading
#
# The library does not read such a file, it **maps** it: the file appears at a memory address, and the
# operating system fetches a page when a program first reads it. So how many bytes are newly allocated while
# the UNet is opened, and how many bytes do its weights take afterwards?

# %%
from diffusers import UNet2DConditionModel
from inferlab.lab.kits.memory.peaks import measure


def opened_unet(dtype):
    """The UNet of the folder."""
    return UNet2DConditionModel.from_pretrained(folder / "unet", torch_dtype=dtype)


for how, opened in {
    "float16": lambda: opened_unet(torch.float16),
    "float32": lambda: opened_unet(torch.float32),
    "float32, then cast": lambda: opened_unet(torch.float32).to(torch.float16),
}.items():
    load = measure(opened)
    total = sum(p.numel() * p.element_size() for p in load["value"].parameters())
    print(f"{how:18} peak of new tensors {load['peak']:13,}   weights afterwards {total:13,}")

# %% [markdown]
# (The bundled model's file is in `float16`.) In the file's own dtype almost nothing is allocated: the weights
# *are* the mapped file. In another dtype every weight is a converted copy. If the network is opened in
# `float32` and cast afterwards, the result is as small as in the first line, but **the peak is twice the
# result**. The peak decides whether a model can be opened.

# %% [markdown]
# ### Refused, silent, or without effect
#
# How does the loader react to a wrong line in a config? We make three copies of the bundled folder, each with
# one changed entry. (From here on everything uses the bundled model on the CPU, because only a trained
# model's picture can show a fault.)

# %%
from inferlab.lab.kits.pipelines.misconfigured import config_differences, misconfigured, with_entries
from inferlab.models.pictures import WEIGHTS

SMALL = SETTINGS | {"height": 128, "width": 128}


def opened_from(place):
    """The pipeline in a folder, in float32 on the CPU."""
    made = StableDiffusionPipeline.from_pretrained(place, dtype=torch.float32, **NO_CHECKER)
    made.set_progress_bar_config(disable=True)
    return made


sound = opened_from(WEIGHTS)
right = drawn(sound, **SMALL)

# %% tags=["demo"]
from inferlab.lab import filmstrip

strip = {"as shipped": right}
for file, key, value in (("unet/config.json", "cross_attention_dim", 256),
                         ("unet/config.json", "norm_num_groups", 8),
                         ("unet/config.json", "upcast_attention", True)):
    place = with_entries(room / "one-entry", {(file, key): value})
    try:
        strip[f"{key}\n{value}"] = other = drawn(opened_from(place), **SMALL)
        print(f"{file} {key} = {value}: opened;", "same picture" if other == right else "another picture")
    except (ValueError, RuntimeError) as refused:
        print(f"{file} {key} = {value}: refused,", str(refused).split(". If")[0])
filmstrip(list(strip.values()), list(strip), "A wrong entry that changes no shape is not noticed", size=1.7)

# %% [markdown]
# **The loader compares names and shapes, and nothing else.** An entry that changes the shape of a weight is
# refused. `norm_num_groups` is the number of groups of channels that are normalized together: with any value
# the weights have the same shapes. The loader cannot notice a wrong one, and where the picture looks healthy,
# neither can you. (`upcast_attention` is used, but makes no difference here.)

# %% [markdown]
# ### Exercise 3 · A folder with a wrong line
#
# *difficulty 3 of 3 · 7 minutes · 3 points*
#
# A colleague has "cleaned up" a copy of the bundled folder. It opens without a warning, and it draws. Which
# line is wrong depends on your `LEARNER`.

# %%
sick_folder = misconfigured(room / "cleaned-up", lab.variant(9))
differing = config_differences(WEIGHTS, sick_folder)
for file, key, good, bad in differing:
    print(f"{file:32} {key:20} {good!s:14} -> {bad}")

# %% [markdown]
# Nine entries differ, and **eight of them do no harm** in this run. Which one does? Usually there is no
# original to go back to. So compare two runs. Both keep the values that crossed the boundaries in the list
# `WATCHED`.

# %%
WATCHED = ["encode_prompt", "unet", "scheduler.step", "vae.decode"]


def recorded(pipeline):
    """(trace that kept values, picture) of a run with the settings above."""
    with trace(pipeline, keep=WATCHED) as t:
        image = drawn(pipeline, **SMALL)
    return t, image


healthy, healthy_picture = recorded(sound)
sick, sick_picture = recorded(opened_from(sick_folder))

# %% tags=["demo"]
filmstrip([healthy_picture, sick_picture], ["as shipped", "cleaned up"], size=2)

# %% [markdown]
# The pictures may look alike (they are not equal), and all shapes, dtypes and counts of the two runs are the
# same. So compare **values**, in the order of the run:

# %%
def kept(t):
    """The watched boundaries of a trace, in the order of the run."""
    return [boundary for boundary in t.boundaries if boundary.name in WATCHED]


def values(boundary, side):
    """The tensors on one side of a boundary, in order."""
    def tensors(value):
        if isinstance(value, torch.Tensor):
            return [value]
        inside = value.values() if isinstance(value, dict) else value
        return [t for item in inside for t in tensors(item)] if isinstance(value, (dict, list, tuple)) else []

    return tensors(getattr(boundary.kept, side))


def equal(good, bad, side):
    """Are all tensors on this side of two boundaries equal, to the last bit?"""
    return all(torch.equal(x, y) for x, y in zip(values(good, side), values(bad, side)))


def harmless(file, key, value):
    """Is the picture still right if only this entry of the bundled folder is changed?"""
    return drawn(opened_from(with_entries(room / "mine", {(file, key): value})), **SMALL) == right


for good, bad in zip(kept(healthy), kept(sick)):
    print(f"{good.name:16}", *(f"{side} {'equal' if equal(good, bad, side) else 'DIFFER':8}"
                               for side in ("inputs", "outputs")))

# %% [markdown]
# If the inputs are equal and the outputs differ, the fault is in the boundary's owner, and only the owner's
# file has to be searched. If the inputs differ although the outputs of the boundary before were equal, the
# fault is *between* the two, where the pipeline computes with a number of a config.
#
# Write `diagnose()`. It returns a `dict`:
#
# | key | meaning |
# |---|---|
# | `"boundary"`, `"side"` | the first of the watched boundaries at which values differ, and `"inputs"` or `"outputs"` |
# | `"file"`, `"key"` | the one entry that does the harm, as printed above |
# | `"value"` | its right value |
#
# You may compute it or write down what you found. `harmless(file, key, value)` tries one entry.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which file does the owner of the first different boundary read? (`encode_prompt` belongs to the text
# encoder.) A wrong *input* of `vae.decode` comes from the pipeline's division by a number in the VAE's
# config.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# In a new cell: <code>for file, key, good, bad in differing:</code>, and in it, if the file is the owner's,
# <code>print(key, good, harmless(file, key, bad))</code>. Then return the <code>dict</code>, written down:
# the first <code>DIFFER</code> above, and the entry that printed <code>False</code>, with its value
# <code>good</code>.
# </details>

# %% exercise="diagnosis" provides=["diagnose"] difficulty=3 minutes=7
def diagnose():
    """Where values first differ, the entry that does it, and what it must be."""
    ### BEGIN SOLUTION
    boundary, side = next(
        (good.name, side) for good, bad in zip(kept(healthy), kept(sick)) for side in ("inputs", "outputs")
        if not equal(good, bad, side)
    )
    owner = {"encode_prompt": "text_encoder"}.get(boundary, boundary.split(".")[0])
    for file, key, good, bad in differing:
        if file.startswith(owner) and not harmless(file, key, bad):
            return {"boundary": boundary, "side": side, "file": file, "key": key, "value": good}
    ### END SOLUTION

# %% check="diagnosis" points=3
from inferlab.lab import Check

check = Check("diagnosis", points=3)

def diagnosed():
    """The learner's diagnosis, once it has the keys that the contract asks for."""
    got = check.learner.diagnose()
    check.true(isinstance(got, dict) and set(got) == {"boundary", "side", "file", "key", "value"},
               "return a dict with the keys boundary, side, file, key and value")
    check.true(all(isinstance(got[key], str) for key in ("boundary", "side", "file", "key")),
               "boundary, side, file and key are four names")
    return got

with check.part("the diagnosis has its five keys (what they say is graded when you hand it in)", weight=0):
    said_fault = diagnosed()
### HIDDEN TESTS
check.score()

# %% [markdown]
# Is it repaired? Only your entry is corrected; the eight harmless ones stay as the colleague wrote them:

# %% tags=["demo"]
with when_written("diagnose"):
    found = diagnose()
    wrong = {(file, key): bad for file, key, _, bad in differing}
    mended = with_entries(room / "mended", wrong | {(found["file"], found["key"]): found["value"]})
    print("the picture as shipped, to the last bit:", drawn(opened_from(mended), **SMALL) == right)

# %% [markdown]
# ## 6 · Explain
#
# Say what you saw of **your folder and your pipelines**. In the fields `pipeline`, `sharing`, `file` and
# `loader` you write short sentences, one a line, from the tables below: an entry of `who`, a verb, an entry
# of its row and, if you like, entries of a row `may follow`. In `dtype` you type the dtype of the first
# pipeline of section 3 after `from_pipe` without `dtype=`, in `bytes` the bytes of weights then in memory for
# the three pipelines: `sum(moments["c = from_pipe(a)"].values())`. Lines that begin with `#` are notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 1 of 3 · 5 minutes · 3 points.* The cell shows how it reads each line, and that reading is
# graded when you hand in. One false sentence costs its field all points, so write only what you know. A line
# that the cell cannot read is graded by a person.

# %% explain="one-folder" difficulty=1 minutes=5
%%explain one-folder
# ### BEGIN SOLUTION
# pipeline: the pipeline calls the networks one after the other
#   the networks hold the weights
# sharing: from_pipe hands over the same networks
#   its cast reaches both pipelines
# file: a safetensors file holds data only
#   another dtype copies the weights
# loader: the loader compares names and shapes
#   the loader lets through a wrong entry that changes no shape
# dtype: float32
# bytes: 51.8 MB
# ### END SOLUTION

# %% check="words-sharing" of="one-folder" points=1
from inferlab.lab import Check

check = Check("words-sharing", points=1)
with check.part("`pipeline:` and `sharing:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-folder").get("pipeline"), "`pipeline:` is empty")
    check.true(check.explanation("one-folder").get("sharing"), "`sharing:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-loading" of="one-folder" points=1
from inferlab.lab import Check

check = Check("words-loading", points=1)
with check.part("`file:` and `loader:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-folder").get("file"), "`file:` is empty")
    check.true(check.explanation("one-folder").get("loader"), "`loader:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-entries" of="one-folder" points=1
from inferlab.lab import Check, reference

check = Check("words-entries", points=1)
with check.part("`dtype:` and `bytes:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-folder").get("dtype"), "`dtype:` is empty")
    check.true(check.explanation("one-folder").get("bytes"), "`bytes:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **The pipeline is not the model.** It is a folder of parts, and an object that calls them.
# * **`from_pipe` copies nothing,** so its cast reaches the old pipeline. Name the dtype.
# * **Not everything has to be on the GPU at once.** Each stage of a run needs one network.
# * **Safetensors are no pickles.** They hold a length, JSON text and numbers. Nothing in them can run.
# * **The loader compares names and shapes.** It believes everything else in a config.

# %% [markdown]
# Flashcards on diffusion, for now or for another day. Some belong to other labs:

# %% tags=["demo"]
from inferlab.lab.cards import show_cards

show_cards("diffusion")

# %% [markdown]
# ## 8 · Further
#
# **Optional: 10 minutes; nothing graded needs it.** If your time is up, go on to section 9. Here networks are
# opened one after the other, a load names no dtype, a pickle runs a program, and a scheduler is swapped
# without the model's config.

# %% [markdown]
# ### One after the other
#
# Each stage of a run needs one network. So we open only the needed one, three times:

# %%
from diffusers import AutoencoderKL

dtype, device = pipe.dtype, lab.device
stages = {}

text = StableDiffusionPipeline.from_pretrained(folder, dtype=dtype, unet=None, vae=None, **NO_CHECKER)
text.to(device)
embeds, negative = text.encode_prompt(PROMPT, device, 1, do_classifier_free_guidance=True)
stages["text"] = held(text)
del text

middle = StableDiffusionPipeline.from_pretrained(folder, dtype=dtype, text_encoder=None, tokenizer=None,
                                                 vae=None, **NO_CHECKER)
middle.to(device).set_progress_bar_config(disable=True)
latents = middle(prompt_embeds=embeds, negative_prompt_embeds=negative, output_type="latent", **SETTINGS,
                 generator=torch.Generator().manual_seed(SEED)).images
stages["loop"] = held(middle)
del middle

vae = AutoencoderKL.from_pretrained(folder, subfolder="vae", torch_dtype=dtype).to(device)
pixels = vae.decode(latents / vae.config.scaling_factor).sample
stages["decode"] = {"vae": sum(p.numel() * p.element_size() for p in vae.parameters())}
by_parts = pipe.image_processor.postprocess(pixels)[0]
print("the same picture, to the last bit:", by_parts.tobytes() == picture.tobytes())

# %% tags=["demo"]
from inferlab.lab.kits.pipelines.holdings import holding_bars

holding_bars({"whole pipeline": held(pipe)} | stages, "Each stage needs one network; the largest decides")

# %% [markdown]
# Offload does this for you (lab 10). By hand, people do it where a text encoder is larger than the denoiser.

# %% [markdown]
# ### Who is in which dtype, if you say nothing?
#
# There is no single answer: each component is opened by its own library.

# %% tags=["demo"]
e = StableDiffusionPipeline.from_pretrained(folder, **NO_CHECKER)
e.set_progress_bar_config(disable=True)
print({name: str(getattr(e, name).dtype) for name in held(e)})
try:
    with trace(e) as failed:
        e("a red circle", num_inference_steps=1)
except RuntimeError as refused:
    print("raised", refused)
display(failed.table(level=1))
del e

# %% [markdown]
# A network of diffusers becomes `float32`; one of transformers takes the dtype that its config names. In the
# bundled folder that gives a text encoder in `float16` before a UNet in `float32`. The load gave no warning,
# but the run fails in the UNet: the pipeline made the latents in the embeddings' dtype (two lines above it),
# and **nothing converts tensors between two components**. So name the dtype.

# %% [markdown]
# ### Data, and nothing but data
#
# Older checkpoints (`.bin`, `.ckpt`, `.pt`) are **pickles**: small programs that build objects when they are
# opened. A program can do anything. Here is a "weights file" that calls a function of its author's choice (a
# harmless one):

# %% tags=["demo"]
import pickle

from safetensors.torch import save_file


class Weight:
    def __reduce__(self):
        return print, ("   this line was printed by the file, while it was opened",)


torch.save({"weight": Weight()}, room / "weights.bin")
print("opened as a pickle:")
torch.load(room / "weights.bin", weights_only=False)
try:
    torch.load(room / "weights.bin")
except pickle.UnpicklingError as refused:
    print("as torch opens it today: refused,", str(refused).split(".")[0])
try:
    save_file({"weight": Weight()}, room / "weights.safetensors")
except ValueError as refused:
    print("as safetensors: cannot even be written,", str(refused).split(",")[0])

# %% [markdown]
# A `.safetensors` file has no place for a program: your two functions opened one with `json` and a table of
# dtypes.

# %% [markdown]
# ### A scheduler from its config
#
# A scheduler has no weights. All that it knows about the model is in its config: its noise levels, and the
# meaning of the network's answer. So build another scheduler **from the config of the old one**. Otherwise
# the class takes its own defaults, which belong to another model.

# %% tags=["demo"]
from diffusers import DPMSolverMultistepScheduler

own = pipe.scheduler
strip = {type(own).__name__: picture}
pipe.scheduler = DPMSolverMultistepScheduler.from_config(own.config)
back = type(own).from_config(pipe.scheduler.config)
strip["DPM-Solver, from_config"] = drawn(pipe)
pipe.scheduler = DPMSolverMultistepScheduler()
strip["DPM-Solver, its defaults"] = drawn(pipe)
for whose, scheduler in (("the model's betas:", own), ("the class's own:  ", pipe.scheduler)):
    print(whose, *(scheduler.config[key] for key in ("beta_schedule", "beta_start", "beta_end")))
print("there and back, entries that changed:",
      [key for key in own.config if key[0] != "_" and back.config.get(key) != own.config[key]])
pipe.scheduler = own
filmstrip(list(strip.values()), list(strip), "A scheduler without the model's config runs, and is wrong",
          size=2)

# %% [markdown]
# ## 9 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
