"""One to four rows times a matrix of four-bit codes: the draft's products, near the bandwidth of the card.

Eight codes lie in a word and meet eight int8 activations in two four-byte dot products; weights are all on their way
before the kernel waits for its predecessor, so their latency hides behind it. Activations carry one float32 scale for
eight values and are made by whatever produces them (`quantised`), already multiplied with the next matrix's factors;
the RMS norm is folded in as in matmul.py. A row of a matrix is (scale * code + low) per group.

A draft may be wrong, so nothing here promises a row the same bits at every width.
Oracle: `engine.lowbit.codes.dequantise` with `engine.kernels.reference.operations`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.hardware import dot4, launch_dependents, wait_for_predecessor

PROJECT, RESIDUAL, GATED = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
LOGITS, RELU = tl.constexpr(3), tl.constexpr(4)
NIBBLES = tl.constexpr(0x0F0F0F0F)
ONES = tl.constexpr(0x01010101)
RUN_WORDS = tl.constexpr(4)  # consecutive words that one thread holds: their sum needs no other thread
SMALLEST = tl.constexpr(1e-20)  # of a quantisation scale: zeros stay zeros and nothing is divided by zero


@triton.jit
def store_quantised(values, planes, scales, first, row, width, COUNT: tl.constexpr):
    """Store float32 values [COUNT] of a row, columns from `first` (a multiple of eight) on, as int8 with scales.

    width: columns of a row, a multiple of eight.
    """
    eights = tl.reshape(values, (COUNT // 8, 8))
    scale = tl.max(tl.abs(eights), 1) / 127.0 + SMALLEST
    scaled = eights / scale[:, None]
    rounded = tl.floor(scaled + 0.5).to(tl.int8)
    word, byte = first // 8 + tl.arange(0, COUNT // 8), tl.arange(0, 8)
    inside = word < width // 8
    at = row * width + (byte // 4)[None, :] * (width // 2) + word[:, None] * 4 + (byte % 4)[None, :]
    tl.store(planes + at, rounded, mask=inside[:, None])
    tl.store(scales + row * (width // 8) + word, scale, mask=inside)


@triton.jit
def _group_terms(packed):
    """Scale and low of groups, from words that hold both as float16."""
    scale = (packed & 0xFFFF).to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32)
    low = ((packed >> 16) & 0xFFFF).to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32)
    return scale, low


@triton.jit
def _product(words, packed, xa, xb, xs, BLOCK_N: tl.constexpr, BLOCK_W: tl.constexpr, GROUP_W: tl.constexpr):
    """A chunk's products with one row's activations, a sum for each run: [BLOCK_N, runs]. packed: see _load_chunk."""
    RUN: tl.constexpr = min(GROUP_W, RUN_WORDS)
    none = tl.zeros((BLOCK_N, BLOCK_W), tl.int32)
    dots = dot4(words & NIBBLES, tl.broadcast_to(xa[None, :], (BLOCK_N, BLOCK_W)), none)
    dots = dot4((words >> 4) & NIBBLES, tl.broadcast_to(xb[None, :], (BLOCK_N, BLOCK_W)), dots)
    ones = tl.full((BLOCK_W,), ONES, tl.int32)
    totals = dot4(ones, xa, dot4(ones, xb, tl.zeros((BLOCK_W,), tl.int32))).to(tl.float32) * xs
    scale, low = _group_terms(packed)
    of_runs = tl.sum(tl.reshape(dots.to(tl.float32) * xs[None, :], (BLOCK_N, BLOCK_W // RUN, RUN)), 2)
    sums = tl.sum(tl.reshape(totals, (BLOCK_W // RUN, RUN)), 1)
    return of_runs * scale + low * sums[None, :]


@triton.jit
def _chunk_product(
    words, packed, planes, scales, row, first, WORDS: tl.constexpr, WHOLE: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_W: tl.constexpr, GROUP_W: tl.constexpr,
):  # fmt: skip
    """_product of the chunk that begins at word `first` with a row of planes (int32 [rows, 2, WORDS])."""
    word = first + tl.arange(0, BLOCK_W)
    at, inside = planes + row * 2 * WORDS + word, word < WORDS
    if WHOLE:
        xa, xb = tl.load(at), tl.load(at + WORDS)
        xs = tl.load(scales + row * WORDS + word)
    else:
        xa, xb = tl.load(at, mask=inside, other=0), tl.load(at + WORDS, mask=inside, other=0)
        xs = tl.load(scales + row * WORDS + word, mask=inside, other=0.0)
    return _product(words, packed, xa, xb, xs, BLOCK_N, BLOCK_W, GROUP_W)


@triton.jit
def _load_chunk(
    codes, groups, column, first, inside, WORDS: tl.constexpr, WHOLE: tl.constexpr, BLOCK_W: tl.constexpr,
    GROUP_W: tl.constexpr,
):  # fmt: skip
    """Words [BLOCK_N, BLOCK_W] and, for each run of them that one thread holds, the terms of its group."""
    RUN: tl.constexpr = min(GROUP_W, RUN_WORDS)
    word = first + tl.arange(0, BLOCK_W)
    group = (first + tl.arange(0, BLOCK_W // RUN) * RUN) // GROUP_W
    at, row = column[:, None].to(tl.int64) * WORDS, column[None, :].to(tl.int64) * (WORDS // GROUP_W)
    # Terms are loaded with runs along the threads and turned after: each then lies where its run's sum will be.
    if WHOLE:
        words = tl.load(codes + at + word[None, :], eviction_policy="evict_first")
        packed = tl.load(groups + row + group[:, None])
    else:
        mask = inside[:, None] & (word < WORDS)[None, :]
        words = tl.load(codes + at + word[None, :], mask=mask, other=0, eviction_policy="evict_first")
        mask = inside[None, :] & (group < WORDS // GROUP_W)[:, None]
        packed = tl.load(groups + row + group[:, None], mask=mask, other=0)
    return words, tl.trans(packed)


@triton.jit
def draft_matmul_kernel(
    planes,  # int32 [ROWS, 2, K / 8]: int8 activations, or of stream * gain / factors where the norm is folded in
    scales,  # float32 [ROWS, K / 8]
    codes,  # int32 [N, K / 8]; GATED: [2 N, K / 8], gates then ups
    groups,  # int32 [N, K / group]: scale and low as float16
    bias,  # [N] float32, read if HAS_BIAS
    y,  # PROJECT: [ROWS, N] of the model's type; LOGITS: [ROWS, vocabulary] float32
    y_planes,  # RESIDUAL, GATED, RELU: int8 [ROWS, 2, N / 2], what the next matrix reads
    y_scales,  # float32 [ROWS, N / 8]
    gain,  # RESIDUAL: [N] norm gain of what follows over its factors; GATED, RELU: 1 / factors of what follows
    stream,  # RESIDUAL: [ROWS, N] float32, updated in place
    squares_in,  # [PARTS, ROWS_PADDED] float32 partial sums of squares of the stream; unused where not NORMED
    squares_out,  # RESIDUAL: [programs, ROWS_PADDED]
    peaks,  # LOGITS: [programs, 3, ROWS_PADDED]: largest logit, the next largest, sum exp(logit - largest)
    peak_ids,  # LOGITS: [programs, 2, ROWS_PADDED]: where they stand
    ids,  # LOGITS: [N] int32, the token of each row of the matrix; None where they are the rows
    N,
    allowed,  # LOGITS: ids below this may be chosen
    epsilon,
    vocabulary,  # LOGITS: width of y
    K: tl.constexpr,
    NORM_WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    ROWS_PADDED: tl.constexpr,
    GROUP_W: tl.constexpr,  # words of a group
    BLOCK_N: tl.constexpr,
    BLOCK_W: tl.constexpr,  # words of a chunk
    CHUNKS: tl.constexpr,
    EPILOGUE: tl.constexpr,
    NORMED: tl.constexpr,
    QUANTISES: tl.constexpr,  # the next matrix reads the result as int8; not where a LayerNorm stands between
    HAS_BIAS: tl.constexpr,
    WHOLE_N: tl.constexpr,  # N is a multiple of BLOCK_N
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    WORDS: tl.constexpr = K // 8
    EVEN: tl.constexpr = WORDS % BLOCK_W == 0  # the last chunk is a whole one
    LINES: tl.constexpr = BLOCK_N * (2 if EPILOGUE == GATED else 1)  # rows of the matrix: a gate, its up, …
    program = tl.program_id(0)
    column = program * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = column < N
    line = column
    if EPILOGUE == GATED:
        place = tl.arange(0, LINES)
        line = program * BLOCK_N + place // 2 + (place % 2) * N
    there = line < N
    if EPILOGUE == GATED:
        there = program * BLOCK_N + tl.arange(0, LINES) // 2 < N
    ONE: tl.constexpr = WHOLE_N and (CHUNKS > 1 or EVEN)
    w0, g0 = _load_chunk(codes, groups, line, 0, there, WORDS, ONE, BLOCK_W, GROUP_W)
    if CHUNKS > 1:
        TWO: tl.constexpr = WHOLE_N and (CHUNKS > 2 or EVEN)
        w1, g1 = _load_chunk(codes, groups, line, BLOCK_W, there, WORDS, TWO, BLOCK_W, GROUP_W)
    if CHUNKS > 2:
        THREE: tl.constexpr = WHOLE_N and (CHUNKS > 3 or EVEN)
        w2, g2 = _load_chunk(codes, groups, line, 2 * BLOCK_W, there, WORDS, THREE, BLOCK_W, GROUP_W)
    factor = tl.zeros((BLOCK_N,), tl.float32)
    if QUANTISES:
        factor = tl.load(gain + column, mask=inside, other=0.0)
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    row = tl.arange(0, ROWS_PADDED)
    used = row < ROWS
    written = inside[:, None] & used[None, :]
    if NORMED:
        part = tl.arange(0, PARTS_PADDED)
        mask = (part < PARTS)[:, None] & used[None, :]
        squares = tl.load(squares_in + part[:, None] * ROWS_PADDED + row[None, :], mask=mask, other=0.0)
    if EPILOGUE == RESIDUAL:
        before = tl.load(stream + row[None, :] * N + column[:, None], mask=written, other=0.0)
    lines = tl.zeros((LINES, ROWS_PADDED), tl.float32)
    for r in tl.static_range(ROWS):
        sums = _chunk_product(w0, g0, planes, scales, r, 0, WORDS, EVEN or CHUNKS > 1, LINES, BLOCK_W, GROUP_W)
        if CHUNKS > 1:
            sums += _chunk_product(
                w1, g1, planes, scales, r, BLOCK_W, WORDS, EVEN or CHUNKS > 2, LINES, BLOCK_W, GROUP_W
            )
        if CHUNKS > 2:
            sums += _chunk_product(
                w2, g2, planes, scales, r, 2 * BLOCK_W, WORDS, EVEN or CHUNKS > 3, LINES, BLOCK_W, GROUP_W
            )
        for chunk in tl.static_range(3, CHUNKS):  # of very wide matrices
            w, g = _load_chunk(codes, groups, line, chunk * BLOCK_W, there, WORDS, False, BLOCK_W, GROUP_W)
            sums += _chunk_product(w, g, planes, scales, r, chunk * BLOCK_W, WORDS, False, LINES, BLOCK_W, GROUP_W)
        lines += tl.where(row[None, :] == r, tl.sum(sums, 1)[:, None], 0.0)
    if EPILOGUE == GATED:
        sums, ups = tl.split(tl.trans(tl.reshape(lines, (BLOCK_N, 2, ROWS_PADDED)), (0, 2, 1)))
    else:
        sums = lines
    if NORMED:
        inverse = 1.0 / tl.sqrt(tl.sum(squares, 0) / NORM_WIDTH + epsilon)
        sums = sums * inverse[None, :]
        if EPILOGUE == GATED:
            ups = ups * inverse[None, :]
    if HAS_BIAS:
        sums += tl.load(bias + column, mask=inside, other=0.0)[:, None]
    if EPILOGUE == PROJECT:
        tl.store(y + row[None, :] * N + column[:, None], sums.to(y.dtype.element_ty), mask=written)
    if EPILOGUE == LOGITS:
        token = column
        if ids is not None:
            token = tl.load(ids + column, mask=inside, other=2147483647)
        tl.store(y + row[None, :] * vocabulary + token[:, None], sums, mask=written)
        eligible = inside & (token < allowed)
        values = tl.where(eligible[:, None], sums, float("-inf"))
        best = tl.max(values, 0)
        first = tl.min(tl.where(values == best[None, :], token[:, None], 2147483647), 0)
        others = tl.where(token[:, None] == first[None, :], float("-inf"), values)
        second = tl.max(others, 0)
        runner_up = tl.min(tl.where(others == second[None, :], token[:, None], 2147483647), 0)
        total = tl.sum(tl.where(eligible[:, None], tl.exp(sums - best[None, :]), 0.0), 0)
        at = peaks + program * 3 * ROWS_PADDED + row
        tl.store(at, best)
        tl.store(at + ROWS_PADDED, second)
        tl.store(at + 2 * ROWS_PADDED, total)
        tl.store(peak_ids + program * 2 * ROWS_PADDED + row, first)
        tl.store(peak_ids + (program * 2 + 1) * ROWS_PADDED + row, runner_up)
    if EPILOGUE == RESIDUAL:
        sums += before
        tl.store(stream + row[None, :] * N + column[:, None], sums, mask=written)
        if QUANTISES:
            tl.store(squares_out + program * ROWS_PADDED + row, tl.sum(tl.where(written, sums * sums, 0.0), 0))
    if EPILOGUE == GATED:
        sums = sums / (1.0 + tl.exp(-sums)) * ups
    if EPILOGUE == RELU:
        sums = tl.where(sums < 0, 0.0, sums)
    if QUANTISES:
        sums = sums * factor[:, None]
        for r in tl.static_range(ROWS):
            values = tl.sum(tl.where(row[None, :] == r, sums, 0.0), 1)
            store_quantised(values, y_planes, y_scales, program * BLOCK_N, r, N, BLOCK_N)
