"""Rotary position embedding of queries and keys, and the write of keys and values into the KV cache."""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.vector_ir import KIND_F16, KIND_F32
from engine.kernels.compiled.vector_lanes import convert, rotate, scale_to, square_sum
from engine.kernels.compiled.vector_words import field, load_f32


@njit(nogil=True, error_model="numpy")  # an error raised in one thread would leave the others waiting
def rotate_store(step, position, row):
    """Block `row`: rotate its query heads in place, scaled for attention; keys and values go into the cache.

    SOURCE rows hold [query heads, key heads, value heads] of K float32 each. WEIGHT: the KV cache of this layer,
    [positions, 2, kv heads, K] of KIND; EXTRA_A, EXTRA_B: cosine and sine tables [positions, K/2];
    EXTRA_C: query heads, EXTRA_D: kv heads; EXTRA_E: address of the float32 attention scale, the norms' epsilon before
    it. N: 1, or 0 where every row turns by the first row of the tables. SCALE, BIAS: float32 weights [K] of the RMS
    norm that query and key heads go through first; 0 for none.
    """
    dim, heads, kv_heads = field(step, t.K), field(step, t.EXTRA_C), field(step, t.EXTRA_D)
    half, one = dim // 2, np.float32(1.0)
    scale = load_f32(field(step, t.EXTRA_E))
    size = 2 if field(step, t.KIND) == KIND_F16 else 4
    angle = (position + row) * field(step, t.N) * half * 4
    cosine, sine = field(step, t.EXTRA_A) + angle, field(step, t.EXTRA_B) + angle
    query_norm, key_norm = field(step, t.SCALE), field(step, t.BIAS)
    epsilon = load_f32(field(step, t.EXTRA_E) - 4)
    for head in range(heads + 2 * kv_heads):
        at = field(step, t.SOURCE) + row * field(step, t.SOURCE_STRIDE) + head * dim * 4
        if query_norm != 0 and head < heads + kv_heads:
            inverse = one / np.sqrt(square_sum(at, dim) / np.float32(dim) + epsilon)
            scale_to(at, inverse, query_norm if head < heads else key_norm, at, dim)
        if head < heads:
            rotate(KIND_F32, at, cosine, sine, half, scale, at)
            continue
        slot = (position + row) * 2 * kv_heads + (head - heads)  # keys first, then values: [2, kv heads]
        target = field(step, t.WEIGHT) + slot * dim * size
        if head < heads + kv_heads:
            if size == 2:
                rotate(KIND_F16, at, cosine, sine, half, one, target)
            else:
                rotate(KIND_F32, at, cosine, sine, half, one, target)
        elif size == 2:
            convert(KIND_F32, KIND_F16, at, target, dim)
        else:
            convert(KIND_F32, KIND_F32, at, target, dim)
