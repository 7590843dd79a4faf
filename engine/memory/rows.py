"""Memory under the rows of conversations: it grows with the one in use, and the others give way. No threads here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.errors import KvMemoryFull
from engine.memory.conversations import Conversations, Range
from engine.memory.pages import PageError
from engine.memory.storage import Storage

WORTH_COPYING = 16  # rows: fewer are read anew as quickly


class Rows:
    """The ranges of a storage, and which conversation's rows lie in them. Whoever calls holds the storage's lock.

    room: rows of the range in use that memory lies under. evicted: conversations that gave way. late: pages that a
    cycle had to wait for.
    """

    def __init__(self, storage: Storage, shape: Callable[[Any], Any], where: str) -> None:
        """shape: a layer's bytes as an array [rows, 2, kv heads, head dim]. where: the device, in messages."""
        self._storage, self._shape, self._where = storage, shape, where
        self._views: dict[int, tuple[Any, ...]] = {}
        self.conversations = Conversations(storage.ranges)
        self.room = storage.room(0)
        self.evicted = self.late = 0

    @property
    def current(self) -> Range:
        """The range in use."""
        return self.conversations.current

    def layers(self, index: int) -> tuple[Any, ...]:
        """The layers of a range."""
        if index not in self._views:
            self._views[index] = tuple(self._shape(layer) for layer in self._storage.layers(index))
        return self._views[index]

    def use(self, range_: Range, conversation: int | None) -> None:
        """Make a range the one in use, by this conversation."""
        self.conversations.use(range_, conversation)
        self.room = self._storage.room(range_.index)

    def begin(self, conversation: int, prompt: Sequence[int]) -> int:
        """Use the range of a conversation, its own or another's; leading rows of the prompt that lie there then."""
        ranges = self.conversations
        own = ranges.of(conversation) or ranges.vacant()
        if own.conversation != conversation and own.ids:
            self.evicted += 1  # its range is taken; a beginning in common stays in place
        shared, other = own.shared(prompt), ranges.nearest(prompt)
        self.use(own, conversation)
        if other is not own and other.shared(prompt) >= shared + WORTH_COPYING:
            shared = self._copied(other, own, shared, other.shared(prompt))
        own.ids = []
        return shared

    def grow(self, rows: int, *, cycle: bool = False) -> None:
        """Have memory under the first `rows` of the range in use. Raises KvMemoryFull with everything as it was, save
        that other conversations gave way."""
        rows = min(rows, self._storage.size.rows)
        if rows <= self.room:
            return
        if self.current.conversation is not None:  # work on the side costs no conversation its rows
            self._keep_to_budget(rows)
        while True:
            try:
                created = self._storage.resize(self.current.index, rows)
                break
            except PageError as error:
                if not self.evict(self.conversations.oldest()):
                    raise self._full(rows, error) from None
        self.room = self._storage.room(self.current.index)
        self.late += created if cycle else 0
        self._storage.drain(growths=1)  # what was evicted may be more than what was needed

    def trim(self) -> None:
        """Give back memory beyond the rows that the range in use holds."""
        self._storage.resize(self.current.index, len(self.current.ids))
        self.room = self._storage.room(self.current.index)

    def empty(self, range_: Range) -> None:
        """Give up a range's rows."""
        range_.ids, range_.conversation = [], None
        self._storage.resize(range_.index, 0)
        if range_ is self.current:
            self.room = self._storage.room(range_.index)

    def evict(self, range_: Range | None) -> bool:
        """Give up a range's rows for others; False where there is none to give up."""
        if range_ is None or not range_.ids:
            return False
        self.evicted += 1
        self.empty(range_)
        return True

    def close(self) -> None:
        """Let go of the views; nobody may touch them any more."""
        self._views.clear()

    def _keep_to_budget(self, rows: int) -> None:
        """All conversations together take no more than a single one could."""
        budget = self._storage.bytes_of(self._storage.size.rows)
        while True:
            others = sum(self._storage.bytes_of(len(range_.ids)) for range_ in self.conversations.others)
            if self._storage.bytes_of(rows) + others <= budget or not self.evict(self.conversations.oldest()):
                return

    def _full(self, rows: int, error: PageError) -> KvMemoryFull:
        self._storage.drain()
        present, free = min(rows, self.room), self._storage.free_bytes()
        held = self._storage.bytes_of(present)
        wanted = self._storage.bytes_of(rows) - held
        return KvMemoryFull(rows - present, wanted, free, present, held, self._where, str(error))

    def _copied(self, source: Range, target: Range, first: int, last: int) -> int:
        """Rows that the target has after a copy from another range; `first` where there is no memory for them."""
        try:
            self.grow(last)
        except KvMemoryFull:
            return first
        if last > len(source.ids):  # it was evicted to make room
            return first
        for origin, copy in zip(self.layers(source.index), self.layers(target.index), strict=True):
            copy[first:last] = origin[first:last]
        self._storage.wait()
        return last
