"""Residual addition and RMS norm in one pass over the row (Zhang and Sennrich 2019)."""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.vector import add_in_place, load_f32, scale_to, square_sum


@njit(nogil=True)
def add_norm(step, first_row, rows, thread, threads):
    """source[row] += extra_a[row] (where given); target[row] = source / rms(source) * weight.

    EXTRA_A: address of the addend (0: none), EXTRA_B: its stride, EXTRA_C: address of the float32 epsilon.
    """
    width = step[t.K]
    epsilon = load_f32(step[t.EXTRA_C])
    for row in range(first_row + thread, rows, threads):
        stream = step[t.SOURCE] + row * step[t.SOURCE_STRIDE]
        if step[t.EXTRA_A] != 0:
            add_in_place(stream, step[t.EXTRA_A] + row * step[t.EXTRA_B], width)
        mean = square_sum(stream, width) / np.float32(width)
        inverse = np.float32(1.0) / np.sqrt(mean + epsilon)
        scale_to(stream, inverse, step[t.WEIGHT], step[t.TARGET] + row * step[t.TARGET_STRIDE], width)
