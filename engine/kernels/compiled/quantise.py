"""Symmetric int8 rows with one float32 scale each: the draft's copy of a matrix."""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.kernels.compiled.vector_ir import KIND_BF16, KIND_F16, KIND_F32
from engine.kernels.compiled.vector_lanes import convert
from engine.kernels.compiled.vector_words import load_f32

SMALLEST = np.float32(1e-35)  # a row with nothing larger counts as zero: its scale would leave the normal numbers


@njit(nogil=True, cache=True)
def quantise_rows(weight, kind, out, scales, first, last):
    """out[r] = round(weight[r] / scale[r]), scale[r] = max |weight[r]| / 127, or 1 for about 0, r in [first, last).

    weight: address of [*, K] stored as `kind`, K a multiple of eight; out int8 [*, K]; scales float32 [*].
    """
    width = out.shape[1]
    line = np.empty(width, np.float32)
    at = line.ctypes.data
    for r in range(first, last):
        if kind == KIND_F16:
            convert(KIND_F16, KIND_F32, weight + r * width * 2, at, width)
        elif kind == KIND_BF16:
            convert(KIND_BF16, KIND_F32, weight + r * width * 2, at, width)
        else:
            convert(KIND_F32, KIND_F32, weight + r * width * 4, at, width)
        largest = np.float32(0.0)
        for i in range(width):
            largest = max(largest, abs(load_f32(at + 4 * i)))
        scale = largest / np.float32(127.0) if largest > SMALLEST else np.float32(1.0)
        scales[r] = scale
        for i in range(width):
            out[r, i] = np.int8(np.rint(load_f32(at + 4 * i) / scale))
