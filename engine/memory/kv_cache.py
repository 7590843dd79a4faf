"""The KV cache of a loaded model: rows of several conversations, memory only under tokens that exist.

Three states. *Resting*: nobody computes; the keeper's thread may take memory away. *Working*: whoever owns the engine
loads, captures or measures; nobody else touches anything. *Replying*: a reply is made; its thread maps pages between
cycles, and the keeper creates the next ones meanwhile, so that a cycle finds them in the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

from engine.errors import KvMemoryFull
from engine.memory.conversations import Conversations, Range
from engine.memory.keeper import Keeper
from engine.memory.pages import PageError
from engine.memory.report import KvMemory
from engine.memory.storage import Storage

WORTH_COPYING = 16  # rows: fewer are read anew as quickly


class State(Enum):
    """Who may change what."""

    RESTING = "resting"
    WORKING = "working"
    REPLYING = "replying"


class KvCache:
    """One thread owns it, the engine's; `report` may be called from any. A new cache is *working*, on range 0."""

    def __init__(self, storage: Storage, shape: Callable[[Any], Any], where: str) -> None:
        """shape: a layer's bytes as an array [rows, 2, kv heads, head dim]. where: the device, in messages."""
        self._storage, self._shape, self._where = storage, shape, where
        self._keeper = Keeper(self) if storage.page_bytes else None
        self._lock = storage.lock
        self._conversations = Conversations(storage.ranges)
        self._views: dict[int, tuple[Any, ...]] = {}
        self._state = State.WORKING
        self._room = storage.room(0)
        self._ahead = 0  # rows that the running cycle may write
        self._squeezed = False
        self._evicted = self._late = 0

    @property
    def index(self) -> int:
        """Number of the range in use."""
        return self._conversations.current.index

    @property
    def offset(self) -> int:
        """Bytes from a layer of range 0 to the same layer of the range in use."""
        return self._storage.offset(self.index)

    @property
    def layers(self) -> tuple[Any, ...]:
        """The layers of the range in use; only rows that were ensured may be touched."""
        return self._layers(self.index)

    @property
    def ids(self) -> tuple[int, ...]:
        """Tokens whose rows the range in use holds, from position 0 on; none while a reply is made."""
        return tuple(self._conversations.current.ids)

    @property
    def reason(self) -> str | None:
        """Why the rows do not lie in virtual memory, or None."""
        return self._storage.reason

    def ensure(self, rows: int, *, cycle: bool = False) -> None:
        """Have memory under the first `rows` of the range in use, before anything writes or reads them.

        cycle: a cycle waits for it. Raises KvMemoryFull, with what was there still there.
        """
        self._ahead = rows
        if rows > self._room or self._squeezed:
            self._grow(min(rows, self._storage.size.rows), cycle)

    def enter(self, conversation: int, prompt: Sequence[int]) -> int:
        """Begin a reply to `prompt` in the range of a conversation; how many leading rows of it are there already.

        A range without them gets a copy where another conversation began alike. What the range holds is trusted again
        only when `leave` says so.
        """
        with self._lock:
            ranges = self._conversations
            own = ranges.of(conversation) or ranges.vacant()
            if own.conversation != conversation and own.ids:
                self._evicted += 1  # its range is taken; a beginning in common stays in place
            shared, other = own.shared(prompt), ranges.nearest(prompt)
            self._state = State.REPLYING
            self._use(own, conversation)
            if other is not own and other.shared(prompt) >= shared + WORTH_COPYING:
                shared = self._copied(other, own, shared, other.shared(prompt))
            own.ids, self._ahead = [], shared
        self._wake()
        return shared

    def leave(self, ids: Sequence[int]) -> None:
        """End what was begun: the rows of `ids` are in the cache, memory beyond them goes back."""
        with self._lock:
            current = self._conversations.current
            current.ids = list(ids)
            if not current.ids:
                current.conversation = None
            self._rest()

    @contextmanager
    def working(self) -> Iterator[None]:
        """While entered, rows of the range in use may be ensured; nothing of what it held is forgotten."""
        if self._state is not State.RESTING:
            yield
            return
        self._state = State.WORKING
        try:
            yield
        finally:
            with self._lock:
                self._rest()

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """While entered, a range of nobody's is in use. Where there is only one, what it held is forgotten."""
        with self.working():
            before, own = self._conversations.current, self._conversations.vacant()
            with self._lock:
                own.ids = []
                self._use(own, None)
            try:
                yield
            finally:
                with self._lock:
                    self._storage.resize(own.index, 0)
                    self._use(before, before.conversation)

    def forget(self, conversation: int | None = None) -> None:
        """Give up the rows of a conversation, or of all of them."""
        with self._lock:
            for range_ in self._conversations.ranges:
                if range_.ids and conversation in (None, range_.conversation):
                    self._empty(range_)
        self._wake()

    def report(self) -> KvMemory:
        """How it stands. Any thread."""
        with self._lock:
            storage, size = self._storage, self._storage.size
            rows = self._conversations.tokens
            if self._state is not State.RESTING:
                rows += max(0, min(self._ahead, size.rows) - len(self._conversations.current.ids))
            return KvMemory(
                backend=storage.name,
                reason=storage.reason,
                page_bytes=storage.page_bytes,
                conversations=self._conversations.held,
                reserved=storage.reserved,
                full=storage.bytes_of(size.rows),
                mapped=storage.mapped,
                used=rows * size.layers * size.row_bytes,
                pool=storage.pooled,
                evicted=self._evicted,
                late=self._late,
                operations=storage.operations,
            )

    def close(self) -> None:
        """Give everything back; views of the cache must not be touched any more."""
        if self._keeper is not None:
            self._keeper.close()
        with self._lock:
            self._views.clear()
            self._storage.close()

    # What the keeper asks and does, in its own thread; see keeper.py.

    def attach(self) -> None:
        """Make the calling thread able to use the device."""
        self._storage.attach()

    def held(self) -> int:
        """Bytes of memory that it holds."""
        return self._storage.mapped + self._storage.pooled

    def free_bytes(self) -> int:
        """Memory of the device that nobody holds."""
        return self._storage.free_bytes()

    def fill_pool(self) -> None:
        """While a reply is made, have the pages of its next growth ready."""
        if self._state is State.REPLYING:
            self._storage.fill()

    def drain_pool(self) -> None:
        """While nobody computes, give the pool back."""
        with self._lock:
            if self._state is State.RESTING:
                self._storage.drain()

    def make_way(self, least: int) -> None:
        """Another program needs memory: give up idle conversations until `least` bytes are free.

        While a reply is made, its thread does so between two cycles.
        """
        with self._lock:
            if self._state is not State.RESTING:
                self._squeezed = True
                return
            self._storage.drain()
            while self.free_bytes() < least and self._evict(self._conversations.last()):
                self._storage.drain()

    @property
    def resting(self) -> bool:
        """Whether nobody computes."""
        return self._state is State.RESTING

    def _layers(self, index: int) -> tuple[Any, ...]:
        if index not in self._views:
            self._views[index] = tuple(self._shape(layer) for layer in self._storage.layers(index))
        return self._views[index]

    def _grow(self, rows: int, cycle: bool) -> None:
        with self._lock:
            if self._squeezed:
                self._squeezed = False
                while self._evict(self._conversations.oldest()):
                    pass
            if rows <= self._room:
                return
            self._keep_to_budget(rows)
            while True:
                try:
                    late = self._storage.resize(self.index, rows)
                    break
                except PageError as error:
                    if not self._evict(self._conversations.oldest()):
                        raise self._full(rows, error) from None
            self._room = self._storage.room(self.index)
            self._late += late if cycle else 0
            self._storage.drain(growths=1)  # what was evicted may be more than what was needed
        if self._state is State.REPLYING:
            self._wake()

    def _keep_to_budget(self, rows: int) -> None:
        """All conversations together take no more than a single one could."""
        budget = self._storage.bytes_of(self._storage.size.rows)
        while True:
            others = sum(self._storage.bytes_of(len(range_.ids)) for range_ in self._conversations.others)
            if self._storage.bytes_of(rows) + others <= budget or not self._evict(self._conversations.oldest()):
                return

    def _use(self, range_: Range, conversation: int | None) -> None:
        self._conversations.use(range_, conversation)
        self._room = self._storage.room(range_.index)

    def _full(self, rows: int, error: PageError) -> KvMemoryFull:
        self._storage.drain()
        present = min(rows, self._room)
        wanted = self._storage.bytes_of(rows) - self._storage.bytes_of(present)
        held = self._storage.bytes_of(present)
        return KvMemoryFull(rows - present, wanted, self.free_bytes(), present, held, self._where, str(error))

    def _copied(self, source: Range, target: Range, first: int, last: int) -> int:
        """Rows that the target has after a copy from another range; `first` where there is no memory for them."""
        try:
            self._grow(last, False)
        except KvMemoryFull:
            return first
        if last > len(source.ids):  # it was evicted to make room
            return first
        for origin, copy in zip(self._layers(source.index), self._layers(target.index), strict=True):
            copy[first:last] = origin[first:last]
        self._storage.wait()
        return last

    def _evict(self, range_: Range | None) -> bool:
        """Give up a range's rows for others; False where there is none to give up."""
        if range_ is None or not range_.ids:
            return False
        self._evicted += 1
        self._empty(range_)
        return True

    def _empty(self, range_: Range) -> None:
        range_.ids, range_.conversation = [], None
        self._storage.resize(range_.index, 0)
        if range_ is self._conversations.current:
            self._room = self._storage.room(range_.index)

    def _rest(self) -> None:
        """Memory beyond what the range in use holds goes back; the keeper takes over."""
        self._storage.resize(self.index, len(self._conversations.current.ids))
        self._room, self._ahead, self._state = self._storage.room(self.index), 0, State.RESTING
        self._wake()

    def _wake(self) -> None:
        if self._keeper is not None:
            self._keeper.wake()
