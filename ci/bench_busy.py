"""What a busy machine does to the labs: each lab's heaviest cell, alone and beside six busy processes.

    python ci/bench_busy.py                          the table of `make bench`; "busy" in ci/out/bench.json
    python ci/bench_busy.py lab02-denoising-step     these labs only
    python ci/bench_busy.py --old --rounds 5         with the setting that torch has by itself, too

A lab's solution runs in a kernel from the top, checks left out. Its slowest cell is the heaviest one. It then
runs in a new kernel in which the busy processes begin just before it. "Old" is a kernel that imports torch
before inferlab, so that OpenMP's idle threads spin. A cell that does not end within `LIMIT` seconds counts as
`LIMIT`. One round says whether a busy machine is bearable; for a few per cent take more, on a quiet machine.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError

from inferlab.grading.authoring.build import built_source
from inferlab.grading.course import Course

ROOT = Path(__file__).resolve().parents[1]
COURSE = Course.open(ROOT)
OUT = Path(__file__).parent / "out" / "bench.json"
BUSY, LIMIT = 6, 400
AT_MOST = 8.0
"""A cell beside the busy processes may take at most so many times as long as alone."""
SLOWER = 1.03
"""Alone, a cell may take at most so many times as long as with the old setting."""


@contextlib.contextmanager
def busy(number: int) -> Iterator[None]:
    """So many processes that do nothing but use a core, while the block runs."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@contextlib.contextmanager
def kernel(notebook: nbformat.NotebookNode, **options: Any) -> Iterator[NotebookClient]:
    """A client with a new kernel in an empty folder, which chooses its number of threads by itself."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("OMP_", "GOMP_"))}
    client = NotebookClient(notebook, timeout=LIMIT, allow_errors=True, extra_arguments=["--log-level=40"],
                            **options)
    with tempfile.TemporaryDirectory() as folder:
        client.resources["metadata"] = {"path": folder}
        with client.setup_kernel(env=environment):
            yield client


def timed(client: NotebookClient, cell: nbformat.NotebookNode, index: int) -> float:
    """Seconds that a cell runs; `LIMIT` if it does not end by then.

    Raises:
        RuntimeError: if the cell raises anything.
    """
    began = time.perf_counter()
    try:
        client.execute_cell(cell, index)
    except CellTimeoutError:
        return LIMIT
    for output in cell.outputs:
        if output.output_type == "error":
            raise RuntimeError(f"{cell.id}: {output.ename}: {output.evalue}")
    return time.perf_counter() - began


def cells_to_run(lab: str) -> nbformat.NotebookNode:
    """The lab's solution without its checks and its last cell, which hands in."""
    notebook = nbformat.read(built_source(COURSE, lab), as_version=4)
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"
                      and "score()" not in cell.source and "submit()" not in cell.source]
    return notebook


def run(lab: str, *, old: bool, last: str = "", others: int = 0) -> dict[str, float]:
    """Run a lab in a new kernel; cell id -> seconds of every cell that computes.

    Args:
        lab: the lab's name.
        old: import torch before inferlab, so that its idle threads spin.
        last: the id of the cell to stop after; all cells if empty.
        others: how many busy processes run beside that last cell.
    """
    notebook = cells_to_run(lab)
    if old:
        notebook.cells.insert(0, nbformat.v4.new_code_cell("import torch"))
    seconds = {}
    with kernel(notebook) as client:
        for index, cell in enumerate(notebook.cells):
            with busy(others if cell.id == last else 0):
                seconds[cell.id] = timed(client, cell, index)
            if cell.id == last:
                break
    return {cell.id: seconds[cell.id] for cell in notebook.cells if cell.id in seconds and computes(cell)}


def measure(lab: str, rounds: int, *, old: bool, heaviest: str = "") -> dict[str, Any]:
    """One lab with one setting: `cell`, and its seconds `quiet` (the median of the rounds) and `busy`.

    A lab keeps what it has computed, so a cell is heavy only once: each time is that of a new kernel.
    """
    first = run(lab, old=old, last=heaviest)
    cell = heaviest or max(first, key=first.__getitem__)
    quiet = [first[cell], *(run(lab, old=old, last=cell)[cell] for _ in range(rounds - 1))]
    beside = run(lab, old=old, last=cell, others=BUSY)[cell]
    return {"cell": cell, "quiet": round(statistics.median(quiet), 2), "busy": round(beside, 2)}


def computes(cell: nbformat.NotebookNode) -> bool:
    """Whether a cell is more than set-up: `start` imports the libraries, and loading a model reads a file."""
    return not any(word in cell.source for word in ("start(", "load_pipeline(", "load_language_model("))


def row(lab: str, new: dict[str, Any], old: dict[str, Any] | None) -> str:
    """A line of the table."""
    text = (f"{lab:28} {new['cell']:24} {new['quiet']:7.2f} {new['busy']:7.2f}"
            f" {new['busy'] / new['quiet']:5.1f}x")
    if old is not None:
        text += (f" {old['quiet']:9.2f} {old['busy']:7.2f} {old['busy'] / old['quiet']:5.1f}x"
                 f" {new['quiet'] / old['quiet']:6.2f}")
    return text


def main() -> int:
    """Measure, print the table, keep the figures; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("labs", nargs="*", help="names of labs; all by default")
    parser.add_argument("--old", action="store_true", help="measure with idle threads that spin, too")
    parser.add_argument("--rounds", type=int, default=1, help="quiet runs of each cell, each in a new kernel")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    labs = arguments.labs or COURSE.labs
    print(f"{'lab':28} {'heaviest cell':24} {'quiet s':>7} {'busy s':>7}       "
          + ("quiet old busy old        quiet" if arguments.old else ""))
    found: dict[str, Any] = {}
    missed = []
    for lab in labs:
        new = measure(lab, arguments.rounds, old=False)
        old = measure(lab, arguments.rounds, old=True, heaviest=new["cell"]) if arguments.old else None
        found[lab] = {"new": new, "old": old}
        print(row(lab, new, old), flush=True)
        if (beside := new["busy"] / new["quiet"]) > AT_MOST:
            missed.append(f"{lab}: {beside:.1f} times as long beside {BUSY} busy processes")
        if old is not None and (alone := new["quiet"] / old["quiet"]) > SLOWER:
            missed.append(f"{lab}: {alone:.2f} times as long alone as with the old setting")
    arguments.out.parent.mkdir(exist_ok=True)
    kept = json.loads(arguments.out.read_text("utf-8")) if arguments.out.exists() else {}
    kept["busy"] = {"cores": os.cpu_count(), "processes": BUSY, "labs": found}
    arguments.out.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    print("\n".join(["missed:", *missed]) if missed else "both bars are met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
