"""What the site takes from npm: installed from the lockfile. Node is the one beside this Python, or else on
the PATH."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from . import SITE

MODULES = SITE / "node_modules"
PATHS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
NODE = shutil.which("node", path=PATHS) or "node"
NPM = shutil.which("npm", path=PATHS) or "npm"
RUNTIME = MODULES / "onnxruntime-web" / "dist"
FONTS = {
    "inter": ("@fontsource-variable/inter", ("inter-latin-wght-normal", "inter-latin-ext-wght-normal")),
    "mono": ("@fontsource-variable/jetbrains-mono", ("jetbrains-mono-latin-wght-normal",)),
}


def install() -> None:
    """`npm ci`, unless `node_modules` already holds what the lockfile says.

    Raises:
        RuntimeError: npm could not; the message is npm's own.
    """
    wanted = _versions(SITE / "package-lock.json")
    if wanted == _versions(MODULES / ".package-lock.json"):
        return
    done = subprocess.run(
        [NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=SITE,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": PATHS},
    )
    if done.returncode:
        raise RuntimeError(f"npm ci did not work:\n{done.stderr.strip()}")


def _versions(lockfile: Path) -> dict[str, str] | None:
    if not lockfile.exists():
        return None
    packages = json.loads(lockfile.read_text("utf-8"))["packages"]
    return {name: package["version"] for name, package in packages.items() if name}


def copy_assets(static: Path) -> None:
    """Put what pages load into the site's static folder: KaTeX's style sheet, fonts as WOFF2 only, ONNX
    Runtime Web."""
    katex = MODULES / "katex" / "dist"
    (static / "katex" / "fonts").mkdir(parents=True, exist_ok=True)
    for font in (katex / "fonts").glob("*.woff2"):
        shutil.copy(font, static / "katex" / "fonts")
    style = (katex / "katex.min.css").read_text("utf-8")
    only = re.sub(r',url\([^)]+\.(?:woff|ttf)\) format\("(?:woff|truetype)"\)', "", style)
    (static / "katex" / "katex.css").write_text(only, "utf-8")
    (static / "fonts").mkdir(exist_ok=True)
    for package, files in FONTS.values():
        for name in files:
            shutil.copy(MODULES / package / "files" / f"{name}.woff2", static / "fonts")
    shutil.copy(RUNTIME / "ort.wasm.bundle.min.mjs", static / "model" / "ort.mjs")
