"""Records every boundary that data crosses in a run of a pipeline or model: `with trace(pipe) as t: ...`.

Methods of classes are replaced by wrappers while the block runs; torch's hooks are not used.

`trace.py` has both ends: `trace` is the block, and `Trace` is what was recorded. How a tensor gets its row in
the table, in five steps:

1. `recording/instrument.py` (`Instrument`) finds the pipeline's modules and methods (with `discover.py`) and
   makes a `Point` for each. The points of modules it gets from its base class, `Placement` (`_module_point`).
2. `recording/placement.py` (`Placement`) puts each point in its place: `patches.py` replaces the method on
   its class by a wrapper, and the wrapper calls `Point.run`. For most classes of modules the wrapper is
   `short_call.py`, which records inner modules itself and hands a component of the pipeline, such as the
   UNet, to `Point.run` (`_full_call`). A component's `forward` is wrapped too, for callers that skip
   `__call__`; inside a call that is already recorded, it only passes on. When the block ends,
   `Placement.remove` takes everything away.
3. `recording/points.py` (`Point.run`) turns the arguments and the result into keys of shape, dtype and device
   (`signature.py`), and writes one record of eight integers into the thread's log (`recorder.py`). For the
   inner modules of `depth="all"`, `short_call.py` writes the same record itself, which is faster.
4. When somebody looks (`Trace.boundaries`), `reading/build.py` makes a `Boundary` (`boundary.py`) of each
   record, and `Boundary.inputs` makes a `TensorSpec` of each key (`specs.py`: `view_call`, `view`). Then
   `steps.py` numbers the steps, `guidance.py` sets `role` and adds the guidance that it
   infers, `changes.py` marks the changes of device, dtype and axes, and `packing.py` notes what packed
   latents are.
5. `Trace.table` makes a `Table` (`showing/table.py`): `fold.py` finds what repeats, and `lines.py` makes one
   `Line` a row. `text.py` and `html.py` (`html_table`) draw the lines. A cell's text is that of `TensorSpec`;
   a device that all tensors share is taken out of the cells (`without_device`) and stands in the heading.
"""

from .reading.boundary import Boundary, Calls
from .reading.compare_traces import Change
from .reading.specs import ArraySpec, CacheSpec, Fields, ImageSpec, Items, TensorSpec
from .showing.changes_table import Diff
from .trace import Trace, trace

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
