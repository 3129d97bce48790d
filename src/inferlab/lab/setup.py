"""The first cell of every lab: who learns, which model on which device, and a notebook without noise."""

from __future__ import annotations

import logging
import os
import random
import re
import sys
from dataclasses import dataclass
from importlib.metadata import version

from .identity import normalize
from .identity import variant as _variant

SOURCES = ("bundled", "full", "hub")
_LAB_NAME = re.compile(r"(lab\d\d|practice)-[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Lab:
    """What the parameters cell came to: read-only, and printed in one line by :func:`start`.

    Attributes:
        name: the lab, such as ``"lab02-denoising-step"``.
        learner: the name or id as it was written; empty until the learner fills it in.
        model: ``"bundled"``, ``"full"`` or ``"hub"``.
        device: ``"cpu"`` or ``"cuda"`` (or ``"cuda:1"``), with ``"auto"`` already resolved.
        seed: the seed of every generator in the lab.
    """

    name: str
    learner: str
    model: str
    device: str
    seed: int

    def variant(self, n: int) -> int:
        """This learner's variant of the lab, 0 to ``n - 1`` (see :func:`inferlab.lab.identity.variant`)."""
        return _variant(self.learner, self.name, n)

    def __str__(self) -> str:
        who = self.learner.strip() or "LEARNER is empty: write your name above"
        versions = ", ".join(f"{p} {version(p).split('+')[0]}" for p in ("torch", "diffusers", "transformers"))
        return f"{self.name} · {who} · {self.model} on {self.device} · seed {self.seed} · {versions}"


_current: Lab | None = None


def current() -> Lab | None:
    """The lab that this kernel started last, or ``None`` if no setup cell has run."""
    return _current


def start(lab: str, learner: str = "", model: str = "bundled", device: str = "auto", seed: int = 0) -> Lab:
    """Set a notebook up and say in one line what it uses.

    Quiets the libraries' import notices and progress bars, seeds Python and torch, registers ``%%explain`` when a
    notebook is running, and remembers the lab for the checks.

    Args:
        lab: the lab's full name, ``labNN-topic`` or ``practice-topic``.
        learner: the learner's name or id; may be empty while exploring, and is then asked for in the printed line.
        model: where the model comes from: ``"bundled"``, ``"full"`` or ``"hub"``.
        device: ``"auto"`` (the GPU if there is one), ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.
        seed: a non-negative integer.

    Returns:
        The :class:`Lab`.

    Raises:
        ValueError: for a name, model, device or seed that cannot be used, saying what can.
        TypeError: if the learner's name is not text.
        MemoryError: if ``model`` is ``"full"`` and the lab does not fit the device, with the bytes that it needs.
    """
    global _current
    if not _LAB_NAME.fullmatch(lab):
        raise ValueError(f"a lab's name is labNN-topic or practice-topic in lower case, not {lab!r}")
    normalize(learner)
    if model not in SOURCES:
        raise ValueError(f"MODEL is one of {', '.join(SOURCES)}, not {model!r}")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise ValueError(f"SEED is a whole number from 0 to 2**32 - 1, not {seed!r}")
    quiet(downloads=model != "hub")
    from inferlab.models.fit import check_lab

    state = Lab(lab, learner, model, resolve_device(device), seed)
    _seed(seed)
    _register_explain()
    check_lab(lab, model, state.device)
    _current = state
    print(state)
    return state


def resolve_device(device: str) -> str:
    """``"auto"`` to the device that is there; anything else is checked and returned.

    Raises:
        ValueError: if the device is unknown or this machine does not have it.
    """
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        return device
    found = re.fullmatch(r"cuda(?::(\d+))?", device) if isinstance(device, str) else None
    if found is None:
        raise ValueError(f"DEVICE is auto, cpu, cuda or cuda:N, not {device!r}")
    have = torch.cuda.device_count()
    if int(found[1] or 0) >= have:
        raise ValueError(f"DEVICE is {device!r}, but torch sees {have} CUDA device(s) here: use \"auto\" or \"cpu\"")
    return device


# What libraries log about themselves at their import, by logger: nothing that a learner could do anything about.
_NOTICES = {
    "transformers.utils.import_utils": "requires torchvision (not installed)",
    "torchao": "Failed to load",  # kernels for GPUs that this machine does not have
    "torch.utils._pytree": "is an Enum subclass and is now natively supported",  # said about torchao
    "diffusers.quantizers.torchao.torchao_quantizer": "Unable to import `torchao` Tensor objects",
}


class _ImportNotice(logging.Filter):
    """Drops one notice of a library at its import and nothing else."""

    def __init__(self, notice: str):
        super().__init__()
        self.notice = notice

    def filter(self, record: logging.LogRecord) -> bool:
        return self.notice not in record.getMessage()


def quiet(downloads: bool = True) -> None:
    """Keep the libraries' import notices and progress bars out of the notebook; real warnings still show.

    Args:
        downloads: also hide the hub's download bars. With ``MODEL = "hub"`` they are left on, since a download of
            gigabytes should show its progress.
    """
    for name, notice in _NOTICES.items():
        logger = logging.getLogger(name)
        if not any(isinstance(f, _ImportNotice) for f in logger.filters):
            logger.addFilter(_ImportNotice(notice))
    if downloads and "huggingface_hub" not in sys.modules:
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

    import diffusers.utils.logging
    import transformers.utils.logging

    diffusers.utils.logging.disable_progress_bar()
    if downloads:
        transformers.utils.logging.disable_progress_bar()
    else:
        transformers.utils.logging.enable_progress_bar()


def _seed(seed: int) -> None:
    import torch

    random.seed(seed)
    torch.manual_seed(seed)


def _register_explain() -> None:
    """Register the ``%%explain`` magic if an IPython shell is running; a plain script has none to register with."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    from .explain import register

    register(shell)
