"""Invariant 1: with speculation, whatever the draft, a reply is the plain reply token for token."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from builders import tiny_llama
from engine.recipe import Recipe
from engine.records import CycleRecord, StopReason, TokenState
from engine.settings import Sampling
from engine.statistics import ReplyStatistics
from engine_rig import (
    RECIPES,
    Reply,
    loaded_engine,
    no_end_tokens,
    random_prompts,
    reply,
    request,
    script_engine,
)

DTYPES = ("float32", "float16", "bfloat16")
SAMPLED = (
    Sampling(temperature=0.7, seed=1),
    Sampling(temperature=1.0, top_k=20, top_p=0.9, min_p=0.02, repetition_penalty=1.2, seed=2),
    Sampling(temperature=0.0, repetition_penalty=1.5, seed=3),
    Sampling(temperature=2.0, seed=4),
)


def model(folder: Path, dtype: str = "float32") -> Path:
    return no_end_tokens(tiny_llama(folder, layers=3, dtype=dtype, std=0.25))


def check_record(record: CycleRecord) -> None:
    """What every cycle must satisfy, however it went."""
    assert record.accepted <= record.tested <= len(record.drafted_ids)
    assert len(record.drafted_probs) == len(record.drafted_ids)
    assert all(0 <= p <= 1 for p in (*record.drafted_probs, *record.full_probs))
    assert len(record.emitted_states) == len(record.emitted_ids)
    assert len(record.emitted_ids) + record.ignored == record.accepted + 1
    if record.next_id is not None:
        assert record.emitted_ids == (*record.drafted_ids[: record.accepted], record.next_id)
        assert record.next_prob is not None and 0 < record.next_prob <= 1
    if record.next_state is TokenState.CORRECTION:
        assert record.drafted_ids[record.accepted] != record.next_id
        assert record.rejected_ids == record.drafted_ids[record.accepted :]


def check_reply(made: Reply, prompt: list[int]) -> None:
    """Counters that sum up, and KV lengths that follow the tokens."""
    length = len(prompt) - 1
    statistics = ReplyStatistics()
    for index, record in enumerate(made.records):
        check_record(record)
        length += len(record.emitted_ids)
        assert (record.index, record.kv_length) == (index, length)
        statistics = statistics.with_cycle(record)
    assert statistics.accepted <= statistics.tested <= statistics.drafted
    states = [state for record in made.records for state in record.emitted_states]
    assert len(states) == statistics.emitted == made.finished.new_tokens == len(made.ids)
    assert statistics.corrections + statistics.bonuses + statistics.plain + states.count(TokenState.ACCEPTED) == len(
        states
    )
    assert all(len(event.pieces) == len(event.record.emitted_ids) for event in made.cycles)
    assert all(len(event.ghosts) == len(event.record.rejected_ids) for event in made.cycles)


@pytest.mark.parametrize("dtype", DTYPES)
def test_greedy_replies_equal_plain_ones_for_every_gamma(dtype: str, tmp_path: Path) -> None:
    with loaded_engine(model(tmp_path, dtype)) as engine:
        accepted = tested = 0
        for prompt in random_prompts(8, 290, seed=1):
            plain = reply(engine, request(prompt, plain=True))
            assert plain.drafted == 0 and len(plain.ids) == 40
            check_reply(plain, prompt)
            for gamma in (*range(1, 16), None):
                drafted = reply(engine, request(prompt, gamma=gamma))
                assert drafted.ids == plain.ids, (prompt, gamma)
                check_reply(drafted, prompt)
                accepted += sum(record.accepted for record in drafted.records)
                tested += sum(record.tested for record in drafted.records)
    assert 0 < accepted < tested, "the test must see both right and wrong drafts"


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_recipe_gives_the_plain_reply(dtype: str, tmp_path: Path) -> None:
    with loaded_engine(model(tmp_path, dtype)) as engine:
        drafts: dict[Recipe, list[tuple[int, ...]]] = {}
        for prompt in random_prompts(6, 290, seed=2):
            plain = reply(engine, request(prompt, plain=True)).ids
            for recipe in RECIPES:
                made = reply(engine, request(prompt, gamma=5, recipe=recipe))
                assert made.ids == plain, (prompt, recipe)
                assert {record.recipe for record in made.records} == {recipe}
                drafts.setdefault(recipe, []).extend(record.drafted_ids for record in made.records)
    assert len({tuple(ids) for ids in drafts.values()}) == len(RECIPES), "each recipe must draft in its own way"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sampling", SAMPLED, ids=lambda sampling: f"T{sampling.temperature}")
def test_sampled_replies_equal_plain_ones_of_the_same_seed(dtype: str, sampling: Sampling, tmp_path: Path) -> None:
    with loaded_engine(model(tmp_path, dtype)) as engine:
        for prompt in random_prompts(4, 290, seed=3):
            plain = reply(engine, request(prompt, plain=True, sampling=sampling))
            for gamma, recipe in zip((1, 3, 7, None), RECIPES, strict=True):
                made = reply(engine, request(prompt, gamma=gamma, recipe=recipe, sampling=sampling))
                assert made.ids == plain.ids, (prompt, gamma, recipe)
                assert made.finished.seed == sampling.seed
                check_reply(made, prompt)


PROMPT = random_prompts(1, 290, seed=4)[0]


@pytest.mark.parametrize("script", ["right", "wrong", "last wrong", "random"])
@pytest.mark.parametrize("gamma", [1, 2, 4, 15])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.0, seed=9)], ids=["greedy", "sampled"])
def test_forced_drafts_never_change_a_token(script: str, gamma: int, sampling: Sampling, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    with loaded_engine(model(tmp_path)) as engine:
        plain = reply(engine, request(PROMPT, 60, plain=True, sampling=sampling))
        truth = PROMPT + plain.ids
        first_of_block = len(PROMPT)

        def propose(position: int) -> int:
            right = truth[position]
            last = position == first_of_block + gamma - 1
            if script == "right" or (script == "last wrong" and not last):
                return right
            return int(random.integers(290)) if script == "random" else (right + 1) % 290

        def follow(event: object) -> None:
            nonlocal first_of_block
            record = getattr(event, "record", None)
            if record is not None:
                first_of_block = record.kv_length + 1

        script_engine(engine, script=propose)
        made = reply(engine, request(PROMPT, 60, gamma=gamma, sampling=sampling), follow)
    assert made.ids == plain.ids
    check_reply(made, PROMPT)
    blocks = [record for record in made.records if len(record.drafted_ids) == gamma]
    assert blocks
    if script == "right":
        assert all(record.accepted == gamma for record in blocks)
        assert {record.next_state for record in blocks} == {TokenState.BONUS}
    if script == "wrong":
        assert all((record.accepted, record.tested) == (0, 1) for record in blocks)
    if script == "last wrong":
        assert all((record.accepted, record.tested) == (gamma - 1, gamma) for record in blocks)


def test_a_draft_that_computes_nonsense_costs_speed_and_no_token(tmp_path: Path) -> None:
    with loaded_engine(model(tmp_path)) as engine:
        plain = reply(engine, request(PROMPT, plain=True)).ids
        runner = script_engine(engine)
        real = runner.inner.draft

        def damaged(token: int, position: int) -> np.ndarray:
            logits = real(token, position)
            if position % 3:
                logits[0, 7] = np.nan
            return logits

        runner.inner.draft = damaged  # type: ignore[method-assign]
        made = reply(engine, request(PROMPT, gamma=4))
        assert made.ids == plain and made.finished.reason is StopReason.LENGTH
        assert 0 < made.drafted < 4 * len(made.records)


def test_a_token_the_model_cannot_stand_is_no_harm_where_it_is_only_proposed(tmp_path: Path) -> None:
    """Plain decoding never feeds a wrong proposal to the model, so what the model makes of it must not matter."""
    from builders import read_safetensors, write_safetensors

    folder = model(tmp_path)
    poisoned = 123
    tensors = read_safetensors(folder)
    tensors["model.embed_tokens.weight"][poisoned] = np.nan
    write_safetensors(folder / "model.safetensors", tensors)
    with loaded_engine(folder) as engine:
        plain = reply(engine, request(PROMPT, plain=True))
        assert plain.finished.reason is StopReason.LENGTH and poisoned not in plain.ids
        truth = PROMPT + plain.ids
        script_engine(engine, script=lambda position: poisoned if position % 4 == 0 else truth[position])
        made = reply(engine, request(PROMPT, gamma=6))
        assert made.ids == plain.ids
        assert made.finished.reason is StopReason.LENGTH
        check_reply(made, PROMPT)
