"""Descriptions of what crossed a boundary (`TensorSpec`, `Fields`, `Items`, ...), built from keys."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from inferlab.trace.recording import signature

# A TensorSpec, ArraySpec, ImageSpec, CacheSpec, Fields, Items, Long, Opaque or plain value.
Described: TypeAlias = Any


def short_dtype(dtype: torch.dtype) -> str:
    """`torch.float32` -> `"float32"`."""
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor seen at a boundary: its shape (a tuple of ints), torch.dtype and torch.device."""

    shape: tuple
    dtype: torch.dtype
    device: torch.device

    @property
    def nbytes(self) -> int:
        """Bytes of the elements (product of the shape times the element's size), whatever the strides."""
        count = self.dtype.itemsize
        for n in self.shape:
            count *= int(n)
        return count

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __str__(self) -> str:
        return f"{tuple(self.shape)} {short_dtype(self.dtype)} {self.device}"

    def plain(self) -> dict:
        """The description as plain data."""
        return {"shape": tuple(self.shape), "dtype": short_dtype(self.dtype), "device": str(self.device)}


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """A NumPy array (or another host array) seen at a boundary."""

    shape: tuple
    dtype: str
    nbytes: int

    def __str__(self) -> str:
        return f"{self.shape} {self.dtype} array"

    def plain(self) -> dict:
        """The description as plain data."""
        return {"shape": self.shape, "dtype": self.dtype, "device": "numpy"}


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """A PIL image: `mode` (as "RGB") and `size` (width, height) in pixels."""

    cls: str
    mode: str
    size: tuple

    def __str__(self) -> str:
        return f"{self.mode} image {self.size[0]}x{self.size[1]}"

    def plain(self) -> dict:
        """The description as plain data."""
        return {"image": self.mode, "size": tuple(self.size)}


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """A KV cache as it was at that moment. `length` in tokens, None when only the device knows it."""

    cls: str
    length: int | None
    layers: int
    keys: Any

    def __str__(self) -> str:
        length = "?" if self.length is None else self.length
        return f"{self.cls}(length={length}, layers={self.layers})"

    def plain(self) -> dict:
        """The description as plain data."""
        keys = self.keys.plain() if isinstance(self.keys, TensorSpec) else None
        return {"cache": self.cls, "length": self.length, "layers": self.layers, "keys": keys}


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that has no data to describe: only its class (or its short repr) is kept."""

    text: str

    def __str__(self) -> str:
        return self.text

    def plain(self) -> str:
        """The description as plain data."""
        return self.text


@dataclass(frozen=True, slots=True)
class Long:
    """A container too long to describe item by item: its class, its length and its first items."""

    cls: str
    length: int
    head: tuple

    def __str__(self) -> str:
        head = ", ".join(show(item) for item in self.head)
        return f"{self.cls} of {self.length}" + (f" [{head}, …]" if head else "")

    def plain(self) -> dict:
        """The description as plain data."""
        return {"container": self.cls, "length": self.length, "head": [plain(item) for item in self.head]}


class _OneTensor:
    """`.shape`, `.dtype` and `.device` of a container that holds exactly one tensor."""

    __slots__ = ()

    def _only(self, attribute: str) -> Any:
        found = tensors(self)
        if len(found) != 1:
            raise AttributeError(
                f"no single .{attribute}: there are {len(found)} tensors here ({show(self)}); "
                "pick one of them first"
            )
        return getattr(found[0], attribute)

    @property
    def shape(self) -> tuple:
        """The one tensor's shape; AttributeError where there are none or several."""
        return self._only("shape")

    @property
    def dtype(self) -> torch.dtype:
        """The one tensor's dtype; AttributeError where there are none or several."""
        return self._only("dtype")

    @property
    def device(self) -> torch.device:
        """The one tensor's device; AttributeError where there are none or several."""
        return self._only("device")


class Items(tuple, _OneTensor):
    """A tuple or list of described values (`kind` says which)."""

    kind = "tuple"

    def __str__(self) -> str:
        return show(self)


class Listed(Items):
    """A list of described values."""

    kind = "list"


class Fields(dict, _OneTensor):
    """Named values: keyword arguments, a dict, a `ModelOutput` or a dataclass; `cls` is its class's name.

    A field is read as `fields["sample"]` or `fields.sample`; one tensor's shape as `fields.sample.shape`.
    """

    cls = ""

    def __getattr__(self, name: str) -> Described:
        if name in self:
            return self[name]
        raise AttributeError(f"no field {name!r}; there are: {', '.join(map(str, self)) or 'none'}")

    def __str__(self) -> str:
        return show(self)


def view(key: signature.Key) -> Described:
    """The readable description of a key that `signature.key_of` made."""
    if key is None:
        return None
    if signature.is_tensor_key(key):
        return TensorSpec(tuple(key[0]), key[1], key[2])
    tag = key[0]
    if tag is signature.SCALAR:
        return Opaque(key[1].__name__) if key[2] is None else key[2]
    if tag is signature.TEXT:
        return Opaque("str") if key[1] is None else key[1]
    if tag is signature.BYTES:
        return Opaque(f"{key[1]} bytes")
    if tag is signature.TUPLE:
        return Items(view(part) for part in key[1])
    if tag is signature.LIST:
        return Listed(view(part) for part in key[1])
    if tag is signature.RECORD:
        fields = Fields(zip(key[2], map(view, key[3]), strict=True))
        fields.cls = key[1]
        return fields
    if tag is signature.ARRAY:
        return ArraySpec(*key[1:])
    if tag is signature.IMAGE:
        return ImageSpec(*key[1:])
    if tag is signature.CACHE:
        return CacheSpec(key[1], key[2], key[3], view(key[4]))
    if tag is signature.LONG:
        return Long(key[1], key[2], tuple(view(part) for part in key[3]))
    return Opaque(key[1])


def view_call(key: signature.Key, parameters: Iterable) -> Fields:
    """The arguments of a call by name: positional ones take the names of the function's `parameters`.

    `parameters` gives (name, kind) without `self`; arguments beyond them are named `arg0`, `arg1`, ...
    """
    positional, names, values = key
    fields = Fields()
    slots = [name for name, kind in parameters if kind in ("positional", "both")]
    rest = next((name for name, kind in parameters if kind == "rest"), None)
    for index, part in enumerate(positional):
        if index < len(slots):
            name = slots[index]
        elif rest is not None:
            name = f"{rest}[{index - len(slots)}]"
        else:
            name = f"arg{index}"
        fields[name] = view(part)
    for name, part in zip(names, values, strict=True):
        fields[name] = view(part)
    return fields


def tensors(value: Described) -> list:
    """Every tensor, array or cached key tensor description inside a described value, in order."""
    if isinstance(value, (TensorSpec, ArraySpec)):
        return [value]
    if isinstance(value, Fields):
        return [found for part in value.values() for found in tensors(part)]
    if isinstance(value, tuple):
        return [found for part in value for found in tensors(part)]
    if isinstance(value, Long):
        return [found for part in value.head for found in tensors(part)]
    return []


def leaves(value: Described, path: str = "") -> Iterator[tuple[str, Described]]:
    """(path, leaf) pairs of a described value: `"sample"`, `"down_block_res_samples[3]"`, ..."""
    if isinstance(value, Fields):
        for name, part in value.items():
            yield from leaves(part, f"{path}.{name}" if path else str(name))
    elif isinstance(value, Items):
        for index, part in enumerate(value):
            yield from leaves(part, f"{path}[{index}]")
    else:
        yield path, value


def nbytes(value: Described) -> int:
    """Bytes of all tensors and arrays in a described value."""
    return sum(part.nbytes for part in tensors(value))


def show(value: Described, limit: int = 160) -> str:
    """One line of text for a described value, cut to `limit` characters."""
    text = _show(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _show(value: Described) -> str:
    if isinstance(value, Fields):
        inner = ", ".join(f"{name}={_show(part)}" for name, part in value.items())
        return f"{value.cls}({inner})" if value.cls else f"{{{inner}}}"
    if isinstance(value, Items):
        brackets = "[]" if value.kind == "list" else "()"
        if len(value) > 3 and len(set(map(str, value))) == 1:
            return f"{brackets[0]}{_show(value[0])} ×{len(value)}{brackets[1]}"
        return brackets[0] + ", ".join(_show(part) for part in value) + brackets[1]
    if isinstance(value, str):
        return repr(value)
    return str(value)


def plain(value: Described) -> Any:
    """The described value as data for the wire: dicts, lists, tuples, numbers, strings, None."""
    if isinstance(value, Fields):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, Items):
        parts = [plain(part) for part in value]
        return parts if value.kind == "list" else tuple(parts)
    return value.plain() if hasattr(value, "plain") else value
