"""Token embedding: one row of the matrix for each token."""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.vector import convert
from engine.kernels.compiled.vector_ir import KIND_BF16, KIND_F16, KIND_F32


@njit(nogil=True)
def embed(step, tokens, rows, thread, threads):
    """target[row] = weight[tokens[row]] as float32, rows dealt out to the threads in turn."""
    width = step[t.K]
    for row in range(thread, rows, threads):
        target = step[t.TARGET] + row * step[t.TARGET_STRIDE]
        if step[t.KIND] == KIND_F32:
            convert(KIND_F32, KIND_F32, step[t.WEIGHT] + tokens[row] * width * 4, target, width)
        elif step[t.KIND] == KIND_F16:
            convert(KIND_F16, KIND_F32, step[t.WEIGHT] + tokens[row] * width * 2, target, width)
        else:
            convert(KIND_BF16, KIND_F32, step[t.WEIGHT] + tokens[row] * width * 2, target, width)
