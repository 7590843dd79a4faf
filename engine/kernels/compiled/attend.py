"""Causal attention of each row over the KV cache, grouped queries, softmax in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.vector_dots import dot_tile, weighted_rows
from engine.kernels.compiled.vector_ir import ITEM_SIZE, KIND_F16, KIND_F32
from engine.kernels.compiled.vector_lanes import exp_and_sum, maximum_of
from engine.kernels.compiled.vector_words import field, store_f32


def _head_kernel(kind: int) -> Any:
    """One query head over `count` cached positions starting at `keys` and `values`, `stride` bytes apart."""
    size = ITEM_SIZE[kind]

    @njit(nogil=True, error_model="numpy")  # an error raised in one thread would leave the others waiting
    def kernel(query, keys, values, stride, count, dim, scores, out):
        j = 0
        while j + 8 <= count:
            dot_tile(kind, 8, 1, keys + j * stride, stride, query, 0, dim, scores + j * 4, 0, 0)
            j += 8
        while j < count:
            dot_tile(kind, 1, 1, keys + j * stride, stride, query, 0, dim, scores + j * 4, 0, 0)
            j += 1
        padded = (count + 7) // 8 * 8
        for p in range(count, padded):  # minus infinity adds an exact zero to the sum
            store_f32(scores + p * 4, np.float32(-np.inf))
        inverse = np.float32(1.0) / exp_and_sum(scores, padded, maximum_of(scores, padded))
        column = 0
        while column < dim:
            if dim - column >= 64:
                weighted_rows(kind, 8, count, scores, values + column * size, stride, out + column * 4, inverse)
                column += 64
            else:
                weighted_rows(kind, 1, count, scores, values + column * size, stride, out + column * 4, inverse)
                column += 8

    return kernel


head_f32, head_f16 = _head_kernel(KIND_F32), _head_kernel(KIND_F16)


@njit(nogil=True)
def attend(step, position, block, thread):
    """Block (row, head): target[row, head] = softmax(query . keys) values over positions 0 to `position + row`.

    SOURCE rows hold the rotated, scaled query heads; WEIGHT is the layer's KV cache [positions, 2, kv heads, K] of
    KIND; EXTRA_A: float32 scratch for scores, EXTRA_B bytes of it a thread; EXTRA_C: heads, EXTRA_D: kv heads.
    A row reads only positions up to its own, so its result cannot depend on the rows beside it.
    """
    dim, heads, kv_heads = field(step, t.K), field(step, t.EXTRA_C), field(step, t.EXTRA_D)
    size = 2 if field(step, t.KIND) == KIND_F16 else 4
    stride, group = 2 * kv_heads * dim * size, heads // kv_heads
    scores = field(step, t.EXTRA_A) + thread * field(step, t.EXTRA_B)
    row, head = block // heads, block % heads
    keys = field(step, t.WEIGHT) + head // group * dim * size
    values = keys + kv_heads * dim * size
    query = field(step, t.SOURCE) + row * field(step, t.SOURCE_STRIDE) + head * dim * 4
    out = field(step, t.TARGET) + row * field(step, t.TARGET_STRIDE) + head * dim * 4
    if size == 2:
        head_f16(query, keys, values, stride, position + row + 1, dim, scores, out)
    else:
        head_f32(query, keys, values, stride, position + row + 1, dim, scores, out)
