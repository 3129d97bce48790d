"""Turns a line into tokens: plain words, and amounts with their values."""

import re
import unicodedata
from dataclasses import dataclass, field, replace

from .quantities import Quantity, find_quantities

DROPPED = frozenset("a an the its their this these also then too both".split())
SAME = {"are": "is", "have": "has", "do": "doe", "go": "goe"}
_TIMES = re.compile(r"^[ -]?(?:times|fold|x)\b", re.IGNORECASE)
_SILENT = r"\s.:;!*_`'\"()\[\]\u2013\u2014\u2018-\u201f-"
_WORD = re.compile(rf"[^\W\d_]+(?:'[a-z]+)?\d*|#(?:[ -]?(?:times|fold|x)\b)?|[^{_SILENT}]")
"""A word, what joins, an open amount, or a sign that means nothing here and so is never read."""
_MINUS = re.compile(r"(?:^|(?<=[\s(]))[-\u2013\u2014]$")
_ODD = re.compile(r"[\u2070-\u209c\u0131\u0336]")
"""Raised and lowered letters, which would become part of the word before them, and one of two cases."""


@dataclass(frozen=True)
class Token:
    """One word in its plain form, or an amount.

    `word` is "#" for an amount; `amount` is then what was written, or None in a phrase that takes any.
    """

    word: str
    amount: Quantity | None = None
    written: str = field(default="", compare=False)

    def takes(self, said: "Token") -> bool:
        """Whether this token of a phrase stands for the learner's token `said`; "times" only for its like."""
        if self.word != said.word or self.word != "#":
            return self.word == said.word
        if said.amount is None or self.amount is None:
            return said.amount is not None and (said.amount.kind != "ratio" or self.written != "#")
        return said.amount.kind == self.amount.kind and said.amount.is_like(self.amount.value)


def stem(word: str) -> str:
    """A word without the `s` of its plural or third person: "passes" is "pass", and "uses" is "use"."""
    word = word.casefold()
    if word in SAME:
        return SAME[word]
    if len(word) > 5 and word.endswith("ies"):
        return word[:-3] + "y"
    if ending := re.search(r"(?:s|x|z|ch|sh)(es?)$", word):
        return word[: ending.start(1)]
    plural = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if plural else word


LISTS = frozenset((",", "and", "&"))
"""What joins the entries of a list."""
DENIED_LISTS = LISTS | {"or", "nor"}
"""What joins the entries of a list that is denied: "does not A or B" denies both."""
JOINS = LISTS | {stem(word) for word in ("but", "while", "whereas", "so")}
"""What joins two sentences. "does not A but B" is no list: B is said to be so."""
DENIALS = tuple(
    tuple(stem(word) for word in words.split())
    for words in "does not need to,does not have to,does not,need not,is not,is never,may not,may never,"
    "cannot,can not,ca not,can never,never,neither,not".split(",")
)
"""What stands before a verb and denies it, the longest first."""
PRONOUNS = frozenset(("it", "they"))
"""Who the sentence before was about."""
THINGS = frozenset(("it", "them"))
"""What somebody does something to, after a sentence that did something to it."""
BETWEEN = frozenset("at on of from to in by with for".split())
"""What "only" may stand before, and is read behind: "looks only at A" is "looks at only A"."""
IS = Token("is")
MAY = (Token("may"),), (Token("can"),)
"""How a verb begins that says what is possible: "may not have" and "does not have" deny "may have"."""
INSTEAD = ((Token("rather"), Token("than")), (Token("instead"), Token("of")))


def participles(verb: str) -> frozenset[str]:
    """What "is ... by" says of a verb: "predicts" is "predicted", and "keeps" is "kept"; and odd words."""
    said = verb.casefold()
    bases = {said, said.removesuffix("s"), said.removesuffix("es")}
    made = {base + ending for base in bases for ending in ("d", "ed", base[-1:] + "ed")}
    made |= {base[:-1] + "ied" for base in bases if base.endswith("y")}
    return frozenset(made | {stem(_IRREGULAR[base]) for base in bases if base in _IRREGULAR})


_IRREGULAR = dict(
    pair.split(":")
    for pair in (
        "make:made keep:kept read:read find:found take:taken write:written hold:held give:given let:let "
        "leave:left cut:cut split:split say:said tell:told show:shown throw:thrown know:known see:seen "
        "cost:cost put:put spare:spared send:sent bring:brought choose:chosen forget:forgotten lose:lost "
        "mean:meant shrink:shrunk freeze:frozen draw:drawn"
    ).split()
)


def plain_characters(text: str) -> str:
    """`text` in plain characters; a sign with a number inside (raised, circled, a half) is not read."""
    if text.isascii():
        return text
    other = (sign for sign in set(text) if not sign.isdecimal())
    turned = (sign for sign in other if re.search(r"\d", unicodedata.normalize("NFKC", sign)))
    signs = str.maketrans(dict.fromkeys(turned, " ? "))
    return unicodedata.normalize("NFKC", _ODD.sub(" ? ", text.translate(signs)))


def tokens(text: str) -> list[Token]:
    """The tokens of one line, articles dropped. Dots, hyphens and underscores part the words of a name.

    What belongs to an amount ("4 times", "16-fold") is part of it, in a phrase ("# times"), too.
    """
    text = re.sub(r"n['’]t\b", " not", plain_characters(text))
    found, at = list[Token](), 0
    for amount in [*find_quantities(text), None]:
        end = amount.start if amount else len(text)
        between = text[at:end]
        if found and found[-1].amount and (times := _TIMES.match(between)):
            between = between[times.end() :]
            found[-1] = replace(found[-1], amount=replace(found[-1].amount, kind="ratio"))
        if amount:
            between = _MINUS.sub("?", between)
        words = (word for word in _WORD.findall(between) if word.casefold() not in DROPPED)
        found += [Token("#" if word[0] == "#" else stem(word), written=word) for word in words]
        if amount:
            found.append(Token("#", amount, amount.text))
            at = amount.end
    while found and found[-1].word == ",":
        found.pop()
    return found


def only_behind(line: list[Token], ends: frozenset[str] = frozenset()) -> list[Token]:
    """`line` with each "only" behind the word of `BETWEEN` that follows it, but not behind one of `ends`."""
    found = [*line]
    for at, token in enumerate(found[1:]):
        if found[at].word == "only" and token.word in BETWEEN and not (at and found[at - 1].word in ends):
            found[at : at + 2] = token, found[at]
    return found


def joined_lines(text: str) -> list[str]:
    """The lines of a list of words or of claims, each with the deeper lines that go on with it."""
    lines: list[str] = []
    for line in filter(str.strip, text.split("\n")):
        indent, above = (len(one) - len(one.lstrip()) for one in (line, lines[-1] if lines else ""))
        if 0 < above < indent:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
    return lines
