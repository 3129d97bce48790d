# Named wrong answers of lab 11: what a learner might write, and the points that it keeps. Never built into a notebook.

# %% wrong="loads" name="empty places are built, too" keeps=1.5
def what_loads(index, passed=()):
    return {name: tuple(entry) for name, entry in index.items()
            if not name.startswith("_") and isinstance(entry, list) and name not in passed}

# %% wrong="loads" name="what the caller passes is built all the same" keeps=1.5
def what_loads(index, passed=()):
    return {name: tuple(entry) for name, entry in index.items() if isinstance(entry, list) and entry[0] is not None}

# %% wrong="loads" name="settings are taken for components" keeps=1.5
def what_loads(index, passed=()):
    return {name: tuple(entry) if isinstance(entry, list) else ("builtins", type(entry).__name__) for name, entry in index.items()
            if not name.startswith("_") and entry != [None, None] and name not in passed}

# %% wrong="loads" name="only what has weights: the scheduler does not matter" keeps=0
def what_loads(index, passed=()):
    return {name: tuple(entry) for name, entry in index.items()
            if isinstance(entry, list) and entry[0] is not None and name not in passed and "Scheduler" not in entry[1]}

# %% wrong="loads" name="pairs stay lists" keeps=0
def what_loads(index, passed=()):
    return {name: entry for name, entry in index.items()
            if isinstance(entry, list) and entry[0] is not None and name not in passed}

# %% wrong="order" name="the VAE decodes in every step" keeps=1
def in_order(cards):
    place = ["encode_prompt", "scheduler.set_timesteps", "prepare_latents", "scheduler.scale_model_input", "unet", "guidance",
             "scheduler.step", "vae.decode", "image_processor.postprocess"]
    return sorted(cards, key=lambda card: ((card[1] or 0) if card[0] not in place[7:] else 1, place.index(card[0])))

# %% wrong="order" name="the loop by owner, not by step" keeps=1
def in_order(cards):
    place = ["encode_prompt", "scheduler.set_timesteps", "prepare_latents", "scheduler.scale_model_input", "unet", "guidance",
             "scheduler.step", "vae.decode", "image_processor.postprocess"]
    return sorted(cards, key=lambda card: (place.index(card[0]), card[1] or 0))

# %% wrong="order" name="latents before the schedule" keeps=1
def in_order(cards):
    place = ["encode_prompt", "prepare_latents", "scheduler.set_timesteps", "scheduler.scale_model_input", "unet", "guidance",
             "scheduler.step", "vae.decode", "image_processor.postprocess"]
    return sorted(cards, key=lambda card: (0 if card[0] in place[:3] else 2 if card[0] in place[7:] else 1, card[1] or 0, place.index(card[0])))

# %% wrong="order" name="guidance acts after the step" keeps=1.5
def in_order(cards):
    place = ["encode_prompt", "scheduler.set_timesteps", "prepare_latents", "scheduler.scale_model_input", "unet", "scheduler.step",
             "guidance", "vae.decode", "image_processor.postprocess"]
    return sorted(cards, key=lambda card: (0 if card[0] in place[:3] else 2 if card[0] in place[7:] else 1, card[1] or 0, place.index(card[0])))

# %% wrong="order" name="scheduler and VAE left out: the UNet makes the picture" keeps=0
def in_order(cards):
    return sorted((card for card in cards if not card[0].startswith(("scheduler", "vae"))), key=lambda card: card[1] or 0)

# %% wrong="changes" name="compares a boundary with itself only" keeps=1.5
def changes(rows):
    def first(tree):
        if isinstance(tree, dict):
            if set(tree) == {"shape", "dtype", "device"}:
                return tree
            tree = list(tree.values())
        if isinstance(tree, (list, tuple)):
            return next((found for found in map(first, tree) if found), None)
        return None

    told = []
    for row in rows:
        a, b = first(row["inputs"]), first(row["outputs"])
        told += [(row["name"], row["step"], "outputs", f, a[f], b[f]) for f in ("shape", "dtype", "device") if a and b and a[f] != b[f]]
    return told

# %% wrong="changes" name="looks at outputs only" keeps=1.5
def changes(rows):
    def first(tree):
        if isinstance(tree, dict):
            if set(tree) == {"shape", "dtype", "device"}:
                return tree
            tree = list(tree.values())
        if isinstance(tree, (list, tuple)):
            return next((found for found in map(first, tree) if found), None)
        return None

    seen, told = None, []
    for row in rows:
        found = first(row["outputs"])
        if found:
            told += [(row["name"], row["step"], "outputs", f, seen[f], found[f])
                     for f in ("shape", "dtype", "device") if seen and seen[f] != found[f]]
            seen = found
    return told

# %% wrong="changes" name="only shapes matter" keeps=2.5
def changes(rows):
    def first(tree):
        if isinstance(tree, dict):
            if set(tree) == {"shape", "dtype", "device"}:
                return tree
            tree = list(tree.values())
        if isinstance(tree, (list, tuple)):
            return next((found for found in map(first, tree) if found), None)
        return None

    seen, told = None, []
    for row in rows:
        for side in ("inputs", "outputs"):
            found = first(row[side])
            if found:
                if seen and seen["shape"] != found["shape"]:
                    told.append((row["name"], row["step"], side, "shape", seen["shape"], found["shape"]))
                seen = found
    return told

# %% wrong="changes" name="tensors in containers are not found" keeps=2.5
def changes(rows):
    seen, told = None, []
    for row in rows:
        for side in ("inputs", "outputs"):
            tree = row[side]
            if isinstance(tree, dict) and "shape" not in tree:
                tree = next((value for value in tree.values() if isinstance(value, dict) and "shape" in value), None)
            if isinstance(tree, dict) and "shape" in tree:
                if seen:
                    told += [(row["name"], row["step"], side, f, seen[f], tree[f])
                             for f in ("shape", "dtype", "device") if seen[f] != tree[f]]
                seen = tree
    return told

# %% wrong="changes" name="a side without a tensor makes it forget" keeps=2.5
def changes(rows):
    def first(tree):
        if isinstance(tree, dict):
            if set(tree) == {"shape", "dtype", "device"}:
                return tree
            tree = list(tree.values())
        if isinstance(tree, (list, tuple)):
            return next((found for found in map(first, tree) if found), None)
        return None

    seen, told = None, []
    for row in rows:
        for side in ("inputs", "outputs"):
            found = first(row[side])
            if found and seen:
                told += [(row["name"], row["step"], side, f, seen[f], found[f])
                         for f in ("shape", "dtype", "device") if seen[f] != found[f]]
            seen = found
    return told

# %% wrong="causes" name="every change of a shape is another size" keeps=2.5
def causes(change):
    if change["kind"] == "slower":
        return set()
    if change["kind"] == "dtype" or change["where"].endswith(".dtype"):
        return {"dtype"}
    if change["kind"] == "device" or change["name"].rpartition(".")[2] in (
            "pre_forward", "post_forward", "to", "maybe_free_model_hooks", "enable_model_cpu_offload"):
        return {"offload"}
    if change["kind"] == "shape" or change["where"].endswith((".height", ".width")):
        return {"size"}
    return {"guidance"}

# %% wrong="causes" name="one cause a row" keeps=3.5
def causes(change):
    before, after = change["before"], change["after"]
    if change["kind"] == "slower":
        return set()
    if change["kind"] == "dtype" or change["where"].endswith(".dtype"):
        return {"dtype"}
    if change["kind"] == "device" or change["name"].rpartition(".")[2] in (
            "pre_forward", "post_forward", "to", "maybe_free_model_hooks", "enable_model_cpu_offload"):
        return {"offload"}
    if change["kind"] == "shape":
        return {"guidance"} if isinstance(before, tuple) and before[0] != after[0] else {"size"}
    return {"size"} if change["where"].endswith((".height", ".width")) else {"guidance"}

# %% wrong="causes" name="a slower run must be offloaded" keeps=3
def causes(change):
    before, after = change["before"], change["after"]
    if change["kind"] == "dtype" or change["where"].endswith(".dtype"):
        return {"dtype"}
    if change["kind"] in ("device", "slower") or change["name"].rpartition(".")[2] in (
            "pre_forward", "post_forward", "to", "maybe_free_model_hooks", "enable_model_cpu_offload"):
        return {"offload"}
    if change["kind"] == "shape" and isinstance(before, tuple):
        return ({"guidance"} if before[0] != after[0] else set()) | ({"size"} if before[1:] != after[1:] else set())
    return {"size"} if change["kind"] == "shape" or change["where"].endswith((".height", ".width")) else {"guidance"}

# %% wrong="causes" name="a dtype passed as an argument is overlooked" keeps=3.5
def causes(change):
    before, after = change["before"], change["after"]
    if change["kind"] == "slower":
        return set()
    if change["kind"] == "dtype":
        return {"dtype"}
    if change["kind"] == "device" or change["name"].rpartition(".")[2] in (
            "pre_forward", "post_forward", "to", "maybe_free_model_hooks", "enable_model_cpu_offload"):
        return {"offload"}
    if change["kind"] == "shape" and isinstance(before, tuple):
        return ({"guidance"} if before[0] != after[0] else set()) | ({"size"} if before[1:] != after[1:] else set())
    return {"size"} if change["kind"] == "shape" or change["where"].endswith((".height", ".width")) else {"guidance"}

# %% wrong="causes" name="what appeared or vanished is always guidance" keeps=3
def causes(change):
    before, after = change["before"], change["after"]
    if change["kind"] == "slower":
        return set()
    if change["kind"] == "dtype" or change["where"].endswith(".dtype"):
        return {"dtype"}
    if change["kind"] == "device":
        return {"offload"}
    if change["kind"] == "shape" and isinstance(before, tuple):
        return ({"guidance"} if before[0] != after[0] else set()) | ({"size"} if before[1:] != after[1:] else set())
    return {"size"} if change["kind"] == "shape" or change["where"].endswith((".height", ".width")) else {"guidance"}

# %% wrong="diagnosis" name="the family is the diagnosis" keeps=2
def right_diagnosis():
    def first(tree):
        if isinstance(tree, dict):
            if set(tree) == {"shape", "dtype", "device"}:
                return tree
            tree = list(tree.values())
        if isinstance(tree, (list, tuple)):
            return next((found for found in map(first, tree) if found), None)
        return None

    good, bad = healthy.rows(), sick.rows()
    passes = [sum(row["name"] == "unet" for row in rows) for rows in (good, bad)]
    if passes[0] != passes[1]:
        return {"kind": "loop", "boundary": "scheduler.set_timesteps", "healthy": passes[0], "broken": passes[1]}
    parents = {row["parent"] for row in good}
    for one, other in zip(good, bad):
        a, b = first(one["outputs"]), first(other["outputs"])
        for kind in ("dtype", "shape"):
            if one["index"] not in parents and a and a[kind] != b[kind]:
                return {"kind": kind, "boundary": one["name"], "healthy": a[kind], "broken": b[kind]}


def diagnose():
    right = right_diagnosis()
    return right | {"boundary": "Stable Diffusion"}

# %% wrong="diagnosis" name="the first line of the diff" keeps=2
def right_diagnosis():
    def first(tree):
        if isinstance(tree, dict):
            if set(tree) == {"shape", "dtype", "device"}:
                return tree
            tree = list(tree.values())
        if isinstance(tree, (list, tuple)):
            return next((found for found in map(first, tree) if found), None)
        return None

    good, bad = healthy.rows(), sick.rows()
    passes = [sum(row["name"] == "unet" for row in rows) for rows in (good, bad)]
    if passes[0] != passes[1]:
        return {"kind": "loop", "boundary": "scheduler.set_timesteps", "healthy": passes[0], "broken": passes[1]}
    parents = {row["parent"] for row in good}
    for one, other in zip(good, bad):
        a, b = first(one["outputs"]), first(other["outputs"])
        for kind in ("dtype", "shape"):
            if one["index"] not in parents and a and a[kind] != b[kind]:
                return {"kind": kind, "boundary": one["name"], "healthy": a[kind], "broken": b[kind]}


def diagnose():
    right = right_diagnosis()
    symptom = {"scheduler.set_timesteps": "scheduler.scale_model_input", "text_encoder": "unet", "tokenizer": "encode_prompt",
               "prepare_latents": "unet", "unet": "scheduler.step", "vae.decode": "StableDiffusionPipeline"}
    return right | {"boundary": symptom[right["boundary"]]}

# %% wrong="diagnosis" name="before and after have changed places" keeps=3
def right_diagnosis():
    def first(tree):
        if isinstance(tree, dict):
            if set(tree) == {"shape", "dtype", "device"}:
                return tree
            tree = list(tree.values())
        if isinstance(tree, (list, tuple)):
            return next((found for found in map(first, tree) if found), None)
        return None

    good, bad = healthy.rows(), sick.rows()
    passes = [sum(row["name"] == "unet" for row in rows) for rows in (good, bad)]
    if passes[0] != passes[1]:
        return {"kind": "loop", "boundary": "scheduler.set_timesteps", "healthy": passes[0], "broken": passes[1]}
    parents = {row["parent"] for row in good}
    for one, other in zip(good, bad):
        a, b = first(one["outputs"]), first(other["outputs"])
        for kind in ("dtype", "shape"):
            if one["index"] not in parents and a and a[kind] != b[kind]:
                return {"kind": kind, "boundary": one["name"], "healthy": a[kind], "broken": b[kind]}


def diagnose():
    right = right_diagnosis()
    return right | {"healthy": right["broken"], "broken": right["healthy"]}

# %% wrong="diagnosis" name="a kind guessed from the picture" keeps=2
def right_diagnosis():
    def first(tree):
        if isinstance(tree, dict):
            if set(tree) == {"shape", "dtype", "device"}:
                return tree
            tree = list(tree.values())
        if isinstance(tree, (list, tuple)):
            return next((found for found in map(first, tree) if found), None)
        return None

    good, bad = healthy.rows(), sick.rows()
    passes = [sum(row["name"] == "unet" for row in rows) for rows in (good, bad)]
    if passes[0] != passes[1]:
        return {"kind": "loop", "boundary": "scheduler.set_timesteps", "healthy": passes[0], "broken": passes[1]}
    parents = {row["parent"] for row in good}
    for one, other in zip(good, bad):
        a, b = first(one["outputs"]), first(other["outputs"])
        for kind in ("dtype", "shape"):
            if one["index"] not in parents and a and a[kind] != b[kind]:
                return {"kind": kind, "boundary": one["name"], "healthy": a[kind], "broken": b[kind]}


def diagnose():
    right = right_diagnosis()
    wrong = {"dtype": "shape", "shape": "loop", "loop": "dtype"}
    return {"kind": wrong[right["kind"]], "boundary": right["boundary"], "healthy": None, "broken": None}

# %% wrong="diagnosis" name="three of four keys" keeps=0
def diagnose():
    return {"kind": "loop", "boundary": "scheduler.set_timesteps", "evidence": "the picture"}

# %% wrong="whole-run" name="naming the family is the explanation" keeps={"whole-run-shape": 1, "whole-run-owners": 1, "whole-run-gain-cost": 1, "whole-run-axis": 1, "whole-run-trade-off": 1}
%%explain whole-run
# state: It is Stable Diffusion, a latent diffusion model that makes the image from the prompt.
# axis: In vae.decode the channels go from 4 to 3 and the side grows from 16 to 128, so (1, 4, 16, 16) becomes (1, 3, 128, 128).
# trade-off: Guidance makes the picture better, but the UNet computes twice the batch, so the run is slower.
# shape: (1, 4, 16, 16)
# bytes: 192 KiB
# pixels: vae.decode
# length: scheduler.set_timesteps
# gain: memory down
# cost: error up

# %% wrong="whole-run" name="scheduler and VAE do not matter" keeps={"whole-run-shape": 1, "whole-run-gain-cost": 1, "whole-run-axis": 1, "whole-run-trade-off": 1}
%%explain whole-run
# state: The UNet turns the noise into the image at every step.
# axis: In vae.decode the channels go from 4 to 3 and the side grows from 16 to 128, so (1, 4, 16, 16) becomes (1, 3, 128, 128).
# trade-off: Guidance makes the picture better, but the UNet computes twice the batch, so the run is slower.
# shape: (1, 4, 16, 16)
# bytes: 192 KiB
# pixels: unet
# length: unet
# gain: memory down
# cost: error up

# %% wrong="whole-run" name="the batch of guidance is still there in the VAE, and the bytes that went in" keeps={"whole-run-owners": 1, "whole-run-gain-cost": 1, "whole-run-state": 1, "whole-run-axis": 1, "whole-run-trade-off": 1}
%%explain whole-run
# state: The loop transforms the latents: the UNet predicts the noise in them and scheduler.step updates them from that prediction. After the loop the VAE decodes the latents into the image.
# axis: In vae.decode the channels go from 4 to 3 and the side grows from 16 to 128, so (1, 4, 16, 16) becomes (1, 3, 128, 128).
# trade-off: Guidance makes the picture better, but the UNet computes twice the batch, so the run is slower.
# shape: (2, 4, 16, 16)
# bytes: 4 KiB
# pixels: vae.decode
# length: scheduler.set_timesteps
# gain: memory down
# cost: error up

# %% wrong="whole-run" name="the picture begins at postprocess" keeps={"whole-run-shape": 1, "whole-run-owners": 0.5, "whole-run-gain-cost": 1, "whole-run-state": 1, "whole-run-axis": 1, "whole-run-trade-off": 1}
%%explain whole-run
# state: The loop transforms the latents: the UNet predicts the noise in them and scheduler.step updates them from that prediction. After the loop the VAE decodes the latents into the image.
# axis: In vae.decode the channels go from 4 to 3 and the side grows from 16 to 128, so (1, 4, 16, 16) becomes (1, 3, 128, 128).
# trade-off: Guidance makes the picture better, but the UNet computes twice the batch, so the run is slower.
# shape: (1, 4, 16, 16)
# bytes: 192 KiB
# pixels: image_processor.postprocess
# length: scheduler.set_timesteps
# gain: memory down
# cost: error up

# %% wrong="whole-run" name="numbers that the run never had" keeps={"whole-run-shape": 1, "whole-run-owners": 1, "whole-run-gain-cost": 1, "whole-run-state": 1, "whole-run-trade-off": 1}
%%explain whole-run
# state: The loop transforms the latents: the UNet predicts the noise in them and scheduler.step updates them from that prediction. After the loop the VAE decodes the latents into the image.
# axis: In vae.decode the channels go from 5 to 7.
# trade-off: Guidance makes the picture better, but the UNet computes twice the batch, so the run is slower.
# shape: (1, 4, 16, 16)
# bytes: 192 KiB
# pixels: vae.decode
# length: scheduler.set_timesteps
# gain: memory down
# cost: error up

# %% wrong="whole-run" name="guidance is free" keeps={"whole-run-shape": 1, "whole-run-owners": 1, "whole-run-gain-cost": 1, "whole-run-state": 1, "whole-run-axis": 1}
%%explain whole-run
# state: The loop transforms the latents: the UNet predicts the noise in them and scheduler.step updates them from that prediction. After the loop the VAE decodes the latents into the image.
# axis: In vae.decode the channels go from 4 to 3 and the side grows from 16 to 128, so (1, 4, 16, 16) becomes (1, 3, 128, 128).
# trade-off: Guidance makes the picture better and the run faster.
# shape: (1, 4, 16, 16)
# bytes: 192 KiB
# pixels: vae.decode
# length: scheduler.set_timesteps
# gain: memory down
# cost: error up

# %% wrong="whole-run" name="half the bits are better in every way" keeps={"whole-run-shape": 1, "whole-run-owners": 1, "whole-run-state": 1, "whole-run-axis": 1, "whole-run-trade-off": 1}
%%explain whole-run
# state: The loop transforms the latents: the UNet predicts the noise in them and scheduler.step updates them from that prediction. After the loop the VAE decodes the latents into the image.
# axis: In vae.decode the channels go from 4 to 3 and the side grows from 16 to 128, so (1, 4, 16, 16) becomes (1, 3, 128, 128).
# trade-off: Guidance makes the picture better, but the UNet computes twice the batch, so the run is slower.
# shape: (1, 4, 16, 16)
# bytes: 192 KiB
# pixels: vae.decode
# length: scheduler.set_timesteps
# gain: quality up
# cost: memory up

# %% wrong="whole-run" name="key words instead of sentences" keeps={"whole-run-shape": 1, "whole-run-owners": 1, "whole-run-gain-cost": 1}
%%explain whole-run
# state: latents scheduler vae image unet noise
# axis: channels side 4 3 16 128
# trade-off: guidance latency quality up down
# shape: (1, 4, 16, 16)
# bytes: 192 KiB
# pixels: vae.decode
# length: scheduler.set_timesteps
# gain: memory down
# cost: error up
