"""Low-bit weights as values: what every kernel and every packing of them must agree with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

BITS = (8, 4, 3)
SMALLEST_FACTOR = np.float32(1e-6)  # activations are divided by factors


@dataclass(frozen=True, slots=True)
class LowBitCodes:
    """A matrix [N, K] in groups of `group` columns: w[n, k] ~ (scale[n, g] * codes[n, k] + low[n, g]) / factors[k].

    codes uint8 [N, K], each below 2^bits; scale and low float16 [N, K / group]; factors float32 [K], positive: the
    input is divided by them before the product. All four are numpy arrays or all four are torch tensors.
    """

    codes: Any
    scale: Any
    low: Any
    factors: Any
    bits: int
    group: int

    @property
    def rows(self) -> int:
        """N, the outputs of the matrix."""
        return int(self.codes.shape[0])

    @property
    def columns(self) -> int:
        """K, the inputs of the matrix."""
        return int(self.codes.shape[1])


def group_of(columns: int) -> int:
    """Columns that share a scale: 64 in matrices with fewer than 2048 of them (small models round worst), else 128.

    Where that does not divide the columns, the largest of 64, 32, 16 and 8 that does. Raises ValueError for a number
    of columns that is no multiple of eight.
    """
    for group in (*((128,) if columns >= 2048 else ()), 64, 32, 16, 8):
        if columns % group == 0:
            return group
    raise ValueError(f"{columns} columns do not fall into groups of eight")


def dequantise(codes: LowBitCodes) -> Any:
    """The weights the codes stand for, float32 [N, K], computed in float32: numpy or torch as the codes are."""
    rows, columns = codes.codes.shape
    grouped = (rows, columns // codes.group, codes.group)
    if isinstance(codes.codes, np.ndarray):
        steps, scale, low = (part.astype(np.float32) for part in (codes.codes, codes.scale, codes.low))
    else:
        steps, scale, low = (part.float() for part in (codes.codes, codes.scale, codes.low))
    values = steps.reshape(grouped) * scale[:, :, None] + low[:, :, None]
    return values.reshape(rows, columns) / codes.factors


def round_to_nearest(weight: np.ndarray, bits: int, group: int, factors: np.ndarray | None = None) -> LowBitCodes:
    """The plainest rounding: each group's codes evenly from its least to its greatest value.

    weight: float32 [N, K], finite; factors: float32 [K] the weights are multiplied with first, None for ones.
    """
    rows, columns = weight.shape
    ones = np.ones(columns, np.float32) if factors is None else factors
    values = (weight * ones).reshape(rows, columns // group, group)
    most = np.float32(2**bits - 1)
    low = np.clip(values.min(2), -65504, 65504).astype(np.float16)
    scale = np.minimum((values.max(2) - low.astype(np.float32)) / most, 65504).astype(np.float16)
    step, start = scale.astype(np.float32)[:, :, None], low.astype(np.float32)[:, :, None]
    ratio = np.divide(values - start, step, out=np.zeros_like(values), where=step > 0)
    codes = np.clip(np.rint(ratio), 0, most).astype(np.uint8).reshape(rows, columns)
    return LowBitCodes(codes, scale, low, ones, bits, group)
