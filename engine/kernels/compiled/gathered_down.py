"""Down projection of chosen MLP neurons: their rows of the neuron-major matrix, weighted and summed."""

from __future__ import annotations

from typing import Any

from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.vector_dots import weighted_gather
from engine.kernels.compiled.vector_ir import ITEM_SIZE, KIND_BF16, KIND_F16, KIND_F32, KIND_I8
from engine.kernels.compiled.vector_lanes import add_in_place
from engine.kernels.compiled.vector_words import field

COLUMNS_OF_BLOCK = 64


def _columns_kernel(kind: int) -> Any:
    size = ITEM_SIZE[kind]

    @njit(nogil=True)
    def kernel(w, x, y, scale, width, index, count, first, last):
        column = first
        while column < last:
            if last - column >= 64:
                weighted_gather(kind, 8, count, x, w + column * size, width * size, y + column * 4, scale, index)
                column += 64
            else:
                weighted_gather(kind, 1, count, x, w + column * size, width * size, y + column * 4, scale, index)
                column += 8

    return kernel


columns_f32, columns_f16, columns_bf16, columns_i8 = (
    _columns_kernel(k) for k in (KIND_F32, KIND_F16, KIND_BF16, KIND_I8)
)


@njit(nogil=True)
def gathered_down(step, rows, block):
    """One block of columns of target[row] = sum over i of source[row, i] * weight[index[i]]; weight is [neurons, N].

    N is a multiple of eight. EXTRA_A: the int32 index, K of them; int8 rows carry a float32 scale at SCALE[neuron].
    BIAS: float32 [N] that is added, or 0.
    """
    first = block * COLUMNS_OF_BLOCK
    last = min(field(step, t.N), first + COLUMNS_OF_BLOCK)
    w, scale, width = field(step, t.WEIGHT), field(step, t.SCALE), field(step, t.N)
    index, count = field(step, t.EXTRA_A), field(step, t.K)
    for row in range(rows):
        x = field(step, t.SOURCE) + row * field(step, t.SOURCE_STRIDE)
        y = field(step, t.TARGET) + row * field(step, t.TARGET_STRIDE)
        if field(step, t.KIND) == KIND_F16:
            columns_f16(w, x, y, scale, width, index, count, first, last)
        elif field(step, t.KIND) == KIND_I8:
            columns_i8(w, x, y, scale, width, index, count, first, last)
        elif field(step, t.KIND) == KIND_BF16:
            columns_bf16(w, x, y, scale, width, index, count, first, last)
        else:
            columns_f32(w, x, y, scale, width, index, count, first, last)
        if field(step, t.BIAS) != 0:
            add_in_place(y + first * 4, field(step, t.BIAS) + first * 4, last - first)
