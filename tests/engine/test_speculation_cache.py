"""C19, C27: the KV cache after speculation holds what one full pass over the same tokens writes, in every layer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from builders import tiny_llama
from engine.engine import Engine
from engine.errors import NumericFault
from engine.records import StopReason
from engine.settings import Sampling
from engine_rig import (
    RECIPES,
    cache_rows,
    compiled_runner,
    loaded_engine,
    no_end_tokens,
    random_prompts,
    reply,
    request,
    same_bits,
    script_engine,
    step_logits,
)

DTYPES = ("float32", "float16", "bfloat16")
PROMPT = random_prompts(1, 290, seed=14)[0]


def model(folder: Path, dtype: str = "float32") -> Path:
    return no_end_tokens(tiny_llama(folder, layers=3, dtype=dtype, std=0.25))


def one_pass(folder: Path, ids: Sequence[int]) -> list[np.ndarray]:
    """The KV cache of a fresh runner after full passes over the ids and nothing else."""
    with compiled_runner(folder) as runner:
        for first in range(0, len(ids), 64):
            runner.full(ids[first : first + 64], first, 0)
        return [layer[: len(ids)].copy() for layer in runner._memory.cache]


def cached_ids(engine: Engine) -> list[int]:
    assert engine._loaded is not None
    return list(engine._loaded.runner.kv.ids)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("recipe", RECIPES, ids=range(len(RECIPES)))
def test_after_cycles_every_layer_equals_one_full_pass(dtype: str, recipe: object, tmp_path: Path) -> None:
    folder = model(tmp_path, dtype)
    with loaded_engine(folder) as engine:
        made = reply(engine, request(PROMPT, 50, gamma=4, recipe=recipe))  # type: ignore[arg-type]
        ids = (PROMPT + made.ids)[:-1]
        assert any(record.rejected_ids for record in made.records)
        assert cached_ids(engine) == ids
        assert same_bits(cache_rows(engine, len(ids)), one_pass(folder, ids))


@pytest.mark.parametrize("stop_at", [0, 1, 2, 5, 11])
def test_a_stop_in_mid_draft_keeps_whole_cycles_and_a_clean_cache(stop_at: int, tmp_path: Path) -> None:
    folder = model(tmp_path)
    with loaded_engine(folder) as engine:
        plain = reply(engine, request(PROMPT, 60, plain=True)).ids
        stops = lambda earlier: engine.stop() if earlier == stop_at else None  # noqa: E731
        runner = script_engine(engine, script=lambda position: 7, before_draft=stops)
        made = reply(engine, request(PROMPT, 60, gamma=4))
        assert made.finished.reason is StopReason.STOPPED
        assert runner.drafts == stop_at + 1, "no pass may run after the stop"
        assert made.ids == plain[: len(made.ids)] and len(made.ids) < 60
        ids = (PROMPT + made.ids)[:-1]
        assert cached_ids(engine) == ids
        assert same_bits(cache_rows(engine, len(ids)), one_pass(folder, ids))
        again = reply(engine, request(PROMPT + made.ids, 20, gamma=4))
        assert again.finished.reused_tokens == len(ids)
        assert again.ids == plain[len(made.ids) : len(made.ids) + 20]


@pytest.mark.parametrize("passes", ["drafts", "fulls"])
@pytest.mark.parametrize("error", [NumericFault("NaN"), MemoryError()])
def test_an_exception_in_mid_cycle_leaves_nothing_that_is_trusted(
    passes: str, error: Exception, tmp_path: Path
) -> None:
    folder = model(tmp_path)
    with loaded_engine(folder) as engine:
        plain = reply(engine, request(PROMPT, 60, plain=True)).ids

        def fail(earlier: int) -> None:
            if earlier == 6:
                raise error

        where = {"before_draft": fail} if passes == "drafts" else {"before_full": fail}
        runner = script_engine(engine, script=lambda position: 7, **where)
        made = reply(engine, request(PROMPT, 60, gamma=4))
        assert made.finished.reason is StopReason.FAILED
        assert made.finished.message and made.finished.message.endswith(".")
        assert made.ids == plain[: len(made.ids)] and 0 < len(made.ids) < 60
        assert made.finished.new_tokens == len(made.ids)
        assert cached_ids(engine) == []
        runner.before_draft = runner.before_full = lambda earlier: None
        again = reply(engine, request(PROMPT, 60, gamma=4))
        assert again.finished.reused_tokens == 0
        assert again.ids == plain
        ids = (PROMPT + again.ids)[:-1]
        assert same_bits(cache_rows(engine, len(ids)), one_pass(folder, ids))


@pytest.mark.parametrize("dtype", DTYPES)
def test_c27_the_same_prompt_three_times_gives_the_same_ids_and_logits(dtype: str, tmp_path: Path) -> None:
    folder = model(tmp_path, dtype)
    prompt = random_prompts(1, 290, seed=1, longest=1)[0] + np.random.default_rng(2).integers(0, 290, 199).tolist()
    assert len(prompt) == 200
    with loaded_engine(folder) as engine:
        runner = script_engine(engine)
        full, seen = runner.inner.full, []

        def recorded(tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
            logits = full(tokens, position, wanted)
            seen[-1].update({position + i: row.copy() for i, row in enumerate(logits)})
            return logits

        runner.inner.full = recorded  # type: ignore[method-assign]
        made = []
        for sampling in (Sampling(), Sampling(temperature=1.0, seed=5)):
            made.clear()
            for _ in range(3):
                seen.append({})
                made.append(reply(engine, request(prompt, 40, gamma=3, sampling=sampling)))
            first, second, third = made
            assert first.ids == second.ids == third.ids
            assert second.finished.reused_tokens == third.finished.reused_tokens == 199
        at_first_token = [rows[199] for rows in seen]
        assert all(np.array_equal(row, at_first_token[0]) for row in at_first_token)
    with compiled_runner(folder) as fresh:
        assert np.array_equal(step_logits(fresh, prompt)[-1], at_first_token[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_next_turn_equals_a_fresh_engine_with_the_same_history(dtype: str, tmp_path: Path) -> None:
    folder = model(tmp_path, dtype)
    turns = random_prompts(4, 290, seed=6, longest=20)
    history: list[int] = []
    with loaded_engine(folder) as engine:
        for turn in turns:
            before = len(history)
            history += turn
            made = reply(engine, request(history, 25, gamma=3))
            with loaded_engine(folder) as fresh:
                alone = reply(fresh, request(history, 25, plain=True))
            assert made.ids == alone.ids
            # The last token of the reply before was never fed to the model.
            assert made.finished.reused_tokens == max(0, before - 1)
            assert made.finished.prompt_tokens == len(history)
            history += made.ids


def test_a_prompt_that_leaves_the_cached_one_early_reuses_just_the_common_part(tmp_path: Path) -> None:
    folder = model(tmp_path)
    prompt = list(range(10, 60))
    with loaded_engine(folder) as engine:
        for kept in (0, 1, 20, 48, 49):
            reply(engine, request(prompt, 10, gamma=2))
            other = prompt[:kept] + [5] * 30
            made = reply(engine, request(other, 20, gamma=2))
            assert made.finished.reused_tokens == kept
            assert made.prefills[0].reused == kept
            with loaded_engine(folder) as fresh:
                assert reply(fresh, request(other, 20, plain=True)).ids == made.ids
