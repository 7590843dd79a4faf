"""The down projection over the chosen neurons only, from a neuron-major copy, added to the stream, for one row.

Each neuron's weights lie in a row of their own with scales of their own, so what is read is what was chosen. Rows of
threads take eight neurons of the list at a time; the next eight are on their way meanwhile, the first eight before the
activations exist. Programs add to the stream in whatever order they end (a draft may): its last bits vary.
Oracle: `engine.predict.planes.chosen_mlp`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.channel_parts import (
    LANES,
    add_columns,
    arrive,
    eight_as_int8,
    finish_residual,
    load_words,
    spread,
    tile_sums,
)
from engine.kernels.triton.draft_matmul import ONES
from engine.kernels.triton.hardware import dot4, launch_dependents, wait_for_predecessor
from engine.kernels.triton.neuron_parts import group_terms


@triton.jit
def _eight(source, place, count):
    """Values at eight places in a row, zero from `count` on. place: [ROWS, 1]."""
    return (
        tl.load(source + place, mask=place < count, other=0, cache_modifier=".cg"),
        tl.load(source + place + 1, mask=place + 1 < count, other=0, cache_modifier=".cg"),
        tl.load(source + place + 2, mask=place + 2 < count, other=0, cache_modifier=".cg"),
        tl.load(source + place + 3, mask=place + 3 < count, other=0, cache_modifier=".cg"),
        tl.load(source + place + 4, mask=place + 4 < count, other=0, cache_modifier=".cg"),
        tl.load(source + place + 5, mask=place + 5 < count, other=0, cache_modifier=".cg"),
        tl.load(source + place + 6, mask=place + 6 < count, other=0, cache_modifier=".cg"),
        tl.load(source + place + 7, mask=place + 7 < count, other=0, cache_modifier=".cg"),
    )


@triton.jit
def _load_rows(
    codes, word, place, count, n0, n1, n2, n3, n4, n5, n6, n7, WORDS: tl.constexpr, WHOLE: tl.constexpr
):  # fmt: skip
    """Words at `word` of eight neurons' rows: nothing for places from `count` on."""
    inside = word >= 0 if WHOLE else word < WORDS
    return load_words(
        codes,
        word,
        (place < count) & inside,
        (place + 1 < count) & inside,
        (place + 2 < count) & inside,
        (place + 3 < count) & inside,
        (place + 4 < count) & inside,
        (place + 5 < count) & inside,
        (place + 6 < count) & inside,
        (place + 7 < count) & inside,
        n0.to(tl.int64) * WORDS,
        n1.to(tl.int64) * WORDS,
        n2.to(tl.int64) * WORDS,
        n3.to(tl.int64) * WORDS,
        n4.to(tl.int64) * WORDS,
        n5.to(tl.int64) * WORDS,
        n6.to(tl.int64) * WORDS,
        n7.to(tl.int64) * WORDS,
    )


@triton.jit
def _load_terms(groups, group, n0, n1, n2, n3, n4, n5, n6, n7, GROUPS: tl.constexpr):
    """Group terms at `group` of eight neurons' rows."""
    return (
        tl.load(groups + tl.max_contiguous(n0 * GROUPS + group, (1, LANES))),
        tl.load(groups + tl.max_contiguous(n1 * GROUPS + group, (1, LANES))),
        tl.load(groups + tl.max_contiguous(n2 * GROUPS + group, (1, LANES))),
        tl.load(groups + tl.max_contiguous(n3 * GROUPS + group, (1, LANES))),
        tl.load(groups + tl.max_contiguous(n4 * GROUPS + group, (1, LANES))),
        tl.load(groups + tl.max_contiguous(n5 * GROUPS + group, (1, LANES))),
        tl.load(groups + tl.max_contiguous(n6 * GROUPS + group, (1, LANES))),
        tl.load(groups + tl.max_contiguous(n7 * GROUPS + group, (1, LANES))),
    )


@triton.jit
def _weigh(packed, value, total):
    """An activation times the scale of its neuron's group, and `total` plus it times the low value."""
    scale, low = group_terms(packed)
    return scale * value, total + low * value


@triton.jit
def _coefficients(
    g0, g1, g2, g3, g4, g5, g6, g7, a0, a1, a2, a3, a4, a5, a6, a7
):  # fmt: skip
    """What eight neurons' codes are multiplied with: two words of int8, their step, and what is added besides.

    That is the lows, and eight times what rounding to int8 has taken away: codes lie about eight, so that only their
    distances from it meet rounded values.
    """
    total = g0.to(tl.float32) * 0.0
    a0, total = _weigh(g0, a0, total)
    a1, total = _weigh(g1, a1, total)
    a2, total = _weigh(g2, a2, total)
    a3, total = _weigh(g3, a3, total)
    a4, total = _weigh(g4, a4, total)
    a5, total = _weigh(g5, a5, total)
    a6, total = _weigh(g6, a6, total)
    a7, total = _weigh(g7, a7, total)
    xa, xb, step = eight_as_int8(a0, a1, a2, a3, a4, a5, a6, a7)
    ones = xa * 0 + ONES
    rounded = dot4(ones, xb, dot4(ones, xa, xa * 0)).to(tl.float32) * step
    return xa, xb, step, total + 8.0 * (a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 - rounded)


@triton.jit
def neuron_down_kernel(
    chosen,  # int32 [neurons]
    counters,  # int32 [2], zeroed by the last program (see neuron_choice.py)
    activated,  # float32 [neurons]: by place in the list
    codes,  # int32 [neurons, N / 8]: eight columns a word, as in draft_matmul.py
    groups,  # int32 [neurons, N / group]: scale and low as float16
    bias,  # float32 [N], read if HAS_BIAS
    gain,  # float32 [N]: norm gain of what follows over its factors, read if QUANTISES
    stream,  # float32 [N], added to in place
    planes,  # int8 [2, N / 2]: stream * gain, if QUANTISES
    scales,  # float32 [N / 8]
    squares,  # float32 [tiles]: partial sums of squares of the stream, if QUANTISES
    arrivals,  # int32 [tiles + 1], zero between launches
    N: tl.constexpr,
    GROUP: tl.constexpr,  # columns that share a scale
    ROWS: tl.constexpr,  # warps
    TILE: tl.constexpr,  # words of a tile, a multiple of LANES; those of a lane lie in one group
    SPLITS: tl.constexpr,  # programs of a tile
    HAS_BIAS: tl.constexpr,
    QUANTISES: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    WORDS: tl.constexpr = N // 8
    WHOLE: tl.constexpr = WORDS % TILE == 0
    STRIDE: tl.constexpr = 8 * ROWS * SPLITS
    tile, split = tl.program_id(0), tl.program_id(1)
    word = tile * TILE + tl.arange(0, TILE)[None, :]
    group = tl.minimum((tile * TILE + TILE // LANES * tl.arange(0, LANES)[None, :]) * 8 // GROUP, N // GROUP - 1)
    row = tl.arange(0, ROWS)[:, None]
    count = tl.load(counters, cache_modifier=".cg")  # complete: see neuron_gate_up.py
    place = split * 8 * ROWS + 8 * row
    n0, n1, n2, n3, n4, n5, n6, n7 = _eight(chosen, place, count)
    w0, w1, w2, w3, w4, w5, w6, w7 = _load_rows(codes, word, place, count, n0, n1, n2, n3, n4, n5, n6, n7, WORDS, WHOLE)
    g0, g1, g2, g3, g4, g5, g6, g7 = _load_terms(groups, group, n0, n1, n2, n3, n4, n5, n6, n7, N // GROUP)
    n0, n1, n2, n3, n4, n5, n6, n7 = _eight(chosen, place + STRIDE, count)
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    a0, a1, a2, a3, a4, a5, a6, a7 = _eight(activated, place, count)
    xa, xb, step, low = _coefficients(g0, g1, g2, g3, g4, g5, g6, g7, a0, a1, a2, a3, a4, a5, a6, a7)
    lows = tl.zeros((ROWS, LANES), tl.float32)
    s0 = tl.zeros((ROWS, TILE), tl.float32)
    s1, s2, s3, s4, s5, s6, s7 = s0, s0, s0, s0, s0, s0, s0
    for start in range(split * 8 * ROWS, count, STRIDE):
        place = start + STRIDE + 8 * row
        v0, v1, v2, v3, v4, v5, v6, v7 = _load_rows(
            codes, word, place, count, n0, n1, n2, n3, n4, n5, n6, n7, WORDS, WHOLE
        )
        g0, g1, g2, g3, g4, g5, g6, g7 = _load_terms(groups, group, n0, n1, n2, n3, n4, n5, n6, n7, N // GROUP)
        a0, a1, a2, a3, a4, a5, a6, a7 = _eight(activated, place, count)
        n0, n1, n2, n3, n4, n5, n6, n7 = _eight(chosen, place + STRIDE, count)
        lows += low
        s0, s1, s2, s3, s4, s5, s6, s7 = add_columns(
            s0, s1, s2, s3, s4, s5, s6, s7, w0, w1, w2, w3, w4, w5, w6, w7,
            spread(xa, ROWS, TILE), spread(xb, ROWS, TILE), spread(step, ROWS, TILE),
        )  # fmt: skip
        xa, xb, step, low = _coefficients(g0, g1, g2, g3, g4, g5, g6, g7, a0, a1, a2, a3, a4, a5, a6, a7)
        w0, w1, w2, w3, w4, w5, w6, w7 = v0, v1, v2, v3, v4, v5, v6, v7
    lows = spread(lows, ROWS, TILE)
    sums = tile_sums(s0 + lows, s1 + lows, s2 + lows, s3 + lows, s4 + lows, s5 + lows, s6 + lows, s7 + lows, ROWS, TILE)
    column = tile * TILE * 8 + tl.arange(0, TILE * 8)
    inside = column < N
    if HAS_BIAS and split == 0:
        sums += tl.load(bias + column, mask=inside, other=0.0)
    tl.atomic_add(stream + column, sums, mask=inside, sem="relaxed")
    if arrive(arrivals + tile, SPLITS):
        finish_residual(stream, gain, planes, scales, squares, tile, N, TILE * 8, QUANTISES)
        tl.store(arrivals + tile, 0)
        if arrive(arrivals + tl.num_programs(0), tl.num_programs(0)):
            tl.store(arrivals + tl.num_programs(0), 0)
            tl.store(counters, 0)
            tl.store(counters + 1, 0)
