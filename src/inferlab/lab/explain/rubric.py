"""Rubrics: what an instructor writes, in a lab's hidden test, to have an explanation's slots graded.

    RUBRIC = Rubric(
        question="Explain one denoising step ...",          # what the lab asks; an answer that repeats it is an echo
        lab="The scheduler's step method combines ...",     # the lab's own prose on the subject, likewise
        terms={                                             # what learners call the things (a trailing * is a prefix; "in quotes": as written)
            "scheduler": "scheduler*, scheduler.step, ddim*, step method",
            "latents": "latent*, x_t",
            "unet": "unet*, denoiser",
            "image": "image*, pixel*",
        },
        slots={
            "state": Slot(award=["scheduler changes latents"],                 # any one entry; "a + b" wants both
                          deny={"unet makes image": "The UNet predicts noise, not pixels."}),
            "axis": Slot(amounts=Amounts(shapes=["unet.sample"], counts={"steps": "steps", "channels": 4})),
            "trade-off": Slot(trend=Trend("steps", gain={"quality": "up"}, cost={"time": "up", "compute": "up"})),
        },
        must_award={"state": ["The scheduler updates the latents from the predicted noise."]},
        must_deny={"state": ["The UNet returns the pixels of the image."]},
    )

A claim is three words, `who does what`: two terms (or `*` for anything) round a verb of `lexicon_verbs.VERBS`
(changes, makes, predicts, keeps, splits, grows, moves, decodes, uses, avoids, ...), or one verb of a class itself; `a/b` for either). "seq grows"
alone is what grows, "cache grows seq" what it grows along. It is found in active and passive sentences, never under a
negation. A slot with several requirements (claims, amounts, a trend) wants all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .cell import canonical
from .words import phrase

SIGN = {"up": 1, "down": -1, "same": 0}


@dataclass(frozen=True)
class Trend:
    """When `lever` goes up (or is switched on, with `switch=True`) the gains and costs go the ways given.

    `lever` is a term of the rubric. `gain` and `cost` map quantities (time, memory, quality, compute, speed,
    throughput, transfer, or terms of the rubric) to "up", "down" or "same"; one of each group is wanted.
    `asked` ("up" or "down") is the way in which the question itself pulls the lever: an answer that names no way
    of its own is read so. `says` maps "quality up" to phrases that say so by themselves in this lab ("follow* .. prompt/text":
    `/` for either word, `..` for up to four words). `also` maps further quantities to their way: not wanted, but wrong if said the other way round.
    """

    lever: str
    gain: Mapping[str, str]
    cost: Mapping[str, str]
    switch: bool = False
    also: Mapping[str, str] = field(default_factory=dict)
    asked: str = ""
    says: Mapping[str, str] = field(default_factory=dict)

    def signs(self) -> dict[str, int]:
        out = {q: SIGN[way] for part in (self.also, self.gain, self.cost) for q, way in part.items()}
        if "time" in out:
            out["speed"] = -out["time"]
            out.setdefault("throughput", -out["time"])
        return out


@dataclass(frozen=True)
class Amounts:
    """Which numbers of the trace an answer must quote.

    `shapes` are names of facts (or shapes themselves): one of them quoted whole is enough. `counts` maps a term
    ("channels") to its right value or values: a number, a fact's name, or a list of these; a number that stands
    beside that term and is none of these contradicts the trace. `key` lists the terms of which one right number
    is enough ("batch=2": that number); otherwise two right numbers (or a part of a shape and a number) are wanted. `of` maps a term to
    the facts that are its shape: a quoted shape that stands beside it and is another one does not count.
    `moves` lists pairs (before, after) of values or facts' names: saying that the second becomes the first, or that the
    first stays, contradicts the trace. `at` maps a place (a term) to what is counted there: {"unet": {"batch": 2}}; another
    number of it there does not count.
    """

    shapes: tuple | list = ()
    counts: Mapping[str, object] = field(default_factory=dict)
    key: tuple | list = ()
    of: Mapping[str, object] = field(default_factory=dict)
    optional: bool = False
    moves: tuple | list = ()
    at: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


@dataclass(frozen=True)
class Slot:
    """One prose field: the claims that earn it, those that are wrong (with what to tell the learner), its amounts
    and its trend. In `award`, `a + b` wants both claims and `a or b` either. `loose` also takes an answer that says what
    happens to the object and who acts in separate words (`the latents get cleaner; the scheduler does the arithmetic`),
    and a number that stands beside no term: only for a slot whose `deny` names the confusable actors. `topic` lists terms of which one must be named, `names` terms that must all be. `reads` is the field's
    label where it is not the slot's name. `learned` is the name under which labelled answers to the same question have been learned
    (`training/likeness.py`): an awarded answer that is not like the right ones is then read by a person."""

    award: list[str] | tuple[str, ...] = ()
    deny: Mapping[str, str] = field(default_factory=dict)
    amounts: Amounts | None = None
    trend: Trend | None = None
    topic: tuple[str, ...] | list[str] = ()
    names: tuple[str, ...] | list[str] = ()
    reads: str = ""
    loose: bool = False
    learned: str = ""

    def __post_init__(self):
        if not (self.award or self.amounts or self.trend):
            raise ValueError("a slot needs at least one of award, amounts, trend: it could never be earned")


@dataclass(frozen=True)
class Rubric:
    """All slots of one explanation, its vocabulary, its examples. `reads` in a Slot names the field when it differs."""

    terms: Mapping[str, str]
    slots: Mapping[str, Slot]
    question: str = ""
    lab: str = ""
    must_award: Mapping[str, list[str]] = field(default_factory=dict)
    must_deny: Mapping[str, list[str]] = field(default_factory=dict)
    example_facts: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self):
        from .claims import read_claim

        owner: dict[tuple[str, ...], str] = {}
        for term, listing in self.terms.items():
            for item in listing.split(","):
                first = owner.setdefault(phrase(item), term)
                if first != term and phrase(item):
                    raise ValueError(f"{item.strip()!r} is listed under the terms {first!r} and {term!r}; an answer's word can be one of them only")
        for name, slot in self.slots.items():
            for entry in [*slot.award, *slot.deny]:
                for part in entry.split("+"):
                    for one in [] if part.strip().startswith("says:") else part.split(" or "):
                        read_claim(one, self.terms)
            if slot.trend and slot.trend.lever not in self.terms:
                raise ValueError(f"slot {name!r}: the lever {slot.trend.lever!r} is not among the terms")
            for key in slot.trend.says if slot.trend else ():
                quantity, _, way = key.rpartition(" ")
                if quantity not in slot.trend.signs() or way not in SIGN:
                    raise ValueError(f"slot {name!r}: says {key!r}: write a quantity of the trend and up, down or same")
            unknown = {*slot.topic, *slot.names} - set(self.terms)
            if unknown:
                raise ValueError(f"slot {name!r}: topic {sorted(unknown)} is not among the terms")

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(canonical(slot.reads or name) for name, slot in self.slots.items())

    @property
    def source(self) -> str:
        return f"{self.question}\n{self.lab}"
