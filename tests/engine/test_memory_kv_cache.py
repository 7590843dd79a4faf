"""The KV cache over several conversations: memory under rows that exist, prefixes kept, the oldest evicted."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

from engine.errors import KvMemoryFull
from engine.memory.host_pages import PAGE_BYTES
from engine.memory.host_storage import host_storage
from engine.memory.kv_cache import KvCache
from engine.memory.plain_storage import PlainStorage
from engine.memory.storage import RowSize
from memory_rig import LAYERS, ROW, ROWS_OF_PAGE, SIZE, FailsAt, PooledPages, paged_cache, resident, write_rows

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="host virtual memory is Linux's")

STEP = LAYERS * PAGE_BYTES  # what a growth takes


@pytest.fixture
def pages() -> PooledPages:
    return PooledPages()


@pytest.fixture
def cache(pages: PooledPages) -> Iterator[KvCache]:
    made = paged_cache(pages)
    made.leave(())
    yield made
    made.close()
    assert not pages.alive, "nothing is left"


def talk(cache: KvCache, conversation: int, prompt: list[int], reply: list[int], value: float = 0.0) -> int:
    """A reply as the engine makes one, with rows of `value`; rows that were there already."""
    reused = cache.enter(conversation, prompt)
    ids = [*prompt, *reply]
    write_rows(cache, reused, len(ids), value)
    cache.leave(ids)
    return reused


def test_memory_lies_only_under_rows_that_exist(cache: KvCache) -> None:
    assert cache.report().mapped == 0
    cache.enter(1, [])
    cache.ensure(1)
    assert cache.report().mapped == STEP
    cache.ensure(ROWS_OF_PAGE)
    assert cache.report().mapped == STEP and cache.report().fragmentation == 0
    cache.ensure(ROWS_OF_PAGE + 1)
    report = cache.report()
    assert report.mapped == 2 * STEP and report.used == (ROWS_OF_PAGE + 1) * ROW * LAYERS
    assert report.fragmentation < LAYERS * PAGE_BYTES, "less than a page a layer is unused"
    cache.leave([1] * 3)
    report = cache.report()
    assert (report.mapped, report.used, report.conversations) == (STEP, 3 * ROW * LAYERS, 1)
    assert report.reserved == 16 * report.full == 16 * 10 * STEP


def test_the_kernel_counts_what_the_report_says(cache: KvCache) -> None:
    talk(cache, 1, list(range(40)), list(range(10)))
    first = cache.layers[0].ctypes.data
    assert resident(first, cache.report().reserved) == cache.report().mapped == 4 * STEP


def test_addresses_stay_and_rows_survive_growth(cache: KvCache) -> None:
    cache.enter(1, [])
    write_rows(cache, 0, 5, 3.0)
    places = [layer.ctypes.data for layer in cache.layers]
    for rows in range(10, 161, 10):
        write_rows(cache, rows - 5, rows, 1.0)
    assert [layer.ctypes.data for layer in cache.layers] == places
    assert all((layer[:5] == number + 3.0).all() for number, layer in enumerate(cache.layers))
    cache.leave(())
    assert cache.report().mapped == 0


def test_going_back_to_a_conversation_finds_its_rows(cache: KvCache) -> None:
    assert talk(cache, 1, [1, 2, 3, 4], [5, 6], 1.0) == 0
    assert talk(cache, 2, [9, 8, 7], [6], 2.0) == 0
    assert talk(cache, 1, [1, 2, 3, 4, 5, 6, 7], [8], 3.0) == 6
    assert all((layer[:6] == number + 1.0).all() for number, layer in enumerate(cache.layers))
    assert talk(cache, 2, [9, 8, 1], [1], 4.0) == 2, "an edit keeps what stands before it"
    assert cache.report().conversations == 2 and cache.report().evicted == 0


def test_a_new_conversation_copies_a_beginning_it_shares(cache: KvCache) -> None:
    shared = list(range(100, 130))
    talk(cache, 1, [*shared, 1], [2], 1.0)
    assert talk(cache, 2, [*shared, 5, 6], [7], 2.0) == len(shared)
    second = [layer.copy() for layer in cache.layers]
    assert all((layer[: len(shared)] == number + 1.0).all() for number, layer in enumerate(second))
    assert all((layer[len(shared) : 33] == number + 2.0).all() for number, layer in enumerate(second))
    assert talk(cache, 1, [*shared, 1, 2, 3], [], 9.0) == len(shared) + 2, "the first has all of its own"
    assert talk(cache, 3, [100, 101, 1], []) == 0, "two rows are read anew as quickly as copied"


def test_a_reply_that_did_not_end_in_order_leaves_no_rows(cache: KvCache) -> None:
    talk(cache, 1, [1, 2, 3], [4])
    cache.enter(1, [1, 2, 3, 4, 5])
    cache.leave(())
    assert cache.report().mapped == 0 and talk(cache, 1, [1, 2, 3, 4, 5], []) == 0


def test_rows_that_would_have_other_bits_now_are_used_in_no_other_reply(cache: KvCache) -> None:
    talk(cache, 1, [1, 2, 3], [4])
    cache.distrust()
    assert cache.ids_of(1) == ()
    assert talk(cache, 1, [1, 2, 3], [4]) == 0, "read anew"
    assert talk(cache, 1, [1, 2, 3, 4], [5]) == 4, "and trusted again"
    cache.enter(2, [7])
    write_rows(cache, 0, 2, 1.0)
    cache.distrust()
    assert cache.ids_of(1) == ()
    cache.ensure(3)
    cache.leave([7, 8, 9])
    assert cache.ids_of(2) == (), "some of its rows are from before"
    talk(cache, 2, [7], [8])
    assert cache.ids_of(2) == (7, 8)


def test_all_conversations_together_take_no_more_than_one_could(cache: KvCache) -> None:
    half = [*range(SIZE.rows // 2)]
    for conversation, first in ((1, 1000), (2, 2000)):
        talk(cache, conversation, [first + i for i in half], [])
    assert cache.report().mapped == cache.report().full
    talk(cache, 1, [1000 + i for i in half], [])  # so that 2 is the older
    talk(cache, 3, [5], [])
    assert (cache.report().conversations, cache.report().evicted) == (2, 1)
    assert talk(cache, 1, [1000 + i for i in half], []) == len(half)
    assert talk(cache, 2, [2000 + i for i in half[:-10]], []) == 0


def test_a_seventeenth_conversation_takes_the_oldest_ones_range() -> None:
    small = RowSize(LAYERS, SIZE.rows * 4, ROW)
    pages = PooledPages()
    cache = paged_cache(pages, small)
    cache.leave(())
    for conversation in range(17):
        talk(cache, conversation, [conversation * 10 + i for i in range(3)], [])
    assert (cache.report().conversations, cache.report().evicted) == (16, 1)
    assert talk(cache, 1, [10, 11, 12], []) == 3
    assert talk(cache, 0, [0, 1, 2], []) == 0
    cache.close()
    assert not pages.alive


@pytest.mark.parametrize("kind", ["create", "map"])
@pytest.mark.parametrize("number", range(LAYERS))
def test_without_memory_for_more_rows_those_there_stay(
    cache: KvCache, pages: PooledPages, kind: str, number: int
) -> None:
    refusals = FailsAt(kind, number)
    with cache.working():  # the keeper stays away
        write_rows(cache, 0, ROWS_OF_PAGE, 1.0)
        before, pages.free, pages.refuse = cache.report(), 200_000_000, refusals
        with pytest.raises(KvMemoryFull) as refused:
            cache.ensure(ROWS_OF_PAGE + 8)
        after = cache.report()
        kept = [layer[:ROWS_OF_PAGE].copy() for layer in cache.layers]
    assert refusals.seen == number + 1
    assert refused.value.tokens == 8 and refused.value.wanted == STEP and refused.value.free == 200_000_000
    sentence = "The KV cache needs 0 MB more for 8 tokens, but the test has 200 MB free; this chat takes 0 MB for 16"
    assert str(refused.value).startswith(sentence) and f"{kind} was refused" in str(refused.value)
    assert after.mapped == before.mapped and after.pool == 0
    assert all((rows == layer + 1.0).all() for layer, rows in enumerate(kept))
    assert talk(cache, 1, [1, 2], []) == 0 and len(pages.mapped) == LAYERS


def test_idle_conversations_give_way_before_a_reply_fails(cache: KvCache, pages: PooledPages) -> None:
    for conversation in (1, 2):
        talk(cache, conversation, [conversation * 100 + i for i in range(20)], [])
    cache.drain_pool()
    pages.refuse = lambda name: name == "create"
    assert talk(cache, 3, [7] * 20, []) == 0
    assert (cache.report().evicted, cache.report().conversations) == (1, 2)
    pages.refuse = lambda _: False
    assert talk(cache, 2, [200, 201], []) == 2, "the one used last is still there"


def test_under_pressure_idle_conversations_go_and_the_reply_goes_on(cache: KvCache, pages: PooledPages) -> None:
    talk(cache, 1, [1] * 20, [])
    cache.enter(2, [])
    write_rows(cache, 0, 20, 5.0)
    pages.free = 0
    cache.make_way(1)
    assert cache.report().evicted == 0, "while a reply is made its own thread does it, between cycles"
    cache.ensure(21)
    assert cache.report().evicted == 1 and (cache.layers[1][:20] == 6.0).all()
    cache.leave([2] * 20)
    cache.make_way(1)
    assert (cache.report().mapped, cache.report().pool, cache.report().evicted) == (0, 0, 2)


def test_work_on_the_side_disturbs_no_conversation(cache: KvCache) -> None:
    talk(cache, 1, [1, 2, 3], [4], 1.0)
    with cache.scratch():
        write_rows(cache, 0, 50, 8.0)
        assert cache.report().mapped > STEP
    assert cache.report().mapped == STEP and cache.ids == (1, 2, 3, 4)
    with cache.scratch():
        cache.ensure(SIZE.rows)
        assert cache.report().conversations == 1, "even where both together take more than one may"
    with cache.working():
        write_rows(cache, 4, 60, 9.0)
    assert cache.report().mapped == STEP
    assert (cache.layers[0][:4] == 1.0).all() and talk(cache, 1, [1, 2, 3, 4, 5], []) == 4


def test_work_on_the_side_of_a_reply_leaves_its_rows_alone(cache: KvCache) -> None:
    for conversation in range(16):  # a range each
        talk(cache, conversation, [conversation, 2, 3], [4], 1.0)
    cache.enter(15, [15, 2, 3, 4, 5])
    write_rows(cache, 4, 5, 2.0)
    with cache.scratch():
        write_rows(cache, 0, 8, 9.0)
    assert cache.index == 15 and cache.layers[0][:5, 0, 0, 0].tolist() == [1.0, 1.0, 1.0, 1.0, 2.0]
    cache.leave([15, 2, 3, 4, 5])
    assert talk(cache, 15, [15, 2, 3, 4, 5, 6], []) == 5


def test_a_plain_block_keeps_the_last_conversation_only() -> None:
    block = np.zeros(SIZE.total, np.uint8)
    cache = KvCache(
        PlainStorage(SIZE, block, "it is switched off"),
        lambda layer: layer.view(np.float32).reshape(SIZE.rows, 2, 2, 256),
        "the test",
    )
    cache.leave(())
    assert talk(cache, 1, [1, 2, 3], [4], 1.0) == 0
    assert talk(cache, 1, [1, 2, 3, 4, 5], [6], 1.0) == 4
    assert talk(cache, 2, [1, 2, 9], [], 1.0) == 2, "a beginning in common is kept in place"
    assert talk(cache, 1, [1, 2, 3, 4], [], 1.0) == 2
    report = cache.report()
    assert report.mapped == report.reserved == report.full == SIZE.total and report.page_bytes == report.pool == 0
    assert (report.backend, report.reason) == ("a plain tensor", "it is switched off")
    with cache.scratch():
        pass
    assert talk(cache, 1, [1, 2, 3, 4], []) == 0, "its only rows were lent out"
    cache.close()


def test_where_virtual_memory_is_refused_a_plain_block_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    off = host_storage(SIZE, virtual=False)
    assert (off.page_bytes, off.reason) == (0, "virtual memory is switched off")
    on = host_storage(SIZE, virtual=True)
    assert (on.page_bytes, on.reason, on.name) == (PAGE_BYTES, None, "host virtual memory")
    on.close()
    monkeypatch.setattr(sys, "platform", "win32")
    refused = host_storage(SIZE, virtual=True)
    assert refused.page_bytes == 0 and "this system" in str(refused.reason)
    assert refused.layers(2 - 2)[2].shape == (SIZE.rows * ROW,)


def test_fewer_conversations_where_there_are_fewer_addresses() -> None:
    class Narrow(PooledPages):
        def reserve(self, size: int) -> int:
            self.refuse = lambda name: name == "reserve" and size > 5 * SIZE.total
            return super().reserve(size)

    pages = Narrow()
    cache = paged_cache(pages)
    assert cache.report().reserved == 4 * cache.report().full
    cache.close()


def test_an_anchor_lies_under_the_first_range_while_another_is_in_use(cache: KvCache) -> None:
    talk(cache, 1, [1, 2, 3], [])
    talk(cache, 2, [4], [])
    assert cache.index == 1
    with cache.anchored():
        assert cache.report().mapped == 2 * STEP, "range 0 has rows of its own"
    cache.forget(1)
    with cache.anchored():
        assert cache.report().mapped == 2 * STEP
    assert cache.report().mapped == STEP
