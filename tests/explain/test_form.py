"""Cells are read whatever they hold, amounts in any of their forms, and typed lines exactly."""

import pytest

from inferlab.lab.explain import Words, find_quantities, last_explanations, parse, register, typed

CELL = """%%explain one-step
state: The scheduler updates the latents
  with the UNet's prediction: that is all.
**Trade off**: More steps cost time.
- shape = [2, 4,16, 16]
gain: latency down
calls: twenty
"""


def test_labels_in_any_dress_and_wrapped_lines():
    told = parse(CELL)
    assert told.name == "one-step"
    assert told.get("state").endswith("prediction: that is all.")
    assert told.get("trade-off") == told.get("Trade_off") == "More steps cost time."
    assert told.get("shape") == "[2, 4,16, 16]" and told.get("axis") == ""


def test_the_markers_of_a_labs_source_are_no_text():
    told = parse("%%explain x\n### BEGIN SOLUTION\nstate: It changes.\n### END SOLUTION\n")
    assert told.fields() == {"state": "It changes."} and told.problems == ()


def test_an_unknown_label_belongs_to_the_field_above():
    told = parse("state: It changes.\nresult: less noise\n", "x")
    assert told.fields(("state",)) == {"state": "It changes.\nresult: less noise"}


@pytest.mark.parametrize("text", ["", "\0" * 50, "%%explain", "%%explain\n:::\n=\n", "state" * 9000, "\ud83d\ude00: x", "a: b\r\nstate:\tc\r", "%%bash\nrm"])
def test_rubbish_is_read_without_raising(text):
    told = parse(text)
    assert typed(told, "shape", (1, 2)).verdict == "deny"


@pytest.mark.parametrize(("text", "kind", "value"), [
    ("(2, 4, 16, 16)", "shape", (2, 4, 16, 16)), ("[2,4,16,16]", "shape", (2, 4, 16, 16)), ("2x4x16x16", "shape", (2, 4, 16, 16)),
    ("2 \u00d7 4 \u00d7 16", "shape", (2, 4, 16)), ("torch.Size([2, 4])", "shape", (2, 4)), ("(B=2, C=4, H=16, W=16)", "shape", (2, 4, 16, 16)),
    ("16 by 16", "shape", (16, 16)), ("(7,)", "shape", (7,)), ("1.3 GB", "bytes", 1.3e9), ("12 KiB", "bytes", 12288), ("12,288 bytes", "bytes", 12288),
    ("1,3 GB", "bytes", 1.3e9), ("fp16", "dtype", "float16"), ("torch.bfloat16", "dtype", "bfloat16"), ("half precision", "dtype", "float16"),
    ("four", "count", 4), ("twenty-five", "count", 25), ("1,024", "count", 1024), ("3.1 s", "time", 3.1), ("18ms", "time", 0.018), ("30%", "percent", 0.3),
    ("2x faster", "ratio", 2),
])
def test_amounts_in_their_forms(text, kind, value):
    found = find_quantities(text)
    assert [(q.kind, pytest.approx(q.value) if isinstance(value, float) else q.value) for q in found] == [(kind, value)]


def test_a_rounded_byte_count_is_the_same():
    q = find_quantities("1.3 GB")[0]
    assert q.is_like(1_300_000_000) and q.is_like(int(1.3 * 2**30)) and not q.is_like(2_000_000_000)


@pytest.mark.parametrize(("line", "expected", "verdict"), [
    ("shape: (2, 4, 16, 16)", (2, 4, 16, 16), "award"), ("shape: 2, 4, 16, 16", (2, 4, 16, 16), "award"), ("shape: 2 4 16 16", (2, 4, 16, 16), "award"),
    ("shape: (1, 4, 16, 16)", (2, 4, 16, 16), "deny"), ("shape: (2,4,16,16) or (1,4,16,16)", (2, 4, 16, 16), "deny"), ("shape: not (2,4,16,16)", (2, 4, 16, 16), "review"),
    ("calls: 20", 20, "award"), ("calls: twenty", 20, "award"), ("calls: 21", 20, "deny"), ("calls: many", 20, "review"), ("calls: 12 KiB", 12288, "award"),
    ("calls: 4*(144 + 192) = 1344", 1344, "award"), ("calls: 128 + 24 - 1 = 151", 151, "award"), ("calls: 24*128 + 276", 276, "deny"),
    ("calls: 5*(6*6)", 5, "deny"), ("calls: 180 = 5*6*6", 180, "deny"), ("calls: 84 - 37", 84, "deny"), ("calls: 2-3", 2, "deny"),
    ("dtype: half", "float16", "award"), ("dtype: torch.float32", "float16", "deny"),
    ("dtype: ", "float16", "deny"), ("shape: (2,4,16,16) or not", (2, 4, 16, 16), "review"), ("shape: \uff082, 4\uff09", (2, 4), "award"),
])
def test_typed_lines_are_graded_exactly(line, expected, verdict):
    told = parse(line + "\n", "x")
    label = line.split(":")[0]
    assert typed(told, label, expected).verdict == verdict


@pytest.mark.parametrize("expected", [None, "latency down", True, object()])
def test_a_wrong_expectation_of_the_author_is_an_error(expected):
    with pytest.raises(TypeError, match="give a shape"):
        typed(parse("shape: (1, 2)\n", "x"), "shape", expected)


def test_the_magic_keeps_the_text_and_shows_the_view(capsys):
    from IPython.testing.globalipapp import start_ipython

    shell = start_ipython()
    register(shell)
    shell.run_cell("%%explain loop\nstate: the UNet predicts the noise\n")
    assert last_explanations["loop"].get("state") == "the UNet predicts the noise"
    assert "Markdown" in capsys.readouterr().out, "without its words it says which cell to run"
    shell.run_cell("%%explain [x](javascript:a)\nstate: the UNet predicts the noise\n")
    assert "](" not in capsys.readouterr().out
    Words("loop", "state: what\n    who: the UNet\n    predicts: the noise\n")
    shell.run_cell("%%explain loop\nstate: the UNet predicts the noise\n")
    assert "the UNet \u00b7 predicts \u00b7 the noise" in capsys.readouterr().out
