"""Whole decode steps of the fixed-width kernels against the torch runner, and against themselves at other widths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.kernels.triton import judge
from engine.recipe import Recipe
from engine_rig import torch_runner
from step_rig import VOCABULARY, Step, make_step, small_model
from triton_rig import DTYPES, INTERPRETED, Tensor, quiet

IDS = np.random.default_rng(5).integers(0, VOCABULARY, 160).tolist()
WHOLE = Recipe(weight_bits=16)
SKIPPING = Recipe(weight_bits=16, skipped_attention=(0,), skipped_mlp=(1,))
WIDTHS = (1, 7) if INTERPRETED else tuple(range(1, 16))


def assert_near(actual: Tensor, expected: np.ndarray, dtype: torch.dtype) -> None:
    """Each row within the rounding of a few layers in `dtype`."""
    wanted = torch.from_numpy(expected.copy())
    error = (actual.cpu() - wanted).norm(dim=-1) / wanted.norm(dim=-1)
    assert float(error.max()) < 8 * torch.finfo(dtype).eps, error


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_full_and_draft_steps_match_torch(dtype: torch.dtype, tmp_path: Path) -> None:
    folder = small_model(tmp_path, dtype)
    oracle, step = torch_runner(folder, recipe=SKIPPING), make_step(folder)
    assert_near(step.full(0, IDS[:16]), oracle.full(IDS[:16], 0, 16), dtype)
    assert_near(step.full(16, IDS[16:19]), oracle.full(IDS[16:19], 16, 3), dtype)
    plain = step.full(19, IDS[19:20])
    step.begin(19, IDS[19:20])
    assert torch.equal(step.draft(WHOLE), plain[0]), "a draft that leaves nothing out is the model"
    step.begin(19, IDS[19:20])
    skipped = step.draft(SKIPPING)
    assert_near(skipped[None], oracle.draft(IDS[19:20], 19), dtype)
    assert not torch.allclose(skipped, plain[0], rtol=0.1), "the recipe must make a difference"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_row_of_a_step_has_the_same_bits_at_every_width(dtype: torch.dtype, tmp_path: Path) -> None:
    step = make_step(small_model(tmp_path, dtype))
    step.full(0, IDS[:16])
    for position in (10,) if INTERPRETED else (0, 1, 5, 16):
        whole, cache = step.full(position, IDS[position : position + 16]), step.cache(position + 16)
        assert whole.isfinite().all()
        for rows in WIDTHS:
            part = step.full(position, IDS[position : position + rows])
            assert torch.equal(part, whole[:rows]), (position, rows)
            assert all(map(torch.equal, step.cache(position + 16), cache)), "the cache has the same bits too"


def test_a_prompt_read_at_once_leaves_the_cache_of_single_passes(tmp_path: Path) -> None:
    step = make_step(small_model(tmp_path, torch.float16, layers=1 if INTERPRETED else 3))
    for first in range(0, 64, 16):
        step.full(first, IDS[first : first + 16])
    cache = step.cache(64)
    for layer in step.runner._cache:
        layer.fill_(float("nan"))
    step.prompt(0, IDS[:64])
    assert all(map(torch.equal, step.cache(64), cache))


def greedy(step: Step, count: int) -> list[int]:
    """Plain decoding after IDS[:16]."""
    step.full(0, IDS[:16])
    ids = IDS[:17]
    while len(ids) < 17 + count:
        step.full(len(ids) - 1, ids[-1:])
        ids.append(int(step.buffers.state[judge.TOKENS]))
    return ids[17:]


def test_speculation_on_the_card_gives_the_plain_tokens(tmp_path: Path) -> None:
    """Cycles run on the state alone; the last token's position and the block must follow without the host."""
    step = make_step(small_model(tmp_path, torch.bfloat16, layers=1 if INTERPRETED else 3))
    wanted, made, accepted = greedy(step, 5 if INTERPRETED else 60), [], []
    state = step.buffers.state
    step.begin(16, IDS[16:17])
    while len(made) < len(wanted):
        for _ in range(2):
            step.draft(Recipe(weight_bits=16, skipped_attention=(0,)))
        with quiet():
            step.kernels.full(3)
        accepted.append(int(state[judge.ACCEPTED]))
        made += state[judge.CHOSEN : judge.CHOSEN + accepted[-1] + 1].tolist()
        assert int(state[judge.POSITION]) == 16 + len(made)
    assert made[: len(wanted)] == wanted
    assert INTERPRETED or len(set(accepted)) > 1, "the test must see both right and wrong proposals"


def test_float16_models_with_large_norms_stay_finite(tmp_path: Path) -> None:
    """stream * gain passes 65504 here; the kernels keep a sixteenth of it. The oracle computes in float32."""
    step = make_step(small_model(tmp_path / "half", torch.float16, layers=1))
    oracle = torch_runner(small_model(tmp_path / "wide", torch.float32, layers=1))
    weights = step.runner._weights
    for name, weight in weights.items():
        if name.endswith("layernorm.weight"):
            weight.mul_(2.0**18 if "input" in name else 2.0**16)
        elif any(part in name for part in (".q_proj", ".k_proj", ".v_proj", ".gate_proj", ".up_proj")):
            weight.mul_(2.0**-16)
        oracle._weights[name] = weight.float().cpu()
    first = weights["model.embed_tokens.weight"].float()[IDS[:4]] * weights["model.layers.0.input_layernorm.weight"]
    assert 65504 < float(first.abs().max()) < 16 * 65504
    logits = step.full(0, IDS[:4])
    assert logits.isfinite().all()
    assert_near(logits, oracle.full(IDS[:4], 0, 4), torch.float16)
