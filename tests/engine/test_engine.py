"""The engine's public face in a reply's life: refusals, one reply at a time, stopping, faults, recipes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from builders import byte_tokenizer, read_safetensors, tiny_llama, write_safetensors
from engine.engine import Engine
from engine.errors import BadSetting, EngineBusy, NoModel, PromptTooLong, SpecularError
from engine.recipe import Recipe
from engine.records import CycleEvent, Finished, PrefillProgress, StopReason
from engine.settings import GenerateRequest, Message, Speculation
from engine_rig import DEFAULT, loaded_engine, no_end_tokens, random_prompts, reply, request, script_engine

PROMPT = random_prompts(1, 290, seed=31)[0]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    folder = no_end_tokens(tiny_llama(tmp_path / "model", layers=3, std=0.25))
    with loaded_engine(folder) as made:
        yield made


def test_without_a_model_every_command_says_so() -> None:
    engine = Engine()
    assert engine.info is None
    with pytest.raises(NoModel):
        engine.generate(request(PROMPT))
    with pytest.raises(NoModel):
        engine.count_tokens((Message("user", "hello"),))
    engine.stop()
    engine.unload()
    engine.close()


def test_events_come_in_order_and_the_last_is_finished(engine: Engine) -> None:
    prompt = list(range(150))
    made = reply(engine, request(prompt, 10, gamma=2))
    kinds = [type(event) for event in made.events]
    assert kinds == sorted(kinds, key=[PrefillProgress, CycleEvent, Finished].index)
    done = [event.done for event in made.prefills]
    assert (done[0], done[-1]) == (0, 150) and {event.total for event in made.prefills} == {150}
    assert all(0 < later - earlier <= 64 for earlier, later in pairwise(done))
    assert (made.finished.prompt_tokens, made.finished.reused_tokens) == (150, 0)
    assert made.finished.prefill_seconds > 0 and made.finished.decode_seconds > 0
    assert made.finished.message is None


def test_while_a_reply_runs_the_engine_is_busy_and_the_reply_unharmed(engine: Engine) -> None:
    wanted = request(PROMPT, 30, gamma=3)
    alone = reply(engine, wanted).ids
    events = engine.generate(wanted)
    first = [next(events) for _ in range(3)]
    for command in (lambda: engine.generate(wanted), engine.unload, lambda: engine.load("starter")):
        with pytest.raises(EngineBusy):
            command()
    rest = [*first, *events]
    assert [token for event in rest if isinstance(event, CycleEvent) for token in event.record.emitted_ids] == alone
    assert reply(engine, wanted).ids == alone


def test_of_two_replies_begun_before_either_ran_the_second_is_refused_not_mixed(engine: Engine) -> None:
    first, second = engine.generate(request(PROMPT, 20)), engine.generate(request(PROMPT, 20))
    next(first)
    with pytest.raises(EngineBusy):
        next(second)
    assert isinstance([*first][-1], Finished)


@pytest.mark.parametrize("events_before", [1, 3])
def test_closing_the_iterator_early_is_a_stop(engine: Engine, events_before: int) -> None:
    wanted = request(PROMPT, 30, gamma=3)
    alone = reply(engine, wanted).ids
    events = engine.generate(wanted)
    for _ in range(events_before):
        next(events)
    events.close()  # type: ignore[attr-defined]
    assert reply(engine, wanted).ids == alone


def test_a_reply_begun_before_its_model_was_unloaded_is_refused(engine: Engine, tmp_path: Path) -> None:
    events = engine.generate(request(PROMPT))
    engine.unload()
    with pytest.raises(NoModel):
        next(events)
    engine.load(str(tmp_path / "model"), device="cpu")
    assert reply(engine, request(PROMPT, 5)).finished.new_tokens == 5


def test_an_empty_prompt_is_refused(engine: Engine) -> None:
    with pytest.raises(PromptTooLong, match="empty"):
        engine.generate(request([]))


@pytest.mark.parametrize("bad", [290, -1, 10**12])
def test_ids_outside_the_vocabulary_are_refused_by_number(engine: Engine, bad: int) -> None:
    with pytest.raises(BadSetting, match=rf"{bad} .*290"):
        engine.generate(request([1, bad, 2]))
    assert reply(engine, request(PROMPT, 5)).finished.new_tokens == 5


def test_text_whose_tokens_the_model_has_no_rows_for_is_refused(tmp_path: Path) -> None:
    """The tokenizer knows 290 tokens, the model 270: what lies behind the matrix must never be read."""
    folder = byte_tokenizer(no_end_tokens(tiny_llama(tmp_path / "short", vocab=270)))
    with loaded_engine(folder) as engine:
        with pytest.raises(BadSetting, match="270"):
            engine.generate(GenerateRequest(messages=(Message("user", "hello world"),)))
        made = reply(engine, GenerateRequest(prompt="he", max_new_tokens=30))
        assert len(made.ids) == 30 and max(made.ids) < 270


def test_text_for_a_model_without_a_tokenizer_is_refused(engine: Engine) -> None:
    for wanted in (GenerateRequest(prompt="hello"), GenerateRequest(messages=(Message("user", "hello"),))):
        with pytest.raises(BadSetting, match="no tokenizer"):
            engine.generate(wanted)


BAD_RECIPES = (
    Recipe(weight_bits=7),
    Recipe(input_sparsity=0.3),
    Recipe(head_share=0.5),
    Recipe(reduced_vocabulary=0),
    Recipe(kv_window=0),
    Recipe(neuron_share=float("nan")),
    Recipe(neuron_share=0.0),
)


@pytest.mark.parametrize("recipe", BAD_RECIPES, ids=range(len(BAD_RECIPES)))
def test_a_recipe_the_device_cannot_run_is_refused_with_a_sentence(engine: Engine, recipe: Recipe) -> None:
    wanted = request(PROMPT, 30, gamma=3)
    before = reply(engine, wanted)
    with pytest.raises(BadSetting, match=r"^The draft.*\.$"):
        engine.generate(request(PROMPT, 30, recipe=recipe))
    after = reply(engine, wanted)
    assert after.ids == before.ids
    assert {record.recipe for record in after.records} == {DEFAULT}


def test_a_request_without_a_recipe_gets_the_models_default_again(engine: Engine) -> None:
    skipping = Recipe(weight_bits=16, skipped_mlp=(0,))
    made = reply(engine, request(PROMPT, 20, gamma=2, recipe=skipping))
    assert {record.recipe for record in made.records} == {skipping}
    made = reply(engine, request(PROMPT, 20, gamma=2))
    assert {record.recipe for record in made.records} == {DEFAULT}


def test_a_recipe_costs_nothing_while_speculation_is_off(engine: Engine) -> None:
    assert engine._loaded is not None
    before = engine._loaded.runner.draft_bytes
    off = Speculation(enabled=False, recipe=Recipe(weight_bits=16, neuron_share=0.5))
    reply(engine, GenerateRequest(prompt_ids=tuple(PROMPT), max_new_tokens=5, speculation=off))
    assert engine._loaded.runner.draft_bytes == before


def test_too_little_memory_for_a_recipe_is_a_sentence_and_the_engine_goes_on(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engine._loaded is not None

    def fail(recipe: Recipe) -> None:
        raise MemoryError

    monkeypatch.setattr(engine._loaded.runner, "use_recipe", fail)
    with pytest.raises(SpecularError, match="memory"):
        engine.generate(request(PROMPT, recipe=Recipe(weight_bits=16)))
    assert reply(engine, request(PROMPT, 5)).finished.new_tokens == 5


@pytest.mark.parametrize("shortage", [MemoryError, torch.OutOfMemoryError], ids=["host", "card"])
def test_too_little_memory_in_a_reply_keeps_what_was_written_and_trusts_no_cache(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, shortage: type[Exception]
) -> None:
    assert engine._loaded is not None
    whole = reply(engine, request(PROMPT, 12)).ids
    runner, passes = engine._loaded.runner, 0
    full = runner.full

    def fail_late(*arguments: object) -> np.ndarray:
        nonlocal passes
        passes += 1
        if passes == 3:
            raise shortage
        return full(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(runner, "full", fail_late)
        broken = reply(engine, request(PROMPT, 12))
    assert broken.finished.reason is StopReason.FAILED
    assert broken.finished.message == "There is not enough memory to go on."
    assert 0 < len(broken.ids) < 12 and broken.ids == whole[: len(broken.ids)]
    after = reply(engine, request(PROMPT, 12))
    assert after.ids == whole and after.finished.reused_tokens == 0


@pytest.mark.parametrize(
    "name",
    [
        "model.embed_tokens.weight",
        "model.layers.0.self_attn.k_proj.weight",
        "model.layers.1.self_attn.v_proj.weight",
        "model.layers.0.input_layernorm.weight",
        "model.layers.2.mlp.gate_proj.weight",
        "model.layers.2.mlp.down_proj.weight",
        "lm_head.weight",
    ],
)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_no_numbers_fail_the_reply_with_a_sentence(name: str, bad: float, tmp_path: Path) -> None:
    folder = no_end_tokens(tiny_llama(tmp_path / "damaged", layers=3, std=0.25))
    tensors = read_safetensors(folder)
    tensors[name].flat[3 if tensors[name].ndim == 1 else slice(None)] = bad
    write_safetensors(folder / "model.safetensors", tensors)
    with loaded_engine(folder) as engine:
        for _ in range(2):
            made = reply(engine, request(PROMPT, 20, gamma=3))
            assert made.finished.reason is StopReason.FAILED
            assert made.finished.message is not None
            assert made.finished.message.startswith("The model computed") and made.finished.message.endswith(".")
            assert made.ids == [] and made.finished.reused_tokens == 0


def test_one_damaged_row_fails_the_reply_where_it_is_reached_and_keeps_what_was_written(tmp_path: Path) -> None:
    folder = no_end_tokens(tiny_llama(tmp_path / "damaged", layers=3, std=0.25))
    with loaded_engine(folder) as engine:
        whole = reply(engine, request(PROMPT, 40, plain=True)).ids
    place = next(i for i in range(10, 40) if whole[i] not in PROMPT + whole[:i])
    tensors = read_safetensors(folder)
    tensors["model.embed_tokens.weight"][whole[place]] = np.nan
    write_safetensors(folder / "model.safetensors", tensors)
    with loaded_engine(folder) as engine:
        plain = reply(engine, request(PROMPT, 40, plain=True))
        assert plain.finished.reason is StopReason.FAILED
        assert plain.ids == whole[: place + 1]
        for gamma in (1, 4, 15, None):
            made = reply(engine, request(PROMPT, 40, gamma=gamma))
            assert made.finished.reason is StopReason.FAILED
            assert made.ids == plain.ids, "speculation must not lose what plain decoding had written"


def test_a_fault_of_ours_escapes_and_leaves_the_engine_idle(engine: Engine) -> None:
    def fail(earlier: int) -> None:
        raise ZeroDivisionError

    runner = script_engine(engine, before_full=fail)
    with pytest.raises(ZeroDivisionError):
        reply(engine, request(PROMPT, 5))
    runner.before_full = lambda earlier: None
    assert reply(engine, request(PROMPT, 5)).finished.new_tokens == 5


def test_c49_a_stop_during_a_long_prefill_ends_it_at_the_next_chunk(engine: Engine) -> None:
    prompt = np.random.default_rng(0).integers(0, 290, 250).tolist()
    alone = reply(engine, request(prompt, 5)).ids
    reply(engine, request([7], 1))
    running, stopped = threading.Event(), threading.Event()

    def stop_from_outside() -> None:
        assert running.wait(20)
        engine.stop()
        stopped.set()

    def second_chunk_waits(earlier: int) -> None:
        if earlier == 1:
            running.set()
            assert stopped.wait(20)

    thread = threading.Thread(target=stop_from_outside)
    thread.start()
    runner = script_engine(engine, before_full=second_chunk_waits)
    made = reply(engine, request(prompt, 5))
    thread.join()
    assert made.finished.reason is StopReason.STOPPED and made.ids == []
    assert runner.fulls == 2, "the chunk in progress ends, the next does not begin"
    read = made.prefills[-1].done
    assert 0 < read <= 128
    again = reply(engine, request(prompt, 5))
    assert again.ids == alone
    assert again.finished.reused_tokens == read, "what was read before the stop is still good"


@pytest.mark.parametrize("plain", [True, False])
def test_c49_a_stop_from_another_thread_in_mid_reply_takes_effect_at_the_next_pass(engine: Engine, plain: bool) -> None:
    alone = reply(engine, request(PROMPT, 60, gamma=4)).ids
    running, stopped = threading.Event(), threading.Event()

    def stop_from_outside() -> None:
        assert running.wait(20)
        engine.stop()
        stopped.set()

    def eighth_pass_waits(earlier: int) -> None:
        if earlier == 7:
            running.set()
            assert stopped.wait(20)

    thread = threading.Thread(target=stop_from_outside)
    thread.start()
    runner = script_engine(engine, **{"before_full" if plain else "before_draft": eighth_pass_waits})
    made = reply(engine, request(PROMPT, 60, gamma=4, plain=plain))
    thread.join()
    assert made.finished.reason is StopReason.STOPPED
    assert (runner.fulls if plain else runner.drafts) == 8
    assert 0 < len(made.ids) < 60 and made.ids == alone[: len(made.ids)]
    assert reply(engine, request(PROMPT, 60, gamma=4)).ids == alone


def test_a_stop_between_asking_and_the_first_event_ends_the_reply_without_a_token(engine: Engine) -> None:
    events = engine.generate(request(PROMPT, 20))
    engine.stop()
    last = [*events][-1]
    assert isinstance(last, Finished)
    assert (last.reason, last.new_tokens) == (StopReason.STOPPED, 0)
    assert reply(engine, request(PROMPT, 20)).finished.reason is StopReason.LENGTH
