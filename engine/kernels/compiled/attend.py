"""Causal attention of each row over the KV cache, grouped queries, softmax in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.quantise_input import quantise_columns
from engine.kernels.compiled.vector_dots import dot_tile, weighted_rows
from engine.kernels.compiled.vector_ir import ITEM_SIZE, KIND_F16, KIND_F32
from engine.kernels.compiled.vector_lanes import add_in_place, exp_and_sum, maximum_of
from engine.kernels.compiled.vector_words import field, store_f32
from engine.model.instructions import SINKS


@njit(nogil=True, error_model="numpy")
def exponentiate(scores, count):
    """scores[i] = exp(scores[i] - the largest); returns 1 / their sum. There is room up to a multiple of eight."""
    padded = (count + 7) // 8 * 8
    for p in range(count, padded):  # minus infinity adds an exact zero to the sum
        store_f32(scores + p * 4, np.float32(-np.inf))
    return np.float32(1.0) / exp_and_sum(scores, padded, maximum_of(scores, padded))


def _score_kernel(kind: int) -> Any:
    """scores[j] = query . keys[j] for `count` keys `stride` bytes apart."""

    @njit(nogil=True, error_model="numpy")
    def kernel(query, keys, stride, count, dim, scores):
        j = 0
        while j + 8 <= count:
            dot_tile(kind, 8, 1, keys + j * stride, stride, query, 0, dim, scores + j * 4, 0, 0)
            j += 8
        while j < count:
            dot_tile(kind, 1, 1, keys + j * stride, stride, query, 0, dim, scores + j * 4, 0, 0)
            j += 1

    return kernel


def _mix_kernel(kind: int) -> Any:
    """out = factor * sum of scores[j] * values[j], `dim` columns."""
    size = ITEM_SIZE[kind]

    @njit(nogil=True, error_model="numpy")
    def kernel(scores, values, stride, count, dim, out, factor):
        column = 0
        while column < dim:
            if dim - column >= 64:
                weighted_rows(kind, 8, count, scores, values + column * size, stride, out + column * 4, factor)
                column += 64
            else:
                weighted_rows(kind, 1, count, scores, values + column * size, stride, out + column * 4, factor)
                column += 8

    return kernel


def _head_kernel(kind: int) -> Any:
    """One query head over `count` cached positions starting at `keys` and `values`, `stride` bytes apart."""
    score, mix = _score_kernel(kind), _mix_kernel(kind)

    @njit(nogil=True, error_model="numpy")  # an error raised in one thread would leave the others waiting
    def kernel(query, keys, values, stride, count, dim, scores, out):
        score(query, keys, stride, count, dim, scores)
        mix(scores, values, stride, count, dim, out, exponentiate(scores, count))

    return kernel


def _window_kernel(kind: int) -> Any:
    """As above over the first SINKS and the last `window` positions of `count`, more than both: a draft's own window.

    The first positions stay because heads with nothing to look at look there (Xiao et al. 2023, attention sinks).
    """
    score, mix = _score_kernel(kind), _mix_kernel(kind)

    @njit(nogil=True, error_model="numpy")
    def kernel(query, keys, values, stride, count, window, dim, scores, out):
        skipped = (count - window) * stride
        score(query, keys, stride, SINKS, dim, scores)
        score(query, keys + skipped, stride, window, dim, scores + SINKS * 4)
        inverse = exponentiate(scores, SINKS + window)
        rest = scores + (SINKS + window + 7) // 8 * 32
        mix(scores, values, stride, SINKS, dim, out, inverse)
        mix(scores + SINKS * 4, values + skipped, stride, window, dim, rest, inverse)
        add_in_place(out, rest, dim)

    return kernel


head_f32, head_f16 = _head_kernel(KIND_F32), _head_kernel(KIND_F16)
window_f32, window_f16 = _window_kernel(KIND_F32), _window_kernel(KIND_F16)


@njit(nogil=True)
def attend(step, position, block, thread):
    """Block (row, head): target[row, head] = softmax(query . keys) values over positions 0 to `position + row`.

    SOURCE rows hold the rotated, scaled query heads; WEIGHT is the layer's KV cache [positions, 2, kv heads, K] of
    KIND; EXTRA_A: float32 scratch, EXTRA_B bytes of it a thread: positions + 8, and K for a window with sinks;
    EXTRA_C: heads, EXTRA_D: kv heads. EXTRA_E: the window, of the last so many positions, negative where the first
    SINKS are seen beside it; 0 for none.
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
    count, window = position + row + 1, field(step, t.EXTRA_E)
    if window > 0 and count > window:
        keys, values, count = keys + (count - window) * stride, values + (count - window) * stride, window
    if window < 0 and count > SINKS - window:
        if size == 2:
            window_f16(query, keys, values, stride, count, -window, dim, scores, out)
        else:
            window_f32(query, keys, values, stride, count, -window, dim, scores, out)
    elif size == 2:
        head_f16(query, keys, values, stride, count, dim, scores, out)
    else:
        head_f32(query, keys, values, stride, count, dim, scores, out)
    quantise_columns(step, out - head * dim * 4, row, heads * dim, head * dim, (head + 1) * dim)
