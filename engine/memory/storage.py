"""Where the rows of a KV cache lie: what a cache needs of its memory, be it pages of an arena or one plain block."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Protocol

from engine.memory.report import PageOperations


@dataclass(frozen=True, slots=True)
class RowSize:
    """What a cache has to hold: `rows` of `row_bytes` (keys and values of a token) in each of `layers`."""

    layers: int
    rows: int
    row_bytes: int

    @property
    def total(self) -> int:
        """Bytes of all rows."""
        return self.layers * self.rows * self.row_bytes


class Storage(Protocol):
    """Rows of several ranges. The pool is that of pages: a plain block has none.

    lock: held by whoever changes anything. reason: why it is not virtual memory, None where it is.
    page_bytes: 0 where there are no pages. pooled, mapped, reserved: bytes.
    """

    name: str
    reason: str | None
    ranges: int
    size: RowSize
    page_bytes: int
    reserved: int
    lock: threading.RLock

    @property
    def mapped(self) -> int: ...
    @property
    def pooled(self) -> int: ...
    @property
    def operations(self) -> tuple[PageOperations, ...]: ...

    def layers(self, index: int) -> list[Any]:
        """The bytes of a range: for each layer the device's array of uint8. Addresses never change."""
        ...

    def offset(self, index: int) -> int:
        """Bytes from a layer of range 0 to the same layer of this range."""
        ...

    def resize(self, index: int, rows: int) -> int:
        """Have memory under the first `rows` of a range and no more; returns how many pages had to be created for it.

        Growing raises PageError with everything as it was. Rows that come are zero.
        """
        ...

    def room(self, index: int) -> int:
        """Rows of a range that memory lies under."""
        ...

    def bytes_of(self, rows: int) -> int:
        """Memory that a range with so many rows takes."""
        ...

    def fill(self) -> None:
        """Have the pages of the next growth in the pool, as far as the device has them."""
        ...

    def drain(self, growths: int = 0) -> None:
        """Give the pool back, but for the pages of so many growths."""
        ...

    def attach(self) -> None:
        """Make the calling thread able to use the device."""
        ...

    def wait(self) -> None:
        """Wait for what the device was given to do."""
        ...

    def free_bytes(self) -> int:
        """Memory of the device that nobody holds."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...
