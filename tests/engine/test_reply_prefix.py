"""Replies that begin with given tokens: text, figures and ends, and the continuation that plain decoding gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builders import byte_tokenizer, tiny_llama
from engine.engine import Engine
from engine.errors import BadSetting, PromptTooLong
from engine.recording import joined_ids
from engine.records import Opening, PrefillProgress, StopReason
from engine.settings import Message, Sampling
from engine_rig import Reply, end_tokens, loaded_engine, no_end_tokens, random_prompts, reply, request

PROMPTS = random_prompts(4, 290, seed=11)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return no_end_tokens(tiny_llama(tmp_path_factory.mktemp("model"), layers=3, std=0.25))


@pytest.fixture
def engine(folder: Path) -> Iterator[Engine]:
    with loaded_engine(folder) as made:
        yield made


@pytest.fixture
def spoken(tmp_path: Path) -> Iterator[Engine]:
    """An engine whose model has a tokenizer of bytes."""
    with loaded_engine(byte_tokenizer(tiny_llama(tmp_path, std=0.25))) as made:
        yield made


def opening(made: Reply) -> Opening:
    first = made.events[0]
    assert isinstance(first, Opening)
    return first


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.9, seed=4)], ids=["greedy", "sampled"])
def test_the_continuation_is_plain_decoding_of_the_same_ids(
    engine: Engine, prompt: list[int], sampling: Sampling
) -> None:
    first = reply(engine, request(prompt, 30, gamma=4, sampling=sampling))
    forced = (*first.ids[:12], (first.ids[12] + 1) % 290)
    made = reply(engine, replace(request(prompt, 40, gamma=4, sampling=sampling), reply_prefix_ids=forced))
    engine.forget()
    plain = reply(engine, request([*prompt, *forced], 40, plain=True, sampling=sampling))
    assert made.ids == plain.ids
    assert made.drafted > 0
    assert opening(made).ids == forced
    assert joined_ids(made.events) == [*forced, *made.ids]


def test_with_its_own_tokens_and_seed_a_reply_is_the_same_again(engine: Engine) -> None:
    sampling = Sampling(temperature=1.0, seed=9)
    first = reply(engine, request(PROMPTS[0], 40, gamma=4, sampling=sampling))
    prefix = tuple(first.ids[:17])
    again = reply(engine, replace(request(PROMPTS[0], 23, gamma=3, sampling=sampling), reply_prefix_ids=prefix))
    assert [*prefix, *again.ids] == first.ids


def test_rows_of_the_earlier_reply_are_used(engine: Engine) -> None:
    first = reply(engine, request(PROMPTS[0], 40, gamma=4))
    made = reply(engine, replace(request(PROMPTS[0], 10, gamma=4), reply_prefix_ids=(*first.ids[:20], 7)))
    assert made.finished.reused_tokens == len(PROMPTS[0]) + 20
    assert made.finished.prompt_tokens == len(PROMPTS[0]) + 21
    assert made.finished.new_tokens == 10


def test_its_text_stands_before_that_of_the_cycles(spoken: Engine) -> None:
    assert spoken._loaded is not None and spoken._loaded.tokenizer is not None
    wanted = request(PROMPTS[1], 20, gamma=4)
    first = reply(spoken, wanted)
    made = reply(spoken, replace(wanted, max_new_tokens=12, reply_prefix_ids=tuple(first.ids[:8])))
    text = "".join(opening(made).pieces) + made.text
    assert text == spoken._loaded.tokenizer.decode([*first.ids[:8], *made.ids])
    assert isinstance(made.events[1], PrefillProgress)


def test_half_a_character_is_completed_by_the_first_cycle(spoken: Engine) -> None:
    assert spoken._loaded is not None and spoken._loaded.tokenizer is not None
    euro = spoken._loaded.tokenizer.encode("€", allow_control=False)
    assert len(euro) == 3
    made = reply(spoken, replace(request(PROMPTS[0], 4), reply_prefix_ids=tuple(euro[:2])))
    assert opening(made).pieces == ("", "")
    whole = reply(spoken, replace(request(PROMPTS[0], 0), reply_prefix_ids=tuple(euro)))
    assert opening(whole).pieces == ("", "", "€")


def test_an_end_token_among_them_ends_the_reply(tmp_path: Path) -> None:
    folder = end_tokens(tiny_llama(tmp_path, std=0.25), 17)
    with loaded_engine(folder) as engine:
        made = reply(engine, replace(request(PROMPTS[0], 20), reply_prefix_ids=(5, 17, 6)))
        assert opening(made).ids == (5, 17)
        assert made.records == () and made.finished.reason is StopReason.END_TOKEN
        after = reply(engine, request(PROMPTS[0], 20))
        engine.forget()
        assert after.ids == reply(engine, request(PROMPTS[0], 20, plain=True)).ids


def test_a_stop_string_among_them_ends_the_reply(spoken: Engine) -> None:
    assert spoken._loaded is not None and spoken._loaded.tokenizer is not None
    ids = tuple(spoken._loaded.tokenizer.encode("one STOP two", allow_control=False))
    made = reply(spoken, replace(request(PROMPTS[0], 20), reply_prefix_ids=ids, stop_strings=("STOP",)))
    assert made.finished.reason is StopReason.STOP_STRING
    assert "".join(opening(made).pieces) + made.text == "one "


def test_after_a_chat_prompt_they_are_the_assistants_first_words(spoken: Engine) -> None:
    assert spoken._loaded is not None and spoken._loaded.tokenizer is not None
    hello = tuple(spoken._loaded.tokenizer.encode("Hello", allow_control=False))
    wanted = replace(request([1], 10, gamma=3), prompt_ids=None, messages=(Message("user", "Hi"),))
    ids = spoken._loaded.chat_ids(wanted.messages)
    made = reply(spoken, replace(wanted, reply_prefix_ids=hello))
    assert made.ids == reply(spoken, request([*ids, *hello], 10, plain=True)).ids


def test_too_many_and_unknown_ids_are_refused_at_once(engine: Engine) -> None:
    with pytest.raises(PromptTooLong):
        engine.generate(replace(request(PROMPTS[0]), reply_prefix_ids=(1,) * 5000))
    with pytest.raises(BadSetting, match="vocabulary"):
        engine.generate(replace(request(PROMPTS[0]), reply_prefix_ids=(-1,)))


def test_without_them_there_is_no_opening(engine: Engine) -> None:
    assert not any(isinstance(event, Opening) for event in reply(engine, request(PROMPTS[0], 5)).events)
