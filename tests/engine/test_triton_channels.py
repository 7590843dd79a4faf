"""The product without small input channels, against torch over the same codes with those channels set to zero."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from engine.kernels.reference import sparse
from engine.kernels.triton.channel_matmul import channel_matmul_kernel
from engine.kernels.triton.sparse_packing import ChannelMatrix, pack_channels
from sparse_rig import DEVICE, Activations, Tensor, activations, codes, nan, normal, plain, random, relative
from triton_rig import DEPENDENT, EPSILON, LAUNCH, quiet, triton

PROJECT, RESIDUAL, GATED = range(3)
CHANNELS, GROUP = 96, 16
SQUARES = torch.tensor([40.0, 100.0, 30.0], device=DEVICE)
INVERSE = float(torch.rsqrt(SQUARES.sum() / CHANNELS + EPSILON))


class Result:
    """What a launch wrote; what it had to leave at zero is checked."""

    def __init__(
        self, matrix: ChannelMatrix, x: Activations, limits: Tensor, epilogue: int, *, normed: bool, splits: int = 2
    ) -> None:
        n, words = matrix.columns, matrix.codes.shape[1]
        generator = random(n)
        self.before, self.gain = normal(generator, n), normal(generator, n)
        tiles = words // matrix.tile
        self.sums = self.before.clone() if epilogue == RESIDUAL else torch.zeros(8 * words, device=DEVICE)
        self.y = nan(n, dtype=torch.float16)
        self.planes = torch.full((2, n // 2), 77, dtype=torch.int8, device=DEVICE)
        self.scales, self.squares = nan(n // 8), nan(tiles)
        arrivals = torch.zeros(tiles, dtype=torch.int32, device=DEVICE)
        with quiet():
            channel_matmul_kernel[(tiles, splits)](
                x.words, x.scales, limits, matrix.codes, matrix.groups, nan(1) if matrix.bias is None else matrix.bias,
                self.sums, self.y, self.gain, self.planes, self.scales, SQUARES, self.squares, arrivals, n, EPSILON,
                K=CHANNELS, WORDS=words, GROUP=GROUP, ROWS=2, TILE=matrix.tile, SPLITS=splits, EPILOGUE=epilogue,
                NORMED=normed, HAS_BIAS=matrix.bias is not None, QUANTISES=True, PARTS=3, PARTS_PADDED=4,
                DEPENDENT=DEPENDENT, num_warps=2, num_stages=1, **LAUNCH,
            )  # fmt: skip
        assert not arrivals.any() and (epilogue == RESIDUAL or not self.sums.any()), "the next launch starts from zero"


def limits_of(values: Tensor, share: float) -> Tensor:
    """One limit for all channels that drops the share; drops nothing, not even zeros, where the share is zero."""
    limit = float(values.abs().quantile(share)) if share else -1.0
    return torch.full((len(values),), limit, device=DEVICE)


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_a_projection_without_small_channels(share: float) -> None:
    matrix, x = codes(1, 272, CHANNELS, GROUP), activations(2, CHANNELS)
    bias = normal(random(3), 272)
    normed = x.values * INVERSE
    limits = limits_of(normed, share)
    result = Result(pack_channels(matrix, 32, bias), x, limits, PROJECT, normed=True)
    wanted = plain(matrix) @ sparse.without_channels(normed, limits) + bias
    torch.testing.assert_close(result.y.float(), wanted, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("splits", [1, 3])
def test_every_channel_has_its_own_limit_and_every_split_its_share(splits: int) -> None:
    matrix, x = codes(4, 528, CHANNELS, GROUP), activations(5, CHANNELS)
    limits = normal(random(6), CHANNELS)  # some below zero: those channels always count
    result = Result(pack_channels(matrix, 64), x, limits, RESIDUAL, normed=False, splits=splits)
    kept = sparse.without_channels(x.values, limits)
    assert 0 < int((kept == 0).sum()) < CHANNELS
    wanted = result.before + plain(matrix) @ kept
    torch.testing.assert_close(result.sums, wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(result.squares.sum(), wanted.square().sum(), rtol=1e-4, atol=0.0)
    assert relative(sparse.dequantised(result.planes, result.scales), wanted * result.gain) < 0.01


@pytest.mark.parametrize("neurons", [128, 136])
def test_gates_and_ups_of_a_tile_meet(neurons: int) -> None:
    """136 neurons fill a tile of 128 and the beginning of another."""
    matrix, x = codes(7, 2 * neurons, CHANNELS, GROUP), activations(8, CHANNELS)
    normed = x.values * INVERSE
    limits = limits_of(normed, 0.3)
    result = Result(pack_channels(matrix, 32, gated=True), x, limits, GATED, normed=True)
    gate, up = (plain(matrix) @ sparse.without_channels(normed, limits)).chunk(2)
    wanted = functional.silu(gate) * up * result.gain
    assert relative(sparse.dequantised(result.planes, result.scales), wanted) < 0.01
    block = triton.cdiv(neurons, 8) - 1
    torch.testing.assert_close(result.scales[block], wanted[-8:].abs().max() / 127, rtol=1e-4, atol=0.0)


def test_codes_of_other_widths_and_odd_groups_are_refused() -> None:
    matrix = codes(9, 16, 32, 8)
    with pytest.raises(ValueError, match="3-bit"):
        pack_channels(replace(matrix, bits=3), 4)
    with pytest.raises(ValueError, match="groups of 4"):
        pack_channels(replace(matrix, group=4), 4)
