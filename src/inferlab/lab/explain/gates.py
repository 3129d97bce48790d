"""What an answer must pass before its content counts: prose, one alphabet, a sane length, its own words,
no instruction to the grader, no repetition, not negated as a whole."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz

from .order import ENOUGH, NONE, SHORT, impossible, text_score
from .prose import FUNCTION_WORDS, misplaced
from .words import Sentence, clean, odd_alphabet, sentences

MAX_FIELD = 1_200
MAX_WORDS = 110
MAX_SENTENCES = 6
ECHO = 0.6

_INJECTION = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,40}\b(?:instruction|rule|rubric|prompt|above|previous|criteria|check)"
    r"|\b(?:award|give|grant|assign|deserve|get|receive|return|set|record|mark|score|grade|rate)s?\b[^.\n]{0,50}\b(?:full|max(?:imum)?|all|top|perfect|100\s?%)"
    r"[^.\n]{0,12}\b(?:marks?|points?|credit|scores?|grades?)\b"
    r"|\bfull (?:marks?|points?|credit|score)\b|\bmaximum (?:marks?|points?|credit|score)\b"
    r"|\b(?:the|dear|hey|hello|note to|message to|for the|to the)\s+(?:auto-?)?(?:grader|marker|grading|evaluator|examiner|rater|assessor|instructor|tutor)\b"
    r"|\b(?:dear|hey|hello|note to (?:the|my)|message to (?:the|my))\s+teacher\b"
    r"|\b(?:auto-?grader|grader|grading (?:system|model|script|engine|bot)|llm (?:judge|marker|reading|that (?:reads|grades|marks|checks))|(?:dear|hey|hello) llm|language model grader|evaluator|examiner)\b"
    r"|\b(?:mark|grade|score|rate|treat|count|accept|consider|classify|judge)\b[^.\n]{0,40}\b(?:as|is)\s+(?:fully\s+|entirely\s+|completely\s+)?"
    r"(?:correct|right|passed|pass|award(?:ed)?|valid|complete|perfect|true)\b"
    r"|\b(?:this|the|my) (?:\w+ )?(?:answer|response|explanation|submission|field|slot) (?:deserves|meets|satisfies)\b"
    r"|\b(?:this|the|my) (?:\w+ )?(?:answer|response|explanation|submission|field|slot) (?:is|was|has been|should be|must be) (?:(?:\w+ly|already|known to be|to be|been|quite|very|all|"
    r"a|an|the|model|reference|sample) )*(?:correct|right|valid|true|verified|accepted|approved|complete|passed|perfect|checked|graded|awarded|excellent|good|fine|ok|okay|solution|answer)\b"
    r"(?! (?:after|before|where|when|because|only|at|in|one|object|number|shape|axis|part|half|hand|side|latents|cache)\b)"
    r"|\b(?:verdict|score|points|state|axis|grade|award)\s*(?:=|==|:=)\s*[\"']?(?:\d|award|true|pass|full|correct|max)"
    r"|\bas (?:the|an?|your) (?:course |lab )?(?:author|instructor|teacher|admin\w*|developer|creator)\b"
    r"|\byou (?:are|must|should|will|have to) (?:now )?(?:an? |the )?(?:award|grade|grading|mark|accept|give|ai|assistant|model|pass)"
    r"|\b(?:system|assistant|user|developer)\s*(?:(?:prompt|message|override)\s*[:>\]]|[>\]])|\b(?:system|developer)\s*:|(?:^|\n)\s*assistant\s*:|<\|?/?(?:system|im_start|inst|grading|script|answer)\b"
    r"|\bassert true\b|\bprint\s*\(|\bexec\s*\(|\breturn (?:award|true|1|outcome)\b|\boutcome\s*\(|\bimport os\b|\b(?:answer|explanation|this|it|i|must|should|will|please) pass(?:es)? (?:all|the) (?:check|test|gate)s?\b"
    r"|\b(?:rubric|hidden test|must_award)s?\b|\bverdict\s*[:=]|\b(?:my|the|your|final) verdict is\b|\bplease (?:award|accept|give|pass|mark|grade|be (?:kind|generous|lenient))\b"
    r"|\bi (?:really )?(?:deserve|need) (?:the |these |this |full |all )?(?:points?|marks?|credit|pass)\b", re.IGNORECASE)

_FRAME = re.compile(
    r"\b(?:it|this|that|which)(?:'s| is| was| would be| will be| seems| isn't| is not| cannot be| can't be| has)\s*(?:simply |just |therefore |plainly |definitely |absolutely |completely |totally |also |clearly )?"
    r"(?:not |never |in no way |n't |hardly |far from )*(?:at all )?"
    r"(?:true|correct|right|the case|accurate|valid|wrong|false|incorrect|untrue|mistaken|a (?:common |popular |widespread |frequent )?(?:myth|mistake|misconception|misunderstanding|lie|fallacy|error|misbelief)|"
    r"inaccurate|nonsense|misleading|impossible|ruled out|an error|unlikely|doubtful|a misreading|tempting)(?: to (?:say|think|claim|believe|state|assume|suppose|write|conclude|imagine|hold))?"
    r"(?: that\b|\s*:|,)?"
    r"|\b(?:nobody|no one|no-one|none of us|you|one|people|learners|students|they|(?:we|i)(?=\s+(?:should(?:n't| not| never)|must(?:n't| not| never)|can(?:not|'t| never)|would(?:n't| not| never)|do(?:n't| not)|could(?:n't| not| never)|cannot|never)))\s+(?:might|may|could easily|might easily|should(?:n't| not| never)?|must(?:n't| not| never)?|can(?:not|'t| never)|would(?:n't| not| never)|do(?:n't| not)|could(?:n't| not| never)?|cannot|never)?\s*"
    r"(?:ever |really |honestly |seriously )?(?:(?:claim|believe|say|think|assume|argue|suppose|state|deny|pretend|expect|imagine)s?(?: that\b|\s*:|,|\b)|(?:accept|agree)s?(?: that\b|\s*:|,))"
    r"|\b(?:mistake|misconception|error|myth|misunderstanding|fallacy|confusion|mix-up|trap)s?\b[^.;:\n]{0,25}\b(?:(?:is|are|would be) (?:to (?:think|believe|assume|say|claim)|that|thinking|assuming|believing)|to (?:think|believe|assume|say))"
    r"|\b(?:i|we) (?:used to|had|once|first|initially|originally|previously|at first)\s+(?:think|thought|believe|believed|expect|expected|assume|assumed)"
    r"|\b(?:i|we) (?:thought|expected|assumed|believed|doubt|dispute|reject|deny|disagree|refuse)\b"
    r"|\b(?:contrary to (?:the |what |popular |this )|against (?:what |popular ))|\b(?:the )?(?:following|statement|claim|idea|notion|belief|view|assertion|sentence)s?(?: \w+){0,4} (?:is|are) (?:\w+ )?(?:false|wrong|untrue|incorrect|not true|mistaken|a myth|a lie)"
    r"|\b(?:the )?(?:following|opposite|reverse|contrary|negation) (?:\w+ ){0,5}(?:is|are|holds?|would be) (?:\w+ )?(?:true|the case|right|correct)?"
    r"|\b(?:false|wrong|incorrect|not true|untrue|lie|myth|nope|not|misconception|fiction|no)\s*[:!]"
    r"|\b(?:people|many|some|others|somebody|someone|beginners|novices|most)(?: \w+){0,2} (?:often |might |may |would |will |could |wrongly |mistakenly )*(?:say|think|claim|believe|assume|imagine|suppose)s?\b"
    r"|\bfar from (?:the truth|true|it being)|\b(?:there is )?no (?:truth|evidence|proof|way|reason to (?:believe|think|say))(?: in| that| to)?\b"
    r"|\bthe (?:idea|claim|notion|belief|view|statement|suggestion|assertion|theory|assumption) (?:that|is)\b"
    r"|\bis (?:a )?(?:myth|false|untrue|wrong|incorrect|not true|not the case|not correct|not right)\b|\b(?:never|not) (?:once )?(?:is it|does it happen|the case|true)\b"
    r"|\bnone of (?:this|that|the above|it|these|what)(?= *(?:$|[.!,;:])| (?:is|was|are|were|holds?|happens?|applies)\b(?! (?:an?|the|in|on|at|done|made|needed|seen|visible|touched|changed|kept)\b))|\ball of (?:this|that|the above|it) is (?:false|wrong|untrue)|\bsupposedly\b|\ballegedly\b|\bas if\b|\bin no (?:way|case|sense)\b|\bby no means\b",
    re.IGNORECASE)


_RETRACTION = re.compile(
    r"\b(?:none|nothing) of (?:this|that|the above|it|these|what (?:i|is|stands)(?: \w+){0,3}|the following|my(?: \w+)?)(?= *(?:$|[.!,;:])| (?:is|was|are|were|holds?|happens?|applies|matters|follows|stands)\b"
    r"(?! (?:an?|the|in|on|at|done|made|needed|seen|visible|touched|changed|kept|stored|recomputed)\b))"
    r"|\b(?:all|everything|each|every (?:word|sentence|line)|most)(?: of)? (?:this|that|the above|it|these|above|below|the following|i (?:said|wrote)|here)(?: \w+)? (?:is|are|was|were)"
    r" (?:\w+ )?(?:false|wrong|untrue|incorrect|not true|a lie|lies|nonsense|made up|the wrong way)"
    r"|\bthe (?:exact |very )?(?:opposite|reverse|contrary|negation)\b[^.\n]{0,40}\b(?:is|are|holds?|would be) (?:\w+ )?(?:true|the case|right|correct|so)"
    r"|\bthe following (?:\w+ ){0,3}(?:is|are) (?:\w+ )?(?:false|wrong|untrue|incorrect|not true|mistaken|a lie|not the case|not correct|not right)"
    r"|\b(?:just|only) (?:kidding|joking)\b|^[ \t.]{0,9}not[ \t.]{0,9}$|\bdo(?:n't| not) believe (?:any of )?(?:this|that|the above|a word)\b", re.IGNORECASE | re.MULTILINE)


_TAKEN_BACK = re.compile(
    r"(?:[.!?,;:(-]|\s-)\s*(?:(?:well|actually|but|and|oh|hm+|lol|haha+|hehe|jk|lmao|um+|uh+|sorry|just|ok|okay|right),? )*(?:no|not|nope|nah|never|wrong|false|untrue|incorrect|nonsense|joke|joking|(?:just |only )?kidding|"
    r"scratch that|never mind|forget (?:it|that|this)|not really|not at all|not so|not true|as if|yeah,? right|lies?|sarcasm|psych)\W*$"
    r"|(?<!\bis)(?<!\bare)(?<!\bwas)(?<!\bwere)(?<!\bdo)(?<!\bdoes)(?<!\bdid)(?<!\bhas)(?<!\bhave)(?<!\bcan)(?<!\bwill)\s(?:not|nope|nah)[\s!.]*$|\bsaid (?:nobody|no one|no-one|noone)\b|\bbut (?:this|that|it|none of it|all of it)(?:'s| is| was|'s all| is all)? (?:not|never|n't|wrong|false|nonsense|untrue|incorrect|a lie|made up)\b"
    r"|\bor so (?:they|people|i'm told|it is said)\b|\bi (?:take (?:it|that|this) back|lied|am lying|made (?:this|that|it) up)\b|\bnot what happens\b", re.IGNORECASE)
_ELLIPSIS = re.compile(r"[.;,:]\s+(?:(?:and|but|the|while)\s+)*(?!so |really |quite |yet |but |well |just |at |actually |surely |of )[a-z]{4,}(?: \w+)?(?: \(?\d+\)?)? not[\s.!]*$", re.IGNORECASE)
"""`Height and width are cut; the batch (2) not`: a second statement with its verb left out, no joke."""
_UNASSERTED = re.compile(
    r"\?|^\W*(?:suppose|imagine(?! an? )|pretend|say that|let us assume|let's assume|assume)\b|\bin (?:an ideal|a perfect|theory|another|some other) (?:world|universe)\b"
    r"|\b(?:in (?:my|a|your|some) dreams?|opposite day|april fools?|find the (?:error|mistake|bug)|(?:parallel|alternat(?:e|ive)) (?:universe|world)s?|once upon a time|(?:many |some )?years ago|"
    r"crossed out|(?:in|before|until) (?:this|the|an?) (?:older|earlier|old|previous|last|next)? ?(?:version|release)s?|(?<!there )used to(?! be))\b"
    r"|\b(?:refrain(?:s|ed)? from|(?:forgets?|forgot|refuse[sd]?|neglect(?:s|ed)?|cease[sd]?|omit(?:s|ted)?|fail(?:s|ed)?) to|(?:stops?|stopped|ceases?|quits?) (?!getting|improving|growing|changing|rising|falling|helping|paying)\w{3,}ing)\b"
    r"|\b(?:every(?:thing|body|one)|any(?:thing|body|one)|some(?:thing|body|one)|all|nothing|nobody|no one|everything else) (?:but|except|other than|apart from|besides)\b"
    r"|\((?:\w+ ){1,4}(?:believes?|thinks?|claims?|says|said|thought|argues?)\s*\)|,\s*(?:so )?(?:said|says|claims?|claimed) (?:the|a|an|my|some)\b|\bor so (?:a|an|some|the|my) \w+"
    r"|\baccording to (?!(?:my|the|our|this) (?:own )?(?:trace|run|table|output|recorded|lab|scheduler|update|rule|noise|predict))"
    r"|\bif (?:i|we|you|one) (?:were|was|wanted|had) (?:to |wrong|right|mistaken|lying)|\bif at all\b|\bor (?:is it|was it|isn't it|maybe not|not)\b|\b(?:the )?other way (?:a)?round\b|\bvice versa\b"
    r"|\b(?:isn't|wasn't|not|never)(?: quite| really)? so that\b|\bis (?:it|this)(?: quite| really)? so that\b"
    r"|(?<!i )(?<!we )(?<!i'd )(?<!i do )\b(?:say|says|said|saying|claim|claims|claimed|believe|believes|believed|think|thinks|thought|suppose|supposes|told|agree|agrees|argue|argues|argued|write|writes|"
    r"wrote|imagine|imagines|pretend|pretends|assume|assumes|assumed|deny|denies|doubt|doubts|heard|swear|insist|insists|hold|holds|follow|follows)(?: us| me| you)? that\b"
    r"|\b(?:claim|claims|claimed|says|said|insist|insists|wrote|writes|argues|believes)\s*:", re.IGNORECASE)


@lru_cache(maxsize=512)
def taken_back(text: str) -> str:
    """The words at its end with which a field takes back what it said ("... Not!", "said nobody ever"), "" if none."""
    m = _TAKEN_BACK.search(text.strip())
    if m and m.group(0).strip(" .") == "not" and _ELLIPSIS.search(text.strip()):
        return ""
    return m.group(0).strip() if m else ""


@lru_cache(maxsize=512)
def unasserted(text: str) -> str:
    """The words that keep a field from being a statement of its author's: a question, a supposition, somebody else's
    words; "" if there are none. What a distancing frame holds ("people think that ...") is judged elsewhere."""
    frames = [m.span() for m in _FRAME.finditer(text)]
    for m in _UNASSERTED.finditer(text):
        if m.group(0) == "?" or not any(a <= m.start() < b for a, b in frames):
            return m.group(0).strip()
    return ""


_BOTH_WAYS = re.compile(
    r"\b(?:but|yet|although|though) (?:in fact|actually|really|in (?:reality|truth))\b[^.;]{0,40}(?:\b(?:not|never|no)\b|n't)"
    r"|\b(?:grows?|changes?|rises?|increases?|shrinks?|doubles?|falls?)\b[^.;:]{0,40}\b(?:and|but) (?:it|they|the same(?: \w+)?) (?:also |then |always )?(?:stays?|remains?|does not|do not|doesn't|don't|never)\b"
    r"|\b(?:is|are|gets?|get) (\w+)\b[^.;]{0,80}\b(?:though|although|but|while|yet)\b[^.;]{0,40}\b(?:is|are) (?:not|never) \1\b"
    r"|\b(?:stays?|remains?)\b[^.;:]{0,30}\b(?:and|but) (?:it|they|the same(?: \w+)?) (?:also |then |always )?(?:grows?|changes?|rises?|increases?|shrinks?|doubles?)\b", re.IGNORECASE)


_BARE_DENIAL = re.compile(
    r"(?:(?:^|[.;,:(]\s*|\b(?:and|but|yet|though|although|while|whereas|which|or)\s+)"
    r"(?:(?:and|but|yet|so|also|still|then|however|though|although|at the same time|simultaneously|at once|on the other hand|in the end|in fact|in reality|actually|really|of course|"
    r"maybe|sometimes),?\s+)*"
    r"(?:(?:it|they|this|that|he|she|(?:none|nothing|neither|not one)(?: of (?:it|this|that|them|these|those))?|(?:all|any|most) of (?:it|this|that|them|these)|each of them|both)\s+"
    r"(?:(?:really|ever|also|just|then|in fact|actually|in the end|always)\s+)*"
    r"(?:(?:does|do|did|is|are|was|were|has|have|had|will|would|can|could)(?:\s+(?:not|never)|n't)?|never(?:\s+\w+)?|not|happens?|changes?|applies|apply|holds?|counts?|occurs?|exists?)"
    r"(?:\s+(?:so|true|happens?|happening|at all|ever|either|the case|do|does|like that|that way|anything|any of (?:it|this|that|these)))*"
    r"|never (?:do(?:es)?|did|is|are|happens?)(?: so| it| that)?|(?:does|do|is|are)n't"
    r"|yes and no|(?:(?:also|just|exactly|equally) )?the (?:very |exact )?(?:opposite|contrary|reverse)(?: of (?:it|this|that|these|them|all this))?(?: too| as well| also)?|(?:or|and) not)"
    r"|\b(?:and|but|yet|though|although)\s+(?:(?:at the same time|also|then|still) )*(?:is|are|does|do) (?:not|never)(?: so)?)"
    r"\s*(?=[.;!?)]|$)", re.IGNORECASE)
"""A clause of a pronoun and an auxiliary that says no and nothing else: `and at the same time it does not`, `yes and no`."""
_SAYS_NO = re.compile(r"\b(?:not|never|none|nothing|neither|opposite|contrary|reverse|yes and no)\b|n't", re.IGNORECASE)


@lru_cache(maxsize=512)
def both_ways(text: str) -> str:
    """The words in which a field says of one thing that it is so and that it is not ("grows and it stays", "and yet it does not"), "" if there are none."""
    m = _BOTH_WAYS.search(text) or next((m for m in _BARE_DENIAL.finditer(text) if _SAYS_NO.search(m.group(0))), None)
    return m.group(0).strip() if m else _said_and_denied(text)


def _said_and_denied(text: str) -> str:
    """A clause that another one says word for word, but for a `not`: `The axis is longer. ... The axis is not longer, ...`"""
    seen: list[tuple[list[str], bool]] = []
    for clause in re.split(r"[.,;:!?()]|\b(?:but|and|although|though|while|whereas|yet)\b", text[:MAX_FIELD].casefold().replace("n't", " not")):
        words = re.findall(r"[\w'/-]+", clause)
        said = [w for w in words if w not in ("not", "never", "no", "does", "do")]
        no = any(w in ("not", "never", "no") for w in words)
        if len(said) >= 3 and said[0] not in ("it", "this", "that", "they", "these", "those"):
            for other, denied in seen:
                if no != denied and (said[:len(other)] == other or other[:len(said)] == said):
                    return clause.strip()
            seen.append((said, no))
    return ""


_STRUCK = re.compile(r"~~|</?[a-z]+>|[¬≠✗✘]|[=!]=\s*(?:false|none|null|0)?|(?:^|\s)/s\s*$|\b(?:assert|lambda)\b", re.IGNORECASE)


@lru_cache(maxsize=512)
def signs(raw: str) -> str:
    """Markup, code and pictures that change what a text says without a word (`~~...~~`, `... == False`, an emoji), "" if there are none."""
    m = _STRUCK.search(raw)
    return m.group(0).strip() if m else next((ch for ch in raw[:MAX_FIELD] if unicodedata.category(ch) == "So" and not ("\u2190" <= ch <= "\u21ff" or ch in "\u2713\u2714\u00b0")), "")


@lru_cache(maxsize=128)
def retraction(text: str) -> str:
    """The words that take a whole answer back ("none of this is true"), "" if there are none."""
    m = _RETRACTION.search(text)
    return m.group(0).strip() if m else ""


_STRONG = re.compile(
    r"n't|\b(?:not?|never|cannot|nobody|none|false|wrong|incorrect|untrue|mistake|mistaken|myth|misconception|misunderstanding|lie|fallacy|error|nonsense|inaccurate|"
    r"misleading|doubt|dispute|reject|deny|disagree|refuse|contrary|against|opposite|reverse|negation|far from|no one|no-one|fiction|impossible|unlikely|doubtful|"
    r"supposedly|allegedly|misreading|misbelief|hardly)\b", re.IGNORECASE)


@lru_cache(maxsize=512)
def strongly_framed(text: str) -> str:
    """The words of a frame that says no ("it is wrong to say", "nobody should claim"), "" if there are none; two
    frames in one sentence count as one that does."""
    frames = [m.group(0).strip() for m in _FRAME.finditer(text)]
    strong = [f for f in frames if _STRONG.search(f)]
    return strong[0] if strong else " ... ".join(frames) if len(frames) > 1 else ""


@lru_cache(maxsize=512)
def doubly_framed(text: str) -> str:
    """Two frames in one sentence ("it is not true that people think ..."), "" otherwise."""
    frames = [m.group(0).strip() for m in _FRAME.finditer(text)]
    return " ... ".join(frames) if len(frames) > 1 else ""


@lru_cache(maxsize=512)
def framed(text: str) -> str:
    """The words that put a whole statement at a distance ("it is not true that", "people think"), "" if none."""
    m = _FRAME.search(text)
    return m.group(0).strip() if m else ""


@lru_cache(maxsize=128)
def instruction(text: str) -> str:
    """The words in which a text talks to the grader instead of answering, "" if it doesn't."""
    m = _INJECTION.search(text[:20_000])
    return m.group(0).strip() if m else ""


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9_.]+", text.casefold())


@lru_cache(maxsize=256)
def _source(text: str) -> tuple[frozenset, tuple[str, ...]]:
    cleaned = clean(text)
    grams = set()
    for s in sentences(cleaned):
        w = _words(s.text)
        grams |= {tuple(w[i:i + 5]) for i in range(len(w) - 4)}
    return frozenset(grams), tuple(" ".join(_words(s.text)) for s in sentences(cleaned))


def overlap(text: str, source: str) -> tuple[float, str]:
    """(share of the text's words that stand in a run of five or more of `source`, the longest such run).

    A sentence that is nearly a sentence of `source` counts whole. Texts under seven words share nothing.
    """
    if not source:
        return 0.0, ""
    grams, lines = _source(source)
    covered = total = 0
    longest: list[str] = []
    for s in sentences(text):
        w = _words(s.text)
        total += len(w)
        if len(w) < 7:
            continue
        mark = [False] * len(w)
        for i in range(len(w) - 4):
            if tuple(w[i:i + 5]) in grams:
                mark[i:i + 5] = [True] * 5
        joined = " ".join(w)
        if max((fuzz.ratio(joined, line, score_cutoff=86) for line in lines), default=0) >= 86:
            mark = [True] * len(w)
        covered += sum(mark)
        run: list[str] = []
        for word, hit in zip([*w, ""], [*mark, False], strict=True):
            if hit:
                run.append(word)
            else:
                longest = max(longest, run, key=len)
                run = []
    return (covered / total if total else 0.0), " ".join(longest)


def repeats(parts: list[Sentence]) -> str:
    """What a text says more than once in the same words, "" if nothing."""
    seen: list[tuple[str, list[str]]] = []
    for s in parts:
        line, numbers = " ".join(t.stem for t in s.words), [t.word for t in s.words if t.kind == "amount"]
        if len(s.words) >= 4:
            for old, other in seen:
                # `axis 0 counts 6 requests`, `axis 1 counts 3 requests`: a contrast says two things
                if fuzz.ratio(line, old, score_cutoff=93) >= 93 and sorted(numbers) == sorted(other):
                    return s.text
            seen.append((line, numbers))
    words = [t.word if t.kind == "amount" else t.stem for s in parts for t in s.words]
    pairs: dict[tuple, int] = {}
    for gram in zip(words, words[1:], words[2:], strict=False):
        if sum(w[:1].isdigit() for w in gram) < 2:
            pairs[gram] = pairs.get(gram, 0) + 1
    worst = max(pairs.items(), key=lambda kv: (kv[1], kv[0]), default=None)
    if worst and worst[1] >= 3:
        return " ".join(worst[0])
    return ""


@dataclass(frozen=True)
class Gate:
    """The first gate that a text fails: its verdict and reason; `verdict` is "" when all pass."""

    verdict: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = ()
    loose: bool = False
    """Whether only the text's form is in doubt: a short note that is understood word for word may pass."""


_SAYING = frozenset((":", "=", "is", "are", "becomes", "become", "goes", "gets", "stays", "stay", "keeps", "remains", "so", "per", "because", "but", "->", "\u2192"))


def listing(parts: list[Sentence]) -> bool:
    """Whether a text is a list of words: most of what stands between its commas is one to three words, none of them
    a function word or a direction."""
    for s in parts:
        chunks: list[list[str]] = [[]]
        many = sum(t.word == "and" for t in s.tokens) >= 4
        for t in s.tokens:
            if t.word in (",", "/", "|", "+") or (t.word == "and" and many):
                chunks.append([])
            elif t.kind in ("word", "amount"):
                chunks[-1].append(t.word)
        words = [t for t in s.tokens if t.kind in ("word", "amount")]
        marked = any(t.word in (":", ",") for t in s.tokens)
        if len(words) >= (11 if marked else 7) and 10 * sum(t.word in FUNCTION_WORDS for t in words) < len(words) and not any(t.kind == "arrow" for t in s.tokens):
            return True
        bare = sum(0 < len(c) <= 3 and not any(w in FUNCTION_WORDS for w in c) and not (len(c) > 1 and any(w[:1].isdigit() for w in c)) for c in chunks)
        if len(chunks) >= 4 and bare >= 0.6 * len(chunks):
            return True
        single = [len(c) == 1 and c[0] not in FUNCTION_WORDS and not c[0][:1].isdigit() for c in chunks]
        if any(all(single[n:n + 4]) for n in range(len(single) - 3)):
            return True  # `throughput up, memory up, batch, sequences, bandwidth, roofline`
    return False


def _arrowed(parts: list[Sentence]) -> bool:
    """Whether a text has an arrow between two amounts, or a term's amounts: an order that no shuffle leaves."""
    tokens = [t for s in parts for t in s.tokens]
    if len(tokens) <= 16 and {"in", "out"} <= {t.word for t in tokens} and sum(t.kind == "amount" and t.amount.kind == "shape" for t in tokens) == 2:
        return True
    return any(t.kind == "arrow" and 0 < i < len(s.tokens) - 1 and s.tokens[i + 1].kind == "amount" and any(u.kind == "amount" for u in s.tokens[max(0, i - 2):i])
               for s in parts for i, t in enumerate(s.tokens))


def check(raw: str, cleaned: str, parts: list[Sentence], source: str, ordered: bool = True) -> Gate:
    """Run the gates on one field. `source` is the question and the lab's text; `ordered` says that what earns the slot
    depends on the order of words already, so that the prose gate need not be as strict."""
    told = instruction(cleaned)
    if told:
        return Gate("deny", "This talks to the grader instead of explaining.", (told,))
    odd = odd_alphabet(raw, lone=True)
    if odd:
        if odd == "another alphabet":
            return Gate("review", "This is written in another alphabet; a person will read it.", ())
        return Gate("deny", f"This has {odd}; write it in plain English letters.", ())
    if not parts:
        return Gate("deny", "This field is empty.")
    again = repeats(parts)
    if again:
        return Gate("deny", "This says the same thing more than once.", (again,))
    share, piece = overlap(cleaned, source)
    if share >= ECHO and (len(piece.split()) >= 7 or share >= 0.9):
        return Gate("deny", f"{share:.0%} of this stands in the question or the lab's own text.", (piece,))
    words = sum(len(s.words) for s in parts)
    if len(raw) > MAX_FIELD or words > MAX_WORDS or len(parts) > MAX_SENTENCES:
        return Gate("review", f"This is longer than the one or two sentences asked for ({words} words); a person will read it.")
    if words < 3:
        numbers = any(t.kind == "amount" for s in parts for t in s.tokens)
        return Gate("review" if numbers else "deny", "This is too short to be an explanation.", (cleaned.strip(),))
    if listing(parts):
        said = any(t.word in _SAYING for s in parts for t in s.tokens)
        return Gate("review" if said else "deny", "This is a list of words, not a sentence.", (cleaned.strip()[:80],), loose=said)
    score = text_score(parts, ordered)
    bare = words >= 5 and not any(t.word in FUNCTION_WORDS for s in parts for t in s.words) and not any(t.kind == "punct" for s in parts for t in s.tokens)
    if (bare and score < ENOUGH) or score < NONE and words >= 9 and any(impossible([t.word for t in s.tokens]) for s in parts):
        return Gate("deny", "This does not read as sentences.", (f"prose score {score:.2f}",))
    brief = words < 9 or words < 9 * len(parts) and not any(impossible([t.word for t in s.tokens]) or misplaced(s.tokens) for s in parts)
    if score < (SHORT if brief else ENOUGH) and not _arrowed(parts):
        return Gate("review", "This hardly reads as sentences; a person will read it.", (f"prose score {score:.2f}",), loose=True)
    return Gate()


def form_remarks(cleaned: str) -> list[str]:
    """The gates that concern form, as remarks for the linter."""
    parts = sentences(cleaned)
    out = []
    if instruction(cleaned):
        out.append("This talks to the grader; explain instead.")
    if repeats(parts):
        out.append("This says the same thing more than once.")
    if parts and sum(len(s.words) for s in parts) >= 4 and text_score(parts[:MAX_SENTENCES]) < 0.1:
        out.append("This does not read as a full sentence.")
    return out
