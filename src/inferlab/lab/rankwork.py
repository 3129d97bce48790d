"""What each process of a parallel run does: `python -m inferlab.lab.rankwork JOB` reads a job, starts its ranks, writes files.

On the CPU the libraries are imported once, here, and every rank is a fork of this process, made before torch has computed
anything. On GPUs every rank is a process of its own from the start.
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
from torch.utils._python_dispatch import TorchDispatchMode

GATHERED = "colwise_gather_output"
GATHER_ALL = {f"model.layers.*.{name}": GATHERED for name in (
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")}
GATHER_ALL |= {"model.embed_tokens": "embedding_rowwise", "lm_head": GATHERED}  # as in the library's own plan
"""A plan that splits every projection by columns and puts its output together again at once: right, and wasteful."""

_OPS = {"allreduce_": "all_reduce", "all_reduce": "all_reduce", "_allgather_base_": "all_gather", "allgather_": "all_gather",
        "all_gather_into_tensor": "all_gather", "allgather_into_tensor_coalesced_": "all_gather", "broadcast_": "broadcast",
        "broadcast": "broadcast", "reduce_scatter_tensor": "reduce_scatter", "send": "send", "recv_": "recv"}


class Collectives(TorchDispatchMode):
    """Logs every exchange between ranks, with the module inside whose forward it happens, and when the layers computed."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.log: list[dict[str, Any]] = []
        self.inside: list[str] = []
        self.busy: list[float] = []
        self.cuda = next(model.parameters()).is_cuda
        self.hooks = []
        for name, module in model.named_modules():
            self.hooks += [module.register_forward_pre_hook(lambda *_, name=name: self._enter(name)),
                           module.register_forward_hook(self._leave)]

    def _enter(self, name: str) -> None:
        self.inside.append(name)
        self._stamp(name)

    def _leave(self, *_) -> None:
        self._stamp(self.inside.pop())

    def _stamp(self, name: str) -> None:
        """The time at which a layer begins or ends; a GPU only queues its work, so it is waited for."""
        if name.rpartition(".")[0] == "model.layers":
            if self.cuda:
                torch.cuda.synchronize()
            self.busy.append(time.perf_counter())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace in ("c10d", "_c10d_functional"):
            name = func._schema.name.partition("::")[2]
            if name in _OPS:
                self._note(_OPS[name], name, args)
        return func(*args, **(kwargs or {}))

    def _note(self, op: str, raw: str, args: tuple) -> None:
        tensors = [args[1]] if raw == "_allgather_base_" else args[0]  # that one names its output first
        for tensor in tensors if isinstance(tensors, list | tuple) else [tensors]:
            self.log.append({"op": op, "module": self.inside[-1] if self.inside else "", "shape": tuple(tensor.shape),
                             "bytes": tensor.numel() * tensor.element_size()})

    def __exit__(self, *exception):
        for hook in self.hooks:
            hook.remove()
        return super().__exit__(*exception)


def split_model(folder: str, dtype: str, ranks: int, plan: str):
    """The model in `folder`, split over the ranks of this process group; plan is "library", "gather" or "pipeline"."""
    from inferlab.models.quiet import quiet

    with quiet():
        from transformers import AutoModelForCausalLM
        from transformers.distributed import DistributedConfig

        settings = {"library": {"tp_plan": "auto", "tp_size": ranks}, "gather": {"tp_plan": GATHER_ALL, "tp_size": ranks},
                    "pipeline": {"pp_size": ranks}}[plan]
        config = DistributedConfig(**settings)
        return AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), distributed_config=config).eval()


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
            with Collectives(model) as watch:  # positions are given: a rank without layer 0 could not know how far it is
                logits = model(step, None, at, cache, logits_to_keep=1).logits
            passes.append({"tokens": step.shape[1], "log": watch.log, "busy": [min(watch.busy), max(watch.busy)]})
            step = logits[:, -1:].argmax(-1)
            tokens.append(int(step))
            at = at[:, -1:] + 1
        kept = logits[0, -1].float().cpu().tolist()
        with trace(model, depth="all") as t:
            model(step, None, at, cache, logits_to_keep=1)
    rows = [{key: row[key] for key in ("name", "level", "inputs", "outputs")} for row in t.rows()]
    weights = {name: list(p.to_local().shape if hasattr(p, "to_local") else p.shape) for name, p in model.named_parameters()}
    return {"plan": plan, "rank": rank, "passes": passes, "tokens": tokens, "logits": kept, "rows": rows, "weights": weights,
            "cache_bytes": sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers if layer.keys is not None)}


def end_with_parent() -> None:
    """Be killed when the parent process ends, however it ends (Linux; elsewhere the group's own time limit ends the ranks)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def rank_main(job: dict, rank: int, folder: str) -> None:
    """One rank: join the group, run every plan of the job, leave a file."""
    end_with_parent()
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(job["ranks"]), LOCAL_WORLD_SIZE=str(job["ranks"]))
    torch.set_num_threads(1)
    cuda = job["device"].startswith("cuda")
    if cuda:
        torch.cuda.set_device(rank)
        job = {**job, "device": f"cuda:{rank}"}
    else:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.distributed.init_process_group("nccl" if cuda else "gloo", init_method=f"file://{folder}/meeting", rank=rank,
                                         world_size=job["ranks"], timeout=timedelta(seconds=job["seconds"]))
    try:
        results = [run_plan(job, plan, rank) for plan in job["plans"]]
        Path(folder, f"rank{rank}.json").write_text(json.dumps(results), "utf-8")
        torch.distributed.barrier()
    finally:
        torch.distributed.destroy_process_group()


def main(folder: str) -> int:
    """Start the ranks of the job in `folder`/job.json and wait for them; 0 if each of them ended well."""
    end_with_parent()
    job = json.loads(Path(folder, "job.json").read_text("utf-8"))
    # an import may look at the cards (torchao's does), and CUDA then works in no fork: there, each rank is a process from nothing
    start = "spawn" if job["device"].startswith("cuda") else "fork"
    if start == "fork":
        import transformers.models.llama.modeling_llama  # noqa: F401 - before the fork: once for all ranks

        import inferlab.trace  # noqa: F401 - likewise
    processes = [multiprocessing.get_context(start).Process(target=rank_main, args=(job, rank, folder), daemon=True)
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
