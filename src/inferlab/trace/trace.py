"""`with trace(pipe) as t:` records every boundary that data crosses while the block runs."""

import json
import time

from . import boundary as records
from . import changes, facts, fold, perfetto, spec, steps, table, view
from .diff import Diff, compare
from .instrument import Instrument
from .placing import matches
from .record import Recorder


class trace:
    """Records every boundary of the given pipelines, models or callables while the block runs.

    targets   pipelines, nn.Modules, functions, bound methods, or pairs (object, "method name")
    depth     "components" (default): a pipeline's components and hidden steps, or a bare model's own parts;
              "all": every module; or a glob such as "unet.down_blocks.*", a compiled regular expression, or a list
    also      further callables to record, in the same forms as targets
    live      True prints each boundary as it happens (identical steps once, with a count); or a function of a line
    keep      glob(s) of boundaries whose tensors are cloned and kept in `boundary.kept`; nothing is kept without it
    memory    on a CUDA device: True reads the allocator at coarse boundaries; "peaks" also resets its high-water
              mark at each, so that every boundary has its own peak (changes what torch.cuda.max_memory_allocated()
              says afterwards); False reads nothing. On a CPU nothing is read, each boundary has `bytes_out`;
              "tensors" counts the bytes of all live tensors on any device by watching every operation (slow)
    gpu_time  "coarse" (default) times components and hidden steps by CUDA events; False does not

    The output of what runs in the block is bit-identical to an untraced run and uses the same random numbers. All
    wraps are gone after the block, whether it raised or not. Times are host times; no device is waited for before
    the end of the block.
    """

    def __init__(
        self, *targets, depth="components", also=(), live=False, keep=None, memory=True, gpu_time="coarse"
    ):
        if not targets:
            raise TypeError("trace() needs something to trace: a pipeline, a module or a callable")
        if isinstance(depth, str) and not depth:
            raise ValueError('depth is "components", "all" or a name pattern such as "unet.down_blocks.*"')
        if memory not in (True, False, "peaks", "tensors"):
            raise ValueError(f'memory is True, False, "peaks" or "tensors", not {memory!r}')
        if gpu_time not in ("coarse", False):
            raise ValueError(f'gpu_time is "coarse" or False, not {gpu_time!r}')
        self._targets, self._also = targets, also if isinstance(also, (list, set)) else _listed(also)
        self._options = {"depth": depth, "keep": keep}
        self._live, self._memory, self._gpu_time = live, memory, gpu_time
        self._open = None

    def __enter__(self) -> "Trace":
        if self._open is not None:
            raise RuntimeError("this trace was already used: call trace(...) again for a second block")
        from .device import open_probe
        from .live import LivePrinter

        recorder = Recorder()
        instrument = Instrument(recorder, **self._options)
        self._open = result = Trace(recorder, instrument)
        try:
            for number, target in enumerate(self._targets):
                several = len(self._targets) > 1 and not isinstance(target, tuple)
                instrument.add_target(target, f"{number}." if several and number else "")
            for target in self._also:
                instrument.add_target(target)
            if self._live:
                recorder.on_close = LivePrinter(recorder, None if self._live is True else self._live)
            recorder.probe = open_probe(recorder, instrument, self._memory, self._gpu_time)
            result._started(self._targets)
        except BaseException:
            instrument.remove()
            raise
        return result

    def __exit__(self, kind, error, traceback) -> bool:
        self._open._finish()
        self._targets = self._also = ()
        return False


def _listed(also):
    """One callable or several: a pair (object, "name") is one."""
    if isinstance(also, tuple) and not (len(also) == 2 and isinstance(also[1], str)):
        return list(also)
    return [also]


class Trace:
    """What was recorded: a table (`print(t)`, or shown in a notebook), and an object that tests can ask.

    t["unet"].calls                       how often the UNet ran (names may be globs: t["unet.*"])
    t.find("scheduler.step")[0].outputs   what the first step returned, as shape, dtype and device
    t.table() t.tree() t.frame()          for reading; t.rows() gives plain data
    t.perfetto("run.json")                a timeline for ui.perfetto.dev or chrome://tracing
    t.diff(other)                         what differs in another run
    t.facts()                             names -> values, e.g. {"unet.calls": 20, ...}
    """

    def __init__(self, recorder: Recorder, instrument: Instrument):
        self._recorder, self._instrument = recorder, instrument
        self._built = None
        self._coarse_keys: dict = {}
        self.closed = False
        self.started = self.ended = 0
        self.wall_start = time.time()
        self.notes: list = recorder.notes
        self.aliases = instrument.aliases
        self.residency_at_start: dict = {}

    def _started(self, targets) -> None:
        from torch.nn import Module

        from .moves import residency

        for name, part in self._instrument.components.items():
            if isinstance(part, Module):
                self.residency_at_start[name] = residency(part)[0]
        self.title = ", ".join(_title(target) for target in targets)
        self.started = time.perf_counter_ns()

    def _finish(self) -> None:
        self.ended = time.perf_counter_ns()
        self._instrument.remove()
        if self._recorder.probe is not None:
            self._recorder.probe.close()
            self._recorder.probe = None
        if self._recorder.on_close is not None:
            self._recorder.on_close.close()
            self._recorder.on_close = None
        self._recorder.table = {}
        self.closed = True

    # -- what was recorded -------------------------------------------------------------------------------------

    @property
    def boundaries(self) -> list:
        """Every boundary in the order in which it began, inferred ones in their place."""
        if self._built is not None:
            return self._built
        found = records.from_records(self, self._recorder)
        steps.number_steps(found)
        found = steps.infer_guidance(found, self._inferred)
        for index, boundary in enumerate(found):
            boundary.index = index
        for boundary in found:
            if boundary.inferred and boundary.parent is not None:
                siblings = boundary.parent.children
                siblings.append(boundary)
                siblings.sort(key=lambda b: b.index)
        changes.mark_changes(found)
        if self.closed:
            self._built = found
        return found

    def _inferred(self, denoiser, step, note):
        made = records.Boundary(
            self, "guidance", "inferred", "guidance", (), denoiser.end_ns, denoiser.end_ns, step.thread
        )
        made._views = (view.Fields(noise_pred=denoiser.outputs), step.inputs[next(iter(step.inputs))])
        made.inferred, made.step, made.note = True, step.step, note
        made.parent, made.level = step.parent, step.level
        return made

    def _inputs(self, signature, parameters):
        if signature < 0:
            return records.empty_call()
        return view.view_call(self._recorder.keys[signature], parameters)

    def _output(self, signature):
        return records.key_view(self._recorder, signature)

    def _coarse(self, signature):
        if signature < 0:
            return signature
        if signature not in self._coarse_keys:
            self._coarse_keys[signature] = spec.coarse(self._recorder.keys[signature])
        return self._coarse_keys[signature]

    def find(self, name: str = "*", *, kind: str | None = None, step: int | None = None) -> records.Calls:
        """The boundaries of a name, in order: exact ("scheduler.step"), a glob ("unet.*") or a regular expression.

        Copies that a pipeline made of a component ("scheduler#2") count under the component's name.
        """
        found = records.Calls()
        for boundary in self.boundaries:
            if kind is not None and boundary.kind != kind:
                continue
            if step is not None and boundary.step != step:
                continue
            if (
                boundary.name == name
                or matches(boundary.name, name)
                or matches(_without_copy(boundary.name), name)
            ):
                found.append(boundary)
        return found

    def __getitem__(self, name: str) -> records.Calls:
        """As `find`, but a name that never occurred is a KeyError that lists near names."""
        found = self.find(name)
        if not found:
            import difflib

            names = sorted({boundary.name for boundary in self.boundaries})
            near = difflib.get_close_matches(str(name), names, n=5, cutoff=0.4) or names[:12]
            raise KeyError(f"no boundary named {name!r} in this trace; there are: {', '.join(near)}")
        return found

    def __contains__(self, name: str) -> bool:
        return bool(self.find(name))

    def __iter__(self):
        return iter(self.boundaries)

    def __len__(self) -> int:
        return len(self.boundaries)

    @property
    def names(self) -> list:
        """The names of all boundaries, each once, in order of first appearance."""
        return list(dict.fromkeys(boundary.name for boundary in self.boundaries))

    @property
    def devices(self) -> list:
        """The torch devices of all tensors that crossed a boundary, in order of first appearance."""
        found: dict = {}
        for key in self._recorder.keys:
            found.update(dict.fromkeys(spec.devices_in(key)))
        return list(found)

    @property
    def steps(self) -> int:
        """The number of steps of the longest loop, 0 when there is none."""
        return max((boundary.step or 0 for boundary in self.boundaries), default=0)

    @property
    def ms(self) -> float:
        """Milliseconds from the beginning to the end of the block."""
        return ((self.ended or time.perf_counter_ns()) - self.started) / 1e6

    @property
    def peak_bytes(self) -> int | None:
        """The highest allocated bytes seen at any boundary, None where no memory was read."""
        peaks = [b.memory["peak"] for b in self.boundaries if b.memory and b.memory.get("peak") is not None]
        return max(peaks, default=None)

    def residency(self) -> list:
        """Where every component's weights were when each boundary began: a list of {"boundary", "name", "where"}.

        Components start where they were when the block began and change with the recorded moves. Moves of single
        layers (sequential and group offload) are boundaries of kind "move", but leave their component's place alone.
        """
        where = dict(self.residency_at_start)
        found = []
        events = []
        for boundary in self.boundaries:
            if boundary.level <= 1 or (boundary.kind == "move" and boundary.moved_name in where):
                events.append((boundary.start_ns, 1, boundary))
            if boundary.moved:
                events.append((boundary.end_ns, 0, boundary))
        for _, begins, boundary in sorted(events, key=lambda event: event[:2]):
            if not begins:
                if boundary.moved["module"] not in where:
                    continue
                where[boundary.moved["module"]] = boundary.moved["to"]
            else:
                found.append({"boundary": boundary.index, "name": boundary.name, "where": dict(where)})
        return found

    # -- for reading -------------------------------------------------------------------------------------------

    def rows(self) -> list:
        """All boundaries as plain dicts (see `Boundary.row`)."""
        return [boundary.row() for boundary in self.boundaries]

    def frame(self):
        """All boundaries as a pandas DataFrame, one row each."""
        import pandas

        return pandas.DataFrame(self.rows())

    def table(self, unfold: bool = False, level: int | None = None, width: int | None = None):
        """The table of boundaries: text when printed, HTML in a notebook.

        unfold   True shows every step of a loop instead of one line with a count
        level    how deep to show nested boundaries (None: all)
        width    columns of the text version (None: the terminal's)
        """
        return table.Table(self, unfold=unfold, level=level, width=width)

    def tree(self, unfold: bool = False) -> str:
        """Names, nested as they were called, with counts."""
        return table.tree_text(self, unfold)

    def perfetto(self, path=None):
        """The timeline in Chrome's trace format, as a dict; written to `path` when given (returns the path then)."""
        data = perfetto.timeline(self)
        if path is None:
            return data
        with open(path, "w", encoding="utf-8") as file:
            json.dump(data, file)
        return path

    def diff(self, other: "Trace", slower: float = 1.5) -> Diff:
        """What differs between this trace and another; times count when they grew by more than the factor `slower`."""
        return compare(self, other, slower)

    def facts(self) -> dict:
        """Names -> values of what was seen: calls, shapes, dtypes, devices, bytes, argument values."""
        return facts.facts(self)

    def groups(self):
        """The folded view of the outermost boundaries (see fold.py)."""
        folder = fold.Folder()
        return folder.groups([boundary for boundary in self.boundaries if boundary.parent is None]), folder

    def __str__(self):
        return str(self.table())

    def __repr__(self):
        state = "" if self.closed else " (running)"
        return f"<Trace of {getattr(self, 'title', '?')}: {len(self)} boundaries, {self.ms:.0f} ms{state}>"

    def _repr_html_(self):
        return self.table()._repr_html_()


def _title(target) -> str:
    if isinstance(target, tuple):
        return f"{getattr(target[0], '__name__', type(target[0]).__name__)}.{target[1]}"
    return getattr(target, "__qualname__", type(target).__name__)


def _without_copy(name: str) -> str:
    head, mark, tail = name.partition("#")
    return head + tail.lstrip("0123456789") if mark else name
