"""Fetches a pipeline from the Hugging Face hub, or says within seconds that it cannot."""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .quiet import quiet

INSTEAD = ("Without it, take the source 'bundled' (small, trained, offline) or 'full' (real sizes, random "
           "weights).")


def fetch_pipeline(name: str) -> Path:
    """The local folder of the diffusers checkpoint ``name``; it is downloaded if it is not cached.

    Raises ConnectionError when the hub cannot be reached and the checkpoint is not on this machine, or when
    the hub does not give it (unknown, private, gated).
    """
    with quiet(bars=True):
        from diffusers import DiffusionPipeline
        from huggingface_hub.errors import HfHubHTTPError

    failures: Any = HfHubHTTPError.__bases__  # the HTTP client's own errors, and OSError
    offline = None if reachable() else f"{name!r} is not on this machine and the hub cannot be reached."
    try:
        with quiet(bars=True):  # it imports the checkpoint's classes, which log what they miss
            return Path(DiffusionPipeline.download(name, local_files_only=offline is not None))
    except failures as error:
        reason = offline or f"the hub does not give {name!r} ({type(error).__name__}: {_first_line(error)})."
        raise ConnectionError(f"{reason} {INSTEAD}") from error


def reachable(seconds: float = 3.0) -> bool:
    """Whether a connection to the hub (or to the proxy that leads to it) opens in time.

    huggingface_hub itself retries for most of a minute before it gives up.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    url = urlsplit(constants.ENDPOINT)
    proxy = urllib.request.getproxies().get(url.scheme)
    if proxy and not urllib.request.proxy_bypass(url.hostname or ""):
        url = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        socket.create_connection((url.hostname, port), timeout=seconds).close()
    except OSError:
        return False
    return True


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]
