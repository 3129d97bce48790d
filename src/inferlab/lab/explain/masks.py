"""Words that look like a quantity or a direction and are none where they stand: `each time`, `a second copy`, `an expensive network`."""

from . import lexicon as lex
from .listed import listed
from .prose import FUNCTION_WORDS
from .words import Token

_EACH = frozenset(listed("each every this that first last next any another"))
_SAME_TIME = frozenset(listed("same one the"))
_LABELS = frozenset(listed("good bad nice best"))
_LABEL_NOUNS = frozenset(listed("thing part side news point bit is"))
_HALF_OF = frozenset(listed("in is for goes comes to with that gets runs"))
_OTHERS = frozenset(listed("than where what unlike like"))
_WOULD = frozenset(listed("would would've wouldn't could could've'd might"))
_SMALL = frozenset(listed("half less shorter fewer only hardly"))
_RESULTS = frozenset(listed("picture image result output sample run generation inference decode decoding pass wait execution loop rendering process drawing one ones "
                            "version sampling step call time latency computation response answer"))


def no_quantity(tokens: tuple[Token, ...], i: int) -> bool:
    """Whether the word at `i`, which names a quantity elsewhere, names none: `each time`, `at the same time`, `a second copy`."""
    word = tokens[i].word
    before = tokens[i - 1].word if i else ""
    ahead = tokens[i + 1].word if i + 1 < len(tokens) else ""
    if word == "time":
        if before in _EACH:
            return True
        head = {t.word for t in tokens[max(0, i - 3):i]}
        return before == "same" and bool(head & {"at", "in"}) or before in ("a", "one") and bool(head & {"at", "in"})
    if word == "second":
        return before != "per" and before not in lex.AUXILIARY and bool(ahead) and tokens[i + 1].kind == "word" and ahead not in FUNCTION_WORDS
    if word in _LABELS:
        return ahead in _LABEL_NOUNS and (not i or before in ("the", ":", ",", "and", "but")) and any(
            t.word in ("is", "are", ":") for t in tokens[i + 1:i + 4])
    return False


def no_direction(tokens: tuple[Token, ...], at: int, end: int, kind: str) -> bool:
    """Whether the words `at` to `end`, which say a direction elsewhere, say none: `an unprompted half in every call`, `must wait only half`."""
    ahead = tokens[end].word if end < len(tokens) else ""
    if tokens[at].word == "half" and end - at == 1:
        return ahead in _HALF_OF
    if tokens[at].word in _LABELS and end - at == 1:
        return no_quantity(tokens, at)
    if kind == "verb" and tokens[at].stem == "scal" and end - at == 1:
        return bool(at) and tokens[at - 1].word in ("a", "the", "one", "its", "each", "every", "per", "guidance", "this")
    if kind == "carry" and end - at == 1 and tokens[at].word in ("slow", "fast", "quick", "cheap", "expensive", "heavy") and at and tokens[at - 1].word in (
            "over", "with", "on", "across", "through", "between"):
        return bool(ahead) and tokens[end].kind == "word" and ahead not in FUNCTION_WORDS | _RESULTS and ahead not in lex.BREAKS  # `over slow links`
    if kind == "carry" and tokens[end - 1].stem == "wait":
        return any(t.word in _SMALL for t in tokens[end:end + 3])
    return kind == "same" and end < len(tokens) and tokens[end].kind == "amount"


def of_another(tokens: tuple[Token, ...], at: int, end: int) -> bool:
    """Whether a direction is told of something else than the choice in question: `the expensive network`, `where a longer
    run would have put it`."""
    before = [t.word for t in tokens[max(0, at - 3):at]]
    ahead = tokens[end].word if end < len(tokens) else ""
    if tokens[end - 1].word in ("memory", "oom") and {t.word for t in tokens[max(0, at - 4):at]} & {"if", "when", "where"}:
        return True
    if set(before) & _OTHERS and set(before) & {"a", "an", "the", "one"} or ahead in _WOULD:
        return True
    if before[-1:] and before[-1] in ("the", "this", "that", "our", "its") and end < len(tokens) and tokens[end].kind == "word":
        return ahead not in FUNCTION_WORDS and ahead not in lex.BREAKS and not ahead.endswith("ly") and ahead not in _RESULTS
    return False
