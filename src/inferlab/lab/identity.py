"""Who a learner is: one spelling of a name, and the variant of a lab that this name gets."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
MAX_VARIANTS = 16
"""The most variants of a lab that differs by learner: reference values are computed once for each."""


def normalize(name: str) -> str:
    """One spelling for a name or an id, however it was typed.

    Unicode is brought to its compatibility form (NFKC), letter case is folded, and runs of white space become
    one space: ``"  Ada  LOVELACE "`` and ``"ada lovelace"`` are the same learner.

    Args:
        name: a name or an id, as a learner or a roster writes it.

    Returns:
        The normalized text; empty if the name holds nothing but white space.

    Raises:
        TypeError: if ``name`` is no string.
    """
    if not isinstance(name, str):
        raise TypeError(f"a learner's name is text, not {type(name).__name__}: "
                        'write LEARNER = "your name or id"')
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(folded.split())


def variant(identity: str, lab: str, n: int) -> int:
    """The variant, 0 to ``n - 1``, that a learner gets in a lab.

    The choice is a SHA-256 of the lab and the normalized identity, so it is the same on every machine, in
    every Python version and in every process, and two labs give the same learner unrelated variants. Two
    spellings of a name that :func:`normalize` brings together get the same variant.

    Args:
        identity: the learner's name or id.
        lab: the lab's full name, such as ``"lab02-denoising-step"``.
        n: how many variants the lab has, 1 to 16.

    Raises:
        ValueError: if ``n`` is outside 1 to 16.
    """
    if not 1 <= n <= MAX_VARIANTS:
        raise ValueError(f"a lab has 1 to {MAX_VARIANTS} variants, not {n}")
    digest = hashlib.sha256(f"{lab}\0{normalize(identity)}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % n


def of_variant(variant: int, items: Iterable[T], text: Callable[[T], str] = str) -> T:
    """The item that stands behind a variant's number: the one at this place of the :func:`scattered` items.

    Raises:
        ValueError: if ``variant`` is no place in the list.
    """
    order = scattered(items, text)
    if not 0 <= variant < len(order):
        raise ValueError(f"variant is 0 to {len(order) - 1}, not {variant}")
    return order[variant]


def scattered(items: Iterable[T], text: Callable[[T], str] = str) -> list[T]:
    """`items` in an order that tells nothing about them and is the same on every machine.

    What a variant's number picks comes from such a list, so that the number does not tell what was picked.

    Args:
        items: what is put in order, by the SHA-256 of its text.
        text: gives the text of an item.
    """
    return sorted(items, key=lambda item: hashlib.sha256(text(item).encode()).digest())
