"""One recorded boundary, and lists of them: what tests and labs ask."""

from typing import Any

from inferlab.trace.recording import signature

from . import specs


class Signatures:
    """The trace's table of signatures, and what was made readable of it so far.

    `keys` is the recorder's list, which grows while the trace is open; -1 stands for "nothing".
    """

    def __init__(self, keys: list) -> None:
        self._keys = keys
        self._coarse: dict[int, signature.Key] = {}

    def call(self, number: int, parameters: tuple) -> specs.Fields:
        """The arguments of a call by name."""
        return specs.view_call(((), (), ()) if number < 0 else self._keys[number], parameters)

    def value(self, number: int) -> specs.Described:
        """A described value."""
        return None if number < 0 else specs.view(self._keys[number])

    def coarse(self, number: int) -> signature.Key:
        """What two signatures have in common that differ in numbers and strings only."""
        if number < 0:
            return number
        if number not in self._coarse:
            self._coarse[number] = signature.coarse(self._keys[number])
        return self._coarse[number]


class Boundary:
    """One crossing of data into and out of a module or a hidden step.

    name      as in the pipeline: "unet", "scheduler.step", "encode_prompt", "unet.down_blocks.0"
    kind      pipeline, module, scheduler, tokenizer, processor, block, method, move, cache, function,
              inferred
    role      what it does in the run: "denoiser", "guidance", "decode" or "model" (of a generation); "" for
              the rest
    step      1-based step of the loop, or None outside it
    inputs    Fields: argument name -> described value (TensorSpec, CacheSpec, numbers, strings, ...), before
              the call
    outputs   the described result; `.shape`, `.dtype`, `.device` work directly when it holds one tensor
    ms        wall time on the host in milliseconds (None when inferred); `gpu_ms` from CUDA events (None
              without)
    memory    dict of allocator bytes (before, after, peak, ...) or None
    changes   what differs from the boundary before or across this one: ["device cpu → cuda:0", "dtype ..."]
    note      a remark: why it was inferred, which copy of a component it is, what packed latents are
    error     "ValueError: ..." when the call raised, else None
    """

    __slots__ = (
        "axes_in",
        "axes_out",
        "base",
        "changes",
        "children",
        "end_ns",
        "error",
        "extra",
        "index",
        "inferred",
        "input_signature",
        "kind",
        "level",
        "name",
        "note",
        "output_signature",
        "parameters",
        "parent",
        "role",
        "signatures",
        "start_ns",
        "step",
        "thread",
        "views",
    )

    def __init__(
        self,
        name: str,
        kind: str,
        base: str,
        start_ns: int,
        end_ns: int,
        thread: int,
        signatures: Signatures,
        parameters: Any = (),
    ) -> None:
        self.name, self.kind, self.base = name, kind, base
        self.start_ns, self.end_ns, self.thread = start_ns, end_ns, thread
        self.signatures, self.parameters = signatures, parameters
        self.input_signature = self.output_signature = -1
        self.views: tuple[specs.Fields, specs.Described] | None = None
        self.extra: dict = {}  # what the recorder noted beside the record: "probe", "move", "kept", "sets"
        self.index, self.level = -1, 0
        self.step: int | None = None
        self.parent: Boundary | None = None
        self.children: list[Boundary] = []
        self.role = self.note = ""
        self.inferred = False
        self.error: str | None = None
        self.changes: list[str] = []
        self.axes_in: dict[int, int] = {}  # axis of the main input -> its size at the boundary before
        self.axes_out: dict[int, int] = {}  # axis of the main output -> its size in the main input

    @property
    def inputs(self) -> specs.Fields:
        """Argument name -> described value, as it was before the call."""
        return self._view()[0]

    @property
    def outputs(self) -> specs.Described:
        """What came back, described."""
        return self._view()[1]

    def _view(self) -> tuple:
        if self.views is None:
            self.views = (
                self.signatures.call(self.input_signature, self.parameters),
                self.signatures.value(self.output_signature),
            )
        return self.views

    @property
    def ms(self) -> float | None:
        """Milliseconds of the host; None when inferred."""
        return None if self.inferred else (self.end_ns - self.start_ns) / 1e6

    @property
    def probe(self) -> dict:
        """What was read of the device ("gpu_ms", "bound", "memory", ...); empty without a GPU."""
        return self.extra.get("probe") or {}

    @property
    def gpu_ms(self) -> float | None:
        """Milliseconds on the device, by CUDA events."""
        return self.probe.get("gpu_ms")

    @property
    def bound(self) -> str | None:
        """Which side was late when the call ended; None without CUDA events.

        "device": the device was still busy with this boundary after the host had gone on. "host": the device
        had caught up, and waits for the host to launch more.
        """
        return self.probe.get("bound")

    @property
    def memory(self) -> dict | None:
        """The allocator's bytes (before, after, change, peak), and whether the peak is exact."""
        return self.probe.get("memory")

    @property
    def moved(self) -> dict | None:
        """What moved, a dict of module, from, to, dtype_from, dtype_to and bytes; None if nothing did."""
        move = self.extra.get("move")
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
        move = self.extra.get("move")
        return move[0] if move else self.base

    @property
    def kept(self) -> "Kept":
        """The cloned tensors that `trace(..., keep=pattern)` kept, in `.inputs` by name and in `.outputs`."""
        kept = self.extra.get("kept")
        if not kept:
            raise AttributeError(f"{self.name} kept no tensors: trace it with keep={self.name!r}")
        args, kwargs, output = kept
        names = list(specs.view_call(((None,) * len(args), (), ()), self.parameters))
        fields = specs.Fields(zip(names, args, strict=True))
        fields.update(kwargs)
        return Kept(fields, output)

    @property
    def bytes_out(self) -> int:
        """Bytes of the tensors and arrays that came out."""
        return specs.nbytes(self.outputs)

    @property
    def bytes_in(self) -> int:
        """Bytes of the tensors and arrays that went in."""
        return specs.nbytes(self.inputs)

    def row(self) -> dict:
        """This boundary as plain data (numbers, strings, lists, tuples, dicts, None)."""
        return {
            "index": self.index,
            "name": self.name,
            "kind": self.kind,
            "step": self.step,
            "level": self.level,
            "parent": None if self.parent is None else self.parent.index,
            "inputs": specs.plain(self.inputs),
            "outputs": specs.plain(self.outputs),
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

    def fold_key(self) -> tuple:
        """What is equal for two boundaries that fold into one line: name, and every shape, dtype and device.

        Numbers and strings among the arguments (a timestep, a layer's index) may differ.
        """
        table = self.signatures
        return (
            self.name,
            self.kind,
            table.coarse(self.input_signature),
            table.coarse(self.output_signature),
            self.error,
        )

    def __repr__(self) -> str:
        step = "" if self.step is None else f" step {self.step}"
        return f"<{self.name}{step}: {specs.show(self.inputs)} → {specs.show(self.outputs)}>"


class Kept:
    """Tensors kept on request: `.inputs` by argument name, `.outputs` in the shape they came in."""

    def __init__(self, inputs: specs.Fields, outputs: Any) -> None:
        self.inputs, self.outputs = inputs, outputs


class Calls(list[Boundary]):
    """All boundaries of one name, in order; the first one's fields can be read directly."""

    @property
    def calls(self) -> int:
        """How many there are."""
        return len(self)

    @property
    def first(self) -> Boundary:
        """The first one; IndexError without any."""
        if not self:
            raise IndexError("there is no such boundary in this trace")
        return self[0]

    @property
    def inputs(self) -> specs.Fields:
        """The first one's inputs."""
        return self.first.inputs

    @property
    def outputs(self) -> specs.Described:
        """The first one's outputs."""
        return self.first.outputs

    @property
    def ms(self) -> float:
        """Milliseconds of all calls together, on the host."""
        return sum(boundary.ms or 0.0 for boundary in self)

    @property
    def bytes_out(self) -> int:
        """Bytes that came out of all calls together."""
        return sum(boundary.bytes_out for boundary in self)
