"""Rubrics of the explanation sets kept beside this file: one for each prompt folder, with its question and facts."""

import dataclasses
import json
import pathlib

from inferlab.lab.explain import Amounts, Rubric, Slot, Trend

DENOISE_FACTS = {
    "unet.sample": (2, 4, 16, 16), "step.sample": (1, 4, 16, 16), "unet.out": (2, 4, 16, 16), "image": (1, 3, 128, 128),
    "steps": 20, "unet.calls": 20, "dtype": "float32", "guidance": 4.0,
}

DENOISE = Rubric(
    question="Explain one denoising step of your run. State: name the state object that is transformed and what does the "
             "transforming. Axis: name the axis or shape that matters, with numbers from your own trace. Trade-off: say what you "
             "gain and what you pay when you change the number of steps.",
    lab="At each timestep the UNet receives the latents and the timestep and returns a noise prediction of the same shape. The "
        "scheduler's step method then combines the noise prediction with the current latents to give the next latents. Running "
        "more steps costs more UNet calls and usually gives a better image.",
    terms={
        "latents": "latent*, x_t, x_prev, noisy sample, current sample, state tensor, latent tensor, latent state, noisy latent*, sample, previous sample, next sample, sample*",
        "scheduler": "scheduler*, scheduler.step, ddim*, ddimscheduler*, step method, update rule, solver, sampler, step function, scheduler step, "
                     "scheduler's step method, scheduler's step, scheduler's step function",
        "unet": "unet*, u-net, denoiser, network, model, unet2dconditionmodel*, neural network, noise predictor",
        "noise": "noise, noise pred*, predicted noise, noise_pred, epsilon, eps, noise estimate*, estimated noise, prediction*, noise guess, model output, epsilon prediction",
        "image": "image*, picture*, pixel*, photo*, rgb, drawing",
        "prompt": "prompt*, prompt embed*, text embed*, embedding*, prompt_embeds, caption, text, tokens, text encoder",
        "weights": "weights, parameters",
        "vae": "vae*, decoder, autoencoder*",
        "steps": "step, steps, step count, number of steps, iteration*, timestep*, denoising step*, num_inference_steps, loop*, inference steps, time step*, pass*",
        "batch": "batch, batch size, batch axis, batch dimension, first axis, first dimension, rows",
        "channels": "channel*, latent channel*",
        "grid": "spatial*, grid, height, width, resolution",
    },
    slots={
        "state": Slot(
            award=["scheduler changes/makes/denoises latents", "* changes/makes/denoises latents + scheduler uses noise",
                   "scheduler remove/subtract/strip noise"],
            deny={
                "unet makes/predicts image": "The UNet returns a noise prediction, not an image.",
                "unet changes latents": "The UNet only predicts; scheduler.step makes the next latents.",
                "* changes prompt": "The prompt's embeddings stay as they are in the loop; the latents change.",
                "* changes weights": "No weight changes during inference.",
                "vae changes latents": "The VAE is outside the loop.",
                "latents changes scheduler": "The roles are the other way round.",
                "scheduler predicts noise": "The UNet predicts the noise; the scheduler uses it.",
                "scheduler makes noise": "The UNet predicts the noise; the scheduler uses it.",
            },
            topic=["latents"],
        ),
        "axis": Slot(
            amounts=Amounts(
                shapes=["unet.sample", "step.sample"],
                counts={"steps": "steps", "channels": 4, "batch": [1, 2]},
                key=["steps"],
                of={"unet": "unet.sample", "scheduler": "step.sample", "image": "image"},
            ),
            topic=["latents", "batch", "channels", "steps", "unet", "scheduler", "grid"],
        ),
        "trade-off": Slot(trend=Trend("steps", gain={"quality": "up"}, cost={"time": "up", "compute": "up"})),
    },
    must_award={
        "state": ["The scheduler updates the latents, using the noise that the UNet predicted.",
                  "Latents are what changes: scheduler.step turns them into slightly cleaner latents."],
        "axis": ["The UNet sees (2, 4, 16, 16) because guidance doubles the batch.", "There are 20 timesteps in my loop."],
        "trade-off": ["More steps improve the picture's quality but each one costs another UNet call.",
                      "With fewer steps it is faster, but the image gets blurrier."],
    },
    must_deny={
        "state": ["The UNet outputs the pixels of the image at each step.", "The scheduler does not update the latents.",
                  "latents scheduler update noise unet step"],
        "axis": ["The latents have the shape (1, 3, 128, 512).", "My loop ran 50 steps."],
        "trade-off": ["More steps are faster but look worse.", "More steps do not improve quality and do not take longer."],
    },
    example_facts=DENOISE_FACTS,
)

_VAE_TERMS = {
    "latents": "latent*, latent tensor, latent batch, z",
    "decoder": "decoder, vae decoder, vae*, autoencoder*",
    "image": "image*, picture*, output",
    "batch": "batch, batch axis, batch dimension, first axis, first dimension, batch size",
    "spatial": "spatial*, height, width, grid, resolution, patch*",
    "tile": '"tile", "tiles", "piece", "pieces", "slices", "chunks", "parts"',
    "tiling": '"slicing", "tiling", vae slicing, vae tiling',
    "weights": "weights, parameters, layers, model weights",
    "prompt": "prompt embed*, embedding*, text, prompt*",
    "unet": "unet*, denoiser",
    "channels": "channel*",
}


def _vae(facts: dict) -> Rubric:
    return Rubric(
        question="Explain what VAE slicing or tiling does to the decode you just ran. State: name the state object that is decoded and what "
                 "decodes it. Axis: name the axis or shape that is split, with numbers from your recorded trace. Trade-off: say what it gains "
                 "and what it costs.",
        lab="With slicing enabled the VAE decodes the latent batch one image at a time instead of all at once. With tiling enabled the decoder "
            "works on overlapping spatial tiles and blends the seams. Both options lower the peak memory of the decode and can make it slower.",
        terms=_VAE_TERMS,
        slots={
            "state": Slot(
                award=["decoder decodes/makes/splits latents", "tiling splits/decodes latents", "* splits latents + * decodes latents",
                       "latents go/pass/enter decoder", "* feed/pass/push latents",
                       "decoder obtains latents"],
                deny={
                    "* moves weights": "Slicing and tiling move nothing: they cut the latents.",
                    "* splits weights": "The weights are not cut; the latents are.",
                    "* splits/changes/shrinks prompt": "The prompt's embeddings have no part in the decode.",
                    "unet decodes latents": "The UNet does not decode; the VAE does.",
                    "decoder splits/moves weights": "The weights are not cut; the latents are.",
                },
                topic=["latents"],
            ),
            "axis": Slot(
                amounts=Amounts(shapes=["slice"], counts={"tile": ["tiles", "decoder_calls", 1], "batch": [1, 2], "image": [1, 2], "latents": [1, 2], "channels": [3, 4],
                                                          "tiling": ["decoder_calls", 1]}, key=["tile", "batch", "image", "latents"]),
                topic=["batch", "spatial", "tile", "latents", "image"],
                deny={"* splits channels": "The channels stay together.", "* splits weights": "The weights are not cut."},
            ),
            "trade-off": Slot(trend=Trend("tiling", gain={"memory": "down"}, cost={"time": "up", "compute": "up"}, switch=True)),
        },
        must_award={
            "state": ["The VAE decodes the latents in pieces instead of all at once.", "The latents are decoded by the VAE one image at a time."],
            "axis": ["The batch axis is split from 2 into 1 and 1."],
            "trade-off": ["It lowers the peak memory but makes the decode slower.", "Less memory is needed, at the price of latency."],
        },
        must_deny={
            "state": ["The VAE moves its weights to the CPU while it decodes."],
            "trade-off": ["It raises the peak memory and makes the decode faster.", "It saves memory and makes decoding faster."],
        },
        example_facts=facts,
    )


def _kv(facts: dict) -> Rubric:
    return Rubric(
        question="Explain what grows while your model generates. State: name the state object that changes at each decode step and what it holds. "
                 "Axis: name the axis or shape that grows, with numbers from your recorded trace. Trade-off: say what you gain and what you pay.",
        lab="During generation the model stores the keys and values of every past token in a cache. The cache grows by one position along the "
            "sequence axis at each step, so its size is seq_len x layers x kv_heads x head_dim x 2 x bytes per element. Keeping the cache avoids "
            "recomputing keys and values for earlier tokens but uses more memory as the sequence gets longer.",
        terms={
            "cache": "cache*, kv cache, kv-cache, k/v cache, past_key_values, past key values, dynamiccache, store of keys and values",
            "kv": "key*, keys, values, value, keys and values, key and value, keys/values, k and v, kv, kv pair*, kv entries, k/v, key/value pair*",
            "seq": "sequence*, seq, seq_len, sequence axis, sequence length, sequence dimension, length, context, context length, position*, time axis, token axis, token dimension",
            "head_dim": "head_dim, head dim, head dimension, hidden size, hidden dimension, embedding dimension, embedding size",
            "heads": "heads, kv heads, attention heads, kv_heads, head axis, head count, head",
            "layers": "layers, layer, layer axis, depth",
            "weights": "weights, parameters, model weights",
            "logits": "logits, words, text, generated words, strings",
            "batch": "batch, batch axis, batch size",
            "prompt": "prompt",
            "hidden": "hidden state*, activations, query, queries",
        },
        slots={
            "state": Slot(
                award=["cache grows/changes", "* keeps/grows kv", "kv grows/keeps", "* add/append/keep/store kv", "* grows cache", "cache keeps/contain kv"],
                deny={
                    "* keeps logits": "The cache holds keys and values, not words or logits.",
                    "* keeps/changes weights": "The weights do not change while generating.",
                    "weights grows/changes": "The weights do not change while generating.",
                    "* recomputes kv": "The keys and values of earlier tokens are kept, not computed again.",
                    "cache keeps hidden": "The cache holds keys and values.",
                },
                topic=["cache", "kv"],
            ),
            "axis": Slot(
                award=["seq grows/changes", "* grows seq", "seq go/reach/end/run", "cache grows seq", "* grow/extend/append/get seq"],
                deny={
                    "head_dim grows": "The head dimension stays; the sequence axis grows.", "* grows head_dim": "The head dimension stays; the sequence axis grows.",
                    "heads grows": "The number of heads stays; the sequence axis grows.", "* grows heads": "The number of heads stays; the sequence axis grows.",
                    "layers grows": "The number of layers stays.", "* grows layers": "The number of layers stays.",
                    "batch grows": "The batch stays.", "* grows batch": "The batch stays.",
                },
                amounts=Amounts(shapes=["key_shape"], counts={"seq": ["seq_len", "prompt_len", 1, 20], "cache": ["seq_len", "prompt_len", 1, 20],
                                                              "head_dim": "head_dim", "layers": "layers", "heads": "kv_heads", "batch": 1,
                                                              "prompt": "prompt_len"}, key=["seq", "cache"]),
            ),
            "trade-off": Slot(trend=Trend("cache", gain={"time": "down", "compute": "down"}, cost={"memory": "up"}, switch=True)),
        },
        must_award={
            "state": ["The KV cache grows: the keys and values of each new token are appended.", "Every step adds the new token's keys and values to the cache."],
            "axis": ["The sequence axis grows from 12 to 32."],
            "trade-off": ["It takes more memory, but each token is generated faster.", "We save recomputation and pay with memory."],
        },
        must_deny={
            "state": ["The cache stores the generated words.", "The KV cache does not grow."],
            "axis": ["The cache grows along head_dim, from 64 to 84."],
            "trade-off": ["It saves memory but makes decoding slower."],
        },
        example_facts=facts,
    )


def _study(name: str) -> dict:
    """The facts of one prompt of the first study."""
    trace = json.loads((pathlib.Path(__file__).parent / "study" / "prompts.json").read_text(encoding="utf-8"))[name]["trace"]
    facts = {k: tuple(v) if isinstance(v, list) else v for k, v in trace.items()}
    if name == "denoise":
        facts |= {"unet.sample": facts["latents"], "step.sample": facts["latents"], "steps": facts["num_steps"], "image": (2, 3, 512, 512)}
    if name == "vae":
        facts["slice"] = (facts["slice"], facts["latents"])
    return facts


_FREE = dataclasses.replace(DENOISE.slots["axis"], amounts=Amounts(
    shapes=["latents"], counts={"steps": [20, 40], "channels": 4, "batch": 2}, key=[]))
PROMPTS = {
    "denoise": (DENOISE, DENOISE_FACTS),
    "vae": (_vae(_study("vae")), _study("vae")),
    "kv": (_kv(_study("kv")), _study("kv")),
    "study-denoise": (dataclasses.replace(DENOISE, slots={**DENOISE.slots, "axis": _FREE}, must_award={}, must_deny={}), _study("denoise")),
    "study-vae": (_vae(_study("vae")), _study("vae")),
    "study-kv": (_kv(_study("kv")), _study("kv")),
}
