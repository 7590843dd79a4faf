"""Replies over virtual memory: switching chats, edits, stops and faults give what a fresh engine gives (C19, C41)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from builders import tiny_llama
from engine.engine import Engine
from engine.memory.host_pages import PAGE_BYTES, HostPages
from engine.memory.pages import PageError
from engine.memory.report import KvMemory
from engine.recipe import Recipe
from engine.records import CycleEvent, Event, StopReason
from engine.settings import GenerateRequest
from engine_rig import Reply, loaded_engine, no_end_tokens, random_prompts, reply, request

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="host virtual memory is Linux's")

LAYERS, ROW = 2, 2 * 4 * 32 * 4  # bytes of a row: 1 KiB
ROWS_OF_PAGE = PAGE_BYTES // ROW
FIRST, SECOND = random_prompts(2, 290, seed=21)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tiny_llama(tmp_path_factory.mktemp("model"), layers=LAYERS, hidden=128, heads=4, kv_heads=4, positions=512)
    return no_end_tokens(made)


@pytest.fixture
def engine(folder: Path) -> Iterator[Engine]:
    with loaded_engine(folder) as made:
        yield made


def fresh(folder: Path, prompt: Sequence[int], most: int) -> list[int]:
    """What plain decoding gives in an engine that has seen nothing else."""
    with loaded_engine(folder) as engine:
        return reply(engine, request(prompt, most, plain=True)).ids


def chat(engine: Engine, conversation: int, prompt: Sequence[int], most: int = 40, gamma: int | None = 4) -> Reply:
    return reply(engine, replace(request(prompt, most, gamma=gamma), conversation=conversation))


def memory(engine: Engine) -> KvMemory:
    found = engine.memory()
    assert found is not None
    return found


def test_a_load_takes_no_memory_for_rows_and_a_reply_just_what_it_needs(engine: Engine) -> None:
    assert (memory(engine).backend, memory(engine).mapped) == ("host virtual memory", 0)
    made = chat(engine, 1, FIRST, 150)
    rows = len(FIRST) + len(made.ids) - 1
    found = memory(engine)
    assert found.used == rows * ROW * LAYERS
    assert found.mapped == -(-rows // ROWS_OF_PAGE) * PAGE_BYTES * LAYERS
    assert found.full == 512 * ROW * LAYERS and found.late == 0


def test_the_tokens_are_the_same_with_and_without_virtual_memory(folder: Path) -> None:
    tokens = []
    for virtual in (True, False):
        engine = Engine()
        try:
            info = engine.load(str(folder), device="cpu", virtual_memory=virtual)
            first = chat(engine, 1, FIRST, 150)
            tokens.append((first.ids, chat(engine, 2, SECOND).ids, chat(engine, 1, [*FIRST, *first.ids, 5]).ids))
            assert (memory(engine).page_bytes > 0) is virtual
            assert not any("plain tensor" in note for note in info.notes), "what was asked for needs no note"
        finally:
            engine.close()
    assert tokens[0] == tokens[1]


def test_going_back_to_a_chat_reads_only_what_is_new(engine: Engine, folder: Path) -> None:
    first = chat(engine, 1, FIRST)
    second = chat(engine, 2, SECOND)
    on = [*FIRST, *first.ids, 7, 8, 9]
    back = chat(engine, 1, on)
    assert back.finished.reused_tokens == len(FIRST) + len(first.ids) - 1
    assert back.ids == fresh(folder, on, 40)
    again = chat(engine, 2, [*SECOND, *second.ids, 3])
    assert again.finished.reused_tokens == len(SECOND) + len(second.ids) - 1
    assert again.ids == fresh(folder, [*SECOND, *second.ids, 3], 40)


def test_an_edit_and_a_regenerated_reply_equal_a_fresh_engines(engine: Engine, folder: Path) -> None:
    first = chat(engine, 1, FIRST)
    edited = [*FIRST[: len(FIRST) // 2], 11, 12, 13]
    made = chat(engine, 1, edited)
    assert made.finished.reused_tokens == len(FIRST) // 2
    assert made.ids == fresh(folder, edited, 40)
    assert chat(engine, 1, FIRST).ids == first.ids
    regenerated = chat(engine, 1, FIRST)
    assert regenerated.ids == first.ids and regenerated.finished.reused_tokens == len(FIRST) - 1


def test_a_copy_of_a_chat_starts_from_its_rows(engine: Engine, folder: Path) -> None:
    first = chat(engine, 1, FIRST)
    branch = [*FIRST, *first.ids[:20], 1]
    made = chat(engine, 2, branch)
    assert made.finished.reused_tokens == len(branch) - 1
    assert made.ids == fresh(folder, branch, 40)
    assert chat(engine, 1, [*FIRST, *first.ids, 2]).finished.reused_tokens == len(FIRST) + len(first.ids) - 1


@pytest.mark.parametrize("cycles", [0, 1, 3])
def test_after_a_stop_in_mid_reply_the_chat_and_others_go_on_as_in_a_fresh_engine(
    cycles: int, engine: Engine, folder: Path
) -> None:
    chat(engine, 2, SECOND)
    seen = 0

    def stop(event: Event) -> None:
        nonlocal seen
        if isinstance(event, CycleEvent):
            seen += 1
        if seen == cycles:
            engine.stop()

    stopped = reply(engine, replace(request(FIRST, 60, gamma=4), conversation=1), stop)
    assert stopped.finished.reason is StopReason.STOPPED
    whole = fresh(folder, FIRST, 60)
    assert stopped.ids == whole[: len(stopped.ids)]
    rest = chat(engine, 1, [*FIRST, *stopped.ids], 60 - len(stopped.ids))
    assert [*stopped.ids, *rest.ids] == whole
    assert chat(engine, 2, SECOND).ids == fresh(folder, SECOND, 40)


def test_another_recipe_keeps_every_chat(engine: Engine) -> None:
    chat(engine, 1, FIRST)
    chat(engine, 2, SECOND)
    for bits in (3, 16, 4):
        wanted = replace(request(FIRST, 10, recipe=Recipe(weight_bits=bits)), conversation=1)
        assert reply(engine, wanted).finished.reused_tokens == len(FIRST) - 1
    assert chat(engine, 2, SECOND, 10).finished.reused_tokens == len(SECOND) - 1


def test_a_closed_chats_memory_is_gone_and_the_others_stay(engine: Engine) -> None:
    chat(engine, 1, FIRST)
    chat(engine, 2, SECOND)
    before = memory(engine)
    engine.forget(1)
    assert 0 < memory(engine).mapped < before.mapped and memory(engine).conversations == 1
    engine.forget(2)
    assert (memory(engine).mapped, memory(engine).pool, memory(engine).used) == (0, 0, 0)
    assert chat(engine, 1, FIRST).finished.reused_tokens == 0


class Shortage:
    """Refuses memory from the `first`th growth on, while it lasts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first: int) -> None:
        self.left, self.lasts = first, True
        grow: Callable[..., None] = HostPages.map

        def short(pages: HostPages, address: int, handles: Sequence[int]) -> None:
            self.left -= 1
            if self.lasts and self.left < 0:
                raise PageError("there is none")
            grow(pages, address, handles)

        monkeypatch.setattr(HostPages, "map", short)


@pytest.mark.parametrize("first", range(6))
def test_without_memory_for_more_rows_the_reply_ends_with_figures_and_the_next_works(
    first: int, engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shortage = Shortage(monkeypatch, first)
    broken = chat(engine, 1, FIRST, 200)
    assert broken.finished.reason is StopReason.FAILED
    message = str(broken.finished.message)
    assert message.startswith("The KV cache needs ") and "this computer has" in message and "there is none" in message
    whole = unpaged(folder, FIRST, 200)
    assert broken.ids == whole[: len(broken.ids)] and broken.finished.new_tokens == len(broken.ids)
    assert bool(broken.ids) is (first >= LAYERS), "from the second growth on there is a half reply, and it is kept"
    assert memory(engine).mapped == 0, "what it held is given back"
    shortage.lasts = False
    after = chat(engine, 1, FIRST, 200)
    assert after.finished.reused_tokens == 0 and after.ids == whole


def unpaged(folder: Path, prompt: Sequence[int], most: int) -> list[int]:
    """As `fresh`, over a plain block."""
    engine = Engine()
    try:
        engine.load(str(folder), device="cpu", virtual_memory=False)
        return reply(engine, request(prompt, most, plain=True)).ids
    finally:
        engine.close()


def test_a_prompt_that_does_not_fit_memory_is_refused_before_any_work(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Shortage(monkeypatch, 0)
    long = random_prompts(1, 290, seed=3)[0] * 20
    refused = reply(engine, request(long[:300], 10))
    assert refused.finished.reason is StopReason.FAILED and not refused.cycles
    assert [event.done for event in refused.prefills] == [], "not a token was read"
    assert "300 tokens" in str(refused.finished.message)


def test_idle_chats_give_way_to_the_one_in_use(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    chat(engine, 2, SECOND)
    granted = HostPages.map
    refused = 0

    def scarce(pages: HostPages, address: int, handles: Sequence[int]) -> None:
        nonlocal refused
        if memory(engine).conversations:
            refused += 1
            raise PageError("others have it")
        granted(pages, address, handles)

    monkeypatch.setattr(HostPages, "map", scarce)
    made = chat(engine, 1, FIRST)
    assert made.finished.reason is StopReason.LENGTH and refused == 1
    assert memory(engine).evicted == 1


def test_a_refused_reservation_is_named_once_and_everything_works(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pages: HostPages, size: int) -> int:
        raise PageError("there are no addresses")

    monkeypatch.setattr(HostPages, "reserve", refuse)
    engine = Engine()
    try:
        info = engine.load(str(folder), device="cpu")
        note = "The KV cache is a plain tensor of full length, because there are no addresses."
        assert info.notes.count(note) == 1
        assert chat(engine, 1, FIRST).ids == unpaged(folder, FIRST, 40)
        assert (memory(engine).backend, memory(engine).reason) == ("a plain tensor", "there are no addresses")
    finally:
        engine.close()


def test_every_request_names_its_conversation(engine: Engine) -> None:
    assert GenerateRequest(prompt="a").conversation == 0
    reply(engine, request(FIRST, 10))
    assert chat(engine, 0, FIRST, 10).finished.reused_tokens == len(FIRST) - 1
