"""The codec: what crosses arrives as it was, as a copy; what may not cross is refused; no bytes can do more
than be refused."""

import math
import random

import numpy as np
import pytest
import torch

from inferlab.lab.checks import wire
from inferlab.lab.checks.compare import difference

VALUES = [
    None, True, False, 0, -1, 255, -256, 10**100, 1.5, -0.0, math.inf, 1 + 2j, "", "é\n\x00", b"\x00x", [],
    (), (1, (2, [3])),
    {"a": 1, (1, "b"): [2.0], None: {}}, {1, 2}, torch.Size([1, 2]), torch.float16, torch.device("cpu"),
    torch.arange(6).reshape(2, 3), torch.zeros(0, 3), torch.tensor(2.5), torch.ones(3, dtype=torch.bfloat16),
    torch.tensor([True, False]), torch.tensor([[1 + 2j, -0.5j]], dtype=torch.complex64),
    np.arange(6.0).reshape(2, 3)[:, ::-1],
    np.zeros((2, 0), np.int8), np.array(1.5, np.float32),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_round_trip(value):
    got = wire.copy(value)
    assert type(got) is type(value)
    assert difference(got, value) is None
    if isinstance(value, torch.Tensor | np.ndarray):
        assert got.dtype == value.dtype


def test_tensors_are_copies_without_history():
    weights = torch.nn.Parameter(torch.ones(2))
    got = wire.copy({"w": weights * 2})["w"]
    got += 1
    assert not got.requires_grad
    assert torch.equal(weights * 2, torch.full((2,), 2.0))
    assert torch.equal(wire.copy(torch.arange(6).reshape(2, 3).T), torch.arange(6).reshape(2, 3).T)


def test_subclasses_arrive_as_plain_types():
    from collections import OrderedDict, namedtuple

    pair = namedtuple("pair", "a b")
    got = wire.copy([OrderedDict(a=1), pair(1, 2), type("S", (str,), {})("x"), type("I", (int,), {})(3)])
    assert [type(v) for v in got] == [dict, tuple, str, int]


def test_scalars_of_numpy_arrive_as_plain_numbers():
    got = wire.copy([np.float32(1.5), np.bool_(True), np.int64(-2), np.complex64(1j),
                     {np.int32(3): np.str_("x")}])
    assert got == [1.5, True, -2, 1j, {3: "x"}]
    assert [type(value) for value in got] == [float, bool, int, complex, dict]


def recursive():
    loop = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize("value", [
    object(), recursive(), 10**2000, "\ud800", {2**61 - 1: 0}, {float("nan"): 0}, [0] * 300_000,
    torch.zeros(2).to_sparse(),
    torch.zeros(2, device="meta"), np.array(["a"]), np.array([object()]), lambda: 0,
    {i: 0 for i in range(30_000)},
    torch.zeros(20_000_000),
], ids=lambda v: type(v).__name__)
def test_refused(value):
    with pytest.raises(wire.WireError):
        wire.decode(wire.encode(value))


def test_no_bytes_do_more_than_be_refused():
    """Flip, cut, repeat and insert bytes of good messages: the result is data or WireError, quickly."""
    chance = random.Random(0)
    good = [wire.encode(v) for v in VALUES]
    for _ in range(4_000):
        data = bytearray(chance.choice(good))
        for _ in range(chance.randint(1, 4)):
            if not data:
                break
            place = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[place] = chance.randrange(256)
                case 1:
                    del data[place:]
                case 2:
                    data[place:place] = chance.choice(good)[:40]
                case 3:
                    data[place] ^= 1 << chance.randrange(8)
        try:
            wire.decode(bytes(data))
        except wire.WireError:
            continue


def test_a_shape_must_fit_its_data():
    header = b"float32,cpu,1000000,1000000"
    forged = b"X" + len(header).to_bytes(8, "big") + header + b"b" + (4).to_bytes(8, "big") + b"\0\0\0\0"
    with pytest.raises(wire.WireError, match="another size"):
        wire.decode(forged)


def test_functions_cross_by_reference_only():
    table = [len]
    packed = wire.encode([len], lambda f: (True, table.index(f), "len"))
    assert wire.decode(packed, lambda theirs, number, name: (theirs, number, name)) == [(True, 0, "len")]
    with pytest.raises(wire.WireError):
        wire.decode(packed)
