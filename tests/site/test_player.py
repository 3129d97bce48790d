"""The trace player: it reads what `trace.perfetto` writes, folds it, draws it, compares two, and stays
smooth when it is long."""

import json
import re

import pytest
import torch

from inferlab.models import load_pipeline
from inferlab.trace import trace

pytestmark = pytest.mark.browser
MANY = 100_000


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Two runs of the bundled pipeline, as files and as the tracer has them: guided, and with guidance
    off."""
    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    folder, found = tmp_path_factory.mktemp("traces"), {}
    for name, scale in (("guided", 4.0), ("plain", 1.0)):
        with trace(pipe, memory="tensors") as t, torch.no_grad():
            pipe(
                "a red circle",
                num_inference_steps=3,
                guidance_scale=scale,
                generator=torch.Generator().manual_seed(0),
            )
        found[name] = (t.perfetto(folder / f"{name}.json"), t)
    return found


def opened(tab):
    page = tab().open("player.html")
    page.wait_for_selector("#player.loaded")
    return page


def names(page):
    return page.locator("#player .lines .name a").all_inner_texts()


def test_every_boundary_of_a_file_is_read_with_what_it_lies_in(site, tab, recorded):
    path, t = recorded["guided"]
    page = opened(tab)
    got = page.evaluate(
        """async text => {
        const {readTrace} = await import(new URL("_static/player/read.mjs", location.href).href);
        return readTrace(text, "run.json").boundaries.map(b => [b.name, b.step, b.level]);
    }""",
        path.read_text("utf-8"),
    )
    timed = [b for b in t.boundaries if not b.inferred]
    assert len(got) == len(t)
    assert sorted(name for name, _, _ in got) == sorted(b.name for b in t.boundaries)
    by_order = [(b.name, b.step, b.level) for b in sorted(timed, key=lambda b: (b.start_ns, -b.end_ns))]
    inferred = {b.name for b in t.boundaries if b.inferred}
    assert [tuple(row) for row in got if row[0] not in inferred] == by_order


def test_what_is_inferred_lies_beside_the_boundary_that_ends_when_it_begins(site, tab):
    def event(name, start, dur, **args):
        of = {"name": name, "cat": "module", "pid": 1, "tid": 1, "ts": start / 1e3, "args": args}
        return of | ({"ph": "X", "dur": dur / 1e3} if dur else {"ph": "i"})

    # Nanoseconds whose sum in microseconds is above, below and at the end that is meant.
    starts = [100, 100_200_300, 1_100]
    steps = [
        one
        for step, start in enumerate(sorted(starts))
        for one in (
            event("unet", start, 200, step=step),
            event("guidance", start + 200, 0, inferred="from the batch"),
        )
    ]
    page = opened(tab)
    got = page.evaluate(
        """async text => {
        const {readTrace, linesOf} = await import(new URL("_static/player/read.mjs", location.href).href);
        const trace = readTrace(text, "run.json");
        const lines = linesOf(trace).map(line => [line.boundary.name, line.times]);
        return [trace.boundaries.map(b => b.level), lines];
    }""",
        json.dumps({"traceEvents": steps}),
    )
    assert got == [[0] * 6, [["unet", 3], ["guidance", 3]]]


def test_steps_are_folded_and_unfolded_and_a_boundary_has_a_link(site, tab, recorded):
    path, t = recorded["guided"]
    page = opened(tab)
    page.set_input_files("[name=file]", path)
    page.wait_for_function(
        "n => document.querySelector('#player .count').textContent.endsWith(`of ${n} boundaries`)", arg=len(t)
    )
    assert "× 3" in page.inner_text("#player .lines") and names(page).count("unet") == 1
    page.check("[name=unfold]")
    assert names(page).count("unet") == 3
    page.locator("#player .lines .name a", has_text="scheduler.step").first.click()
    assert "#boundary-" in page.url
    detail = page.inner_text("#player .detail")
    assert "(2, 4, 16, 16)" not in detail and "(1, 4, 16, 16)" in detail
    assert page.locator(".bytes-over-time").is_visible()


def test_a_link_to_a_boundary_opens_what_it_lies_in(site, tab):
    page = opened(tab)
    page.locator("#player .lines .name a", has_text="vae.decode").first.click()
    address = page.url
    page = tab().open("player.html#" + address.split("#")[1])
    page.wait_for_selector("#player .row.chosen")
    assert "vae.decode" in page.inner_text("#player .row.chosen")


def test_two_traces_show_where_guidance_went(site, tab, recorded):
    page = opened(tab)
    page.set_input_files("[name=file]", recorded["guided"][0])
    page.set_input_files("[name=second]", recorded["plain"][0])
    page.wait_for_selector(".differences:not([hidden]) tbody tr")
    rows = page.locator(".differences tbody tr").all_inner_texts()
    assert any("unet #1" in row and "(2, 4, 16, 16)" in row and "(1, 4, 16, 16)" in row for row in rows)
    assert page.locator("[name=recorded] option:checked, [name=beside] option:checked").all_inner_texts() == [
        "guided.json",
        "plain.json",
    ]
    differing = page.locator("#player .row.differs .name a").all_inner_texts()
    assert {"unet", "guidance"} <= set(differing) and "vae.decode" not in differing
    page.locator(".differences a", has_text="unet #1").first.click()
    detail = page.inner_text("#player .detail")
    assert "(2, 4, 16, 16) float32" in detail and "(1, 4, 16, 16) float32" in detail
    page.locator("#player .lines .name a", has_text="guidance").first.click()
    assert "only in the first" in page.inner_text("#player .detail")
    page.select_option("[name=beside]", "")
    assert not page.is_visible(".differences") and not page.locator("#player .differs").count()


@pytest.mark.parametrize("width", [1280, 390])
def test_what_is_asked_for_appears_in_sight(site, tab, width):
    page = tab(width).open("player.html")
    page.wait_for_selector("#player.loaded")
    assert page.locator("[name=second]").evaluate("input => input.getBoundingClientRect().width") == 0
    page.select_option("[name=beside]", "pictures-unguided")
    page.wait_for_selector("#player.compared")
    first, second = (page.locator(f"#player .timeline.{name}").bounding_box() for name in ("one", "two"))
    assert first["y"] + first["height"] < second["y"] and second["y"] + second["height"] < 900
    assert page.locator("[name=second]").evaluate("input => input.getBoundingClientRect().width") > 40
    count = int(page.inner_text("#player .found").split()[0])
    assert count > 9 and page.inner_text("#player .differences h2").startswith(f"{count} differences")
    page.locator("#player .lines .name a", has_text="scheduler.step").first.click()
    box = page.locator("#player .detail h2").bounding_box()
    assert box["y"] + box["height"] < 900 and page.inner_text("#player .detail h2") == "scheduler.step"
    page.locator("#player .calls button").nth(6).click()
    assert "step 7" in page.inner_text("#player .detail") and page.locator("#player .lines .row").count() < 20
    assert page.locator("#player .row.chosen .step").text_content() == "7"
    table = page.locator("#player .differences .table-wrapper")
    assert table.evaluate("table => table.scrollWidth <= table.clientWidth")
    assert page.evaluate("document.querySelector('.content').scrollWidth") <= width


@pytest.mark.parametrize(
    ("text", "said"),
    [("no JSON", "is not JSON"), ("{}", "is no trace"), ('{"traceEvents": []}', "holds no boundary")],
)
def test_a_file_that_is_no_trace_is_refused_in_words_and_the_old_one_stays(site, tab, tmp_path, text, said):
    page = opened(tab)
    before = names(page)
    file = tmp_path / "other.json"
    file.write_text(text, "utf-8")
    page.set_input_files("[name=file]", file)
    page.wait_for_function("document.querySelector('#player .said').textContent")
    assert said in page.inner_text("#player .said") and "other.json" in page.inner_text("#player .said")
    assert names(page) == before


def test_every_recorded_trace_opens(site, tab):
    page = opened(tab)
    titles = set()
    for option in page.locator("[name=recorded] option").all():
        name = option.get_attribute("value")
        page.select_option("[name=recorded]", name)
        page.wait_for_selector(f'#player[data-file="{name}.json"]')
        titles.add(page.inner_text("#player .title"))
        assert len(names(page)) > 1
    assert len(titles) >= 4


def test_a_full_size_run_shows_the_devices_times_and_says_where_it_comes_from(site, tab):
    page = opened(tab)
    group = page.locator("[name=recorded] optgroup", has=page.locator("[value=full-sd15]"))
    assert group.get_attribute("label") == "at full size, on an H200"
    assert not page.locator("#player .lines .device").first.is_visible(), "a CPU has no device times"
    page.select_option("[name=recorded]", "full-sd15")
    page.wait_for_selector('#player.has-device[data-file="full-sd15.json"]')
    row = page.locator("#player .lines .row", has=page.get_by_role("link", name="unet", exact=True))
    assert re.fullmatch(r"[\d.]+ (µs|ms)", row.locator(".device").first.inner_text())
    assert "(2, 4, 64, 64) float16 cuda:0" in row.locator(".in").first.inner_text()
    row.locator(".name a").first.click()
    assert "when the call ended" in page.inner_text("#player .detail")
    height = page.locator("#player .timeline.one").evaluate("canvas => canvas.clientHeight")
    page.locator("#player .timeline.one").click(position={"x": 300, "y": height - 40})
    assert page.locator("#player .row.chosen .device").inner_text()
    words = page.inner_text("article")
    assert "NVIDIA H200, 2026-" in words and "gpu-2026" in words and "random numbers" in words


def test_a_hundred_thousand_boundaries_scroll_smoothly(site, tab, tmp_path):
    events = [
        {
            "name": f"layers.{n % 32}.self_attn",
            "cat": "module",
            "ph": "X",
            "pid": 1,
            "tid": 1,
            "ts": n * 10.0,
            "dur": 9.0,
            "args": {
                "step": None,
                "inputs": {"hidden_states": f"(1, {n % 7 + 1}, 256) float32"},
                "outputs": "(1, 1, 256) float32",
                "bytes_out": 1024,
            },
        }
        for n in range(MANY)
    ]
    file = tmp_path / "long.json"
    file.write_text(json.dumps({"traceEvents": events, "otherData": {"title": "long", "steps": 0}}), "utf-8")
    page = opened(tab)
    page.set_input_files("[name=file]", file)
    page.wait_for_function(
        "document.querySelector('#player .count').textContent.startsWith('100,000 lines')", timeout=20_000
    )
    assert page.locator("#player .lines .row").count() < 100, "only the lines in sight are in the page"
    times = page.evaluate("""async () => {
        const lines = document.querySelector("#player .lines"), times = [];
        for (let n = 0; n < 120; n++) {
            lines.scrollTop = (lines.scrollHeight * n) / 120;
            const began = performance.now();
            await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
            times.push((performance.now() - began) / 2);
        }
        return times.sort((a, b) => a - b);
    }""")
    # Other tests share the machine: the quicker quarter of the frames says what the page itself takes.
    assert times[len(times) // 4] < 34, "a frame comes within two ticks of a screen"
    shown = int(page.locator("#player .lines .row").last.get_attribute("data-number"))
    assert shown > MANY * 0.98
