"""What the tests of single labs read: the lab's own cells, and the code behind its handbook page."""

import importlib.util
from pathlib import Path
from types import ModuleType

from inferlab.grading.labtext import read_blocks

ROOT = Path(__file__).resolve().parents[2]


def blocks_of(lab: str) -> list:
    """The blocks of a lab's text, in order."""
    path = ROOT / "notebooks" / lab / f"{lab}.py"
    return read_blocks(path.read_text("utf-8"), path.name)[1]


def cell_of(lab: str, *, begins: str = "", **metadata) -> str:
    """The source of the one cell of a lab with this metadata that begins with `begins`."""
    found = [b.cell.source for b in blocks_of(lab) if b.cell.source.startswith(begins)
             and all(b.cell.metadata.get(key) == value for key, value in metadata.items())]
    assert len(found) == 1
    return found[0]


def figure_code(name: str) -> ModuleType:
    """The script `handbook/figures/NAME.py`, loaded anew."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "handbook" / "figures" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
