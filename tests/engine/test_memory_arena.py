"""The arena: pages under spans, all or none, a pool, and nothing left behind. Over real memory of the host."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from engine.memory.arena import Arena, Span
from engine.memory.host_pages import PAGE_BYTES, HostPages
from engine.memory.pages import PageError
from memory_rig import FailsAt, PooledPages, resident

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="host virtual memory is Linux's")


def counts(arena: Arena) -> dict[str, int]:
    return {operation.name: operation.count for operation in arena.operations}


def test_memory_comes_with_a_span_and_goes_with_it() -> None:
    arena = Arena(HostPages(), 1000)
    view = arena.bytes()
    address = view.ctypes.data
    assert arena.reserved == 1000 * PAGE_BYTES == len(view)
    assert resident(address, arena.reserved) == 0
    arena.map([Span(3, 4), Span(500, 1)])
    assert (arena.mapped, arena.pooled) == (5, 0)
    assert resident(address, arena.reserved) == 5 * PAGE_BYTES
    view[3 * PAGE_BYTES : 7 * PAGE_BYTES] = 7
    arena.unmap([Span(4, 2)])
    assert resident(address, arena.reserved) == 3 * PAGE_BYTES
    assert view[3 * PAGE_BYTES] == view[6 * PAGE_BYTES] == 7, "what stays mapped keeps its bytes"
    arena.map([Span(4, 2)])
    assert not view[4 * PAGE_BYTES : 6 * PAGE_BYTES].any(), "a page that comes back is zero"
    arena.close()
    assert resident(address, arena.reserved) == 0


def test_the_pool_is_used_before_pages_are_created() -> None:
    pages = PooledPages()
    arena = Arena(pages, 16)
    arena.bytes()
    arena.drain()
    before = counts(arena)["create"]
    arena.fill(4)
    assert arena.pooled == 4 and counts(arena)["create"] == before + 4
    assert arena.map([Span(0, 2), Span(8, 1)]) == 0
    assert arena.pooled == 1 and counts(arena)["create"] == before + 4
    assert arena.map([Span(2, 3)]) == 2, "one was in the pool"
    arena.unmap([Span(0, 5)])
    assert arena.pooled == 5
    arena.drain(2)
    assert arena.pooled == 2 and len(pages.alive) == 3
    arena.close()
    assert not pages.alive and not pages.mapped


@pytest.mark.parametrize("kind", ["create", "map"])
@pytest.mark.parametrize("number", range(6))
def test_a_growth_that_fails_half_way_leaves_everything_as_it_was(kind: str, number: int) -> None:
    pages = PooledPages()
    arena = Arena(pages, 64)
    view = arena.bytes()
    arena.drain()
    arena.map([Span(0, 2), Span(32, 2)])
    view[: 2 * PAGE_BYTES] = 5
    spans = [Span(first, 1) for first in (2, 10, 20, 34, 40, 50)]
    pages.refuse = FailsAt(kind, number)
    with pytest.raises(PageError, match=kind):
        arena.map(spans)
    assert arena.mapped == 4 and len(pages.mapped) == 4
    assert (view[: 2 * PAGE_BYTES] == 5).all()
    assert len(pages.alive) == arena.mapped + arena.pooled, "every page is in the table or in the pool"
    pages.refuse = lambda _: False
    arena.map(spans)
    assert arena.mapped == 10 and resident(view.ctypes.data, arena.reserved) == 10 * PAGE_BYTES
    arena.close()
    assert not pages.alive


def test_a_pool_that_cannot_be_filled_stays_short_and_says_nothing() -> None:
    pages = PooledPages()
    arena = Arena(pages, 8)
    arena.bytes()
    arena.drain()
    pages.refuse = FailsAt("create", 2)
    arena.fill(5)
    assert arena.pooled == 2
    arena.close()


def test_ten_thousand_rounds_of_growing_and_shrinking_leak_nothing() -> None:
    pages = PooledPages()
    arena = Arena(pages, 64)
    view = arena.bytes()
    random = np.random.default_rng(0)
    for _ in range(10_000):
        count = int(random.integers(1, 9))
        arena.map([Span(0, count), Span(32, count)])
        arena.unmap([Span(0, count), Span(32, count)])
    assert arena.mapped == 0 and len(pages.alive) == arena.pooled == 16
    assert counts(arena)["map"] == counts(arena)["unmap"] > 10_000
    arena.drain()
    assert resident(view.ctypes.data, arena.reserved) == 0 and not pages.alive
    arena.close()


def test_addresses_that_are_refused_leave_nothing() -> None:
    pages = PooledPages(refuse=lambda name: name == "reserve")
    with pytest.raises(PageError, match="reserve"):
        Arena(pages, 8)
    with pytest.raises(PageError, match="reserving"):
        Arena(HostPages(), 1 << 40)


def test_the_host_grants_no_memory_that_it_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    arena = Arena(HostPages(), 8)
    monkeypatch.setattr(HostPages, "free_bytes", lambda _: 64 << 20)
    with pytest.raises(PageError, match="64 MiB free"):
        arena.map([Span(0, 1)])
    assert arena.mapped == arena.pooled == 0
    arena.close()
