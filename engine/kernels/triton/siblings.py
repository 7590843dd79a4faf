"""Siblings: other choices for places of a draft, judged in the same full pass as rows behind its chain.

A sibling of the chain's token at place p (its row is p + 1) stands at that token's position: it attends to the known
tokens, the chain before p, and itself, as if it had been drafted in that place, and gives the bits it would have given
there. Where the full model's own choice is a sibling, that row's choice is one token more, and its key and value move
from the row they were written to into the place of the token they replace.

Oracle: `engine.sampling.accept` for the verdict; for the move, an indexed copy.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.hardware import launch_dependents, wait_for_predecessor
from engine.kernels.triton.judge import (
    ACCEPTED,
    CHAIN,
    CHOSEN,
    CHOSEN_PROBS,
    CURSOR,
    FULL_PROBS,
    PLACES,
    TAKEN,
    TOKENS,
    peak_of_rows,
    range_of,
)

ROWS = tl.constexpr(16)
_CURSOR, _ACCEPTED = tl.constexpr(CURSOR), tl.constexpr(ACCEPTED)
_TAKEN, _CHAIN = tl.constexpr(TAKEN), tl.constexpr(CHAIN)
_TOKENS, _PLACES, _CHOSEN = tl.constexpr(TOKENS), tl.constexpr(PLACES), tl.constexpr(CHOSEN)
_CHOSEN_PROBS, _FULL_PROBS = tl.constexpr(CHOSEN_PROBS), tl.constexpr(FULL_PROBS)


@triton.jit(do_not_specialize=["rows"])
def judge_siblings_kernel(
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
    """As judge.judge_kernel, for state[CHAIN] rows of the chain and siblings behind them. One program."""
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    row = tl.arange(0, ROWS)
    best, token, total = peak_of_rows(peaks, peak_ids, row, PARTS, PARTS_PADDED)
    chain = tl.load(state + _CHAIN)
    drafted, sibling = row < chain - 1, (row >= chain) & (row < rows)
    proposal = tl.load(state + _TOKENS + 1 + row)
    own, parent = tl.load(state + _TOKENS + row), tl.load(state + _PLACES + row) - 1
    logit = tl.load(logits + row * vocabulary + proposal, mask=drafted, other=float("-inf"))
    accepted = tl.min(tl.where(drafted & (proposal == token), ROWS, row), 0)
    following = tl.sum(tl.where(row == accepted, token, 0), 0)
    taken = tl.min(tl.where(sibling & (parent == accepted) & (own == following), row, ROWS), 0)
    extra = tl.where(taken < ROWS, 1, 0)
    following = tl.where(taken < ROWS, tl.sum(tl.where(row == taken, token, 0), 0), following)
    position = tl.load(state)
    tl.debug_barrier()  # no thread may see the new state before all have read the old one
    tl.store(state + _CHOSEN + row, token)
    tl.store(floats + _CHOSEN_PROBS + row, 1.0 / total)
    tl.store(floats + _FULL_PROBS + row, tl.exp(logit - best) / total)
    tl.store(state + _ACCEPTED, accepted)
    tl.store(state + _TAKEN, tl.where(taken < ROWS, taken, 0))
    tl.store(state, position + accepted + 1 + extra)
    tl.store(state + _CURSOR, 0)
    tl.store(state + _TOKENS, following)


@triton.jit
def settle_kernel(
    state,
    caches,  # int64 [layers]: addresses of caches [positions, STRIDE] of the first range
    like,  # a tensor of the caches' type
    STRIDE: tl.constexpr,  # values of a cache row
    BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """Move a taken sibling's keys and values, a layer a program, into the last row that the new position covers."""
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    taken = tl.load(state + _TAKEN)
    if taken > 0:
        after = tl.load(state)
        before = after - tl.load(state + _ACCEPTED) - 2
        cache = range_of(tl.load(caches + tl.program_id(0)).to(tl.pointer_type(like.dtype.element_ty)), state)
        value = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        source = cache + (before + taken).to(tl.int64) * STRIDE + value
        moved = tl.load(source, mask=value < STRIDE)
        tl.store(cache + (after - 1).to(tl.int64) * STRIDE + value, moved, mask=value < STRIDE)
