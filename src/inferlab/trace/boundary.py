"""One recorded boundary, and lists of them: what tests and labs ask."""

from typing import Any

from . import spec, view


class Boundary:
    """One crossing of data into and out of a module or a hidden step.

    name      as in the pipeline: "unet", "scheduler.step", "encode_prompt", "unet.down_blocks.0"
    kind      pipeline, module, scheduler, tokenizer, processor, block, method, move, cache, function, inferred
    step      1-based step of the loop, or None outside it
    inputs    Fields: argument name -> described value (TensorSpec, CacheSpec, numbers, strings, ...), before the call
    outputs   the described result; `.shape`, `.dtype`, `.device` work directly when it holds one tensor
    ms        wall time on the host in milliseconds (None when inferred); `gpu_ms` from CUDA events (None without)
    memory    dict of allocator bytes (before, after, peak, ...) or None
    changes   what differs from the boundary before or across this one: ["device cpu → cuda:0", "dtype ..."]
    error     "ValueError: ..." when the call raised, else None
    """

    __slots__ = (
        "_extra",
        "_in",
        "_out",
        "_parameters",
        "_views",
        "base",
        "changes",
        "children",
        "end_ns",
        "error",
        "index",
        "inferred",
        "kind",
        "level",
        "name",
        "note",
        "parent",
        "start_ns",
        "step",
        "thread",
        "trace",
    )

    def __init__(self, trace, name, kind, base="", parameters=(), start_ns=0, end_ns=0, thread=0):
        self.trace, self.name, self.kind, self.base = trace, name, kind, base or name
        self._parameters = parameters
        self.start_ns, self.end_ns, self.thread = start_ns, end_ns, thread
        self.index, self.step, self.level, self.parent, self.children = -1, None, 0, None, []
        self.error, self.inferred, self.changes, self.note = None, False, [], ""
        self._in = self._out = -1
        self._extra, self._views = None, None

    @property
    def inputs(self) -> view.Fields:
        return self._view()[0]

    @property
    def outputs(self) -> Any:
        return self._view()[1]

    def _view(self):
        if self._views is None:
            self._views = (
                self.trace._inputs(self._in, self._parameters),
                self.trace._output(self._out),
            )
        return self._views

    @property
    def ms(self) -> float | None:
        return None if self.inferred else (self.end_ns - self.start_ns) / 1e6

    @property
    def gpu_ms(self) -> float | None:
        probe = self._extra and self._extra.get("probe")
        return probe.get("gpu_ms") if probe else None

    @property
    def bound(self) -> str | None:
        """On a GPU: "device" when the device was still busy with this boundary after the host had gone on, "host" when
        the device had caught up (it waits for launches); None without CUDA events."""
        probe = self._extra and self._extra.get("probe")
        return probe.get("bound") if probe else None

    @property
    def memory(self) -> dict | None:
        probe = self._extra and self._extra.get("probe")
        return probe.get("memory") if probe else None

    @property
    def moved(self) -> dict | None:
        """For a move: {"module", "from", "to", "dtype_from", "dtype_to", "bytes"}; else None."""
        move = self._extra and self._extra.get("move")
        if not move:
            return None
        module, (device, dtype), (device_now, dtype_now), size = move
        return {
            "module": module,
            "from": device,
            "to": device_now,
            "dtype_from": dtype,
            "dtype_to": dtype_now,
            "bytes": size,
        }

    @property
    def moved_name(self) -> str:
        """The name of the module whose weights this move concerns."""
        move = self._extra and self._extra.get("move")
        return move[0] if move else self.base

    @property
    def kept(self):
        """With `trace(..., keep=pattern)`: object with `.inputs` (by name) and `.outputs`, cloned tensors."""
        kept = self._extra and self._extra.get("kept")
        if not kept:
            raise AttributeError(f"{self.name} kept no tensors: trace it with keep={self.name!r}")
        args, kwargs, output = kept
        names = list(view.view_call(((None,) * len(args), (), ()), self._parameters))
        fields = view.Fields(zip(names, args))
        fields.update(kwargs)
        return Kept(fields, output)

    @property
    def bytes_out(self) -> int:
        """Bytes of the tensors and arrays that came out."""
        return view.nbytes(self.outputs)

    @property
    def bytes_in(self) -> int:
        """Bytes of the tensors and arrays that went in."""
        return view.nbytes(self.inputs)

    def row(self) -> dict:
        """This boundary as plain data (numbers, strings, lists, tuples, dicts, None)."""
        return {
            "index": self.index,
            "name": self.name,
            "kind": self.kind,
            "step": self.step,
            "level": self.level,
            "parent": None if self.parent is None else self.parent.index,
            "inputs": view.plain(self.inputs),
            "outputs": view.plain(self.outputs),
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "ms": self.ms,
            "gpu_ms": self.gpu_ms,
            "bound": self.bound,
            "memory": self.memory,
            "moved": self.moved,
            "changes": list(self.changes),
            "inferred": self.inferred,
            "error": self.error,
            "thread": self.thread,
        }

    def signature(self) -> tuple:
        """What must be equal for two boundaries to fold into one line: name and every shape, dtype and device.

        Numbers and strings among the arguments (a timestep, a layer's index) may differ.
        """
        return (self.name, self.kind, self.trace._coarse(self._in), self.trace._coarse(self._out), self.error)

    def __repr__(self):
        step = "" if self.step is None else f" step {self.step}"
        return f"<{self.name}{step}: {view.show(self.inputs)} → {view.show(self.outputs)}>"


class Kept:
    """Tensors kept on request: `.inputs` by argument name, `.outputs` in the shape they came in."""

    def __init__(self, inputs, outputs):
        self.inputs, self.outputs = inputs, outputs


class Calls(list):
    """All boundaries of one name, in order. `.calls` is how many; the first one's fields can be read directly."""

    @property
    def calls(self) -> int:
        return len(self)

    @property
    def first(self) -> Boundary:
        if not self:
            raise IndexError("there is no such boundary in this trace")
        return self[0]

    @property
    def inputs(self):
        return self.first.inputs

    @property
    def outputs(self):
        return self.first.outputs

    @property
    def ms(self) -> float:
        """Milliseconds of all calls together, on the host."""
        return sum(boundary.ms or 0.0 for boundary in self)

    @property
    def bytes_out(self) -> int:
        return sum(boundary.bytes_out for boundary in self)


def from_records(trace, recorder) -> list:
    """The boundaries of all threads in the order in which they began, linked to their parents."""
    found = []
    for log in list(recorder.logs.values()):
        by_seq = {}
        rows = log.records()
        for at in range(0, len(rows), 8):
            seq, point, parent, inputs, outputs, start, end, status = rows[at : at + 8]
            point = recorder.points[point]
            boundary = Boundary(
                trace, point.name, point.kind, point.base, point.parameters, start, end, log.thread
            )
            boundary._in, boundary._out = inputs, outputs
            boundary.error = recorder.errors[status - 1] if status else None
            boundary._extra = recorder.extras.get((log.thread, seq))
            by_seq[seq] = (boundary, parent)
        for seq in sorted(by_seq):
            boundary, parent = by_seq[seq]
            while (
                parent >= 0 and parent not in by_seq
            ):  # the parent is still running: the trace is being read early
                parent = -1
            if parent >= 0:
                boundary.parent = by_seq[parent][0]
                boundary.level = boundary.parent.level + 1
                boundary.parent.children.append(boundary)
            found.append(boundary)
    found.sort(key=lambda boundary: boundary.start_ns)
    if trace.aliases:
        _name_shared(found, trace.aliases)
    return found


def _name_shared(boundaries: list, aliases: dict) -> None:
    """Gives calls of a shared module the name under which their caller holds it."""
    renamed: dict = {}
    for boundary in boundaries:
        parent = boundary.parent
        if parent is None:
            continue
        first = boundary.name
        inside = renamed.get(id(parent))
        if inside is not None and first.startswith(f"{inside}."):
            boundary.name = parent.name + first[len(inside) :]
        elif first in aliases:
            holder = f"{parent.name}." if parent.level or "." in parent.name else ""
            fitting = [name for name in (first, *aliases[first]) if name.startswith(holder)]
            boundary.name = fitting[0] if fitting else first
        if boundary.name != first:
            renamed[id(boundary)] = first


def key_view(recorder, signature: int):
    return None if signature < 0 else view.view(recorder.keys[signature])


def empty_call() -> view.Fields:
    return view.view_call(((), (), ()), ())


__all__ = ["Boundary", "Calls", "Kept", "empty_call", "from_records", "key_view", "spec"]
