"""Explanations: sentences composed of a lab's words, and typed lines, graded just as they are read.

`Words` is what an explanation may be composed of, and `%%explain NAME` shows how it is read. In a check cell
`words.grade`, `typed` and `named` make an `Outcome`: "award", "deny", or "review": a person must read it.
README.md says how words and claims are written. Nothing here imports torch.
"""

from .cell import Explanation, parse
from .outcome import Outcome
from .quantities import find_quantities
from .typed import named, typed
from .view import last_explanations, register
from .words import Words

__all__ = ["Explanation", "Outcome", "Words", "find_quantities", "last_explanations", "named", "parse",
           "register", "typed"]
