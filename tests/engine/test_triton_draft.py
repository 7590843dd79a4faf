"""Draft steps over four-bit weights against torch over the values those weights stand for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from draft_rig import Draft, make_draft, rounded_model
from engine.kernels.triton import judge
from engine.kernels.triton.draft_memory import DraftModel, reduced
from engine.kernels.triton.draft_packing import pack, unpack
from engine.kernels.triton.step import FusedModel
from engine.lowbit.codes import LowBitCodes
from engine.model.card_copy import CardCopy
from engine.model.fused import fuse
from engine.model.torch_runner import TorchRunner
from engine.offload.parts import Part
from engine.offload.plan import DraftPlacement, Residency
from engine.recipe import Recipe
from engine_rig import torch_runner
from step_rig import VOCABULARY, Step, make_step, small_model
from triton_rig import DEVICE, INTERPRETED, Tensor, random

IDS = np.random.default_rng(5).integers(0, VOCABULARY, 160).tolist()
INT8 = 0.05  # relative error that int8 activations may cause in the logits


def fused(step: Step) -> FusedModel:
    runner = step.runner
    return fuse(runner.config, runner._weights, runner._cache, runner._cosine, runner._sine)


def build(folder: Path, dtype: torch.dtype, recipe: Recipe, **choices: object) -> tuple[Draft, TorchRunner, DraftModel]:
    """A draft behind sixteen committed tokens, and the oracle: the torch runner with the same weights and cache."""
    step = make_step(folder)
    oracle = torch_runner(folder, recipe=recipe)
    model = fused(step)
    draft_model, values = rounded_model(model)
    step.full(0, IDS[:16])
    oracle.full(IDS[:16], 0, 1)
    for name, weight in step.runner._weights.items():
        for address, value in values.items():
            first = (weight.data_ptr() - address) // (2 * value.shape[1])
            if weight.ndim == 2 and "embed" not in name and 0 <= first < len(value):
                oracle._weights[name] = value[first : first + len(weight)].to(dtype).cpu()
    return make_draft(step, draft_model, **choices), oracle, draft_model


def error(actual: Tensor, expected: np.ndarray) -> float:
    wanted = torch.from_numpy(expected.copy())
    return float(((actual.cpu() - wanted).norm(dim=-1) / wanted.norm(dim=-1)).max())


def test_packing_loses_nothing() -> None:
    generator = random(3)
    codes = torch.randint(0, 16, (6, 64), generator=generator, dtype=torch.uint8).to(DEVICE)
    scale, low = (torch.rand(6, 4, generator=generator).half().to(DEVICE) for _ in range(2))
    factors = 2.0 ** torch.randint(-3, 3, (64,), generator=generator).float().to(DEVICE)
    again = unpack(pack(LowBitCodes(codes, scale, low, factors, 4, 16)))
    assert torch.equal(again.codes, codes) and torch.equal(again.scale, scale) and torch.equal(again.low, low)
    assert torch.equal(again.factors, factors) and again.group == 16
    with pytest.raises(ValueError, match="3-bit"):
        pack(LowBitCodes(codes, scale, low, factors, 3, 16))


@pytest.mark.parametrize(("dtype", "kv_heads"), [(torch.float16, 1), (torch.bfloat16, 2)], ids=str)
def test_a_draft_step_matches_torch_over_the_rounded_weights(dtype: torch.dtype, kv_heads: int, tmp_path: Path) -> None:
    """Heads that share keys, and heads that do not: two attention kernels."""
    draft, oracle, _ = build(small_model(tmp_path, dtype, kv_heads=kv_heads), dtype, Recipe(weight_bits=16))
    draft.step.begin(16, IDS[16:17])
    logits = draft.run()
    expected = oracle.draft(IDS[16:17], 16)
    assert error(logits, expected) < INT8
    first = int(draft.buffers.state[judge.TOKENS + 1])
    assert first == int(logits[0].argmax())
    assert error(draft.run(), oracle.draft([first], 17)) < INT8, "the next step reads the row this one wrote"


def test_proposals_are_checked_in_one_step(tmp_path: Path) -> None:
    """Rows behind the first see those before them; what the draft agrees with joins the block, then its own token."""
    dtype = torch.bfloat16
    draft, _, _ = build(small_model(tmp_path, dtype, layers=1), dtype, Recipe(weight_bits=16))
    state = draft.buffers.state
    singles = []
    draft.step.begin(16, IDS[16:17])
    for _ in range(4):
        singles.append(draft.run()[0])
    chain = state[judge.TOKENS : judge.TOKENS + 5].tolist()
    wrong = (chain[2] + 1) % VOCABULARY
    for proposals in ([chain[1], chain[2], chain[3]], [chain[1], wrong]):
        draft.step.begin(16, IDS[16:17])
        logits = draft.run(proposals)
        own = logits.argmax(1).tolist()
        agreed = next((i for i, token in enumerate(proposals) if token != own[i]), len(proposals))
        count, chosen, seconds = draft.report()
        assert count == agreed and int(state[judge.CURSOR]) == agreed + 1
        assert state[judge.TOKENS + 1 : judge.TOKENS + 2 + agreed].tolist() == own[: agreed + 1]
        for row in range(agreed + 1):
            # Rounding of activations may differ by a step where a sum is added up in another order.
            assert torch.allclose(logits[row], singles[row], atol=0.1, rtol=0.05)
            order = logits[row].argsort(descending=True)
            assert chosen[row] == int(order[0]) and seconds[row] == int(order[1])
            prob = torch.softmax(logits[row], 0)[int(order[0])]
            assert float(draft.buffers.floats[judge.DRAFT_PROBS + row]) == pytest.approx(float(prob), rel=1e-3)


def test_blocks_left_out_and_a_window(tmp_path: Path) -> None:
    dtype = torch.float16
    folder = small_model(tmp_path, dtype)
    recipe = Recipe(weight_bits=16, skipped_attention=(0,), skipped_mlp=(1,))
    left_out = {"skipped_attention": frozenset({0}), "skipped_mlp": frozenset({1})}
    draft, oracle, model = build(folder, dtype, recipe, **left_out)
    draft.step.begin(16, IDS[16:17])
    assert error(draft.run(), oracle.draft(IDS[16:17], 16)) < INT8
    whole = make_draft(draft.step, model)
    wide, narrow = (make_draft(draft.step, model, window=w) for w in (17, 3))
    results = []
    for one in (whole, wide, narrow):
        draft.step.begin(16, IDS[16:17])
        results.append(one.run()[0])
    assert torch.equal(results[0], results[1]), "a window that covers everything changes nothing"
    assert not torch.allclose(results[0], results[2], rtol=1e-2)


@pytest.mark.parametrize("kv_heads", [1, 2])
def test_a_window_sees_the_first_and_the_last_positions_only(kv_heads: int, tmp_path: Path) -> None:
    """Committed rows between them may hold anything: here NaN."""
    step = make_step(small_model(tmp_path, torch.bfloat16, layers=1, kv_heads=kv_heads), capacity=512)
    draft_model, _ = rounded_model(fused(step))
    for layer in step.runner._cache:
        layer.copy_(torch.randn(layer.shape, generator=random(1)))
    windowed = make_draft(step, draft_model, window=70)
    step.begin(320, IDS[:1])
    expected = windowed.run()[0]
    assert expected.isfinite().all()
    for layer in step.runner._cache:
        layer[64:192] = float("nan")
        layer[4:64] *= -3.0
    step.begin(320, IDS[:1])
    assert torch.equal(windowed.run()[0], expected)


def test_a_reduced_vocabulary_proposes_its_own_tokens(tmp_path: Path) -> None:
    dtype = torch.bfloat16
    draft, _, model = build(small_model(tmp_path, dtype, layers=1), dtype, Recipe(weight_bits=16))
    draft.step.begin(16, IDS[16:17])
    whole = draft.run()[0]
    kept = torch.arange(1, VOCABULARY, 3, dtype=torch.int32, device=DEVICE)
    few = make_draft(draft.step, reduced(model, kept))
    draft.step.begin(16, IDS[16:17])
    logits = few.run()[0]
    assert torch.allclose(logits[kept.long()], whole[kept.long()])
    assert int(draft.buffers.state[judge.TOKENS + 1]) == int(kept[whole[kept.long()].argmax()])


def test_rows_of_zeros_stay_zeros(tmp_path: Path) -> None:
    """A stream of zeros gives no scale to divide by; nothing becomes NaN."""
    dtype = torch.float16
    draft, _, _ = build(small_model(tmp_path, dtype, layers=1), dtype, Recipe(weight_bits=16))
    draft.step.runner._weights["model.embed_tokens.weight"][IDS[16]] = 0.0
    draft.step.begin(16, IDS[16:17])
    assert draft.run().isfinite().all()


@pytest.mark.skipif(INTERPRETED, reason="interpreted launches take too long for a reply")
def test_a_long_chain_on_the_card_stays_close(tmp_path: Path) -> None:
    dtype = torch.bfloat16
    draft, oracle, _ = build(small_model(tmp_path, dtype), dtype, Recipe(weight_bits=16))
    draft.step.begin(16, IDS[16:17])
    for i in range(7):
        token = int(draft.buffers.state[judge.TOKENS + i])
        assert error(draft.run(), oracle.draft([token], 16 + i)) < 2 * INT8


@pytest.mark.parametrize("streamed", [(0, 1, 2, 3), (1, 3), (2,)], ids=str)
def test_a_copy_that_is_streamed_drafts_the_same(streamed: tuple[int, ...], tmp_path: Path) -> None:
    step = make_step(small_model(tmp_path, torch.float16))
    step.full(0, IDS[:16])
    model, _ = rounded_model(fused(step))
    parts = tuple(Part(2 * layer + i, layer, kind, (), 1) for layer in range(2) for i, kind in enumerate(("a", "m")))
    lies = tuple(Residency.STREAMED if part.index in streamed else Residency.RESIDENT for part in parts)
    copy = CardCopy(DraftPlacement(parts, lies, 2, 1), DEVICE)
    copy.hold(model)
    assert copy.nbytes == model.nbytes and copy.stream is not None
    whole, apart = make_draft(step, model), make_draft(step, copy.model(), weights=copy.stream)
    state = step.buffers.state.clone()
    for proposals in ((), IDS[30:33]):
        step.buffers.state.copy_(state)
        expected, report = whole.run(proposals), whole.report()
        step.buffers.state.copy_(state)
        copy.stream.wait()
        assert torch.equal(apart.run(proposals), expected)
        assert apart.report() == report
        copy.stream.prefetch()
    assert copy.brought_bytes == 2 * copy.stream.pass_bytes > 0
    copy.close()
