"""What each rank of a context-parallel picture run does; `rank_process` calls it once for each way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch

from inferlab.lab.kits.parallel.collectives import Collectives

FIRST_ATTENTION = "transformer.transformer_blocks.0.attn"


@contextmanager
def counted_as(ranks: int) -> Iterator[None]:
    """Within the block, torch says that there are as many accelerators as ranks.

    `enable_parallelism` divides by their number, which is 0 on the CPU (diffusers 0.42.1).
    """
    with patch.object(torch.accelerator, "device_count", lambda: ranks):
        yield


def run_way(job: dict, way: str, rank: int) -> dict[str, Any]:
    """One picture of the bundled FLUX-shaped pipeline, by this rank alone and then by all; plain data.

    Args:
        job: "prompt", "steps", "text_tokens", "seed" and "ranks" of the run.
        way: "ulysses" or "ring".
        rank: this process's number.

    Returns:
        "refused", what `enable_parallelism` raised before it was helped; "failed", what the run raised;
        "apart", the largest difference of its latents from those of one process, None if it failed; "log",
        the exchanges between ranks, as :class:`Collectives` has them; "attention", the shapes that went into
        the first attention, "hidden_states" and "encoder_hidden_states".
    """
    from diffusers import ContextParallelConfig
    from torch.distributed.device_mesh import init_device_mesh

    from inferlab.models.pictures import load_pipeline
    from inferlab.models.quiet import quiet
    from inferlab.trace import trace

    with quiet():
        pipe: Any = load_pipeline("bundled", "cpu", family="flux")
    pipe.set_progress_bar_config(disable=True)
    network, degree = pipe.transformer, {f"{way}_degree": job["ranks"]}

    def draw() -> torch.Tensor:
        return pipe(job["prompt"], num_inference_steps=job["steps"], output_type="latent",
                    max_sequence_length=job["text_tokens"],
                    generator=torch.Generator().manual_seed(job["seed"])).images

    refused = failed = ""
    apart = None
    with torch.no_grad():
        alone = draw()
        try:
            network.enable_parallelism(config=ContextParallelConfig(**degree))
        except (ZeroDivisionError, RuntimeError, ValueError) as error:
            refused = f"{type(error).__name__}: {error}"
            sides = (job["ranks"], 1) if way == "ring" else (1, job["ranks"])
            mesh = init_device_mesh("cpu", sides, mesh_dim_names=("ring", "ulysses"))
            with counted_as(job["ranks"]):
                network.enable_parallelism(config=ContextParallelConfig(**degree, mesh=mesh))
        with trace(pipe, depth=FIRST_ATTENTION) as run, Collectives(network) as watch:
            try:
                apart = float((draw() - alone).abs().max())
            except ValueError as error:
                failed = f"{type(error).__name__}: {error}"
    seen = run.find(FIRST_ATTENTION)[0].inputs
    into = {name: list(seen[name].shape) for name in ("hidden_states", "encoder_hidden_states")}
    return {"plan": way, "rank": rank, "refused": refused, "failed": failed, "apart": apart,
            "log": watch.log, "attention": into}
