"""Both ends of a draft step: the embedding of its tokens as int8 activations, and the choice of what it proposes.

A step's first row is the last token of the block so far; the rows behind it are proposals from elsewhere that the draft
checks. It adds to the block the proposals it agrees with and then its own token, and reports them to the host.
Oracle: `engine.sampling.distribution.peak`, `engine.sampling.accept`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.draft_matmul import store_quantised
from engine.kernels.triton.hardware import launch_dependents, wait_for_predecessor
from engine.kernels.triton.judge import CURSOR, TOKENS, add_proposals

_CURSOR, _TOKENS = tl.constexpr(CURSOR), tl.constexpr(TOKENS)
NO_ID = tl.constexpr(2147483647)


@triton.jit
def draft_embed_kernel(
    state,
    embedding,  # [vocabulary, WIDTH] of the model's type
    gain,  # [WIDTH] float32: gain of the first norm over the factors of what follows
    stream,  # [ROWS, WIDTH] float32
    planes,  # int8 [ROWS, 2, WIDTH / 2]
    scales,  # float32 [ROWS, WIDTH / 8]
    squares,  # [PARTS, ROWS_PADDED] float32
    positions,  # [places, WIDTH]: learned position embeddings, None where positions are rotary
    WIDTH: tl.constexpr,
    WIDTH_PADDED: tl.constexpr,
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    ROWS_PADDED: tl.constexpr,
    FIRST_PLACE: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """The first kernel of a step: launched in full order, never beside its predecessor."""
    if DEPENDENT:
        launch_dependents()
    row = tl.program_id(0)
    place = row + tl.load(state + _CURSOR)
    token = tl.load(state + _TOKENS + place)
    column = tl.arange(0, WIDTH_PADDED)
    inside = column < WIDTH
    values = tl.load(embedding + token.to(tl.int64) * WIDTH + column, mask=inside, other=0.0).to(tl.float32)
    if positions is not None:
        learned = positions + (tl.load(state) + place + FIRST_PLACE).to(tl.int64) * WIDTH + column
        values += tl.load(learned, mask=inside, other=0.0).to(tl.float32)
    tl.store(stream + row * WIDTH + column, values, mask=inside)
    scaled = values * tl.load(gain + column, mask=inside, other=0.0)
    store_quantised(scaled, planes, scales, 0, row, WIDTH, WIDTH_PADDED)
    part = tl.arange(0, PARTS_PADDED)
    total = tl.sum(values * values, 0)
    tl.store(squares + part * ROWS_PADDED + row, tl.where(part == 0, total, 0.0), mask=part < PARTS)


@triton.jit
def draft_norm_kernel(
    stream,  # [ROWS, WIDTH] float32
    weight,  # [WIDTH] float32
    bias,
    factors,  # [WIDTH] float32: 1 / factors of the matrix that follows
    planes,
    scales,
    epsilon,
    WIDTH: tl.constexpr,
    WIDTH_PADDED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """LayerNorm of the stream as int8 activations: OPT's norm has a mean and a bias, and so a kernel of its own."""
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    row = tl.program_id(0)
    column = tl.arange(0, WIDTH_PADDED)
    inside = column < WIDTH
    values = tl.load(stream + row * WIDTH + column, mask=inside, other=0.0)
    centred = tl.where(inside, values - tl.sum(values, 0) / WIDTH, 0.0)
    normed = centred / tl.sqrt(tl.sum(centred * centred, 0) / WIDTH + epsilon)
    normed = normed * tl.load(weight + column, mask=inside, other=0.0) + tl.load(bias + column, mask=inside, other=0.0)
    normed = normed * tl.load(factors + column, mask=inside, other=0.0)
    store_quantised(normed, planes, scales, 0, row, WIDTH, WIDTH_PADDED)


@triton.jit
def draft_choice_kernel(
    state,
    floats,
    peaks,  # [PARTS, 3, ROWS_PADDED] float32, see draft_matmul.py
    peak_ids,  # [PARTS, 2, ROWS_PADDED] int32
    report,  # see judge.py
    ROWS: tl.constexpr,
    ROWS_PADDED: tl.constexpr,
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """End of a greedy step: the best token after each row, and the runner-up. One program."""
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    row = tl.arange(0, ROWS_PADDED)
    part = tl.arange(0, PARTS_PADDED)[:, None]
    mask = (part < PARTS) & (row < ROWS)[None, :]
    cell, id_cell = peaks + part * 3 * ROWS_PADDED + row[None, :], peak_ids + part * 2 * ROWS_PADDED + row[None, :]
    values = tl.load(cell, mask=mask, other=float("-inf"))
    lesser = tl.load(cell + ROWS_PADDED, mask=mask, other=float("-inf"))
    sums = tl.load(cell + 2 * ROWS_PADDED, mask=mask, other=0.0)
    ids = tl.load(id_cell, mask=mask, other=NO_ID)
    lesser_ids = tl.load(id_cell + ROWS_PADDED, mask=mask, other=NO_ID)
    best = tl.max(values, 0)
    token = tl.min(tl.where(values == best[None, :], ids, NO_ID), 0)
    total = tl.sum(tl.where(sums != 0, sums * tl.exp(values - best[None, :]), 0.0), 0)
    won = ids == token[None, :]
    others, other_ids = tl.where(won, lesser, values), tl.where(won, lesser_ids, ids)
    next_best = tl.max(others, 0)
    second = tl.min(tl.where(others == next_best[None, :], other_ids, NO_ID), 0)
    token = tl.where(token == NO_ID, 0, token)  # of a row that is NaN: nothing may read beyond the embedding with it
    second = tl.where(second == NO_ID, 0, second)
    add_proposals(state, floats, report, row, token, 1.0 / total, second, tl.exp(next_best - best) / total, ROWS)
