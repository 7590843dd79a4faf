"""The leading logits of a draft step computed again with the model's own output rows, and the choice among them.

The right token is nearly always among the first few of a four-bit output matrix; telling those few apart takes only as
many rows of the model's own. Oracle: `engine.kernels.compiled.exact_leaders`, which finds leaders one by one; here a
part of the output matrix can have two of them at most.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.draft_ends import NO_ID
from engine.kernels.triton.hardware import launch_dependents, wait_for_predecessor
from engine.kernels.triton.judge import add_proposals

LEADERS = 4  # measured on the starter: 4 find 0.9995 of what 32 do


@triton.jit
def draft_leaders_kernel(
    peaks,  # [PARTS, 3, ROWS_PADDED] float32, see draft_matmul.py
    peak_ids,  # [PARTS, 2, ROWS_PADDED] int32
    stream,  # [ROWS, WIDTH] float32: the residual stream behind the last block
    gain,  # [WIDTH] float32: the final norm's weight
    bias,  # [WIDTH] float32, of a LayerNorm; None for an RMS norm
    output,  # [vocabulary, WIDTH] of the model's type
    leaders,  # [2, LEADERS, ROWS_PADDED] float32, written: exact logits, and coarse ones
    leader_ids,  # [LEADERS, ROWS_PADDED] int32, written: NO_ID where a row has no more
    logits,  # [ROWS, vocabulary] float32, exact at the leaders afterwards; None where nobody reads them
    epsilon,
    vocabulary,
    LEADERS: tl.constexpr,
    WIDTH: tl.constexpr,
    WIDTH_PADDED: tl.constexpr,
    ROWS_PADDED: tl.constexpr,
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """Program (row, n): the n-th leader of the row."""
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    row, number = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, WIDTH_PADDED)
    inside = column < WIDTH
    x = tl.load(stream + row * WIDTH + column, mask=inside, other=0.0)
    scale = tl.load(gain + column, mask=inside, other=0.0)
    if bias is not None:
        x = tl.where(inside, x - tl.sum(x, 0) / WIDTH, 0.0)
    x = x / tl.sqrt(tl.sum(x * x, 0) / WIDTH + epsilon) * scale
    if bias is not None:
        x += tl.load(bias + column, mask=inside, other=0.0)
    part = tl.arange(0, PARTS_PADDED)
    used = part < PARTS
    cell, id_cell = peaks + part * 3 * ROWS_PADDED + row, peak_ids + part * 2 * ROWS_PADDED + row
    values = tl.load(cell, mask=used, other=float("-inf"))
    lesser = tl.load(cell + ROWS_PADDED, mask=used, other=float("-inf"))
    ids = tl.load(id_cell, mask=used, other=NO_ID)
    lesser_ids = tl.load(id_cell + ROWS_PADDED, mask=used, other=NO_ID)
    best = tl.max(values, 0)
    token = tl.min(tl.where(values == best, ids, NO_ID), 0)
    for _ in range(number):
        won = ids == token
        values, ids = tl.where(won, lesser, values), tl.where(won, lesser_ids, ids)
        lesser = tl.where(won, float("-inf"), lesser)
        best = tl.max(values, 0)
        token = tl.min(tl.where(values == best, ids, NO_ID), 0)
    found = (token < vocabulary) & (best > float("-inf"))
    place = tl.where(found, token, 0).to(tl.int64)
    weight = tl.load(output + place * WIDTH + column, mask=inside, other=0.0).to(tl.float32)
    exact = tl.sum(weight * x, 0)
    at = leaders + number * ROWS_PADDED + row
    tl.store(at, tl.where(found, exact, float("-inf")))
    tl.store(at + LEADERS * ROWS_PADDED, tl.where(found, best, float("-inf")))
    tl.store(leader_ids + number * ROWS_PADDED + row, tl.where(found, token, NO_ID))
    if logits is not None:
        tl.store(logits + row * vocabulary + place, exact, mask=found)


@triton.jit
def draft_leading_choice_kernel(
    state,
    floats,
    peaks,  # [PARTS, 3, ROWS_PADDED] float32, see draft_matmul.py
    leaders,  # [2, LEADERS, ROWS_PADDED] float32
    leader_ids,  # [LEADERS, ROWS_PADDED] int32
    report,  # see judge.py
    LEADERS: tl.constexpr,
    LEADERS_PADDED: tl.constexpr,
    ROWS: tl.constexpr,
    ROWS_PADDED: tl.constexpr,
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """End of a greedy step: the best token after each row, and the runner-up, among the leaders. One program."""
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    row = tl.arange(0, ROWS_PADDED)
    part = tl.arange(0, PARTS_PADDED)[:, None]
    mask = (part < PARTS) & (row < ROWS)[None, :]
    cell = peaks + part * 3 * ROWS_PADDED + row[None, :]
    values = tl.load(cell, mask=mask, other=float("-inf"))
    sums = tl.load(cell + 2 * ROWS_PADDED, mask=mask, other=0.0)
    number = tl.arange(0, LEADERS_PADDED)[:, None]
    mask = (number < LEADERS) & (row < ROWS)[None, :]
    cell = leaders + number * ROWS_PADDED + row[None, :]
    exact = tl.load(cell, mask=mask, other=float("-inf"))
    coarse = tl.load(cell + LEADERS * ROWS_PADDED, mask=mask, other=float("-inf"))
    ids = tl.load(leader_ids + number * ROWS_PADDED + row[None, :], mask=mask, other=NO_ID)
    best = tl.max(exact, 0)
    token = tl.min(tl.where(exact == best[None, :], ids, NO_ID), 0)
    others = tl.where(ids == token[None, :], float("-inf"), exact)
    next_best = tl.max(others, 0)
    second = tl.min(tl.where((others == next_best[None, :]) & (ids != token[None, :]), ids, NO_ID), 0)
    # The softmax's sum: that of all coarse logits, with the leaders' coarse terms exchanged for exact ones.
    total = tl.sum(tl.where(sums != 0, sums * tl.exp(values - best[None, :]), 0.0), 0)
    rest = total - tl.sum(tl.exp(coarse - best[None, :]), 0)
    total = tl.where(rest < 0, 0.0, rest) + tl.sum(tl.exp(exact - best[None, :]), 0)
    token = tl.where(token == NO_ID, 0, token)  # of a row that is NaN: nothing may read beyond the embedding with it
    second = tl.where(second == NO_ID, 0, second)
    add_proposals(state, floats, report, row, token, 1.0 / total, second, tl.exp(next_best - best) / total, ROWS)
