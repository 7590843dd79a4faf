"""Layer norm on the card against torch."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from engine.kernels.reference import operations as op
from engine.kernels.triton.layer_norm import layer_norm_kernel
from triton_rig import (
    DEPENDENT,
    DTYPES,
    EPSILON,
    LAUNCH,
    ROWS,
    Tensor,
    assert_close,
    nan,
    normal,
    quiet,
    random,
    triton,
)


def run(stream: Tensor, weight: Tensor, bias: Tensor, rows: int, dtype: torch.dtype) -> Tensor:
    width = stream.shape[1]
    y = nan(ROWS, width, dtype=dtype)
    padded = triton.next_power_of_2(width)
    with quiet():
        layer_norm_kernel[(rows,)](
            stream,
            weight,
            bias,
            y,
            EPSILON,
            WIDTH=width,
            WIDTH_PADDED=padded,
            DEPENDENT=DEPENDENT,
            num_warps=4,
            **LAUNCH,
        )
    return y


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("width", [64, 100, 129])
def test_layer_norm_matches_torch_at_every_width_of_the_pass(width: int, dtype: torch.dtype) -> None:
    generator = random(width)
    stream = normal(generator, ROWS, width, scale=4.0) + 30.0  # a mean far from zero: variance must be of what is left
    weight, bias = normal(generator, width), normal(generator, width)
    whole = run(stream, weight, bias, ROWS, dtype)
    assert_close(whole, op.layer_norm(stream, weight, bias, EPSILON), dtype)
    for rows in (1, 2, 8, 15):
        part = run(stream, weight, bias, rows, dtype)
        assert torch.equal(part[:rows], whole[:rows]) and part[rows:].isnan().all()


def test_the_oracle_is_torchs_own_layer_norm_and_relu() -> None:
    generator = random(1)
    stream, weight, bias = normal(generator, 5, 70), normal(generator, 70), normal(generator, 70)
    expected = functional.layer_norm(stream, (70,), weight, bias, EPSILON)
    torch.testing.assert_close(op.layer_norm(stream, weight, bias, EPSILON), expected)
    assert torch.equal(op.relu(stream), stream.clamp(min=0))


def test_a_constant_row_gives_the_bias() -> None:
    generator = random(2)
    bias = normal(generator, 64)
    y = run(torch.full_like(nan(ROWS, 64), 5.0), normal(generator, 64), bias, ROWS, torch.float16)
    assert torch.equal(y, bias.half().expand(ROWS, 64))
