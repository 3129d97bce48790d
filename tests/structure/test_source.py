"""The source as a newcomer meets it: small rooms, one name for one thing, nothing private borrowed."""

import ast
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests import ROOT

SRC = ROOT / "src" / "inferlab"
#: The rooms of written answers, which are being replaced.
MOST_MODULES = 12
#: Its functions are the commands, and named as what they call.
NAMED_FOR_COMMANDS = "inferlab.commands."
#: To do: names of two functions in kits, both of which lessons call.
SHARED_NAMES = {"calls_of", "suspect"}
#: Where a process begins is called `main` in Python.
ENTRY_POINT = "main"
#: To do: modules that one lab alone uses, outside a kit.
USED_BY_ONE_LAB = {"inferlab.lab.checks.answers"}
#: To do: private names that another module imports.
BORROWED: set[str] = set()
MOST_BYTES = 62_000_000
"""Of all tracked files together: what a clone takes, beside its history."""

MODULES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(SRC.rglob("*.py"))}


def room(path: Path) -> str:
    return path.parent.relative_to(SRC).as_posix()


def dotted(path: Path) -> str:
    """`inferlab.trace.trace` for src/inferlab/trace/trace.py."""
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, tree: ast.Module) -> list[tuple[str, str]]:
    """(module, name) for every `from module import name` of a module of ours; relative ones made absolute."""
    package = dotted(path).split(".") if path.name == "__init__.py" else dotted(path).split(".")[:-1]
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module.split(".")[0] == "inferlab":
                found += [(module, alias.name) for alias in node.names]
    return found


def test_no_room_has_more_than_a_dozen_modules():
    rooms = defaultdict(list)
    for path in MODULES:
        if path.name != "__init__.py":
            rooms[room(path)].append(path.name)
    assert {name: len(files) for name, files in rooms.items() if len(files) > MOST_MODULES} == {}


def test_no_two_public_things_have_one_name():
    defined = defaultdict(list)
    for path, tree in MODULES.items():
        if dotted(path).startswith(NAMED_FOR_COMMANDS):
            continue
        for node in tree.body:
            public = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            if public and node.name[0] != "_" and node.name != ENTRY_POINT:
                defined[node.name].append(dotted(path))
    shared = {name: places for name, places in defined.items() if len(places) > 1}
    assert {name: places for name, places in shared.items() if name not in SHARED_NAMES} == {}
    assert SHARED_NAMES - shared.keys() == set(), "no longer shared: delete them from the list"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_nothing_private_is_imported_from_another_module(path):
    taken = [f"{module}.{name}" for module, name in imports(path, MODULES[path])
             if name.startswith("_") and not name.startswith("__")]
    assert set(taken) - BORROWED == set()


def test_what_one_lab_alone_uses_is_in_a_kit():
    """A module that a single lab's cells import, and no other module of ours, belongs to that subject's
    kit."""
    used_by = defaultdict(set)
    for source in (ROOT / "notebooks").glob("*/*.py"):
        for path in MODULES:
            named = f"from {dotted(path)} import" in source.read_text("utf-8")
            if named and dotted(path).startswith("inferlab.lab.") and path.name != "__init__.py":
                used_by[dotted(path)].add(source.parent.name)
    ours = {module for path, tree in MODULES.items() for module, _ in imports(path, tree)}
    ours |= {f"{module}.{name}" for path, tree in MODULES.items() for module, name in imports(path, tree)}
    alone = {module: labs for module, labs in used_by.items() if len(labs) == 1 and module not in ours}
    assert {module for module in alone if not module.startswith("inferlab.lab.kits.")} == USED_BY_ONE_LAB


def test_the_tracked_files_stay_small_and_hold_nothing_that_is_built_anywhere():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    paths = [ROOT / name for name in listed.decode().split("\0") if name]
    assert sum(path.stat().st_size for path in paths if path.exists()) < MOST_BYTES
    assert [path for path in paths if path.is_relative_to(ROOT / "source")] == []
