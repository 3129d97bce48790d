"""The words of the bundled language models' world: names, places, things, and the ways to say what happens.

The shapes, colors, sizes and relations are the picture model's own (`inferlab.models.scenes`), so that a
caption written by the language model can be drawn.
"""

from __future__ import annotations

from inferlab.models.scenes import language as captions

COLORS = tuple(captions.COLORS)
KINDS = captions.SHAPES
SIZES = captions.SIZES
BACKGROUNDS = tuple(captions.BACKGROUNDS)

NAMES = (
    "Ada", "Ben", "Cleo", "Dora", "Eli", "Finn", "Gus", "Hana", "Ida", "Jack", "Kira", "Leo", "Mira", "Nils",
    "Olga",
    "Pia", "Rosa", "Sam", "Tess", "Uma", "Vera", "Will", "Yara", "Zoe", "Amos", "Bella", "Carl", "Emma",
    "Hugo", "Lina",
    "Max", "Nora",
)

PLACES = (
    "bridge", "pond", "hill", "garden", "tower", "market", "forest", "beach", "cave", "mill", "station",
    "school",
    "island", "meadow", "castle", "library", "harbor", "bakery", "theater", "waterfall",
)

THINGS = (
    "key", "drum", "lamp", "kite", "map", "bell", "rope", "basket", "book", "clock", "flute", "shovel",
    "coin", "cup",
    "feather", "mirror", "ladder", "candle", "whistle", "letter",
)

TRAVELS = ("rolled", "hopped", "slid", "walked", "ran", "drifted", "hurried", "wandered", "spun", "flew")
MANNERS = ("slowly", "quickly", "quietly", "happily", "carefully", "bravely", "lazily", "alone")
TIMES = (
    "Then", "Later", "After that", "Soon", "At noon", "In the afternoon", "A little later", "Before long",
    "After lunch",
    "When the clock struck", "Towards evening", "Suddenly",
)
OPENINGS = (
    "Once upon a time", "One morning", "Long ago", "On a quiet day", "One winter day",
    "In the middle of summer",
    "On the first day of spring", "Not so long ago",
)
PAINTINGS = (
    "fell into a pot of {color} paint and turned {color}",
    "was painted {color}",
    "put on a {color} coat and was {color} from then on",
    "blushed until it was {color}",
)
GROWINGS = {
    "large": ("ate a whole cake and grew large", "grew and grew until it was large", "drank from the magic "
                                                                                     "well and became large"),
    "small": ("shrank in the rain and was small", "got smaller and smaller until it "
                                                  "was small", "became small by magic"),
}
WEATHER_NOUNS = ("wind", "sun", "rain", "snow", "sky", "air", "fog", "moon")
WEATHER_WORDS = ("soft", "bright", "cold", "warm", "gentle", "strange", "still", "golden")
ASIDES = (
    "Nobody knew why.",
    "It was going to be a long day.",
    "A bird sang in a tree.",
    "The old owl had seen it all before.",
    "The grass was still wet.",
    "Somewhere a dog barked twice.",
    "Everyone was a little hungry.",
    "The leaves fell one by one.",
    "A train passed far away.",
    "Far off, the bells rang.",
    "That made everybody laugh.",
    "What a day for a walk!",
    "It smelled of bread and honey.",
    "Two clouds looked like sheep.",
)
NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight")


def join(parts: list[str]) -> str:
    """"a", "a and b", "a, b and c": the list in words, without a comma before the last "and"."""
    if len(parts) < 2:
        return "".join(parts)
    return ", ".join(parts[:-1]) + " and " + parts[-1]


def sentence(text: str) -> str:
    """The text with a capital first letter."""
    return text[0].upper() + text[1:]


def plural(kind: str) -> str:
    """The word for several shapes of this kind."""
    return kind + ("es" if kind.endswith("s") else "s")
