"""The value format of low-bit weights, and the plainest rounding into it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.lowbit.codes import LowBitCodes, dequantise, group_of, round_to_nearest


@pytest.mark.parametrize(
    ("columns", "group"),
    [(576, 64), (1536, 64), (2048, 128), (4096, 128), (11008, 128), (96, 32), (48, 16), (88, 8), (2080, 32), (64, 64)],
)
def test_groups_are_fine_in_small_matrices_and_always_divide(columns: int, group: int) -> None:
    assert group_of(columns) == group
    assert columns % group == 0


def test_columns_that_are_no_multiple_of_eight_have_no_group() -> None:
    with pytest.raises(ValueError, match="100 columns"):
        group_of(100)


@pytest.mark.parametrize("bits", [8, 4, 3])
@pytest.mark.parametrize("group", [8, 32, 128])
def test_rounding_errs_by_half_a_step_and_never_leaves_the_codes(bits: int, group: int) -> None:
    generator = np.random.default_rng(bits * group)
    weight = generator.normal(0.3, 0.05, (7, 256)).astype(np.float32)
    factors = generator.uniform(0.2, 5, 256).astype(np.float32)
    codes = round_to_nearest(weight, bits, group, factors)
    assert codes.codes.dtype == np.uint8 and codes.codes.max() == 2**bits - 1 and codes.codes.min() == 0
    assert codes.scale.shape == codes.low.shape == (7, 256 // group)
    step = np.repeat(codes.scale.astype(np.float32), group, 1)
    start = np.abs(np.repeat(codes.low.astype(np.float32), group, 1))
    error = np.abs((dequantise(codes) - weight) * factors)
    # Half a step, and what float16 does to the ends of a group: 2^-11 of each, the scale's counted once a code.
    assert (error <= 0.5 * step + 2**-10 * start + 2**-11 * step * (2**bits - 1) + 1e-7).all()


def test_groups_without_spread_zeros_and_huge_values_stay_finite() -> None:
    weight = np.zeros((4, 64), np.float32)
    weight[1], weight[2], weight[3, ::2] = 0.5, 1e30, -1e30
    for bits in (8, 4, 3):
        values = dequantise(round_to_nearest(weight, bits, 32))
        assert np.isfinite(values).all()
        assert (values[0] == 0).all() and (values[1] == 0.5).all()


def test_torch_and_numpy_dequantise_the_same_values() -> None:
    weight = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)
    codes = round_to_nearest(weight, 4, 16, np.linspace(0.5, 2, 64, dtype=np.float32))
    tensors = LowBitCodes(
        *(torch.from_numpy(part) for part in (codes.codes, codes.scale, codes.low, codes.factors)), 4, 16
    )
    assert np.array_equal(dequantise(tensors).numpy(), dequantise(codes))
    assert (tensors.rows, tensors.columns) == (codes.rows, codes.columns) == (5, 64)
