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

from engine.memory.keeper import Keeper
from engine.memory.report import KvMemory
from engine.memory.rows import Rows
from engine.memory.storage import Storage


class State(Enum):
    """Who may change what."""

    RESTING = "resting"
    WORKING = "working"
    REPLYING = "replying"


class KvCache:
    """One thread owns it, the engine's; `report` may be called from any. A new cache is *working*, on range 0."""

    def __init__(self, storage: Storage, shape: Callable[[Any], Any], where: str) -> None:
        """shape: a layer's bytes as an array [rows, 2, kv heads, head dim]. where: the device, in messages."""
        self._storage, self._rows = storage, Rows(storage, shape, where)
        self._keeper = Keeper(self) if storage.page_bytes else None
        self._lock = storage.lock
        self._state = State.WORKING
        self._ahead = 0  # rows that the running cycle may write
        self._squeezed = False
        self._distrusted = False  # the reply being made leaves no rows

    @property
    def index(self) -> int:
        """Number of the range in use."""
        return self._rows.current.index

    @property
    def offset(self) -> int:
        """Bytes from a layer of range 0 to the same layer of the range in use."""
        return self._storage.offset(self.index)

    @property
    def layers(self) -> tuple[Any, ...]:
        """The layers of the range in use; only rows that were ensured may be touched."""
        return self._rows.layers(self.index)

    @property
    def ids(self) -> tuple[int, ...]:
        """Tokens whose rows the range in use holds, from position 0 on; none while a reply is made."""
        return tuple(self._rows.current.ids)

    def ids_of(self, conversation: int) -> tuple[int, ...]:
        """Tokens whose rows a conversation has, from position 0 on; none while a reply in it is made."""
        range_ = self._rows.conversations.of(conversation)
        return tuple(range_.ids) if range_ is not None else ()

    @property
    def reason(self) -> str | None:
        """Why the rows do not lie in virtual memory, or None."""
        return self._storage.reason

    @property
    def replying(self) -> bool:
        """Whether a reply is being made."""
        return self._state is State.REPLYING

    def ensure(self, rows: int, *, cycle: bool = False) -> None:
        """Have memory under the first `rows` of the range in use, before anything writes or reads them.

        cycle: a cycle waits for it. Raises KvMemoryFull, with what was there still there.
        """
        self._ahead = rows
        if rows <= self._rows.room and not self._squeezed:
            return
        with self._lock:
            if self._squeezed:
                self._squeezed = False
                while self._rows.evict(self._rows.conversations.oldest()):
                    pass
            self._rows.grow(rows, cycle=cycle)
        if self._state is State.REPLYING:
            self._wake()

    def enter(self, conversation: int, prompt: Sequence[int]) -> int:
        """Begin a reply to `prompt` in the range of a conversation; how many leading rows of it are there already.

        A range without them gets a copy where another conversation began alike. What the range holds is trusted again
        only when `leave` says so.
        """
        with self._lock:
            self._state, self._distrusted = State.REPLYING, False
            self._ahead = self._rows.begin(conversation, prompt)
        self._wake()
        return self._ahead

    def leave(self, ids: Sequence[int]) -> None:
        """End what was begun: the rows of `ids` are in the cache, memory beyond them goes back."""
        with self._lock:
            current = self._rows.current
            current.ids = [] if self._distrusted else list(ids)
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
            before = self._rows.current
            # A reply's range has no ids while the reply is made, and must not be taken for a vacant one.
            own = self._rows.conversations.vacant(besides=before if self.replying else None)
            with self._lock:
                own.ids = []
                self._rows.use(own, None)
            try:
                yield
            finally:
                with self._lock:
                    self._rows.empty(own)
                    self._rows.use(before, before.conversation)

    @contextmanager
    def anchored(self) -> Iterator[None]:
        """While entered, memory lies under the first row of range 0, whichever range is in use.

        Kernels are launched with the addresses of that range, and a launch (not a replay) looks what lies there.
        """
        with self._lock:
            bare = self._storage.room(0) == 0
            if bare:
                self._storage.resize(0, 1)
        try:
            yield
        finally:
            with self._lock:
                if bare and self.index != 0:
                    self._storage.resize(0, 0)

    def forget(self, conversation: int | None = None) -> None:
        """Give up the rows of a conversation, or of all of them."""
        with self._lock:
            for range_ in self._rows.conversations.ranges:
                if range_.ids and conversation in (None, range_.conversation):
                    self._rows.empty(range_)
        self._wake()

    def distrust(self) -> None:
        """Passes give rows other bits from now on than those they have here: no row is used in another reply."""
        self._distrusted = self._state is State.REPLYING
        self.forget()

    def report(self) -> KvMemory:
        """How it stands. Any thread."""
        with self._lock:
            storage, size, conversations = self._storage, self._storage.size, self._rows.conversations
            rows = conversations.tokens
            if self._state is not State.RESTING:
                rows += max(0, min(self._ahead, size.rows) - len(conversations.current.ids))
            return KvMemory(
                backend=storage.name,
                reason=storage.reason,
                page_bytes=storage.page_bytes,
                conversations=conversations.held,
                reserved=storage.reserved,
                full=storage.bytes_of(size.rows),
                mapped=storage.mapped,
                used=rows * size.layers * size.row_bytes,
                pool=storage.pooled,
                evicted=self._rows.evicted,
                late=self._rows.late,
                operations=storage.operations,
            )

    def close(self) -> None:
        """Give everything back; views of the cache must not be touched any more."""
        if self._keeper is not None:
            self._keeper.close()
        with self._lock:
            self._rows.close()
            self._storage.close()

    # What the keeper asks and does, in its own thread; see keeper.py.

    @property
    def resting(self) -> bool:
        """Whether nobody computes."""
        return self._state is State.RESTING

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
            while self.free_bytes() < least and self._rows.evict(self._rows.conversations.last()):
                self._storage.drain()

    def _rest(self) -> None:
        """Memory beyond what the range in use holds goes back; the keeper takes over."""
        self._rows.trim()
        self._ahead, self._state = 0, State.RESTING
        self._wake()

    def _wake(self) -> None:
        if self._keeper is not None:
            self._keeper.wake()
