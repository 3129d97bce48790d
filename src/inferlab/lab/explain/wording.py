"""Phrases as a rubric writes them, with choices between slashes."""

import itertools


def alternatives(item: str) -> list[str]:
    """`sticks/keeps to .. prompt/text` written out: one phrase for each choice of words between slashes."""
    choices = [word.split("/") if "/" in word.strip("/") else [word] for word in item.split()]
    return [" ".join(one) for one in itertools.product(*choices)]
