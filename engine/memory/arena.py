"""A range of addresses that is reserved once, and the pages under it: a table, a small pool, and what it all cost."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from engine.memory.pages import PageError, Pages
from engine.memory.report import PageOperations

OPERATIONS = ("create", "map", "unmap", "release")


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive pages of the arena, by number."""

    first: int
    count: int


class Arena:
    """Maps and unmaps spans of pages; an unmapped page waits in the pool until it is drained. Any thread.

    Invariant: every page that was created is in exactly one of the table, the pool, or (released) neither.
    """

    def __init__(self, pages: Pages, count: int) -> None:
        """Reserve addresses for `count` pages. Raises PageError."""
        self._pages = pages
        self.page_bytes, self.name, self.pools = pages.page_bytes, pages.name, pages.pools
        self.reserved = count * pages.page_bytes
        self._address = pages.reserve(self.reserved)
        self._table: dict[int, int] = {}
        self._pool: list[int] = []
        self._counts = dict.fromkeys(OPERATIONS, 0)
        self._seconds = dict.fromkeys(OPERATIONS, 0.0)
        self.lock = threading.RLock()
        self._bytes: Any = None

    @property
    def mapped(self) -> int:
        """Pages with an address."""
        return len(self._table)

    @property
    def pooled(self) -> int:
        """Pages without an address."""
        return len(self._pool)

    @property
    def operations(self) -> tuple[PageOperations, ...]:
        """What was done so far."""
        return tuple(PageOperations(name, self._counts[name], self._seconds[name]) for name in OPERATIONS)

    def bytes(self) -> Any:
        """All bytes of the arena as the device's array of uint8; only mapped pages of it may be touched."""
        with self.lock:
            if self._bytes is None:
                first = Span(0, 1)
                self.map([first])  # torch looks at the first byte's page
                self._bytes = self._pages.view(self._address, self.reserved)
                self.unmap([first])
            return self._bytes

    def map(self, spans: Sequence[Span]) -> int:
        """Put pages under all of the spans, from the pool as far as it goes; returns how many had to be created, where
        that is work apart from mapping.

        Raises PageError with everything as it was, save that the pool may hold more.
        """
        with self.lock:
            created = self._fill(sum(span.count for span in spans))
            self._pages.wait()  # the device may still be busy with addresses beside these
            done: list[Span] = []
            try:
                for span in spans:
                    handles = self._pool[-span.count :]
                    with self._timed("map", span.count):
                        self._pages.map(self._address + span.first * self.page_bytes, handles)
                    del self._pool[-span.count :]
                    self._table.update(zip(range(span.first, span.first + span.count), handles, strict=True))
                    done.append(span)
            except PageError:
                self.unmap(done)
                self._settle()
                raise
            self._pages.wait()  # for the zeros: kernels of other streams may write the pages next
            return created if self.pools else 0

    def unmap(self, spans: Sequence[Span]) -> None:
        """Take the pages of all of the spans, which are mapped, into the pool."""
        with self.lock:
            if not spans:
                return
            self._pages.wait()
            for span in spans:
                with self._timed("unmap", span.count):
                    self._pages.unmap(self._address + span.first * self.page_bytes, span.count)
                self._pool += [self._table.pop(page) for page in range(span.first, span.first + span.count)]
            self._settle()

    def fill(self, count: int) -> None:
        """Create pages until the pool has `count`; it stays shorter where the device has none left."""
        while self.pools:
            with self.lock:  # let go between two pages, so that whoever needs one now does not wait for all
                if len(self._pool) >= count:
                    return
                try:
                    self._create()
                except PageError:
                    return

    def drain(self, kept: int = 0) -> None:
        """Give the pool back to the device, but for so many pages."""
        with self.lock:
            while len(self._pool) > kept:
                with self._timed("release", 1):
                    self._pages.release(self._pool.pop())

    def free_bytes(self) -> int:
        """Memory of the device that nobody holds."""
        return self._pages.free_bytes()

    def attach(self) -> None:
        """Make the calling thread able to use the arena."""
        self._pages.attach()

    def wait(self) -> None:
        """Wait for what the device was given to do."""
        self._pages.wait()

    def close(self) -> None:
        """Give everything back."""
        with self.lock:
            self.unmap([Span(page, 1) for page in self._table])
            self.drain()
            self._bytes = None
            self._pages.close()

    def _fill(self, count: int) -> int:
        created = 0
        while len(self._pool) < count:
            self._create()
            created += 1
        return created

    def _settle(self) -> None:
        """Pages that are no memory without an address are not kept."""
        if not self.pools:
            self.drain()

    def _create(self) -> None:
        with self._timed("create", 1):
            self._pool.append(self._pages.create())

    @contextmanager
    def _timed(self, name: str, count: int) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._counts[name] += count
        self._seconds[name] += time.perf_counter() - began
