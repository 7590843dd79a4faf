"""MLP neurons chosen by the upper planes of gate and up."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.lowbit.codes import LowBitCodes, dequantise, round_to_nearest
from engine.predict.planes import PlanePredictor, chosen_mlp, fit_planes, high_plane, rest_plane, silu
from engine.predict.report import layer_report
from engine.predict.thresholds import threshold_for

NEURONS, WIDTH = 192, 128


def matrix(seed: int, bits: int = 4) -> LowBitCodes:
    """Heavy-tailed weights, so that neurons differ, rounded with uneven factors."""
    random = np.random.default_rng(seed)
    weight = random.normal(size=(NEURONS, WIDTH)) * random.lognormal(0, 0.7, (NEURONS, 1)) * 0.05
    factors = random.lognormal(0, 0.3, WIDTH).astype(np.float32)
    return round_to_nearest(weight.astype(np.float32), bits, 64, factors)


def inputs(seed: int, tokens: int = 200) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(tokens, WIDTH)).astype(np.float32)


def as_torch(codes: LowBitCodes) -> LowBitCodes:
    codes_, scale, low, factors = map(torch.from_numpy, (codes.codes, codes.scale, codes.low, codes.factors))
    return replace(codes, codes=codes_, scale=scale, low=low, factors=factors)


def test_the_two_planes_are_the_code_and_the_upper_one_stands_for_the_middle_of_what_it_can_be() -> None:
    codes = matrix(0)
    high, rest = high_plane(codes), rest_plane(codes)
    assert high.bits == 2 and high.codes.max() == 3 and rest.max() == 3
    assert np.array_equal(4 * high.codes + rest, codes.codes)
    steps = np.repeat(codes.scale.astype(np.float32), 64, 1) / codes.factors
    difference = (dequantise(codes) - dequantise(high)) / steps
    assert np.allclose(difference, rest.astype(np.float32) - 1.5, atol=1e-2)


def test_a_matrix_of_other_bits_has_no_planes() -> None:
    with pytest.raises(ValueError, match="8-bit"):
        high_plane(matrix(0, bits=8))


@pytest.mark.parametrize("share", [0.5, 0.3, 0.1])
def test_about_the_wanted_share_is_kept_on_new_tokens_and_carries_most_of_what_the_neurons_add(share: float) -> None:
    gate, up, reach = matrix(1), matrix(2), np.random.default_rng(3).lognormal(0, 0.5, NEURONS).astype(np.float32)
    predictor = fit_planes(gate, up, reach, inputs(4), share)
    tokens = inputs(5)
    chosen = predictor.choose(tokens)
    truth = abs(silu(tokens @ dequantise(gate).T) * (tokens @ dequantise(up).T)) * reach
    report = layer_report(0, chosen, truth)
    by_chance = layer_report(0, np.random.default_rng(6).random(chosen.shape) < share, truth)
    assert abs(report.kept - share) < 0.03
    assert report.top_recall > 0.6 and report.recall > by_chance.recall + 0.25


def test_torch_and_numpy_choose_alike() -> None:
    gate, up, reach = matrix(1), matrix(2), np.ones(NEURONS, np.float32)
    mine = fit_planes(gate, up, reach, inputs(4), 0.4)
    theirs = fit_planes(as_torch(gate), as_torch(up), torch.from_numpy(reach), torch.from_numpy(inputs(4)), 0.4)
    assert theirs.threshold == pytest.approx(mine.threshold, rel=1e-4)
    tokens = inputs(5)
    alike = theirs.choose(torch.from_numpy(tokens)).numpy() == mine.choose(tokens)
    assert alike.mean() > 0.999  # a score a rounding away from the threshold may fall on either side


def test_an_mlp_of_all_neurons_is_the_dense_one_and_one_of_the_chosen_is_near_it() -> None:
    gate, up, reach = matrix(1), matrix(2), np.ones(NEURONS, np.float32)
    down = np.random.default_rng(7).normal(size=(NEURONS, 64)).astype(np.float32)
    tokens = inputs(5)
    dense = (silu(tokens @ dequantise(gate).T) * (tokens @ dequantise(up).T)) @ down
    everything = chosen_mlp(fit_planes(gate, up, reach, inputs(4), 1.0), gate, up, down, tokens)
    assert np.array_equal(everything, dense)
    half = chosen_mlp(fit_planes(gate, up, reach, inputs(4), 0.5), gate, up, down, tokens)
    assert 0 < np.linalg.norm(half - dense) < 0.15 * np.linalg.norm(dense)


def test_a_token_of_zeros_adds_zero_and_calibration_on_zeros_chooses_nothing() -> None:
    gate, up, reach = matrix(1), matrix(2), np.ones(NEURONS, np.float32)
    nothing = np.zeros((3, WIDTH), np.float32)
    for sample in (inputs(4), nothing):
        predictor = fit_planes(gate, up, reach, sample, 0.5)
        result = chosen_mlp(predictor, gate, up, np.ones((NEURONS, 8), np.float32), nothing)
        assert np.array_equal(result, np.zeros((3, 8), np.float32))
    assert (predictor.gate_error, predictor.up_error, predictor.threshold) == (0, 0, 0)
    assert not predictor.choose(nothing).any()


def test_what_the_planes_cannot_see_is_counted_as_noise() -> None:
    gate, up, reach = matrix(1), matrix(2), np.random.default_rng(3).lognormal(0, 0.5, NEURONS).astype(np.float32)
    aware = fit_planes(gate, up, reach, inputs(4), 0.5)
    blind = replace(aware, gate_error=0.0, up_error=0.0)
    blind = replace(blind, threshold=threshold_for(blind.scores(inputs(4)), 0.5))
    tokens = inputs(5)
    gates, ups = silu(tokens @ dequantise(gate).T), tokens @ dequantise(up).T
    assert np.allclose(blind.scores(tokens), plain_scores(blind, tokens), rtol=1e-4, atol=1e-6)
    lost = [(((gates * ups * reach) * ~one.choose(tokens)) ** 2).sum() for one in (aware, blind)]
    assert 0 < lost[0] < lost[1]


def plain_scores(predictor: PlanePredictor, tokens: np.ndarray) -> np.ndarray:
    gates, ups = tokens @ dequantise(predictor.gate).T, tokens @ dequantise(predictor.up).T
    return np.asarray(abs(silu(gates) * ups) * predictor.reach)


def test_a_very_negative_gate_is_closed_and_not_a_fault() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = silu(np.array([-200, -1, 0, 200], np.float32))
    assert np.allclose(values, [0, -0.26894143, 0, 200])
