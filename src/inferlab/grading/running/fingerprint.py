"""Names the installed package by its content, so that nothing that another version computed is used again."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import inferlab


@functools.cache
def package_fingerprint() -> str:
    """A hash over every file of the `inferlab` package: code, templates and bundled weights."""
    root = Path(inferlab.__file__).resolve().parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(str(path.relative_to(root)).encode() + b"\0")
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
