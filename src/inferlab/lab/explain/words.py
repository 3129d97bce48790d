"""Turns a text into sentences of tokens: cleaned of look-alike characters, stemmed, amounts recognised."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from .quantities import Quantity, find_quantities

_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201b": "'", "\u2032": "'", "`": " ", "\u201c": '"', "\u201d": '"',
                         "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2212": "-", "\u2013": "-", "\u2014": ";",
                         "\u2026": ".", "\u21d2": "\u2192", "\u27f6": "\u2192", "\u2191": " up ", "\u2193": " down ",
                         "\u2197": " up ", "\u2198": " down ", "*": " ", "\u00b7": " ", "\u2022": " ", "~": " ", "\u2248": " "})
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
                        "\ufff9-\ufffb\U000e0000-\U000e0fff]")
_STEP_NAMES = (
    (re.compile(r"\bx[ _]?\{?\(?t[ ]?-[ ]?(?:1|dt)\)?\}?|\bx[ _]?(?:prev|next)\b|\bx_?\{?t\+1\}?", re.IGNORECASE), "x_prev"),
    (re.compile(r"\bx[ _]?\{?\(?t\)?\}?(?![\w'])|\bz_?t\b", re.IGNORECASE), "x_t"),
)
_TOKEN = re.compile(
    r"(?P<arrow>-+>|=+>|\u2192)|(?P<word>[^\W\d_][\w]*(?:\.[^\W\d_]\w*)*(?:'[^\W\d_]{1,3})?)|(?P<end>[.!?]+(?=\s|$|[\"')\]])|[;\n]+)"
    r"|(?P<punct>[,:()\[\]/=+<>|-])|(?P<other>\S)")


@dataclass(frozen=True, slots=True)
class Token:
    """One word, amount, arrow or mark. `word` is casefolded, `stem` its stem; `amount` is set for amounts."""

    word: str
    stem: str
    kind: str
    start: int
    end: int
    amount: Quantity | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence (or what stands between semicolons and line ends) as tokens, marks included."""

    tokens: tuple[Token, ...]
    text: str

    @property
    def words(self) -> tuple[Token, ...]:
        return tuple(t for t in self.tokens if t.kind in ("word", "amount"))


def script(ch: str) -> str:
    """The alphabet of one letter: the first word of its Unicode name (LATIN, CYRILLIC, GREEK, ...)."""
    return unicodedata.name(ch, "?").split()[0]


@lru_cache(maxsize=4096)
def _script(ch: str) -> str:
    return "LATIN" if ch.isascii() else script(ch)


def odd_alphabet(text: str, lone: bool = False) -> str:
    """Why the letters of `text` look disguised or foreign, "" when they don't.

    A lone Greek letter (epsilon, sigma_t) is a symbol; a word that mixes alphabets, letters from outside
    Latin that make up a tenth of the text (any of them, with `lone`), and full-width or "mathematical" letters are not.
    """
    foreign = letters = 0
    for word in re.findall(r"[^\W\d_]+", text):
        scripts = {_script(ch) for ch in word if ch not in "\u00b5\u03bc"}
        letters += len(word)
        if scripts <= {"LATIN"}:
            continue
        if any(s in ("FULLWIDTH", "MATHEMATICAL", "CIRCLED", "PARENTHESIZED", "MODIFIER", "SQUARED", "NEGATIVE",
                     "DOUBLE-STRUCK", "SCRIPT", "BLACK-LETTER", "REGIONAL") for s in scripts):
            return "letters of a decorated alphabet"
        if scripts == {"GREEK"} and len(word) == 1:
            continue
        if len(scripts) > 1 and not (scripts == {"LATIN", "GREEK"} and len(word) <= 3):
            return "a word that mixes alphabets"
        foreign += len(word)
    return "another alphabet" if foreign > (0 if lone else 0.1 * letters) else ""


def clean(text: str) -> str:
    """NFKC, invisible characters out, one kind of quote, dash and space; line ends kept."""
    if text.isascii():
        out = text.translate(_QUOTES) if ("`" in text or "*" in text or "~" in text) else text
    else:
        out = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text.translate(_QUOTES)))
        out = out.translate(_QUOTES)
    if "/" in out:
        out = re.sub(r"(?<![^\s(])w/o(?=\s)", "without", re.sub(r"(?<![^\s(])w/(?=\s)", "with", re.sub(r"(?<![^\s(])b/c(?=\s)", "because", out)))
    for pattern, name in _STEP_NAMES:
        out = pattern.sub(name, out)
    return re.sub(r"[^\S\n]+", " ", out)


_IRREGULAR = {
    "rose": "rise", "risen": "rise", "fell": "fall", "fallen": "fall", "grew": "grow", "grown": "grow", "went": "go",
    "gone": "go", "goes": "go", "shrank": "shrink", "shrunk": "shrink", "took": "take", "taken": "take", "gave": "give",
    "given": "give", "made": "make", "kept": "keep", "held": "hold", "wrote": "write", "written": "write",
    "rewrote": "rewrite", "rewritten": "rewrite", "lost": "lose", "paid": "pay", "spent": "spend", "fed": "feed",
    "sent": "send", "became": "become", "got": "get", "gotten": "get", "came": "come", "drew": "draw", "drawn": "draw",
    "built": "build", "bought": "buy", "ran": "run", "running": "run", "chose": "choose", "chosen": "choose",
    "says": "say", "said": "say", "thought": "think", "knew": "know", "left": "leave", "stayed": "stay", "better": "better",
    "is": "be", "are": "be", "was": "be", "were": "be", "been": "be", "being": "be", "am": "be", "has": "have",
    "had": "have", "having": "have", "does": "do", "did": "do", "done": "do", "doing": "do", "halves": "halv",
    "less": "less", "process": "process", "chopped": "chop", "dropped": "drop", "pixels": "pixel", "bigger": "bigger",
    "this": "this", "its": "its", "his": "his", "us": "us", "as": "as", "was_": "be", "various": "various",
    "axes": "axis", "axis": "axis", "caches": "cach", "always": "always", "bias": "bias", "gpus": "gpu",
    "during": "during", "nothing": "nothing", "something": "something", "anything": "anything", "everything": "everything",
    "thing": "thing", "things": "thing", "bring": "bring", "brought": "bring", "string": "string", "need": "need",
    "speed": "speed", "speeds": "speed", "sped": "speed", "seed": "seed", "feed": "feed", "exceed": "exceed", "indeed": "indeed",
    "red": "red", "bed": "bed", "instead": "instead", "fixed": "fix", "higher": "higher", "unchanged": "unchanged",
    "does_": "do", "worse": "worse", "noise": "noise", "latency": "latency", "swapped": "swap", "ring": "ring",
    "king": "king", "needs": "need", "needed": "need", "feeds": "feed", "seeds": "seed", "exceeds": "exceed", "proceeds": "proceed", "proceed": "proceed", "single": "single", "being_": "be", "hundred": "hundred", "need_": "need", "bytes": "byte", "ops": "op",
}
_DOUBLED = re.compile(r"(?<=..)([bdfgmnprt])\1$")


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A crude stem, the same for the rubric's words and the answer's: `updates`, `updated`, `updating` agree."""
    w = word.casefold()
    if w.endswith(("'s", "s'")):
        w = w[:-2] if w.endswith("'s") else w[:-1]
    if w in _IRREGULAR:
        w = _IRREGULAR[w]
        return w[:-1] if w.endswith("e") and len(w) > 4 and w not in ("noise",) else w
    if not w.isascii() or not w.isalpha() or len(w) < 4:
        return w
    if w.endswith("ies") and len(w) > 4:
        w = w[:-3] + "y"
    elif w.endswith(("sses", "shes", "ches", "xes", "zes")):
        w = w[:-2]
    elif w.endswith("s") and not w.endswith(("ss", "us", "is")):
        w = w[:-1]
    if w.endswith("ing") and len(w) > 5 and re.search("[aeiouy]", w[:-3]):
        w = _DOUBLED.sub(r"\1", w[:-3])
        w = w + "e" if len(w) < 3 else w
    elif w.endswith("ied") and len(w) > 4:
        w = w[:-3] + "y"
    elif w.endswith("ed") and len(w) > 4 and re.search("[aeiouy]", w[:-2]):
        w = _DOUBLED.sub(r"\1", w[:-2])
    elif w.endswith("ed"):
        w = w[:-1]
    if w.endswith("e") and len(w) > 3:
        w = w[:-1]
    return w


def tokenize(text: str) -> list[Token]:
    """Tokens of a cleaned text. Amounts are single tokens; `scheduler.step` and `noise_pred` are words."""
    amounts = {q.start: q for q in find_quantities(text)}
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        if at in amounts:
            q = amounts[at]
            tokens.append(Token(q.text.casefold(), f"#{q.kind}", "amount", q.start, q.end, q))
            at = q.end
            continue
        m = _TOKEN.match(text, at)
        if not m:
            at += 1
            continue
        kind, raw, end = m.lastgroup, m.group(0), m.end()
        if kind == "word":
            inside = [s for s in amounts if at < s < end]
            joined = re.match(r"([^\W\d_]{2,})\.([A-Z][a-z]+.*)", raw)
            if joined and not inside:
                tokens.append(_word(joined.group(1), at))
                tokens.append(Token(".", ".", "end", at + joined.end(1), at + joined.end(1) + 1))
                at += joined.start(2)
                continue
            tokens.append(_word(raw, at))
        else:
            tokens.append(Token(raw, raw, kind, at, end))
        at = end
    return tokens


def _word(raw: str, at: int) -> Token:
    low = raw.casefold()
    return Token(low, stem(low), "word", at, at + len(raw))


def sentences(text: str) -> list[Sentence]:
    """Sentences of a cleaned text, split at `.`, `!`, `?`, `;` and line ends (a wrapped line goes on)."""
    text = re.sub(r"(?<![.!?;:])\n(?=[a-z(])", " ", text)
    out: list[Sentence] = []
    part: list[Token] = []
    for token in tokenize(text):
        if token.kind == "end":
            if any(t.kind in ("word", "amount") for t in part):
                out.append(Sentence(tuple(part), text[part[0].start:part[-1].end]))
            part = []
        else:
            part.append(token)
    if any(t.kind in ("word", "amount") for t in part):
        out.append(Sentence(tuple(part), text[part[0].start:part[-1].end]))
    return out


def phrase(text: str) -> tuple[str, ...]:
    """The stems of a rubric's term, as the answers' tokens would be stemmed; a trailing `*` is kept. A term in
    double quotes is taken as it is written: each word becomes `=word`."""
    out = []
    if text.strip().startswith('"') and text.strip().endswith('"') and len(text.strip()) > 2:
        return tuple("=" + t.word for t in tokenize(clean(text.strip()[1:-1])) if t.kind == "word")
    if " .. " in text:
        first, _, rest = text.partition(" .. ")
        return (*phrase(first), "..", *phrase(rest))
    for token in tokenize(clean(text.replace("*", "\u0001")).replace("\u0001", "*")):
        if token.kind in ("word", "amount"):
            out.append(token.stem if token.kind == "word" else token.word)
        elif token.word == "*" and out:
            out[-1] = out[-1] + "*"
    return tuple(out)
