"""Collects again, where a notebook of the learner's lies in `submitted/` already: which of the two counts.

Where it is the same file, its time stays or becomes earlier; only a platform's list can make it later. What
lies there may also have been put there or changed by hand. It is kept then, in `collected/`.
"""

import json
from datetime import datetime
from typing import Any

from inferlab.grading.course import Course, write_whole
from inferlab.grading.submission.submission import digest_of, placed
from inferlab.grading.submission.submitted_folders import write_stamp

from .kept import keep_unknown
from .report import Candidate


def compared(course: Course, latest: Candidate, note: dict[str, Any]) -> dict[str, Any] | None:
    """What is to be noted of the latest file, which is then laid out; `None` if what lies there stays.

    Args:
        note: what would be noted of it if nothing lay there.
    """
    line, learner, lab = latest.line, latest.line.learner, latest.line.lab
    target, path = course.submitted(learner, lab), course.placed(learner, lab)
    state = placed(course, learner, lab)
    same = state.get("sha256") == note["sha256"]
    received, listed = _time_that_counts(latest, state, same)
    overrules = listed and not state.get("listed")  # a list's time and a file's do not compare
    if state and not same and not overrules and datetime.fromisoformat(state["received"]) > received:
        line.status = "older"
        line.notes.append(f"kept, not used: the one collected before, of {state['received']}, is later")
        return None
    timely = same and (state["received"], state.get("listed", False)) == (received.isoformat(), listed)
    latest.count(received, "unchanged" if timely else "collected")
    platforms = state.get("platforms", {}) | latest.platform
    note |= {"received": received.isoformat(), "listed": listed, "platforms": platforms}
    if timely and state.get("release") == note["release"]:
        if platforms != state.get("platforms", {}):
            write_whole(path, json.dumps(state | {"platforms": platforms}))
        return None
    if digest_of(target.read_bytes()) != state.get("placed"):
        changed = "changed by hand since it was collected" if state else "not collected"
        if same:
            line.notes.append(f"the notebook in submitted/ was {changed}: it stays as it is")
            note |= {"placed": state.get("placed", ""), "release": state.get("release", "")}
            write_stamp(target, received)
            write_whole(path, json.dumps(note))
            return None
        kept = keep_unknown(course, learner, lab, target)
        line.notes.append(f"the notebook that lay in submitted/ was {changed}: kept as "
                          f"{kept.relative_to(course.root)}")
    if state and not same:
        line.notes.append(f"replaces the one of {state['received']}")
    elif timely:
        line.notes.append("the lab was released again: laid out by the new release")
    return note


def _time_that_counts(latest: Candidate, state: dict[str, Any], same: bool) -> tuple[datetime, bool]:
    """When the latest file was handed in, and whether a platform's list says so."""
    if latest.listed is None and same:
        before, listed = datetime.fromisoformat(state["received"]), state.get("listed", False)
        return (before if listed else min(before, latest.own)), listed
    return latest.received, latest.listed is not None
