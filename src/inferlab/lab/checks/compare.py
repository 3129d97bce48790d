"""Says whether two pieces of data are the same, and if not, where and by how much."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch


def close(got: Any, want: Any, tol: float = 1e-5, rtol: float = 0.0) -> bool:
    """Whether `got` equals `want` up to `tol + rtol * |want|`.

    False for another type, shape or length. NaN equals only NaN.
    """
    return difference(got, want, tol, rtol) is None


def plain_value(value: Any) -> Any:
    """The Python value in a numpy scalar, or in an array or tensor of one element; anything else as it is."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.size == 1):
        return value.item()
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        return value.item()
    return value


def plain_numbers(value: Any) -> Any:
    """`value` with whatever holds one number in it (see `plain_value`) as the Python number, at any depth of
    lists, tuples and dicts."""
    if isinstance(value, list):
        return [plain_numbers(item) for item in value]
    if isinstance(value, tuple) and not isinstance(value, torch.Size):
        return tuple(plain_numbers(item) for item in value)
    if isinstance(value, dict):
        return {key: plain_numbers(item) for key, item in value.items()}
    return plain_value(value)


def difference(got: Any, want: Any, tol: float = 0.0, rtol: float = 0.0, place: str = "") -> str | None:
    """What differs between `got` and `want`, as a sentence, or None.

    Numbers, tensors and arrays are compared in float64 (complex128), element by element, up to `tol + rtol *
    |want|`; their dtype is not compared. Where one number or one boolean is wanted, whatever holds exactly
    one is accepted (see `plain_value`). Everything else must be equal. Lists and tuples are told apart; so
    are True and 1.
    """
    at = f" at {place}" if place else ""
    if _is_array(want):
        return _arrays(got, want, tol, rtol, at)
    if isinstance(want, int | float | complex | np.generic):
        got, want = plain_value(got), plain_value(want)
    if type(want) is bool or want is None or isinstance(want, str | bytes | torch.dtype | torch.device):
        same = type(got) is type(want) and got == want
        return None if same else f"got {short_repr(got)}, expected {short_repr(want)}{at}"
    if isinstance(want, int | float | complex):
        if type(got) is bool or not isinstance(got, int | float | complex):
            return f"got {short_repr(got)}, expected the number {short_repr(want)}{at}"
        ok = got == want or abs(got - want) <= tol + rtol * abs(want)
        return None if ok else f"got {short_repr(got)}, expected {short_repr(want)}{at}"
    if isinstance(want, list | tuple):
        if isinstance(want, torch.Size) or isinstance(got, torch.Size):
            same = isinstance(got, list | tuple) and tuple(got) == tuple(want)
            return None if same else f"got {short_repr(got)}, expected {short_repr(want)}{at}"
        if not isinstance(got, list | tuple) or isinstance(got, list) != isinstance(want, list):
            return f"got {short_repr(got)}, expected a {type(want).__name__} of {len(want)}{at}"
        if len(got) != len(want):
            return f"got {len(got)} elements, expected {len(want)}{at}"
        pairs = ((f"{place}[{i}]", g, w) for i, (g, w) in enumerate(zip(got, want, strict=True)))
        return next((d for p, g, w in pairs if (d := difference(g, w, tol, rtol, p))), None)
    if isinstance(want, dict):
        if not isinstance(got, dict):
            return f"got {short_repr(got)}, expected a dict{at}"
        if got.keys() != want.keys():
            return f"got the keys {short_repr(list(got))}, expected {short_repr(list(want))}{at}"
        entries = ((f"{place}[{k!r}]", got[k], want[k]) for k in want)
        return next((d for p, g, w in entries if (d := difference(g, w, tol, rtol, p))), None)
    same = type(got) is type(want) and got == want
    return None if same else f"got {short_repr(got)}, expected {short_repr(want)}{at}"


def short_repr(value: Any) -> str:
    """A value in a few words: a tensor by its shape and dtype, the rest by a short repr."""
    value = plain_value(value)
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)} and dtype {str(value.dtype).removeprefix('torch.')}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if callable(value):
        return f"the function {getattr(value, '__name__', '')}"
    if isinstance(value, list | tuple | dict | set) and len(value) > 12:
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 120 else text[:119] + "…"


def _is_array(value: Any) -> bool:
    return isinstance(value, torch.Tensor | np.ndarray)


def _array(value: Any) -> np.ndarray:
    if isinstance(value, torch.Tensor):
        wide = value.detach().cpu()
        return wide.to(torch.complex128 if wide.is_complex() else torch.float64).numpy()
    return np.asarray(value).astype(np.complex128 if np.iscomplexobj(value) else np.float64)


def _arrays(got: Any, want: Any, tol: float, rtol: float, at: str) -> str | None:
    kind = "tensor" if isinstance(want, torch.Tensor) else "array"
    if not _is_array(got):
        return f"got {short_repr(got)}, expected a {kind} of shape {tuple(want.shape)}{at}"
    if tuple(got.shape) != tuple(want.shape):
        return f"the shape is {tuple(got.shape)}, expected {tuple(want.shape)}{at}"
    a, b = _array(got), _array(want)
    with np.errstate(all="ignore"):
        wrong = ~((a == b) | (np.abs(a - b) <= tol + rtol * np.abs(b)) | (np.isnan(a) & np.isnan(b)))
    if not wrong.any():
        return None
    gap = np.where(wrong, np.nan_to_num(np.abs(a - b), nan=math.inf), 0.0)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(gap)), a.shape))
    spot = f"element {list(index)}" if index else "the value"
    if a.size == 1:
        return f"got {a[index]:.6g}, expected {b[index]:.6g}{at}"
    return (f"{int(wrong.sum())} of {a.size} values differ{at}; "
            f"{spot} is {a[index]:.6g}, expected {b[index]:.6g}")
