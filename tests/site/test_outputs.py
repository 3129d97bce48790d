"""What a lab's page shows below its cells: what the given ones put out, and nothing that waits for an answer;
and the figures that move."""

import base64
import json
import subprocess
import sys
from io import BytesIO

import nbformat
import pytest
from PIL import Image

from builder import SITE
from builder.live import LENGTHS, PAGE, SLOTS, Pool, _by_batches, _by_places
from builder.outputs import with_outputs
from tests.site.conftest import OUT


def png(side=64):
    drawn = BytesIO()
    Image.new("RGB", (side, side), "red").save(drawn, "PNG")
    return base64.b64encode(drawn.getvalue()).decode()


def cell(name, source="", **told):
    made = nbformat.v4.new_code_cell(source, metadata={"inferlab": told} if told else {})
    made.id = name
    return made


def printed(text, stream="stdout"):
    return {"output_type": "stream", "name": stream, "text": text}


def html_of(cell):
    return cell.outputs[0]["data"]["text/html"] if cell.outputs else ""


def test_an_answer_to_an_exercise_opens_on_a_click_until_its_check(tmp_path):
    cells = [
        cell("before"),
        cell("forecast", exercise="forecast"),
        cell("trace"),
        cell("check-forecast", check="forecast", of="forecast"),
        cell("after"),
    ]
    recorded = {one.id: [printed("4 passes")] for one in cells}
    with_outputs(cells, recorded, tmp_path, "../_static/")
    before, exercise, trace, check, after = map(html_of, cells)
    assert "4 passes" in before and "<details>" not in before + after
    assert "<details>" in trace and "4 passes" in trace
    assert exercise == check == ""


def test_only_what_a_reader_can_use_is_shown_and_pictures_are_files(tmp_path):
    waiting = "keys (1, 2)\nOnce `forecast` is written, run this cell again to see it at work.\n"
    style = "<style>\n.il-trace{color:inherit}</style><div class=\"il-trace\">boundaries</div>"
    strip = json.dumps([{"label": "s = 1", "png": png()}, {"label": "s = 4", "png": png()}])
    cells = [cell(name) for name in ("waits", "warns", "first", "second", "strip", "cards")]
    cells[-1].source = 'show_cards("inference")'
    recorded = {
        "waits": [printed(waiting)],
        "warns": [printed("a library warns", "stderr")],
        "first": [{"output_type": "execute_result", "data": {"text/plain": "t", "text/html": style}}],
        "second": [{"output_type": "execute_result", "data": {"text/plain": "t", "text/html": style}}],
        "strip": [
            {
                "output_type": "display_data",
                "data": {"text/plain": "two", "text/x-title": "More < better", "application/x-strip": strip},
            }
        ],
        "cards": [printed("a card")],
    }
    with_outputs(cells, recorded, tmp_path, "../_static/")
    waits, warns, first, second, strip, cards = map(html_of, cells)
    assert "keys (1, 2)" in waits and "Once" not in waits
    assert warns == cards == ""
    assert "<style>" in first and "<style>" not in second and "boundaries" in second
    assert strip.count("<img") == strip.count('loading="lazy" width="64" height="64"') == 2
    assert "More &lt; better" in strip and "base64" not in strip
    assert len(list((tmp_path / "recorded").iterdir())) == 1, "equal pictures are one file"


NOTEBOOK = {
    "given": "import torch\nprint(torch.ones(2).sum().item())",
    "figure": """\
from matplotlib import pyplot as plt
from inferlab.lab.plots.style import finished
fig, axis = plt.subplots()
axis.plot([1, 2])
axis.set_title("It rises", loc="left")
finished(fig)""",
    "answer": "def answer():\n    raise NotImplementedError()",
    "uses": 'print("so far")\nanswer()',
    "check-answer": "print(answer())",
    "long": "while True: pass",
    "last": '"the end"',
}


@pytest.mark.timeout(600)
def test_a_notebook_is_run_in_a_fork_and_what_fails_has_no_output(tmp_path):
    notebook, kept = tmp_path / "lab.ipynb", tmp_path / "lab.json"
    told = {"answer": {"exercise": "answer"}, "check-answer": {"check": "answer", "of": "answer"}}
    cells = [cell(name, source, **told.get(name, {})) for name, source in NOTEBOOK.items()]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), notebook)
    runner = "import sys; from builder import recorded; recorded.CELL_SECONDS = 2;"
    runner += "from pathlib import Path; sys.exit(not recorded._run_all([tuple(map(Path, sys.argv[1:]))]))"
    done = subprocess.run([sys.executable, "-c", runner, notebook, kept], cwd=SITE, check=False, timeout=500)
    assert done.returncode == 0
    outputs = json.loads(kept.read_text("utf-8"))
    assert set(outputs) == {"given", "figure", "last"}
    assert outputs["given"][0]["text"] == "2.0\n"
    drawn = outputs["figure"][0]["data"]
    assert drawn["text/x-title"] == "It rises" and "It rises" not in drawn["image/svg+xml"]


def test_a_pool_counts_the_tables_that_name_a_block():
    pool = Pool()
    pool.begin("A", PAGE + 2)
    pool.begin("B", PAGE + 1, shared=[0])
    assert pool.tables == {"A": [0, 1], "B": [0, 2]} and pool.count[:4] == [2, 1, 1, 0]
    for _ in range(3):
        pool.append("A")
    assert pool.tables["A"] == [0, 1, 3] and pool.filled[3] == 1
    pool.end("A")
    assert pool.count[:4] == [1, 0, 1, 0] and pool.filled[1] == 0


def test_both_ways_of_batching_write_every_token_and_one_is_done_earlier():
    waiting, together = _by_batches(), _by_places()
    for rows in (waiting, together):
        assert len(rows) == SLOTS and len({len(row) for row in rows}) == 1
        flat = [cell for row in rows for cell in row]
        assert [flat.count(one) for one in range(len(LENGTHS))] == list(LENGTHS)
    assert len(together[0]) < len(waiting[0])


@pytest.mark.browser
def test_a_lab_shows_what_its_given_cells_put_out(site, tab):
    page = tab().open("labs/lab03-guidance.html")
    assert "Cells that wait for your answer show none" in page.inner_text(".recorded")
    assert page.locator(".cell.tag_exercise .shown, .cell.tag_explain .shown").count() == 0
    trace = page.locator(".il-trace").first
    assert not trace.is_visible(), "the trace answers the exercise before it"
    page.locator(".shown summary", has_text="look after you have written").first.click()
    assert trace.is_visible()
    strip = page.locator(".strip").first
    strip.scroll_into_view_if_needed()
    page.wait_for_function("""() => [...document.querySelector(".strip").querySelectorAll("img")]
        .every(picture => picture.naturalWidth)""")
    labs = [path.read_text("utf-8") for path in (OUT / "labs").glob("lab*.html")]
    assert all('class="shown"' in text for text in labs)
    assert not any("Traceback (most recent" in text for text in labs)


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_figure_that_moves_follows_slider_and_buttons(site, tab, width):
    page = tab(width).open("handbook/lab03-guidance.html")
    figure = page.locator(".live")
    assert "s = 4" in figure.locator(".state:visible").inner_text()
    figure.locator("button", has_text="Step").click()
    assert "s = 6" in figure.locator(".state:visible").inner_text()
    figure.locator("input").focus()
    page.keyboard.press("Home")
    assert "s = 0" in figure.locator(".state:visible").inner_text()
    assert figure.locator("button", has_text="Back").is_disabled()
    page.wait_for_function("document.querySelector('.live .state:not([hidden]) img').naturalWidth > 0")
    page = tab(width, java_script_enabled=False).open("handbook/lab15-paged-attention.html")
    assert page.locator(".live .state:visible").count() == 1 and not page.locator(".live input").is_visible()


@pytest.mark.browser
def test_opened_questions_have_a_tick_and_are_counted_after_a_reload(site, tab):
    page = tab().open("practice.html")
    group = page.locator("details.group").first
    count = int(group.locator("summary span").first.inner_text())
    group.locator(".question summary").first.click()
    page.wait_for_selector(".question.opened")
    page.reload()
    page.wait_for_selector(".question.opened")
    assert group.locator("summary span").first.inner_text() == f"1 of {count} opened"
    assert page.locator("details.group[open]").count() == 1, "labs stay folded"


@pytest.mark.browser
def test_code_is_copied_by_a_button(site, tab):
    one = tab()
    one.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = one.open("labs/lab03-guidance.html")
    code = page.locator(".tag_exercise div.highlight").first
    code.hover()
    code.locator(".copy").click()
    page.wait_for_selector(".copy.done")
    assert page.evaluate("navigator.clipboard.readText()") == code.locator("pre").inner_text().rstrip()
