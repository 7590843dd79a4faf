"""The keeper's thread: pages ready before they are needed, given back when nobody computes or others need them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import pytest

from engine.memory.host_pages import PAGE_BYTES
from engine.memory.kv_cache import KvCache
from memory_rig import LAYERS, ROWS_OF_PAGE, PooledPages, paged_cache, write_rows

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="host virtual memory is Linux's")

STEP = LAYERS * PAGE_BYTES


@pytest.fixture
def pages() -> PooledPages:
    return PooledPages()


@pytest.fixture
def cache(pages: PooledPages) -> Iterator[KvCache]:
    made = paged_cache(pages)
    made.leave(())
    yield made
    made.close()
    assert not pages.alive


def wait_until(holds: Callable[[], bool], seconds: float = 10.0) -> float:
    """Seconds until it holds; fails when it does not in time."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds, "it did not come"
        time.sleep(0.005)
    return time.monotonic() - began


def test_once_warm_no_cycle_waits_for_a_page(cache: KvCache) -> None:
    cache.enter(1, [])
    wait_until(lambda: cache.report().pool == STEP)
    for rows in range(1, 161):
        write_rows(cache, rows - 1, rows, 1.0)
        cache.ensure(rows, cycle=True)
        if rows % ROWS_OF_PAGE == 1:  # as long as a cycle takes, the keeper has time
            wait_until(lambda: cache.report().pool == STEP)
    report = cache.report()
    assert report.late == 0 and report.mapped == 10 * STEP
    cache.leave(())


def test_a_page_that_was_not_ready_is_counted(cache: KvCache, pages: PooledPages) -> None:
    with cache.working():  # the keeper stays away
        cache.ensure(1, cycle=True)
    assert cache.report().late == LAYERS


def test_when_the_chat_is_closed_everything_is_given_back_within_two_seconds(
    cache: KvCache, pages: PooledPages
) -> None:
    cache.enter(1, [])
    write_rows(cache, 0, 40, 1.0)
    cache.leave([1] * 40)
    wait_until(lambda: cache.report().pool == 0)
    assert cache.report().mapped == 3 * STEP, "the chat's own rows stay while it is open"
    cache.forget(1)
    seconds = wait_until(lambda: cache.report().mapped + cache.report().pool == 0)
    assert seconds < 2.0 and not pages.alive


def test_another_program_gets_the_memory_of_idle_chats(cache: KvCache, pages: PooledPages) -> None:
    for conversation in (1, 2):
        cache.enter(conversation, [])
        write_rows(cache, 0, 5, 1.0)
        cache.leave([conversation] * 5)
    pages.free = 0
    wait_until(lambda: cache.report().mapped == 0)
    assert cache.report().evicted == 2 and cache.report().pool == 0


def test_the_keeper_ends_with_its_cache() -> None:
    pages = PooledPages()
    cache = paged_cache(pages)
    cache.enter(1, [])
    thread = cache._keeper._thread if cache._keeper is not None else None
    assert thread is not None and thread.is_alive()
    cache.leave(())
    cache.close()
    assert not thread.is_alive()
