"""Token embedding: one row of the matrix for each token."""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.vector_ir import KIND_BF16, KIND_F16, KIND_F32
from engine.kernels.compiled.vector_lanes import convert
from engine.kernels.compiled.vector_words import field


@njit(nogil=True)
def embed(step, tokens, row):
    """Block `row`: target[row] = weight[field(tokens, row)] as float32."""
    width = field(step, t.K)
    target = field(step, t.TARGET) + row * field(step, t.TARGET_STRIDE)
    if field(step, t.KIND) == KIND_F32:
        convert(KIND_F32, KIND_F32, field(step, t.WEIGHT) + field(tokens, row) * width * 4, target, width)
    elif field(step, t.KIND) == KIND_F16:
        convert(KIND_F16, KIND_F32, field(step, t.WEIGHT) + field(tokens, row) * width * 2, target, width)
    else:
        convert(KIND_BF16, KIND_F32, field(step, t.WEIGHT) + field(tokens, row) * width * 2, target, width)
