"""The leading logits of a coarse output matrix, computed again with the exact rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from builders import tiny_llama
from engine.kernels.compiled.exact_leaders import LEADERS, exact_leaders
from engine.model.matrix import KIND_OF_DTYPE
from engine.model.programme import Buffer
from engine.recipe import Recipe
from engine_rig import compiled_runner

COLUMNS = 64


def exact(logits: np.ndarray, x: np.ndarray, weight: np.ndarray, kind: str) -> np.ndarray:
    """The logits after the kernel."""
    result = logits.copy()
    exact_leaders(result.ctypes.data, len(result), x.ctypes.data, weight.ctypes.data, KIND_OF_DTYPE[kind], COLUMNS)
    return result


def case(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coarse logits, an input, and a float32 matrix."""
    generator = np.random.default_rng(seed)
    weight = generator.normal(0, 1, (count, COLUMNS)).astype(np.float32)
    x = generator.normal(0, 1, COLUMNS).astype(np.float32)
    return (weight @ x + generator.normal(0, 1, count)).astype(np.float32), x, weight


@pytest.mark.parametrize("count", [8, 9, 255, 256, 257, 1000, 5003])
def test_the_largest_are_replaced_and_the_others_stay(count: int) -> None:
    logits, x, weight = case(count)
    got = exact(logits, x, weight, "float32")
    leading = np.argsort(-logits)[:LEADERS]
    np.testing.assert_allclose(got[leading], weight[leading] @ x, rtol=1e-5, atol=1e-5)
    others = np.setdiff1d(np.arange(count), leading)
    np.testing.assert_array_equal(got[others], logits[others])


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_rows_of_every_stored_kind(kind: str) -> None:
    logits, x, weight = case(300)
    if kind == "float16":
        stored = weight.astype(np.float16)
        values = stored.astype(np.float32)
    elif kind == "bfloat16":
        stored = (weight.view(np.uint32) >> 16).astype(np.uint16)
        values = (stored.astype(np.uint32) << 16).view(np.float32)
    else:
        stored = values = weight
    leading = np.argsort(-logits)[:LEADERS]
    np.testing.assert_allclose(exact(logits, x, stored, kind)[leading], values[leading] @ x, rtol=1e-5, atol=1e-5)


def test_equal_logits_are_replaced_lowest_index_first() -> None:
    logits, x, weight = case(600)
    logits[:] = 1.0
    got = exact(logits, x, weight, "float32")
    np.testing.assert_allclose(got[:LEADERS], weight[:LEADERS] @ x, rtol=1e-5, atol=1e-5)
    assert (got[LEADERS:] == 1.0).all()


def test_tokens_that_were_left_out_stay_out() -> None:
    logits, x, weight = case(600)
    kept = [3, 290, 599]
    reduced = np.full_like(logits, -np.inf)
    reduced[kept] = logits[kept]
    got = exact(reduced, x, weight, "float32")
    np.testing.assert_allclose(got[kept], weight[kept] @ x, rtol=1e-5, atol=1e-5)
    assert np.isneginf(np.delete(got, kept)).all()


def test_nan_is_not_hidden() -> None:
    logits, x, weight = case(600)
    logits[[5, 320]] = np.nan
    got = exact(logits, x, weight, "float32")
    assert np.isnan(got[[5, 320]]).all()
    assert np.isfinite(np.delete(got, [5, 320])).all()


@pytest.mark.parametrize("recipe", [Recipe(weight_bits=4), Recipe(weight_bits=8, reduced_vocabulary=96)])
def test_a_draft_chooses_among_exact_logits(tmp_path: Path, recipe: Recipe) -> None:
    folder = tiny_llama(tmp_path, layers=2, hidden=96, heads=6, kv_heads=2, vocab=293, dtype="float16", std=0.2)
    tokens = [5, 17, 203, 4, 90, 41]
    with compiled_runner(folder) as runner:
        runner.use_recipe(recipe)
        runner.full(tokens[:4], 0, 0)
        drafted = runner.draft(tokens[4:], 4).copy()
        normed = runner._memory.buffers[Buffer.NORMED][:2].copy()
        matrix = runner._weights.matrix("lm_head.weight").owner[0].astype(np.float32)
    for logits, row in zip(drafted, normed, strict=True):
        right = matrix @ row
        leading = np.argsort(-logits)[: LEADERS // 2]  # rank behind them may stand logits that were not recomputed
        np.testing.assert_allclose(logits[leading], right[leading], rtol=1e-4, atol=1e-4)
        finite = np.isfinite(logits)
        assert (abs(logits - right)[finite] > 1e-4).any(), "the others stay coarse"
