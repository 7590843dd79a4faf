"""Attention of one draft row over heads of its own: each head by itself, on plain arithmetic units.

The sums come in whatever order is fast. Writes the row's key and value into the shared cache in place (the next full
pass overwrites them before it reads them) and leaves its result as int8 activations of the output projection. Several
rows, or query heads that share a key head, have a tile of their own: draft_rows_attention.py.
Oracle: `engine.kernels.reference.operations` (rotate, attend).
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.draft_matmul import store_quantised
from engine.kernels.triton.hardware import launch_dependents, wait_for_predecessor
from engine.kernels.triton.judge import range_of

NEVER = tl.constexpr(-1.0e30)  # a score that loses to all others


@triton.jit
def load_keys(cache, key, start, head, STRIDE: tl.constexpr, KV_WIDTH: tl.constexpr, DIM: tl.constexpr):
    """Committed keys (halves) and values of a key head at the positions `key`; zeros from `start` on."""
    half, whole = tl.arange(0, DIM // 2), tl.arange(0, DIM)
    base = cache + key[:, None].to(tl.int64) * STRIDE + head * DIM
    old = (key < start)[:, None]
    k1 = tl.load(base + half[None, :], mask=old, other=0.0)
    k2 = tl.load(base + DIM // 2 + half[None, :], mask=old, other=0.0)
    v = tl.load(base + KV_WIDTH + whole[None, :], mask=old, other=0.0)
    return k1, k2, v


@triton.jit
def _rotated(first, second, cos, sin, ROTATES: tl.constexpr):
    """Both halves of a head's vector turned to its position, float32."""
    x1, x2 = first.to(tl.float32), second.to(tl.float32)
    if ROTATES:
        y1 = x1 * cos - x2 * sin
        x2 = x2 * cos + x1 * sin
        x1 = y1
    return x1, x2


@triton.jit
def draft_attention_kernel(
    qkv,  # [1, 3 HEADS DIM] of the model's type, not yet rotated
    cache,  # [positions, 2, HEADS, DIM] of the first range (see judge.range_of)
    cosine,  # [positions, DIM / 2] float32
    sine,
    state,  # int32: position, cursor, … (see judge.py)
    partial_out,  # [HEADS, PROGRAMS, DIM] float32
    partial_max,  # [HEADS, PROGRAMS] float32
    partial_sum,
    arrivals,  # [HEADS] int32, zero between launches
    factors,  # [HEADS DIM] float32: 1 / factors of the output projection
    planes,  # int8 [1, 2, HEADS DIM / 2], see draft_matmul.py
    scales,  # float32 [1, HEADS DIM / 8]
    scale,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,  # as many
    DIM: tl.constexpr,
    BLOCK_KEYS: tl.constexpr,
    PROGRAMS: tl.constexpr,  # programs of a head, a power of two; program i takes blocks i, i + PROGRAMS, …
    WINDOW: tl.constexpr,  # last positions a row sees beside the first few; 0 for all
    SINKS: tl.constexpr,  # how many first ones (StreamingLLM, Xiao et al. 2023)
    ROTATES: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    HALF: tl.constexpr = DIM // 2
    WIDTH: tl.constexpr = HEADS * DIM
    head, program = tl.program_id(0), tl.program_id(1)
    half, whole = tl.arange(0, HALF), tl.arange(0, DIM)
    cache = range_of(cache, state)
    start = tl.load(state) + tl.load(state + 1)
    blocks = start // BLOCK_KEYS + 1
    skipped = 0  # whole blocks between the first and the window
    if WINDOW > 0:
        skipped = tl.maximum(0, (start + 1 - WINDOW) // BLOCK_KEYS - 1)
    taken = blocks - skipped
    block = tl.where(program == 0, 0, program + skipped)
    key = block * BLOCK_KEYS + tl.arange(0, BLOCK_KEYS)
    k1, k2, v = load_keys(cache, key, start, head, 2 * WIDTH, WIDTH, DIM)
    cos, sin = tl.load(cosine + start * HALF + half), tl.load(sine + start * HALF + half)
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    if program < taken:
        query = qkv + head * DIM
        q1, q2 = _rotated(tl.load(query + half), tl.load(query + HALF + half), cos, sin, ROTATES)
        q1, q2 = q1 * scale, q2 * scale
        one = tl.arange(0, 1)
        ceiling, total = tl.full((1,), NEVER, tl.float32), tl.zeros((1,), tl.float32)
        mixed = tl.zeros((DIM,), tl.float32)
        i = program
        while i < taken:
            if (block + 1) * BLOCK_KEYS > start:
                fresh = query + WIDTH
                n1, n2 = _rotated(tl.load(fresh + half), tl.load(fresh + HALF + half), cos, sin, ROTATES)
                n1, n2, nv = n1.to(k1.dtype), n2.to(k2.dtype), tl.load(fresh + WIDTH + whole).to(v.dtype)
                spot = cache + start.to(tl.int64) * (2 * WIDTH) + head * DIM
                tl.store(spot + half, n1)
                tl.store(spot + HALF + half, n2)
                tl.store(spot + WIDTH + whole, nv)
                own = (key == start)[:, None]
                k1, k2 = tl.where(own, n1[None, :], k1), tl.where(own, n2[None, :], k2)
                v = tl.where(own, nv[None, :], v)
            scores = tl.sum(k1.to(tl.float32) * q1[None, :] + k2.to(tl.float32) * q2[None, :], 1)
            seen = key <= start
            if WINDOW > 0:
                seen = seen & ((key < SINKS) | (key > start - WINDOW))
            scores = tl.where(seen, scores, NEVER)
            raised = tl.maximum(ceiling, tl.max(scores, 0))
            weights = tl.where(seen, tl.exp(scores - raised), 0.0)
            fade = tl.exp(ceiling - raised)
            total = total * fade + tl.sum(weights, 0)
            mixed = mixed * fade + tl.sum(v.to(tl.float32) * weights[:, None], 0)
            ceiling = raised
            i += PROGRAMS
            block = i + skipped
            key = block * BLOCK_KEYS + tl.arange(0, BLOCK_KEYS)
            k1, k2, v = load_keys(cache, key, start, head, 2 * WIDTH, WIDTH, DIM)
        at = head * PROGRAMS + program
        tl.store(partial_out + at * DIM + whole, mixed)
        tl.store(partial_max + at + one, ceiling)
        tl.store(partial_sum + at + one, total)
        tl.debug_barrier()
        there = tl.minimum(taken, PROGRAMS)
        if tl.atomic_add(arrivals + head, 1, sem="acq_rel") == there - 1:
            member = tl.arange(0, PROGRAMS)
            inside, cell = member < there, head * PROGRAMS + member
            maxima = tl.load(partial_max + cell, mask=inside, other=NEVER, cache_modifier=".cg")
            share = tl.where(inside, tl.exp(maxima - tl.max(maxima, 0)), 0.0)
            sums = tl.load(partial_sum + cell, mask=inside, other=0.0, cache_modifier=".cg")
            parts = partial_out + cell[:, None] * DIM + whole[None, :]
            out = tl.sum(tl.load(parts, mask=inside[:, None], other=0.0, cache_modifier=".cg") * share[:, None], 0)
            out = out / tl.sum(sums * share, 0) * tl.load(factors + head * DIM + whole)
            store_quantised(out, planes, scales, head * DIM, 0, WIDTH, DIM)
            tl.store(arrivals + head, 0)
