"""The first cell of every lab: who learns, which model on which device, and a notebook without noise."""

from __future__ import annotations

import logging
import os
import random
import re
import sys
from dataclasses import dataclass
from importlib.metadata import version

import inferlab

from . import identity
from .identity import normalize

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
        return identity.variant(self.learner, self.name, n)

    def __str__(self) -> str:
        who = self.learner.strip() or "LEARNER is empty: write your name above"
        packages = ("torch", "diffusers", "transformers")
        versions = ", ".join(f"{name} {version(name).split('+')[0]}" for name in packages)
        return f"{self.name} · {who} · {self.model} on {self.device} · seed {self.seed} · {versions}"


SPINS = ("torch was imported before inferlab, so its idle threads keep the processor busy, and this notebook "
         "can be very slow beside other programs: restart the kernel, and import torch after inferlab.")
"""What `start` prints where the setting of `inferlab` about idle threads came too late."""

_current: Lab | None = None


def current() -> Lab | None:
    """The lab that this kernel started last, or ``None`` if no setup cell has run."""
    return _current


def start(lab: str, learner: str = "", model: str = "bundled", device: str = "auto", seed: int = 0) -> Lab:
    """Set a notebook up and say in one line what it uses.

    Quiets the libraries' import notices and progress bars, seeds Python and torch, and remembers the lab for
    the checks. In a notebook it also registers ``%%explain``, and from then on a slow cell says for how long
    it has been running. A second line is printed only where torch was imported too early to run well on a
    busy machine.

    Args:
        lab: the lab's full name, ``labNN-topic`` or ``practice-topic``.
        learner: the learner's name or id; may be empty while exploring, and is then asked for in the printed
            line.
        model: where the model comes from: ``"bundled"``, ``"full"`` or ``"hub"``.
        device: ``"auto"`` (the GPU if there is one), ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.
        seed: a non-negative integer.

    Returns:
        The :class:`Lab`.

    Raises:
        ValueError: for a name, model, device or seed that cannot be used, saying what can.
        TypeError: if the learner's name is not text.
        MemoryError: if ``model`` is ``"full"`` and the lab does not fit the device, with the bytes that it
            needs.
    """
    global _current
    if not _LAB_NAME.fullmatch(lab):
        raise ValueError(f"a lab's name is labNN-topic or practice-topic in lower case, not {lab!r}")
    normalize(learner)
    if model not in SOURCES:
        raise ValueError(f"MODEL is one of {', '.join(SOURCES)}, not {model!r}")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise ValueError(f"SEED is a whole number from 0 to 2**32 - 1, not {seed!r}")
    _register_with_the_notebook()
    hide_notices(downloads=model != "hub")
    from inferlab.models.device import resolve_device

    from .needs import check_lab

    state = Lab(lab, learner, model, resolve_device(device), seed)
    _seed(seed)
    check_lab(lab, model, state.device)
    _current = state
    print(state)
    if inferlab.TORCH_SPINS:
        print(SPINS)
    return state


# What libraries log about themselves when they are imported, by logger. A learner can do nothing about it.
_NOTICES = {
    "transformers.utils.import_utils": "requires torchvision (not installed)",
    "torchao": "Failed to load",  # kernels for GPUs that this machine does not have
    "torch.utils._pytree": "is an Enum subclass and is now natively supported",  # said about torchao
    "diffusers.quantizers.torchao.torchao_quantizer": "Unable to import `torchao` Tensor objects",
    "diffusers.models.modeling_utils": "should be kept in float32: []",  # at each cast, of no module at all
}


class _ImportNotice(logging.Filter):
    """Drops one notice of a library at its import and nothing else."""

    def __init__(self, notice: str) -> None:
        super().__init__()
        self.notice = notice

    def filter(self, record: logging.LogRecord) -> bool:
        return self.notice not in record.getMessage()


def hide_notices(downloads: bool = True) -> None:
    """Keep the libraries' import notices and progress bars out of the notebook; real warnings still show.

    Args:
        downloads: also hide the hub's download bars. With ``MODEL = "hub"`` they are left on, since a
            download of gigabytes should show its progress.
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


def _register_with_the_notebook() -> None:
    """Register `%%explain` and the line about slow cells, if a notebook is running."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    from .elapsed import show_elapsed
    from .explain import register

    show_elapsed(shell)
    register(shell)
