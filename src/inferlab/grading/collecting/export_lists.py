"""Reads the list that Gradescope puts into its export, which says whose each folder is and when it came.

The list is `submission_metadata.yml`, beside the folders `submission_NUMBER` that it tells about.
"""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Any

import yaml

from inferlab.grading.course import in_utc
from inferlab.grading.platforms import Heard, said_by

LIST = "submission_metadata.yml"
MOST_LIST = 20 * 2**20
MOST_DEPTH = 2
"""How many folders and zips may be above the list."""


def is_list(parts: tuple[str, ...]) -> bool:
    """Whether a file is where the platform puts its list."""
    return parts[-1] == LIST and len(parts) <= MOST_DEPTH + 1 and not any(map(said_by, parts))


@dataclass
class ExportLists:
    """The lists of one download: a list's folder -> (a folder beside it -> what the list says of it)."""

    known: dict[tuple[str, ...], dict[str, list[Heard]]] = field(default_factory=dict)

    def add(self, parts: tuple[str, ...], data: bytes) -> str:
        """Read the list at `parts`. Gives why it cannot be used; "" where it can."""
        if len(data) > MOST_LIST:
            return f"{LIST} is larger than {MOST_LIST // 2**20} MB"
        try:
            rows = yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            if not isinstance(rows, dict):
                return f"{LIST} is not a list of submissions"
            self.known[parts[:-1]] = {str(folder): _submitters(about) for folder, about in rows.items()
                                      if isinstance(about, dict)}
        except Exception as error:  # noqa: BLE001 - said in the report; YAML's kinds of values raise anything
            return f"{LIST} cannot be read: {' '.join(str(error).split())[:200]}"
        return ""

    def about(self, parts: tuple[str, ...]) -> list[Heard]:
        """What a list says of a file, once for each learner who handed it in; nothing where no list has it.

        The outermost list counts: one further down may be the learner's own.
        """
        for place in range(len(parts)):
            if found := self.known.get(parts[:place], {}).get(parts[place]):
                return found
        return []


def _submitters(about: dict[str, Any]) -> list[Heard]:
    received = about.get(":created_at")
    if isinstance(received, date) and not isinstance(received, datetime):
        received = datetime(received.year, received.month, received.day, tzinfo=UTC)
    time = in_utc(received) if isinstance(received, datetime) else None
    people = about.get(":submitters")
    found = []
    for person in people if isinstance(people, list) else ():
        texts = {key: str(person[f":{key}"]).strip() for key in ("sid", "email", "name")
                 if isinstance(person, dict) and isinstance(person.get(f":{key}"), str | int)}
        if names := tuple(filter(None, texts.values())):
            found.append(Heard("gradescope", names, time, MappingProxyType({"login": texts.get("sid", "")})))
    return found
