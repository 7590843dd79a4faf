"""What the KV cache's memory looks like from outside. Plain data: the window reads it without importing torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageOperations:
    """How often pages were created, mapped, unmapped or released since the load, and the seconds all of it took."""

    name: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class KvMemory:
    """The KV cache in bytes, as it stands.

    backend: what holds it, for people ("CUDA virtual memory", "host virtual memory", "a plain tensor").
    reason: why it is not virtual memory, None where it is.
    page_bytes: 0 for a plain tensor. conversations: that hold rows.
    reserved: addresses set aside, for as many conversations as keep a range of their own.
    full: what one conversation takes where its whole context is filled; the budget of all together.
    mapped: backed by memory. used: rows of tokens that exist, and those that the running cycle may write.
    pool: pages created ahead that nothing is mapped to.
    evicted: conversations that gave their rows up to others since the load.
    late: pages that a cycle had to wait for, because the pool was empty.
    """

    backend: str
    reason: str | None
    page_bytes: int
    conversations: int
    reserved: int
    full: int
    mapped: int
    used: int
    pool: int
    evicted: int = 0
    late: int = 0
    operations: tuple[PageOperations, ...] = ()

    @property
    def fragmentation(self) -> int:
        """Mapped beyond what is used."""
        return self.mapped - self.used
