"""`with trace(pipe) as t:` records every boundary that data crosses while the block runs."""

import difflib
import json
import time
from collections.abc import Iterator
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from .reading import build, facts, residency
from .reading.boundary import Boundary, Calls, Signatures
from .reading.compare_traces import compare
from .recording import signature
from .recording.cuda_probe import open_probe
from .recording.device_moves import device_and_dtype
from .recording.instrument import Instrument
from .recording.placement import fits
from .recording.recorder import Recorder
from .showing import lines, perfetto
from .showing.changes_table import Diff
from .showing.live import LivePrinter
from .showing.table import Table
from .showing.text import text_tree

if TYPE_CHECKING:
    import pandas


class trace:
    """Records every boundary of the given pipelines, models or callables while the block runs.

    targets   pipelines, nn.Modules, functions, bound methods, or pairs (object, "method name")
    depth     "components" (default): a pipeline's components and hidden steps, or a bare model's own parts;
              "all": every module; or a glob such as "unet.down_blocks.*", a compiled regular expression, or a
              list
    also      further callables to record, in the same forms as targets
    live      True prints each coarse boundary as it happens (identical steps once, with a count); or a
              function of a line
    keep      glob(s) of boundaries whose tensors are cloned and kept in `boundary.kept`; nothing is kept
              without it
    memory    on a CUDA device: True reads the allocator at coarse boundaries; "peaks" also resets its
              high-water mark at each, so that every boundary has its own peak (changes what
              torch.cuda.max_memory_allocated() says afterwards); False reads nothing. On any device:
              "tensors" counts the bytes of all live tensors by watching every operation (slow). On a CPU the
              other values read nothing. Every boundary has `bytes_out`
    gpu_time  "coarse" (default) times coarse boundaries by CUDA events; False does not

    All boundaries are coarse but the inner modules that depth="all" adds, where `keep` does not name them.

    The output of what runs in the block is bit-identical to an untraced run and uses the same random numbers.
    All wraps are gone after the block, whether it raised or not. Times are host times; no device is waited
    for before the end of the block. Calls that cannot be recorded are said in `notes`.

    Raises TypeError for a target that cannot be traced, ValueError for an option that does not exist.
    """

    def __init__(
        self,
        *targets: Any,
        depth: Any = "components",
        also: Any = (),
        live: Any = False,
        keep: Any = None,
        memory: bool | str = True,
        gpu_time: bool | str = "coarse",
    ) -> None:
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
        self._open: Trace | None = None

    def __enter__(self) -> "Trace":
        if self._open is not None:
            raise RuntimeError("this trace was already used: call trace(...) again for a second block")
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
            recorder.probe = open_probe(instrument.components, self._memory, bool(self._gpu_time))
            result._started(self._targets)
        except BaseException:
            instrument.remove()
            raise
        return result

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._open is not None, "Python enters a block before it leaves it"
        self._open._finish()
        self._targets, self._also = (), []


def _listed(also: Any) -> list:
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

    def __init__(self, recorder: Recorder, instrument: Instrument) -> None:
        self._recorder, self._instrument = recorder, instrument
        self._signatures = Signatures(recorder.keys)
        self._built: list[Boundary] | None = None
        self.closed = False
        self.title = ""
        self.started = self.ended = 0  # ns on the host's clock
        self.notes: list[str] = recorder.notes
        self.aliases = instrument.aliases
        self.residency_at_start: dict[str, str | None] = {}

    def _started(self, targets: tuple) -> None:
        for name, part in self._instrument.components.items():
            if isinstance(part, torch.nn.Module):
                self.residency_at_start[name] = device_and_dtype(part)[0]
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
        self._recorder.numbers = {}
        self.closed = True

    # -- what was recorded -----------------------------------------------------------------------------------

    @property
    def boundaries(self) -> list[Boundary]:
        """Every boundary in the order in which it began, inferred ones in their place."""
        if self._built is not None:
            return self._built
        found = build.boundaries(self._recorder, self._signatures, self.aliases)
        if self.closed:
            self._built = found
        return found

    def find(self, name: Any = "*", *, kind: str | None = None, step: int | None = None) -> Calls:
        """The boundaries of a name, in order.

        name   exact ("scheduler.step"), a glob ("unet.*") or a compiled regular expression
        kind, step   only those of this kind, of this step

        Copies that a pipeline made of a component have the component's name; `boundary.note` says which copy
        it is.
        """
        found = Calls()
        for boundary in self.boundaries:
            if kind is not None and boundary.kind != kind:
                continue
            if step is not None and boundary.step != step:
                continue
            if boundary.name == name or fits(boundary.name, name):
                found.append(boundary)
        return found

    def __getitem__(self, name: Any) -> Calls:
        """As `find`, but a name that never occurred is a KeyError that lists near names."""
        found = self.find(name)
        if not found:
            names = sorted({boundary.name for boundary in self.boundaries})
            near = difflib.get_close_matches(str(name), names, n=5, cutoff=0.4) or names[:12]
            raise KeyError(f"no boundary named {name!r} in this trace; there are: {', '.join(near)}")
        return found

    def __contains__(self, name: Any) -> bool:
        return bool(self.find(name))

    def __iter__(self) -> Iterator[Boundary]:
        return iter(self.boundaries)

    def __len__(self) -> int:
        return len(self.boundaries)

    @property
    def names(self) -> list[str]:
        """The names of all boundaries, each once, in order of first appearance."""
        return list(dict.fromkeys(boundary.name for boundary in self.boundaries))

    @property
    def devices(self) -> list[torch.device]:
        """The torch devices of all tensors that crossed a boundary, in order of first appearance."""
        found: dict[torch.device, None] = {}
        for key in self._recorder.keys:
            found.update(dict.fromkeys(signature.devices_in(key)))
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

    def residency(self) -> list[dict]:
        """Where the weights were when each boundary began: a list of {"boundary", "name", "where"}.

        Components start where they were when the block began and change with the recorded moves. Moves of
        single layers (sequential and group offload) are boundaries of kind "move", but leave their
        component's place alone.
        """
        return residency.residency(self.boundaries, self.residency_at_start)

    # -- for reading -----------------------------------------------------------------------------------------

    def rows(self) -> list[dict]:
        """All boundaries as plain dicts (see `Boundary.row`)."""
        return [boundary.row() for boundary in self.boundaries]

    def frame(self) -> "pandas.DataFrame":
        """All boundaries as a pandas DataFrame, one row each."""
        import pandas

        return pandas.DataFrame(self.rows())

    def table(self, unfold: bool = False, level: int | None = None, width: int | None = None) -> Table:
        """The table of boundaries: text when printed, HTML in a notebook.

        unfold   True shows every step of a loop instead of one line with a count
        level    how deep to show nested boundaries (None: all)
        width    columns of the text version (None: the terminal's)
        """
        return Table(self.boundaries, self._heading(), self.notes, self._only_device(), unfold, level, width)

    def tree(self, unfold: bool = False) -> str:
        """Names, nested as they were called, with counts."""
        return text_tree(self._heading(), self.boundaries, unfold)

    def perfetto(self, path: str | PathLike | None = None) -> Any:
        """The timeline in Chrome's trace format: a dict, or the `path` where it was written."""
        other = {"steps": self.steps, "notes": list(self.notes)}
        data = perfetto.timeline(self.boundaries, self.title, self.started, other)
        if path is None:
            return data
        with open(path, "w", encoding="utf-8") as file:
            json.dump(data, file)
        return path

    def diff(self, other: "Trace", slower: float = 1.5) -> Diff:
        """What differs in another trace; times count when they grew by more than the factor `slower`."""
        return Diff(compare(self.boundaries, other.boundaries, slower))

    def facts(self) -> dict:
        """Names -> values of what was seen: calls, shapes, dtypes, devices, bytes, argument values.

        "steps", "boundaries" and "ms" are those of the whole run; for the others see `reading.facts`.
        """
        run = {"steps": self.steps, "boundaries": len(self)}
        return run | facts.facts(self.boundaries) | {"ms": self.ms}

    def _only_device(self) -> str:
        """The device of all tensors, "" where there are several or none."""
        devices = {str(device) for device in self.devices}
        return devices.pop() if len(devices) == 1 else ""

    def _heading(self) -> str:
        return lines.heading(self.title, len(self), self.steps, self.ms, self._only_device())

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        state = "" if self.closed else " (running)"
        return f"<Trace of {getattr(self, 'title', '?')}: {len(self)} boundaries, {self.ms:.0f} ms{state}>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def _title(target: Any) -> str:
    if isinstance(target, tuple):
        return f"{getattr(target[0], '__name__', type(target[0]).__name__)}.{target[1]}"
    return getattr(target, "__qualname__", type(target).__name__)
