"""A KV cache's rows in pages of an arena: one range of addresses a conversation, memory only under rows that exist."""

from __future__ import annotations

from typing import Any

from engine.memory.arena import Arena, Span
from engine.memory.pages import PageError, Pages
from engine.memory.report import PageOperations
from engine.memory.storage import RowSize

RANGES = 16  # conversations with addresses of their own; addresses cost nothing


class PagedStorage:
    """Implements Storage over an arena: a range is its layers one after the other, each beginning at a page."""

    def __init__(self, pages: Pages, size: RowSize) -> None:
        """Reserve addresses for as many conversations as the system allows. Raises PageError."""
        self.size = size
        self.reason: str | None = None
        self._layer_pages = -(-size.rows * size.row_bytes // pages.page_bytes)
        self.ranges, self._arena = self._reserve(pages, RANGES)
        try:
            self._arena.bytes()  # a page can be mapped and seen
            self._arena.drain()
        except PageError:
            self._arena.close()
            raise
        arena = self._arena
        self.name, self.page_bytes, self.reserved, self.lock = arena.name, arena.page_bytes, arena.reserved, arena.lock
        self._pages = [0] * self.ranges  # mapped pages of each of the layers of a range

    def layers(self, index: int) -> list[Any]:
        """See Storage.layers."""
        whole, step, length = self._arena.bytes(), self._layer_step, self.size.rows * self.size.row_bytes
        starts = [self.offset(index) + layer * step for layer in range(self.size.layers)]
        return [whole[start : start + length] for start in starts]

    def offset(self, index: int) -> int:
        """See Storage.offset."""
        return index * self.size.layers * self._layer_step

    def resize(self, index: int, rows: int) -> int:
        """See Storage.resize."""
        wanted, present, created = self._pages_of(rows), self._pages[index], 0
        if wanted > present:
            created = self._arena.map(self._spans(index, present, wanted))
        elif wanted < present:
            self._arena.unmap(self._spans(index, wanted, present))
        self._pages[index] = wanted
        return created

    def room(self, index: int) -> int:
        """See Storage.room."""
        return min(self.size.rows, self._pages[index] * self.page_bytes // self.size.row_bytes)

    def bytes_of(self, rows: int) -> int:
        """See Storage.bytes_of."""
        return self._pages_of(rows) * self.size.layers * self.page_bytes

    @property
    def mapped(self) -> int:
        """See Storage."""
        return self._arena.mapped * self.page_bytes

    @property
    def pooled(self) -> int:
        """See Storage."""
        return self._arena.pooled * self.page_bytes

    @property
    def operations(self) -> tuple[PageOperations, ...]:
        """See Storage."""
        return self._arena.operations

    def fill(self) -> None:
        """See Storage.fill: one page a layer, since all layers grow at the same row."""
        self._arena.fill(self.size.layers)

    def drain(self, growths: int = 0) -> None:
        """See Storage.drain."""
        self._arena.drain(growths * self.size.layers)

    def attach(self) -> None:
        """See Storage.attach."""
        self._arena.attach()

    def wait(self) -> None:
        """See Storage.wait."""
        self._arena.wait()

    def free_bytes(self) -> int:
        """See Storage.free_bytes."""
        return self._arena.free_bytes()

    def close(self) -> None:
        """See Storage.close."""
        self._arena.close()

    @property
    def _layer_step(self) -> int:
        return self._layer_pages * self.page_bytes

    def _pages_of(self, rows: int) -> int:
        return -(-rows * self.size.row_bytes // self.page_bytes)

    def _spans(self, index: int, first: int, last: int) -> list[Span]:
        starts = [(index * self.size.layers + layer) * self._layer_pages for layer in range(self.size.layers)]
        return [Span(start + first, last - first) for start in starts]

    def _reserve(self, pages: Pages, ranges: int) -> tuple[int, Arena]:
        while True:
            try:
                return ranges, Arena(pages, ranges * self.size.layers * self._layer_pages)
            except PageError:
                if ranges == 1:
                    raise
                ranges //= 2
