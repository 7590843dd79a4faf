"""The exactness rule on the CPU: a row's bits depend on neither the rows beside it, the threads, nor old memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import engine.model.compiled_runner as compiled_runner_module
from builders import tiny_llama
from engine.model.compiled_runner import CompiledRunner, fitting_chunk
from engine.model.programme import Buffer
from engine_rig import RECIPES, compiled_runner, same_bits, step_logits

DTYPES = ("float32", "float16", "bfloat16")
LENGTH = 130
IDS = np.random.default_rng(3).integers(0, 293, LENGTH).tolist()


def model(folder: Path, dtype: str) -> Path:
    """293 is prime: no tile height divides the output matrix."""
    return tiny_llama(folder, layers=3, hidden=96, heads=6, kv_heads=2, vocab=293, dtype=dtype, std=0.2)


@pytest.fixture(params=DTYPES)
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CompiledRunner]:
    with compiled_runner(model(tmp_path, request.param)) as made:
        yield made


def test_a_row_has_the_same_bits_in_every_pass_width(runner: CompiledRunner) -> None:
    alone = step_logits(runner, IDS)
    cache = [layer.copy() for layer in runner._memory.cache]
    assert len({row.tobytes() for row in alone}) == LENGTH, "rows must differ for this test to mean anything"
    for position in (0, 1, 7, 8, 62, 100, LENGTH - 16):
        for width in range(1, 17):
            together = runner.full(IDS[position : position + width], position, width)
            assert np.array_equal(together, alone[position : position + width]), (position, width)
    assert same_bits(runner._memory.cache, cache)


def test_prefill_in_chunks_leaves_the_bits_of_single_steps(runner: CompiledRunner) -> None:
    alone = step_logits(runner, IDS)
    cache = [layer[:LENGTH].copy() for layer in runner._memory.cache]
    for chunk in (64, 63, 17, 40):
        for layer in runner._memory.cache:
            layer[:] = np.nan
        for first in range(0, LENGTH, chunk):
            ids = IDS[first : first + chunk]
            wanted = min(16, len(ids))
            tail = runner.full(ids, first, wanted)
            last = first + len(ids)
            assert np.array_equal(tail, alone[last - wanted : last]), chunk
        assert same_bits((layer[:LENGTH] for layer in runner._memory.cache), cache)


def test_nothing_of_earlier_passes_leaks_into_a_result(runner: CompiledRunner) -> None:
    passes = [(IDS[:64], 0, 0), (IDS[64:67], 64, 3), (IDS[67:68], 67, 1), (IDS[68:84], 68, 16)]
    clean = [runner.full(*each).copy() for each in passes]
    memory = runner._memory
    for poison in (np.nan, np.inf, 6e4):
        for layer in memory.cache:
            layer[:] = poison
        for each, wanted in zip(passes, clean, strict=True):
            for buffer in memory.buffers.values():
                buffer[:] = poison
            memory.scores[:] = poison
            assert np.array_equal(runner.full(*each), wanted)


def test_drafts_do_not_read_poison_either(runner: CompiledRunner) -> None:
    for recipe in RECIPES:
        runner.use_recipe(recipe)
        runner.full(IDS[:20], 0, 0)
        wanted = runner.draft(IDS[20:21], 20).copy()
        for name, buffer in runner._memory.buffers.items():
            assert name in Buffer
            buffer[:] = np.nan
        runner._memory.scores[:] = np.nan
        for layer in runner._memory.cache:
            layer[20:] = np.nan
        assert np.array_equal(runner.draft(IDS[20:21], 20), wanted), recipe
        assert np.isfinite(wanted).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_threads_gives_the_same_bits(dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = model(tmp_path, dtype)
    results = []
    for threads in (1, 2, 3, 4):
        monkeypatch.setattr(compiled_runner_module, "thread_count", lambda count=threads: count)
        with compiled_runner(folder, recipe=RECIPES[3]) as runner:
            assert runner._team.size == threads
            prefill = runner.full(IDS[:64], 0, 16).copy()
            steps = step_logits(runner, IDS[:30])
            runner.refresh_neurons()
            draft = runner.draft(IDS[30:31], 30).copy()
            packed = [copy.data for _, copy in sorted(runner._copies.packed[8].items())]
            chosen = [part for _, copy in sorted(runner._copies.int8.items()) for part in copy.owner]
            copies = [*packed, *chosen]
            results.append([prefill, steps, draft, *runner._memory.cache, *copies])
    for other in results[1:]:
        assert same_bits(other, results[0])


@pytest.mark.parametrize(
    ("rows", "seconds", "expected"),
    [(64, 0.1, 64), (64, 0.25, 64), (64, 0.5, 32), (64, 0.51, 24), (64, 9.0, 8), (8, 0.01, 16), (24, 0.2, 24)],
)
def test_a_chunk_fits_the_time_a_stop_may_take(rows: int, seconds: float, expected: int) -> None:
    assert fitting_chunk(rows, seconds) == expected


def test_slow_passes_shorten_the_chunks_of_a_prompt_and_quick_ones_lengthen_them(
    runner: CompiledRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert runner.chunk == 64
    monkeypatch.setattr(compiled_runner_module, "CHUNK_SECONDS", 1e-9)
    runner.full(IDS[:64], 0, 1)
    runner.full(IDS[:20], 0, 0)
    assert runner.chunk == 64, "a pass that is wanted for logits, or a last short one, tells nothing"
    runner.full(IDS[:64], 0, 0)
    assert runner.chunk == 8
    monkeypatch.setattr(compiled_runner_module, "CHUNK_SECONDS", 1e9)
    grown = []
    for _ in range(4):
        runner.full(IDS[: runner.chunk], 0, 0)
        grown.append(runner.chunk)
    assert grown == [16, 32, 64, 64]
