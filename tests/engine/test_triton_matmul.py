"""The fixed-width matrix kernel against its torch oracle: every epilogue, sizes that no tile divides, every width."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.kernels.reference import operations as op
from triton_rig import DEVICE, DTYPES, EPSILON, ROWS, Product, Tensor, assert_close, multiply, normal, random

PROJECT, RESIDUAL, GATED, LOGITS, RELU = range(5)
SHAPES = [(96, 64, 32, 64), (64, 96, 32, 64), (80, 64, 32, 32), (67, 100, 64, 32), (16, 32, 16, 32)]


def operands(
    epilogue: int, n: int, k: int, dtype: torch.dtype, *, biased: bool = True, shrink: float = 1.0, rows: int = ROWS
) -> Product:
    """Random operands: x of a normed stream stands as stream * gain / shrink beside partial sums of its squares."""
    generator = random(n + k)
    w = normal(generator, 2 * n if epilogue == GATED else n, k, dtype=dtype, scale=k**-0.5)
    bias = normal(generator, n) if biased and epilogue != GATED else None
    product = Product(epilogue, normal(generator, rows, k, dtype=dtype), w, bias, shrink=shrink)
    if epilogue == RESIDUAL:
        stream, gain = normal(generator, rows, n, scale=3.0), normal(generator, n)
        product = Product(epilogue, product.x, w, bias, stream, gain, shrink=shrink)
    elif epilogue != RELU:
        before, gain = normal(generator, rows, k, scale=3.0), normal(generator, k)
        parts = torch.stack([piece.square().sum(1) for piece in before.tensor_split(3, 1)])
        product = Product(epilogue, (before * gain / shrink).to(dtype), w, bias, squares=parts, shrink=shrink)
    return product


def source(product: Product) -> Tensor:
    """The float32 rows that the weight is multiplied with."""
    if product.squares is None:
        return product.x.float()
    k = product.x.shape[1]
    return product.x.float() * product.shrink * torch.rsqrt(product.squares.sum(0) / k + EPSILON)[:, None]


def oracle(product: Product) -> Tensor:
    n = product.columns
    w = product.w.float()
    if product.epilogue == GATED:
        gate, up = (op.linear(source(product), part, None) for part in (w[:n], w[n:]))
        return op.gated_silu(gate, up)
    result = op.linear(source(product), w, product.bias)
    return op.relu(result) if product.epilogue == RELU else result


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_each_epilogue_matches_torch(shape: tuple[int, int, int, int], dtype: torch.dtype) -> None:
    n, k, block_n, block_k = shape
    for epilogue in (PROJECT, GATED, LOGITS, RELU):
        product = operands(epilogue, n, k, dtype).with_tile(block_n, block_k)
        assert_close(multiply(product).y, oracle(product), dtype)


def test_a_folded_norm_is_the_norm_of_the_oracle() -> None:
    """`source` above shares the kernel's formula; here the norm comes from the oracle alone."""
    generator = random(1)
    stream, gain = normal(generator, ROWS, 96, scale=5.0), normal(generator, 96)
    squares = torch.stack([part.square().sum(1) for part in stream.split(40, 1)])
    w = normal(generator, 64, 96, dtype=torch.float16, scale=0.1)
    for shrink in (1.0, 16.0):
        x = (stream * gain / shrink).half()
        got = multiply(Product(PROJECT, x, w, squares=squares, shrink=shrink)).y
        normed = op.add_norm(stream, None, gain, EPSILON)[1]
        assert_close(got, op.linear(normed, w.float(), None), torch.float16)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_residual_epilogue_adds_to_the_stream_and_readies_the_next_norm(
    shape: tuple[int, int, int, int], dtype: torch.dtype
) -> None:
    n, k, block_n, block_k = shape
    product = operands(RESIDUAL, n, k, dtype, shrink=16.0).with_tile(block_n, block_k)
    assert product.stream is not None and product.gain is not None
    result = multiply(product)
    after = product.stream + oracle(product)
    assert_close(result.stream, after, dtype)
    assert_close(result.y, result.stream * product.gain / 16.0, dtype)
    torch.testing.assert_close(result.squares.sum(0), result.stream.square().sum(1), rtol=1e-5, atol=0.0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("epilogue", range(5))
def test_a_row_has_the_same_bits_at_every_width(epilogue: int, dtype: torch.dtype) -> None:
    product = operands(epilogue, 67, 100, dtype).with_tile(64, 64)
    whole = multiply(product, ROWS)
    assert not whole.y.isnan().any()
    for rows in range(1, ROWS):
        part = multiply(product, rows)
        assert torch.equal(part.y[:rows], whole.y[:rows]), rows
        assert part.y[rows:].isnan().all(), "rows beyond the width are not written"
        if epilogue == RESIDUAL:
            assert product.stream is not None
            assert torch.equal(part.stream[:rows], whole.stream[:rows])
            assert torch.equal(part.stream[rows:], product.stream[rows:])
            assert torch.equal(part.squares[:, :rows], whole.squares[:, :rows])
        if epilogue == LOGITS:
            assert torch.equal(part.peaks[..., :rows], whole.peaks[..., :rows])
            assert torch.equal(part.peak_ids[:, :rows], whole.peak_ids[:, :rows])


@pytest.mark.parametrize("epilogue", [PROJECT, RESIDUAL, GATED, RELU])
def test_a_prompt_is_read_in_blocks_of_sixteen_rows(epilogue: int) -> None:
    """Forty rows at once: each block of sixteen has the bits of a pass over its rows alone."""
    product = operands(epilogue, 67, 100, torch.float16, rows=48).with_tile(64, 64)
    together = multiply(product, 40)
    assert together.y[40:].isnan().all()
    for first in (0, 16, 32):
        block, rows = slice(first, first + ROWS), min(ROWS, 40 - first)
        stream = None if product.stream is None else product.stream[block]
        squares = None if product.squares is None else product.squares[:, block].contiguous()
        alone = multiply(replace(product, x=product.x[block], stream=stream, squares=squares), rows)
        assert torch.equal(together.y[first : first + rows], alone.y[:rows])
        if epilogue == RESIDUAL:
            assert torch.equal(together.stream[first : first + rows], alone.stream[:rows])
            assert torch.equal(together.squares[:, first : first + rows], alone.squares[:, :rows])


@pytest.mark.parametrize("allowed", [100, 97, 64, 63, 1])
def test_logits_come_with_the_peak_of_each_program(allowed: int) -> None:
    product = operands(LOGITS, 100, 64, torch.float16, biased=False)
    result = multiply(Product(LOGITS, product.x, product.w, squares=product.squares, allowed=allowed))
    for program, first in enumerate(range(0, 100, 32)):
        logits = result.y[:, first : min(first + 32, allowed)]
        if not logits.shape[1]:
            assert (result.peaks[program, 0] == float("-inf")).all()
            assert not result.peaks[program, 1].any()
            continue
        best, index = logits.max(1)
        assert torch.equal(result.peaks[program, 0], best)
        assert torch.equal(result.peak_ids[program].long(), index + first)
        sums = (logits - best[:, None]).exp().sum(1)
        torch.testing.assert_close(result.peaks[program, 1], sums, rtol=1e-5, atol=0.0)


def test_of_equal_logits_in_a_tile_the_lowest_id_is_the_peak() -> None:
    product = operands(LOGITS, 64, 64, torch.bfloat16, biased=False)
    w = product.w.clone()
    w[[3, 9, 30]] = w[5] = product.x[0].sign() * 0.5  # far above all others for row 0
    result = multiply(Product(LOGITS, product.x, w, squares=product.squares))
    assert len(set(result.y[0, [3, 5, 9, 30]].tolist())) == 1
    assert result.peak_ids[0, 0] == 3


def test_activations_beyond_float16_survive_by_the_shrink() -> None:
    """stream * gain of 2e5 is infinite in float16; a sixteenth of it is not, and the norm takes it back."""
    generator = random(3)
    weight = normal(generator, 96, 64, dtype=torch.float16, scale=0.1)
    stream, gain = normal(generator, ROWS, 96, scale=100.0), torch.full((96,), 2000.0, device=DEVICE)
    stream[:, 7] = 100.0
    first = Product(RESIDUAL, normal(generator, ROWS, 64, dtype=torch.float16), weight, stream=stream, gain=gain)
    assert multiply(first).y.isinf().any()
    made = multiply(Product(RESIDUAL, first.x, weight, stream=stream, gain=gain, shrink=16.0))
    assert made.y.isfinite().all() and (made.y.float() * 16).abs().max() > torch.finfo(torch.float16).max
    following = normal(generator, 64, 96, dtype=torch.float16, scale=1e-4)
    got = multiply(Product(PROJECT, made.y, following, squares=made.squares, shrink=16.0)).y
    normed = op.add_norm(made.stream, None, gain, EPSILON)[1]
    assert_close(got, op.linear(normed, following.float(), None), torch.float16)


def test_relu_keeps_a_nan() -> None:
    product = operands(RELU, 64, 64, torch.float16)
    product.w[11, 0] = float("nan")
    result = multiply(product).y
    assert result[:, 11].isnan().all()
    assert not result[:, :11].isnan().any() and not result[:, 12:].isnan().any()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_fault_in_one_logit_shows_in_the_sum_of_its_program(value: float) -> None:
    product = operands(LOGITS, 100, 64, torch.float16, biased=False)
    product.w[40] = value
    sums = multiply(product).peaks[:, 1]
    assert sums[1].isnan().all()
    assert sums[0].isfinite().all() and sums[2:].isfinite().all()
