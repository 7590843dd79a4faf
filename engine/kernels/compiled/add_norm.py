"""Residual addition and norm of a row at once: RMS norm (Zhang and Sennrich 2019) or LayerNorm (Ba et al. 2016)."""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.quantise_input import quantise_columns
from engine.kernels.compiled.vector_lanes import (
    add_in_place,
    centre_to,
    centred_square_sum,
    scale_to,
    square_sum,
    value_sum,
)
from engine.kernels.compiled.vector_words import field, load_f32


@njit(nogil=True, error_model="numpy")  # an error raised in one thread would leave the others waiting
def add_norm(step, row):
    """Block `row`: source[row] += addend[row] (where given); target[row] = source / rms(source) * weight.

    EXTRA_A: address of the addend (0: none), EXTRA_B: its stride, EXTRA_C: address of the float32 epsilon.
    BIAS: where not 0, target[row] = (source - mean) / deviation * weight + bias. The target may be the source.
    """
    width = field(step, t.K)
    stream = field(step, t.SOURCE) + row * field(step, t.SOURCE_STRIDE)
    if field(step, t.EXTRA_A) != 0:
        add_in_place(stream, field(step, t.EXTRA_A) + row * field(step, t.EXTRA_B), width)
    epsilon, count = load_f32(field(step, t.EXTRA_C)), np.float32(width)
    target = field(step, t.TARGET) + row * field(step, t.TARGET_STRIDE)
    if field(step, t.BIAS) == 0:
        inverse = np.float32(1.0) / np.sqrt(square_sum(stream, width) / count + epsilon)
        scale_to(stream, inverse, field(step, t.WEIGHT), target, width)
    else:
        mean = value_sum(stream, width) / count
        inverse = np.float32(1.0) / np.sqrt(centred_square_sum(stream, mean, width) / count + epsilon)
        centre_to(stream, mean, inverse, field(step, t.WEIGHT), field(step, t.BIAS), target, width)
    quantise_columns(step, target, row, width, 0, width)
