"""Truncation without sorting: the least logit of top-k and the least weight of top-p, found digit by digit.

Each search looks for the largest key at or above which a row holds at least so much: k tokens (the key orders all
float32 logits), or a share of the mass (the key is the weight's bits). A launch sums, for every value of the next five
bits, what lies in it among keys that begin with the bits known so far; the launch after it reads off the digit. Masses
are integers (units of 2^-44), so the order in which programs add them cannot change a bit. Oracle: `engine.sampling.
distribution` (penalise, truncate).
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.hardware import INTERPRETED, exact_exp, launch_dependents, wait_for_predecessor
from engine.kernels.triton.judge import TOKENS

# Places in SETTINGS (float64).
TEMPERATURE, TOP_K, TOP_P, MIN_P, PENALTY, DRAWS = range(6)
SETTINGS_SIZE = 8
# Searches: seven digits order a float32, six hold the bits of a weight from 0 to 1.
COUNT_LEVELS, MASS_LEVELS = 7, 6
LEVELS = COUNT_LEVELS + MASS_LEVELS
DIGITS = 32
MAX_VOCABULARY = 2**19  # so many weights of 1 overflow no sum

_TEMPERATURE, _TOP_K, _TOP_P, _PENALTY = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(4)
_COUNT_LEVELS, _LEVELS = tl.constexpr(COUNT_LEVELS), tl.constexpr(LEVELS)
_TOKENS = tl.constexpr(TOKENS)
_DIGITS = tl.constexpr(DIGITS)
_AT_ONCE = tl.constexpr(DIGITS if INTERPRETED else 8)  # digits summed at a time: more would spill registers
_LEVELS_PADDED = tl.constexpr(512)  # LEVELS * DIGITS, rounded up to a power of two
_UNITS = tl.constexpr(2.0**44)
ROWS = tl.constexpr(16)


@triton.jit
def ordered_key(x):
    """uint32 that orders as float32 x does; x is no NaN and no negative zero."""
    bits = x.to(tl.uint32, bitcast=True)
    return tl.where(bits >> 31 == 1, bits ^ 0xFFFFFFFF, bits | 0x80000000)


@triton.jit
def softmax_weight(score, top, settings):
    """exp((score - top) / temperature), float32, at most 1."""
    temperature = tl.load(settings + _TEMPERATURE).to(tl.float32)
    return exact_exp(tl.div_rn(score - top, temperature))


@triton.jit
def mass(weight):
    """A weight in integer units."""
    return (weight * _UNITS).to(tl.int64)


@triton.jit
def row_top(maxima, row, PARTS: tl.constexpr, PARTS_PADDED: tl.constexpr):
    """The best score of a row; +infinity where it holds a NaN or +infinity."""
    part = tl.arange(0, PARTS_PADDED)
    return tl.max(tl.load(maxima + row * PARTS + part, mask=part < PARTS, other=float("-inf")), 0)


@triton.jit
def _descend(digits, found, row, level, goal):
    """After the sums of a level: the bits known now, and how much lies above all keys that begin with them."""
    at = row * _LEVELS + level
    prefix, above = tl.load(found + at * 2), tl.load(found + at * 2 + 1)
    digit = tl.arange(0, _DIGITS)
    sums = tl.load(digits + at * _DIGITS + digit)
    reached = above + tl.sum(sums, 0) - tl.cumsum(sums, 0) + sums
    chosen = tl.max(tl.where(reached >= goal, digit, 0), 0)
    return prefix * _DIGITS + chosen, above + tl.sum(tl.where(digit > chosen, sums, 0), 0)


@triton.jit
def least_kept_key(settings, digits, found, row, allowed):
    """The ordered key of the k-th best score, int64; 0 where top-k keeps all."""
    top_k = tl.load(settings + _TOP_K).to(tl.int64)
    key = top_k * 0
    if (top_k > 0) & (top_k < allowed):
        key, _ = _descend(digits, found, row, _COUNT_LEVELS - 1, top_k)
    return key


@triton.jit
def _mass_goal(settings, digits, row):
    """Units of mass that top-p keeps at least."""
    digit = tl.arange(0, _DIGITS)
    total = tl.sum(tl.load(digits + (row * _LEVELS + _COUNT_LEVELS) * _DIGITS + digit), 0)
    return tl.ceil(total.to(tl.float64) * tl.load(settings + _TOP_P)).to(tl.int64)


@triton.jit
def least_kept_weight(settings, digits, found, row):
    """Top-p: the bits of the least kept weight, int64, and how many of the tokens of that weight are kept."""
    goal = _mass_goal(settings, digits, row)
    bits, above = _descend(digits, found, row, _LEVELS - 1, goal)
    one = tl.maximum(mass(bits.to(tl.uint32).to(tl.float32, bitcast=True)), 1)
    return bits, (goal - above + one - 1) // one


@triton.jit
def prepare_kernel(
    state,
    logits,  # [16, vocabulary] float32
    seen,  # [vocabulary] uint8: whether an id occurs in prompt or reply
    settings,  # [SETTINGS_SIZE] float64
    scores,  # [16, allowed] float32: logits after the penalty
    maxima,  # [16, PARTS] float32
    digits,  # [16, LEVELS, DIGITS] int64, cleared here
    vocabulary,
    allowed,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
    AT_CURSOR: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """Penalised scores of a block of a row, which stands after the first `row` proposals of the state's block."""
    part, row = tl.program_id(0), tl.program_id(1)
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    column = part * BLOCK + tl.arange(0, BLOCK)
    inside = column < allowed
    x = tl.load(logits + row * vocabulary + column, mask=inside, other=float("-inf"))
    penalty = tl.load(settings + _PENALTY).to(tl.float32)
    if penalty != 1.0:
        before = row
        if AT_CURSOR:
            before += tl.load(state + 1)
        place = tl.arange(0, ROWS)
        token = tl.load(state + _TOKENS + place)
        drafted = (column[:, None] == token[None, :]) & ((place > 0) & (place <= before))[None, :]
        marked = tl.load(seen + column, mask=inside, other=0).to(tl.int32) + tl.max(drafted.to(tl.int32), 1)
        x = tl.where(marked > 0, tl.where(x < 0, x * penalty, tl.div_rn(x, penalty)), x)
    x = tl.where(x == 0, 0.0, x)  # no negative zero, which would order below zero
    tl.store(scores + row * allowed + column, x, mask=inside)
    unusable = inside & ((x != x) | (x == float("inf")))
    tl.store(maxima + row * PARTS + part, tl.max(tl.where(unusable, float("inf"), x), 0))
    if part == 0:
        cell = tl.arange(0, _LEVELS_PADDED)
        tl.store(digits + row * _LEVELS * _DIGITS + cell, cell.to(tl.int64) * 0, mask=cell < _LEVELS * _DIGITS)


@triton.jit(do_not_specialize=["level"])
def narrow_kernel(
    scores,
    maxima,
    settings,
    digits,
    found,  # [16, LEVELS, 2] int64: known bits and mass above them, as each level begins
    last_digits,  # [16, PARTS, DIGITS] int64: the last level's sums of each block
    allowed,
    level,
    BY_MASS: tl.constexpr,  # levels from COUNT_LEVELS on
    FIRST: tl.constexpr,  # level of its search
    LAST: tl.constexpr,
    PARTS: tl.constexpr,
    PARTS_PADDED: tl.constexpr,
    BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """Sums of a level for a block of a row. Does nothing where the settings do not ask for this search."""
    part, row = tl.program_id(0), tl.program_id(1)
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    top_k = tl.load(settings + _TOP_K).to(tl.int64)
    if BY_MASS:
        asked = tl.load(settings + _TOP_P) < 1.0
    else:
        asked = (top_k > 0) & (top_k < allowed)
    if asked:
        shift = ((_LEVELS if BY_MASS else _COUNT_LEVELS) - 1 - level) * 5
        column = part * BLOCK + tl.arange(0, BLOCK)
        match = column < allowed
        score = tl.load(scores + row * allowed + column, mask=match, other=float("-inf"))
        key = ordered_key(score)
        if BY_MASS:
            match = match & (key >= least_kept_key(settings, digits, found, row, allowed))
            weight = softmax_weight(score, row_top(maxima, row, PARTS, PARTS_PADDED), settings)
            value = mass(weight)
            key = weight.to(tl.uint32, bitcast=True)
        else:
            value = tl.full((BLOCK,), 1, tl.int32)
        prefix, above = top_k * 0, top_k * 0
        if not FIRST:
            goal = top_k
            if BY_MASS:
                goal = _mass_goal(settings, digits, row)
            prefix, above = _descend(digits, found, row, level - 1, goal)
            match = match & ((key >> (shift + 5)) == prefix.to(tl.uint32))
        at = row * _LEVELS + level
        if part == 0:
            tl.store(found + at * 2, prefix)
            tl.store(found + at * 2 + 1, above)
        own = ((key >> shift) & (_DIGITS - 1)).to(tl.int32)
        if (tl.max(match.to(tl.int32), 0) > 0) | LAST:
            for first in range(0, _DIGITS, _AT_ONCE):
                digit = first + tl.arange(0, _AT_ONCE)
                here = match[:, None] & (own[:, None] == digit[None, :])
                sums = tl.sum(tl.where(here, value[:, None], 0), 0).to(tl.int64)
                tl.atomic_add(digits + at * _DIGITS + digit, sums, mask=sums != 0, sem="relaxed")
                if LAST:
                    tl.store(last_digits + (row * PARTS + part) * _DIGITS + digit, sums)
