"""What a full JupyterHub does to the labs: twelve of the hub's kernels, each in its lab's heaviest cell.

    python -m ci.bench_hub                             every lab, twelve at a time; figures in ci/out/hub.json
    python -m ci.bench_hub lab02-denoising-step ...    these labs only

The kernels are started by handbook/instructors/kernels/python3/kernel.json, which bounds their memory and
gives them one thread. A lab's solution runs in such a kernel alone, checks left out: its slowest cell is the
heaviest one, and the seconds are its quiet time. Then twelve kernels, each of another lab, run up to their
heaviest cells, wait for each other, and run these cells at the same time. A kernel that is done spins until
the last one is done, so that no cell gets an easier end. Memory is the resident set of a kernel and of all
processes below it, sampled four times a second; pages that kernels share are counted in each.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import queue
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from ci.bench_busy import COURSE, cells_to_run, computes, kernel, timed
from ci.memory import Memory, resident

KERNELS = Path(__file__).resolve().parents[1] / "handbook" / "instructors"
"""The folder of the hub's files: Jupyter finds `kernels/python3` in it."""
OUT = Path(__file__).parent / "out" / "hub.json"
AT_ONCE = 12
SLOWER = 8.0
"""At most so many times its quiet time may a cell take."""
MOST_MB = 2048
"""At most so many megabytes (2**20 bytes) may a kernel hold."""
SPIN = "import os\nwhile not os.path.exists({!r}):\n    for _ in range(10**6):\n        pass"


@contextlib.contextmanager
def hub_kernel(notebook: nbformat.NotebookNode) -> Iterator[tuple[NotebookClient, Memory]]:
    """A client with one of the hub's kernels, in an empty folder, and its memory."""
    os.environ["JUPYTER_PATH"] = str(KERNELS)
    with kernel(notebook, kernel_name="python3") as client:
        memory = Memory(client.km.provisioner.pid, 0.25, resident)
        memory.start()
        yield client, memory
        memory.over.set()


def alone(lab: str) -> dict[str, Any]:
    """A lab's heaviest `cell`, its `quiet` seconds and the kernel's `quiet_mb`."""
    notebook, seconds = cells_to_run(lab), {}
    with hub_kernel(notebook) as (client, memory):
        for index, cell in enumerate(notebook.cells):
            spent = timed(client, cell, index)
            if computes(cell):
                seconds[cell.id] = spent
    heaviest = max(seconds, key=seconds.__getitem__)
    return {"cell": heaviest, "quiet": round(seconds[heaviest], 2), "quiet_mb": round(memory.most)}


def beside(lab: str, last: str, together: Any, stop: Path, results: Any) -> None:
    """Run a lab up to a cell, wait for the others, and run it.

    Puts (lab, seconds of the cell, megabytes) into `results`, or (lab, traceback).
    """
    try:
        notebook = cells_to_run(lab)
        place = next(index for index, cell in enumerate(notebook.cells) if cell.id == last)
        with hub_kernel(notebook) as (client, memory):
            for index in range(place):
                timed(client, notebook.cells[index], index)
            together.wait(3600)
            seconds = timed(client, notebook.cells[place], place)
            results.put((lab, seconds, memory.most))
            notebook.cells[place].source = SPIN.format(str(stop))
            client.timeout = None
            client.execute_cell(notebook.cells[place], place)
    except BaseException:
        results.put((lab, traceback.format_exc()))
        together.abort()  # the others would wait for this one
        raise


def at_once(heaviest: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Lab -> (seconds of its heaviest cell, megabytes), all at the same time.

    Raises `RuntimeError` where a lab fails.
    """
    context = multiprocessing.get_context("spawn")
    together, results = context.Barrier(len(heaviest)), context.Queue()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        stop = Path(folder) / "stop"
        runs = [context.Process(target=beside, args=(lab, cell, together, stop, results))
                for lab, cell in heaviest.items()]
        for run in runs:
            run.start()
        try:
            for _ in runs:
                lab, *figures = results.get(timeout=3600)
                if len(figures) == 1:
                    raise RuntimeError(f"{lab}: {figures[0]}")
                found[lab] = tuple(figures)
        except queue.Empty:
            raise RuntimeError(f"only {sorted(found)} ended") from None
        finally:
            stop.touch()
            for run in runs:
                run.join(30)
                run.kill()
    return found


def main() -> int:
    """Measure, print the table, keep the figures; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("labs", nargs="*", help="names of labs; all by default")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="kernels")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    labs = arguments.labs or COURSE.labs
    found: dict[str, dict[str, Any]] = {}
    missed = []
    print(f"{'lab':28} {'heaviest cell':24} {'quiet s':>7} {'full s':>7} {'':6} {'quiet MB':>8} "
          f"{'full MB':>8}")
    for start in range(0, len(labs), arguments.at_once):
        group = labs[start:start + arguments.at_once]
        # A last group that is small is filled up with labs that were measured before.
        group += [lab for lab in labs if lab not in group][:arguments.at_once - len(group)]
        for lab in group:
            if lab not in found:
                found[lab] = alone(lab)
                print(f"{lab:28} {found[lab]['cell']:24} {found[lab]['quiet']:7.2f}", flush=True)
        for lab, (seconds, megabytes) in at_once({lab: found[lab]["cell"] for lab in group}).items():
            one = found[lab]
            one["full"] = round(max(seconds, one.get("full", 0.0)), 2)
            one["full_mb"] = round(max(megabytes, one.get("full_mb", 0.0)))
        for lab in group:
            one = found[lab]
            times = one["full"] / one["quiet"]
            print(f"{lab:28} {one['cell']:24} {one['quiet']:7.2f} {one['full']:7.2f} {times:5.1f}x "
                  f"{one['quiet_mb']:8} {one['full_mb']:8}", flush=True)
        arguments.out.parent.mkdir(exist_ok=True)
        figures = {"cores": os.cpu_count(), "kernels": arguments.at_once, "labs": found}
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    for lab, one in found.items():
        if (times := one["full"] / one["quiet"]) > SLOWER:
            missed.append(f"{lab}: {times:.1f} times as long beside {arguments.at_once - 1} other kernels")
        if (most := max(one["quiet_mb"], one["full_mb"])) > MOST_MB:
            missed.append(f"{lab}: {most} MB")
    print("\n".join(["missed:", *missed]) if missed else "both bars are met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
