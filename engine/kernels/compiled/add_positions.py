"""Learned positions: one row of a table is added for each row of the pass."""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.vector_ir import KIND_BF16, KIND_F16, KIND_F32
from engine.kernels.compiled.vector_lanes import add_stored
from engine.kernels.compiled.vector_words import field


@njit(nogil=True)
def add_positions(step, position, row):
    """Block `row`: target[row] += weight[position + row + EXTRA_A], K values."""
    width, place = field(step, t.K), position + row + field(step, t.EXTRA_A)
    target = field(step, t.TARGET) + row * field(step, t.TARGET_STRIDE)
    if field(step, t.KIND) == KIND_F32:
        add_stored(KIND_F32, target, field(step, t.WEIGHT) + place * width * 4, width)
    elif field(step, t.KIND) == KIND_F16:
        add_stored(KIND_F16, target, field(step, t.WEIGHT) + place * width * 2, width)
    else:
        add_stored(KIND_BF16, target, field(step, t.WEIGHT) + place * width * 2, width)
