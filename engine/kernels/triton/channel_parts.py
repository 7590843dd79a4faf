"""Rows of an input-major matrix, each the weights of one input channel: parts of the kernels that leave channels out.

A program owns a tile of columns. Its warps each walk channels of their own, eight at a time: the bytes of
four channels' words are transposed, so that a word then holds one column's codes of four channels and meets four int8
activations. The sums of all programs of a tile meet in global memory; the last of them to arrive finishes the tile.

A value that a warp's channel has for all its words is held once a thread, [ROWS, LANES]. Where such values are loaded,
`tl.max_contiguous` gives the compiler a hint that is not true: with one value a thread nothing can be read in one piece
by it, it only makes the compiler give each warp a row, as the rows of weights are given out, so that no value has to
change hands through shared memory on every turn of a loop.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.draft_matmul import NIBBLES, SMALLEST, store_quantised
from engine.kernels.triton.hardware import dot4, transpose_bytes

LANES = tl.constexpr(32)  # threads of a warp
HIGH_NIBBLES = tl.constexpr(-252645136)  # 0xF0F0F0F0


@triton.jit
def spread(values, ROWS: tl.constexpr, TILE: tl.constexpr):
    """A value for each lane, [ROWS, LANES] -> for each of the words it holds, [ROWS, TILE]."""
    SHARE: tl.constexpr = TILE // LANES
    if SHARE == 1:
        return values
    return tl.reshape(tl.broadcast_to(values[:, :, None], (ROWS, LANES, SHARE)), (ROWS, TILE))


@triton.jit
def load_words(codes, at, m0, m1, m2, m3, m4, m5, m6, m7, c0, c1, c2, c3, c4, c5, c6, c7):
    """The tile's words of eight channels c, each where its mask m allows; codes + at: the tile in channel 0."""
    return (
        tl.load(codes + (c0 + at), mask=m0, other=0, eviction_policy="evict_first"),
        tl.load(codes + (c1 + at), mask=m1, other=0, eviction_policy="evict_first"),
        tl.load(codes + (c2 + at), mask=m2, other=0, eviction_policy="evict_first"),
        tl.load(codes + (c3 + at), mask=m3, other=0, eviction_policy="evict_first"),
        tl.load(codes + (c4 + at), mask=m4, other=0, eviction_policy="evict_first"),
        tl.load(codes + (c5 + at), mask=m5, other=0, eviction_policy="evict_first"),
        tl.load(codes + (c6 + at), mask=m6, other=0, eviction_policy="evict_first"),
        tl.load(codes + (c7 + at), mask=m7, other=0, eviction_policy="evict_first"),
    )


@triton.jit
def add_columns(s0, s1, s2, s3, s4, s5, s6, s7, w0, w1, w2, w3, w4, w5, w6, w7, xa, xb, step):
    """Sums of columns 0 to 7 of each word, plus the products of eight channels' words with activations.

    xa, xb: int8 activations of channels 0 to 3 and 4 to 7 as words; step: float32, what one of them stands for.
    """
    a0, a1, a2, a3 = transpose_bytes(w0, w1, w2, w3)
    b0, b1, b2, b3 = transpose_bytes(w4, w5, w6, w7)
    none = w0 * 0
    s0 += dot4(b0 & NIBBLES, xb, dot4(a0 & NIBBLES, xa, none)).to(tl.float32) * step
    s1 += dot4(b1 & NIBBLES, xb, dot4(a1 & NIBBLES, xa, none)).to(tl.float32) * step
    s2 += dot4(b2 & NIBBLES, xb, dot4(a2 & NIBBLES, xa, none)).to(tl.float32) * step
    s3 += dot4(b3 & NIBBLES, xb, dot4(a3 & NIBBLES, xa, none)).to(tl.float32) * step
    # The high nibbles stay where they are, sixteen times what they mean.
    small = step * 0.0625
    s4 += dot4(b0 & HIGH_NIBBLES, xb, dot4(a0 & HIGH_NIBBLES, xa, none)).to(tl.float32) * small
    s5 += dot4(b1 & HIGH_NIBBLES, xb, dot4(a1 & HIGH_NIBBLES, xa, none)).to(tl.float32) * small
    s6 += dot4(b2 & HIGH_NIBBLES, xb, dot4(a2 & HIGH_NIBBLES, xa, none)).to(tl.float32) * small
    s7 += dot4(b3 & HIGH_NIBBLES, xb, dot4(a3 & HIGH_NIBBLES, xa, none)).to(tl.float32) * small
    return s0, s1, s2, s3, s4, s5, s6, s7


@triton.jit
def tile_sums(s0, s1, s2, s3, s4, s5, s6, s7, ROWS: tl.constexpr, WORDS: tl.constexpr):
    """Sums [8 WORDS] of a tile's columns in order, over the warps, from [ROWS, WORDS] of each column."""
    even = tl.join(tl.join(s0, s4), tl.join(s2, s6))
    odd = tl.join(tl.join(s1, s5), tl.join(s3, s7))
    return tl.sum(tl.reshape(tl.join(even, odd), (ROWS, 8 * WORDS)), 0)


@triton.jit
def arrive(counter, programs):
    """Whether this is the last of `programs` programs to come here; then what the others have added can be read."""
    tl.debug_barrier()
    return tl.atomic_add(counter, 1, sem="acq_rel") == programs - 1


@triton.jit
def finish_residual(
    stream, gain, planes, scales, squares, tile, N, WIDTH: tl.constexpr, QUANTISES: tl.constexpr
):  # fmt: skip
    """Ready a finished tile of the stream for what follows: int8 of stream * gain, and its sum of squares."""
    if QUANTISES:
        column = tile * WIDTH + tl.arange(0, WIDTH)
        inside = column < N
        values = tl.load(stream + column, mask=inside, other=0.0, cache_modifier=".cg")
        tl.store(squares + tile, tl.sum(values * values, 0))
        values *= tl.load(gain + column, mask=inside, other=0.0)
        store_quantised(values, planes, scales, tile * WIDTH, 0, N, WIDTH)


@triton.jit
def as_int8(values, inverse):
    """Values over a step, rounded into a signed byte's place of a word: 0 to 255."""
    return tl.floor(values * inverse + 0.5).to(tl.int32) & 0xFF


@triton.jit
def eight_as_int8(v0, v1, v2, v3, v4, v5, v6, v7):
    """Eight values as int8 in two words, and what one of them stands for."""
    peak = tl.maximum(tl.maximum(tl.abs(v0), tl.abs(v1)), tl.maximum(tl.abs(v2), tl.abs(v3)))
    peak = tl.maximum(peak, tl.maximum(tl.maximum(tl.abs(v4), tl.abs(v5)), tl.maximum(tl.abs(v6), tl.abs(v7))))
    step = peak / 127.0 + SMALLEST
    inverse = 1.0 / step
    xa = as_int8(v0, inverse) | (as_int8(v1, inverse) << 8)
    xa = xa | (as_int8(v2, inverse) << 16) | (as_int8(v3, inverse) << 24)
    xb = as_int8(v4, inverse) | (as_int8(v5, inverse) << 8)
    xb = xb | (as_int8(v6, inverse) << 16) | (as_int8(v7, inverse) << 24)
    return xa, xb, step
