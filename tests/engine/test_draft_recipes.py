"""CPU drafts by every recipe: how near they come to the full model, several rows at once, fewer tokens, a window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from builders import tiny_llama
from engine.kernels.compiled.attend import SINKS
from engine.kernels.reference import operations as op
from engine.model import programme as p
from engine.model.compiled_runner import CompiledRunner
from engine.model.runner import MAX_DRAFT_ROWS
from engine.recipe import Recipe
from engine_rig import compiled_runner
from kernel_rig import Rig, shape

IDS = np.random.default_rng(7).integers(3, 290, 120).tolist()
RECIPES = (
    Recipe(weight_bits=16),
    Recipe(weight_bits=8),
    Recipe(weight_bits=4),
    Recipe(weight_bits=3),
    Recipe(weight_bits=4, reduced_vocabulary=96, kv_window=20, skipped_attention=(1,), skipped_mlp=(0,)),
    Recipe(weight_bits=16, reduced_vocabulary=96, kv_window=20),
    Recipe(weight_bits=8, neuron_share=0.5),
)


@pytest.fixture(params=["float32", "float16"])
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CompiledRunner]:
    folder = tiny_llama(tmp_path, layers=3, hidden=96, heads=6, kv_heads=2, vocab=293, dtype=request.param, std=0.2)
    with compiled_runner(folder) as made:
        yield made


def test_fewer_bits_are_further_from_the_model_but_still_like_it(runner: CompiledRunner) -> None:
    runner.full(IDS[:60], 0, 0)
    full = np.stack([runner.full([token], 60 + i, 1)[0].copy() for i, token in enumerate(IDS[60:90])])
    errors = []
    for bits in (16, 8, 4, 3):
        runner.use_recipe(Recipe(weight_bits=bits))
        drafts = np.stack([runner.draft([token], 60 + i)[0].copy() for i, token in enumerate(IDS[60:90])])
        errors.append(float(np.abs(drafts - full).mean() / full.std()))
        for i, token in enumerate(IDS[60:90]):
            runner.full([token], 60 + i, 0)
    assert errors[0] == 0 < errors[1] < errors[2] / 2 < errors[3]
    assert errors[2] < 0.5, "a draft of random weights is hard, but must not be nonsense"


@pytest.mark.parametrize("recipe", RECIPES, ids=range(len(RECIPES)))
def test_rows_drafted_together_have_the_bits_of_rows_drafted_one_by_one(runner: CompiledRunner, recipe: Recipe) -> None:
    runner.use_recipe(recipe)
    runner.full(IDS[:50], 0, 0)
    runner.refresh_neurons()
    alone = np.stack([runner.draft([token], 50 + i)[0].copy() for i, token in enumerate(IDS[50:58])])
    rows = [layer[50:58].copy() for layer in runner._memory.cache]
    for count in range(1, MAX_DRAFT_ROWS + 1):
        for layer in runner._memory.cache:
            layer[50:] = np.nan
        assert np.array_equal(runner.draft(IDS[50 : 50 + count], 50), alone[:count]), count
    for layer, (cache, kept) in enumerate(zip(runner._memory.cache, rows, strict=True)):
        assert layer in recipe.skipped_attention or np.array_equal(cache[50:58], kept)


def test_more_rows_than_a_draft_pass_takes_are_refused(runner: CompiledRunner) -> None:
    runner.full(IDS[:10], 0, 0)
    with pytest.raises(ValueError, match="at most 8 tokens, not 9"):
        runner.draft(IDS[:9], 10)


@pytest.mark.parametrize("recipe", RECIPES, ids=range(len(RECIPES)))
def test_a_draft_changes_nothing_for_the_full_model(runner: CompiledRunner, recipe: Recipe) -> None:
    runner.full(IDS[:50], 0, 0)
    wanted = runner.full(IDS[50:56], 50, 6).copy()
    runner.use_recipe(recipe)
    runner.draft(IDS[50:54], 50)
    assert np.array_equal(runner.full(IDS[50:56], 50, 6), wanted)


@pytest.mark.parametrize("bits", [16, 8, 4])
def test_a_reduced_vocabulary_has_the_same_logits_for_its_tokens_and_none_for_others(
    runner: CompiledRunner, bits: int
) -> None:
    runner.use_recipe(Recipe(weight_bits=bits))
    runner.full(IDS[:20], 0, 0)
    whole = runner.draft(IDS[20:23], 20).copy()
    inputs = runner._memory.buffers[p.Buffer.NORMED][:3].copy()
    exact = inputs @ np.asarray(runner._weights.matrix(runner._output).owner[0], np.float32).T
    runner.use_recipe(Recipe(weight_bits=bits, reduced_vocabulary=100))
    reduced = runner.draft(IDS[20:23], 20).copy()
    kept = np.isfinite(reduced[0])
    assert kept.sum() == 104, "rounded up to a multiple of eight"
    assert (reduced[:, ~kept] == -np.inf).all()
    leading = np.isclose(reduced, exact, rtol=1e-4, atol=1e-4)
    assert (leading | (reduced == whole))[:, kept].all()


def test_tokens_that_the_model_reads_join_a_reduced_vocabulary(runner: CompiledRunner) -> None:
    runner.use_recipe(Recipe(weight_bits=4, reduced_vocabulary=64))
    runner.full(IDS[:20], 0, 0)
    known = np.isfinite(runner.draft(IDS[20:21], 20)[0])
    assert known[IDS[:20]].sum() >= 16, "the last sixteen places are for those met of late"
    stranger = int(np.flatnonzero(~known)[-1])
    runner.full([stranger], 20, 1)
    logits = runner.draft(IDS[21:22], 21)[0]
    assert np.isfinite(logits[stranger]) and np.isfinite(logits).sum() == 64
    runner.use_recipe(Recipe(weight_bits=4))
    assert logits[stranger] == pytest.approx(runner.draft(IDS[21:22], 21)[0][stranger], rel=0.2, abs=0.2)


def test_a_window_changes_drafts_only_once_the_context_is_longer(runner: CompiledRunner) -> None:
    runner.use_recipe(Recipe(weight_bits=16))
    runner.full(IDS[:50], 0, 0)
    runner.full(IDS[50:100], 50, 0)
    short, long = runner.draft(IDS[30:31], 30).copy(), runner.draft(IDS[100:101], 100).copy()
    runner.full(IDS[30:31], 30, 0)
    runner.use_recipe(Recipe(weight_bits=16, kv_window=31 - SINKS))
    assert np.array_equal(runner.draft(IDS[30:31], 30), short)
    runner.full(IDS[30:31], 30, 0)
    windowed = runner.draft(IDS[100:101], 100)
    assert np.isfinite(windowed).all() and np.abs(windowed - long).max() > 0.01 * long.std()


@pytest.mark.parametrize("cache", [np.float32, np.float16])
@pytest.mark.parametrize(("head_dim", "window"), [(16, 1), (16, 8), (64, 13), (128, 40)])
def test_attention_over_the_first_positions_and_the_last_ones(cache: type, head_dim: int, window: int) -> None:
    size = shape(hidden_size=4 * head_dim, num_attention_heads=4, head_dim=head_dim)
    rig = Rig(size, {}, cache=cache, threads=2)
    random = np.random.default_rng(window)
    rig.memory.cache[0][:90] = random.normal(0, 1, rig.memory.cache[0][:90].shape)
    heads = random.normal(0, head_dim**-0.5, (3, 4 * head_dim)).astype(np.float32)
    rig[p.Buffer.QKV][:3, : 4 * head_dim] = heads
    rig.run(p.Attend(0, window), tokens=[0] * 3, position=87)
    stored = torch.from_numpy(rig.memory.cache[0].astype(np.float64))
    for row in range(3):
        last = 87 + row + 1
        kept = [*range(SINKS), *range(last - window, last)]
        query = torch.from_numpy(heads[row].astype(np.float64)).view(1, 4, head_dim)
        wanted = op.attend(query, stored[kept, 0], stored[kept, 1], len(kept) - 1, 1.0).reshape(-1).numpy()
        assert np.allclose(rig[p.Buffer.ATTENDED][row], wanted, rtol=1e-4, atol=1e-5)


def test_scatter_puts_logits_to_their_tokens_and_leaves_the_others() -> None:
    rig = Rig(shape(), {}, threads=2)
    kept = np.array([96, 3, 50, 4, 7, 8, 9, 0], np.int32)
    logits = np.random.default_rng(0).normal(0, 1, (4, 8)).astype(np.float32)
    target = np.full((4, 97), -np.inf, np.float32)
    buffers = {**rig.memory.buffers, p.Buffer.KEPT_LOGITS: logits, p.Buffer.DRAFT_LOGITS: target}
    rig.memory = replace(rig.memory, buffers=buffers, kept=kept)
    rig.run(p.Scatter(), tokens=[0] * 4, wanted=2)
    assert (target[:2] == -np.inf).all() and np.array_equal(target[2:, kept], logits[2:])
    assert np.isfinite(target[2:]).sum() == 16
