"""C05, C13, C15, C17: a reply ends at the very token where it must, also in the middle of a block."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import byte_tokenizer, tiny_llama
from engine.errors import BadSetting, PromptTooLong
from engine.records import StopReason, TokenState
from engine.settings import GenerateRequest, Message, Sampling, Speculation
from engine.statistics import ReplyStatistics
from engine_rig import Reply, end_tokens, loaded_engine, no_end_tokens, random_prompts, reply, request, script_engine

PROMPT = random_prompts(1, 290, seed=21)[0]


def model(folder: Path) -> Path:
    return no_end_tokens(tiny_llama(folder, layers=2, std=0.3))


def truth_of(folder: Path, count: int = 40) -> list[int]:
    with loaded_engine(folder) as engine:
        return reply(engine, request(PROMPT, count, plain=True)).ids


def counters(made: Reply) -> ReplyStatistics:
    statistics = ReplyStatistics()
    for record in made.records:
        statistics = statistics.with_cycle(record)
    return statistics


@pytest.mark.parametrize("accepting", [True, False], ids=["all drafts right", "own drafts"])
def test_c13_an_end_token_anywhere_in_a_block_ends_the_reply_there(accepting: bool, tmp_path: Path) -> None:
    folder = model(tmp_path)
    truth = truth_of(folder)
    new = [index for index in range(14) if truth[index] not in truth[:index]]
    assert len(new) > 8
    ignored: set[int] = set()
    for index in new:
        end_tokens(folder, truth[index])
        wanted = truth[: index + 1]
        with loaded_engine(folder) as engine:
            if accepting:
                full = PROMPT + truth
                script_engine(engine, script=lambda position, ids=full: ids[position])
            for gamma in range(1, 9):
                made = reply(engine, request(PROMPT, 40, gamma=gamma))
                assert made.ids == wanted, (index, gamma)
                assert made.finished.reason is StopReason.END_TOKEN
                assert made.finished.new_tokens == len(wanted)
                last = made.records[-1]
                assert last.kv_length == len(PROMPT) + len(wanted) - 1
                assert last.emitted_ids[-1] == truth[index]
                assert engine._loaded is not None
                assert list(engine._loaded.runner.kv.ids) == PROMPT + wanted[:-1]
                statistics = counters(made)
                assert statistics.emitted == len(wanted)
                assert statistics.accepted <= statistics.tested <= statistics.drafted
                assert statistics.ignored == last.ignored
                ignored.add(last.ignored)
    if accepting:
        assert ignored >= set(range(8)), "the end must have stood at every place of a block"


def test_c13_the_turn_after_an_end_in_mid_block_equals_a_fresh_engine(tmp_path: Path) -> None:
    folder = model(tmp_path)
    truth = truth_of(folder)
    end_tokens(folder, truth[4])
    with loaded_engine(folder) as engine:
        full = PROMPT + truth
        runner = script_engine(engine, script=lambda position: full[position])
        made = reply(engine, request(PROMPT, gamma=8))
        assert made.ids == truth[:5] and made.records[-1].ignored > 0
        history = PROMPT + made.ids + [9, 8, 7]
        runner.script = None
        after = reply(engine, request(history, gamma=3))
    with loaded_engine(folder) as fresh:
        assert reply(fresh, request(history, plain=True)).ids == after.ids


def test_c05_every_end_token_of_the_list_ends_the_reply(tmp_path: Path) -> None:
    folder = model(tmp_path)
    truth = truth_of(folder)
    for index in (2, 5):
        end_tokens(folder, [1, truth[index]])
        with loaded_engine(folder) as engine:
            first = truth.index(truth[index])
            assert reply(engine, request(PROMPT, gamma=4)).ids == truth[: first + 1]


@pytest.mark.parametrize("gamma", [1, 3, 7])
def test_c15_exactly_so_many_tokens_as_asked_for(gamma: int, tmp_path: Path) -> None:
    folder = model(tmp_path)
    truth = truth_of(folder)
    with loaded_engine(folder) as engine:
        full = PROMPT + truth
        for script in (None, lambda position: full[position], lambda position: (full[position] + 1) % 290):
            script_engine(engine, script=script)
            for most in range(21):
                made = reply(engine, request(PROMPT, most, gamma=gamma))
                assert made.ids == truth[:most]
                assert made.finished.reason is StopReason.LENGTH
                assert made.finished.new_tokens == most == len(made.ids)
                statistics = counters(made)
                assert statistics.emitted == most
                assert statistics.ignored == 0, "nothing is drafted that the limit must throw away"
                assert statistics.accepted <= statistics.tested <= statistics.drafted
                states = [state for record in made.records for state in record.emitted_states]
                assert len(states) == most
                assert not {TokenState.REJECTED, TokenState.IGNORED} & set(states)
            assert engine._loaded is not None
            engine._loaded.runner = engine._loaded.runner.inner  # type: ignore[attr-defined]


def test_zero_tokens_make_no_cycle_and_leave_the_prompt_in_the_cache(tmp_path: Path) -> None:
    with loaded_engine(model(tmp_path)) as engine:
        made = reply(engine, request(PROMPT, 0))
        assert made.cycles == () and made.finished.reason is StopReason.LENGTH
        assert reply(engine, request(PROMPT, 5)).finished.reused_tokens == len(PROMPT) - 1


@pytest.mark.parametrize("gamma", [None, 1, 5, 15])
def test_c17_a_reply_fills_the_context_to_the_last_position(gamma: int | None, tmp_path: Path) -> None:
    folder = model(tmp_path)
    prompt = list(range(20, 30))
    with loaded_engine(folder, context=32) as engine:
        plain = reply(engine, request(prompt, None, plain=True))
        made = reply(engine, request(prompt, None, gamma=gamma))
        for each in (plain, made):
            assert each.finished.reason is StopReason.CONTEXT_FULL
            assert each.finished.new_tokens == len(each.ids) == 22
        assert made.ids == plain.ids
        short = reply(engine, request(list(range(31)), None, gamma=gamma))
        assert short.finished.reason is StopReason.CONTEXT_FULL and len(short.ids) == 1
    with loaded_engine(folder) as wide:
        assert reply(wide, request(prompt, 22, plain=True)).ids == plain.ids


def test_c17_a_limit_and_a_full_context_at_once_count_as_the_limit(tmp_path: Path) -> None:
    with loaded_engine(model(tmp_path), context=32) as engine:
        made = reply(engine, request(list(range(20, 30)), 22, gamma=3))
        assert made.finished.reason is StopReason.LENGTH and len(made.ids) == 22


@pytest.mark.parametrize("length", [32, 33, 2000])
def test_c17_a_prompt_longer_than_the_context_is_refused_with_both_numbers(length: int, tmp_path: Path) -> None:
    folder = model(tmp_path)
    with loaded_engine(folder, context=32) as engine:
        before = reply(engine, request(PROMPT[:8], 10)).ids
        with pytest.raises(PromptTooLong, match=rf"\b{length} tokens.*\b32\b"):
            engine.generate(request([5] * length))
        assert reply(engine, request(PROMPT[:8], 10)).ids == before


def test_c17_a_chat_that_grows_past_the_context_says_so_and_can_go_on_shortened(tmp_path: Path) -> None:
    folder = byte_tokenizer(model(tmp_path))
    with loaded_engine(folder) as engine:
        messages: list[Message] = []
        refused = 0
        for turn in range(40):
            messages.append(Message("user", f"turn {turn} hello"))
            wanted = GenerateRequest(messages=tuple(messages), max_new_tokens=6)
            try:
                made = reply(engine, wanted)
            except PromptTooLong as error:
                refused += 1
                assert str(engine.count_tokens(messages)) in str(error) and "256" in str(error)
                messages = messages[-1:]
                made = reply(engine, GenerateRequest(messages=tuple(messages), max_new_tokens=6))
            assert len(made.ids) <= 6 and made.finished.reason is not StopReason.FAILED
            messages.append(Message("assistant", made.text))
        assert refused > 0


def test_stop_strings_end_the_reply_inside_a_block_and_are_not_part_of_it(tmp_path: Path) -> None:
    folder = byte_tokenizer(model(tmp_path))
    with loaded_engine(folder) as engine:
        base = GenerateRequest(prompt="hello the cat", max_new_tokens=60, speculation=Speculation(enabled=False))
        plain = reply(engine, base)
        assert len(plain.text) > 30
        for start in (3, 10, 20):
            stop = plain.text[start : start + 3]
            wanted = plain.text[: plain.text.index(stop)]
            seen = set()
            for gamma in (1, 2, 5, 9, 15):
                made = reply(
                    engine,
                    GenerateRequest(
                        prompt="hello the cat",
                        max_new_tokens=60,
                        stop_strings=(stop,),
                        speculation=Speculation(gamma=gamma),
                    ),
                )
                assert made.text == wanted, (stop, gamma)
                assert made.finished.reason is StopReason.STOP_STRING
                seen.add(tuple(made.ids))
            assert len(seen) == 1, "the ids up to the stop string do not depend on gamma"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1])
def test_settings_that_make_no_sense_are_refused_by_name(value: float) -> None:
    with pytest.raises(BadSetting, match="temperature"):
        Sampling(temperature=value)
    with pytest.raises(BadSetting, match="top_p"):
        Sampling(top_p=value)
    with pytest.raises(BadSetting, match="max_new_tokens"):
        GenerateRequest(prompt_ids=(1,), max_new_tokens=-1)
    with pytest.raises(BadSetting, match="gamma"):
        Speculation(gamma=0)
