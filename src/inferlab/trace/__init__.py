"""Records every boundary that data crosses in a run of a pipeline or model: `with trace(pipe) as t: ...`."""

from .boundary import Boundary, Calls
from .diff import Change, Diff
from .trace import Trace, trace
from .view import ArraySpec, CacheSpec, Fields, ImageSpec, Items, TensorSpec

__all__ = [
    "ArraySpec",
    "Boundary",
    "CacheSpec",
    "Calls",
    "Change",
    "Diff",
    "Fields",
    "ImageSpec",
    "Items",
    "TensorSpec",
    "Trace",
    "trace",
]
