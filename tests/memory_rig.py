"""KV caches over real host pages, pages whose calls fail on demand, and what the kernel says of memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from engine.memory.host_pages import PAGE_BYTES, HostPages
from engine.memory.kv_cache import KvCache
from engine.memory.paged_storage import PagedStorage
from engine.memory.pages import PageError
from engine.memory.storage import RowSize

LAYERS, HEADS, DIM = 3, 2, 256
ROW = 2 * HEADS * DIM * 4  # bytes of a row: 4 KiB, sixteen to a page
ROWS_OF_PAGE = PAGE_BYTES // ROW
SIZE = RowSize(LAYERS, 160, ROW)  # ten pages a layer


class PooledPages(HostPages):
    """Host pages that are kept in a pool as a card's are; every handle is accounted for.

    refuse: called with the name of each operation before it is done; true makes it fail.
    """

    pools = True

    def __init__(self, refuse: Callable[[str], bool] = lambda _: False) -> None:
        super().__init__()
        self.refuse = refuse
        self.alive: set[int] = set()
        self.mapped: set[int] = set()
        self.free = 1 << 40

    def _ask(self, name: str) -> None:
        if self.refuse(name):
            raise PageError(f"{name} was refused")

    def reserve(self, size: int) -> int:
        self._ask("reserve")
        return super().reserve(size)

    def create(self) -> int:
        self._ask("create")
        handle = super().create()
        self.alive.add(handle)
        return handle

    def release(self, handle: int) -> None:
        assert handle not in self.mapped, "a page is released that something is mapped to"
        self.alive.remove(handle)

    def map(self, address: int, handles: Sequence[int]) -> None:
        self._ask("map")
        assert self.alive.issuperset(handles) and self.mapped.isdisjoint(handles)
        super().map(address, handles)
        self.mapped.update(handles)
        self._under = getattr(self, "_under", {}) | {address + i * PAGE_BYTES: h for i, h in enumerate(handles)}

    def unmap(self, address: int, count: int) -> None:
        super().unmap(address, count)
        for page in range(count):
            self.mapped.remove(self._under.pop(address + page * PAGE_BYTES))

    def free_bytes(self) -> int:
        return self.free


class FailsAt:
    """Refuses one call of a kind, the `number`th (from 0); counts them all."""

    def __init__(self, kind: str, number: int) -> None:
        self.kind, self.number, self.seen = kind, number, 0

    def __call__(self, name: str) -> bool:
        if name != self.kind:
            return False
        self.seen += 1
        return self.seen - 1 == self.number


def paged_cache(pages: HostPages, size: RowSize = SIZE) -> KvCache:
    """A cache whose layers are float32 arrays [rows, 2, HEADS, DIM]."""
    shape = (size.rows, 2, HEADS, DIM)
    return KvCache(PagedStorage(pages, size), lambda layer: layer.view(np.float32).reshape(shape), "the test")


def write_rows(cache: KvCache, first: int, last: int, value: float) -> None:
    """Fill rows of every layer of the range in use: layer + value."""
    cache.ensure(last)
    for number, layer in enumerate(cache.layers):
        layer[first:last] = number + value


def resident(address: int, size: int) -> int:
    """Bytes of memory under these addresses, as the kernel counts them (/proc/self/smaps)."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split(maxsplit=1)[0]
        if not head.endswith(":"):
            first, last = (int(part, 16) for part in head.split("-"))
            inside = first < address + size and last > address
        elif inside and head == "Rss:":
            total += int(line.split()[1]) * 1024
    return total
