"""A large class: Dask workers grade it into PostgreSQL; a worker, the scheduler and the database are killed.

    python -m ci.bench_many 2000                              the figures go to ci/out/many.json
    python -m ci.bench_many 40 --lab lab02-denoising-step     what a real lab costs

PostgreSQL's programs (initdb, postgres) must be on the PATH. Three classes are graded, each into a database
of its own:

- a quarter of the learners, undisturbed: what a thousand submissions cost, and the pace of a small class;
- all of them. A worker, then the scheduler, then the database is killed (SIGKILL) in the middle. The command
  is given again until nothing is left. The pace of the last stretch tells whether it is linear;
- some of them by two graders at once, in two copies of the course with one database.

Afterwards every learner must have every mark once, and the one that `inferlab grade` gives on one machine
with SQLite. A second grader in the same course must be refused.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import psutil
import sqlalchemy

from ci.servers import Cluster, Failed, Postgres
from inferlab.grading.authoring.build import build_lab
from inferlab.grading.course import Course
from inferlab.grading.demo import solved
from inferlab.grading.gradebook.batch import grade_lab
from inferlab.grading.gradebook.database import Gradebook
from inferlab.grading.running.host import end_hosts

ROOT = Path(__file__).resolve().parents[1]
FIXTURE = ROOT / "tests" / "course" / "fixture"
OUT = Path(__file__).parent / "out" / "many.json"
LINEAR = 1.25
"""The pace of the large class's end may be at most so many times that of the small class."""
MOST_TWICE = 40
"""Learners of the class that two graders grade at once; each grader runs all of them."""
PATIENCE = 150.0
"""Seconds after which a batch whose scheduler is gone must have ended by itself."""
PROGRESS = re.compile(r"graded (\d+) of (\d+),.*: (\w+)\)$")


# -- the class -------------------------------------------------------------------------------------
@dataclass
class Class:
    """A course in which a class has handed in one lab.

    Attributes:
        kinds: learner -> which of the kinds of work they handed in.
    """

    course: Course
    lab: str
    kinds: dict[str, int] = field(default_factory=dict)


def kinds_of_work(course: Course, lab: str) -> list[str]:
    """Notebooks of a learner "NAME": all right, and for each exercise one that leaves it undone."""
    cells = nbformat.read(course.source(lab), as_version=4).cells
    exercises = [name for cell in cells if (name := cell.metadata.get("inferlab", {}).get("exercise"))]
    undone = [{name: "raise NotImplementedError"} for name in exercises]
    return [nbformat.writes(solved(course, lab, "NAME", instead)) for instead in ({}, *undone)]


def make_class(root: Path, lab: str, learners: int) -> Class:
    """A course in a new folder `root`, and what so many learners handed in."""
    if (FIXTURE / "notebooks" / lab).is_dir():
        shutil.copytree(FIXTURE, root)
    else:
        shutil.copytree(ROOT / "notebooks" / lab, root / "notebooks" / lab)
    shutil.copy(ROOT / "nbgrader_config.py", root)
    course = Course.open(root)
    build_lab(course, lab)
    made, kinds = Class(course, lab), kinds_of_work(course, lab)
    for number in range(learners):
        learner = f"learner-{number:05d}"
        made.kinds[learner] = number % len(kinds)
        path = course.submitted(learner, lab)
        path.parent.mkdir(parents=True)
        path.write_text(kinds[number % len(kinds)].replace("NAME", learner), "utf-8")
    return made


def right_marks(root: Path, lab: str) -> list[dict[str, float]]:
    """Check -> points for each kind of work, as one machine gives them without Dask and PostgreSQL.

    Raises `Failed` where the work that is all right does not have full marks, or another has as many.
    """
    small = make_class(root, lab, 0)
    for number, text in enumerate(kinds_of_work(small.course, lab)):
        path = small.course.submitted(f"kind-{number:02d}", lab)
        path.parent.mkdir(parents=True)
        path.write_text(text, "utf-8")
    rows = grade_lab(small.course, lab)
    end_hosts()
    if rows[0].points != rows[0].maximum or any(row.points is None or row.points >= row.maximum
                                                for row in rows[1:]):
        raise Failed(f"the sample work has {[(row.points, row.problem) for row in rows]}")
    return [{name: points or 0.0 for name, points in row.checks.items()} for row in rows]


def marks_are_right(made: Class, url: str, right: list[dict[str, float]]) -> None:
    """Raises `Failed` unless every learner has every mark once, and the right one."""
    with Gradebook(url) as gradebook:
        marks = gradebook.marks(made.lab)
        count = sqlalchemy.text("select count(*) from submitted_assignment")
        submitted = gradebook.db.execute(count).scalar()
    counts = Counter((mark.learner, mark.check.removeprefix("check-")) for mark in marks)
    wanted = {(learner, check): points for learner, kind in made.kinds.items()
              for check, points in right[kind].items()}
    wrong = [mark for mark in marks
             if mark.auto != wanted.get((mark.learner, mark.check.removeprefix("check-")))]
    lost = wanted.keys() - counts.keys()
    twice = [pair for pair, count in counts.items() if count > 1]
    if lost or twice or wrong or submitted != len(made.kinds):
        raise Failed(f"{len(lost)} marks are lost, {len(twice)} are there twice, {len(wrong)} are wrong; "
                     f"{submitted} submissions of {len(made.kinds)}: {[*lost, *twice, *wrong][:3]}")


# -- grading ---------------------------------------------------------------------------------------
class Batch:
    """`inferlab grade` as a process of its own. `seen` has (time, done, state) of every row so far."""

    def __init__(self, made: Class, cluster: Cluster, url: str) -> None:
        line = [sys.executable, "-m", "inferlab.cli", "grade", made.lab, "--json", "--course",
                str(made.course.root), "--scheduler", cluster.address, "--db", url]
        self.seen: list[tuple[float, int, str]] = []
        self.told: list[str] = []
        self.began = time.monotonic()
        self.answer = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(line, stdout=self.answer, stderr=subprocess.PIPE, text=True, cwd="/")
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stderr or ():
            if found := PROGRESS.search(line.rstrip()):
                self.seen.append((time.monotonic(), int(found[1]), found[3]))
            self.told.append(line)

    @property
    def done(self) -> int:
        """How many rows are finished, those that were kept included."""
        return self.seen[-1][1] if self.seen else 0

    def end(self, seconds: float) -> tuple[int, Any]:
        """Wait for the end; returns the exit code and the JSON answer. Raises `Failed` if it takes longer."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failed(f"a batch did not end within {seconds:g} s: {''.join(self.told[-3:])}") from None
        self.reader.join()
        with self.answer:
            self.answer.seek(0)
            text = self.answer.read()
        try:
            answer = json.loads(text)
        except ValueError:
            answer = {}
        if not answer or "a fault of inferlab" in text:
            raise Failed(f"a batch ended with {code}: {text[-500:]} {''.join(self.told[-20:])}")
        return code, answer

    def pace(self) -> float:
        """Seconds a submission, from the first that this batch ran to the last; 0 where it ran only one."""
        times = [moment for moment, _, state in self.seen if state == "graded"]
        return (times[-1] - times[0]) / max(len(times) - 1, 1)


def cpu_seconds() -> float:
    """Processor seconds that this machine has spent on anything."""
    times = psutil.cpu_times()
    return times.user + times.nice + times.system + times.irq + times.softirq


def undisturbed(made: Class, cluster: Cluster, url: str) -> dict[str, Any]:
    """Grade a class; returns what it took."""
    before, batch = cpu_seconds(), Batch(made, cluster, url)
    code, rows = batch.end(3600)
    spent = cpu_seconds() - before
    if code or {row["state"] for row in rows} != {"graded"}:
        raise Failed(f"exit code {code}: {Counter(row['state'] for row in rows)}")
    times = [moment - batch.began for moment, _, _ in batch.seen]
    return {"learners": len(rows), "seconds": round(times[-1], 1), "first_mark_s": round(times[0], 1),
            "seconds_a_submission": round(batch.pace(), 4),
            "p95_s": round(times[round(0.95 * (len(times) - 1))], 1),
            "cpu_seconds_a_submission": round(spent / len(rows), 3),
            "cpu_hours_a_thousand": round(spent / len(rows) / 3.6, 3),
            "worker_mb": round(cluster.megabytes())}


def disturbed(made: Class, cluster: Cluster, server: Postgres, url: str,
              faults: tuple[str, ...] = ("worker", "scheduler", "database"),
              second: bool = True) -> dict[str, Any]:
    """Grade a class, kill one thing after another, and give the command again until nothing is left.

    With `second`, another grader tries to begin meanwhile, and must be refused.
    """
    waiting, batches = list(faults), []
    story: list[str] = []
    began = time.monotonic()
    for _ in range(2 * len(faults) + 2):
        batch = Batch(made, cluster, url)
        batches.append(batch)
        gone = ""
        while batch.process.poll() is None and gone != "scheduler":
            time.sleep(0.05)
            share = (len(faults) - len(waiting) + 1) / (len(faults) + 1.5)
            if not waiting or batch.done < share * len(made.kinds) or batch.seen[-1][2] != "graded":
                continue
            if second:
                second_is_refused(made, cluster, url)
                second = False
            gone = waiting.pop(0)
            story.append(f"{gone} killed at {batch.done}")
            if gone == "worker":
                cluster.kill_worker()
                cluster.start_worker()
            elif gone == "scheduler":
                cluster.kill_scheduler()
            else:
                server.kill()
                time.sleep(2)
                server.start()
        killed = time.monotonic()
        code, answer = batch.end(PATIENCE if gone == "scheduler" else 7200)
        if gone == "scheduler":
            story.append(f"the batch ended {time.monotonic() - killed:.0f} s later")
            cluster.kill()
            cluster.start()
        states = Counter(row["state"] for row in answer) if isinstance(answer, list) else answer
        story.append(f"exit code {code}: {dict(states)}")
        if code == 0 and not waiting:
            break
    else:
        raise Failed(f"it never ends: {story}")
    ran = sum(state == "graded" for batch in batches for _, _, state in batch.seen)
    return {"learners": len(made.kinds), "seconds": round(time.monotonic() - began, 1), "story": story,
            "rows_graded": ran, "kept_in_the_last_batch": sum(state == "kept" for _, _, state in batch.seen),
            "last_stretch": sum(state == "graded" for _, _, state in batch.seen),
            "seconds_a_submission": round(batch.pace(), 4)}


def second_is_refused(made: Class, cluster: Cluster, url: str) -> None:
    """Raises `Failed` unless a second grader in the course that is being graded is told so."""
    code, answer = Batch(made, cluster, url).end(60)
    if code != 2 or "another batch" not in answer["error"]:
        raise Failed(f"a second batch was not refused: {code}, {answer}")


def two_at_once(made: Class, copy: Path, cluster: Cluster, url: str) -> dict[str, Any]:
    """Two graders, two copies of the course, one database, at the same time. Raises `Failed` if one fails."""
    shutil.copytree(made.course.root, copy)
    other = Class(Course.open(copy), made.lab, made.kinds)
    ends = [batch.end(3600) for batch in [Batch(made, cluster, url), Batch(other, cluster, url)]]
    states = [dict(Counter(row["state"] for row in rows)) if code == 0 else rows for code, rows in ends]
    if any(code for code, _ in ends):
        raise Failed(f"two graders at once: {str(states)[:1000]}")
    return {"learners": len(made.kinds), "states": states}


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A folder that PostgreSQL's own user can reach."""
    with tempfile.TemporaryDirectory(prefix="inferlab-many-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def main() -> int:
    """Grade the three classes, keep the figures; 1 if they are not linear."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("learners", type=int, nargs="?", default=2000)
    parser.add_argument("--lab", default="lab90-fixture", help="default: the small lab of the tests")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only-cost", action="store_true", help="one undisturbed class of LEARNERS, no more")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    figures: dict[str, Any] = {"lab": options.lab, "cores": os.cpu_count(), "workers": options.workers}

    def tell(name: str, found: dict[str, Any]) -> None:
        figures[name] = found
        print(f"{name}: {json.dumps(found, indent=1)}", flush=True)

    with workplace() as folder, Postgres(folder / "postgres") as server, Cluster(options.workers) as cluster:
        right = right_marks(folder / "right", options.lab)
        small = options.learners if options.only_cost else options.learners // 4
        quarter = make_class(folder / "quarter", options.lab, small)
        url = server.database("quarter")
        tell("undisturbed", undisturbed(quarter, cluster, url))
        marks_are_right(quarter, url, right)
        # Everything has been run, and this database has no mark yet: this is what recording takes.
        url = server.database("recording")
        tell("recording", undisturbed(quarter, cluster, url))
        marks_are_right(quarter, url, right)
        if not options.only_cost:
            whole = make_class(folder / "whole", options.lab, options.learners)
            url = server.database("whole")
            tell("disturbed", disturbed(whole, cluster, server, url))
            marks_are_right(whole, url, right)
            two = make_class(folder / "two", options.lab, min(options.learners // 8, MOST_TWICE))
            url = server.database("two")
            tell("two_graders", two_at_once(two, folder / "copy", cluster, url))
            marks_are_right(two, url, right)
            figures["large_over_small"] = round(figures["disturbed"]["seconds_a_submission"]
                                                / figures["undisturbed"]["seconds_a_submission"], 3)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    print(json.dumps(figures, indent=1))
    if figures.get("large_over_small", 0.0) > LINEAR:
        print(f"missed: a submission takes {figures['large_over_small']} times as long in the large class")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
