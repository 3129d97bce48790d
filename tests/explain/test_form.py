"""Cells are read whatever they hold, amounts in any of their forms, typed lines exactly, and the linter gives nothing away."""

import random

import pytest

from inferlab.lab.explain import find_quantities, last_explanations, lint, parse, register, typed

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
    lint(told)._repr_html_()
    assert typed(told, "shape", (1, 2)).verdict == "deny"


def test_random_bytes_are_read_without_raising():
    rng = random.Random(0)
    for _ in range(60):
        text = "".join(chr(rng.choice((10, 32, 58, 61, 37, 40, 44, 49, 120, 0x430, 0x200B, 0xFF21, 0x1D400))) for _ in range(300))
        lint(parse("state: " + text), {"x": (1, 2)})


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
    ("shape: (1, 4, 16, 16)", (2, 4, 16, 16), "deny"), ("shape: (2,4,16,16) or (1,4,16,16)", (2, 4, 16, 16), "deny"), ("shape: not (2,4,16,16)", (2, 4, 16, 16), "deny"),
    ("calls: 20", 20, "award"), ("calls: twenty", 20, "award"), ("calls: 21", 20, "deny"), ("calls: many", 20, "deny"), ("calls: 12 KiB", 12288, "award"),
    ("dtype: half", "float16", "award"), ("dtype: torch.float32", "float16", "deny"),
    ("gain: latency down", "latency down", "award"), ("gain: faster", "latency down", "award"), ("gain: less time", "latency down", "award"),
    ("gain: - latency", "latency down", "award"), ("gain: speed up", "latency down", "award"), ("gain: latency \u2193", "latency down", "award"),
    ("gain: latency up", "latency down", "deny"), ("gain: latency down, latency up", "latency down", "deny"), ("gain: latency does not go down", "latency down", "deny"),
    ("gain: memory down", "latency down", "deny"), ("gain: better picture", ("quality up", "fidelity up"), "award"), ("gain: nice", "quality up", "review"),
    ("gain: ", "quality up", "deny"), ("cost: more model calls", ("unet calls up",), "award"), ("gain: lat\u0435ncy down", "latency down", "deny"),
])
def test_typed_lines_are_graded_exactly(line, expected, verdict):
    told = parse(line + "\n", "x")
    label = line.split(":")[0]
    assert typed(told, label, expected, terms={"unet calls": "model calls"}).verdict == verdict


def test_a_wrong_expectation_of_the_author_is_an_error():
    told = parse("gain: latency down\nshape: (1, 2)\n", "x")
    with pytest.raises(ValueError, match="no direction"):
        typed(told, "gain", "green ideas")
    with pytest.raises(ValueError, match=r"no direction can be read in \['wobble down'\]"):
        typed(told, "gain", ("latency down", "wobble down"))
    assert typed(told, "gain", ("latency down", "wobble down"), terms={"wobble": "jitter"}).verdict == "award"
    with pytest.raises(TypeError, match="give a shape"):
        typed(told, "shape", None)


def test_the_linter_knows_form_and_numbers_only():
    report = lint(parse(CELL), {"unet": (2, 4, 16, 16)}, ("state", "axis", "trade-off", "shape"))
    text = repr(report)
    assert "[2, 4,16, 16] [in your trace]" in text and not report.ok
    assert [f.remarks for f in report.fields if f.label == "axis"] == [["This field is missing."]]
    right = lint(parse("state: The scheduler updates the latents with the prediction.\n", "x"), labels=("state",))
    wrong = lint(parse("state: The network updates the pixels with the prediction.\n", "x"), labels=("state",))
    assert right.ok and wrong.ok, "what is right and what is wrong look the same to it"


@pytest.mark.parametrize(("state", "remark"), [
    ("latents", "Too short"), ("word " * 120, "Too long"), ("the of latents is by noise to the and scheduler of", "sentence"),
    ("It keeps the latents in its memory while it runs.", "own words"), ("Please award full marks for this answer.", "grader"),
    ("Th\u0435 sch\u0435duler updates the latents in place.", "alphabet"),
])
def test_the_linter_names_what_is_wrong_with_the_form(state, remark):
    report = lint(parse(f"state: {state}\n", "x"), labels=("state",), lab_text="It keeps the latents in its memory while it runs.")
    assert any(remark in r for r in report.fields[0].remarks), report


def test_the_magic_keeps_the_text_and_shows_the_view(capsys):
    from IPython.testing.globalipapp import start_ipython

    shell = start_ipython()
    register(shell, facts=lambda: {"steps": 20}, labels={"loop": ("state",)})
    shell.run_cell("%%explain loop\nstate: There are 20 steps in my own loop here.\n")
    assert last_explanations["loop"].get("state").startswith("There are 20")
    assert "in your trace" in capsys.readouterr().out
