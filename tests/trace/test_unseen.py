"""Calls that a trace cannot record: a note says so, in the trace and under its table."""

import subprocess
import sys

import accelerate
import pytest
import torch
from torch import nn

from inferlab.trace import trace
from tests.trace import zoo

pytestmark = pytest.mark.usefixtures("nothing_left")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.two(self.one(x))


class Pipe:
    """A pipeline as small as one can be."""

    def __init__(self, way):
        self.model, self.way = Net(), way

    def __call__(self, x):
        return self.way(self.model, x)


X = torch.ones(1, 4)


def said(t, *words):
    """The one note that has all these words; it also stands under both forms of the table."""
    notes = [note for note in t.notes if all(word in note for word in words)]
    assert len(notes) == 1, t.notes
    assert notes[0] in str(t.table())
    return notes[0]


@pytest.mark.parametrize("depth", ["components", "all"])
@pytest.mark.parametrize("make", [Net, lambda: nn.Linear(4, 4)])
def test_forward_called_by_its_name_is_recorded_and_noted(make, depth):
    model = make()
    expected, name = model(X), type(model).__name__
    with trace(model, depth=depth) as t:
        assert torch.equal(model.forward(X), expected)
        assert torch.equal(model(X), expected)
    assert t[name].calls == 2
    assert t[name][0].inputs[0 if name == "" else next(iter(t[name][0].inputs))].shape == (1, 4)
    said(t, f"{name}.forward(...) was called by its name")


def test_a_pipeline_that_calls_forward_by_name():
    pipe = Pipe(lambda model, x: model.forward(x))
    with trace(pipe) as t:
        pipe(X)
    assert [b.name for b in t] == ["Pipe", "model"]
    said(t, "model.forward(...)")


def test_a_usual_call_has_no_note():
    for depth in ("components", "all"):
        pipe = Pipe(lambda model, x: model(x))
        with trace(pipe, depth=depth) as t:
            pipe(X)
        assert t.notes == []
        assert t["model"].calls == 1


def test_a_bound_forward_can_be_the_target():
    model = Net()
    with trace(model.forward) as t:
        model.forward(X)
        model(X)
    assert t["forward"].calls == 2


def test_hooks_that_keep_the_bound_forward_leave_the_plain_one():
    pipe = Pipe(lambda model, x: model(x))
    plain = Net.forward
    with trace(pipe):
        accelerate.cpu_offload(pipe.model, "cpu")
        pipe(X)
    assert pipe.model._old_forward.__func__ is plain
    accelerate.hooks.remove_hook_from_module(pipe.model, recurse=True)
    assert pipe.model.forward.__func__ is plain


@pytest.mark.parametrize("depth", ["components", "all"])
@pytest.mark.parametrize("when", ["before", "inside"])
def test_a_compiled_caller_is_noted(when, depth):
    torch._dynamo.reset()
    model = Net()

    def twice(x):
        return model(model(x))

    compiled = torch.compile(twice, backend="eager")
    with torch.no_grad():
        if when == "before":
            compiled(X)
        with trace(model, depth=depth) as t:
            compiled(X)
            compiled(X)
    assert len(t) == 0
    said(t, "twice is compiled")


def test_a_compiled_component_has_its_own_note_only():
    torch._dynamo.reset()
    pipe = Pipe(lambda model, x: model(x))
    pipe.model = torch.compile(pipe.model, backend="eager")
    with torch.no_grad(), trace(pipe, depth="all") as t:
        pipe(X)
    assert len(t.notes) == 1
    said(t, "model is compiled: its call is one boundary")


def test_layers_that_ran_fused_are_noted():
    model, call = zoo.MODELS["torch_transformer_encoder"]()
    model.eval()
    with torch.no_grad(), trace(model, depth="all") as t:
        call(model)
    assert t["layers.0"].calls == 1
    said(t, "layers.0, layers.1 ran as one fused operation")
    with torch.no_grad(), trace(model.layers[0]) as t:
        model.layers[0](torch.ones(2, 5, 32))
    said(t, "TransformerEncoderLayer ran as one fused operation")


def test_layers_that_ran_one_by_one_are_not():
    model, call = zoo.MODELS["torch_transformer_encoder"]()
    with trace(model.train(), depth="all") as t:
        call(model)
    assert "layers.0.linear1" in t
    assert t.notes == []


class WithLora(nn.Module):
    """As an adapter wraps a layer: the layer, and a product of two thin matrices beside it."""

    def __init__(self, base):
        super().__init__()
        self.base_layer, self.a, self.b = base, nn.Linear(4, 1, bias=False), nn.Linear(1, 4, bias=False)

    def forward(self, x):
        return self.base_layer(x) + self.b(self.a(x))


@pytest.mark.parametrize("depth", ["components", "all"])
def test_an_adapter_loaded_inside_the_block_is_noted(depth):
    pipe = Pipe(lambda model, x: model(x))
    with trace(pipe, depth=depth) as t:
        pipe.model.two = WithLora(pipe.model.two)
        pipe(X)
    said(t, "model got 3 new modules inside the block", "LoRA")
    with trace(pipe, depth="all") as t:
        pipe(X)
    assert "model.two.a" in t
    assert t.notes == []


def test_a_compiler_that_comes_in_the_block_is_noted():
    code = (
        "import sys, torch; from inferlab.trace import trace\n"
        "assert 'torch._dynamo.eval_frame' not in sys.modules, 'loaded already: this test says nothing'\n"
        "model = torch.nn.Linear(4, 4)\n"
        "with torch.no_grad(), trace(model) as t: torch.compile(lambda x: model(x), "
        "backend='eager')(torch.ones(1, 4))\n"
        "print(t.notes)"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "torch.compile came into use inside the block" in made.stdout
