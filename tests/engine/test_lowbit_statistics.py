"""What rounding knows of the inputs: taken from the model's own passes, which leave no trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from builders import byte_tokenizer, tiny_llama
from engine.errors import LoadCancelled
from engine.lowbit.codes import dequantise, group_of, round_to_nearest
from engine.lowbit.copies import CopyPlan, Watch, make_copies
from engine.lowbit.packed import PackedMatrix, pack
from engine.lowbit.sample_text import SAMPLE_TEXT, TOKENS, sample_ids
from engine.lowbit.statistics import InputSample, InputStatistics
from engine.model import programme as p
from engine.model.compiled_runner import spread_ids
from engine.model.matrix import Matrix
from engine.recipe import Recipe
from engine.text.tokenizer import load_tokenizer
from engine_rig import compiled_runner, same_bits

IDS = np.random.default_rng(2).integers(3, 290, 150).tolist()
LAYER = "model.layers.{}.{}_proj.weight"


def test_inputs_are_those_of_a_pass_without_the_first_position(tmp_path: Path) -> None:
    with compiled_runner(tiny_llama(tmp_path, std=0.2), recipe=Recipe(weight_bits=16)) as runner:
        seen = runner.activation_statistics(IDS)
        weights, config = runner._weights, runner.config
        embedded = np.asarray(weights.matrix(p.EMBEDDING).owner[0])[IDS].astype(np.float64)
        scale = 1 / np.sqrt((embedded**2).mean(1, keepdims=True) + config.rms_norm_eps)
        normed = embedded * scale * weights.vector("model.layers.0.input_layernorm.weight")
        first = seen[LAYER.format(0, "self_attn.q")]
        assert first.rows is not None and first.rows.shape == (149, 64)
        assert np.allclose(first.rows, normed[1:], rtol=1e-5, atol=1e-6)
        assert np.allclose(first.mean_square, (normed[1:] ** 2).mean(0), rtol=1e-5)
        names = {name for read in p.shared_inputs(p.build(config, weights.names)) for name in read.weights}
        assert seen.keys() == names and p.output_matrix(config, weights.names) in names
        assert seen[LAYER.format(0, "self_attn.k")] is first is seen[LAYER.format(0, "self_attn.v")]
        assert seen[LAYER.format(0, "mlp.gate")] is seen[LAYER.format(0, "mlp.up")] is not first
        last = seen[p.output_matrix(config, weights.names)].rows
        runner.full(IDS[:64], 0, 16)
        assert last is not None
        assert np.array_equal(last[47:63], runner._memory.buffers[p.Buffer.NORMED][48:64])


def test_they_leave_the_cache_and_the_averages_as_they_were(tmp_path: Path) -> None:
    with compiled_runner(tiny_llama(tmp_path, std=0.2), recipe=Recipe(weight_bits=16), capacity=100) as runner:
        runner.full(IDS[100:140], 0, 0)
        cache = [layer.copy() for layer in runner._memory.cache]
        averages = runner._memory.statistics.copy()
        seen = runner.activation_statistics(IDS)
        sample = seen[LAYER.format(1, "mlp.down")]
        assert sample.rows is not None and len(sample.rows) == 99, "as far as the cache has room"
        assert same_bits(runner._memory.cache, cache) and np.array_equal(runner._memory.statistics, averages)


def test_they_can_be_cancelled_and_leave_no_trace_then_either(tmp_path: Path) -> None:
    with compiled_runner(tiny_llama(tmp_path, std=0.2), recipe=Recipe(weight_bits=16)) as runner:
        runner.full(IDS[100:140], 0, 0)
        cache = [layer.copy() for layer in runner._memory.cache]
        asked = iter(range(100))
        with pytest.raises(LoadCancelled):
            runner.activation_statistics(IDS, lambda: next(asked) >= 1)
        assert same_bits(runner._memory.cache, cache)


def test_wide_inputs_are_counted_but_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("engine.lowbit.statistics.FEEDBACK_COLUMNS", 100)
    with compiled_runner(tiny_llama(tmp_path, std=0.2), recipe=Recipe(weight_bits=16)) as runner:
        seen = runner.activation_statistics(IDS)
        wide, narrow = seen[LAYER.format(0, "mlp.down")], seen[LAYER.format(0, "mlp.up")]
        assert wide.rows is None and wide.mean_square.shape == (128,) and narrow.rows is not None
        runner.use_recipe(Recipe(weight_bits=4))
        assert np.isfinite(runner.draft([5], 0)).all()


def test_nothing_seen_is_an_error() -> None:
    steps = (p.AddNorm("n", False), p.Linear("w", p.Buffer.NORMED, p.Buffer.LOGITS))
    with pytest.raises(ValueError, match="nothing was seen"):
        InputStatistics(steps).means()


def test_copies_spend_their_precision_where_inputs_are_large() -> None:
    """Inputs that live in a few directions: rounded with what is known of them, the outputs err far less."""
    random = np.random.default_rng(0)
    weight = random.normal(0, 0.1, (64, 128)).astype(np.float32)
    spread = np.exp(random.normal(0, 1.5, 128))
    inputs = (random.normal(0, 1, (400, 12)) @ random.normal(0, 1, (12, 128)) * spread).astype(np.float32)
    sample = InputSample((inputs**2).mean(0), inputs)
    matrix = Matrix.of(weight, 0)
    errors = []
    for seen in ({}, {"w": InputSample(sample.mean_square, None)}, {"w": sample}):
        plan = CopyPlan((("w",),), 4, "output")
        copy = make_copies(lambda _: matrix, plan, lambda _, seen=seen: seen, 2, Watch())["w"]  # type: ignore[misc]
        errors.append(float(np.square(inputs @ (unpacked(copy) - weight).T).mean()))
    plain = dequantise(round_to_nearest(weight, 4, group_of(128)))
    assert np.allclose(unpacked(pack(round_to_nearest(weight, 4, group_of(128)))), plain)
    assert errors[2] < 0.5 * errors[1] < 0.5 * errors[0], errors


def unpacked(copy: PackedMatrix) -> np.ndarray:
    """float32 values of a packed 4-bit matrix."""
    tiles, groups, _ = copy.data.shape
    codes = copy.data[:, :, : copy.group * 4].reshape(tiles, groups, copy.group // 8, 8, 4)
    halves = np.stack([codes & 15, codes >> 4], 3)  # tile, group, eight columns, half, row, column of four
    ordered = halves.transpose(0, 4, 1, 2, 3, 5).reshape(tiles * 8, copy.columns)
    ends = copy.data[:, :, copy.group * 4 :].copy().view(np.float16).reshape(tiles, groups, 2, 8)
    scale, low = (ends[:, :, i].transpose(0, 2, 1).reshape(tiles * 8, groups, 1).astype(np.float32) for i in range(2))
    values = ordered.reshape(tiles * 8, groups, copy.group) * scale + low
    return (values.reshape(tiles * 8, -1) * copy.inverse)[: copy.rows]


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_weights_and_inputs_of_a_broken_model_do_not_stop_its_copy(bad: float) -> None:
    weight = np.full((8, 64), 0.5, np.float32)
    weight[3, 7] = bad
    rows = np.full((10, 64), bad, np.float32)
    with np.errstate(all="ignore"):
        sample = InputSample(np.square(rows).mean(0), rows)
    for seen in ({}, {"w": sample}):
        plan = CopyPlan((("w",),), 4, "output")
        copy = make_copies(lambda _: Matrix.of(weight, 0), plan, lambda _, seen=seen: seen, 1, Watch())["w"]  # type: ignore[misc]
        values = unpacked(copy)
        assert np.isfinite(values).all() and (values[0] == 0.5).all()


def test_the_sample_text_is_varied_and_about_as_long_as_wanted(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(byte_tokenizer(tiny_llama(tmp_path)))
    ids = sample_ids(tokenizer, 290)
    assert len(ids) == TOKENS and max(ids) < 290
    assert sample_ids(None, 290) == ()
    assert max(sample_ids(tokenizer, 100)) < 100
    assert "def " in SAMPLE_TEXT and "。" in SAMPLE_TEXT and "?" in SAMPLE_TEXT


def test_without_a_text_tokens_from_all_over_the_vocabulary_stand_in() -> None:
    ids = spread_ids(290)
    assert len(ids) == 256 and all(0 <= token < 290 for token in ids) and len(set(ids)) > 150
