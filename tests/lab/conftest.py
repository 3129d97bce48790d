"""For tests that look at what a notebook shows."""

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    """A shell that shows every format, as a kernel's does.

    A terminal's shell, which a debugger or another test may have left in this process, shows text only.
    """
    InteractiveShell.clear_instance()
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()
