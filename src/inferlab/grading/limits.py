"""What one submission may use: time, memory, disk, processes, output, messages."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ..lab import wire


@dataclass(frozen=True)
class Limits:
    """Limits of one submission; seconds are wall clock, `cpu_seconds` is processor time, sizes are MB (2**20 bytes).

    A cell or call that had to wait for the processor gets its time up to four times. `memory_mb` is what the learner's
    processes may hold beyond what the warmed parent already holds.
    """

    cell_seconds: float = 60.0
    call_seconds: float = 10.0
    check_seconds: float = 120.0
    total_seconds: float = 600.0
    cpu_seconds: int = 600
    memory_mb: int = 2048
    disk_mb: int = 64
    processes: int = 48
    open_files: int = 256
    cell_output_kb: int = 1024
    output_mb: int = 8
    message_mb: int = 64
    traffic_mb: int = 512
    calls: int = 2_000
    callbacks: int = 20_000

    def as_dict(self) -> dict:
        return asdict(self)

    def wire(self) -> wire.Limits:
        """The codec's limits for one message."""
        return wire.Limits(bytes=self.message_mb * 2**20)
