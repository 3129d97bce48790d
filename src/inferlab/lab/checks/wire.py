"""What may cross between a learner's code and a check: data, checked, copied, and nothing else.

A value is written as tagged, length-prefixed bytes and read back as a *new* value of the same plain type.
Nothing is unpickled, evaluated or imported by name, so bytes from a hostile kernel can at worst be refused
(`WireError`).

Crosses: None, bool, int, float, complex, str, bytes, list, tuple (stays a tuple), dict, set, `torch.Tensor`,
`torch.dtype`, `torch.device`, `torch.Size`, numpy arrays, and callables (by reference, see `encode`). Does
not cross: any other object. A subclass of a plain type (a named tuple, a `ModelOutput`) arrives as the plain
type, and a scalar of numpy's as the Python number or boolean that it holds.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


class WireError(ValueError):
    """A value that may not cross, or bytes that are no well-formed message; the text says which and why."""


@dataclass(frozen=True)
class WireLimits:
    """What one message may hold. `bytes` is the whole message, `items` counts every value in it."""

    bytes: int = 64 * 2**20
    items: int = 200_000
    depth: int = 32
    int_bytes: int = 512
    keys: int = 20_000
    dims: int = 16


DEFAULT = WireLimits()

_LEN = struct.Struct(">Q")
_F64 = struct.Struct(">d")
_C128 = struct.Struct(">dd")
_SMALL_KEY = 2**60  # larger integers as dict keys could be chosen to collide
_DEVICE = re.compile(r"(cpu|cuda|mps|xpu|meta)(:\d{1,3})?")
_DTYPES = {str(d).removeprefix("torch."): d for d in vars(torch).values() if isinstance(d, torch.dtype)}
_WIDE = ["float64", "float32", "float16", "complex64", "complex128", "bool",
         "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64"]
_TENSOR_DTYPES = {
    name: _DTYPES[name] for name in [*_WIDE, "bfloat16", "float8_e4m3fn", "float8_e5m2"] if name in _DTYPES
}
_NUMPY_DTYPES = {name: np.dtype(name) for name in _WIDE}


Export = Callable[[Any], tuple[bool, int, str]]
Resolve = Callable[[bool, int, str], Any]


def encode(value: Any, export: Export | None = None, limits: WireLimits = DEFAULT) -> bytes:
    """Write `value` as bytes.

    Args:
        value: any value of the types listed in the module's docstring, nested up to `limits.depth`.
        export: called with every callable met; returns `(mine, number, name)`, where `mine` is False for a
            callable that came from the other side and goes back to it. Without it a callable is refused.
        limits: sizes above which `WireError` is raised.
    """
    writer = _Writer(export, limits)
    writer.put(value, 0)
    return b"".join(writer.out)


def decode(
    data: bytes,
    resolve: Resolve | None = None,
    limits: WireLimits = DEFAULT,
    keep_device: bool = False,
) -> Any:
    """Read bytes written by `encode` into new objects.

    Args:
        resolve: called with `(theirs, number, name)` for every callable; returns what stands for it here.
        limits: sizes above which `WireError` is raised.
        keep_device: put tensors back on the device they came from (at home); otherwise they must be on the
            CPU.

    Raises:
        WireError: for anything malformed or too large.
    """
    if len(data) > limits.bytes:
        raise WireError(f"{len(data)} bytes in one message; at most {limits.bytes} may cross")
    reader = _Reader(data, resolve, limits, keep_device)
    value = reader.get(0)
    if reader.pos != len(reader.data):
        raise WireError("bytes left over after the value")
    return value


def copy(value: Any, limits: WireLimits = DEFAULT) -> Any:
    """A deep copy made by crossing the wire, on the same device; callables are the same objects."""
    table: list[Any] = []

    def export(function: Any) -> tuple[bool, int, str]:
        table.append(function)
        return True, len(table) - 1, ""

    data = encode(value, export, limits)
    return decode(data, lambda _, number, __: table[number], limits, keep_device=True)


class _Writer:
    def __init__(self, export: Export | None, limits: WireLimits) -> None:
        self.export, self.limits = export, limits
        self.out: list[bytes] = []
        self.items = self.size = 0

    def raw(self, tag: bytes, body: bytes) -> None:
        self.size += len(body) + 9
        if self.size > self.limits.bytes:
            most = self.limits.bytes / 2**20
            raise WireError(f"the value is larger than {most:.0f} MB, the most that may cross")
        self.out += (tag, _LEN.pack(len(body)), body)

    def count(self, tag: bytes, number: int) -> None:
        self.size += 9
        self.out += (tag, _LEN.pack(number))

    def put(self, v: Any, depth: int) -> None:
        self.items += 1
        if self.items > self.limits.items:
            raise WireError(f"more than {self.limits.items} values in one message")
        if depth > self.limits.depth:
            raise WireError(f"nested deeper than {self.limits.depth} levels, or a structure in itself")
        if isinstance(v, np.generic):
            v = v.item()
        if v is None or v is True or v is False:
            self.out.append(b"N" if v is None else b"T" if v else b"F")
            self.size += 1
        elif isinstance(v, int):
            v = int(v)
            body = v.to_bytes(v.bit_length() // 8 + 1, "big", signed=True)
            if len(body) > self.limits.int_bytes:
                raise WireError(f"an integer of {len(body)} bytes; at most {self.limits.int_bytes} may cross")
            self.raw(b"i", body)
        elif isinstance(v, float):
            self.raw(b"d", _F64.pack(v))
        elif isinstance(v, complex):
            self.raw(b"c", _C128.pack(v.real, v.imag))
        elif isinstance(v, str):
            try:
                self.raw(b"s", str.encode(v, "utf-8"))
            except UnicodeEncodeError:
                raise WireError("a string with half a surrogate pair, which is not text") from None
        elif isinstance(v, bytes | bytearray):
            self.raw(b"b", bytes(v))
        elif isinstance(v, torch.Size):
            self.sequence(b"Z", list(v), depth)
        elif isinstance(v, list | tuple):
            self.sequence(b"l" if isinstance(v, list) else b"u", v, depth)
        elif isinstance(v, dict):
            self.count(b"m", len(v))
            for key, item in v.items():
                self.put(key, depth + 1)
                self.put(item, depth + 1)
        elif isinstance(v, set | frozenset):
            self.sequence(b"S", v, depth)
        elif isinstance(v, torch.Tensor):
            self.tensor(v)
        elif isinstance(v, np.ndarray):
            self.array(v)
        elif isinstance(v, torch.dtype):
            self.raw(b"D", str(v).removeprefix("torch.").encode())
        elif isinstance(v, torch.device):
            self.raw(b"V", str(v).encode())
        elif callable(v) and self.export is not None:
            mine, number, name = self.export(v)
            self.raw(b"C" if mine else b"R", _LEN.pack(number) + name.encode("utf-8", "replace")[:200])
        else:
            kind = f"{type(v).__module__}.{type(v).__qualname__}"
            raise WireError(f"a {kind} cannot be handed over; "
                            "use numbers, text, tensors, lists, tuples or dicts")

    def sequence(self, tag: bytes, values: Collection[Any], depth: int) -> None:
        self.count(tag, len(values))
        for item in values:
            self.put(item, depth + 1)

    def tensor(self, t: torch.Tensor) -> None:
        if t.layout is not torch.strided or t.is_quantized or t.is_nested:
            raise WireError("a sparse, nested or quantized tensor cannot be handed over; make it dense")
        name, device = str(t.dtype).removeprefix("torch."), str(t.device)
        if t.device.type == "meta" or name not in _TENSOR_DTYPES:
            raise WireError(f"a tensor of dtype {name} on {device} cannot be handed over")
        if t.numel() * t.element_size() > self.limits.bytes:
            most = self.limits.bytes / 2**20
            raise WireError(f"a tensor of shape {tuple(t.shape)} is larger than {most:.0f} MB")
        flat = torch.Tensor.detach(t).as_subclass(torch.Tensor).cpu().resolve_conj().resolve_neg().reshape(-1)
        body = flat.contiguous().view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        self.put_array(b"X", name, tuple(t.shape), device, body)

    def array(self, a: np.ndarray) -> None:
        if a.dtype.name not in _NUMPY_DTYPES:
            raise WireError(f"a numpy array of dtype {a.dtype} cannot be handed over")
        if a.nbytes > self.limits.bytes:
            raise WireError(f"an array of shape {a.shape} is larger than {self.limits.bytes / 2**20:.0f} MB")
        little = np.asarray(a).astype(a.dtype.newbyteorder("<"))
        self.put_array(b"A", a.dtype.name, a.shape, "cpu", little.tobytes())

    def put_array(self, tag: bytes, dtype: str, shape: tuple, device: str, body: bytes) -> None:
        if len(shape) > self.limits.dims:
            raise WireError(f"{len(shape)} dimensions; at most {self.limits.dims} may cross")
        self.raw(tag, ",".join([dtype, device, *map(str, shape)]).encode())
        self.raw(b"b", body)


class _Reader:
    def __init__(self, data: bytes, resolve: Resolve | None, limits: WireLimits, keep_device: bool) -> None:
        self.data, self.resolve = memoryview(data), resolve
        self.limits, self.keep_device = limits, keep_device
        self.pos = self.items = 0

    def take(self, number: int) -> memoryview:
        end = self.pos + number
        if end > len(self.data):
            raise WireError("the message ends too early")
        part, self.pos = self.data[self.pos : end], end
        return part

    def length(self) -> int:
        (number,) = _LEN.unpack(self.take(8))
        if number > len(self.data) - self.pos:
            raise WireError("a length that is larger than the message")
        return number

    def body(self) -> memoryview:
        return self.take(self.length())

    def get(self, depth: int) -> Any:
        self.items += 1
        if self.items > self.limits.items:
            raise WireError(f"more than {self.limits.items} values in one message")
        if depth > self.limits.depth:
            raise WireError(f"nested deeper than {self.limits.depth} levels")
        tag = bytes(self.take(1))
        if tag in b"NTF":
            return {b"N": None, b"T": True, b"F": False}[tag]
        if tag == b"i":
            body = self.body()
            if not 0 < len(body) <= self.limits.int_bytes:
                raise WireError("an integer of a size that may not cross")
            return int.from_bytes(body, "big", signed=True)
        if tag == b"d":
            return _F64.unpack(self.exactly(8))[0]
        if tag == b"c":
            return complex(*_C128.unpack(self.exactly(16)))
        if tag == b"s":
            return self.text()
        if tag == b"b":
            return bytes(self.body())
        if tag in (b"l", b"u", b"S", b"Z"):
            return self.sequence(tag, depth)
        if tag == b"m":
            return self.mapping(depth)
        if tag in (b"X", b"A"):
            return self.array(tag)
        if tag == b"D":
            return self.named(_DTYPES)
        if tag == b"V":
            name = self.text()
            if not _DEVICE.fullmatch(name):
                raise WireError("not the name of a device")
            return torch.device(name)
        if tag in (b"C", b"R") and self.resolve is not None:
            called = bytes(self.body())
            if len(called) < 8 or len(called) > 208:
                raise WireError("a malformed reference to a function")
            name = called[8:].decode("utf-8", "replace")
            return self.resolve(tag == b"C", _LEN.unpack(called[:8])[0], name)
        raise WireError(f"an unknown or unexpected tag {tag!r}")

    def exactly(self, number: int) -> memoryview:
        body = self.body()
        if len(body) != number:
            raise WireError("a number of the wrong width")
        return body

    def text(self) -> str:
        try:
            return str(self.body(), "utf-8")
        except UnicodeDecodeError:
            raise WireError("text that is not UTF-8") from None

    def named(self, table: dict) -> Any:
        name = self.text()
        if name not in table:
            raise WireError(f"{name[:40]!r} is not a known dtype")
        return table[name]

    def sequence(self, tag: bytes, depth: int) -> Any:
        number = self.length()
        if tag == b"S":
            return set(self.distinct(number, depth))
        values = [self.get(depth + 1) for _ in range(number)]
        if tag == b"Z":
            if not all(type(v) is int and 0 <= v < 2**31 for v in values):
                raise WireError("a shape of something other than sizes")
            return torch.Size(values)
        return values if tag == b"l" else tuple(values)

    def distinct(self, number: int, depth: int) -> list:
        if number > self.limits.keys:
            raise WireError(f"{number} elements in a set; at most {self.limits.keys} may cross")
        return [self.key(depth) for _ in range(number)]

    def mapping(self, depth: int) -> dict:
        number = self.length()
        if number > self.limits.keys:
            raise WireError(f"{number} keys in a dict; at most {self.limits.keys} may cross")
        result = {}
        for _ in range(number):
            key = self.key(depth)
            if key in result:
                raise WireError("a dict with the same key twice")
            result[key] = self.get(depth + 1)
        return result

    def key(self, depth: int) -> Any:
        key = self.get(depth + 1)
        if not _usable_key(key):
            raise WireError(f"a {type(key).__name__} that cannot be a key")
        return key

    def array(self, tag: bytes) -> Any:
        names = self.text().split(",")
        if len(names) < 2 or len(names) - 2 > self.limits.dims:
            raise WireError("a malformed tensor")
        name, device, sizes = names[0], names[1], names[2:]
        if not all(re.fullmatch(r"[0-9]{1,10}", s) for s in sizes):
            raise WireError("a tensor with a malformed shape")
        shape = tuple(int(s) for s in sizes)
        table: dict[str, Any] = _TENSOR_DTYPES if tag == b"X" else _NUMPY_DTYPES
        if name not in table or not _DEVICE.fullmatch(device) or bytes(self.take(1)) != b"b":
            raise WireError("a malformed tensor")
        body = bytearray(self.body())
        if math.prod(shape) * table[name].itemsize != len(body):
            raise WireError(f"a tensor of shape {shape} whose data has another size")
        if device != "cpu" and not self.keep_device:
            raise WireError(f"a tensor on {device}; graded values must be on the CPU")
        try:
            if tag == b"X":
                return self.tensor(table[name], shape, device, body)
            return self.ndarray(table[name], shape, body)
        except (RuntimeError, ValueError, OverflowError) as error:
            raise WireError(f"a tensor of shape {shape} that cannot be made: {error}") from None

    @staticmethod
    def tensor(dtype: torch.dtype, shape: tuple, device: str, body: bytearray) -> torch.Tensor:
        if not body:
            return torch.empty(shape, dtype=dtype, device=device)
        if dtype is torch.bool:  # any byte but 0 and 1 would be undefined behaviour
            return torch.frombuffer(body, dtype=torch.uint8).ne(0).reshape(shape).to(device)
        return torch.frombuffer(body, dtype=dtype).reshape(shape).to(device)

    @staticmethod
    def ndarray(dtype: np.dtype, shape: tuple, body: bytearray) -> np.ndarray:
        if dtype == np.bool_:
            return np.frombuffer(body, np.uint8).astype(bool).reshape(shape)
        return np.frombuffer(body, dtype.newbyteorder("<")).astype(dtype).reshape(shape)


def _usable_key(key: Any) -> bool:
    """Whether `key` is a plain hashable value. Of integers only small ones are: large ones may collide."""
    if isinstance(key, tuple):
        return all(_usable_key(k) for k in key)
    if type(key) is int:
        return abs(key) < _SMALL_KEY
    if type(key) is float:
        return math.isfinite(key)
    return key is None or isinstance(key, bool | str | bytes | torch.dtype | torch.device)
