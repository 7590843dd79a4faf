"""Attention of one to four draft rows: each query head by itself, on plain arithmetic units, in whatever order is fast.

Writes the rows' keys and values into the shared cache in place (the next full pass overwrites them before it reads
them) and leaves its result as int8 activations of the output projection. Oracle: `engine.kernels.reference.operations`
(rotate, attend).
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.draft_matmul import store_quantised
from engine.kernels.triton.hardware import launch_dependents, wait_for_predecessor

NEVER = tl.constexpr(-1.0e30)  # a score that loses to all others
SINKS = tl.constexpr(4)  # first positions that a window always sees (StreamingLLM, Xiao et al. 2023)


@triton.jit
def _load_keys(cache, key, start, kv, STRIDE: tl.constexpr, KV_WIDTH: tl.constexpr, DIM: tl.constexpr):
    """Committed keys (halves) and values of the positions `key`; zeros from `start` on."""
    half, whole = tl.arange(0, DIM // 2), tl.arange(0, DIM)
    base = cache + key[:, None].to(tl.int64) * STRIDE + kv * DIM
    old = (key < start)[:, None]
    k1 = tl.load(base + half[None, :], mask=old, other=0.0)
    k2 = tl.load(base + DIM // 2 + half[None, :], mask=old, other=0.0)
    v = tl.load(base + KV_WIDTH + whole[None, :], mask=old, other=0.0)
    return k1, k2, v


@triton.jit
def _load_heads(source, at, row, WIDTH: tl.constexpr, HALF: tl.constexpr, ROWS: tl.constexpr):
    """Both halves of a head's vector in every row, float32 [ROWS_PADDED, DIM / 2]."""
    half = tl.arange(0, HALF)
    base = source + row[:, None] * WIDTH + at + half[None, :]
    used = (row < ROWS)[:, None] & (half < HALF)[None, :]
    first, second = tl.load(base, mask=used, other=0.0), tl.load(base + HALF, mask=used, other=0.0)
    return first.to(tl.float32), second.to(tl.float32)


@triton.jit
def _of_row(values, row, r: tl.constexpr):
    """One row of a small tile."""
    return tl.sum(tl.where((row == r)[:, None], values, 0.0), 0)


@triton.jit
def _with_fresh(
    k1, k2, v, n1, n2, nv, block, key, row, cache, start, head, kv, HEADS: tl.constexpr, KV_HEADS: tl.constexpr,
    DIM: tl.constexpr, ROWS: tl.constexpr, BLOCK_KEYS: tl.constexpr,
):  # fmt: skip
    """The tile with this step's own keys and values in their places; one program of a key head stores them."""
    HALF: tl.constexpr = DIM // 2
    half, whole = tl.arange(0, HALF), tl.arange(0, DIM)
    for r in tl.static_range(ROWS):
        f1, f2, fv = _of_row(n1, row, r).to(k1.dtype), _of_row(n2, row, r).to(k2.dtype), _of_row(nv, row, r).to(v.dtype)
        mine = (key == start + r)[:, None]
        k1, k2 = tl.where(mine, f1[None, :], k1), tl.where(mine, f2[None, :], k2)
        v = tl.where(mine, fv[None, :], v)
        writer = tl.where(head % (HEADS // KV_HEADS) == 0, block, -1)
        stored = tl.where((start + r) // BLOCK_KEYS == writer, DIM, 0)
        spot = cache + (start + r).to(tl.int64) * (2 * KV_HEADS * DIM) + kv * DIM
        tl.store(spot + half, f1, mask=half < stored)
        tl.store(spot + HALF + half, f2, mask=half < stored)
        tl.store(spot + KV_HEADS * DIM + whole, fv, mask=whole < stored)
    return k1, k2, v


@triton.jit
def _fold(
    ceiling, total, mixed, k1, k2, v, q1, q2, key, row, start, ROWS: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """Running maximum, sum and mixture of every row, with a tile of keys more."""
    for r in tl.static_range(ROWS):
        first, second = _of_row(q1, row, r), _of_row(q2, row, r)
        scores = tl.sum(k1.to(tl.float32) * first[None, :] + k2.to(tl.float32) * second[None, :], 1)
        seen = key <= start + r
        if WINDOW > 0:
            seen = seen & ((key < SINKS) | (key > start + r - WINDOW))
        scores = tl.where(seen, scores, NEVER)
        mine = row == r
        known = tl.sum(tl.where(mine, ceiling, 0.0), 0)
        raised = tl.maximum(known, tl.max(scores, 0))
        weights = tl.where(seen, tl.exp(scores - raised), 0.0)
        fade = tl.exp(known - raised)
        ceiling = tl.where(mine, raised, ceiling)
        total = tl.where(mine, total * fade + tl.sum(weights, 0), total)
        part = tl.sum(v.to(tl.float32) * weights[:, None], 0)
        mixed = tl.where(mine[:, None], mixed * fade + part[None, :], mixed)
    return ceiling, total, mixed


@triton.jit
def draft_attention_kernel(
    qkv,  # [ROWS, (HEADS + 2 KV_HEADS) DIM] of the model's type, not yet rotated
    cache,  # [positions, 2, KV_HEADS, DIM]
    cosine,  # [positions, DIM / 2] float32
    sine,
    state,  # int32: position, cursor, … (see judge.py)
    partial_out,  # [HEADS, PROGRAMS, ROWS_PADDED, DIM] float32
    partial_max,  # [HEADS, PROGRAMS, ROWS_PADDED] float32
    partial_sum,
    arrivals,  # [HEADS] int32, zero between launches
    factors,  # [HEADS DIM] float32: 1 / factors of the output projection
    planes,  # int8 [ROWS, 2, HEADS DIM / 2], see draft_matmul.py
    scales,  # float32 [ROWS, HEADS DIM / 8]
    scale,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    ROWS: tl.constexpr,
    ROWS_PADDED: tl.constexpr,
    BLOCK_KEYS: tl.constexpr,
    PROGRAMS: tl.constexpr,  # programs of a head, a power of two; program i takes blocks i, i + PROGRAMS, …
    WINDOW: tl.constexpr,  # last positions a row sees beside the first few; 0 for all
    ROTATES: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    HALF: tl.constexpr = DIM // 2
    WIDTH: tl.constexpr = (HEADS + 2 * KV_HEADS) * DIM
    STRIDE: tl.constexpr = 2 * KV_HEADS * DIM
    GROUP: tl.constexpr = HEADS // KV_HEADS
    head, program = tl.program_id(0), tl.program_id(1)
    kv = head // GROUP
    start = tl.load(state) + tl.load(state + 1)
    blocks = (start + ROWS + BLOCK_KEYS - 1) // BLOCK_KEYS
    skipped = 0  # whole blocks between the first and the window
    if WINDOW > 0:
        skipped = tl.maximum(0, (start + 1 - WINDOW) // BLOCK_KEYS - 1)
    taken = blocks - skipped
    block = tl.where(program == 0, 0, program + skipped)
    key = block * BLOCK_KEYS + tl.arange(0, BLOCK_KEYS)
    k1, k2, v = _load_keys(cache, key, start, kv, STRIDE, KV_HEADS * DIM, DIM)
    row, half, whole = tl.arange(0, ROWS_PADDED), tl.arange(0, HALF), tl.arange(0, DIM)
    angle = (start + row)[:, None] * HALF + half[None, :]
    cos, sin = tl.load(cosine + angle), tl.load(sine + angle)
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    if program < taken:
        q1, q2 = _load_heads(qkv, head * DIM, row, WIDTH, HALF, ROWS)
        n1, n2 = _load_heads(qkv, (HEADS + kv) * DIM, row, WIDTH, HALF, ROWS)
        fresh = qkv + row[:, None] * WIDTH + (HEADS + KV_HEADS + kv) * DIM + whole[None, :]
        nv = tl.load(fresh, mask=(row < ROWS)[:, None] & (whole < DIM)[None, :], other=0.0).to(tl.float32)
        if ROTATES:
            r1, r2 = q1 * cos - q2 * sin, q2 * cos + q1 * sin
            m1, m2 = n1 * cos - n2 * sin, n2 * cos + n1 * sin
        else:
            r1, r2, m1, m2 = q1, q2, n1, n2
        r1, r2 = r1 * scale, r2 * scale
        ceiling = tl.full((ROWS_PADDED,), NEVER, tl.float32)
        total = tl.zeros((ROWS_PADDED,), tl.float32)
        mixed = tl.zeros((ROWS_PADDED, DIM), tl.float32)
        if (block + 1) * BLOCK_KEYS > start:
            k1, k2, v = _with_fresh(
                k1, k2, v, m1, m2, nv, block, key, row, cache, start, head, kv, HEADS, KV_HEADS, DIM, ROWS, BLOCK_KEYS
            )
        ceiling, total, mixed = _fold(ceiling, total, mixed, k1, k2, v, r1, r2, key, row, start, ROWS, WINDOW)
        i = program + PROGRAMS
        while i < taken:
            block = i + skipped
            key = block * BLOCK_KEYS + tl.arange(0, BLOCK_KEYS)
            k1, k2, v = _load_keys(cache, key, start, kv, STRIDE, KV_HEADS * DIM, DIM)
            if (block + 1) * BLOCK_KEYS > start:
                k1, k2, v = _with_fresh(
                    k1, k2, v, m1, m2, nv, block, key, row, cache, start, head, kv, HEADS, KV_HEADS, DIM, ROWS,
                    BLOCK_KEYS,
                )  # fmt: skip
            ceiling, total, mixed = _fold(ceiling, total, mixed, k1, k2, v, r1, r2, key, row, start, ROWS, WINDOW)
            i += PROGRAMS
        at = (head * PROGRAMS + program) * ROWS_PADDED + row
        tl.store(partial_out + at[:, None] * DIM + whole[None, :], mixed)
        tl.store(partial_max + at, ceiling)
        tl.store(partial_sum + at, total)
        tl.debug_barrier()
        there = tl.minimum(taken, PROGRAMS)
        if tl.atomic_add(arrivals + head, 1, sem="acq_rel") == there - 1:
            member = tl.arange(0, PROGRAMS)
            inside = member < there
            for r in tl.static_range(ROWS):
                cell = (head * PROGRAMS + member) * ROWS_PADDED + r
                maxima = tl.load(partial_max + cell, mask=inside, other=NEVER, cache_modifier=".cg")
                share = tl.where(inside, tl.exp(maxima - tl.max(maxima, 0)), 0.0)
                sums = tl.load(partial_sum + cell, mask=inside, other=0.0, cache_modifier=".cg")
                parts = partial_out + cell[:, None] * DIM + whole[None, :]
                out = tl.sum(tl.load(parts, mask=inside[:, None], other=0.0, cache_modifier=".cg") * share[:, None], 0)
                out = out / tl.sum(sums * share, 0) * tl.load(factors + head * DIM + whole)
                store_quantised(out, planes, scales, head * DIM, r, HEADS * DIM, DIM)
            tl.store(arrivals + head, 0)
