"""Rows of a KV cache on several devices: each holds those of its own layers, all grow and shrink together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.memory.report import PageOperations
from engine.memory.storage import RowSize, Storage


class SplitStorage:
    """Implements engine.memory.storage.Storage. The layers are those of the first share, then the next."""

    def __init__(self, shares: Sequence[Storage]) -> None:
        """shares: of the devices in order, with as many rows each."""
        first = shares[0]
        self._shares = tuple(shares)
        self.name = first.name
        self.reason = next((share.reason for share in shares if share.reason is not None), None)
        self.ranges = min(share.ranges for share in shares)
        self.size = RowSize(sum(share.size.layers for share in shares), first.size.rows, first.size.row_bytes)
        self.page_bytes = min(share.page_bytes for share in shares)
        self.reserved = sum(share.reserved for share in shares)
        self.lock = first.lock

    @property
    def mapped(self) -> int:
        """Bytes."""
        return sum(share.mapped for share in self._shares)

    @property
    def pooled(self) -> int:
        """Bytes."""
        return sum(share.pooled for share in self._shares)

    @property
    def operations(self) -> tuple[PageOperations, ...]:
        """Of all devices."""
        sums: dict[str, PageOperations] = {}
        for made in (made for share in self._shares for made in share.operations):
            before = sums.get(made.name, PageOperations(made.name, 0, 0.0))
            sums[made.name] = PageOperations(made.name, before.count + made.count, before.seconds + made.seconds)
        return tuple(sums.values())

    def layers(self, index: int) -> list[Any]:
        """See Storage.layers."""
        return [layer for share in self._shares for layer in share.layers(index)]

    def offset(self, index: int) -> int:
        """See Storage.offset; of the first device."""
        return self._shares[0].offset(index)

    def resize(self, index: int, rows: int) -> int:
        """See Storage.resize: a device that cannot grow has those before it shrink again."""
        before = [share.room(index) for share in self._shares]
        created = 0
        try:
            for share in self._shares:
                created += share.resize(index, rows)
        except BaseException:
            for share, room in zip(self._shares, before, strict=True):
                if share.room(index) > room:
                    share.resize(index, room)
            raise
        return created

    def room(self, index: int) -> int:
        """See Storage.room."""
        return min(share.room(index) for share in self._shares)

    def bytes_of(self, rows: int) -> int:
        """See Storage.bytes_of."""
        return sum(share.bytes_of(rows) for share in self._shares)

    def fill(self) -> None:
        """See Storage.fill."""
        for share in self._shares:
            share.fill()

    def drain(self, growths: int = 0) -> None:
        """See Storage.drain."""
        for share in self._shares:
            share.drain(growths)

    def attach(self) -> None:
        """See Storage.attach."""
        for share in self._shares:
            share.attach()

    def wait(self) -> None:
        """See Storage.wait."""
        for share in self._shares:
            share.wait()

    def free_bytes(self) -> int:
        """See Storage.free_bytes: where there is least."""
        return min(share.free_bytes() for share in self._shares)

    def close(self) -> None:
        """See Storage.close."""
        for share in self._shares:
            share.close()
