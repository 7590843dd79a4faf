"""A KV cache's rows in one block of full size: the fallback where virtual memory is refused, or not wanted."""

from __future__ import annotations

import threading
from typing import Any

from engine.memory.report import PageOperations
from engine.memory.storage import RowSize


class PlainStorage:
    """Implements Storage by one block for one conversation, there from the start."""

    name = "a plain tensor"
    ranges = 1
    page_bytes = pooled = 0
    operations: tuple[PageOperations, ...] = ()

    def __init__(self, size: RowSize, block: Any, reason: str) -> None:
        """block: the device's array of uint8, as long as all layers."""
        self.reason: str | None = reason
        self.size, self.reserved, self.mapped = size, size.total, size.total
        self.lock = threading.RLock()
        self._block = block

    def layers(self, index: int) -> list[Any]:
        """See Storage.layers."""
        step = self.size.rows * self.size.row_bytes
        return [self._block[layer * step : (layer + 1) * step] for layer in range(self.size.layers)]

    def offset(self, index: int) -> int:
        """See Storage.offset."""
        return 0

    def resize(self, index: int, rows: int) -> int:
        """See Storage.resize: all rows are always there."""
        return 0

    def room(self, index: int) -> int:
        """See Storage.room."""
        return self.size.rows

    def bytes_of(self, rows: int) -> int:
        """See Storage.bytes_of."""
        return self.size.total

    def fill(self) -> None:
        """See Storage.fill: there is no pool."""

    def drain(self, growths: int = 0) -> None:
        """See Storage.drain: there is no pool."""

    def attach(self) -> None:
        """See Storage.attach: no other thread comes here."""

    def wait(self) -> None:
        """See Storage.wait: what is queued on the block stays in order by itself."""

    def free_bytes(self) -> int:
        """See Storage.free_bytes: nothing ever asks for more."""
        return 0

    def close(self) -> None:
        """See Storage.close."""
        self._block = None
