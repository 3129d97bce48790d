"""What each process of a parallel run does: `python -m inferlab.lab.kits.parallel.rank_process JOB` reads a
job, starts its ranks, writes files.

On the CPU the libraries are imported once, here, and every rank is a fork of this process, made before torch
has computed anything. On GPUs every rank is a process of its own from the start.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

from inferlab.lab.kits.parallel.collectives import Collectives

GATHERED = "colwise_gather_output"
GATHER_ALL = {f"model.layers.*.{name}": GATHERED for name in (
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj",
    "mlp.up_proj", "mlp.down_proj")}
GATHER_ALL |= {"model.embed_tokens": "embedding_rowwise", "lm_head": GATHERED}  # as in the library's own plan
"""A plan that splits every projection by columns and puts its output together again at once: right, and
wasteful."""


def split_model(folder: str, dtype: str, ranks: int, plan: str) -> Any:
    """The model in `folder`, split over this process group by "library", "gather" or "pipeline"."""
    from inferlab.models.quiet import quiet

    with quiet():
        from transformers import AutoModelForCausalLM
        from transformers.distributed import DistributedConfig

        settings: dict[str, dict[str, Any]] = {
            "library": {"tp_plan": "auto", "tp_size": ranks},
            "gather": {"tp_plan": GATHER_ALL, "tp_size": ranks},
            "pipeline": {"pp_size": ranks},
        }
        config = DistributedConfig(**settings[plan])
        return AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype),
                                                    distributed_config=config).eval()


def run_plan(job: dict, plan: str, rank: int) -> dict[str, Any]:
    """Prefill and a few decode passes of the split model on this rank; plain data."""
    from transformers import DynamicCache

    from inferlab.trace import trace

    model = split_model(job["model"], job["dtype"], job["ranks"], plan)
    ids = torch.tensor([job["ids"]], device=job["device"])
    cache = DynamicCache(config=model.config)
    passes, tokens = [], []
    with torch.no_grad():
        step, at = ids, torch.arange(ids.shape[1], device=job["device"])[None]
        for _ in range(job["new_tokens"]):
            # positions are given: a rank without layer 0 could not know how far it is
            with Collectives(model) as watch:
                logits = model(step, None, at, cache, logits_to_keep=1).logits
            passes.append({"tokens": step.shape[1], "log": watch.log,
                           "busy": [min(watch.busy), max(watch.busy)]})
            step = logits[:, -1:].argmax(-1)
            tokens.append(int(step))
            at = at[:, -1:] + 1
        kept = logits[0, -1].float().cpu().tolist()
        with trace(model, depth="all") as t:
            model(step, None, at, cache, logits_to_keep=1)
    rows = [{key: row[key] for key in ("name", "level", "inputs", "outputs")} for row in t.rows()]
    weights = {name: list(p.to_local().shape if hasattr(p, "to_local") else p.shape)
               for name, p in model.named_parameters()}
    return {"plan": plan, "rank": rank, "passes": passes, "tokens": tokens, "logits": kept, "rows": rows,
            "weights": weights,
            "cache_bytes": sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers
                               if layer.keys is not None)}


def end_with_parent() -> None:
    """On Linux, be killed when the parent ends, however it ends; elsewhere a time limit does it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def rank_main(job: dict, rank: int, folder: str) -> None:
    """One rank: join the group, run every plan of the job, leave a file."""
    end_with_parent()
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(job["ranks"]),
                      LOCAL_WORLD_SIZE=str(job["ranks"]))
    torch.set_num_threads(1)
    cuda = job["device"].startswith("cuda")
    if cuda:
        torch.cuda.set_device(rank)
        job = {**job, "device": f"cuda:{rank}"}
    else:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.distributed.init_process_group("nccl" if cuda else "gloo", init_method=f"file://{folder}/meeting",
                                         rank=rank,
                                         world_size=job["ranks"], timeout=timedelta(seconds=job["seconds"]))
    try:
        if "prompt" in job:
            from inferlab.lab.kits.parallel.context_process import run_way

            results = [run_way(job, way, rank) for way in job["plans"]]
        else:
            results = [run_plan(job, plan, rank) for plan in job["plans"]]
        Path(folder, f"rank{rank}.json").write_text(json.dumps(results), "utf-8")
        torch.distributed.barrier()
    finally:
        torch.distributed.destroy_process_group()


def main(folder: str) -> int:
    """Start the ranks of the job in `folder`/job.json and wait for them; 0 if each of them ended well."""
    end_with_parent()
    job = json.loads(Path(folder, "job.json").read_text("utf-8"))
    # an import may look at the cards (torchao's does), and CUDA then works in no fork: there, each rank is a
    # process from nothing
    context: Any = multiprocessing.get_context("spawn" if job["device"].startswith("cuda") else "fork")
    if context.get_start_method() == "fork":
        # before the fork: once for all ranks
        if "prompt" in job:
            import diffusers.pipelines.flux.pipeline_flux  # noqa: F401
        else:
            import transformers.models.llama.modeling_llama  # noqa: F401

        import inferlab.trace  # noqa: F401
    processes = [context.Process(target=rank_main, args=(job, rank, folder), daemon=True)
                 for rank in range(job["ranks"])]
    for process in processes:
        process.start()
    while any(p.is_alive() for p in processes) and not any(p.exitcode for p in processes):
        time.sleep(0.02)
    failed = [p.exitcode for p in processes if p.exitcode]
    for process in processes:
        if failed:
            process.terminate()  # a rank that lost its partner would wait for it
        process.join()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
