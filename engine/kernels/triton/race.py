"""The exponential race on the card: the token of a row is argmax w_i / E_i, the lowest id on ties.

One kernel runs the race within each block of the vocabulary, another ends it and judges the draft (or proposes), as
judge.py does for the best token. Rows share nothing, so a row's bits are the same at every width. A row without a
finite best score gets token 0 and probability NaN. Oracle: `engine.sampling.sampler.Sampler`, `engine.sampling.accept`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.hardware import launch_dependents, wait_for_predecessor
from engine.kernels.triton.judge import ACCEPTED, CHOSEN, CHOSEN_PROBS, CURSOR, FULL_PROBS, TOKENS, add_proposals
from engine.kernels.triton.noise import exponentials, hash_words
from engine.kernels.triton.threshold import (
    DIGITS,
    DRAWS,
    MIN_P,
    TOP_P,
    least_kept_key,
    least_kept_weight,
    mass,
    ordered_key,
    row_top,
    softmax_weight,
)

PARTIALS = 4  # of a block: best of the race, weight of the token that holds it, sum of weights, the proposal's weight

ROWS = tl.constexpr(16)
NO_ID = tl.constexpr(2147483647)
_PARTIALS, _DIGITS = tl.constexpr(PARTIALS), tl.constexpr(DIGITS)
_TOP_P, _MIN_P, _DRAWS = tl.constexpr(TOP_P), tl.constexpr(MIN_P), tl.constexpr(DRAWS)
_CURSOR, _ACCEPTED = tl.constexpr(CURSOR), tl.constexpr(ACCEPTED)
_TOKENS, _CHOSEN = tl.constexpr(TOKENS), tl.constexpr(CHOSEN)
_CHOSEN_PROBS = tl.constexpr(CHOSEN_PROBS)
_FULL_PROBS = tl.constexpr(FULL_PROBS)


@triton.jit
def _within_top_p(
    weight, kept, settings, digits, found, last_digits, part, row, PARTS: tl.constexpr, PARTS_PADDED: tl.constexpr
):
    """Which of the `kept` tokens of a block top-p keeps: of those that tie at the edge, the lowest ids of the row."""
    edge, allowance = least_kept_weight(settings, digits, found, row)
    earlier = tl.arange(0, PARTS_PADDED)
    cells = last_digits + (row * PARTS + earlier) * _DIGITS + (edge & (_DIGITS - 1))
    one = tl.maximum(mass(edge.to(tl.uint32).to(tl.float32, bitcast=True)), 1)
    before = tl.sum(tl.load(cells, mask=earlier < part, other=0), 0) // one
    bits = weight.to(tl.uint32, bitcast=True).to(tl.int64)
    level = kept & (bits == edge)
    rank = tl.cumsum(level.to(tl.int32), 0) + before
    return kept & ((bits > edge) | (level & (rank <= allowance)))


@triton.jit
def race_kernel(
    state,
    scores,  # [16, allowed] float32, as maxima, digits, found, last_digits: see threshold.py
    maxima,
    settings,
    seed,  # [1] int64
    digits,
    found,
    last_digits,
    partials,  # [16, PARTIALS, PARTS] float32
    partial_ids,  # [16, PARTS] int32
    allowed,
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    BLOCK: tl.constexpr,
    AT_CURSOR: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """Processed weights and race of a block of a row."""
    part, row = tl.program_id(0), tl.program_id(1)
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    place = row
    if AT_CURSOR:
        place += tl.load(state + _CURSOR)
    column = part * BLOCK + tl.arange(0, BLOCK)
    inside = column < allowed
    score = tl.load(scores + row * allowed + column, mask=inside, other=float("-inf"))
    top = row_top(maxima, row, PARTS, PARTS_PADDED)
    weight = softmax_weight(score, top, settings)
    kept = inside & (ordered_key(score) >= least_kept_key(settings, digits, found, row, allowed))
    if tl.load(settings + _TOP_P) < 1.0:
        kept = _within_top_p(weight, kept, settings, digits, found, last_digits, part, row, PARTS, PARTS_PADDED)
    kept = kept & (weight >= tl.load(settings + _MIN_P).to(tl.float32))
    weight = tl.where(kept, weight, 0.0)
    high, low = hash_words(tl.load(seed), tl.load(state) + place + 1, column)
    entry = tl.div_rn(weight, exponentials(high, low))
    entry = tl.where(tl.load(settings + _DRAWS) > 0.0, entry, score)
    entry = tl.where(kept, entry, float("-inf"))
    best = tl.max(entry, 0)
    lowest = tl.min(tl.where(inside & (entry == best), column, NO_ID), 0)
    proposal = tl.load(state + _TOKENS + place + 1)
    usable = (top > float("-inf")) & (top < float("inf"))
    cell = partials + row * _PARTIALS * PARTS + part
    tl.store(cell, best)
    tl.store(cell + PARTS, tl.sum(tl.where(column == lowest, weight, 0.0), 0))
    tl.store(cell + 2 * PARTS, tl.where(usable, tl.sum(weight, 0), float("nan")))
    tl.store(cell + 3 * PARTS, tl.sum(tl.where(column == proposal, weight, 0.0), 0))
    tl.store(partial_ids + row * PARTS + part, lowest)


@triton.jit
def _outcome(partials, partial_ids, row, used, PARTS: tl.constexpr, PARTS_PADDED: tl.constexpr):
    """For each of `row`: the winner, its probability, and the probability of the proposal beside it."""
    part = tl.arange(0, PARTS_PADDED)[:, None]
    mask = (part < PARTS) & used[None, :]
    cell = partials + row[None, :] * _PARTIALS * PARTS + part
    entries = tl.load(cell, mask=mask, other=float("-inf"))
    weights = tl.load(cell + PARTS, mask=mask, other=0.0)
    total = tl.sum(tl.load(cell + 2 * PARTS, mask=mask, other=0.0), 0)
    proposed = tl.sum(tl.load(cell + 3 * PARTS, mask=mask, other=0.0), 0)
    ids = tl.load(partial_ids + row[None, :] * PARTS + part, mask=mask, other=NO_ID)
    best = tl.max(entries, 0)
    token = tl.min(tl.where(entries == best[None, :], ids, NO_ID), 0)
    weight = tl.sum(tl.where(ids == token[None, :], weights, 0.0), 0)
    usable = (total == total) & (token < NO_ID)
    return tl.where(usable, token, 0), weight / total, proposed / total


@triton.jit
def propose_raced_kernel(
    state,
    floats,
    partials,
    partial_ids,
    report,
    ROWS_: tl.constexpr,
    ROWS_PADDED: tl.constexpr,
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """End of a draft step of ROWS_ rows: the winner of each row, as judge.add_proposals takes them."""
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    row = tl.arange(0, ROWS_PADDED)
    token, probability, _ = _outcome(partials, partial_ids, row, row < ROWS_, PARTS, PARTS_PADDED)
    add_proposals(state, floats, report, row, token, probability, row * 0 - 1, probability * 0.0, ROWS_)


@triton.jit(do_not_specialize=["rows"])
def judge_raced_kernel(
    state,
    floats,
    seen,  # [vocabulary] uint8: what enters the reply is marked
    partials,
    partial_ids,
    rows,
    vocabulary,
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """End of a full pass: accept the proposals that are the winners of their rows, and make the state ready.

    One program; it leaves the state as judge.judge_kernel does, choices and probabilities of the first `rows` rows.
    """
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    row = tl.arange(0, ROWS)
    used = row < rows
    token, probability, judged = _outcome(partials, partial_ids, row, used, PARTS, PARTS_PADDED)
    proposal = tl.load(state + _TOKENS + 1 + row)
    drafted = row < rows - 1
    accepted = tl.min(tl.where(drafted & (proposal == token), ROWS, row), 0)
    following = tl.sum(tl.where(row == accepted, token, 0), 0)
    position = tl.load(state)
    tl.debug_barrier()  # no thread may see the new state before all have read the old one
    tl.store(state + _CHOSEN + row, token, mask=used)
    tl.store(floats + _CHOSEN_PROBS + row, probability, mask=used)
    tl.store(floats + _FULL_PROBS + row, judged, mask=drafted)
    tl.store(state + _ACCEPTED, accepted)
    tl.store(state, position + accepted + 1)
    tl.store(state + _CURSOR, 0)
    tl.store(state + _TOKENS, following)
    tl.store(seen + token, (row * 0 + 1).to(tl.uint8), mask=(row <= accepted) & (token < vocabulary))
