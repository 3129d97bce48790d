"""Says before anything is allocated whether what is wanted fits into a device's free memory."""

from __future__ import annotations

from collections.abc import Mapping

import psutil
import torch

#: Bytes for the libraries' handles and workspaces, and for blocks that the allocator cannot fill exactly.
MARGIN = 800 * 2**20


def free_memory(device: str | torch.device) -> int:
    """Bytes that this process may still allocate on `device`.

    On CUDA, that is what the driver has free and what torch's allocator holds unused. It is no more than what
    is left of the limit set by `torch.cuda.set_per_process_memory_fraction`, which the driver knows nothing
    of. On a CPU, it is the memory that the operating system calls available.
    """
    device = torch.device(device)
    if device.type != "cuda":
        return psutil.virtual_memory().available
    index = torch.cuda.current_device() if device.index is None else device.index
    free, total = torch.cuda.mem_get_info(index)
    held, used = torch.cuda.memory_reserved(index), torch.cuda.memory_allocated(index)
    limit = int(total * torch.cuda.get_per_process_memory_fraction(index))
    return max(0, min(free + held - used, limit - used))


def require(
    needs: Mapping[str, int], device: str | torch.device, instead: str, what: str = "the weights"
) -> None:
    """Raises MemoryError when `device` has less free memory than `needs` add up to.

    Args:
        needs: part -> bytes.
        device: where the parts will be allocated.
        instead: a sentence on what to choose; it ends the message.
        what: what the parts are together, in the plural; it begins the message, which lists each part's
            bytes.
    """
    needed, free = sum(needs.values()), free_memory(device)
    if needed <= free:
        return
    parts = ", ".join(f"{name} {size / 1e9:.1f}" for name, size in needs.items())
    listed = f" ({parts})" if len(needs) > 1 else ""
    raise MemoryError(
        f"{what} need {needed / 1e9:.1f} GB{listed} and {device} has {free / 1e9:.1f} GB free. {instead}"
    )
