"""Choosing tokens and judging drafts on the card, so that a cycle needs one small read-back.

STATE is one int32 buffer that all steps share; its upper half holds float32 bits. Oracle: `engine.sampling`
(highest id on a peak, accept).
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.hardware import launch_dependents, wait_for_predecessor

# Places in STATE (int32).
# Of a pass with siblings (see siblings.py): CHAIN rows before them, PLACES of all rows behind the position, and the
# row of the sibling TAKEN. RANGE: how far behind the first range of the cache that in use lies, in RANGE_UNIT values.
POSITION, CURSOR, ACCEPTED, TAKEN, RANGE, CHAIN, TOKENS, PLACES, CHOSEN = 0, 1, 2, 3, 4, 7, 8, 28, 44
RANGE_UNIT = 1024
# Places in its float32 view, which begins at FLOATS.
FLOATS, DRAFT_PROBS, CHOSEN_PROBS, FULL_PROBS = 64, 0, 16, 32
STATE_SIZE = 128
# Places in REPORT (int32, in pinned host memory), what a draft step tells the host: how many proposals it agreed with,
# then for each of up to eight rows its own token, that one's probability as float32 bits, the runner-up (-1: unknown),
# and the runner-up's probability.
AGREED, OWN, OWN_PROBS, SECONDS, SECOND_PROBS, REPORT_SIZE = 0, 8, 16, 24, 32, 40

ROWS = tl.constexpr(16)
_CURSOR, _ACCEPTED, _TOKENS, _CHOSEN = tl.constexpr(1), tl.constexpr(2), tl.constexpr(8), tl.constexpr(44)
_DRAFT_PROBS, _CHOSEN_PROBS, _FULL_PROBS = tl.constexpr(0), tl.constexpr(16), tl.constexpr(32)
_OWN, _OWN_PROBS = tl.constexpr(OWN), tl.constexpr(OWN_PROBS)
_SECONDS, _SECOND_PROBS = tl.constexpr(SECONDS), tl.constexpr(SECOND_PROBS)


_RANGE, _RANGE_UNIT = tl.constexpr(RANGE), tl.constexpr(RANGE_UNIT)


@triton.jit
def range_of(cache, state):
    """A layer's cache of the conversation in use. Only the host changes which one it is, between steps."""
    return cache + tl.load(state + _RANGE).to(tl.int64) * _RANGE_UNIT


@triton.jit
def embed_kernel(
    state,
    embedding,  # [vocabulary, WIDTH] of the model's type
    gain,  # [WIDTH] float32, of the first norm
    stream,  # [16, WIDTH] float32
    y,  # [16, WIDTH]: stream * gain / SHRINK
    squares,  # [PARTS, 16]
    WIDTH: tl.constexpr,
    WIDTH_PADDED: tl.constexpr,
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    SHRINK: tl.constexpr,
    AT_CURSOR: tl.constexpr,
    DEPENDENT: tl.constexpr,
    SQUARES_ROWS: tl.constexpr = 16,
    positions=None,  # [places, WIDTH]: learned position embeddings, None where positions are rotary
    FIRST_PLACE: tl.constexpr = 0,  # row of `positions` that position 0 has
):
    """Row m of the stream = embedding of token m of the block (a draft step: of the token at the cursor).

    The first kernel of a step: launched in full order, never beside its predecessor.
    """
    if DEPENDENT:
        launch_dependents()
    row = tl.program_id(0)
    place = row
    if AT_CURSOR:
        place += tl.load(state + _CURSOR)
    token = tl.load(state + _TOKENS + place)
    column = tl.arange(0, WIDTH_PADDED)
    inside = column < WIDTH
    values = tl.load(embedding + token.to(tl.int64) * WIDTH + column, mask=inside, other=0.0).to(tl.float32)
    if positions is not None:
        learned = positions + (tl.load(state) + place + FIRST_PLACE).to(tl.int64) * WIDTH + column
        values += tl.load(learned, mask=inside, other=0.0).to(tl.float32)
    tl.store(stream + row * WIDTH + column, values, mask=inside)
    scaled = values * tl.load(gain + column, mask=inside, other=0.0) * (1.0 / SHRINK)
    tl.store(y + row * WIDTH + column, scaled.to(y.dtype.element_ty), mask=inside)
    part = tl.arange(0, PARTS_PADDED)
    total = tl.sum(values * values, 0)
    tl.store(squares + part * SQUARES_ROWS + row, tl.where(part == 0, total, 0.0), mask=part < PARTS)


@triton.jit
def peak_of_rows(peaks, peak_ids, row, PARTS: tl.constexpr, PARTS_PADDED: tl.constexpr):
    """For each of `row`: the best logit, its id (the lowest on ties), and sum exp(logit - best), from the partials.

    A row with a NaN gets the sum NaN and an id that exists, so that nothing reads beyond the embedding with it.
    """
    part = tl.arange(0, PARTS_PADDED)[:, None]
    mask = (part < PARTS) & (row >= 0)[None, :]
    values = tl.load(peaks + part * 2 * ROWS + row[None, :], mask=mask, other=float("-inf"))
    sums = tl.load(peaks + (part * 2 + 1) * ROWS + row[None, :], mask=mask, other=0.0)
    ids = tl.load(peak_ids + part * ROWS + row[None, :], mask=mask, other=2147483647)
    best = tl.max(values, 0)
    lowest = tl.min(tl.where(values == best[None, :], ids, 2147483647), 0)
    total = tl.sum(tl.where(sums != 0, sums * tl.exp(values - best[None, :]), 0.0), 0)  # zero: no id allowed there
    return best, tl.where(lowest == 2147483647, 0, lowest), total


@triton.jit
def add_proposals(state, floats, report, row, token, probability, second, second_probability, ROWS: tl.constexpr):
    """Extend the block by the proposals that are the draft's own tokens and the token after them; move the cursor."""
    used = row < ROWS
    cursor = tl.load(state + _CURSOR)
    proposal = tl.load(state + _TOKENS + cursor + 1 + row, mask=row < ROWS - 1, other=-1)
    agreed = tl.min(tl.where((proposal == token) | (row >= ROWS), ROWS, row), 0)
    tl.debug_barrier()  # no thread may see the new state before all have read the old one
    added = used & (row <= agreed)
    tl.store(state + _TOKENS + cursor + 1 + row, token, mask=added)
    tl.store(floats + _DRAFT_PROBS + cursor + row, probability, mask=added)
    tl.store(state + _CURSOR, cursor + agreed + 1)
    tl.store(report, agreed)
    tl.store(report + _OWN + row, token, mask=used)
    tl.store(report + _OWN_PROBS + row, probability.to(tl.int32, bitcast=True), mask=used)
    tl.store(report + _SECONDS + row, second, mask=used)
    tl.store(report + _SECOND_PROBS + row, second_probability.to(tl.int32, bitcast=True), mask=used)


@triton.jit
def propose_kernel(
    state,
    floats,
    peaks,
    peak_ids,
    report,
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """End of a draft step of one row: the best token becomes the next proposal, and the cursor moves on."""
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    row = tl.arange(0, 1)
    _, token, total = peak_of_rows(peaks, peak_ids, row, PARTS, PARTS_PADDED)
    add_proposals(state, floats, report, row, token, 1.0 / total, row - 1, 0.0 * total, 1)


@triton.jit(do_not_specialize=["rows"])
def judge_kernel(
    state,
    floats,
    logits,  # [16, vocabulary] float32
    peaks,
    peak_ids,
    rows,
    vocabulary,
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """End of a full pass: choose a token for each row, accept the proposals that agree, and make the state ready.

    One program. Afterwards the position stands behind the accepted run, the block begins with the full model's own
    token, and the cursor is zero: the next cycle can start without the host.
    """
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    row = tl.arange(0, ROWS)
    best, token, total = peak_of_rows(peaks, peak_ids, row, PARTS, PARTS_PADDED)
    proposal = tl.load(state + _TOKENS + 1 + row)
    drafted = row < rows - 1
    logit = tl.load(logits + row * vocabulary + proposal, mask=drafted, other=float("-inf"))
    accepted = tl.min(tl.where(drafted & (proposal == token), ROWS, row), 0)
    following = tl.sum(tl.where(row == accepted, token, 0), 0)
    position = tl.load(state)
    tl.debug_barrier()  # no thread may see the new state before all have read the old one
    tl.store(state + _CHOSEN + row, token)
    tl.store(floats + _CHOSEN_PROBS + row, 1.0 / total)
    tl.store(floats + _FULL_PROBS + row, tl.exp(logit - best) / total)
    tl.store(state + _ACCEPTED, accepted)
    tl.store(state, position + accepted + 1)
    tl.store(state + _CURSOR, 0)
    tl.store(state + _TOKENS, following)
