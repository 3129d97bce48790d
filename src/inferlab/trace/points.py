"""The kinds of recording points that need to know more than a name: pipelines, caches, assignments."""

from torch.nn import Module

from . import discover
from .record import FullPoint


def worker_kind(part) -> str:
    """What a worker is, by what it can do: scheduler, block, tokenizer, or processor for anything else."""
    if discover.is_scheduler(part):
        return "scheduler"
    if discover.is_block(part):
        return "block"
    if hasattr(part, "convert_tokens_to_ids"):
        return "tokenizer"
    return "processor"


class PipelinePoint(FullPoint):
    """A pipeline's call: looks first for parts that were swapped in or given new hooks since the last one."""

    __slots__ = ("instrument",)

    def __init__(self, *args, instrument, **kwargs):
        super().__init__(*args, **kwargs)
        self.instrument = instrument

    def before(self, args, kwargs):
        self.instrument.refresh()


class CachePoint(FullPoint):
    """A method of a KV cache: recorded when tensors go in, or when it changes the cache and returns nothing."""

    __slots__ = ()

    def drops(self, log, seq, inputs, outputs, output) -> bool:
        if log.count != seq + 1:
            return False
        return output is not None and not self.recorder.carries_data(inputs)


class AssignmentPoint:
    """`__setattr__` of a traced pipeline: nothing is recorded, but new parts are found."""

    def __init__(self, instrument):
        self.instrument = instrument

    def run(self, points, index, original, args, kwargs):
        if index + 1 < len(points):
            points[index + 1].run(points, index + 1, original, args, kwargs)
        else:
            original(*args, **kwargs)
        value = args[2] if len(args) > 2 else None
        if isinstance(value, Module) or discover.is_worker(value) or discover.is_pipeline(value):
            self.instrument.refresh()
