"""The leading logits of a low-bit output matrix, computed again with the model's own rows.

The right token is nearly always among the first few of a coarse output matrix; telling those few apart takes only as
many rows of the fine one. So a draft can read a 4-bit output matrix and choose as if it were exact.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.kernels.compiled.vector_dots import dot_tile
from engine.kernels.compiled.vector_ir import KIND_BF16, KIND_F16, KIND_F32
from engine.kernels.compiled.vector_lanes import maximum_of
from engine.kernels.compiled.vector_words import load_f32, store_f32

LEADERS = 8  # measured on the starter: 4 find 0.9995 of what all would, 8 all of it
STRETCH = 256  # logits whose maximum is kept; a multiple of eight


@njit(nogil=True)
def _maximum(logits, first, count):
    """The largest of logits first to count - 1, at most a stretch of them."""
    last = min(first + STRETCH, count)
    whole = (last - first) // 8 * 8
    best = maximum_of(logits + first * 4, whole) if whole else np.float32(-np.inf)
    for i in range(first + whole, last):
        best = max(best, load_f32(logits + i * 4))
    return best


@njit(nogil=True)
def _take_largest(logits, count, maxima):
    """The place of the largest logit, which becomes minus infinity; -1 where none is above that."""
    stretch = 0
    for s in range(1, len(maxima)):
        if maxima[s] > maxima[stretch]:
            stretch = s
    best, first = maxima[stretch], stretch * STRETCH
    if not best > np.float32(-np.inf):
        return -1
    for i in range(first, min(first + STRETCH, count)):
        if load_f32(logits + i * 4) == best:
            store_f32(logits + i * 4, np.float32(-np.inf))
            maxima[stretch] = _maximum(logits, first, count)
            return i
    return -1


@njit("void(int64, int64, int64, int64, int64, int64)", nogil=True, cache=True)
def exact_leaders(logits, count, x, weight, kind, columns):
    """Replace the LEADERS largest of `count` float32 logits by weight[token] . x; the others stay as they are.

    Addresses: logits float32 [count]; x float32 [columns], columns a multiple of eight; weight [count, columns] stored
    as `kind` (float32, float16, bfloat16). Logits of minus infinity are never replaced; NaN stays.
    """
    maxima = np.empty((count + STRETCH - 1) // STRETCH, np.float32)
    for s in range(len(maxima)):
        maxima[s] = _maximum(logits, s * STRETCH, count)
    places = np.empty(LEADERS, np.int64)
    found = 0
    while found < LEADERS:
        place = _take_largest(logits, count, maxima)
        if place < 0:
            break
        places[found] = place
        found += 1
    for n in range(found):
        y = logits + places[n] * 4
        if kind == KIND_F16:
            dot_tile(KIND_F16, 1, 1, weight + places[n] * columns * 2, 0, x, 0, columns, y, 0, 0)
        elif kind == KIND_BF16:
            dot_tile(KIND_BF16, 1, 1, weight + places[n] * columns * 2, 0, x, 0, columns, y, 0, 0)
        else:
            dot_tile(KIND_F32, 1, 1, weight + places[n] * columns * 4, 0, x, 0, columns, y, 0, 0)
