"""Grades the one submission in Gradescope's container and writes `results.json`.

What is wrong with a submission is said there, and it gets no points. What is wrong with the autograder ends
the process with an error and no results, so that Gradescope says that it failed and nobody gets a wrong
grade.
"""

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

from inferlab.grading.collecting.identify import which_lab
from inferlab.grading.collecting.incoming import incoming
from inferlab.grading.course import write_whole
from inferlab.grading.notebook import load
from inferlab.grading.running.host import Host
from inferlab.grading.sandbox import landlock
from inferlab.grading.sandbox.limits import Limits
from inferlab.grading.sandbox.sandbox import NoSandbox, what_is_missing, what_users_lack
from inferlab.grading.submission.files import UnreadableError
from inferlab.grading.submission.submission import CourseLab, Submission, digest_of, read
from inferlab.lab.checks.checklist import Part
from inferlab.terminal import clean_name

IN_REVIEW = "A person will look at this. The points may change."
CLOSED = ("source", "submission", "results", "submission_metadata.json")
"""What of Gradescope's folder no learner's code may read."""


class SubmissionError(ValueError):
    """What was handed in cannot be graded; the message is for the learner."""


def main(folder: Path) -> int:
    """Grade the submission in Gradescope's folder (`/autograder`); returns the exit code."""
    close_files(folder)
    settings = json.loads((folder / "source" / "settings.json").read_text("utf-8"))
    source = load(folder / "source" / "lab.ipynb")
    mode = isolation([folder / "source" / name for name in ("lab.ipynb", "settings.json")])
    lab = CourseLab.of(source, Limits(**settings["limits"]), mode)
    try:
        submission = find_submission(folder / "submission", lab)
    except SubmissionError as error:
        results = refused(lab, str(error), settings["visibility"])
    else:
        with Host(mode) as host:
            results = results_of(lab, submission, host.run(submission.job), settings["visibility"])
        print(f"LEARNER is '{clean_name(submission.job['learner'])}'; handed in by {_submitters(folder)}")
    (folder / "results").mkdir(exist_ok=True)
    write_whole(folder / "results" / "results.json", json.dumps(results, indent=1, ensure_ascii=False))
    return 0


def close_files(folder: Path) -> None:
    """Take the tests, the submission and the results from everybody but root. Raises `OSError`."""
    for name in CLOSED:
        path = folder / name
        if path.exists():
            os.chmod(path, stat.S_IRWXU if path.is_dir() else stat.S_IRUSR | stat.S_IWUSR)


def isolation(closed: list[Path]) -> str:
    """How learners' code is kept apart here: in namespaces where there are any, otherwise as another user.

    Raises `NoSandbox` where neither can be done, or where another user can read one of the `closed` files.
    """
    missing = what_is_missing()
    if not missing:
        return "sandbox"
    if problem := what_users_lack(closed):
        raise NoSandbox(f"{missing}; {problem}")
    print(f"kept apart as another user ({missing}), with{'' if landlock.version() else 'out'} Landlock")
    return "users"


def find_submission(folder: Path, lab: CourseLab) -> Submission:
    """The one notebook of the lab among the files that were handed in.

    Raises `SubmissionError` where there is none, more than one, or none that can be read.
    """
    found: dict[str, tuple[str, bytes]] = {}
    problems = []
    for item in incoming(folder):
        if item.ignored:
            continue
        try:
            if item.data is None:
                raise UnreadableError(item.problem)
            raw = read(item.data)
        except UnreadableError as error:
            if item.parts[-1].lower().endswith((".ipynb", ".zip")):
                problems.append(f"{item.label}: {error}")
            continue
        if which_lab(raw, {lab.name: lab})[0]:
            found[digest_of(item.data)] = item.label, item.data
        else:
            problems.append(f"{item.label}: this is not {lab.name}")
    if not found:
        raise SubmissionError("\n".join([f"There is no notebook of {lab.name} in what you handed in.",
                                         *problems]))
    if len(found) > 1:
        names = ", ".join(sorted(label for label, _ in found.values()))
        raise SubmissionError(f"You handed in several notebooks of {lab.name}: {names}. Hand in one.")
    ((_, data),) = found.values()
    return Submission.of(data, lab)


def results_of(lab: CourseLab, submission: Submission, result: dict[str, Any],
               visibility: str) -> dict[str, Any]:
    """What `results.json` says of a graded submission."""
    tests = [_test(lab.checks[grade_id], check, visibility) for grade_id, check in result["checks"].items()]
    waiting = [test["name"] for test in tests if "in review" in test["tags"]]
    notes = [*submission.notes, *result["told"], *([result["died"]] if result["died"] else [])]
    if waiting:
        notes.append(f"A person will look at {', '.join(waiting)}. These points may change.")
    return {"output": "\n".join(map(clean_name, notes)), "execution_time": round(result["seconds"]),
            "visibility": visibility, "stdout_visibility": "hidden", "tests": tests,
            "extra_data": {"lab": lab.name, "release": lab.release, "tests": lab.digest,
                           "in_review": waiting}}


def _test(name: str, check: dict[str, Any], visibility: str) -> dict[str, Any]:
    """One check: its points, and each part with what was found."""
    lines = []
    for given in check["parts"]:
        part = Part(**given)
        lines += [f"{part.mark} {part.name}", *([f"    {part.message}"] if part.message else [])]
    if check["score"] is None:
        lines = ["This check did not work. Your instructor will look at it."]
    if check["review"]:
        lines.append(IN_REVIEW)
    score, points = check["score"] or 0.0, check["points"]
    return {"name": name, "score": score, "max_score": points,
            "status": "passed" if score == points else "failed", "output": "\n".join(lines),
            "visibility": visibility, "tags": ["in review"] if check["review"] else []}


def refused(lab: CourseLab, problem: str, visibility: str) -> dict[str, Any]:
    """What `results.json` says where nothing could be graded: no points, and the reason at once."""
    cells = {cell["metadata"]["nbgrader"]["grade_id"]: float(cell["metadata"]["nbgrader"]["points"])
             for cell in lab.source["cells"] if cell["metadata"].get("nbgrader", {}).get("grade")}
    return {"output": problem, "visibility": visibility, "stdout_visibility": "hidden",
            "tests": [{"name": "the notebook that you handed in", "score": 0.0, "max_score": 0.0,
                       "status": "failed", "output": problem, "visibility": "visible", "tags": []},
                      *({"name": name, "score": 0.0, "max_score": cells[grade_id], "status": "failed",
                         "output": "not graded", "visibility": visibility, "tags": []}
                        for grade_id, name in lab.checks.items())],
            "extra_data": {"lab": lab.name, "in_review": []}}


def _submitters(folder: Path) -> str:
    """Who handed in, as Gradescope says, for the instructor."""
    try:
        users = json.loads((folder / "submission_metadata.json").read_text("utf-8"))["users"]
        return ", ".join(clean_name(f"{user.get('name')} <{user.get('email')}>") for user in users)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "somebody whom Gradescope does not name"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
