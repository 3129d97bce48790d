"""Stories of named shapes that travel, carry things and change color, told from a world that keeps track.

A `Tale` is the world: who is where, who holds what, what everyone looks like, where everyone has been. Its
events change that world and return the sentence that tells so; its remarks change nothing and state what is
true at that moment.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from .words import (
    ASIDES,
    COLORS,
    GROWINGS,
    KINDS,
    MANNERS,
    NAMES,
    NUMBERS,
    OPENINGS,
    PAINTINGS,
    PLACES,
    SIZES,
    THINGS,
    TIMES,
    TRAVELS,
    WEATHER_NOUNS,
    WEATHER_WORDS,
    join,
    sentence,
)


@dataclass
class Hero:
    """A shape with a name; `been` are its places in order, the last where it is, `holds` its things."""

    name: str
    size: str
    color: str
    kind: str
    been: list[str]
    holds: list[str] = field(default_factory=list)
    colors: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.size} {self.color} {self.kind}"

    @property
    def place(self) -> str:
        """Where it is now."""
        return self.been[-1]


class Tale:
    """The world of one story."""

    def __init__(self, rng: random.Random, heroes: int | None = None) -> None:
        self.rng = rng
        n = heroes or rng.choice((2, 3, 3, 4, 4))
        places = rng.sample(PLACES, rng.randint(3, 5))
        colors = rng.sample(COLORS, rng.randint(2, 4))
        kinds = rng.sample(KINDS, min(len(KINDS), rng.randint(2, 4)))
        self.places = places
        self.heroes = []
        for name in rng.sample(NAMES, n):
            color = rng.choice(colors)
            hero = Hero(name, rng.choice(SIZES), color, rng.choice(kinds), [rng.choice(places)],
                        colors=[color])
            self.heroes.append(hero)
        self.things = rng.sample(THINGS, rng.randint(1, 3))
        self.lying: dict[str, str] = {}  # thing -> place where it was put down
        self.found: list[str] = []
        self.lines: list[str] = []

    # who and where

    def at(self, place: str, but: Hero | None = None) -> list[Hero]:
        """Who is at a place."""
        return [h for h in self.heroes if h.place == place and h is not but]

    def _said(self, hero: Hero) -> str:
        """The hero's name, sometimes with what it looks like now."""
        return hero.name if self.rng.random() < 0.7 else f"{hero.name} the {hero.color} {hero.kind}"

    def _met(self, hero: Hero) -> str:
        """What a hero finds where it has just arrived."""
        rng = self.rng
        others = [h.name for h in self.at(hero.place, but=hero)]
        text = f" There it met {join(others)}." if others else " Nobody else was there."
        lying = [t for t, p in self.lying.items() if p == hero.place]
        if lying and rng.random() < 0.7:
            text += f" The {join(lying)} {'was' if len(lying) == 1 else 'were'} still there."
        return text if rng.random() < 0.75 else ""

    # events: they change the world

    def _travel(self) -> str:
        rng = self.rng
        hero = rng.choice(self.heroes)
        place = rng.choice([p for p in self.places if p != hero.place])
        who, verb, manner = self._said(hero), rng.choice(TRAVELS), rng.choice(MANNERS)
        left = hero.place
        hero.been.append(place)
        how = f" {manner}" if rng.random() < 0.3 else ""
        return f"{who} {verb}{how} from the {left} to the {place}.{self._met(hero)}"

    def _follow(self) -> str | None:
        hero, other = self.rng.sample(self.heroes, 2)
        if hero.place == other.place:
            return None
        who, left = self._said(hero), hero.place
        hero.been.append(other.place)
        return f"{who} left the {left} to see {other.name} at the {hero.place}."

    def _together(self) -> str | None:
        rng = self.rng
        groups = [self.at(p) for p in self.places if len(self.at(p)) > 1]
        if not groups:
            return None
        group = rng.choice(groups)
        left = group[0].place
        place = rng.choice([p for p in self.places if p != left])
        names = join([h.name for h in group])
        for hero in group:
            hero.been.append(place)
        return f"{names} {rng.choice(TRAVELS)} from the {left} to the {place} together."

    def _find(self) -> str | None:
        new = [t for t in self.things if t not in self.found]
        if not new:
            return None
        hero = self.rng.choice(self.heroes)
        self.found.append(new[0])
        hero.holds.append(new[0])
        return f"{self._said(hero)} found a {new[0]} at the {hero.place} and took it."

    def _give(self) -> str | None:
        pairs = [(h, o) for h in self.heroes if h.holds for o in self.at(h.place, but=h)]
        if not pairs:
            return None
        hero, other = self.rng.choice(pairs)
        thing = self.rng.choice(hero.holds)
        hero.holds.remove(thing)
        other.holds.append(thing)
        return f"{self._said(hero)} gave the {thing} to {other.name}."

    def _put_down(self) -> str | None:
        holders = [h for h in self.heroes if h.holds]
        if not holders:
            return None
        hero = self.rng.choice(holders)
        thing = self.rng.choice(hero.holds)
        hero.holds.remove(thing)
        self.lying[thing] = hero.place
        where = f"at the {hero.place}" if self.rng.random() < 0.5 else "there"
        return f"{self._said(hero)} put the {thing} down {where}."

    def _pick_up(self) -> str | None:
        chances = [(h, t) for t, p in self.lying.items() for h in self.at(p)]
        if not chances:
            return None
        hero, thing = self.rng.choice(chances)
        del self.lying[thing]
        hero.holds.append(thing)
        return f"{self._said(hero)} picked up the {thing}."

    def _repaint(self) -> str:
        hero = self.rng.choice(self.heroes)
        who = self._said(hero)
        hero.color = self.rng.choice([c for c in COLORS if c != hero.color])
        hero.colors.append(hero.color)
        return f"{who} {self.rng.choice(PAINTINGS).format(color=hero.color)}."

    def _resize(self) -> str:
        hero = self.rng.choice(self.heroes)
        who = self._said(hero)
        hero.size = self.rng.choice([s for s in SIZES if s != hero.size])
        return f"{who} {self.rng.choice(GROWINGS[hero.size])}."

    # remarks: they only say what is true

    def _speak(self) -> str:
        rng = self.rng
        hero = rng.choice(self.heroes)
        others = self.at(hero.place, but=hero)
        lines = [
            f"I am at the {hero.place}",
            f"I am a {hero}",
            f"I have been to {NUMBERS[len(set(hero.been))]} place{'s' if len(set(hero.been)) > 1 else ''}",
            f"I have the {join(hero.holds)}" if hero.holds else "I have nothing",
            f"There are {NUMBERS[len(others) + 1]} of us here" if others else "I am alone here",
        ]
        return f'"{rng.choice(lines)}," said {hero.name}.'

    def _recap_places(self) -> str:
        parts = [f"{h.name} at the {h.place}" for h in self.heroes]
        first = f"{self.heroes[0].name} was at the {self.heroes[0].place}"
        return f"now {join([first, *parts[1:]])}."

    def _recap_visits(self) -> str:
        hero = self.rng.choice(self.heroes)
        visits = list(dict.fromkeys(hero.been))
        return f"so far {hero.name} had been to {join([f'the {p}' for p in visits])}."

    def _recap_colors(self) -> str:
        color = self.rng.choice(self.heroes).color
        names = [h.name for h in self.heroes if h.color == color]
        if len(names) == 1:
            return f"only {names[0]} was {color} now."
        return f"{NUMBERS[len(names)]} of them were {color} now, {join(names)}."

    def _recap_look(self) -> str:
        hero = self.rng.choice(self.heroes)
        return f"{hero.name} was a {hero} now."

    def _recap_things(self) -> str | None:
        if not self.found:
            return None
        thing = self.rng.choice(self.found)
        holder = self.holder(thing)
        return f"{holder.name} had the {thing}." if holder else f"the {thing} lay at the {self.lying[thing]}."

    def _aside(self) -> str:
        if self.rng.random() < 0.5:
            return self.rng.choice(ASIDES)
        return f"the {self.rng.choice(WEATHER_NOUNS)} was {self.rng.choice(WEATHER_WORDS)}."

    def holder(self, thing: str) -> Hero | None:
        """Who holds a thing; None where it lies somewhere."""
        return next((h for h in self.heroes if thing in h.holds), None)

    # the telling

    _EVENTS = (_travel, _travel, _travel, _follow, _together, _find, _find, _give, _give, _put_down, _pick_up,
               _repaint, _resize)
    _REMARKS = (_speak, _speak, _recap_places, _recap_places, _recap_visits, _recap_colors, _recap_look,
                _recap_things, _aside)

    def introduce(self) -> None:
        """Say who is there, and where."""
        rng = self.rng
        for i, hero in enumerate(self.heroes):
            start = f"{rng.choice(OPENINGS)} " if i == 0 else ""
            body = rng.choice((
                f"a {hero} called {hero.name} was at the {hero.place}.",
                f"{hero.name}, a {hero}, was at the {hero.place}.",
                f"there was a {hero} at the {hero.place}. Its name was {hero.name}.",
            ))
            self.lines.append(sentence(start + body) if not start else start + body)

    def go_on(self) -> None:
        """One event, and sometimes a remark after it."""
        rng = self.rng
        told = None
        while told is None:
            told = rng.choice(self._EVENTS)(self)
        self.lines.append(f"{rng.choice(TIMES)} {told}" if rng.random() < 0.4 else sentence(told))
        if rng.random() < 0.5:
            remark = rng.choice(self._REMARKS)(self)
            if remark:
                self.lines.append(sentence(remark))

    def end(self) -> None:
        """How everything stands: a reader who lost track can look here."""
        for i, hero in enumerate(self.heroes):
            held = f" with {join([f'the {thing}' for thing in hero.holds])}" if hero.holds else ""
            self.lines.append(f"{'In the end ' if i == 0 else ''}{hero.name}, a {hero}, was at the "
                              f"{hero.place}{held}.")
        self.lines.extend(f"The {thing} lay at the {place}." for thing, place in self.lying.items())

    def text(self) -> str:
        """What has been told so far."""
        return " ".join(self.lines)

    def key(self) -> str:
        """Who is in the story and what they look like: tells worlds apart."""
        return " ".join(f"{h.name} {h} {h.place}" for h in self.heroes)
