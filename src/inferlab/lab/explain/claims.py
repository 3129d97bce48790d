"""What a lab wants to be said in one field, what is true of its run, and what is not."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .outcome import Outcome, award, deny, review
from .quantities import Quantity, find_quantities
from .table import Found, NotRead, Phrase, Rows, Said, Statement
from .tokens import joined_lines

ANY, NOT = "*", "not:"
CONTRARY = {"up": "down", "down": "up"}
OPEN = re.compile(r"(#|\{[^{}]+\})")
"""What stands for an amount in a pattern: any one, or a fact of the run."""


class ClaimsError(ValueError):
    """Claims that cannot be read, or that use a word which the field does not offer."""


@dataclass(frozen=True)
class Pick:
    """One alternative of a column: a phrase with its amounts, None for any amount; no phrase for anything."""

    phrase: Phrase | None
    amounts: tuple[object, ...] = ()
    needed: bool = False

    def fits(self, said: Said | None, amounts: bool = True) -> bool:
        """Whether `said` is this, with its `amounts` or whatever they are."""
        if said is None or self.phrase is None:
            return self.phrase is None
        return said.phrase == self.phrase and all(
            wanted is None or not amounts or (token.amount is not None and _same(token.amount, wanted))
            for wanted, token in zip(self.amounts, said.amounts, strict=True)
        )


def _same(said: Quantity, wanted: object) -> bool:
    """Whether an amount is the `wanted` one, and of its kind: 2 is not 2 seconds, and no 2 bytes."""
    numbers = {"count", "ratio"}
    if isinstance(wanted, str) and (read := find_quantities(wanted)):
        wanted = read[0]
    if isinstance(wanted, Quantity):
        alike = said.kind == wanted.kind or {said.kind, wanted.kind} <= numbers
        return alike and said.is_like(wanted.value)
    if isinstance(wanted, int | float) and said.kind not in numbers:
        return said.kind == "bytes" and wanted >= 1024 and said.is_like(wanted)
    return said.is_like(wanted)


@dataclass(frozen=True)
class Pattern:
    """Who, verb and what as alternatives, and what may be added (one of the `+` must), of a denial or not."""

    who: tuple[Pick, ...]
    verb: tuple[Pick, ...]
    what: tuple[Pick, ...]
    more: tuple[Pick, ...] = ()
    denied: bool = False

    def fits(self, said: Statement, amounts: bool = True) -> bool:
        """Whether who, verb and what are as they are here."""
        columns = (self.verb, said.verb), (self.what, said.what), (self.who, said.who)
        same = all(any(pick.fits(part, amounts) for pick in picks) for picks, part in columns)
        return same and said.denied == self.denied

    def not_allowed(self, said: Statement) -> list[Said]:
        """What was added and is not listed here."""
        return [one for one in said.more if not any(pick.fits(one) for pick in self.more)]

    def has_needed(self, said: Statement) -> bool:
        """Whether one of those that must be added is."""
        needed = [pick for pick in self.more if pick.needed]
        return not needed or any(pick.fits(one) for one in said.more for pick in needed)

    def answers(self, said: Statement) -> bool:
        """Whether `said` says this; what is denied says only what is listed with it."""
        return self.fits(said) and self.has_needed(said) and not (said.denied and self.not_allowed(said))


@dataclass
class ClaimGroup:
    """A heading of the claims and its patterns: "wanted" (a question), "true", or "false" (a message)."""

    kind: str
    text: str
    patterns: list[Pattern] = field(default_factory=list)


class Claims:
    """The claims of one field.

    `text` has headings (`wanted: QUESTION`, `true`, `false: MESSAGE`) and, indented below each, patterns
    `who | verb | what | added`; README.md says what they mean. `{name}` in an amount's place is one of the
    `facts` of the re-run. A line that is indented deeper goes on with the one above it.

    Raises `ClaimsError` for another form, and for words that the field does not offer.
    """

    def __init__(self, label: str, text: str, rows: Rows, facts: Mapping[str, object] | None = None) -> None:
        self.label, self.rows, self.facts = label, rows, {} if facts is None else facts
        self._offered = (rows.who, rows.deeds, rows.whats, rows.more)
        self.groups: list[ClaimGroup] = []
        for line in joined_lines(text):
            if not line[0].isspace():
                kind, _, said = (part.strip() for part in line.partition(":"))
                if kind not in ("wanted", "true", "false") or (kind != "true" and not said):
                    headings = "`wanted: QUESTION`, `true` or `false: MESSAGE`"
                    raise ClaimsError(f"{label}: {line!r} is not {headings}")
                self.groups.append(ClaimGroup(kind, said))
            elif not self.groups:
                raise ClaimsError(f"{label}: a pattern before the first heading: {line.strip()!r}")
            else:
                self.groups[-1].patterns.append(self._pattern(line))
        if not self._of("wanted"):
            raise ClaimsError(f"{label}: nothing is wanted")

    def _of(self, *kinds: str) -> list[ClaimGroup]:
        return [group for group in self.groups if group.kind in kinds]

    # -- reading the patterns -------------------------------------------------------------------------------
    def _pattern(self, line: str) -> Pattern:
        columns = [column.strip() for column in line.split("|")]
        if not 2 <= len(columns) <= 4:
            raise ClaimsError(f"{self.label}: {line.strip()!r} is not `who | verb | what | added`")
        columns += [""] * (4 - len(columns))
        denied, columns[1] = (columns[1].startswith(NOT), columns[1].removeprefix(NOT).strip())
        who, verb, what, more = (
            tuple(self._pick(one.strip(), offered) for one in column.split(" / ") if one)
            for column, offered in zip(columns, self._offered, strict=True)
        )
        return Pattern(who, verb, what or (Pick(None),), more, denied)

    def _pick(self, text: str, offered: list[Phrase]) -> Pick:
        needed, text = text.startswith("+"), text.removeprefix("+").strip()
        if text == ANY:
            return Pick(None, needed=needed)
        if text in offered:
            return Pick(text, (None,) * text.count("#"), needed)
        shape, amounts = "", list[object]()
        for part in OPEN.split(text):
            if part.startswith("{") and part[1:-1] not in self.facts:
                raise ClaimsError(f"{self.label}: no fact {part}; there is {', '.join(self.facts) or 'none'}")
            if OPEN.fullmatch(part):
                shape += "#"
                amounts.append(None if part == "#" else self.facts[part[1:-1]])
                continue
            found = find_quantities(part)
            for amount in reversed(found):
                part = part[: amount.start] + "#" + part[amount.end :]
            shape += part
            amounts += found
        if shape not in offered:
            there = ", ".join(map(repr, offered))
            raise ClaimsError(f"{self.label}: {text!r} is not offered here; there is {there}")
        return Pick(shape, tuple(amounts), needed)

    # -- judging --------------------------------------------------------------------------------------------
    def truth(self, said: Statement, plainly: bool = True) -> tuple[bool | None, str]:
        """Whether a statement is true of the run, None where no claim says so, and why it is not true.

        What is said not to be so is true where the sentence without its `not` is false. Said `plainly`, an
        amount or a direction that is not the true one is false, too.
        """
        fitting = [p for group in self._of("wanted") for p in group.patterns if p.fits(said)]
        fitting += [p for g in self._of("true") for p in g.patterns if p.fits(said) and p.has_needed(said)]
        if any(not pattern.not_allowed(said) for pattern in fitting):
            return True, ""
        for group in self._of("false"):
            for p in group.patterns:
                if p.fits(said) and (not p.more or len(p.not_allowed(said)) < len(said.more)):
                    return False, group.text
        if said.denied:
            so, why = self.truth(replace(said, denied=False), plainly=False)
            told = f"It is so that “{replace(said, denied=False)}”."
            return (False, told) if so else (None if so is None else True, why)
        turned = replace(said, verb=Said(CONTRARY.get(said.verb.phrase, said.verb.phrase), said.verb.amounts))
        true = [p for group in self._of("wanted", "true") for p in group.patterns]
        like = [p for p in true if p.fits(said, amounts=False) or p.fits(turned)]
        other = plainly and any(p not in fitting and not p.not_allowed(said) for p in like)
        why = f"The run does not show that “{said}”."
        if fitting:
            odd = min((pattern.not_allowed(said) for pattern in fitting), key=len)
            why = f"“{Statement(said.who, said.verb, said.what)}” is so, but not “{odd[0]}”."
        return False if other else None, why

    def missing(self, statements: list[Statement]) -> list[str]:
        """The questions that none of `statements` answers."""
        return [
            group.text
            for group in self._of("wanted")
            if not any(pattern.answers(one) for pattern in group.patterns for one in statements)
        ]

    def meant(self, said: Statement) -> tuple[Statement, bool | None, str]:
        """`said` with what its sentence shares with it, its truth, and why it is not true.

        What is false by itself is false. What was said behind another clause counts where it is so; a time
        or a place with which this is false may be meant, or not.
        """
        bare = replace(said, shared=(), behind=())
        whole = replace(bare, more=(*said.more, *said.shared))
        if said.shared and self.truth(whole)[0] is None and self.truth(bare)[0] is False:
            whole = bare
        for one in said.behind:
            longer = replace(whole, more=(*whole.more, one))
            true, why = self.truth(longer)
            if true is False and one.scope == "place" and self.truth(whole)[0]:
                return whole, None, f"Is “{longer}” meant? {why}"
            whole = longer if true else whole
        return whole, *self.truth(whole)

    def judge(self, found: Found) -> Outcome:
        """Award when all is true and all that is wanted is said; a person decides what nobody can tell."""
        read = tuple(str(one) for one in found)
        if not found:
            return deny(f"`{self.label}:` is empty.")
        meant = [self.meant(one) for one in found if isinstance(one, Statement) and not one.implied]
        if wrong := dict.fromkeys(why for _, true, why in meant if true is False):
            return deny(" ".join(wrong), read)
        missing = self.missing([said for said, _, _ in meant])
        unread = " ".join(str(one) for one in found if isinstance(one, NotRead))
        unknown = " ".join(dict.fromkeys(why for _, true, why in meant if true is None))
        if unread or unknown:
            wanted = tuple(f"not said in what was read: {question}" for question in missing)
            return review(f"A sentence was not read: {unread}" if unread else unknown, read + wanted)
        if missing:
            return deny("What you say is so, but it does not say " + ", nor ".join(missing) + ".", read)
        return award("Read as: " + "; ".join(read), read)
