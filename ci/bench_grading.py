"""Times grading a class: stock `nbgrader autograde` against `inferlab grade` with the sandbox on, identical cells on both sides.

    python -m ci.bench_grading [--lab LAB] [--students 30] [--stock-students 30] [--workers 2] [--growth 300]

Both grade the same handed-in notebooks on the same machine in one run, one after the other. Demonstration cells, which we skip and
stock nbgrader would run, are left out of the notebooks, so that the same cells run. Results go to ci/out/grading.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean, median

import nbformat
from nbgrader.api import Gradebook

from ci.memory import Memory, shared_once
from inferlab.grading.authoring.build import build_source, generate_assignment, write_notebook
from inferlab.grading.course import Course
from inferlab.grading.gradebook.batch import grade_lab
from inferlab.grading.running.host import end_hosts, shared_host
from inferlab.grading.stubs import released_view

ROOT = Path(__file__).resolve().parents[1]
STOCK_CONFIG = """
c = get_config()
c.GenerateAssignment.preprocessors = {release}
c.Execute.timeout = 600
"""


class BenchCourse:
    """A course folder with one lab, without its demonstrations, and a class that handed in different work."""

    def __init__(self, root: Path, lab: str, stock: bool):
        from inferlab.grading.authoring.release_steps import RELEASE_PREPROCESSORS

        self.root, self.lab, self.db = root, lab, f"sqlite:///{root / 'gradebook.db'}"
        (root / "notebooks").mkdir(parents=True)
        shutil.copytree(ROOT / "notebooks" / lab, root / "notebooks" / lab)
        if stock:
            (root / "nbgrader_config.py").write_text(STOCK_CONFIG.format(release=RELEASE_PREPROCESSORS))
        else:
            shutil.copy(ROOT / "nbgrader_config.py", root)
        self.course = Course.open(root)
        source = build_source(self.course, lab, strict=False)
        source.cells = [c for c in source.cells if not {"demo", "bootstrap"} & set(c.metadata.get("tags", []))]
        self.source = source
        write_notebook(source, root / "source" / lab / f"{lab}.ipynb")
        self.released = generate_assignment(self.course, lab, root, self.db)

    def hand_in(self, students: int) -> None:
        """Two in three solve everything; the others leave one exercise undone, another one each time."""
        released = nbformat.read(self.released, as_version=4)
        solutions = {c.id: c.source for c in self.source.cells}
        stubs = {c["id"]: c["source"] for c in released_view(self.source)["cells"]}
        answers = [c.id for c in self.source.cells if c.metadata.get("nbgrader", {}).get("solution")]
        for number in range(students):
            notebook = nbformat.from_dict(released)
            undone = answers[number % len(answers)] if number % 3 == 2 else ""
            for cell in notebook.cells:
                if cell.id in answers:
                    cell.source = stubs[cell.id] if cell.id == undone else solutions[cell.id]
                elif "parameters" in cell.metadata.get("tags", []):
                    cell.source = cell.source.replace('LEARNER = ""', f'LEARNER = "learner {number}"')
            write_notebook(notebook, self.root / "submitted" / f"s{number:03d}" / self.lab / f"{self.lab}.ipynb")

    def scores(self) -> dict[str, float]:
        with Gradebook(self.db) as gradebook:
            return {s.student.id: round(s.score, 4) for s in gradebook.assignment_submissions(self.lab)}


def time_stock(root: Path, lab: str, students: int) -> tuple[dict, dict]:
    """Stock nbgrader, one process for the whole class, as an instructor would run it."""
    bench = BenchCourse(root, lab, stock=True)
    bench.hand_in(students)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    began = time.monotonic()
    done = subprocess.run(["nbgrader", "autograde", lab, "--db", bench.db], cwd=root, env=environment,
                          capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    if done.returncode != 0:
        raise RuntimeError(f"stock nbgrader failed:\n{done.stderr[-3000:]}")
    return {"students": students, "seconds": round(seconds, 1), "per_submission": round(seconds / students, 2)}, bench.scores()


def time_ours(root: Path, lab: str, students: int, workers: int) -> tuple[dict, dict]:
    """`inferlab grade`, from nothing started to everything in the gradebook."""
    bench = BenchCourse(root, lab, stock=False)
    bench.hand_in(students)
    memory = Memory(os.getpid(), 1.0, shared_once)
    memory.start()
    began = time.monotonic()
    host = shared_host("sandbox")
    host.start()
    started = time.monotonic() - began
    rows = grade_lab(bench.course, lab, workers=workers)
    seconds = time.monotonic() - began
    memory.over.set()
    memory.join()
    end_hosts()
    bad = [row for row in rows if row.state != "graded"]
    if bad:
        raise RuntimeError(f"{len(bad)} submissions were not graded: {bad[0]}")
    runs = [json.loads(path.read_text()) for path in (root / ".grading").glob("*.json")]
    cells = mean(r["learner_seconds"] for r in runs)
    tests = mean(r["test_seconds"] for r in runs)
    share = (seconds - started) * workers / students  # what a submission costs one worker, all told
    return {
        "students": students, "workers": workers, "seconds": round(seconds, 1), "start_seconds": round(started, 1),
        "per_submission": round(seconds / students, 2), "worker_seconds_a_submission": round(share, 2),
        "learners_cells": round(cells, 2), "tests": round(tests, 2),
        "overhead_a_submission": round(max(share - cells - tests, 0.0), 2),
        "kernel_ready_ms": round(1000 * median(r["ready_seconds"] for r in runs), 1),
        "most_memory_mb": round(memory.most),
    }, bench.scores()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lab", default="lab02-denoising-step")
    parser.add_argument("--students", type=int, default=30)
    parser.add_argument("--stock-students", type=int, help="how many of them stock nbgrader grades (all)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--growth", type=int, default=0, help="grade a class of this size too")
    parser.add_argument("--out", type=Path, default=ROOT / "ci" / "out" / "grading.json")
    options = parser.parse_args()
    stock_students = options.stock_students or options.students
    report: dict = {"lab": options.lab, "machine": platform.platform(), "cores": os.cpu_count(),
                    "load_before": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory(prefix="inferlab-bench-") as folder:
        base = Path(folder)
        print(f"inferlab grade, {options.students} submissions ...", flush=True)
        report["ours"], ours = time_ours(base / "ours", options.lab, options.students, options.workers)
        print(json.dumps(report["ours"], indent=1), flush=True)
        if options.growth:
            print(f"inferlab grade, {options.growth} submissions ...", flush=True)
            report["growth"], _ = time_ours(base / "growth", options.lab, options.growth, options.workers)
            print(json.dumps(report["growth"], indent=1), flush=True)
        print(f"stock nbgrader autograde, {stock_students} submissions ...", flush=True)
        report["stock"], stock = time_stock(base / "stock", options.lab, stock_students)
        print(json.dumps(report["stock"], indent=1), flush=True)
    report["ratio"] = round(report["stock"]["per_submission"] / report["ours"]["per_submission"], 2)
    report["same_marks"] = f"{sum(ours[s] == stock[s] for s in stock)} of {len(stock)}"
    report["load_after"] = round(os.getloadavg()[0], 1)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"\n{options.lab}, {options.students} submissions, {options.workers} workers: {report['ratio']} times stock nbgrader "
          f"({report['ours']['per_submission']} against {report['stock']['per_submission']} s a submission); "
          f"overhead {report['ours']['overhead_a_submission']} s a submission; same marks: {report['same_marks']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
