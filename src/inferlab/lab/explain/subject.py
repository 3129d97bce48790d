"""What learners call the things of the course: ready lists for the `terms` of a rubric.

    terms={**terms("latents", "scheduler", "unet", "noise"), "tiles": "tile*, window*"}
"""

from .words import phrase

_TERMS = {
    "latents": "latent*, latent tensor, latents tensor, latent image*, latent block, x_t, x_prev, noisy sample, noisy latent*, latent variable*, latent state, latent representation*, latent array, noise tensor, "
               "noisy tensor, latent code*, noisy block, canvas, sample tensor, current sample",
    "scheduler": "scheduler*, scheduler.step, step method, step function, ddim*, update rule, solver*, sampler*, \"schedule\", scheduling, "
                 "ddim formula, scheduler formula, scheduler's formula, scheduler's rule, scheduler's arithmetic, sheduler*",
    "unet": "unet*, u-net, u net, denoiser*, denoising network, neural network, neural net, \"network\", \"net\", noise predictor, denoising model, unet2d*, network's",
    "noise": "noise, noise pred*, predicted noise, noise_pred, noise estimate*, estimated noise, epsilon, eps, noise guess*, noise content",
    "vae": "vae*, vae.decode, decoder*, autoencoder*, variational autoencoder, image decoder, vae decoder*",
    "image": "image*, picture*, pixel*, photo*, pic, pics, rgb, bitmap, image file, png, \"painting\"",
    "prompt": "prompt*, text, text embed*, embedding*, prompt_embeds, caption*, words, token embedding*",
    "guidance": "guidance, guide, cfg, classifier-free guidance, classifier free guidance, guidance scale, classifier-free, guiding",
    "weights": "weight, weights, parameters, model weights, layers",
    "batch": "batch*, batch axis, batch dimension, batch size, first axis, first dimension, dim 0, axis 0, dimension 0, 0th axis, zeroth axis, leading axis, leading dimension, first dim, "
             "leading number, rows, row, first position, first entry, front axis, 1st axis, 1st dimension, first number, batch entries, batch number, batch dim, number of samples, number of rows",
    "channels": "channel*, channel axis, channel dimension, dim 1, axis 1, colour channel*, color channel*, chans",
    "spatial": "spatial*, height*, width*, height and width, heights, widths, axes 2 and 3, resolution*, spatial axes, spatial dimension*, spatial axis, axis 2, axis 3, dimension 2, dimension 3, dims 2 and 3, "
               "last two axes, two last axes, last two dimension*, two last dimension*, side, sides, sidelength, h and w, rows and columns, columns, axes 2, h, w, grid",
    "steps": "step*, timestep*, time step*, denoising step*, iteration*, number of steps, num_inference_steps, step count, inference step*, sampling step*, rounds, round",
    "calls": "call*, number of calls, evaluations, evaluation, forward passes, forward pass, passes, pass, invocation*, model calls, unet calls, runs",
    "loop": "loop*, denoising loop",
    "tiles": "\"tile\", \"tiles\", \"tile's\", window*, patch*, piece*, chunk*, excerpt*, portion*, crop*, fragment*, square*, segment*, block*, part, parts, bit, bits, snippet*, subregion*, tiled piece*, section*, region*, area*, cutout*",
    "cache": "cache*, kv cache, kv-cache, k/v cache, key-value cache, key value cache, past_key_values, past key values, dynamiccache, kvcache",
    "keys": "key*, keys, values, keys and values, key and value, keys/values, k and v, kv pair*, kv entries, k/v, key/value pair*, key-value pair*, kv",
    "sequence": "sequence*, seq, seq_len, sequence axis, sequence length, sequence dimension, length axis, token axis, token dimension, time axis, position axis, position*, context length, axis 2, "
                "dimension 2, second to last axis, context*",
    "heads": "head, heads, attention head*, kv head*, head axis, kv_heads, key/value heads",
    "head_dim": "head_dim, head dim, head dimension, head size",
    "prefill": "prefill*, prompt pass, prompt phase, first forward pass, prompt processing, context phase",
    "decode": "decode step*, decoding step*, decode phase, decode, decoding, generation step*, token generation, generation phase",
    "logits": "logit*, scores over the vocabulary, next-token scores, vocabulary scores, output distribution",
    "tokens": "token*, generated token*, new token*, next token*",
    "draft": "draft*, draft model, small model, assistant model, assistant, proposer, speculator",
    "target": "target*, target model, large model, big model, main model, verifier",
    "requests": "request*, user*, conversation*, client*, queries",
    "prefix": "prefix*, shared prefix, common prefix, system prompt, shared prompt",
    "blocks": "block*, kv block*, cache block*, page*, memory page*",
    "device": "device*, gpu, gpus, card, cuda, accelerator, rank, ranks",
}


def terms(*names: str, **own: str) -> dict[str, str]:
    """The ready lists of `names`, and a lab's own (which replace or extend them: `steps="+stride*"` adds to the list).

    A phrase that would stand in two of the chosen lists stays in the first. Raises ValueError for an unknown name.
    """
    unknown = [n for n in names if n not in _TERMS]
    if unknown:
        raise ValueError(f"no ready list for {unknown}; there are {sorted(_TERMS)}")
    chosen = {n: _TERMS[n] for n in names}
    for name, listing in own.items():
        chosen[name] = f"{chosen[name]}, {listing[1:]}" if listing.startswith("+") and name in chosen else listing.removeprefix("+")
    first: dict[tuple[str, ...], str] = {}
    for name in [*own, *names]:
        for item in chosen[name].split(","):
            first.setdefault(phrase(item), name)
    return {name: ", ".join(item.strip() for item in listing.split(",") if first[phrase(item)] == name) for name, listing in chosen.items()}
