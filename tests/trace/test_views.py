"""What a trace shows: steps and folds, tables, tree, frame, timeline, facts, differences, live lines."""

import json
import re

import diffusers as df
import pytest
import torch
from torch import nn

from inferlab.trace import TensorSpec, trace
from inferlab.trace.showing.fold import Folder
from tests.trace import zoo


def draw(pipe, **arguments):
    torch.manual_seed(0)
    return pipe(**(zoo.CALL | arguments))


@pytest.fixture(scope="module")
def sd():
    return zoo.PIPELINES["stable_diffusion"]()[0]


@pytest.fixture(scope="module")
def guided(sd):
    with trace(sd) as t:
        draw(sd, num_inference_steps=5)
    return t


# -- asking --------------------------------------------------------------------------------------------------


def test_the_documented_questions(guided):
    assert guided["unet"].calls == 5
    assert guided.find("scheduler.step")[0].outputs[0].shape == (1, 4, 8, 8)
    assert guided["vae.decode"].outputs.shape == (1, 3, 16, 16)
    assert guided["unet"][0].inputs.sample == TensorSpec((2, 4, 8, 8), torch.float32, torch.device("cpu"))
    assert guided.find("unet", step=3).calls == 1
    assert [b.name for b in guided.find(kind="inferred")] == ["guidance"] * 5
    assert guided.find("vae.*").calls == 1
    assert guided.find(re.compile(r"^tokenizer")).calls >= 3
    assert guided.steps == 5
    assert "unet" in guided
    assert "movq" not in guided


def test_a_wrong_name_lists_near_ones(guided):
    with pytest.raises(KeyError, match=r"scheduler\.step"):
        guided["sheduler.step"]


def test_an_ambiguous_shape_says_so(guided):
    with pytest.raises(AttributeError, match="2 tensors"):
        guided["scheduler.step"][0].outputs.shape  # noqa: B018
    with pytest.raises(AttributeError, match="no field 'latents'; there are: sample"):
        guided["unet"][0].inputs.latents  # noqa: B018


def test_the_hidden_steps_of_the_standard_pipeline_in_order(guided):
    inside = [b.name for b in guided if b.level == 1]
    assert inside[:4] == [
        "encode_prompt",
        "scheduler.set_timesteps",
        "prepare_latents",
        "prepare_extra_step_kwargs",
    ]
    turn = ["scheduler.scale_model_input", "unet", "guidance", "scheduler.step"]
    assert inside[4:24] == turn * 5
    assert inside[24:] == ["vae.decode", "run_safety_checker", "image_processor.postprocess"]
    assert [b.step for b in guided if b.level == 1] == [None] * 4 + [s for s in range(1, 6) for _ in turn] + [
        None
    ] * 3


def test_what_set_timesteps_sets_is_its_output(guided):
    assert guided["scheduler.set_timesteps"].inputs.num_inference_steps == 5
    assert guided["scheduler.set_timesteps"].outputs.timesteps.shape == (5,)


def test_guidance_is_inferred_and_marked(guided, sd):
    first = guided["guidance"][0]
    assert first.inferred
    assert first.ms is None
    assert first.inputs.noise_pred.shape == (2, 4, 8, 8)
    assert first.outputs.shape == (1, 4, 8, 8)
    assert "batch 2 → 1" in first.note
    with trace(sd) as t:
        draw(sd, guidance_scale=1.0)
    assert "guidance" not in t


@pytest.mark.parametrize(
    ("name", "note"),
    [("flux_true_cfg", "2 calls of transformer"), ("instruct_pix2pix", "batch 3 → 1"), ("flux", None)],
)
def test_other_forms_of_guidance(name, note):
    pipe, arguments = zoo.PIPELINES[name]()
    with trace(pipe) as t:
        pipe(**arguments)
    assert note is None or all(note in b.note for b in t["guidance"])
    assert t.find("guidance").calls == (0 if note is None else t.steps)


def test_one_step_alone_is_a_step(sd):
    with trace(sd) as t:
        draw(sd, num_inference_steps=1)
    assert [b.name for b in t if b.step == 1 and b.level == 1] == [
        "scheduler.scale_model_input",
        "unet",
        "guidance",
        "scheduler.step",
    ]


def test_a_second_order_solver_takes_its_own_number_of_turns():
    pipe, _ = zoo.PIPELINES["stable_diffusion_heun"]()
    with trace(pipe) as t:
        draw(pipe, num_inference_steps=4)
    assert t["scheduler.step"].calls == t.steps == 7


def test_two_loops_in_one_call_count_from_one_each():
    pipe, arguments = zoo.PIPELINES["kandinsky22_combined"]()
    with trace(pipe) as t:
        pipe(**arguments)
    assert [b.step for b in t.find("prior_prior")] == [1, 2]
    assert [b.step for b in t.find("unet")] == [1, 2]
    assert t["prior_pipe"][0].kind == "pipeline"
    assert t["movq.decode"].calls == 1


def test_generation_counts_its_forwards():
    made, call = zoo.MODELS["llama"]()
    with trace(made) as t:
        call(made)
    assert [b.step for b in t["LlamaForCausalLM"]] == [1, 2, 3, 4]
    assert {b.step for b in t["cache.update"]} == {1, 2, 3, 4}
    assert t["generate"][0].step is None


# -- folding -------------------------------------------------------------------------------------------------


def test_identical_steps_fold_into_one_line_and_unfold(guided):
    folded = str(guided.table(width=160))
    assert "2–5" in folded
    assert "the same 4 boundaries ×4" in folded
    assert len(re.findall(r"^\s*\d+\s+unet", folded, re.MULTILINE)) == 1
    unfolded = str(guided.table(unfold=True, width=160))
    assert len(re.findall(r"^\s*\d+\s+unet", unfolded, re.MULTILINE)) == 5
    assert "the same" not in unfolded


@pytest.mark.parametrize("change", ["shape", "dtype"])
def test_a_step_that_differs_never_folds(change):
    model = nn.Linear(4, 4)

    class Scheduler:
        def set_timesteps(self, n): ...

        def step(self, noise, t, sample):
            return sample + noise

    class Pipe:
        def __init__(self):
            self.model, self.scheduler = model, Scheduler()

        def __call__(self):
            x = torch.ones(2, 4)
            for i in range(6):
                if i == 3:
                    x = torch.ones(3, 4) if change == "shape" else x.double()
                    model.to(x.dtype)
                x = self.scheduler.step(self.model(x), i, x)
            model.float()
            return x

    pipe = Pipe()
    with torch.no_grad(), trace(pipe) as t:
        pipe()
    assert t.steps == 6
    folder = Folder()
    groups = folder.groups([b for b in t if b.parent is None])
    inner = folder.groups(groups[0].boundaries[0].children)
    turns = [(g.steps, g.count) for g in inner if g.steps]
    if change == "shape":
        assert turns == [((1, 3), 3), ((4, 6), 3)]
    else:
        assert ((1, 3), 3) in turns
        assert not any(first <= 3 < last for (first, last), _ in turns)


def test_values_may_differ_in_folded_steps_but_are_kept(guided):
    assert [b.inputs.return_dict for b in guided["unet"]] == [False] * 5


def test_layers_of_a_model_fold():
    made, _ = zoo.MODELS["bert"]()
    with trace(made, depth="all") as t:
        made(zoo.IDS)
    assert "encoder.layer.0 ×2" in str(t.table(width=160))


# -- views ---------------------------------------------------------------------------------------------------


def test_text_fits_the_width(guided):
    for width in (80, 120):
        lines = str(guided.table(width=width)).splitlines()
        assert max(map(len, lines[1:])) <= width


def test_html_is_well_formed_and_follows_the_theme(guided):
    from html.parser import HTMLParser

    text = guided._repr_html_()
    stack = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attrs):
            stack.append(tag)

        def handle_endtag(self, tag):
            assert stack.pop() == tag

    Parser().feed(text)
    assert stack == []
    assert "<details>" in text
    assert "<script" not in text
    assert not re.search(r"#[0-9a-fA-F]{3,6}\b|background:\s*(white|black)", text), (
        "a fixed color breaks a theme"
    )
    assert "inferred" in text


def test_the_html_of_a_big_trace_stays_small(sd):
    with trace(sd, depth="all") as t:
        draw(sd, num_inference_steps=12)
    assert len(t) > 2000
    assert len(t._repr_html_()) < 700_000
    assert "more lines" in t._repr_html_()


def test_values_are_escaped():
    def named(text):
        return text

    with trace(named) as t:
        named("<b>&")
    assert "<b>&" not in t._repr_html_()
    assert "&lt;b&gt;&amp;" in t._repr_html_()


def test_frame_rows_and_tree(guided):
    frame = guided.frame()
    assert len(frame) == len(guided) == len(guided.rows())
    assert set(frame[frame.name == "unet"].step) == {1, 2, 3, 4, 5}
    row = guided.rows()[guided["unet"][0].index]
    assert row["inputs"]["sample"] == {"shape": (2, 4, 8, 8), "dtype": "float32", "device": "cpu"}
    assert row["bytes_out"] == 2 * 4 * 8 * 8 * 4
    _only_plain(guided.rows())
    assert "unet  [steps 1–5]" in guided.tree()
    assert "~guidance" in guided.tree()


def _only_plain(value):
    if isinstance(value, dict):
        for key, part in value.items():
            assert type(key) in (str, int)
            _only_plain(part)
    elif type(value) in (list, tuple):
        for part in value:
            _only_plain(part)
    else:
        assert value is None or type(value) in (str, int, float, bool), type(value)


def test_the_timeline_is_what_the_viewer_loads(guided, tmp_path):
    path = guided.perfetto(tmp_path / "run.json")
    data = json.loads(path.read_text())
    assert set(data) >= {"traceEvents", "displayTimeUnit"}
    complete = [e for e in data["traceEvents"] if e["ph"] == "X"]
    assert len(complete) == len([b for b in guided if not b.inferred])
    for event in data["traceEvents"]:
        assert {"name", "ph", "pid", "tid", "ts"} <= set(event)
        assert event["ph"] in ("X", "M", "i", "C")
        assert event["ts"] >= 0
    names = {
        (e["pid"], e["tid"]): e["args"]["name"] for e in data["traceEvents"] if e["name"] == "thread_name"
    }
    assert {(e["pid"], e["tid"]) for e in complete} <= set(names)
    by_name = {e["name"]: e for e in complete}
    outer, inner = by_name["encode_prompt"], by_name["text_encoder"]
    assert outer["ts"] <= inner["ts"]
    assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 1e-6


def test_facts(guided):
    facts = guided.facts()
    assert facts["unet.calls"] == 5
    assert facts["steps"] == 5
    assert facts["unet.inputs.sample.shape"] == (2, 4, 8, 8)
    assert facts["unet.inputs.sample.dtype"] == "float32"
    assert facts["vae.decode.outputs.shape"] == (1, 3, 16, 16)
    assert facts["scheduler.set_timesteps.inputs.num_inference_steps"] == 5
    assert facts["unet.bytes_out"] == 2048
    assert facts["guidance.calls"] == 5


def test_facts_of_what_varies():
    made, call = zoo.MODELS["llama"]()
    with trace(made) as t:
        call(made)
    assert t.facts()["LlamaForCausalLM.inputs.input_ids.shape"] == (2, 5)
    assert t.facts()["LlamaForCausalLM.inputs.input_ids.shapes"] == [(2, 5), (2, 1)]
    assert t.facts()["cache.update.inputs.layer_idx"] == 0


def test_reading_inside_the_block(sd):
    with trace(sd) as t:
        assert len(t) == 0
        sd.scheduler.set_timesteps(3)
        assert t["scheduler.set_timesteps"].calls == 1
        assert "running" in repr(t)
        draw(sd)
        assert t["unet"].calls == 3
    assert "running" not in repr(t)


# -- changes and differences ---------------------------------------------------------------------------------


def test_dtype_and_device_changes_are_marked():
    class Cast(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4).double()

        def forward(self, x):
            return self.two(self.one(x).double()).to("meta")

    made = Cast()
    with trace(made) as t:
        made(torch.ones(1, 4))
    assert t["two"][0].changes == ["dtype float32 → float64 on entry"]
    assert t["Cast"][0].changes == ["device cpu → meta", "dtype float32 → float64"]
    assert "dtype float32 → float64 on entry" in str(t.table())
    assert t["one"][0].changes == []


def test_diff_of_guidance_on_and_off(sd, guided):
    with trace(sd) as off:
        draw(sd, num_inference_steps=5, guidance_scale=1.0)
    diff = guided.diff(off)
    assert "guidance" in [c.name for c in diff.of("vanished")]
    shapes = {(c.name, c.where): (c.before, c.after, c.steps) for c in diff.of("shape")}
    assert shapes["unet", "inputs.sample"] == ((2, 4, 8, 8), (1, 4, 8, 8), [1, 2, 3, 4, 5])
    assert ("vae.decode", "inputs.z") not in shapes
    assert "vanished guidance" in str(diff)
    assert "steps 1–5" in str(diff)
    assert "<table" in diff._repr_html_()
    assert [c.name for c in off.diff(guided).of("appeared")] == ["guidance"]


def test_diff_of_precision_steps_and_time(sd, guided):
    other, _ = zoo.PIPELINES["stable_diffusion"]()
    other.unet.double()
    with trace(other) as t:
        other.vae.register_forward_pre_hook(lambda *_: None)
        try:
            draw(other, num_inference_steps=5)
        except RuntimeError:
            pass  # float latents into a double UNet
    assert ("unet", "", None) not in [(c.name, c.where, c.before) for c in guided.diff(t).of("error")]
    assert guided.diff(t).of("error")[0].after.startswith("RuntimeError")

    with trace(sd) as longer:
        draw(sd, num_inference_steps=7)
    calls = {c.name: (c.before, c.after) for c in guided.diff(longer).of("calls")}
    assert calls["unet"] == (5, 7)
    assert not guided.diff(guided)
    with pytest.raises(ValueError, match="kind is one of"):
        guided.diff(longer).of("bigger")


def test_diff_sees_what_took_longer():
    import time

    class Slow(nn.Module):
        def __init__(self, seconds):
            super().__init__()
            self.seconds, self.part = seconds, nn.Identity()

        def forward(self, x):
            time.sleep(self.seconds)
            return self.part(x)

    traces = []
    for seconds in (0.001, 0.03):
        made = nn.Sequential(Slow(seconds))
        with trace(made) as t:
            made(torch.ones(1))
        traces.append(t)
    assert "0" in traces[0].diff(traces[1]).names("slower")
    assert not traces[1].diff(traces[0]).of("slower")


# -- live ----------------------------------------------------------------------------------------------------


def test_live_lines_fold_repeated_steps(sd):
    lines = []
    with trace(sd, live=lines.append):
        draw(sd, num_inference_steps=5)
    text = "\n".join(lines)
    assert text.count("scheduler.step") == 1
    assert "×4 more" in text
    order = [name for line in lines if (name := line.split()[0]) in ("unet", "scheduler.step", "vae.decode")]
    assert order == ["unet", "scheduler.step", "vae.decode"]
    assert lines[-1].startswith("StableDiffusionPipeline")


def test_live_prints_to_standard_output(sd, capsys):
    with trace(sd, live=True):
        sd.scheduler.set_timesteps(3)
    assert capsys.readouterr().out.startswith("scheduler.set_timesteps  num_inference_steps=3")


# -- options -------------------------------------------------------------------------------------------------


def test_depths(sd):
    counts = {}
    for depth in (
        "components",
        "unet.down_blocks.?",
        ["unet.mid_block*", "vae.decoder"],
        re.compile(r"attn\d$"),
        "all",
    ):
        with trace(sd, depth=depth) as t:
            draw(sd)
        counts[str(depth)] = t
    names = {key: set(t.names) for key, t in counts.items()}
    assert "unet.down_blocks.0" in names["unet.down_blocks.?"]
    assert "unet.down_blocks.0.resnets.0" not in names["unet.down_blocks.?"]
    assert {"unet.mid_block", "vae.decoder"} <= names["['unet.mid_block*', 'vae.decoder']"]
    assert any(name.endswith("attn1") for name in names[str(re.compile(r"attn\d$"))])
    assert len(names["all"]) > 150
    assert all(t["unet"].calls == 3 for t in counts.values())


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, TypeError, "something to trace"),
        ({"depth": ""}, ValueError, "depth is"),
        ({"memory": "all"}, ValueError, "memory is"),
        ({"gpu_time": "fine"}, ValueError, "gpu_time is"),
    ],
)
def test_wrong_options_say_what_is_right(sd, arguments, error, text):
    targets = () if not arguments else (sd,)
    with pytest.raises(error, match=text):
        trace(*targets, **arguments)


def test_a_trace_is_used_once(sd):
    once = trace(sd)
    with once:
        pass
    with pytest.raises(RuntimeError, match="already used"), once:
        pass


def test_memory_stays_flat_over_a_thousand_steps():
    import gc
    import tracemalloc

    made = nn.Sequential(nn.Identity(), nn.Identity())
    scheduler = df.DDIMScheduler()
    scheduler.set_timesteps(50)
    x = torch.ones(1, 2)
    held = {}
    tracemalloc.start()
    with trace(made, scheduler, depth="all") as t:
        for number in range(1, 1001):
            made(x)
            scheduler.step(x, int(scheduler.timesteps[number % 50]), x)
            if number in (100, 1000):
                gc.collect()
                held[number] = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(t) > 3900
    assert (held[1000] - held[100]) / (900 * len(t) / 1000) < 100, "bytes a boundary"
