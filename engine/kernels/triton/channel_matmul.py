"""One row times a matrix of four-bit codes without the input channels that are small for this token.

The copy is channel-major, its codes and scales those of the row-major one. A row of threads walks the channels of one
group of scales, eight at a time, and loads a channel's codes only where its activation is above the channel's limit;
nothing is sorted or listed. The first eight channels are loaded before the activations exist, whether needed or not,
so that their latency hides behind the kernel before. Programs add up in whatever order they end (a draft may).
Oracles: `engine.predict.channels.ChannelLimits`, `engine.lowbit.codes.dequantise`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.channel_parts import (
    LANES,
    add_columns,
    arrive,
    finish_residual,
    load_words,
    spread,
    tile_sums,
)
from engine.kernels.triton.draft_matmul import GATED, PROJECT, RESIDUAL, store_quantised
from engine.kernels.triton.hardware import launch_dependents, wait_for_predecessor
from engine.kernels.triton.neuron_parts import group_terms, inverse_rms


@triton.jit
def _above(word, BYTE: tl.constexpr, step, limits, channel, there):
    """Whether the activation in a byte of `word` is above its channel's limit, and then that activation."""
    value = ((word << (24 - 8 * BYTE)) >> 24).to(tl.float32)
    keep = there & (tl.abs(value) * step > tl.load(limits + channel + BYTE, mask=there, other=0.0))
    return keep, tl.where(keep, value, 0.0)


@triton.jit
def _kept(planes, scales, limits, block, there, inverse, BLOCKS: tl.constexpr):
    """The sum of the activations of a block of eight channels without the dropped ones, and which eight are kept."""
    xa = tl.load(planes + block, mask=there, other=0)
    xb = tl.load(planes + BLOCKS + block, mask=there, other=0)
    step = tl.load(scales + block, mask=there, other=0.0)
    size = step * inverse
    k0, x0 = _above(xa, 0, size, limits, block * 8, there)
    k1, x1 = _above(xa, 1, size, limits, block * 8, there)
    k2, x2 = _above(xa, 2, size, limits, block * 8, there)
    k3, x3 = _above(xa, 3, size, limits, block * 8, there)
    k4, x4 = _above(xb, 0, size, limits, block * 8 + 4, there)
    k5, x5 = _above(xb, 1, size, limits, block * 8 + 4, there)
    k6, x6 = _above(xb, 2, size, limits, block * 8 + 4, there)
    k7, x7 = _above(xb, 3, size, limits, block * 8 + 4, there)
    return (x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7) * step, k0, k1, k2, k3, k4, k5, k6, k7


@triton.jit
def _load_block(codes, word, block, k0, k1, k2, k3, k4, k5, k6, k7, WORDS: tl.constexpr):
    """Words at `word` of the block's eight channels, where kept."""
    first = block.to(tl.int64) * (8 * WORDS)
    return load_words(
        codes,
        word,
        k0 & (word >= 0),
        k1 & (word >= 0),
        k2 & (word >= 0),
        k3 & (word >= 0),
        k4 & (word >= 0),
        k5 & (word >= 0),
        k6 & (word >= 0),
        k7 & (word >= 0),
        first,
        first + WORDS,
        first + 2 * WORDS,
        first + 3 * WORDS,
        first + 4 * WORDS,
        first + 5 * WORDS,
        first + 6 * WORDS,
        first + 7 * WORDS,
    )


@triton.jit
def _scaled(groups, BYTE: tl.constexpr, sums, total, there, WORDS: tl.constexpr):
    """Sums of a column of each word over a group of channels, scaled; total: of the group's activations."""
    scale, low = group_terms(tl.load(groups + BYTE * WORDS, mask=there, other=0))
    return sums * scale + total * low


@triton.jit
def channel_matmul_kernel(
    planes,  # int32 [2, K / 8]: int8 activations, stream * gain / factors where NORMED (see draft_matmul.py)
    scales,  # float32 [K / 8]
    limits,  # float32 [K]: a channel counts where its activation (after the norm) is larger
    codes,  # int32 [K, WORDS]: eight columns a word; GATED: half a tile of gates, then its ups, tile by tile
    groups,  # int32 [K / GROUP, 8, WORDS]: scale and low of column 8 w + i at [i, w]
    bias,  # float32 [N], read if HAS_BIAS
    sums,  # PROJECT, GATED: float32 [8 WORDS], zero between launches; RESIDUAL: the stream [N], added to in place
    y,  # PROJECT: [N] of the model's type
    gain,  # RESIDUAL: [N] norm gain of what follows over its factors; GATED: 1 / factors of what follows
    y_planes,  # RESIDUAL, GATED: int8 [2, N / 2]
    y_scales,  # float32 [N / 8]
    squares_in,  # [PARTS] float32
    squares_out,  # RESIDUAL: float32 [tiles]
    arrivals,  # int32 [tiles], zero between launches
    N,  # columns of the result; GATED: neurons
    epsilon,
    K: tl.constexpr,
    WORDS: tl.constexpr,  # of a channel, a multiple of TILE
    GROUP: tl.constexpr,  # channels that share a scale
    ROWS: tl.constexpr,  # rows of threads
    TILE: tl.constexpr,  # words of a tile
    SPLITS: tl.constexpr,  # programs of a tile
    EPILOGUE: tl.constexpr,
    NORMED: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    QUANTISES: tl.constexpr,
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    BLOCKS: tl.constexpr = K // 8
    EACH: tl.constexpr = GROUP // 8  # blocks of a group
    tile, split = tl.program_id(0), tl.program_id(1)
    word = tile * TILE + tl.arange(0, TILE)[None, :]
    row = tl.arange(0, ROWS)[:, None]
    group = split * ROWS + row
    there = group < K // GROUP
    lane = tl.program_id(2) * tl.arange(0, LANES)[None, :]  # zero, but not for the compiler
    w0, w1, w2, w3, w4, w5, w6, w7 = _load_block(
        codes, word, group * EACH, there, there, there, there, there, there, there, there, WORDS
    )
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    inverse = 1.0
    if NORMED:
        inverse = inverse_rms(squares_in, K, epsilon, PARTS, PARTS_PADDED)
    t0 = tl.zeros((ROWS, TILE), tl.float32)
    t1, t2, t3, t4, t5, t6, t7 = t0, t0, t0, t0, t0, t0, t0
    added, k0, k1, k2, k3, k4, k5, k6, k7 = _kept(planes, scales, limits, group * EACH, there, inverse, BLOCKS)
    w0, w1 = tl.where(k0, w0, 0), tl.where(k1, w1, 0)
    w2, w3 = tl.where(k2, w2, 0), tl.where(k3, w3, 0)
    w4, w5 = tl.where(k4, w4, 0), tl.where(k5, w5, 0)
    w6, w7 = tl.where(k6, w6, 0), tl.where(k7, w7, 0)
    for first in range(split * ROWS, K // GROUP, SPLITS * ROWS):
        group = first + row
        there = group < K // GROUP
        s0 = tl.zeros((ROWS, TILE), tl.float32)
        s1, s2, s3, s4, s5, s6, s7 = s0, s0, s0, s0, s0, s0, s0
        total = added
        for i in range(EACH):
            last = i == EACH - 1
            block = tl.where(last, (group + SPLITS * ROWS) * EACH, group * EACH + i + 1)
            ahead = tl.where(last, group + SPLITS * ROWS, group) < K // GROUP
            added, k0, k1, k2, k3, k4, k5, k6, k7 = _kept(planes, scales, limits, block, ahead, inverse, BLOCKS)
            v0, v1, v2, v3, v4, v5, v6, v7 = _load_block(codes, word, block, k0, k1, k2, k3, k4, k5, k6, k7, WORDS)
            total += tl.where(last, 0.0, added)
            at = tl.max_contiguous(group * EACH + i + lane, (1, LANES))
            inside = there & (lane == 0)
            xa = tl.load(planes + at, mask=inside, other=0)
            xb = tl.load(planes + BLOCKS + at, mask=inside, other=0)
            step = tl.load(scales + at, mask=inside, other=0.0)
            s0, s1, s2, s3, s4, s5, s6, s7 = add_columns(
                s0, s1, s2, s3, s4, s5, s6, s7, w0, w1, w2, w3, w4, w5, w6, w7,
                spread(xa, ROWS, TILE), spread(xb, ROWS, TILE), spread(step, ROWS, TILE),
            )  # fmt: skip
            w0, w1, w2, w3, w4, w5, w6, w7 = v0, v1, v2, v3, v4, v5, v6, v7
        terms = groups + group * (8 * WORDS) + word
        exists = there & (word >= 0)
        t0 += _scaled(terms, 0, s0, total, exists, WORDS)
        t1 += _scaled(terms, 1, s1, total, exists, WORDS)
        t2 += _scaled(terms, 2, s2, total, exists, WORDS)
        t3 += _scaled(terms, 3, s3, total, exists, WORDS)
        t4 += _scaled(terms, 4, s4, total, exists, WORDS)
        t5 += _scaled(terms, 5, s5, total, exists, WORDS)
        t6 += _scaled(terms, 6, s6, total, exists, WORDS)
        t7 += _scaled(terms, 7, s7, total, exists, WORDS)
    column = tile * TILE * 8 + tl.arange(0, TILE * 8)
    part = tile_sums(t0, t1, t2, t3, t4, t5, t6, t7, ROWS, TILE)
    if EPILOGUE == RESIDUAL:
        if HAS_BIAS and split == 0:
            part += tl.load(bias + column, mask=column < N, other=0.0)
        tl.atomic_add(sums + column, part, mask=column < N, sem="relaxed")
    else:
        tl.atomic_add(sums + column, part, sem="relaxed")
    if arrive(arrivals + tile, SPLITS):
        tl.store(arrivals + tile, 0)
        if EPILOGUE == RESIDUAL:
            finish_residual(sums, gain, y_planes, y_scales, squares_out, tile, N, TILE * 8, QUANTISES)
        if EPILOGUE == PROJECT:
            whole = tl.load(sums + column, cache_modifier=".cg")
            tl.debug_barrier()
            tl.store(sums + column, tl.zeros((TILE * 8,), tl.float32))
            whole *= inverse
            if HAS_BIAS:
                whole += tl.load(bias + column, mask=column < N, other=0.0)
            tl.store(y + column, whole.to(y.dtype.element_ty), mask=column < N)
        if EPILOGUE == GATED:
            HALF: tl.constexpr = TILE * 4
            gates = sums + tile * TILE * 8 + tl.arange(0, HALF)
            gate = tl.load(gates, cache_modifier=".cg") * inverse
            up = tl.load(gates + HALF, cache_modifier=".cg") * inverse
            tl.debug_barrier()
            tl.store(gates, tl.zeros((HALF,), tl.float32))
            tl.store(gates + HALF, tl.zeros((HALF,), tl.float32))
            neuron = tile * HALF + tl.arange(0, HALF)
            values = gate / (1.0 + tl.exp(-gate)) * up * tl.load(gain + neuron, mask=neuron < N, other=0.0)
            store_quantised(values, y_planes, y_scales, tile * HALF, 0, N, HALF)
