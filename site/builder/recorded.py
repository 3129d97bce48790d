"""Runs the released notebooks while the site is built, and keeps what their given cells put out.

One process imports the libraries and the bundled weights, as grading does, and forks a child for each
notebook; two run at a time. No answer is in a released notebook, so none can come out of it: what waits for
a learner's answer fails, and has no output.
"""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import nbformat

import inferlab

from . import SITE
from .digests import digest

PACKAGE = Path(inferlab.__file__).parent
ENGINE = ("trace", "models", "weights", "lab")
AT_ONCE = 2
CELL_SECONDS, LAB_SECONDS = 25, 300
"""Of processor time that a cell may take; of time for a whole notebook."""
LONGEST = ("lab20", "lab25", "lab08", "lab16", "lab21", "lab10", "lab03", "lab09")
"""Notebooks that take the most time begin first."""
NEVER = ("_dynamo", "submit()")
"""What is not run: compiling takes a minute, and there is nothing to hand in."""
MOST = 400_000
"""Bytes that a cell may put out."""

TITLE, STRIP = "text/x-title", "application/x-strip"
"""A figure's title; its pictures with their labels."""

Outputs = dict[str, list[dict[str, Any]]]
"""A cell's id -> its outputs, in nbformat's form."""


class Recording:
    """The outputs of these notebooks: running in the background from `begin` on, or kept from an earlier
    build of the same notebooks with the same engine."""

    def __init__(self, cache: Path, releases: dict[str, Path]) -> None:
        self.cache, self.releases = cache / "recorded", releases

    @cached_property
    def kept(self) -> dict[str, Path]:
        """Lab -> the file of its outputs."""
        engine = digest(Path(__file__), *(PACKAGE / part for part in ENGINE))
        return {
            lab: self.cache / f"{lab}-{digest(path, also=engine)}.json"
            for lab, path in self.releases.items()
        }

    def begin(self) -> None:
        """Start to run what is not kept yet."""
        self.cache.mkdir(parents=True, exist_ok=True)
        missing = [f"{self.releases[lab]}={path}" for lab, path in self.kept.items() if not path.exists()]
        self.running = None
        if missing:
            self.running = subprocess.Popen([sys.executable, "-m", "builder.recorded", *missing], cwd=SITE)

    def outputs(self) -> dict[str, Outputs]:
        """Lab -> what its cells put out; waits until all have run.

        Raises:
            RuntimeError: a notebook did not come to its end.
        """
        if self.running and self.running.wait():
            raise RuntimeError("a released notebook could not be run; its reason stands above")
        return {lab: json.loads(path.read_text("utf-8")) for lab, path in self.kept.items()}


def waits(cell: nbformat.NotebookNode) -> bool:
    """Whether a cell belongs to the learner, or looks at what the learner wrote."""
    told = cell.metadata.get("inferlab", {})
    return bool({"exercise", "explain", "check"} & set(told)) or "bootstrap" in cell.metadata.get("tags", [])


def is_run(cell: nbformat.NotebookNode) -> bool:
    """Whether a cell is run at all. An exercise is: what comes later needs its names to be there."""
    told = cell.metadata.get("inferlab", {})
    skipped = waits(cell) and "exercise" not in told
    return cell.cell_type == "code" and not skipped and not any(word in cell.source for word in NEVER)


def record(notebook: Path, kept: Path, shell: Any, recorder: Any) -> None:
    """Run a notebook's cells in this process, and write what they put out."""
    from inferlab.lab.plots import style

    style._show = _show_parts
    signal.signal(signal.SIGPROF, _out_of_time)
    shell.start_loop()
    outputs: Outputs = {}
    for cell in nbformat.read(notebook, as_version=4).cells:
        if not is_run(cell):
            continue
        recorder.begin(MOST)
        signal.setitimer(signal.ITIMER_PROF, CELL_SECONDS)
        done = shell.run_cell(cell.source, store_history=True)
        signal.setitimer(signal.ITIMER_PROF, 0)
        put_out = recorder.end()
        if done.success and not waits(cell) and put_out and not recorder.cut:
            outputs[cell.id] = put_out
    new = kept.with_suffix(".new")
    new.write_text(json.dumps(outputs, ensure_ascii=False), "utf-8")
    new.rename(kept)


def _out_of_time(*_: object) -> None:
    raise TimeoutError("the cell took too long")


def _show_parts(fig: Any) -> None:
    """Show a figure in parts that a page can set in its own type and colors: its title in words, and pictures
    by themselves or the rest as SVG."""
    from IPython.display import publish_display_data
    from matplotlib import pyplot as plt

    from inferlab.lab.plots.style import alt_text, compact_svg

    shown = {"text/plain": alt_text(fig), TITLE: _title_of(fig)}
    axes = [axis for axis in fig.axes if axis.get_visible() and axis.has_data()]
    if all(len(axis.images) == 1 and not (axis.lines or axis.collections) for axis in axes):
        strip = []
        for axis in axes:
            picture = axis.images[0]
            drawn = io.BytesIO()
            plt.imsave(drawn, picture.to_rgba(picture.get_array(), bytes=True), format="png")
            label = axis.get_title() or axis.get_title("left")
            strip.append({"label": label, "png": base64.b64encode(drawn.getvalue()).decode()})
        shown[STRIP] = json.dumps(strip)
    else:
        drawn = io.StringIO()
        with plt.rc_context({"svg.hashsalt": "inferlab", "svg.fonttype": "none"}):
            fig.savefig(drawn, format="svg", bbox_inches="tight", metadata={"Date": None}, dpi=144)
        shown["image/svg+xml"] = compact_svg(drawn.getvalue())
    publish_display_data(shown)


def _title_of(fig: Any) -> str:
    """A figure's title, taken off it: that over all, or that of its only axes."""
    if title := fig.get_suptitle():
        fig.suptitle("")
        return title
    if len(fig.axes) != 1:
        return ""
    title = fig.axes[0].get_title("left") or fig.axes[0].get_title()
    for where in ("left", "center"):
        fig.axes[0].set_title("", loc=where)
    return title


def _run_all(jobs: list[tuple[Path, Path]]) -> bool:
    """Fork a child for every notebook, two at a time; returns whether all came to their end."""
    from inferlab.grading.sandbox import warm

    warm.warm()  # before anything imports numpy, whose threads would not survive a fork
    from inferlab.grading.sandbox.shell import make_shell

    shell, recorder = make_shell()
    jobs = sorted(jobs, key=lambda job: (not job[0].stem.startswith(LONGEST), job[0].stem))
    running: dict[int, tuple[str, float]] = {}
    well = True
    while jobs or running:
        while jobs and len(running) < AT_ONCE:
            notebook, kept = jobs.pop(0)
            pid = os.fork()
            if pid == 0:
                _child(partial(record, notebook, kept, shell, recorder))
            running[pid] = (notebook.stem, time.monotonic())
        pid, code = os.waitpid(-1, os.WNOHANG)
        if pid:
            lab, _ = running.pop(pid)
            well = well and code == 0
            if code:
                print(f"{lab} was not run to its end (status {code})", file=sys.__stderr__)
        for one, (_, began) in running.items():
            if time.monotonic() - began > LAB_SECONDS:
                os.kill(one, signal.SIGKILL)
        time.sleep(0.05)
    return well


def _child(work: Any) -> None:
    """Do the work in a folder of its own, and end without what a process does at its end."""
    code, folder = 1, tempfile.mkdtemp(prefix="inferlab-site-")
    try:
        os.chdir(folder)
        work()
        code = 0
    except BaseException as error:  # noqa: BLE001 - a fork must not return into its parent's code
        print(f"{type(error).__name__}: {error}", file=sys.__stderr__, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(code)


if __name__ == "__main__":
    pairs = (job.rsplit("=", 1) for job in sys.argv[1:])
    sys.exit(not _run_all([(Path(notebook), Path(kept)) for notebook, kept in pairs]))
