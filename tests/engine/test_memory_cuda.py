"""On a card: pages of the CUDA driver, faults at every call of it, and replies over them (C41)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from builders import tiny_llama
from engine.engine import Engine
from engine.memory.arena import Arena, Span
from engine.memory.cuda_pages import CudaPages
from engine.memory.pages import PageError
from engine.memory.report import KvMemory
from engine.memory.storage import RowSize
from engine.memory.tensor_storage import tensor_storage
from engine.recipe import Recipe
from engine.records import StopReason
from engine_rig import Reply, no_end_tokens, random_prompts, reply, request

pytestmark = pytest.mark.gpu

CALLS = ("cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemsetD32")
FIRST, SECOND = random_prompts(2, 290, seed=21, longest=200)


def card() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device())


def free() -> int:
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0]


def refuse(pages: CudaPages, call: str, number: int) -> Callable[[], int]:
    """Let the `number`th of these driver calls (from 0) fail; how many were made."""
    made = 0
    real = pages._call

    def broken(name: str, *arguments: Any) -> Any:
        nonlocal made
        if name == call:
            made += 1
            if number <= made - 1 <= number + (call == "cuMemCreate"):  # which is tried twice
                raise PageError(f"{name} failed: CUDA_ERROR_OUT_OF_MEMORY")
        return real(name, *arguments)

    pages._call = broken  # type: ignore[method-assign]
    return lambda: made


def test_memory_comes_with_a_span_and_goes_with_it() -> None:
    pages = CudaPages(card())
    arena = Arena(pages, 1 << 15)  # 64 GiB of addresses
    view, page = arena.bytes(), pages.page_bytes
    arena.drain()
    before = free()
    arena.map([Span(0, 20), Span(30_000, 44)])
    assert before - free() == 64 * page
    part = view[30_000 * page : 30_044 * page]
    assert not part.any(), "pages come zeroed"
    part.fill_(7)
    assert int(part.sum(dtype=torch.int64)) == 7 * 44 * page
    arena.unmap([Span(30_010, 4)])
    assert int(view[30_000 * page : 30_010 * page].min()) == 7, "what stays mapped keeps its bytes"
    assert free() == before - 64 * page, "unmapped pages wait in the pool"
    arena.drain()
    assert free() == before - 60 * page
    arena.map([Span(30_010, 4)])
    assert not view[30_010 * page : 30_014 * page].any()
    arena.close()
    assert free() >= before


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("number", [0, 1, 5])
def test_a_driver_call_that_fails_half_way_leaves_everything_as_it_was(call: str, number: int) -> None:
    pages = CudaPages(card())
    arena = Arena(pages, 64)
    view = arena.bytes()
    arena.drain()
    arena.map([Span(0, 2)])
    view[: 2 * pages.page_bytes].fill_(5)
    before = free()
    made = refuse(pages, call, number)
    spans = [Span(first, 2) for first in (2, 10, 20, 30, 40, 50)]
    with pytest.raises(PageError, match=call):
        arena.map(spans)
    assert made() >= number + 1 and arena.mapped == 2
    arena.drain()
    assert free() == before and int(view[: 2 * pages.page_bytes].min()) == 5
    arena.map(spans)
    assert arena.mapped == 14
    arena.close()


def test_a_captured_graph_stays_valid_while_rows_are_added() -> None:
    size = RowSize(4, 4096, 4096)
    storage = tensor_storage(size, card(), virtual=True)
    storage.resize(0, 16)
    layers = [layer.view(torch.float32).view(4096, 1024) for layer in storage.layers(0)]
    count, total = torch.zeros((), dtype=torch.int64, device="cuda"), torch.zeros(4, device="cuda")
    stream = torch.cuda.Stream()

    def step() -> None:
        for number, layer in enumerate(layers):
            row = layer.index_select(0, count.view(1))
            total[number] += row.sum()

    with torch.cuda.stream(stream):
        step()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        step()
    total.zero_()
    for rows in range(500, 4001, 500):
        storage.resize(0, rows)
        for layer in layers:
            layer[rows - 1] = 1.0
        count.fill_(rows - 1)
        torch.cuda.synchronize()
        graph.replay()
    torch.cuda.synchronize()
    assert total.tolist() == [8 * 1024.0] * 4
    storage.close()


def test_flash_attention_and_sdpa_read_the_rows_in_place() -> None:
    heads, dim, rows = 8, 64, 1000
    size = RowSize(1, 2048, 2 * heads * dim * 2)
    storage = tensor_storage(size, card(), virtual=True)
    storage.resize(0, rows)
    cache = storage.layers(0)[0].view(torch.bfloat16).view(2048, 2, heads, dim)
    plain = torch.randn(rows, 2, heads, dim, dtype=torch.bfloat16, device="cuda")
    cache[:rows] = plain
    query = torch.randn(1, heads, rows, dim, dtype=torch.bfloat16, device="cuda")

    def attend(source: torch.Tensor) -> torch.Tensor:
        keys, values = (source[None, :, part].transpose(1, 2) for part in (0, 1))
        return torch.nn.functional.scaled_dot_product_attention(query, keys, values, is_causal=True)

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        assert cache[:rows].data_ptr() == storage.layers(0)[0].data_ptr(), "no copy"
        assert torch.equal(attend(cache[:rows]), attend(plain))
    storage.close()


@contextmanager
def card_engine(folder: Path, *, virtual: bool = True) -> Iterator[Engine]:
    engine = Engine()
    try:
        info = engine.load(str(folder), device="cuda", virtual_memory=virtual)
        assert info.kernels.startswith("Triton graphs") and not any("plain tensor" in note for note in info.notes)
        yield engine
    finally:
        engine.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A row is 8 KiB: 256 to a page, so that replies cross pages."""
    made = tiny_llama(
        tmp_path_factory.mktemp("model"), layers=3, hidden=2048, heads=16, kv_heads=16, dtype="bfloat16", positions=1024
    )
    return no_end_tokens(made)


def chat(engine: Engine, conversation: int, prompt: list[int], most: int = 60, **options: Any) -> Reply:
    return reply(engine, replace(request(prompt, most, **options), conversation=conversation))


def memory(engine: Engine) -> KvMemory:
    found = engine.memory()
    assert found is not None
    return found


def test_replies_are_the_same_over_pages_and_over_plain_tensors(folder: Path) -> None:
    tokens = []
    for virtual in (True, False):
        with card_engine(folder, virtual=virtual) as engine:
            first = chat(engine, 1, FIRST, 400, gamma=4)
            second = chat(engine, 2, SECOND, 300)
            back = chat(engine, 1, [*FIRST, *first.ids, 5, 6], 200, recipe=Recipe(weight_bits=16))
            plain = chat(engine, 3, FIRST, 400, plain=True)
            assert first.ids == plain.ids
            tokens.append((first.ids, second.ids, back.ids))
            if virtual:
                found = memory(engine)
                assert found.backend == "CUDA virtual memory" and found.mapped <= found.full
                assert (found.conversations, found.evicted) == (2, 1), "all chats together take no more than one may"
                assert back.finished.reused_tokens == len(FIRST) + len(first.ids) - 1
                assert found.fragmentation <= 2 * 3 * found.page_bytes, "a page a layer of each chat"
                assert found.late == 0
    assert tokens[0] == tokens[1]


def test_sampled_replies_and_edits_equal_a_fresh_engines(folder: Path) -> None:
    edited = [*FIRST[: len(FIRST) // 2], 3, 4]
    with card_engine(folder) as engine:
        chat(engine, 2, SECOND)
        chat(engine, 1, FIRST, 300)
        made = chat(engine, 1, edited)
        assert made.finished.reused_tokens == len(FIRST) // 2
        branch = chat(engine, 4, [*FIRST, 9])
        assert branch.finished.reused_tokens >= len(FIRST) // 2 and branch.finished.reason is StopReason.LENGTH
    with card_engine(folder) as engine:
        assert chat(engine, 1, edited, plain=True).ids == made.ids
        assert chat(engine, 2, [*FIRST, 9], plain=True).ids == branch.ids


@contextmanager
def full_card(pages_left: int) -> Iterator[None]:
    """While entered, no more than so many pages of the card can be had."""
    pages, held = CudaPages(card()), []
    free()
    try:
        while True:
            held.append(pages._create())
    except PageError:
        for _ in range(pages_left):
            pages.release(held.pop())
    try:
        yield
    finally:
        for handle in held:
            pages.release(handle)


def test_when_the_card_is_full_the_reply_ends_with_figures_and_the_next_works(folder: Path) -> None:
    with card_engine(folder) as engine:
        whole = chat(engine, 1, FIRST, 400)
        engine.forget()
        time.sleep(1.5)
        with full_card(4):  # enough for the first page of each of the three layers, not for the second
            broken = chat(engine, 1, FIRST, 400)
            short = chat(engine, 1, FIRST[:20], 20)
        assert broken.finished.reason is StopReason.FAILED, broken.finished
        assert "The KV cache needs 6 MB more" in str(broken.finished.message)
        assert 0 < len(broken.ids) < 400 and broken.ids == whole.ids[: len(broken.ids)]
        assert short.finished.reason is StopReason.LENGTH and short.finished.reused_tokens == 0
        assert chat(engine, 1, FIRST, 400).ids == whole.ids


def test_a_closed_chat_gives_the_card_its_memory_back(folder: Path) -> None:
    with card_engine(folder) as engine:
        chat(engine, 1, FIRST, 400)
        held = memory(engine).mapped
        before = free()
        engine.forget(1)
        began = time.monotonic()
        while memory(engine).mapped + memory(engine).pool and time.monotonic() - began < 5:
            time.sleep(0.01)
        assert time.monotonic() - began < 2 and free() >= before + held
