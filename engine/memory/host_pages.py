"""Pages of ordinary memory on Linux: addresses from `mmap` without reserve, pages that the kernel puts there and takes.

The kernel has no page apart from an address, so `create` only counts; memory comes with `map` and goes with `unmap`
(`madvise`: MADV_POPULATE_WRITE, MADV_DONTNEED). Unmapped addresses read as zeros and would take memory if written.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import psutil

from engine.memory.pages import PageError

PAGE_BYTES = 1 << 16  # sixteen of the system's pages: few calls, little waste
MARGIN = 64 << 20  # bytes that stay free: Linux grants memory it does not have and ends the process later
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
POPULATE_WRITE = 23  # MADV_POPULATE_WRITE of Linux 5.14, which Python does not name
NOT_POPULATED = frozenset({22})  # EINVAL: an older kernel


class HostPages:
    """Implements engine.memory.pages.Pages. Raises PageError where the system has no such calls."""

    name = "host virtual memory"
    page_bytes = PAGE_BYTES
    pools = False

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise PageError("this system gives no memory back under reserved addresses")
        self._map: mmap.mmap | None = None
        self._bytes = np.zeros(0, np.uint8)
        self._created = 0

    def attach(self) -> None:
        """See Pages.attach: there is nothing to do."""

    def reserve(self, size: int) -> int:
        """See Pages.reserve."""
        try:
            self._map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
            self._map.madvise(mmap.MADV_NOHUGEPAGE)  # a huge page would be more than was asked for
        except (OSError, ValueError, OverflowError) as error:
            raise PageError(f"reserving {size / 1e9:.1f} GB of addresses failed: {error}") from error
        self._bytes = np.frombuffer(self._map, np.uint8)
        return int(self._bytes.ctypes.data)

    def create(self) -> int:
        """See Pages.create."""
        self._created += 1
        return self._created

    def release(self, handle: int) -> None:
        """See Pages.release."""

    def map(self, address: int, handles: Sequence[int]) -> None:
        """See Pages.map."""
        start, size = address - self._bytes.ctypes.data, len(handles) * PAGE_BYTES
        free = self.free_bytes()
        if free < size + MARGIN:
            raise PageError(f"{size >> 10:,} KiB are wanted and {free >> 20:,} MiB free, of which {MARGIN >> 20} stay")
        assert self._map is not None
        try:
            self._map.madvise(POPULATE_WRITE, start, size)
        except OSError as error:
            if error.errno not in NOT_POPULATED:
                self._map.madvise(mmap.MADV_DONTNEED, start, size)
                raise PageError(f"taking {size >> 10:,} KiB failed: {error}") from error
            self._bytes[start : start + size : mmap.PAGESIZE] = 0

    def unmap(self, address: int, count: int) -> None:
        """See Pages.unmap."""
        assert self._map is not None
        self._map.madvise(mmap.MADV_DONTNEED, address - self._bytes.ctypes.data, count * PAGE_BYTES)

    def wait(self) -> None:
        """See Pages.wait: passes on the CPU have ended when they return."""

    def free_bytes(self) -> int:
        """See Pages.free_bytes."""
        return int(psutil.virtual_memory().available)

    def view(self, address: int, size: int) -> Any:
        """See Pages.view: a numpy array, which keeps the addresses reserved for as long as it lives."""
        start = address - self._bytes.ctypes.data
        return self._bytes[start : start + size]

    def close(self) -> None:
        """See Pages.close: the addresses go when the last view has gone."""
        if self._map is not None and len(self._bytes):
            self._map.madvise(mmap.MADV_DONTNEED)
        self._map, self._bytes = None, np.zeros(0, np.uint8)
