"""Rounding to few bits: better than to nearest, the same in torch and compiled, and calm on odd input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from engine.kernels.compiled.unit_factor import unit_factor
from engine.lowbit.codes import LowBitCodes, dequantise, round_to_nearest
from engine.lowbit.rounding import feedback_of, round_matrix
from engine.lowbit.rounding_compiled import feedback_compiled, round_matrix_compiled
from engine.lowbit.rounding_rule import shrinkage

TOKENS = 300


def sample(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A matrix with columns of many sizes, and inputs whose channels differ in size and depend on each other."""
    generator = np.random.default_rng(seed)
    weight = generator.normal(0.01, 0.05, (rows, columns)) * generator.uniform(0.1, 1, columns)
    causes = generator.normal(0, 1, (TOKENS, columns // 4))
    inputs = causes @ generator.normal(0, 1, (columns // 4, columns)) * generator.uniform(0.05, 1, columns) ** 3
    return weight.astype(np.float32), inputs.astype(np.float32)


def numbers(codes: LowBitCodes) -> LowBitCodes:
    """The same codes in numpy arrays."""
    values, scale, low, factors = (np.asarray(part) for part in (codes.codes, codes.scale, codes.low, codes.factors))
    return LowBitCodes(values, scale, low, factors, codes.bits, codes.group)


def by_torch(
    weight: np.ndarray, bits: int, group: int, square: np.ndarray | None = None, feedback: np.ndarray | None = None
) -> LowBitCodes:
    known = [None if part is None else torch.from_numpy(part) for part in (square, feedback)]
    return numbers(round_matrix(torch.from_numpy(weight), bits, group, *known))


ROUNDINGS = pytest.mark.parametrize("rounding", [by_torch, round_matrix_compiled], ids=["torch", "compiled"])
Rounding = Callable[..., LowBitCodes]


def weighted_error(codes: LowBitCodes, weight: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Of each group, float64 [N, G]."""
    errors = (dequantise(codes).astype(np.float64) - weight) ** 2 * square
    return errors.reshape(len(weight), -1, codes.group).sum(2)


def output_error(codes: LowBitCodes, weight: np.ndarray, inputs: np.ndarray) -> float:
    return float((((dequantise(codes) - weight) @ inputs.T) ** 2).sum())


@pytest.mark.parametrize(("columns", "group"), [(192, 64), (256, 128), (96, 32), (88, 8)])
@pytest.mark.parametrize("bits", [3, 4, 8])
@pytest.mark.parametrize("passes_on", [False, True], ids=["alone", "feedback"])
def test_compiled_and_torch_choose_the_same(columns: int, group: int, bits: int, passes_on: bool) -> None:
    weight, inputs = sample(67, columns, bits)
    square = (inputs**2).mean(0)
    feedback = feedback_compiled(inputs) if passes_on else None
    one, two = (
        by_torch(weight, bits, group, square, feedback),
        round_matrix_compiled(weight, bits, group, square, feedback),
    )
    same = [float((a == b).mean()) for a, b in ((one.codes, two.codes), (one.scale, two.scale), (one.low, two.low))]
    assert min(same) > 0.97  # sums are ordered differently, so that near ties may fall either way
    measure: Any = inputs if passes_on else np.diag(np.sqrt(square))
    assert output_error(one, weight, measure) == pytest.approx(output_error(two, weight, measure), rel=0.01)


@pytest.mark.parametrize("columns", [8, 88, 96, 200, 320])
def test_feedback_is_the_same_in_torch_and_compiled_and_is_a_factor_of_the_moments(columns: int) -> None:
    inputs = sample(1, columns, 5)[1]
    one, two = feedback_of(torch.from_numpy(inputs)).numpy(), feedback_compiled(inputs)
    np.testing.assert_allclose(one, two, atol=1e-4)
    assert not np.tril(two).any()
    moments = inputs.T.astype(np.float64) @ inputs / TOKENS
    part = shrinkage(TOKENS, columns)
    expected = (1 - part) * moments + np.diag(part * moments.diagonal() + 0.01 * moments.diagonal().mean())
    unit = two + np.eye(columns)
    middle = np.linalg.inv(unit) @ expected @ np.linalg.inv(unit).T
    assert abs(middle - np.diag(middle.diagonal())).max() < 1e-3 * middle.diagonal().max()
    assert (middle.diagonal() > 0).all()


def test_a_pivot_that_is_not_positive_passes_nothing_on() -> None:
    matrix = np.zeros((72, 72), np.float32)
    matrix[np.diag_indices(70)] = 2.0
    matrix[3, 5], matrix[3, 71] = 1.0, 1.0
    unit_factor(matrix)
    expected = np.zeros((72, 72), np.float32)
    expected[3, 5] = 0.5
    np.testing.assert_array_equal(matrix, expected)


@ROUNDINGS
@pytest.mark.parametrize("bits", [3, 4, 8])
def test_no_group_is_worse_than_rounded_to_nearest(rounding: Rounding, bits: int) -> None:
    weight, inputs = sample(50, 192, 1)
    square = (inputs**2).mean(0)
    counted = square / square.mean() + np.float32(0.05)  # the importance the rule says it weighs by
    plain = weighted_error(round_to_nearest(weight, bits, 64), weight, counted)
    better = weighted_error(rounding(weight, bits, 64, square), weight, counted)
    assert (better <= plain * (1 + 1e-5)).all()
    assert better.sum() < (0.97 if bits == 8 else 0.7) * plain.sum()


@ROUNDINGS
def test_feedback_makes_the_output_better_still(rounding: Rounding) -> None:
    weight, inputs = sample(50, 192, 2)
    square = (inputs**2).mean(0)
    alone = output_error(rounding(weight, 4, 64, square), weight, inputs)
    helped = output_error(rounding(weight, 4, 64, square, feedback_compiled(inputs)), weight, inputs)
    assert helped < 0.7 * alone


@ROUNDINGS
@pytest.mark.parametrize("passes_on", [False, True], ids=["alone", "feedback"])
def test_zeros_and_constants_are_kept_and_nothing_is_nan(rounding: Rounding, passes_on: bool) -> None:
    weight, inputs = sample(4, 128, 3)
    feedback = feedback_compiled(inputs) if passes_on else None
    weight[0], weight[1], weight[2, :64] = 0, 0.25, 1e-9
    codes = rounding(weight, 4, 64, (inputs**2).mean(0), feedback)
    values = dequantise(codes)
    assert np.isfinite(values).all()
    assert not values[0].any()
    assert (values[1] == 0.25).all()
    assert abs(values[2, :64]).max() < 1e-6


@ROUNDINGS
def test_inputs_that_were_all_zero_count_alike(rounding: Rounding) -> None:
    weight = sample(9, 128, 4)[0]
    silent = np.zeros((TOKENS, 128), np.float32)
    alike = rounding(weight, 4, 64)
    unseen = rounding(weight, 4, 64, (silent**2).mean(0), feedback_compiled(silent))
    assert np.isfinite(feedback_compiled(silent)).all() and feedback_of(torch.from_numpy(silent)).isfinite().all()
    ones = np.ones(128, np.float32)
    assert weighted_error(unseen, weight, ones).sum() <= weighted_error(alike, weight, ones).sum() * 1.01


@ROUNDINGS
def test_values_beyond_float16_are_clipped_not_infinite(rounding: Rounding) -> None:
    weight = np.linspace(-2e5, 2e5, 64, dtype=np.float32)[None]
    values = dequantise(rounding(weight, 4, 64))
    assert np.isfinite(values).all()
    assert abs(values).max() > 6e4


@ROUNDINGS
def test_groups_far_from_zero_keep_their_shape(rounding: Rounding) -> None:
    weight = (1 + np.random.default_rng(6).normal(0, 0.01, (20, 64))).astype(np.float32)
    ones = np.ones(64, np.float32)
    plain = weighted_error(round_to_nearest(weight, 4, 64), weight, ones).sum()
    assert weighted_error(rounding(weight, 4, 64), weight, ones).sum() < plain


def test_rows_are_rounded_alike_whatever_shares_the_work() -> None:
    weight, inputs = sample(131, 128, 7)
    square, feedback = (inputs**2).mean(0), feedback_compiled(inputs)
    together = round_matrix_compiled(weight, 4, 64, square, feedback, threads=3)
    for row in (0, 43, 64, 130):
        alone = round_matrix_compiled(weight[row : row + 1], 4, 64, square, feedback, threads=1)
        np.testing.assert_array_equal(alone.codes[0], together.codes[row])
        np.testing.assert_array_equal(alone.scale[0], together.scale[row])


def test_torch_rounds_large_matrices_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    weight, inputs = sample(30, 128, 8)
    square, feedback = torch.from_numpy((inputs**2).mean(0)), feedback_of(torch.from_numpy(inputs))
    whole = round_matrix(torch.from_numpy(weight), 4, 64, square, feedback)
    monkeypatch.setattr("engine.lowbit.rounding.CHUNK_VALUES", 128 * 7)
    parts = round_matrix(torch.from_numpy(weight), 4, 64, square, feedback)
    assert float((whole.codes == parts.codes).float().mean()) > 0.99
