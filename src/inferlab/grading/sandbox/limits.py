"""What one submission may use: time, memory, disk, processes, output, messages."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inferlab.lab.checks import wire


@dataclass(frozen=True)
class Limits:
    """Limits of one submission.

    Seconds are wall-clock time, except for `cpu_seconds`, which is processor time. A megabyte (MB) is 2**20
    bytes. A cell or call that had to wait for the processor gets its time up to four times.

    Attributes:
        cell_seconds: for one cell.
        call_seconds: for one call of a learner's function.
        check_seconds: for one test cell.
        total_seconds: for the kernel's whole life.
        cpu_seconds: for each process.
        memory_mb: what all processes may hold beyond what the warmed parent already holds.
        disk_mb: in each of the private folders, and in one file.
        processes: at the same time, threads included.
        open_files: in each process.
        cell_output_kb: what one cell may print and display.
        output_mb: what all cells may print and display.
        message_mb: one message between kernel and grader.
        traffic_mb: all messages from the kernel.
        calls: of the learner's functions by the tests.
        callbacks: of the tests' functions by the learner's.
    """

    cell_seconds: float = 60.0
    call_seconds: float = 10.0
    check_seconds: float = 120.0
    total_seconds: float = 600.0
    cpu_seconds: int = 600
    memory_mb: int = 2048
    disk_mb: int = 256
    processes: int = 48
    open_files: int = 256
    cell_output_kb: int = 1024
    output_mb: int = 8
    message_mb: int = 64
    traffic_mb: int = 512
    calls: int = 2_000
    callbacks: int = 20_000

    def as_dict(self) -> dict[str, float]:
        """The limits as JSON data."""
        return asdict(self)

    def wire(self) -> wire.WireLimits:
        """The codec's limits for one message."""
        from inferlab.lab.checks import wire  # imports torch, which those who only name a limit do without

        return wire.WireLimits(bytes=self.message_mb * 2**20)
