"""What an arena asks of the system: addresses without memory, pages of memory, and pages under addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class PageError(Exception):
    """The system refused addresses or a page; the text says which call and why. Nothing of that call is left behind."""


class Pages(Protocol):
    """Virtual memory of a device. One thread at a time; `attach` comes first in a thread that did not make it.

    A page is `page_bytes` long. Handles are the device's own; `create` makes one page, `map` puts pages under
    consecutive addresses, where their bytes are then zero.
    """

    name: str
    page_bytes: int
    pools: bool  # whether a page is memory before it is mapped; where not, keeping some ready would gain nothing

    def attach(self) -> None:
        """Make the calling thread able to use the device."""
        ...

    def reserve(self, size: int) -> int:
        """The address of `size` bytes that no memory lies under. Raises PageError."""
        ...

    def create(self) -> int:
        """A page's handle. Raises PageError."""
        ...

    def release(self, handle: int) -> None:
        """Give an unmapped page back to the system."""
        ...

    def map(self, address: int, handles: Sequence[int]) -> None:
        """Put pages under consecutive addresses, readable, writable and zero. All or none. Raises PageError."""
        ...

    def unmap(self, address: int, count: int) -> None:
        """Take `count` pages away from consecutive addresses; they stay pages."""
        ...

    def wait(self) -> None:
        """Wait for the device: afterwards nothing that was queued can touch a page."""
        ...

    def free_bytes(self) -> int:
        """Memory of the device that nobody holds."""
        ...

    def view(self, address: int, size: int) -> Any:
        """The bytes at reserved addresses as the device's array of uint8, of which only mapped parts may be touched."""
        ...

    def close(self) -> None:
        """Give the reserved addresses back; every page was unmapped and released before."""
        ...
