"""Sixteen rows times a weight matrix, with what comes before and after folded in.

RMS norm costs no kernel of its own: the producer of the residual stream stores stream * gain and, per program, a
partial sum of squares; the consumer multiplies those products and scales by 1 / rms in its epilogue, the partial sums
added in a fixed order.

A prompt is read sixty-four rows at a time by the same tiles of sixteen: four programs share a block of the weight,
which the card's cache serves after the first, and every row has the bits that a decode step would give it.

Oracle: `engine.kernels.reference.operations` (linear, add_norm, gated_silu, relu).
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.hardware import launch_dependents, multiply, prefetch_line, wait_for_predecessor

ROWS = tl.constexpr(16)
PROJECT, RESIDUAL, GATED = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
LOGITS, RELU = tl.constexpr(3), tl.constexpr(4)
LINE_VALUES = tl.constexpr(64)  # two-byte values of a 128-byte cache line


@triton.jit
def _inverse_rms(
    squares, row, PARTS: tl.constexpr, PARTS_PADDED: tl.constexpr, WIDTH: tl.constexpr, epsilon, HEIGHT: tl.constexpr
):
    part = tl.arange(0, PARTS_PADDED)
    mask = (part < PARTS)[:, None]
    total = tl.sum(tl.load(squares + part[:, None] * HEIGHT + row[None, :], mask=mask, other=0.0), 0)
    return 1.0 / tl.sqrt(total / WIDTH + epsilon)


@triton.jit(do_not_specialize=["rows"])
def matmul_kernel(
    x,  # [16, K] of the model's type: activations, or stream * gain / SHRINK where the norm is folded in
    w,  # [N, K] of the model's type; GATED: [2 N, K], gates then ups
    bias,  # [N] float32, read if HAS_BIAS
    y,  # PROJECT, GATED, RELU: [16, N] of the model's type; RESIDUAL: stream * gain / SHRINK; LOGITS: float32 logits
    stream,  # RESIDUAL: [16, N] float32, updated in place
    gain,  # RESIDUAL: [N] float32, weights of the norm that follows
    squares_in,  # [PARTS, 16] float32 partial sums of squares of the stream; unused by RESIDUAL
    squares_out,  # RESIDUAL: [programs, 16]
    peaks,  # LOGITS: [programs, 2, 16] float32: largest logit, sum exp(logit - largest)
    peak_ids,  # LOGITS: [programs, 16] int32: where it stands
    rows,  # rows in use, 1 to HEIGHT
    N,
    allowed,  # LOGITS: ids below this may be chosen
    epsilon,
    K: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    EPILOGUE: tl.constexpr,
    NORMED: tl.constexpr,  # whether x stands for a normed stream
    HAS_BIAS: tl.constexpr,
    WHOLE_N: tl.constexpr,  # N is a multiple of BLOCK_N
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    SHRINK: tl.constexpr,  # power of two that keeps stream * gain inside float16
    AHEAD: tl.constexpr,  # weight values of each row to prefetch before waiting
    DEPENDENT: tl.constexpr,
    HEIGHT: tl.constexpr = 16,  # rows of the buffers: 16 to decode, more to read a prompt
):
    program = tl.program_id(1)
    column = program * BLOCK_N + tl.arange(0, BLOCK_N)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)  # programs of one weight block run side by side
    inner = tl.arange(0, BLOCK_K)
    inside = column < N
    weights = w + column[:, None].to(tl.int64) * K + inner[None, :]
    if AHEAD > 0:
        line = tl.arange(0, AHEAD // LINE_VALUES) * LINE_VALUES
        prefetch_line(w + tl.where(inside, column, 0)[:, None].to(tl.int64) * K + line[None, :])
        if EPILOGUE == GATED:
            prefetch_line(w + (tl.where(inside, column, 0) + N)[:, None].to(tl.int64) * K + line[None, :])
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    used = row < rows
    sums = tl.zeros((BLOCK_N, ROWS), tl.float32)
    ups = tl.zeros((BLOCK_N, ROWS), tl.float32)
    activations = x + row[None, :] * K + inner[:, None]
    for k in range(0, K, BLOCK_K):
        if K % BLOCK_K == 0:
            xs = tl.load(activations + k, mask=used[None, :], other=0.0)
            if WHOLE_N:
                ws = tl.load(weights + k, eviction_policy="evict_first")
            else:
                ws = tl.load(weights + k, mask=inside[:, None], other=0.0, eviction_policy="evict_first")
        else:
            left = inner < K - k
            xs = tl.load(activations + k, mask=used[None, :] & left[:, None], other=0.0)
            ws = tl.load(weights + k, mask=inside[:, None] & left[None, :], other=0.0, eviction_policy="evict_first")
        sums = multiply(ws, xs, sums)
        if EPILOGUE == GATED:
            offset = N.to(tl.int64) * K + k
            if K % BLOCK_K == 0:
                if WHOLE_N:
                    us = tl.load(weights + offset, eviction_policy="evict_first")
                else:
                    us = tl.load(weights + offset, mask=inside[:, None], other=0.0, eviction_policy="evict_first")
            else:
                mask = inside[:, None] & (inner < K - k)[None, :]
                us = tl.load(weights + offset, mask=mask, other=0.0, eviction_policy="evict_first")
            ups = multiply(us, xs, ups)
    if NORMED:
        scale = _inverse_rms(squares_in, row, PARTS, PARTS_PADDED, K, epsilon, HEIGHT) * SHRINK
        sums = sums * scale[None, :]
        if EPILOGUE == GATED:
            ups = ups * scale[None, :]
    if HAS_BIAS:
        sums += tl.load(bias + column, mask=inside, other=0.0)[:, None]
    out = y + row[None, :] * N + column[:, None]
    written = inside[:, None] & used[None, :]
    if EPILOGUE == PROJECT:
        tl.store(out, sums.to(y.dtype.element_ty), mask=written)
    if EPILOGUE == RELU:
        tl.store(out, tl.where(sums < 0, 0.0, sums).to(y.dtype.element_ty), mask=written)  # a NaN stays one
    if EPILOGUE == GATED:
        tl.store(out, (sums / (1.0 + tl.exp(-sums)) * ups).to(y.dtype.element_ty), mask=written)
    if EPILOGUE == RESIDUAL:
        at = stream + row[None, :] * N + column[:, None]
        now = tl.load(at, mask=written, other=0.0) + sums
        tl.store(at, now, mask=written)
        following = tl.load(gain + column, mask=inside, other=0.0)
        tl.store(out, (now * following[:, None] * (1.0 / SHRINK)).to(y.dtype.element_ty), mask=written)
        tl.store(squares_out + program * HEIGHT + row, tl.sum(tl.where(written, now * now, 0.0), 0))
    if EPILOGUE == LOGITS:
        tl.store(out, sums, mask=written)
        eligible = (column < allowed)[:, None]
        values = tl.where(eligible, sums, float("-inf"))
        best = tl.max(values, 0)
        lowest = tl.min(tl.where(values == best[None, :], column[:, None], 2147483647), 0)
        total = tl.sum(tl.where(eligible, tl.exp(sums - best[None, :]), 0.0), 0)
        tl.store(peaks + program * 2 * ROWS + row, best)
        tl.store(peaks + (program * 2 + 1) * ROWS + row, total)
        tl.store(peak_ids + program * ROWS + row, lowest)
