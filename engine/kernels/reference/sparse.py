"""The sparse products of a draft in torch, on the values its codes stand for: what the card's kernels are held against.

Activations are one row of float32; where a kernel reads int8, hand over what `dequantised` makes of it.
"""

from __future__ import annotations

import torch
from torch.nn import functional

Tensor = torch.Tensor

SMALLEST = 1e-20  # of a quantisation scale


def quantised(values: Tensor) -> tuple[Tensor, Tensor]:
    """float32 [K] as int8 planes [2, K / 2] (values 0 to 3 and 4 to 7 of each eight) and scales [K / 8]."""
    eights = values.view(-1, 8)
    scales = eights.abs().amax(1) / 127.0 + SMALLEST
    rounded = torch.floor(eights / scales[:, None] + 0.5).to(torch.int8)
    return torch.stack((rounded[:, :4].reshape(-1), rounded[:, 4:].reshape(-1))), scales


def dequantised(planes: Tensor, scales: Tensor) -> Tensor:
    """The float32 [K] that int8 planes and scales stand for."""
    halves = planes.view(torch.int8).view(2, -1, 4).float()
    return (torch.cat((halves[0], halves[1]), 1) * scales.view(-1, 1)).view(-1)


def gated(weight: Tensor, x: Tensor, neurons: Tensor) -> Tensor:
    """silu(gate) * up of the named neurons; weight float32 [2 N, K], gates then ups."""
    count = len(weight) // 2
    return functional.silu(weight[neurons] @ x) * (weight[neurons + count] @ x)


def relu(weight: Tensor, bias: Tensor, x: Tensor, neurons: Tensor) -> Tensor:
    """relu(weight x + bias) of the named neurons; weight float32 [N, K]."""
    return torch.relu(weight[neurons] @ x + bias[neurons])


def without_channels(x: Tensor, limits: Tensor) -> Tensor:
    """x with the channels that are not above their limit set to zero."""
    return torch.where(x.abs() > limits, x, 0.0)
