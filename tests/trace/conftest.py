"""Fixtures of the trace tests: quiet libraries, one thread, and a look at everything a trace could leave
behind."""

import gc
import logging
import warnings

import pytest
import torch

from tests.trace.leftovers import class_state, difference, is_ours

warnings.filterwarnings("ignore", category=FutureWarning)


@pytest.fixture(scope="session", autouse=True)
def quiet():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    logging.getLogger("diffusers").setLevel(logging.ERROR)
    logging.getLogger("transformers").setLevel(logging.ERROR)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def nothing_left():
    """Fails the test when the tracer left something on a class (torch.compile and transformers patch some
    too)."""
    before = class_state()
    yield
    gc.collect()
    changed = difference(before, class_state())
    left = [(cls, name) for cls, name in changed if name not in vars(cls) or is_ours(cls, name)]
    assert not left, f"left behind: {left}"
