"""Tells of a handed-in file which lab it is of, whose it is, and when it was handed in.

The lab is told by the cells. The learner is told by a name that the learning platform wrote into the file's
path, by the name in the notebook, or by the file's own name. A name counts only if the roster has it, letter
by letter; upper case, spaces and Unicode forms do not matter. Where two sources name two learners, nobody is
chosen and the instructor decides.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from inferlab.grading.course import in_utc
from inferlab.grading.notebook import RawNotebook, about, declared_learner, grade_id
from inferlab.grading.platforms import Heard, said_by
from inferlab.grading.roster import Roster
from inferlab.grading.submission.submission import CourseLab
from inferlab.lab.identity import normalize
from inferlab.terminal import clean_name

from .incoming import Incoming

LAB_NUMBER = re.compile(r"(?<![^\W\d_])lab[ _-]?0*(\d+)", re.IGNORECASE)
"""`lab02`, `Lab 2`; not the end of `collab2`."""
NOBODY = "nothing says whose it is: LEARNER is empty, and no name is in its path"


@dataclass
class Owner:
    """Who handed a file in.

    Attributes:
        id: the learner's id in the roster; `None` where it cannot be told.
        problem: why it cannot be told; "" where it can.
        notes: names in the file that the roster does not know, each as a sentence.
        received: the time (UTC) that the platform says; `None` where it says none.
        platform: its key in `PLATFORMS` -> what it needs to be told whose a grade or a page is: the name by
            which it knows the learner (`login`), and its pattern's groups. Empty where no platform says it.
    """

    id: str | None
    problem: str = ""
    notes: list[str] = field(default_factory=list)
    received: datetime | None = None
    platform: dict[str, dict[str, str]] = field(default_factory=dict)


# -- which lab -------------------------------------------------------------------------------------
def which_lab(raw: RawNotebook, released: dict[str, CourseLab]) -> tuple[str, str]:
    """The lab that a notebook is of, by its cells' names and texts, and by its metadata.

    Gives `(lab, "")`, or `("", problem)` where it cannot be told.
    """
    claimed = raw.said.get("lab", "")
    texts = {cell["source"].strip() for cell in raw.cells}
    names = {cell["id"] for cell in raw.cells} | {grade_id(cell) for cell in raw.cells}
    likeness: dict[str, int] = {}
    for name, lab in released.items():
        graded = [cell for cell in lab.released["cells"] if "nbgrader" in cell["metadata"]
                  or len(cell["source"]) > 60]
        likeness[name] = sum(cell["source"].strip() in texts or grade_id(cell) in names - {""}
                             for cell in graded
                             if not about(cell).get("bootstrap"))
    best = max(likeness, key=lambda name: likeness[name], default="")
    known = claimed in released
    if known and likeness[claimed] and likeness[claimed] >= likeness[best] / 2:
        return claimed, ""
    if best and likeness[best] >= 2 and list(likeness.values()).count(likeness[best]) == 1:
        return best, ""
    if known:
        return claimed, ""
    if claimed:
        return "", f"of '{clean_name(claimed[:60])}', a lab that is not released here"
    return "", "no cell of it is known from any released lab"


def named_otherwise(file: str, lab: str, released: dict[str, CourseLab]) -> str:
    """The number of another released lab in a file's name (`lab02`).

    "" where the name has no such number, or has this lab's number too.
    """
    numbers = {int(match[1]) for match in LAB_NUMBER.finditer(file)}
    own = LAB_NUMBER.match(lab)
    if own and int(own[1]) in numbers:
        return ""
    return next((found[0] for name in released if (found := LAB_NUMBER.match(name))
                 and int(found[1]) in numbers), "")


# -- whose -----------------------------------------------------------------------------------------
def whose(parts: tuple[str, ...], raw: RawNotebook | None, roster: Roster, lab: str = "",
          entry: Heard | None = None, account: str = "") -> Owner:
    """Who handed in a file.

    Args:
        parts: the pieces of its path; the file's name comes last.
        raw: the notebook in it; `None` where it could not be read.
        lab: the lab that it is of; its name in a file's name is no learner's.
        entry: what the platform's own list says of the file; `None` where there is none.
        account: the system account that the file belongs to. It counts in nbgrader's exchange, where
            everybody can make a folder of any name; "" elsewhere.
    """
    owner = Owner(None)
    said: dict[str, str] = {}
    unknown, group = "", set[str]()
    for n, heard in enumerate(platforms_say(parts, entry)):
        identity, name = _first(roster, heard.names)
        owner.received = owner.received if n else heard.received
        if identity:
            said[f"{heard.by}'s name '{clean_name(name)}'"] = identity
        elif not n:
            unknown = f"{heard.by} says '{clean_name(heard.names[0])}', whom the roster does not know"
            group = _group(roster, heard.names)
        if not n:
            owner.platform = {heard.platform: {"login": name, **heard.groups}}
        if heard.platform == "nbgrader" and (by_account := roster.resolve(account)):
            said[f"the file's owner '{clean_name(account)}'"] = by_account
    if raw is not None:
        texts = {"the name in the file": raw.said.get("learner", ""),
                 "LEARNER": declared_learner(raw.cells)}
        for by, text in texts.items():
            if not normalize(text):
                continue
            if namesakes := roster.namesakes(text):
                owner.problem = (f"{by} is '{clean_name(text[:60])}', which is {' and '.join(namesakes)}: "
                                 "give each an alias")
            elif identity := roster.resolve(text):
                said[by] = identity
            else:
                owner.notes.append(f"{by} is '{clean_name(text[:60])}', whom the roster does not know"
                                   + _hint(roster, text))
    for identity, part in _by_path(parts, roster, lab):
        said[f"the file's place '{clean_name(part)}'"] = identity
    people = sorted(set(said.values()))
    if len(people) == 1 and people[0] in group:
        # The number is the group's, or another member's: no grade may go by it.
        owner.platform = {key: {name: text for name, text in about.items()
                                if name != "user" and (key != "moodle" or name != "prefix")}
                          for key, about in owner.platform.items()}
        members = ", ".join(sorted(group))
        owner.notes.append(f"handed in for the group of {members}: collected as {people[0]}'s")
        unknown = ""
    if unknown:  # another name in the file may be a classmate's, in a copied cell
        owner.problem = "; ".join([unknown, *(f"{by} is {identity}" for by, identity in said.items())])
    elif len(people) > 1:
        owner.problem = "named twice: " + ", ".join(f"{by} is {identity}" for by, identity in said.items())
    elif people:
        owner.id, owner.problem = people[0], ""
    elif not owner.problem:
        owner.problem = "; ".join(owner.notes) or NOBODY
        owner.notes = []
    return owner


def platforms_say(parts: tuple[str, ...], entry: Heard | None = None) -> list[Heard]:
    """What a platform's own list (`entry`) and the pieces of a path say of a file, the outermost first.

    Only the first can be trusted to be the platform's: it writes the outermost folder and the beginning of a
    file's name. The learner may have chosen the rest: a file in that folder, a file in a zip, a name's end.
    """
    return [*([entry] if entry else []), *(said for part in parts for said in said_by(part))]


def _first(roster: Roster, names: Sequence[str]) -> tuple[str | None, str]:
    """The learner whom the first of these names stands for, and that name; (None, "") for nobody."""
    for name in names:
        if identity := roster.resolve(name):
            return identity, name
    for written in (squash, squash_without_accents):
        for name in names:
            ids = {learner.id for learner in roster.learners if written(name)
                   and written(name) in map(written, learner.names)}
            if len(ids) == 1:
                return ids.pop(), name
    return None, ""


def _group(roster: Roster, names: Sequence[str]) -> set[str]:
    """The learners who have one of these names as an alias, if it is nobody's own name."""
    wanted = set(filter(None, map(squash, names)))
    own = {squash(text) for learner in roster.learners for text in (learner.id, learner.name)}
    return {learner.id for learner in roster.learners
            for alias in learner.aliases if squash(alias) in wanted - own}


def _by_path(parts: tuple[str, ...], roster: Roster, lab: str) -> list[tuple[str, str]]:
    """(learner, piece) for each piece of the path that is one of a learner's names.

    A lab's name, an ending such as `.ipynb` and marks of a copy such as `(1)` in a piece do not count.
    """
    found = []
    for part in parts:
        stem = re.sub(r"(\.(ipynb|json|txt|zip|html?|pdf|py|docx?|png|jpe?g))+$", "", part,
                      flags=re.IGNORECASE)
        stem = re.sub(r"\s*\(\d+\)$|[ _-]+(copy|final|kopie|copie)\d*$", "", stem, flags=re.IGNORECASE)
        pieces = [stem, *([stem.replace(lab, " ").strip(" _-.")] if lab and lab in stem else [])]
        texts = [text for piece in pieces for text in (piece, piece.replace("_", " "),
                                                       piece.replace("-", " ")) if normalize(text)]
        identity = next((one for text in texts if (one := roster.resolve(text))), None)
        if identity:
            found.append((identity, part))
    return found


def _hint(roster: Roster, text: str) -> str:
    similar = roster.similar(text)
    return f" (like {', '.join(similar)}: add it as an alias if so)" if similar else ""


def squash(name: str) -> str:
    """The letters and digits of a name, as platforms write them into file names: `Lovelace, Ada` gives
    `lovelaceada`."""
    return "".join(char for char in normalize(name) if char.isalnum())


def squash_without_accents(name: str) -> str:
    """`squash`, and accents are left out too, as some platforms do."""
    return squash("".join(char for char in unicodedata.normalize("NFKD", name)
                          if not unicodedata.combining(char)))


# -- when ------------------------------------------------------------------------------------------
def own_time(raw: RawNotebook | None, by_platform: datetime | None, item: Incoming,
             due: datetime | None) -> tuple[datetime, str]:
    """When a file was handed in, as far as the file tells, and a note for the instructor ("" for none).

    The time is the first of these that the file has:

    1. `by_platform`, the time that the platform wrote into the file's name;
    2. the stamp that the hand-in cell wrote into the notebook, which the learner can change;
    3. `item.received`, the file's time in the zip or folder.

    `collect` takes an earlier time where it has a copy of the file (`first_time`), and the time of the
    platform's list (`--times`) before any other.

    The note says where the stamp cannot be right, and where only the stamp makes the file timely.

    Args:
        raw: the notebook in the file; `None` where it could not be read.
        due: the lab's deadline; `None` where there is none.
    """
    if by_platform is not None:
        return by_platform, ""
    stamp = raw.said.get("submitted") if raw is not None else None
    if stamp is None:
        return item.received, ""
    try:
        time = in_utc(datetime.fromisoformat(stamp))
    except (ValueError, OverflowError):
        return item.received, "its own time of handing in cannot be read: the file's time counts"
    if time > max(item.received, datetime.now(UTC)) + timedelta(days=1):
        return item.received, (f"says it was handed in at {time.isoformat()}, which is still to come: "
                               "the file's time counts")
    if due is not None and time <= due < item.received:
        stamped, received = (one.isoformat(timespec="seconds") for one in (time, item.received))
        return time, (f"in time by its own stamp ({stamped}) only, the file's time is {received}: compare "
                      "with the platform's list (collect --times)")
    return time, ""
