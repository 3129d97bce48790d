"""Writes the pages of feedback as the zip that a learning platform takes back.

Each learner's page lies under the name by which the platform finds its owner again, and nothing else is in
it.
"""

import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbformat.v4 import new_code_cell, new_notebook, new_output, writes

from inferlab.grading.course import Course
from inferlab.grading.platforms import PLATFORMS

from .grade_tables import known_by


@dataclass
class FeedbackZip:
    """Whose pages are in a zip, and learner -> why another's is not."""

    written: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def write_zip(course: Course, lab: str, platform: str, learners: Sequence[str], path: Path) -> FeedbackZip:
    """Write the pages of these learners, which must be there already, to a zip at `path`, whole or not at
    all.

    Raises `ValueError` for a platform that takes no zip.
    """
    about = PLATFORMS[platform]
    if not about.feedback:
        takers = [key for key, one in PLATFORMS.items() if one.feedback]
        raise ValueError(f"{about.name} takes no zip of feedback; these do: {', '.join(takers)}")
    known, done = known_by(course, lab, platform, learners), FeedbackZip()
    partial = path.with_name(f".{path.name}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for learner in learners:
                name, problem = _place(about.name, about.feedback, known, learner, lab)
                if problem:
                    done.left_out[learner] = problem
                    continue
                page = (course.root / "feedback" / learner / lab / f"{lab}.html").read_text("utf-8")
                archive.writestr(name, as_notebook(page) if name.endswith(".ipynb") else page)
                done.written.append(learner)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return done


def _place(platform: str, form: str, known: dict[str, dict[str, str]], learner: str,
           lab: str) -> tuple[str, str]:
    """Where a learner's page lies in the zip, or why it cannot be in it."""
    mine = known.get(learner)
    if mine is None or "prefix" not in mine:
        return "", f"not collected from {platform}: it would not know whose the page is"
    user = mine.get("user")  # a group's work has none
    others = [one for one, about in known.items() if user and about.get("user") == user and one != learner]
    if others:
        return "", f"{platform}'s number {user} is also that of {', '.join(others)}"
    name = form.format(lab=lab, **mine).replace("\\", "_")
    if not name.lower().endswith((".ipynb", ".html")):
        return "", f"{platform} would show the page as '{mine['file']}', the name of what was handed in"
    return (name[:-6] + ".ipynb" if name.lower().endswith(".ipynb") else name), ""


def as_notebook(page: str) -> str:
    """A notebook that shows an HTML page, for a platform that shows it under the name of a notebook."""
    shown = new_output("display_data", data={"text/html": page, "text/plain": "Feedback: open as a notebook"})
    return writes(new_notebook(cells=[new_code_cell("# Your feedback is below.", outputs=[shown])]))
