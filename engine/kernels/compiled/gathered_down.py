"""Down projection of chosen MLP neurons: their rows of the neuron-major matrix, weighted and summed."""

from __future__ import annotations

from typing import Any

from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.linear import share_of
from engine.kernels.compiled.vector import weighted_gather
from engine.kernels.compiled.vector_ir import ITEM_SIZE, KIND_BF16, KIND_F16, KIND_F32, KIND_I8


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
def gathered_down(step, rows, thread, threads):
    """target[row] = sum over i of source[row, i] * weight[index[i]]; weight is [neurons, N], N a multiple of eight.

    EXTRA_A: the int32 index, K of them; int8 rows carry their float32 scale at SCALE[neuron].
    """
    first, last = share_of(step[t.N], 8, thread, threads)
    w, scale, width, index, count = step[t.WEIGHT], step[t.SCALE], step[t.N], step[t.EXTRA_A], step[t.K]
    for row in range(rows):
        x = step[t.SOURCE] + row * step[t.SOURCE_STRIDE]
        y = step[t.TARGET] + row * step[t.TARGET_STRIDE]
        if step[t.KIND] == KIND_F16:
            columns_f16(w, x, y, scale, width, index, count, first, last)
        elif step[t.KIND] == KIND_I8:
            columns_i8(w, x, y, scale, width, index, count, first, last)
        elif step[t.KIND] == KIND_BF16:
            columns_bf16(w, x, y, scale, width, index, count, first, last)
        else:
            columns_f32(w, x, y, scale, width, index, count, first, last)
