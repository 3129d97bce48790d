"""Runs a model divided over real processes; brings back what each held, computed and exchanged."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

PLANS = ("library", "gather", "pipeline")
WAYS = ("ulysses", "ring")


class Ranks:
    """Processes that run a divided model in the background; made by :func:`start_ranks`, and for a picture by
    :func:`start_context_ranks`."""

    def __init__(self, process: subprocess.Popen, folder: str, count: int, seconds: float,
                 backend: str) -> None:
        self.count, self.backend = count, backend
        self._process, self._folder, self._until = process, folder, time.monotonic() + seconds
        self._results: list[list[dict]] | None = None
        self._end = weakref.finalize(self, _end, process, folder)

    def results(self) -> dict[str, list[dict[str, Any]]]:
        """Plan -> what each rank reports, in order of ranks; waits for the processes, and leaves none behind.

        A report holds ``weights`` (parameter -> shape on this rank), ``passes`` (for each forward pass the
        number of ``tokens``, the ``log`` of exchanges with ``op``, ``module``, ``shape`` and ``bytes`` of
        what this rank put in, and ``busy``, when its layers began and ended, seconds; on a GPU the device is
        waited for first), ``tokens`` (what was generated), ``logits`` (of the last position), ``rows`` (a
        traced pass) and ``cache_bytes``. A report on a picture is what
        :func:`~inferlab.lab.kits.parallel.context_process.run_way` returns.

        Raises:
            RuntimeError: a rank failed; the text ends with what it said.
            TimeoutError: the ranks were not done in time; they have been ended.
        """
        if self._results is None:
            try:
                code = self._process.wait(max(0.0, self._until - time.monotonic()))
                if code:
                    said = Path(self._folder, "said").read_text("utf-8",
                                                                errors="replace").strip().splitlines()
                    raise RuntimeError("a rank failed: " + "\n".join(said[-6:]))
                self._results = [json.loads(Path(self._folder, f"rank{rank}.json").read_text("utf-8"))
                                 for rank in range(self.count)]
            except subprocess.TimeoutExpired:
                raise TimeoutError("the ranks were not done in time and were ended: is the "
                                   "machine busy?") from None
            finally:
                self._end()
        return {reports[0]["plan"]: list(reports) for reports in zip(*self._results, strict=True)}


def start_ranks(plans: Sequence[str], ids: Sequence[int], new_tokens: int = 4, *, ranks: int = 2,
                device: str = "cpu",
                model: Any = None, seconds: float = 180.0) -> Ranks:
    """Start ``ranks`` processes that generate greedily, the model split in each way of ``plans``.

    It does not wait for them. They talk over gloo on the loopback interface, or over NCCL where ``device`` is
    cuda and there is a card for each.

    Args:
        plans: of "library" (the tensor-parallel plan that the model's class brings), "gather" (every
            projection split by columns and gathered at once) and "pipeline" (each rank has half of the
            layers).
        ids: token ids of one prompt.
        new_tokens: forward passes for each plan, the prefill included.
        ranks: 2 or more; the model's key/value heads must divide by it.
        device: "cpu" or "cuda".
        model: a model loaded with ``from_pretrained``; None or one without a folder: the bundled one.
        seconds: time limit for everything.

    Raises:
        ValueError: for an unknown plan, or fewer than two ranks.
    """
    if not plans or set(plans) - set(PLANS) or ranks < 2:
        raise ValueError(f"plans are some of {', '.join(PLANS)} on 2 or more ranks, not {list(plans)} "
                         f"on {ranks}")
    from inferlab.models.language import WEIGHTS

    cuda = torch.device(device).type == "cuda" and torch.cuda.device_count() >= ranks
    named = getattr(getattr(model, "config", None), "_name_or_path", "")
    source = named if named and Path(named).is_dir() else str(WEIGHTS / "target")
    dtype = str(model.dtype).removeprefix("torch.") if cuda and model is not None else "float32"
    job = {"model": source, "dtype": dtype, "device": "cuda" if cuda else "cpu", "ranks": ranks,
           "plans": list(plans),
           "ids": [int(i) for i in ids], "new_tokens": int(new_tokens), "seconds": seconds}
    return _launch(job)


def start_context_ranks(prompt: str, ways: Sequence[str] = WAYS, *, steps: int = 2, text_tokens: int = 64,
                        seed: int = 0, ranks: int = 2, seconds: float = 180.0) -> Ranks:
    """Start ``ranks`` processes that draw one picture with context parallelism: a part of the tokens each.

    It does not wait for them. They run the bundled FLUX-shaped pipeline on the CPU and talk over gloo.

    Args:
        prompt: what to draw.
        ways: of "ulysses" and "ring".
        steps: of the loop.
        text_tokens: ``max_sequence_length``; it and the picture's 64 tokens must divide by ``ranks``.
        seed: of the noise.
        ranks: 2 or 4: a divisor of the model's 4 heads.
        seconds: time limit for everything.

    Raises:
        ValueError: for an unknown way, or a number of ranks that does not divide heads and tokens.
    """
    if not ways or set(ways) - set(WAYS) or ranks not in (2, 4) or text_tokens % ranks:
        raise ValueError(f"ways are some of {', '.join(WAYS)} on 2 or 4 ranks that divide the text's tokens, "
                         f"not {list(ways)} on {ranks} with {text_tokens}")
    return _launch({"device": "cpu", "ranks": ranks, "plans": list(ways), "prompt": prompt, "steps": steps,
                    "text_tokens": text_tokens, "seed": seed, "seconds": seconds})


def _launch(job: dict[str, Any]) -> Ranks:
    """The processes of a job, started."""
    folder, cuda = tempfile.mkdtemp(prefix="inferlab-ranks-"), job["device"] == "cuda"
    Path(folder, "job.json").write_text(json.dumps(job), "utf-8")
    # on the CPU the library would take a card for each rank, one that is not there; on GPUs a look at the
    # driver before the fork would spoil CUDA in the ranks
    hidden = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"} if cuda else {"CUDA_VISIBLE_DEVICES": ""}
    with Path(folder, "said").open("wb") as said:
        process = subprocess.Popen([sys.executable, "-m", "inferlab.lab.kits.parallel.rank_process", folder],
                                   stdin=subprocess.DEVNULL, stdout=said,
                                   stderr=said, start_new_session=True,
                                   env={**os.environ, "OMP_NUM_THREADS": "1", **hidden})
    return Ranks(process, folder, job["ranks"], job["seconds"], "NCCL" if cuda else "gloo")


def _end(process: subprocess.Popen, folder: str) -> None:
    """End what is left of the processes (they are a session of their own) and remove their folder."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)


def traffic_table(report: Mapping[str, Any], number: int) -> list[tuple[str, str, int, int]]:
    """The exchanges of one forward pass by kind: ``(op, module without its layer, how often, bytes put in)``.

    Args:
        report: one rank's report, from :meth:`Ranks.results`.
        number: which pass; 0 is the prefill.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for line in report["passes"][number]["log"]:
        parts = [part for part in line["module"].removeprefix("model.").split(".") if part != "layers"
                 and not part.isdigit()]
        groups.setdefault((line["op"], ".".join(parts) or "(between the stages)"), []).append(line["bytes"])
    return [(op, module, len(sizes), sum(sizes)) for (op, module), sizes in groups.items()]
