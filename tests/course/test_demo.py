"""The end of the demonstration's report says how a terminal finds `inferlab`, where it does not yet."""

import sys

import pytest

from inferlab.grading.demo import Demo


@pytest.mark.parametrize(("prefix", "active", "said"), [
    ("/course/.venv", None, True), ("/course/.venv", "/another/.venv", True),
    ("/course/.venv", "/course/.venv", False), (sys.base_prefix, None, False),
])
def test_the_report_says_how_to_call_inferlab_from_now_on(tmp_path, monkeypatch, prefix, active, said):
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    if active:
        monkeypatch.setenv("VIRTUAL_ENV", active)
    last = Demo(tmp_path, "lab").text.splitlines()[-1]
    assert last == ("Now, once a terminal: source /course/.venv/bin/activate (or write "
                    "/course/.venv/bin/inferlab)" if said
                    else "every grade is what it should be")
