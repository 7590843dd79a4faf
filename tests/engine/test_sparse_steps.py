"""Whole sparse draft steps of a small shape, every kernel held against torch as the bench does on a card."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.bench.shapes import SHAPES, Shape
from engine.bench.sparse_models import channel_parts, neuron_parts, random_draft
from engine.bench.sparse_steps import POSITIONS, WHAT, Bench
from engine.kernels.triton import judge
from engine.kernels.triton.draft_memory import DraftBuffers
from engine.kernels.triton.sparse_memory import ColumnTile, RowTile, SparseTiles
from engine.kernels.triton.sparse_step import SparseKernels
from triton_rig import DEVICE, quiet

CONFIG = replace(
    SHAPES["llama2-7b"].config,
    hidden_size=256,
    intermediate_size=128,
    layers=1,
    heads=4,
    kv_heads=4,
    head_dim=64,
    vocabulary=64,
)
TILES = SparseTiles(RowTile(32, 4), RowTile(32, 4), ColumnTile(2, 32, 2))
# What the kernels may differ by from torch: results as int8 or 16-bit floats, or summed from products with int8.
LIMITS = {"low rank scores": 1e-4, "plane scores": 1e-4, "gate and up": 1e-4, "sum of squares": 1e-5}
LIMITS |= {"down": 0.01, "next input": 0.01, "channels qkv": 0.004, "channels gate and up": 0.01}
LIMITS |= {"channels down": 1e-4, "logits not finite": 0.0}
EXPECTED = {
    "ahead": {"low rank scores", "gate and up", "down", "next input", "sum of squares"},
    "low rank": {"low rank scores", "gate and up", "down", "next input", "sum of squares"},
    "planes": {"plane scores", "gate and up", "down", "next input", "sum of squares"},
    "channels": {"channels qkv", "channels gate and up", "channels down"},
}


@pytest.mark.parametrize("what", WHAT)
def test_every_kernel_of_a_sparse_step_agrees_with_torch(what: str) -> None:
    torch.manual_seed(1)
    bench = Bench(Shape("small", CONFIG, 1), DEVICE)
    model = random_draft(CONFIG, DEVICE, bench.caches, POSITIONS)
    if what == "channels":
        parts = channel_parts(model, CONFIG, 32)
    else:
        model, parts = neuron_parts(model, what)
    with quiet():
        found = bench.fit(model, parts, 0.3, TILES)
    assert set(found.errors) == EXPECTED[what] | {"logits not finite"}
    for name, error in found.errors.items():
        assert error <= LIMITS[name], name
    assert what == "channels" or found.chosen == [pytest.approx(0.3, abs=0.01)]
    assert int(bench.state[judge.CURSOR]) == 1, "the step has proposed a token"


def test_more_rows_than_one_are_refused() -> None:
    bench = Bench(Shape("small", CONFIG, 1), DEVICE)
    model = random_draft(CONFIG, DEVICE, bench.caches, POSITIONS)
    buffers = DraftBuffers(CONFIG, model, bench.state, bench.logits, bench.report)
    with pytest.raises(ValueError, match="one row, not 2"):
        SparseKernels(CONFIG, model, buffers, CONFIG.vocabulary, [None]).step(2)
