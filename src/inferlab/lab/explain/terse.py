"""Short notes that say a trade-off in directions alone: `throughput up, memory up`, `saves recompute, costs memory`.

The prose gate knows sentences. In such a note every piece between two marks is one direction that was read, so that its order is
known already.
"""

from .directions import effects
from .listed import listed
from .prose import FUNCTION_WORDS
from .rubric import Rubric, Slot
from .trends import tables
from .words import Sentence

MOST = 16
"""Words of a note."""
_JOINTS = frozenset(listed(", but and yet + / ; :"))
_WORDS = frozenset(listed("more less fewer per for of to in up down the a with no each every at on lots lot way"))
"""The function words that a note may have: no pronoun, no auxiliary, nothing that makes a sentence."""
_NEVER_LAST = frozenset(listed("more less fewer take takes give gives make makes use uses need needs cost costs get gets save saves pay pays the a of for per with no in to each every at on"))


def noted(parts: list[Sentence], slot: Slot, rubric: Rubric) -> bool:
    """Whether a short text is pieces of at most six words with one direction in each."""
    if slot.trend is None or sum(len(s.words) for s in parts) > MOST:
        return False
    pieces = 0
    for s in parts:
        found = [e for e in effects(s, *tables(slot.trend, rubric)) if e.quantity != "lever" and e.strong]
        start = 0
        for i in range(len(s.tokens) + 1):
            if i < len(s.tokens) and s.tokens[i].word not in _JOINTS:
                continue
            said = [t.word for t in s.tokens[start:i]]
            inside = [e for e in found if start <= e.at and e.end <= i]
            if said:
                pieces += 1
                if len(said) > 6 or said[-1] in _NEVER_LAST or not inside or any(w in FUNCTION_WORDS and w not in _WORDS for w in said):
                    return False
                if min(e.at for e in inside) - start > 1 or len(said) - (max(e.end for e in inside) - min(e.at for e in inside)) > 3:
                    return False
            start = i + 1
    return pieces >= 2
