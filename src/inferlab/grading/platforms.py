"""The learning platforms: how they name what learners handed in, what they put beside it, and which tables
and zips they take back.

All that is said about a platform stands in `PLATFORMS`, with the address of the public documentation or
source that it was read from. None of it was tried on the platform itself.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType

RECEIPT = re.compile(r"_attempt_\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\.txt$")
"""The name of the receipt that Blackboard puts beside a file."""
OF_EXCHANGE = {"timestamp.txt", "submission_secret.txt"}
"""What nbgrader puts beside a notebook in its exchange."""
IGNORED_NAMES = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini", ".ipynb_checkpoints", "__pycache__"}
"""What desktops and Jupyter put beside files."""


@dataclass(frozen=True)
class Platform:
    """One platform.

    Attributes:
        name: what it is called.
        piece: the form of a piece of a path that the platform writes. Its group `name` is the learner's name,
            `user` the platform's number of the learner, `time` when they handed in, and `prefix` all that
            tells whose a file is when it comes back.
        inside: whether the form may begin in the middle of a piece.
        time: how `time` is written, for `strptime`. It has no zone and is taken as UTC.
        columns: heading -> what stands below it, for a table of grades that the platform imports; a form for
            `str.format` with the fields of `reporting.grade_tables`.
        maximum: headings of the platform's own table below which a lab's maximum stands.
        feedback: where a learner's feedback lies in the zip that the platform takes back, as a form with the
            pattern's groups and `lab`; "" where it takes none.
        note: what a person must know who uploads a new table.
    """

    name: str
    piece: re.Pattern[str] | None = None
    inside: bool = False
    time: str = ""
    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    maximum: str = ""
    feedback: str = ""
    note: str = ""


PLATFORMS: dict[str, Platform] = {
    # Names: https://github.com/moodle/moodle/blob/main/mod/assign/classes/downloader.php
    # Grades: .../mod/assign/feedback/offline/importgradeslib.php, feedback:
    # .../feedback/file/importziplib.php
    # A worksheet's headings are in the teacher's language; these are the English ones.
    "moodle": Platform(
        "Moodle", re.compile(r"^(?P<prefix>(?P<name>.+?)_(?P<user>\d+)_assignsubmission_)"
                             r"(?:file|onlinetext)(?:_|$)"),
        columns=MappingProxyType({
            "Identifier": "Participant {user}", "Full name": "{name}", "Email address": "{email}",
            "Grade": "{grade}", "Maximum Grade": "{maximum}", "Last modified (grade)": "-"}),
        maximum="Maximum Grade", feedback="{prefix}file_/{lab}-feedback.html",
        note="Moodle ignores a grade above the assignment's own maximum: --out-of says another than the "
             "lab's"),
    # Names: https://github.com/instructure/canvas-lms/blob/master/lib/content_zipper.rb
    # Grades: .../lib/gradebook_importer.rb
    # Feedback: .../app/models/abstract_assignment.rb, `infer_comment_context_from_filename`. What comes
    # back is shown under the name of the file that was handed in, so it must be of that kind, too.
    "canvas": Platform(
        "Canvas", re.compile(r"^(?P<prefix>(?P<name>[^\s.-]+?)(?:_LATE)?_(?P<user>\d+)_(?P<number>\d+))"
                             r"_(?P<file>.+)$", re.IGNORECASE),
        columns=MappingProxyType({
            "Student": "{last_first}", "ID": "{user}", "SIS User ID": "{id}", "SIS Login ID": "{id}",
            "Section": "", "{column}": "{grade}"}),
        feedback="{prefix}_{file}",
        note="Canvas makes a new assignment unless the column's heading is its assignment's name: --column"),
    # Grades: https://help.blackboard.com/Learn/Instructor/Original/Grade/Grading_Tasks/Work_Offline_With_Grade_Data
    # Names: the same forms as in https://github.com/vangef/BBGradebookOrganiser
    "blackboard": Platform(
        "Blackboard", re.compile(r"_?(?P<name>[^_].*)_attempt_(?P<time>\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d)"),
        inside=True, time="%Y-%m-%d-%H-%M-%S",
        columns=MappingProxyType({
            "Last Name": "{last}", "First Name": "{first}", "Username": "{login}",
            "{column} [Total Pts: {maximum} Score]": "{grade}"}),
        note="Blackboard makes a new text column unless the heading has the number of an existing one: give "
             "its own table with --sheet"),
    # The columns of its own "Download Grades". Gradescope imports no table of grades.
    # List: `submission_metadata.yml` of its export; https://guides.gradescope.com/hc/en-us/articles/22066784117901
    "gradescope": Platform(
        "Gradescope",
        columns=MappingProxyType({
            "First Name": "{first}", "Last Name": "{last}", "SID": "{login}", "Email": "{email}",
            "Total Score": "{grade}", "Max Points": "{maximum}", "Status": "Graded"}),
        maximum="Max Points",
        note="Gradescope imports no grades: use its autograder (inferlab gradescope). These are the columns "
             "of its own export"),
    # https://community.d2l.com/brightspace/kb/articles/3541-download-assignment-submissions
    "brightspace": Platform(
        "Brightspace", re.compile(r"^\d+-\d+ - (?P<name>.+?) - "
                                  r"(?P<time>[A-Z][a-z]{2} \d{1,2}, \d{4} \d{3,4} [AP]M)"),
        time="%b %d, %Y %I%M %p"),
    # https://nbgrader.readthedocs.io/en/stable/exchange/exchange_api.html and
    # nbgrader/exchange/default/submit.py
    "nbgrader": Platform(
        "nbgrader", re.compile(r"^(?P<name>.+)\+[^+]+\+(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ UTC)"
                               r"(?:\+[\w-]+)?$"), time="%Y-%m-%d %H:%M:%S.%f UTC"),
    # The instructor's own list of repositories.
    "git": Platform("the list of repositories"),
}


@dataclass(frozen=True)
class Heard:
    """What a platform says about a file: by its path, or in a list of its own.

    Attributes:
        platform: the key in `PLATFORMS`.
        names: texts that may stand for the learner, the likeliest first.
        received: when it was handed in (UTC); `None` where the platform does not say.
        groups: the groups of the platform's pattern, kept so that grades and feedback find the way back.
    """

    platform: str
    names: tuple[str, ...]
    received: datetime | None = None
    groups: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def by(self) -> str:
        """The platform's name."""
        return PLATFORMS[self.platform].name


def said_by(piece: str) -> list[Heard]:
    """What a piece of a path says, in the form of each platform that it fits."""
    found = []
    for key, platform in PLATFORMS.items():
        match = platform.piece and (platform.piece.search if platform.inside else platform.piece.match)(piece)
        if match:
            groups = {name: text for name, text in match.groupdict().items() if text is not None}
            names = [groups["name"]]
            if key == "blackboard":  # the assignment's name comes first, and a user's may have "_" in it
                words = groups["name"].split("_")
                names = ["_".join(words[start:]) for start in range(len(words))]
            elif key == "moodle":  # marked blind: "Participant_1234_..."
                names.append(f"{groups['name']} {groups['user']}")
            elif "user" in groups:
                names.append(groups["user"])
            found.append(Heard(key, tuple(names), _time(groups.get("time", ""), platform.time), groups))
    return found


def _time(text: str, pattern: str) -> datetime | None:
    try:
        return datetime.strptime(text, pattern).replace(tzinfo=UTC) if text else None
    except ValueError:
        return None


def nobody_hands_in(parts: tuple[str, ...]) -> bool:
    """Whether nobody hands in such a file: a desktop or a platform made it for itself.

    Beside Blackboard's receipt that is Brightspace's index.html, Moodle's onlinetext.html and what nbgrader
    puts beside a notebook.
    """
    if any(part in IGNORED_NAMES or part.startswith("._") for part in parts):
        return True
    if parts[-1] in OF_EXCHANGE and any(said.platform == "nbgrader" for said in said_by(parts[0])):
        return True
    return bool(RECEIPT.search(parts[-1])) or parts == ("index.html",) or (
        parts[-1] == "onlinetext.html" and any("_assignsubmission_onlinetext" in part for part in parts))
