"""Whose a handed-in file is: by the learning platform's folder, by the name in the file, or by the file's own name.

A name counts only if the roster knows it as it is written (letters' case, spaces and Unicode forms aside). Where two
sources name two learners, nobody is chosen: the instructor decides.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime

from inferlab.lab.identity import normalize

from .incoming import shown
from .plan import declared_learner
from .reading import HandedIn
from .roster import Roster

MOODLE = re.compile(r"^(?P<name>.+?)_(?P<number>\d+)_assignsubmission_(?:file|onlinetext)(?:_|$)")
CANVAS = re.compile(r"^(?P<name>[^\W\d_]+)(?P<late>_LATE)?_(?P<user>\d+)_(?P<number>\d+)_(?P<file>.+)$", re.IGNORECASE)
BLACKBOARD = re.compile(r"_(?P<name>[^_]+)_attempt_(?P<time>\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d)")
BRIGHTSPACE = re.compile(r"^\d+-\d+ - (?P<name>.+?) - (?P<time>[A-Z][a-z]{2} \d{1,2}, \d{4} \d{3,4} [AP]M)")


@dataclass
class Owner:
    """Who handed a file in: an id of the roster, or `None` with the reason in `problem`.

    `by` says what decided; `late` is a platform's own mark; `received` a time that the platform wrote into the name.
    """

    id: str | None
    by: str = ""
    problem: str = ""
    notes: list[str] = field(default_factory=list)
    received: datetime | None = None


def squash(name: str) -> str:
    """A name's letters and digits only, as platforms write them into file names: `Lovelace, Ada` is `lovelaceada`."""
    return "".join(char for char in normalize(name) if char.isalnum())


def platform_names(parts: tuple[str, ...]) -> list[tuple[str, list[str], datetime | None]]:
    """(platform, the names it gives, the time it wrote) for each piece of a path that looks like a platform's.

    The first is the platform's own: it names the outermost folder and begins a file's name. What comes after it may be the
    learner's: a file in a folder, a file in a zip, the rest of a name.
    """
    found = []
    for part in parts:
        if match := MOODLE.match(part):
            found.append(("Moodle", [match["name"]], None))
        if match := BRIGHTSPACE.match(part):
            found.append(("Brightspace", [match["name"]], _time(match["time"], "%b %d, %Y %I%M %p")))
        if match := CANVAS.match(part):
            found.append(("Canvas", [match["name"], match["user"]], None))
        if match := BLACKBOARD.search(part):  # not at the beginning: last
            found.append(("Blackboard", [match["name"]], _time(match["time"], "%Y-%m-%d-%H-%M-%S")))
    return found


def _time(text: str, pattern: str) -> datetime | None:
    try:
        return datetime.strptime(text, pattern).replace(tzinfo=UTC)
    except ValueError:
        return None


def whose(parts: tuple[str, ...], handed_in: HandedIn | None, roster: Roster, lab: str = "") -> Owner:
    """Who handed in the file at `parts` with this content (`None` where it could not be read)."""
    owner = Owner(None)
    said: dict[str, str] = {}
    for n, (platform, names, received) in enumerate(platform_names(parts)):
        identity = _first(roster, names)
        owner.received = owner.received if n else received
        if identity:
            said[f"{platform}'s name '{shown(names[0])}'"] = identity
        elif not n:
            owner.notes.append(f"{platform} says '{shown(names[0])}', whom the roster does not know")
    if handed_in is not None:
        about = handed_in.metadata.get("inferlab")
        stamped = about.get("learner") if isinstance(about, dict) else None
        texts = {"the name in the file": stamped if isinstance(stamped, str) else "", "LEARNER": declared_learner(handed_in.cells)}
        for by, text in texts.items():
            if not normalize(text):
                continue
            if namesakes := roster.namesakes(text):
                owner.problem = f"{by} is '{shown(text[:60])}', which is {' and '.join(namesakes)}: give each an alias"
            elif identity := roster.resolve(text):
                said[by] = identity
            else:
                owner.notes.append(f"{by} is '{shown(text[:60])}', whom the roster does not know" + _hint(roster, text))
    for identity, part in _by_path(parts, roster, lab):
        said[f"the file's place '{shown(part)}'"] = identity
    people = sorted(set(said.values()))
    if len(people) > 1:
        owner.problem = "named twice: " + ", ".join(f"{by} is {identity}" for by, identity in said.items())
    elif people:
        owner.id, owner.by, owner.problem = people[0], next(iter(said)), ""
    elif not owner.problem:
        owner.problem = "; ".join(owner.notes) or "nothing says whose it is: LEARNER is empty, and no name is in its path"
        owner.notes = []
    return owner


def _first(roster: Roster, names: list[str]) -> str | None:
    squashed: dict[str, set[str]] = {}
    for learner in roster.learners:
        for name in learner.names:
            squashed.setdefault(squash(name), set()).add(learner.id)
    for name in names:
        if identity := roster.resolve(name):
            return identity
        ids = squashed.get(squash(name), set()) if squash(name) else set()
        if len(ids) == 1:
            return next(iter(ids))
    return None


def _by_path(parts: tuple[str, ...], roster: Roster, lab: str) -> list[tuple[str, str]]:
    """(learner, piece) for each folder or file name that is exactly one of a learner's names, lab name and copy numbers aside."""
    found = []
    for part in parts:
        stem = re.sub(r"(\.(ipynb|json|txt|zip|html?|pdf|py|docx?|png|jpe?g))+$", "", part, flags=re.IGNORECASE)
        stem = re.sub(r"\s*\(\d+\)$|[ _-]+(copy|final|kopie|copie)\d*$", "", stem, flags=re.IGNORECASE)
        pieces = [stem, *([stem.replace(lab, " ").strip(" _-.")] if lab and lab in stem else [])]
        texts = [text for piece in pieces for text in (piece, piece.replace("_", " "), piece.replace("-", " ")) if normalize(text)]
        identity = next((one for text in texts if (one := roster.resolve(text))), None)
        if identity:
            found.append((identity, part))
    return found


def _hint(roster: Roster, text: str) -> str:
    similar = roster.similar(text)
    return f" (like {', '.join(similar)}: add it as an alias if so)" if similar else ""
