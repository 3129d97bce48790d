"""Tables of phrases, looked up at a place in a sentence."""

from .words import Token, stem

GAP, MOST = "..", 4
"""In a phrase, `..` stands for up to so many words."""


class Table:
    """Phrases by first stem, longest first; a stem ending in `*` matches a prefix."""

    def __init__(self, entries: dict[tuple[str, ...], object]):
        self.by_first: dict[str, list[tuple[tuple[str, ...], object]]] = {}
        self.by_prefix: dict[str, list[tuple[tuple[str, ...], object]]] = {}
        self.prefixes: list[tuple[tuple[str, ...], object]] = []
        for key, value in entries.items():
            if not key:
                continue
            if key[0].endswith("*"):
                self.prefixes.append((key, value))
                self.by_prefix.setdefault(key[0][:2], []).append((key, value))
            else:
                self.by_first.setdefault(stem(key[0][1:]) if key[0].startswith("=") else key[0], []).append((key, value))
        for found in self.by_first.values():
            found.sort(key=lambda item: (-len(item[0]), not item[0][0].startswith("=")))

    def match(self, tokens: tuple[Token, ...], at: int) -> tuple[int, object] | None:
        """(number of tokens, value) of the longest phrase that starts at token `at`, hyphens skipped."""
        best: tuple[int, object] | None = None
        first = tokens[at].stem
        rows = self.by_first.get(first, ()) if tokens[at].amount is None else self.by_first.get(tokens[at].word, ())
        prefixed = self.by_prefix.get(first[:2])
        if prefixed:
            rows = [*rows, *(row for row in prefixed if first.startswith(row[0][0][:-1]))]
        for key, value in rows:
            used = _follow(tokens, at, key)
            if used and (best is None or used > best[0]):
                best = (used, value)
        return best


    def keys(self, tokens: tuple[Token, ...], at: int) -> list[tuple[str, ...]]:
        """The phrases that start at token `at`."""
        rows = self.by_first.get(tokens[at].stem if tokens[at].amount is None else tokens[at].word, ())
        return [key for key, _ in [*rows, *self.prefixes] if _follow(tokens, at, key)]


def _follow(tokens: tuple[Token, ...], at: int, key: tuple[str, ...]) -> int:
    i = at
    for n, part in enumerate(key):
        if part == GAP:
            return next((i + k + used - at for k in range(MOST + 1) if not any(t.kind != "word" and t.kind != "amount" for t in tokens[i:i + k])
                         and (used := _follow(tokens, i + k, key[n + 1:]))), 0)
        if n and i < len(tokens) and tokens[i].word in ("-", "/"):
            i += 1
        if i >= len(tokens):
            return 0
        said = tokens[i]
        if not (said.word == part[1:] if part[0] == "=" else said.stem.startswith(part[:-1]) if part.endswith("*") else part in (said.stem, said.word)):
            return 0
        i += 1
    return i - at
