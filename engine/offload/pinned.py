"""Host memory that a card can copy from at full speed, of exactly the size that was asked for.

The framework's own allocator rounds each block up to a power of two; here one mapping is registered as it is.
"""

from __future__ import annotations

import mmap
import weakref
from typing import Any

import numpy as np
import psutil
import torch

from engine.errors import SpecularError

MARGIN = 512 << 20  # bytes of RAM that stay free


def runtime() -> Any:
    """CUDA's functions that pin memory."""
    return torch.cuda.cudart()


def has_ram(size: int) -> bool:
    """Whether so many bytes leave other programs enough."""
    return bool(size + MARGIN <= psutil.virtual_memory().available)


def require_ram(size: int) -> None:
    """Raises SpecularError, with figures, where so many bytes would leave other programs too little."""
    if not has_ram(size):
        free = psutil.virtual_memory().available
        raise SpecularError(
            f"Streaming needs {size / 1e9:.1f} GB of RAM, but only {free / 1e9:.1f} GB are free: "
            "give the model a larger budget on the card, or close other programs."
        )


class PinnedBuffer:
    """`size` bytes of pinned memory, `data` (uint8). Raises SpecularError where RAM is too short for it.

    note: says so where the driver refused to pin it, so that copies are slower.
    """

    def __init__(self, size: int) -> None:
        require_ram(size)
        self._map = mmap.mmap(-1, max(size, mmap.PAGESIZE))
        self._bytes = torch.from_numpy(np.frombuffer(self._map, np.uint8))
        self.data = self._bytes[:size]
        self.note = ""
        self._pinned = self._register()

    def close(self) -> None:
        """Let the driver go of the memory, once nothing copies from it any more."""
        if self._pinned is not None:
            self._pinned()

    def _register(self) -> weakref.finalize[..., mmap.mmap] | None:
        """What unregisters the memory, at the latest when the last view of it has gone; None where it was refused."""
        if not torch.cuda.is_available():
            return None
        address = self._bytes.data_ptr()
        status = runtime().cudaHostRegister(address, len(self._bytes), 0)
        if int(status) == 0:
            release = weakref.finalize(self._map, runtime().cudaHostUnregister, address)
            release.atexit = False  # the driver goes down before that
            return release
        self.note = f"The driver would not pin RAM (error {int(status)}): layers come from pageable memory, slowly."
        return None
