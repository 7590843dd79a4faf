"""Random four-bit matrices and int8 activations for the sparse kernels, and launches of single ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.kernels.reference.sparse import dequantised, quantised
from engine.lowbit.codes import LowBitCodes, dequantise
from triton_rig import DEVICE, Tensor, nan, normal, random


def codes(seed: int, rows: int, columns: int, group: int, *, factors: bool = True) -> LowBitCodes:
    """Random four-bit codes whose values have a scale of about 1 / sqrt(columns)."""
    generator = random(seed)
    values = torch.randint(0, 16, (rows, columns), generator=generator, dtype=torch.uint8)
    shape = (rows, columns // group)
    scale = ((torch.rand(shape, generator=generator) + 0.5) * columns**-0.5 / 5).half()
    low = (-7.5 * scale.float() + torch.randn(shape, generator=generator) * 0.02 * columns**-0.5).half()
    factor = 2.0 ** torch.rand(columns, generator=generator) if factors else torch.ones(columns)
    return LowBitCodes(*(part.to(DEVICE) for part in (values, scale, low, factor)), 4, group)


def plain(matrix: LowBitCodes) -> Tensor:
    """The values that codes have for an input already divided by the factors."""
    return dequantise(matrix) * matrix.factors


@dataclass(frozen=True)
class Activations:
    """int8 planes and scales of one row, and the float32 values they stand for."""

    planes: Tensor
    scales: Tensor
    values: Tensor

    @property
    def words(self) -> Tensor:
        return self.planes.view(torch.int32)


def activations(seed: int, width: int) -> Activations:
    planes, scales = quantised(normal(random(seed), width))
    return Activations(planes, scales, dequantised(planes, scales))


def counters(count: int = 0, done: int = 0) -> Tensor:
    return torch.tensor([count, done], dtype=torch.int32, device=DEVICE)


def relative(actual: Tensor, expected: Tensor) -> float:
    return float((actual.float() - expected.float()).norm() / expected.float().norm())


__all__ = ["DEVICE", "Activations", "Tensor", "activations", "codes", "counters", "nan", "normal", "plain", "random"]
