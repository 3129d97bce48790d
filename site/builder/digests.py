"""Names what the build keeps by what it was made from."""

import hashlib
from pathlib import Path


def digest(*paths: Path, also: str = "") -> str:
    """16 hexadecimal digits of the bytes of these files, of all files in these folders, and of a text."""
    total = hashlib.sha256(also.encode())
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                total.update(file.read_bytes())
    return total.hexdigest()[:16]
