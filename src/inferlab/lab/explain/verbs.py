"""The verbs of a sentence, told from nouns and adjectives of the same form."""

from .lexicon_verbs import PARTICIPLES, VERB_INDEX
from .listed import listed
from .phrases import Table
from .words import Token

_VERBS = Table(VERB_INDEX)
DETERMINERS = frozenset(listed("the a an this each every its their my your our no another any some per next first last one single"))
_LIGHT = frozenset(listed("do does did done doing perform performs performed make makes made carry carries handle handles execute executes own owns responsible charge"))


def verbs_of(tokens: tuple[Token, ...], taken: set[int]) -> list[tuple[int, int, frozenset[str]]]:
    out, i = [], 0
    while i < len(tokens):
        hit = _VERBS.match(tokens, i) if tokens[i].kind == "word" and i not in taken else None
        if hit and tokens[i].word == "means" and i and tokens[i - 1].word == "by":
            hit = None
        if hit and hit[0] == 1 and tokens[i].stem in ("get", "becom") and tokens[i + 1:i + 2] and participle(tokens[i + 1]):
            hit = None
        if hit and not (hit[0] == 1 and _noun_use(tokens, i)):
            classes = hit[1] | {"=" + tokens[i].stem}
            if tokens[i].stem in ("take", "tak", "pull", "get", "work") and any(t.word in ("out", "away") for t in tokens[i + 1:i + 7]):
                classes |= {"changes"}
            out.append((i, i + hit[0], classes))
            i += hit[0]
        else:
            i += 1
    return out


def _noun_use(tokens: tuple[Token, ...], i: int) -> bool:
    """`the update`, `each change`, `its output`: a noun; `the updated latents`, `cached keys`: an adjective."""
    before = tokens[i - 1].word if i else ""
    if any(t.word in _LIGHT for t in tokens[max(0, i - 4):i]) and tokens[i + 1:i + 2] and tokens[i + 1].word in ("of", "to", "on"):
        return False
    if i and tokens[i - 1].kind == "amount" and tokens[i].word.endswith("s"):
        return True  # `in each of the four steps`
    if tokens[i].word.endswith("ing") and before in ("by", "for", "of", "in", "without", "and", "is", "are", "from", "instead"):
        return False
    if before in ("this", "that", "it", "which", "one") and tokens[i].word.endswith("s") and not tokens[i].word.endswith("ss"):
        return False
    return before in DETERMINERS or before.endswith("'s") or (before in ("that", "these", "those") and (not tokens[i].word.endswith(("s", "ed", "ing")) or tokens[i].word.endswith("ss")))


def infinitive(tokens: tuple[Token, ...], at: int) -> bool:
    return bool(at) and tokens[at - 1].word in ("to", "can", "will", "must", "for", "by")


def participle(token: Token) -> bool:
    return token.word.endswith(("ed", "en")) or token.word in PARTICIPLES
