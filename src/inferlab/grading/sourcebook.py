"""The instructor's notebook as learners were given it, without reading the released file."""

from __future__ import annotations

import copy

from nbformat import NotebookNode

from .build import released_text


def released_view(source: NotebookNode) -> NotebookNode:
    """A copy of the source notebook with stubs for solutions and without hidden tests."""
    view = copy.deepcopy(source)
    for cell in view.cells:
        cell.source = released_text(cell)
    return view
