"""Finishes an installation in Colab: installs what the wheel needs, and leaves the torch that is there alone.

A lab's first cell installs the wheel alone (`--no-deps`) and calls `finish`. Only the standard library, and
what pip brings, is used here.
"""

import importlib
import importlib.metadata
import subprocess
import sys
import tempfile
from pathlib import Path

NEVER_CHANGED = ("torch", "torchvision", "torchaudio", "triton", "numpy", "jax", "tensorflow")
"""Packages that the machine's CUDA build rests on; they are pinned to what is there."""


def unmet(distribution: str = "inferlab") -> list[str]:
    """Requirements of `distribution`, without extras, that are not met here, as pip reads them."""
    try:
        from packaging.requirements import Requirement
    except ModuleNotFoundError:
        from pip._vendor.packaging.requirements import Requirement  # type: ignore[assignment]

    missing = []
    for text in importlib.metadata.requires(distribution) or []:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            installed = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            installed = None
        if installed is None or not requirement.specifier.contains(installed, prereleases=True):
            missing.append(f"{requirement.name}{requirement.specifier}")
    return missing


def pins() -> list[str]:
    """A pip constraint for each package of `NEVER_CHANGED` that is installed: the version that is there."""
    found = []
    for name in NEVER_CHANGED:
        try:
            found.append(f"{name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def install(requirements: list[str]) -> None:
    """Let pip install these with the pins of `NEVER_CHANGED`. Raises `RuntimeError` with pip's last lines."""
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text("\n".join(pins()) + "\n", "utf-8")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "-c", str(constraints), *requirements]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        raise RuntimeError(f"pip could not install {', '.join(requirements)}:\n{last}")
    importlib.invalidate_caches()


def finish() -> bool:
    """Install what is missing, say what was done, whether a restart is needed, and which GPU there is.

    Returns whether the runtime must be restarted. Raises `RuntimeError` when the torch that is there cannot
    be used.
    """
    missing = unmet()
    torch = [text for text in missing if _module(text) == "torch"]  # torchao is another package
    if torch:
        raise RuntimeError(
            f"this machine's torch does not meet {torch[0]}, and the course does not replace it: "
            "choose a newer runtime, or install torch yourself and run this cell again")
    before = {_module(text) for text in missing if _module(text) in sys.modules}
    if missing:
        print(f"installing {', '.join(missing)} ...", flush=True)
        install(missing)
    print(f"inferlab {importlib.metadata.version('inferlab')} is installed; {gpu()}")
    if before:
        print(f"RESTART NEEDED: an older {', '.join(sorted(before))} is loaded. "
              "Choose Runtime > Restart session, then run the notebook from its first cell.")
    return bool(before)


def _module(requirement: str) -> str:
    name = requirement
    for mark in "<>=!~;[ ":
        name = name.split(mark)[0]
    return {"pillow": "PIL"}.get(name.lower(), name.replace("-", "_"))


def gpu() -> str:
    """One line about the accelerator, such as `GPU: Tesla T4, 15.8 GB`."""
    import torch

    if not torch.cuda.is_available():
        return ("no GPU here: the labs' bundled model runs on the CPU "
                "(Runtime > Change runtime type gives one)")
    card = torch.cuda.get_device_properties(0)
    return f"GPU: {card.name}, {card.total_memory / 1e9:.1f} GB, torch {torch.__version__}"
