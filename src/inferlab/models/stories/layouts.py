"""Documents about a scene: coloured shapes in a row that may change, described and asked about.

    Scene: On a gray background, from left to right: a small red circle, a large blue ring and a small green
    square. Then the red circle and the blue ring trade places. Now from left to right: a large blue ring, a
    small red circle and a small green square.</s>
    Question: How many shapes are right of the blue ring now?
    Answer: the small red circle and the small green square, so two.</s>
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial

from .documents import Document, Turn, ask, pick_turns
from .words import BACKGROUNDS, COLORS, KINDS, NUMBERS, SIZES, join, plural, sentence

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


@dataclass(frozen=True)
class Shape:
    """One shape of a scene; no two shapes of one scene have the same color and kind."""

    size: str
    color: str
    kind: str

    def __str__(self) -> str:
        return f"{self.size} {self.color} {self.kind}"

    @property
    def short(self) -> str:
        """Without its size."""
        return f"{self.color} {self.kind}"


class Row:
    """A row of shapes from left to right, the changes it went through, and what can be asked about it."""

    def __init__(self, rng: random.Random) -> None:
        self.background = rng.choice(BACKGROUNDS)
        # few colors and kinds in one scene, so that counting has something to count
        colors = rng.sample(COLORS, rng.randint(2, 4))
        kinds = rng.sample(KINDS, rng.randint(2, len(KINDS)))
        pairs = [(color, kind) for color in colors for kind in kinds]
        n = min(len(pairs), rng.randint(3, 6))
        self.shapes = [Shape(rng.choice(SIZES), *pair) for pair in rng.sample(pairs, n)]
        self.start = list(self.shapes)
        self.changes: list[str] = []

    # changes

    def _swap(self, rng: random.Random) -> str:
        i, j = rng.sample(range(len(self.shapes)), 2)
        a, b = self.shapes[i], self.shapes[j]
        self.shapes[i], self.shapes[j] = b, a
        return f"the {a.short} and the {b.short} trade places"

    def _leave(self, rng: random.Random) -> str | None:
        if len(self.shapes) < 4:
            return None
        gone = self.shapes.pop(rng.randrange(len(self.shapes)))
        return f"the {gone.short} goes away"

    def _arrive(self, rng: random.Random) -> str | None:
        if len(self.shapes) > 6:
            return None
        new = self._fresh(rng, rng.choice(SIZES))
        side = rng.choice(("left", "right"))
        self.shapes.insert(0 if side == "left" else len(self.shapes), new)
        return f"a {new} comes in from the {side}"

    def _repaint(self, rng: random.Random) -> str | None:
        i = rng.randrange(len(self.shapes))
        old = self.shapes[i]
        colors = [c for c in COLORS if (c, old.kind) not in {(s.color, s.kind) for s in self.shapes}]
        if not colors:
            return None
        color = rng.choice(colors)
        self.shapes[i] = Shape(old.size, color, old.kind)
        return f"the {old.short} turns {color}"

    def _resize(self, rng: random.Random) -> str:
        i = rng.randrange(len(self.shapes))
        old = self.shapes[i]
        size = rng.choice([s for s in SIZES if s != old.size])
        self.shapes[i] = Shape(size, old.color, old.kind)
        return f"the {old.short} becomes {size}"

    def _fresh(self, rng: random.Random, size: str) -> Shape:
        taken = {(s.color, s.kind) for s in self.shapes}
        free = [(c, k) for c in COLORS for k in KINDS if (c, k) not in taken]
        return Shape(size, *rng.choice(free))

    _CHANGES = (_swap, _swap, _leave, _arrive, _repaint, _resize)

    def change(self, rng: random.Random) -> None:
        """Let one thing happen to the row."""
        made = None
        while made is None:
            made = rng.choice(self._CHANGES)(self, rng)
        self.changes.append(f"{made}. Now from left to right: {self.listing()}")

    # text

    def listing(self) -> str:
        """The shapes from left to right, in words."""
        return join([f"a {s}" for s in self.shapes])

    def context(self) -> str:
        """The row as it was, and each change with the row after it."""
        start = join([f"a {s}" for s in self.start])
        text = f"Scene: On a {self.background} background, from left to right: {start}."
        for word, made in zip(("Then", "After that", "At last"), self.changes, strict=False):
            text += f" {word} {made}."
        return text

    # requests

    def _list_now(self, rng: random.Random) -> Turn:
        if rng.random() < 0.5:
            return ask("order", "What is there now from left to right?", self.listing())
        return ask("order-back", "What is there now from right to left?",
                   join([f"a {s}" for s in self.shapes[::-1]]))

    def _count(self, rng: random.Random) -> Turn:
        word, found = self._some(rng, self.shapes)
        return ask("count", f"How many {word} are there now?", counted(found))

    def _count_beside(self, rng: random.Random) -> Turn:
        i = rng.randrange(len(self.shapes))
        side = rng.choice(("left", "right"))
        found = self.shapes[:i] if side == "left" else self.shapes[i + 1 :]
        question = f"How many shapes are {side} of the {self.shapes[i].short} now?"
        return ask("count-beside", question, counted(found))

    def _some(self, rng: random.Random, among: list[Shape]) -> tuple[str, list[Shape]]:
        what = rng.choice(("color", "kind", "size", "any"))
        if what == "any":
            return "shapes", among
        if what == "size":
            value = rng.choice(SIZES)
        else:
            value = getattr(rng.choice(self.shapes), what) if rng.random() < 0.8 else rng.choice(
                COLORS if what == "color" else KINDS)
        found = [s for s in among if getattr(s, what) == value]
        return (plural(value) if what == "kind" else f"{value} shapes"), found

    def _neighbor(self, rng: random.Random) -> Turn:
        i = rng.randrange(len(self.shapes))
        step = rng.choice((-1, 1))
        side = "left" if step < 0 else "right"
        there = i + step
        answer = f"the {self.shapes[there]}" if 0 <= there < len(self.shapes) else "nothing"
        return ask("neighbor", f"What is just {side} of the {self.shapes[i].short} now?", answer)

    def _nth(self, rng: random.Random) -> Turn:
        i = rng.randrange(len(self.shapes))
        side = rng.choice(("left", "right"))
        shape = self.shapes[i] if side == "left" else self.shapes[-1 - i]
        return ask("nth", f"Which shape is {ORDINALS[i]} from the {side} now?", f"the {shape}")

    def _attribute(self, rng: random.Random) -> Turn:
        shape = rng.choice(self.shapes)
        return ask("size", f"How large is the {shape.short} now?", f"it is {shape.size}")

    def _describe(self, rng: random.Random) -> Turn:
        """A description: true sentences of several kinds, in an order that differs."""
        shapes = self.shapes
        facts = [
            f"there are {NUMBERS[len(shapes)]} shapes on a {self.background} background",
            f"the one on the far left is the {shapes[0]}",
            f"the one on the far right is the {shapes[-1]}",
        ]
        for color in dict.fromkeys(s.color for s in shapes):
            found = [s for s in shapes if s.color == color]
            if len(found) > 1:
                facts.append(f"{NUMBERS[len(found)]} shapes are {color}, {join([f'the {s}' for s in found])}")
        for kind in dict.fromkeys(s.kind for s in shapes):
            found = [s for s in shapes if s.kind == kind]
            facts.append(f"only the {found[0]} is a {kind}" if len(found) == 1 else
                         f"the {plural(kind)} are {join([s.color for s in found])} from left to right")
        for size in SIZES:
            found = [s for s in shapes if s.size == size]
            facts.append(f"nothing is {size}" if not found else
                         f"{NUMBERS[len(found)]} of them {'is' if len(found) == 1 else 'are'} {size}")
        for i in rng.sample(range(1, len(shapes)), min(2, len(shapes) - 1)):
            facts.append(f"just right of the {shapes[i - 1]} is the {shapes[i]}")
            facts.append(f"the {shapes[i]} has {NUMBERS[i]} to its left and {NUMBERS[len(shapes) - 1 - i]} "
                         f"to its right")
        chosen = rng.sample(facts, rng.randint(3, min(7, len(facts))))
        return Turn("describe", "Describe the scene.\nAnswer:", " ".join(f"{sentence(f)}." for f in chosen),
                    graded=False)

    def _draw(self, rng: random.Random) -> Turn:
        """A caption for the picture model: two neighbors of the row, named by their place in it."""
        i = rng.randrange(len(self.shapes) - 1)
        a, b = self.shapes[i], self.shapes[i + 1]
        request = f"Draw the {ORDINALS[i]} and the {ORDINALS[i + 1]} shape from the left.\nCaption:"
        return Turn("draw", request, f"a {a} left of a {b} on a {self.background} background")

    _MAKERS = (_list_now, _count, _count, _count_beside, _count_beside, _neighbor, _neighbor, _nth,
               _attribute, _describe, _draw)

    def turns(self, rng: random.Random, n: int) -> list[Turn]:
        """Up to `n` different requests about the row as it is now."""
        return list(pick_turns(rng, [partial(make, self) for make in self._MAKERS], n))


def counted(found: list[Shape]) -> str:
    """"none", or the shapes one after the other and how many that makes."""
    return f"{join([f'the {s}' for s in found])}, so {NUMBERS[len(found)]}" if found else "none"


def scene(rng: random.Random, changes: int | None = None, turns: int = 5) -> Document:
    """A document about one row of shapes after 0 to 3 changes."""
    row = Row(rng)
    key = row.context()
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3)) if changes is None else changes):
        row.change(rng)
    return Document("scene", row.context(), key, row.turns(rng, turns))
