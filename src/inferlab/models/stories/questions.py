"""What can be asked about a story once it is told, with the one right answer from its world."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

from .documents import Document, Turn, ask, pick_turns
from .tales import Hero, Tale
from .words import BACKGROUNDS, COLORS, KINDS, NUMBERS, SIZES, join, plural


def story(
    rng: random.Random, events: int | None = None, turns: int = 6, heroes: int | None = None,
    ending: bool | None = None
) -> Document:
    """A story of 2 to 4 shapes with 3 to 10 events, a summary and questions about its end.

    With an `ending` its last sentences say how everything stands; None: seven stories in eight have one.
    """
    tale = Tale(rng, heroes)
    key = tale.key()
    tale.introduce()
    for _ in range(rng.randint(3, 10) if events is None else events):
        tale.go_on()
    if rng.random() < 7 / 8 if ending is None else ending:
        tale.end()
    document = Document("story", f"Story: {tale.text()}", key)
    makers = [partial(make, tale) for make in _MAKERS]
    document.turns.extend(pick_turns(rng, makers, turns))
    return document


def _who(tale: Tale, rng: random.Random) -> tuple[Hero, str]:
    """A hero, by name or by what it looks like now if no other hero looks the same."""
    hero = rng.choice(tale.heroes)
    alike = [h for h in tale.heroes if (h.color, h.kind) == (hero.color, hero.kind)]
    return hero, hero.name if len(alike) > 1 or rng.random() < 0.7 else f"the {hero.color} {hero.kind}"


def _where(tale: Tale, rng: random.Random) -> Turn:
    hero, who = _who(tale, rng)
    return ask("where", f"Where is {who} now?", f"at the {hero.place}")


def _where_before(tale: Tale, rng: random.Random) -> Turn | None:
    hero = rng.choice(tale.heroes)
    if len(hero.been) < 2:
        return None
    return ask("where-before", f"Where was {hero.name} before that, and where is it now?",
               f"first at the {hero.been[-2]}, now at the {hero.place}")


def _where_first(tale: Tale, rng: random.Random) -> Turn:
    hero = rng.choice(tale.heroes)
    return ask("where-first", f"Where was {hero.name} at the beginning?", f"at the {hero.been[0]}")


def _who_is_at(tale: Tale, rng: random.Random) -> Turn:
    place = rng.choice(tale.places)
    names = [h.name for h in tale.at(place)]
    answer = f"{join(names)}, so {NUMBERS[len(names)]}" if names else "none"
    return ask("count-at", f"How many shapes are at the {place} now?", answer)


def _count_look(tale: Tale, rng: random.Random) -> Turn:
    what = rng.choice(("color", "kind", "size"))
    values = {"color": COLORS, "kind": KINDS, "size": SIZES}[what]
    value = getattr(rng.choice(tale.heroes), what) if rng.random() < 0.8 else rng.choice(values)
    names = [h.name for h in tale.heroes if getattr(h, what) == value]
    word = plural(value) if what == "kind" else f"{value} shapes"
    answer = f"{join(names)}, so {NUMBERS[len(names)]}" if names else "none"
    return ask("count-look", f"How many {word} are there now?", answer)


def _look(tale: Tale, rng: random.Random) -> Turn:
    hero = rng.choice(tale.heroes)
    return ask("look", f"What does {hero.name} look like now?", f"it is a {hero}")


def _first_color(tale: Tale, rng: random.Random) -> Turn:
    hero = rng.choice(tale.heroes)
    return ask("first-color", f"Which color was {hero.name} at the beginning?", hero.colors[0])


def _who_looks(tale: Tale, rng: random.Random) -> Turn | None:
    hero = rng.choice(tale.heroes)
    alike = [h for h in tale.heroes if (h.color, h.kind) == (hero.color, hero.kind)]
    return ask("who", f"Who is the {hero.color} {hero.kind} now?", hero.name) if len(alike) == 1 else None


def _carries(tale: Tale, rng: random.Random) -> Turn:
    hero, who = _who(tale, rng)
    answer = join([f"the {t}" for t in hero.holds]) if hero.holds else "nothing"
    return ask("carries", f"What does {who} carry now?", answer)


def _has_thing(tale: Tale, rng: random.Random) -> Turn | None:
    if not tale.found:
        return None
    thing = rng.choice(tale.found)
    holder = tale.holder(thing)
    return ask("who-has", f"Who has the {thing} now?", holder.name if holder else "nobody")


def _where_thing(tale: Tale, rng: random.Random) -> Turn | None:
    if not tale.found:
        return None
    thing = rng.choice(tale.found)
    holder = tale.holder(thing)
    answer = f"with {holder.name} at the {holder.place}" if holder else f"at the {tale.lying[thing]}"
    return ask("where-thing", f"Where is the {thing} now?", answer)


def _visits(tale: Tale, rng: random.Random) -> Turn:
    """All places in order: asked for practice, too long a way through the story to be graded."""
    hero = rng.choice(tale.heroes)
    places = list(dict.fromkeys(hero.been))
    return replace(ask("visits", f"Where has {hero.name} been?", join([f"the {p}" for p in places])),
                   graded=False)


def _with_whom(tale: Tale, rng: random.Random) -> Turn:
    hero = rng.choice(tale.heroes)
    names = [h.name for h in tale.at(hero.place, but=hero)]
    return ask("with-whom", f"Who is with {hero.name} now?", join(names) if names else "nobody")


def _summary(tale: Tale, rng: random.Random) -> Turn:
    """Everyone in the order of the story; the words between differ, the facts do not."""
    lines = []
    for hero in tale.heroes:
        held = f" with {join([f'the {thing}' for thing in hero.holds])}" if hero.holds else ""
        lines.append(f"{hero.name}, a {hero}, {rng.choice(('was', 'stayed', 'slept'))} at the "
                     f"{hero.place}{held}.")
    return Turn("summary", "Tell the end.\nAnswer:", " ".join(lines), graded=False)


def _draw(tale: Tale, rng: random.Random) -> Turn:
    """A caption for the picture model of two heroes as they look at the end."""
    a, b = rng.sample(tale.heroes, 2)
    relation, background = rng.choice(("left of", "right of", "above", "below")), rng.choice(BACKGROUNDS)
    request = f"Draw {a.name} {relation} {b.name} on a {background} background.\nCaption:"
    return Turn("draw", request, f"a {a} {relation} a {b} on a {background} background")


_MAKERS = (_where, _where, _where_before, _where_first, _who_is_at, _who_is_at, _count_look, _look,
           _first_color, _who_looks, _carries, _has_thing, _where_thing, _where_thing, _visits, _with_whom,
           _summary, _draw)
