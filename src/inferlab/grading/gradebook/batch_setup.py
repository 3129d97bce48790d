"""What a batch needs before it begins: the course's lock, limits, and where submissions are run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor

from inferlab.grading.course import Course, course_lock
from inferlab.grading.nbgrader_config import nbgrader_config
from inferlab.grading.sandbox.limits import Limits


class BatchError(RuntimeError):
    """The batch cannot begin; the message says why and what to do."""


def configured_limits(course: Course) -> Limits:
    """What one submission may use: `Limits`, with the changes that `c.SandboxExecute.limits` makes in the
    course's `nbgrader_config.py`.

    Raises `BatchError` for a limit that does not exist.
    """
    given = dict(nbgrader_config(course, course.root, course.gradebook_url).SandboxExecute.get("limits", {}))
    known = Limits().as_dict()
    if unknown := sorted(given.keys() - known.keys()):
        raise BatchError(f"c.SandboxExecute.limits has no limit called {', '.join(unknown)}; there is: "
                         f"{', '.join(known)}")
    return Limits(**given)


def only_one(course: Course) -> contextlib.AbstractContextManager[None]:
    """The course's lock: one batch at a time. Entering raises `BatchError` where another process holds it."""
    busy = BatchError("another batch is grading in this course; wait for it to end")
    return course_lock(course.results / "lock", busy)


@contextlib.contextmanager
def executor(workers: int, scheduler: str | None) -> Iterator[tuple[Executor, int, bool]]:
    """An executor, how many jobs to keep in flight, and whether it runs on this machine.

    Raises `BatchError` for a scheduler without workers, or one that ends in the middle.
    """
    if scheduler is None:
        pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="grading")
        try:
            yield pool, workers + 1, True
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C nothing new begins
        return
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise BatchError("--scheduler needs Dask: pip install distributed") from error

    with Client(scheduler, timeout=20) as client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise BatchError(f"the Dask scheduler at {scheduler} has no workers")
        try:
            yield client.get_executor(pure=False, retries=1), 2 * threads, False
        except Exception as error:
            if client.status == "running":
                raise
            raise BatchError(f"the Dask scheduler at {scheduler} does not answer any more. What was done is "
                             "kept: start it and its workers, and run the same command again") from error
