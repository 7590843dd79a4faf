"""The best logit of a row and the sum its softmax divides by, in one walk through the cache."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.extending import intrinsic

from engine.kernels.compiled import vector_ir as v
from engine.kernels.compiled.vector_lanes import maximum_of
from engine.kernels.compiled.vector_words import load_f32

STRETCH = 2048  # logits looked at together: 8 KiB, well inside the first cache


@intrinsic
def exp_sum(typing_context, values, count, ceiling):
    """Sum of exp(values[i] - ceiling), float32, values untouched; count is a multiple of eight, above zero."""
    signature = types.float32(types.int64, types.int64, types.float32)

    def generate(_context, b: ir.IRBuilder, _signature, args):
        values_, count_, ceiling_ = args
        base, top = v.pointer(b, values_), v.broadcast(b, ceiling_)
        loop = v.Loop(b, count_, [v.splat(0.0)])
        lanes = v.load_vector(b, v.offset(b, base, loop.index, 4), v.KIND_F32)
        loop.end([b.fadd(loop.values[0], v.exponential(b, b.fsub(lanes, top)))])
        return v.fold(b, loop.results[0], b.fadd)

    return signature, generate


@njit("UniTuple(float64, 3)(int64, int64)", nogil=True, cache=True)
def peak_of(logits, count):
    """(index, value, total): the largest of `count` float32 logits, lowest index on ties, and sum exp(logit - value).

    `total` is NaN where a logit is NaN or +infinity.
    """
    whole = count // 8 * 8
    best, stretch = np.float32(-np.inf), 0
    for first in range(0, whole, STRETCH):
        top = maximum_of(logits + first * 4, min(STRETCH, whole - first))
        if top > best:
            best, stretch = top, first
    for i in range(whole, count):
        if load_f32(logits + i * 4) > best:
            best, stretch = load_f32(logits + i * 4), i
    index = stretch
    while index < count - 1 and load_f32(logits + index * 4) != best:
        index += 1
    total = np.float64(0.0)
    for first in range(0, whole, STRETCH):
        total += exp_sum(logits + first * 4, min(STRETCH, whole - first), best)
    for i in range(whole, count):
        total += np.exp(load_f32(logits + i * 4) - best)
    return np.float64(index), np.float64(best), total
