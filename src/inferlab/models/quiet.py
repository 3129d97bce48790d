"""Keeps what libraries print about themselves (missing parts, progress) out of a lab's cells."""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quiet(bars: bool = False) -> Iterator[None]:
    """Inside the block only errors are logged; no Python warning and, unless ``bars``, no progress shows.

    For imports and for loading what we ship, where there is nothing a learner could do about a warning:
    transformers, for one, logs a line for each image processor when torchvision is missing, at the first
    import of a pipeline. Errors are still raised and logged, and afterwards everything is as it was.
    """
    disabled = logging.root.manager.disable
    logging.disable(max(disabled, logging.WARNING))
    switches = [] if bars else _progress_switches()
    try:
        for switch in switches:
            switch.disable_progress_bar()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        for switch in switches:
            switch.enable_progress_bar()


def _progress_switches() -> list:
    """The logging modules whose progress bars are on now: transformers', and diffusers' if imported."""
    transformers = importlib.import_module("transformers.utils.logging")
    modules = [transformers, sys.modules.get("diffusers.utils.logging")]
    return [module for module in modules if module is not None and module.is_progress_bar_enabled()]
