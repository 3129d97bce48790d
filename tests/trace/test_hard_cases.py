"""What breaks tracers: deep copies, pickles, exceptions, threads, nesting, offloading, compilation, odd
values."""

import copy
import dataclasses
import functools
import gc
import inspect
import pickle
import threading
import weakref
from collections import namedtuple

import accelerate
import diffusers as df
import pytest
import torch
import transformers as tf
from torch import nn

from inferlab.trace import CacheSpec, TensorSpec, trace
from tests.trace import zoo
from tests.trace.leftovers import class_state, difference, instance_state

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def sd():
    return zoo.PIPELINES["stable_diffusion"]()


def draw(pipe, **arguments):
    torch.manual_seed(0)
    return torch.from_numpy(pipe(**(zoo.CALL | arguments)).images)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, *, scale=None, extra=None):
        return self.two(self.one(x)), extra


class Failing(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.inner, self.error = nn.Linear(4, 4), error

    def forward(self, x):
        self.inner(x)
        raise self.error


# -- nothing stays, whatever happens -------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_an_exception_in_the_middle_is_recorded_and_everything_is_removed(error):
    made = nn.Sequential(nn.Linear(4, 4), Failing(error))
    before = instance_state(made)
    with pytest.raises(type(error)), trace(made, depth="all") as t:
        made(torch.ones(2, 4))
    assert not difference(before, instance_state(made))
    assert [b.name for b in t] == ["Sequential", "0", "1", "1.inner"]
    assert t["1"][0].error.startswith(type(error).__name__)
    assert t["1.inner"][0].error is None
    with trace(made, depth="all") as again, pytest.raises(type(error)):
        made(torch.ones(2, 4))
    assert again["1"].calls == 1


def test_an_exception_that_the_model_catches_does_not_disturb_the_nesting():
    class Catching(nn.Module):
        def __init__(self):
            super().__init__()
            self.bad, self.good = Failing(KeyboardInterrupt()), nn.Linear(4, 4)

        def forward(self, x):
            try:
                self.bad(x)
            except KeyboardInterrupt:
                return self.good(x)

    made = Catching()
    with trace(made, depth="all") as t:
        made(torch.ones(1, 4))
    assert t["good"][0].parent.name == "Catching"
    assert t["bad"][0].error.startswith("KeyboardInterrupt")


def test_a_trace_that_cannot_start_leaves_nothing(sd):
    pipe, _ = sd
    before = class_state()
    with pytest.raises(TypeError, match="cannot trace a int"), trace(pipe, 3):
        pass
    assert not difference(before, class_state())


def test_no_tensor_is_kept_alive():
    made = Block()
    x = torch.ones(2, 4)
    with trace(made, depth="all") as t:
        y = made(x, extra=[x])[0]
        refs = [weakref.ref(x), weakref.ref(y)]
        del x, y
        gc.collect()
        assert [ref() for ref in refs] == [None, None]
    assert t["Block"][0].inputs.x.shape == (2, 4)


def test_the_trace_keeps_no_model_alive(sd):
    pipe, arguments = sd
    with trace(pipe) as t:
        pipe(**arguments)
    ref = weakref.ref(pipe.unet)
    del pipe, sd, arguments
    gc.collect()
    # The fixture's own tuple still holds the pipeline; what matters is that the trace adds no reference to
    # it.
    assert not any(referrer is t._instrument.__dict__ for referrer in gc.get_referrers(ref()))
    assert t._instrument._known == {}
    assert t._instrument.pipelines == []


def test_kept_only_when_asked(sd):
    pipe, _ = sd
    with trace(pipe, keep="scheduler.step") as t:
        draw(pipe)
    step = t.find("scheduler.step")[0]
    assert step.kept.inputs.sample.shape == (1, 4, 8, 8)
    assert step.kept.outputs[0].shape == (1, 4, 8, 8)
    assert torch.equal(t.find("scheduler.step")[1].kept.inputs.sample, step.kept.outputs[0])
    with pytest.raises(AttributeError, match="keep="):
        t["unet"][0].kept  # noqa: B018


# -- signatures, copies, pickles -----------------------------------------------------------------------------


def test_signatures_are_what_they_were(sd):
    pipe, _ = sd
    places = [
        pipe.scheduler.step,
        pipe.scheduler.set_timesteps,
        pipe.unet.forward,
        pipe.vae.decode,
        pipe.__call__,
    ]
    before = [inspect.signature(place) for place in places]
    with trace(pipe):
        places = [
            pipe.scheduler.step,
            pipe.scheduler.set_timesteps,
            pipe.unet.forward,
            pipe.vae.decode,
            pipe.__call__,
        ]
        assert [inspect.signature(place) for place in places] == before
        assert "eta" in inspect.signature(pipe.scheduler.step).parameters
        assert inspect.getsource(type(pipe.scheduler).step).lstrip().startswith("def step")


def test_eta_still_reaches_the_scheduler(sd):
    pipe, _ = sd
    expected = draw(pipe, eta=1.0)
    with trace(pipe) as t:
        assert torch.equal(draw(pipe, eta=1.0), expected)
    assert t["scheduler.step"][0].inputs.eta == 1.0


def test_deep_copies_made_inside_are_independent_and_clean(sd):
    pipe, _ = sd
    with trace(pipe, depth="all"):
        scheduler, unet = copy.deepcopy(pipe.scheduler), copy.deepcopy(pipe.unet)
        again = pickle.loads(pickle.dumps(pipe.scheduler))
        restored = pickle.loads(pickle.dumps(pipe.vae))
    assert not unet._forward_hooks
    assert not unet._forward_pre_hooks
    for made, original in (
        (scheduler, pipe.scheduler),
        (again, pipe.scheduler),
        (unet, pipe.unet),
        (restored, pipe.vae),
    ):
        assert type(made) is type(original)
        assert vars(made).keys() == vars(original).keys()
    scheduler.set_timesteps(7)
    assert len(pipe.scheduler.timesteps) != 7


def test_a_scheduler_copied_inside_the_call_works_on_itself_and_is_seen():
    pipe, arguments = zoo.PIPELINES["skyreels_diffusion_forcing"]()
    torch.manual_seed(0)
    expected = pipe(**arguments).frames
    with trace(pipe) as t:
        torch.manual_seed(0)
        assert (pipe(**arguments).frames == expected).all()
    assert [b.name for b in t if b.kind == "scheduler" and b.name.endswith(".step")] == ["scheduler.step"] * 6
    assert {b.note for b in t["scheduler.step"]} == {f"on copy {n} of scheduler" for n in (2, 3, 4)}


class Copies:
    """A pipeline that does its work on copies of its parts, made in every way there is."""

    def __init__(self, copied):
        self.scheduler, self.processor = df.DDIMScheduler(), df.image_processor.VaeImageProcessor()
        self.model, self.copied = Block(), copied

    def __call__(self):
        parts = (self.scheduler, self.processor, self.model)
        scheduler, processor, model = (self.copied(part) for part in parts)
        scheduler.set_timesteps(2)
        latents = torch.ones(1, 3, 4, 4)
        for timestep in scheduler.timesteps:
            latents = scheduler.step(model(latents)[0], timestep, latents).prev_sample
        return processor.postprocess(latents, output_type="pt")


@pytest.mark.parametrize("way", [copy.deepcopy, copy.copy, lambda part: pickle.loads(pickle.dumps(part))])
def test_a_copy_of_any_component_is_recorded_under_its_name(way):
    pipe = Copies(way)
    with torch.no_grad():
        expected = pipe()
        with trace(pipe) as t:
            assert torch.equal(pipe(), expected)
    assert [b.name for b in t] == [
        "Copies", "scheduler.set_timesteps", *["model", "scheduler.step"] * 2, "processor.postprocess"
    ]
    assert t.steps == 2
    assert all(b.note == f"on copy 2 of {b.base.partition('#')[0]}" for b in t if b.level)
    assert "on copy 2 of model" in str(t.table())
    assert "on copy 2 of model" in t._repr_html_()


def test_a_scheduler_made_from_the_config_inside_the_call_is_recorded():
    pipe = Copies(lambda part: type(part).from_config(part.config) if hasattr(part, "config") else part)
    with torch.no_grad(), trace(pipe) as t:
        pipe()
    assert t["scheduler.step"].calls == t.steps == 2


@pytest.mark.parametrize("name", ["wan", "ltx_video", "ltx2_video_and_audio", "animatediff"])
def test_every_clip_that_postprocess_video_hands_to_postprocess_is_a_boundary(name):
    pipe, arguments = zoo.PIPELINES[name]()
    with trace(pipe) as t:
        pipe(**arguments)
    inner = t["video_processor.postprocess"]
    assert {b.parent.name for b in inner} == {"video_processor.postprocess_video"}
    assert inner[0].inputs.image.ndim == 4


def test_a_pipeline_can_be_saved_inside_a_trace(sd, tmp_path):
    pipe, _ = sd
    with trace(pipe, depth="all"):
        pipe.save_pretrained(tmp_path)
        torch.save(pipe.unet, tmp_path / "unet.pt")
    assert type(torch.load(tmp_path / "unet.pt", weights_only=False)) is df.UNet2DConditionModel


# -- several at once -----------------------------------------------------------------------------------------


def test_nested_traces_see_the_same(sd):
    pipe, _ = sd
    expected = draw(pipe)
    with trace(pipe) as outer, trace(pipe, depth="all") as inner:
        assert torch.equal(draw(pipe), expected)
    with trace(pipe) as alone:
        draw(pipe)
    assert [b.name for b in outer] == [b.name for b in alone]
    assert inner["unet"].calls == alone["unet"].calls


def test_traces_may_end_in_any_order(sd):
    pipe, _ = sd
    one, two = trace(pipe), trace(pipe)
    before = class_state()
    with trace(pipe):
        first = one.__enter__()
        second = two.__enter__()
        draw(pipe)
        one.__exit__(None, None, None)
        draw(pipe)
        two.__exit__(None, None, None)
    assert (first["unet"].calls, second["unet"].calls) == (3, 6)
    assert not difference(before, class_state())


def test_an_untraced_pipeline_of_the_same_class_is_not_recorded(sd):
    pipe, _ = sd
    other, _ = zoo.PIPELINES["stable_diffusion"]()
    with trace(pipe) as t:
        draw(other)
        assert len(t) == 0
        draw(pipe)
    assert t["StableDiffusionPipeline"].calls == 1


def test_two_pipelines_in_one_trace(sd):
    pipe, _ = sd
    other, arguments = zoo.PIPELINES["flux"]()
    with trace(pipe, other) as t:
        draw(pipe)
        other(**arguments)
    assert t["unet"].calls == 3
    assert t["1.transformer"].calls == 3
    assert t["1.scheduler.step"].calls == 3


def test_pipelines_that_share_a_component(sd):
    pipe, _ = sd
    image = df.StableDiffusionImg2ImgPipeline(**pipe.components, requires_safety_checker=False)
    image.set_progress_bar_config(disable=True)
    with trace(image) as t:
        draw(image, image=zoo.picture(16), strength=0.9)
        draw(pipe)  # not the target, but the components are
    assert "vae.encode" in t
    assert t["StableDiffusionImg2ImgPipeline"].calls == 1
    assert "StableDiffusionPipeline" not in t
    assert t["unet"].calls == 5


def test_threads_have_a_stack_each():
    made = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    barrier = threading.Barrier(4)

    def work():
        barrier.wait()
        for _ in range(50):
            made(torch.ones(2, 4))

    with trace(made, depth="all") as t:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert t["Sequential"].calls == 200
    assert len({b.thread for b in t["Sequential"]}) == 4
    assert all(b.parent.name == "Sequential" and b.parent.thread == b.thread for b in t["0"])


def test_data_parallel_replicas_keep_their_names():
    made = Block()
    replicas = [made._replicate_for_data_parallel() for _ in range(2)]
    for replica in replicas:
        replica.one, replica.two = made.one, made.two
    with trace(made, depth="all") as t:
        for replica in replicas:
            replica(torch.ones(2, 4))
    assert t["Block"].calls == 2
    assert t["one"].calls == 2
    assert t["one"][0].parent.name == "Block"


# -- modules and values --------------------------------------------------------------------------------------


def test_shared_modules_are_called_by_the_name_in_use():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Sequential(nn.Linear(4, 4)), nn.Sequential()
            self.b.append(self.a[0])

        def forward(self, x):
            return self.b(self.a(x))

    made = Twice()
    with trace(made, depth="all") as t:
        made(torch.ones(1, 4))
    assert t.aliases == {"a.0": ["b.0"]}
    assert [b.name for b in t] == ["Twice", "a", "a.0", "b", "b.0"]


def test_a_module_called_twice_is_two_boundaries():
    made = nn.Sequential(nn.Linear(4, 4))
    made.append(made[0])
    with trace(made) as t:
        made(torch.ones(1, 4))
    assert sum(b.name in ("0", "1") for b in t) == 2


Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass
class Holder:
    tensor: torch.Tensor
    label: str = "x"


class Odd:
    @property
    def shape(self):
        raise RuntimeError("do not look")

    def __repr__(self):
        raise RuntimeError("nor print")


@pytest.mark.parametrize(
    ("value", "check"),
    [
        (None, lambda v: v is None),
        (3, lambda v: v == 3),
        (True, lambda v: v is True),
        (1.5, lambda v: v == 1.5),
        ("text", lambda v: v == "text"),
        ("x" * 500, lambda v: len(v) < 120),
        (b"bytes", lambda v: "5 bytes" in str(v)),
        ((torch.ones(1), torch.ones(2)), lambda v: v[1].shape == (2,)),
        ([torch.ones(1)], lambda v: v.shape == (1,) and v.kind == "list"),
        ({"a": {"b": torch.ones(3)}}, lambda v: v.a.b.shape == (3,)),
        ({1: torch.ones(3)}, lambda v: v[1].shape == (3,)),
        (Pair(torch.ones(1), 2), lambda v: v.left.shape == (1,) and v.right == 2),
        (Holder(torch.ones(4)), lambda v: v.tensor.shape == (4,) and v.cls == "Holder"),
        (torch.float16, lambda v: "float16" in str(v)),
        (torch.device("meta"), lambda v: "meta" in str(v)),
        (torch.Generator(), lambda v: "Generator(cpu)" in str(v)),
        (nn.Linear(1, 1), lambda v: str(v) == "Linear"),
        (len, lambda v: "len" in str(v)),
        (Odd(), lambda v: "Odd" in str(v)),
        ({1, 2}, lambda v: v.length == 2),
        (list(range(1000)), lambda v: v.length == 1000),
        (torch.ones(2, device="meta"), lambda v: v.device.type == "meta"),
        (torch.ones(2).to_sparse(), lambda v: v.shape == (2,)),
        (nn.Parameter(torch.ones(2)), lambda v: v.shape == (2,)),
        (zoo.picture(8), lambda v: v.size == (8, 8) and v.mode == "RGB"),
        (tf.BatchEncoding({"input_ids": torch.ones(1, 2)}), lambda v: v.input_ids.shape == (1, 2)),
    ],
)
def test_every_kind_of_value_is_described(value, check):
    made = Block()
    with trace(made) as t:
        made(torch.ones(1, 4), extra=value)
    assert check(t["Block"][0].inputs.extra)
    assert check(t["Block"][0].outputs[1])
    assert str(t.table())
    t.rows()


def test_a_container_that_holds_itself_is_described():
    made = Block()
    loop = []
    loop.append(loop)
    with trace(made) as t:
        made(torch.ones(1, 4), extra=loop)
    assert str(t)


def test_a_cache_is_described_as_it_was_before_and_after():
    made, _ = zoo.MODELS["llama"]()
    with torch.no_grad(), trace(made) as t:
        made(zoo.IDS, use_cache=True)
        out = made(zoo.IDS[:, :1], use_cache=True)
        cache = getattr(out, "cache", None) or out.past_key_values
        made(zoo.IDS[:, :1], **{_cache_name(made): cache})
    call = t["LlamaForCausalLM"][2]
    before, after = call.inputs[_cache_name(made)], call.outputs[_cache_name(made)]
    assert isinstance(before, CacheSpec)
    assert (before.length, after.length) == (1, 2)
    assert before.layers == 2
    assert before.keys.shape == (2, 2, 1, 8)


def _cache_name(made):
    names = inspect.signature(type(made).forward).parameters
    return "cache" if "cache" in names else "past_key_values"


def test_positional_arguments_get_their_names_and_self_attention_its_none():
    made, _ = zoo.MODELS["llama"]()
    with torch.no_grad(), trace(made, depth="model.layers.0.self_attn") as t:
        made(zoo.IDS, use_cache=False)
    attention = t["model.layers.0.self_attn"][0]
    assert attention.inputs.hidden_states.shape == (2, 5, 32)
    assert attention.outputs[0].shape == (2, 5, 32)
    assert attention.outputs[1] is None
    assert t["LlamaForCausalLM"][0].inputs.input_ids.shape == (2, 5)


def test_the_vae_is_seen_although_its_forward_never_runs(sd):
    pipe, _ = sd
    with trace(pipe) as t:
        draw(pipe)
    assert "vae" not in t
    assert t["vae.decode"][0].inputs.z.shape == (1, 4, 8, 8)
    assert t["vae.decode"][0].outputs.shape == (1, 3, 16, 16)


# -- changes during the trace --------------------------------------------------------------------------------


def test_a_swapped_scheduler_stays_traced(sd):
    pipe, _ = sd
    with trace(pipe) as t:
        draw(pipe)
        pipe.scheduler = df.EulerDiscreteScheduler.from_config(pipe.scheduler.config)
        draw(pipe)
    assert t["scheduler.step"].calls == 6
    assert "s_churn" not in t["scheduler.step"][0].inputs
    assert t["scheduler.set_timesteps"][1].outputs.sigmas.shape == (4,)


def test_a_scheduler_that_sets_its_timesteps_twice_in_a_call_shows_them(sd):
    class Twice(df.DDIMScheduler):
        def set_timesteps(self, num_inference_steps, device=None):
            # the second tensor may get the place, and so the id, of the one that was there before
            for _ in range(2):
                super().set_timesteps(num_inference_steps, device)

    pipe, _ = sd
    pipe.scheduler = Twice.from_config(pipe.scheduler.config)
    with trace(pipe) as t:
        for _ in range(8):
            pipe.scheduler.set_timesteps(5)
    assert [b.outputs.timesteps.shape for b in t["scheduler.set_timesteps"]] == [(5,)] * 8


def test_a_scheduler_swapped_in_the_middle_of_the_call_is_seen(sd):
    pipe, _ = sd

    def swap(pipe, step, timestep, values):
        if step == 0:
            new = df.DDIMParallelScheduler.from_config(pipe.scheduler.config)
            new.set_timesteps(3)
            pipe.scheduler = new
        return values

    with trace(pipe) as t:
        draw(pipe, callback_on_step_end=swap)
    assert t["scheduler.step"].calls == 3


def test_methods_stored_on_an_instance_are_seen_and_put_back(sd):
    pipe, _ = sd
    own = functools.partial(type(pipe.scheduler).step, pipe.scheduler)
    pipe.scheduler.step = functools.update_wrapper(own, type(pipe.scheduler).step)
    stored = vars(pipe.scheduler)["step"]
    with trace(pipe) as t:
        draw(pipe)
        assert "step" in vars(copy.copy(pipe.scheduler))
    assert vars(pipe.scheduler)["step"] is stored
    assert t["scheduler.step"].calls == 3


# -- offloading, compilation ---------------------------------------------------------------------------------


def test_accelerate_hooks_are_moves_and_still_work(sd):
    pipe, _ = sd
    expected = draw(pipe)
    accelerate.cpu_offload(pipe.unet, "cpu")
    before = instance_state(pipe)
    with trace(pipe) as t:
        assert torch.equal(draw(pipe), expected)
    assert not difference(before, instance_state(pipe))
    moves = t.find(kind="move")
    assert {(m.moved["from"], m.moved["to"]) for m in moves} == {("meta", "cpu"), ("cpu", "meta")}
    assert all(m.name.startswith("unet.") for m in moves)
    assert all(m.step in (1, 2, 3) for m in moves)
    with trace(pipe, depth="all") as t:
        assert torch.equal(draw(pipe), expected)
    assert t["unet.conv_in"].calls == 3
    assert t["unet.conv_in.pre_forward"][0].parent.name == "unet.conv_in"
    accelerate.hooks.remove_hook_from_module(pipe.unet, recurse=True)
    assert torch.equal(draw(pipe), expected)


def test_hooks_installed_and_removed_inside_the_trace_leave_the_model_whole(sd):
    pipe, _ = sd
    expected = draw(pipe)
    plain = pipe.unet.forward.__func__
    with trace(pipe) as t:
        accelerate.cpu_offload(pipe.unet, "cpu")
        assert torch.equal(draw(pipe), expected)
        accelerate.hooks.remove_hook_from_module(pipe.unet, recurse=True)
    assert pipe.unet.forward.__func__ is plain
    assert t.find(kind="move")


def test_moves_tell_from_where_to_where_and_how_much(sd):
    pipe, _ = sd
    with trace(pipe) as t:
        pipe.to(torch.float64)
        pipe.to(torch.float64)  # nothing to do: no boundary
        pipe.vae.half()
    moved = t["unet.to"]
    assert moved.calls == 1
    assert moved[0].moved["dtype_to"] == "float64"
    assert moved[0].moved["bytes"] == sum(p.numel() * 8 for p in pipe.unet.parameters())
    assert t["vae.half"][0].changes == ["weights float64 → float16"]


def test_residency_follows_the_moves(sd):
    pipe, _ = sd
    with trace(pipe) as t:
        pipe.unet.to("meta")
        pipe.scheduler.set_timesteps(2)
    last = t.residency()[-1]
    assert last["name"] == "scheduler.set_timesteps"
    assert last["where"] == {"unet": "meta", "vae": "cpu", "text_encoder": "cpu"}


@pytest.mark.parametrize("when", ["before", "inside"])
def test_tracing_a_compiled_model_does_not_compile_again(when):
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    made, _ = zoo.MODELS["llama"]()
    counter = CompileCounter()
    compiled = torch.compile(made, backend=counter)
    with torch.no_grad():
        expected = made(zoo.IDS, use_cache=False).logits
        if when == "before":
            compiled(zoo.IDS, use_cache=False)
        with trace(compiled, depth="all") as t:
            assert torch.allclose(compiled(zoo.IDS, use_cache=False).logits, expected, atol=1e-5)
        assert counter.frame_count == 1
        compiled(zoo.IDS, use_cache=False)
    assert counter.frame_count == 1
    assert t["LlamaForCausalLM"].calls == 1
    assert any("compiled" in note for note in t.notes)
    assert "compiled" in str(t.table())


def test_compiled_parts_are_named():
    torch._dynamo.reset()
    made, _ = zoo.MODELS["llama"]()
    for layer in made.model.layers:
        layer.compile(backend="eager")
    with torch.no_grad(), trace(made, depth="all") as t:
        made(zoo.IDS, use_cache=False)
    assert t["model.layers.0"].calls == 1
    assert "model.layers.0.self_attn" not in t
    assert [note.split()[0] for note in t.notes] == ["model.layers.0", "model.layers.1"]


def test_a_fused_encoder_layer_stays_fused():
    made, call = zoo.MODELS["torch_transformer_encoder"]()
    from torch.profiler import profile

    def kernels():
        with profile() as seen:
            call(made)
        return [event.name for event in seen.events() if "transformer_encoder_layer" in event.name]

    with torch.no_grad():
        plain = kernels()
        with trace(made, depth="all"):
            traced = kernels()
    assert plain
    assert traced == plain


def test_symbolic_tracing_works_inside():
    made = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with trace(made, depth="all"):
        graph = torch.fx.symbolic_trace(made)
    assert [node.op for node in graph.graph.nodes].count("call_module") == 2


# -- callables that the caller names -------------------------------------------------------------------------


def helper(x, *, scale=2.0):
    """Doubles."""
    return x * scale


def test_plain_functions_are_seen_from_everywhere():
    alias = {"held": helper}
    signature = inspect.signature(helper)
    with trace(helper) as t:
        assert inspect.signature(helper) == signature
        assert alias["held"](torch.ones(2), scale=3.0).sum() == 6
        helper(torch.ones(2))
    assert t["helper"].calls == 2
    assert t["helper"][0].inputs.scale == 3.0
    assert t["helper"][0].inputs.x == TensorSpec((2,), torch.float32, torch.device("cpu"))
    assert helper.__doc__ == "Doubles."
    assert not hasattr(helper, "__wrapped__")
    helper(torch.ones(1))
    assert t["helper"].calls == 2


def test_closures_are_seen():
    weight = torch.ones(3)

    def scaled(x, power=1):
        return x * weight**power

    with trace(scaled) as t:
        assert scaled(torch.ones(3), power=2).shape == (3,)
    assert t["scaled"].calls == 1
    assert scaled(torch.ones(3)).sum() == 3


def test_methods_and_library_functions_can_be_named(sd):
    pipe, _ = sd
    with trace(pipe, also=[pipe.unet.time_embedding.forward, (torch, "cat"), (pipe, "check_inputs")]) as t:
        draw(pipe)
    assert t["torch.cat"].calls >= 4
    assert t["forward"].calls == 3
    assert t["StableDiffusionPipeline.check_inputs"].calls == 1


def test_a_manual_loop_over_components_is_traced(sd):
    pipe, _ = sd
    with torch.no_grad(), trace(pipe) as t:
        pipe.scheduler.set_timesteps(4)
        latents = torch.ones(1, 4, 8, 8)
        for timestep in pipe.scheduler.timesteps:
            noise = pipe.unet(torch.cat([latents] * 2), timestep, torch.ones(2, 16, 32)).sample
            latents = pipe.scheduler.step(noise.chunk(2)[1], timestep, latents).prev_sample
        pipe.vae.decode(latents)
    assert t.steps == 4
    assert t["guidance"].calls == 4
    assert t["vae.decode"][0].step is None
    assert [b.step for b in t["unet"]] == [1, 2, 3, 4]


# -- other kinds of targets ----------------------------------------------------------------------------------


def test_a_transformers_pipeline_is_a_pipeline():
    made, _ = zoo.MODELS["llama"]()
    pipe = tf.pipeline("text-generation", model=made, tokenizer=zoo.tokenizer(32), device="cpu")
    expected = pipe("a b c", max_new_tokens=3, do_sample=False)
    with trace(pipe) as t:
        assert pipe("a b c", max_new_tokens=3, do_sample=False) == expected
    assert t["tokenizer"].calls == 1
    assert t["model.generate"].calls == 1
    assert t["model"].calls == t.steps == 3
    assert {"preprocess", "forward", "postprocess"} <= set(t.names)


@pytest.mark.parametrize("kind", ["symbolic", "script", "jit"])
def test_graph_modules_are_one_boundary_or_more(kind):
    plain = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    make = {
        "symbolic": torch.fx.symbolic_trace,
        "script": torch.jit.script,
        "jit": lambda m: torch.jit.trace(m, torch.ones(1, 4)),
    }
    made, expected = make[kind](plain), plain(torch.ones(1, 4))
    with trace(made, depth="all") as t:
        assert torch.equal(made(torch.ones(1, 4)), expected)
    assert len(t) == (3 if kind == "symbolic" else 1)
    assert bool(t.notes) == (kind != "symbolic")


def test_a_class_can_be_named_for_all_its_instances():
    made, call = zoo.MODELS["llama"]()
    with trace((tf.DynamicCache, "update")) as t:
        call(made)
    assert t["DynamicCache.update"].calls == 8


def test_every_wrap_is_counted_out_when_traces_share_classes(sd):
    pipe, _ = sd
    from inferlab.trace.recording import patches

    with trace(pipe):
        with trace(pipe, depth="all"):
            pass
        draw(pipe)
        assert patches.in_place
    assert patches.in_place == {}
    assert patches.originals == {}
