"""Logits of a reduced vocabulary back to their token ids."""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.vector_words import field, index_at, load_f32, store_f32


@njit(nogil=True)
def scatter(step, row):
    """Block `row`: target[row, index[i]] = source[row, i] for i below N. EXTRA_A: the int32 index."""
    source = field(step, t.SOURCE) + row * field(step, t.SOURCE_STRIDE)
    target = field(step, t.TARGET) + row * field(step, t.TARGET_STRIDE)
    index = field(step, t.EXTRA_A)
    for i in range(field(step, t.N)):
        store_f32(target + index_at(index, i) * 4, load_f32(source + i * 4))
