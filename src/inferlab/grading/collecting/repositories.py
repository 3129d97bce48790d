"""Takes a lab's notebook from each learner's Git repository, as it was at the learner's deadline.

Nothing of a repository is checked out and no hook or filter of it is run: its files are read as Git's
objects. The time is that of the commit, which is the learner's word: Git does not keep when a commit was
pushed.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from inferlab.grading.course import CourseError, in_utc
from inferlab.grading.platforms import IGNORED_NAMES, Heard
from inferlab.grading.roster import Roster
from inferlab.grading.submission.files import LINK, too_large
from inferlab.grading.tables import read_table
from inferlab.terminal import clean_name

from .incoming import MAX_FILE, Incoming

SECONDS = 300
"""How long one Git command may take."""
SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never", "-c", "protocol.https.allow=always",
        "-c", "protocol.ssh.allow=always", "-c", "protocol.file.allow=always")


class GitError(RuntimeError):
    """A repository cannot be used; the message says why."""


@dataclass(frozen=True)
class Repository:
    """One line of the list: whose it is, where it is, and the branch that counts ("" for its usual one)."""

    learner: str
    address: str
    branch: str = ""

    @property
    def shown(self) -> str:
        """The address without a password that it may have in it."""
        return clean_name(re.sub(r"//[^/@]*@", "//", self.address))


def read_list(path: Path, roster: Roster) -> list[Repository]:
    """The repositories in a CSV with the columns `id`, `repository` and perhaps `branch`.

    Raises `CourseError` for a line that cannot be used.
    """
    found: dict[str, Repository] = {}
    for where, row in read_table(path, ("id", "repository"), ("branch",)):
        learner, address = roster.resolve(row["id"]), row["repository"]
        if learner is None:
            raise CourseError(f"{where}: '{row['id']}' is not in the roster")
        if learner in found:
            raise CourseError(f"{where}: a second repository of {learner}")
        if not address or address.startswith("-"):
            raise CourseError(f"{where}: '{address}' is not a repository")
        branch = row.get("branch", "")
        if branch and not re.fullmatch(r"[\w][\w./-]*", branch):
            raise CourseError(f"{where}: '{branch}' is not a branch")
        found[learner] = Repository(learner, address, branch)
    return list(found.values())


def from_git(repositories: Iterable[Repository], lab: str, due: Callable[[str], datetime | None],
             on_learner: Callable[[str], None] = lambda learner: None) -> Iterator[Incoming]:
    """The lab's notebooks in these repositories, each as it was at its learner's time.

    Args:
        due: learner -> the time (UTC) whose last commit before it counts; `None` for the latest of all.
        on_learner: called with each learner before their repository is fetched.

    A repository that cannot be used gives an item that says why.
    """
    for repository in repositories:
        on_learner(repository.learner)
        with tempfile.TemporaryDirectory(prefix="inferlab-git-") as folder:
            try:
                yield from _notebooks(Path(folder) / "r.git", repository, lab, due(repository.learner))
            except GitError as error:
                yield Incoming(f"{repository.learner}: {repository.shown}", (), None, datetime.now(UTC),
                               str(error), entry=Heard("git", (repository.learner,)))


def _notebooks(clone: Path, repository: Repository, lab: str, due: datetime | None) -> Iterator[Incoming]:
    _git("clone", "--bare", "--quiet", *(["--branch", repository.branch] if repository.branch else []), "--",
         repository.address, str(clone))
    before = [f"--before={due.isoformat()}"] if due else []
    found = _git("-C", str(clone), "log", "-1", "--format=%H %cI", *before, "HEAD", "--").decode().split()
    if not found:
        latest = _git("-C", str(clone), "log", "-1", "--format=%cI", "HEAD", "--").decode().strip()
        why = f"no commit before {due:%Y-%m-%d %H:%M} UTC; the latest is of {latest}" if due else ""
        raise GitError(f"{why} (--until takes it)" if why else "it has no commit")
    commit, time = found[0], in_utc(datetime.fromisoformat(found[1]))
    said = Heard("git", (repository.learner,), time)
    entries = [_entry(line) for line in _git("-C", str(clone), "ls-tree", "-r", "-l", "-z", "--full-tree",
                                             commit).split(b"\0") if line]
    entries = [one for one in entries if ".ipynb" in PurePosixPath(one[3]).name.casefold()
               and not IGNORED_NAMES & {*PurePosixPath(one[3]).parts}]
    named = [one for one in entries if lab in one[3]] or entries
    if not named:
        raise GitError(f"no notebook in it at {time:%Y-%m-%d %H:%M} UTC")
    for mode, digest, size, name in named:
        label = f"{repository.learner}: {clean_name(name)} ({commit[:10]})"
        problem = LINK if mode == "120000" else too_large(size, MAX_FILE) if size > MAX_FILE else ""
        data = None if problem else _git("-C", str(clone), "cat-file", "blob", digest)
        yield Incoming(label, PurePosixPath(name).parts, data, time, problem, entry=said)


def _entry(line: bytes) -> tuple[str, str, int, str]:
    """(mode, digest, bytes, path) of a line of `git ls-tree -l`."""
    about, _, name = line.partition(b"\t")
    mode, _, digest, size = about.decode().split()
    return mode, digest, int(size) if size.isdecimal() else 0, name.decode("utf-8", "replace")


def _git(*arguments: str) -> bytes:
    """What a Git command prints. It asks for no password. Raises `GitError`."""
    try:
        done = subprocess.run(["git", *SAFE, *arguments], capture_output=True, check=False, timeout=SECONDS,
                              stdin=subprocess.DEVNULL,
                              env=os.environ | {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true",
                                                "LC_ALL": "C"})
    except FileNotFoundError as error:
        raise GitError("git is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {arguments[0]} took more than {SECONDS} s") from error
    if done.returncode:
        lines = re.sub(r"//[^/@\s]*@", "//", done.stderr.decode("utf-8", "replace")).strip().splitlines()
        raise GitError(f"it cannot be read: {clean_name(lines[-1] if lines else f'code {done.returncode}')}")
    return done.stdout
