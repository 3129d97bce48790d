"""Services to reason about, one for each variant: a model's sizes, a machine, what the users ask for."""

from __future__ import annotations

import random
from typing import Any

from inferlab.lab.identity import of_variant

#: Sizes as published for models of 8, 7, 14 and 32 billion parameters (Llama 3 and Qwen2.5), two bytes a
#: weight.
_MODELS = (
    {"weights": 8_030_000_000, "layers": 32, "query_heads": 32, "kv_heads": 8, "head_dim": 128},
    {"weights": 7_620_000_000, "layers": 28, "query_heads": 28, "kv_heads": 4, "head_dim": 128},
    {"weights": 14_770_000_000, "layers": 48, "query_heads": 40, "kv_heads": 8, "head_dim": 128},
    {"weights": 32_760_000_000, "layers": 64, "query_heads": 40, "kv_heads": 8, "head_dim": 128},
)
#: Peak FLOP/s in bfloat16 and in 8 bits, both without sparsity, and bytes/s, as on the data sheets of an H100
#: SXM, H200, A100 80 GB and MI300X.
_MACHINES = (
    {"flops": 989e12, "flops_8": 1979e12, "bandwidth": 3.35e12},
    {"flops": 989e12, "flops_8": 1979e12, "bandwidth": 4.8e12},
    {"flops": 312e12, "flops_8": 624e12, "bandwidth": 2.039e12},
    {"flops": 1307e12, "flops_8": 2615e12, "bandwidth": 5.3e12},
)
VARIANTS = 16

EXAMPLE = {
    "weights": 1_000_000_000, "itemsize": 2, "layers": 10, "query_heads": 16, "kv_heads": 4, "head_dim": 64,
    "flops": 1e14, "bandwidth": 1e12, "prompt": 1000, "new": 101, "batch": 10, "context": 20_000,
    "outputs": [3, 1, 2, 5, 1, 1, 2, 9], "slots": 2, "cache_memory": 10**9, "longest": 4096, "page": 16,
    "typical": 100,
    "accepted": 0.5, "drafted": 2, "draft_cost": 0.25, "quantized": 1.0, "devices": 4, "hop_ms": 0.1,
    "sum_ms": 0.01, "block": 250, "call_ms": 10.0, "token_ms": 0.1, "every_ms": 312.0, "flops_8": 2e14,
    "reach": [1.0, 64.0, 4.0, 0.25], "span": [1.0, 0.25, 0.25, 1.0], "experts": 8, "chosen": 2,
    "expert_part": 0.8, "latent": 96, "rotary": 32,
}
"""A service of round numbers, the same for everybody: what a visible check may know without giving an answer
away."""


def scenario(variant: int) -> dict:
    """The service of a variant: plain numbers, sizes in tokens and bytes, rates per second.

    Keys: ``weights`` (parameters), ``itemsize`` (bytes of one, and of a number in the cache), ``layers``,
    ``query_heads``, ``kv_heads``, ``head_dim``; ``flops`` and ``bandwidth`` (bytes/s) of the machine;
    ``prompt`` and ``new`` (tokens of a request); ``batch`` (requests at once) and ``context`` (positions in
    each one's cache); ``outputs`` (tokens of eight requests that wait) and ``slots``; ``cache_memory`` (bytes
    left for the cache), ``longest`` (most tokens a request may have), ``page`` (tokens) and ``typical``
    (tokens that one really has); ``accepted`` (chance that a drafted token is kept), ``drafted`` (tokens
    before each check), ``draft_cost`` (a draft's pass in passes of the target); ``quantized`` (bytes of a
    quantized weight); ``devices``, ``hop_ms`` (to hand a hidden state on) and ``sum_ms`` (for one sum over
    all devices). For the questions on labs 22 to 25: ``block`` (queries and keys in a kernel's block);
    ``call_ms`` and ``token_ms`` (of a call, and of each token in it) and ``every_ms`` (between arrivals);
    ``flops_8`` (in 8 bits), ``reach`` and ``span`` (largest activation and weight of four channels);
    ``experts``, ``chosen``, ``expert_part`` (share of the weights that are experts), ``latent`` and
    ``rotary`` (numbers of a position in a latent cache).

    Raises:
        ValueError: if the variant does not exist.
    """
    number = of_variant(variant, range(VARIANTS), "scenario {}".format)
    rng = random.Random(f"scenario {number}")
    outputs = [rng.randint(2, 9) for _ in range(8)]
    outputs[rng.randrange(3)] = rng.randint(12, 16)  # the first batch waits for one of its three,
    outputs[rng.randrange(5, 8)] = rng.randint(20, 26)  # and one that comes late runs alone at the end
    facts: dict[str, Any] = {
        **_MODELS[number % 4], "itemsize": 2, **_MACHINES[number // 4],
        "prompt": rng.choice((600, 900, 1200, 1500)), "new": rng.choice((150, 250, 350, 450)),
        "batch": rng.choice((12, 16, 24, 32)), "context": rng.choice((900, 1300, 1700, 2300)),
        "outputs": outputs, "slots": 3,
        "cache_memory": rng.choice((9, 11, 13)) * 10**9, "longest": rng.choice((4096, 8192)),
        "page": 16, "typical": rng.choice((330, 410, 530, 650)),
        "accepted": rng.choice((0.6, 0.7, 0.75, 0.8)), "drafted": rng.choice((3, 4, 5)),
        "draft_cost": rng.choice((0.05, 0.1)),
        "quantized": 0.5, "devices": rng.choice((2, 4)), "hop_ms": 0.02,
        "sum_ms": rng.choice((0.01, 0.015, 0.02)),
    }
    facts |= {"block": rng.choice((64, 128)), "call_ms": rng.choice((4.0, 6.0, 8.0)),
              "token_ms": rng.choice((0.02, 0.03))}
    work = facts["token_ms"] * (facts["prompt"] + facts["new"] - 1)
    together = rng.choice((0.4, 0.5, 0.6, 0.7)) * facts["batch"]  # requests in a call, of those that fit
    outlier = rng.randrange(4)
    reach = [rng.choice((0.5, 1.0, 2.0, 3.0)) for _ in range(4)]
    reach[outlier] = rng.choice((60.0, 90.0, 140.0))
    experts, chosen = rng.choice(((64, 4), (64, 6), (128, 8)))
    return facts | {
        "every_ms": round(work + facts["call_ms"] * facts["new"] / together, 1),
        "reach": reach, "span": [rng.choice((0.2, 0.3, 0.5, 0.8)) for _ in range(4)],
        "experts": experts, "chosen": chosen, "expert_part": rng.choice((0.8, 0.9)), "latent": 512,
        "rotary": 64,
    }
