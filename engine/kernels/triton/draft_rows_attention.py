"""Attention of several draft rows, or of several query heads that share a key head: a tile on the tensor cores.

Otherwise as draft_attention.py. Oracle: `engine.kernels.reference.operations` (rotate, attend).
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.draft_attention import NEVER, load_keys
from engine.kernels.triton.draft_matmul import SMALLEST
from engine.kernels.triton.hardware import launch_dependents, multiply, wait_for_predecessor
from engine.kernels.triton.judge import range_of


@triton.jit
def _store_quantised_tile(values, planes, scales, first, row, used, width, TILE: tl.constexpr, DIM: tl.constexpr):
    """As store_quantised for a tile [TILE, DIM]: row and first column (a multiple of eight) of each of its rows."""
    eights = tl.reshape(values, (TILE, DIM // 8, 8))
    scale = tl.max(tl.abs(eights), 2) / 127.0 + SMALLEST
    rounded = tl.floor(eights / scale[:, :, None] + 0.5).to(tl.int8)
    word, byte = first[:, None] // 8 + tl.arange(0, DIM // 8)[None, :], tl.arange(0, 8)
    place = (byte // 4) * (width // 2) + byte % 4
    at = row[:, None, None] * width + word[:, :, None] * 4 + place[None, None, :]
    tl.store(planes + at, rounded, mask=used[:, None, None])
    tl.store(scales + row[:, None] * (width // 8) + word, scale, mask=used[:, None])


@triton.jit
def draft_rows_attention_kernel(
    qkv,
    cache,
    cosine,
    sine,
    state,
    partial_out,  # [KV_HEADS, PROGRAMS, TILE, DIM] float32
    partial_max,  # [KV_HEADS, PROGRAMS, TILE] float32
    partial_sum,
    arrivals,  # [KV_HEADS] int32, zero between launches
    factors,
    planes,
    scales,
    scale,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,  # ROWS * query heads of a key head, rounded up to a power of two, at least sixteen
    BLOCK_KEYS: tl.constexpr,
    PROGRAMS: tl.constexpr,
    WINDOW: tl.constexpr,
    SINKS: tl.constexpr,
    ROTATES: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """See draft_attention_kernel; grid (KV_HEADS, PROGRAMS)."""
    HALF: tl.constexpr = DIM // 2
    GROUP: tl.constexpr = HEADS // KV_HEADS
    WIDTH: tl.constexpr = (HEADS + 2 * KV_HEADS) * DIM
    STRIDE: tl.constexpr = 2 * KV_HEADS * DIM
    head, program = tl.program_id(0), tl.program_id(1)
    cache = range_of(cache, state)
    start = tl.load(state) + tl.load(state + 1)
    blocks = (start + ROWS + BLOCK_KEYS - 1) // BLOCK_KEYS
    skipped = 0
    if WINDOW > 0:
        skipped = tl.maximum(0, (start + 1 - WINDOW) // BLOCK_KEYS - 1)
    taken = blocks - skipped
    block = tl.where(program == 0, 0, program + skipped)
    key = block * BLOCK_KEYS + tl.arange(0, BLOCK_KEYS)
    k1, k2, v = load_keys(cache, key, start, head, STRIDE, KV_HEADS * DIM, DIM)
    tile, half, whole = tl.arange(0, TILE), tl.arange(0, HALF), tl.arange(0, DIM)
    row, member = tl.minimum(tile // GROUP, ROWS - 1), tile % GROUP
    used = tile < ROWS * GROUP
    angle = (start + row)[:, None] * HALF + half[None, :]
    cos, sin = tl.load(cosine + angle), tl.load(sine + angle)
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    if program < taken:
        query = qkv + row[:, None] * WIDTH + (head * GROUP + member)[:, None] * DIM + half[None, :]
        q1 = tl.load(query, mask=used[:, None], other=0.0)
        q2 = tl.load(query + HALF, mask=used[:, None], other=0.0)
        if ROTATES:
            f1, f2 = q1.to(tl.float32), q2.to(tl.float32)
            q1 = (f1 * cos - f2 * sin).to(qkv.dtype.element_ty)
            q2 = (f2 * cos + f1 * sin).to(qkv.dtype.element_ty)
        ceiling = tl.full((TILE,), NEVER, tl.float32)
        total = tl.zeros((TILE,), tl.float32)
        mixed = tl.zeros((TILE, DIM), tl.float32)
        i = program
        while i < taken:
            if (block + 1) * BLOCK_KEYS > start:
                fresh = key - start
                new = ((fresh >= 0) & (fresh < ROWS))[:, None]
                source = qkv + fresh[:, None] * WIDTH + (HEADS + head) * DIM
                n1 = tl.load(source + half[None, :], mask=new, other=0.0)
                n2 = tl.load(source + HALF + half[None, :], mask=new, other=0.0)
                if ROTATES:
                    key_cos = tl.load(cosine + key[:, None] * HALF + half[None, :], mask=new, other=0.0)
                    key_sin = tl.load(sine + key[:, None] * HALF + half[None, :], mask=new, other=0.0)
                    g1, g2 = n1.to(tl.float32), n2.to(tl.float32)
                    n1 = (g1 * key_cos - g2 * key_sin).to(qkv.dtype.element_ty)
                    n2 = (g2 * key_cos + g1 * key_sin).to(qkv.dtype.element_ty)
                values = tl.load(source + KV_HEADS * DIM + whole[None, :], mask=new, other=0.0)
                base = cache + key[:, None].to(tl.int64) * STRIDE + head * DIM
                tl.store(base + half[None, :], n1, mask=new)
                tl.store(base + HALF + half[None, :], n2, mask=new)
                tl.store(base + KV_HEADS * DIM + whole[None, :], values, mask=new)
                k1 = tl.where(new, n1, k1)
                k2 = tl.where(new, n2, k2)
                v = tl.where(new, values, v)
            scores = multiply(q1, tl.trans(k1), tl.zeros((TILE, BLOCK_KEYS), tl.float32))
            scores = multiply(q2, tl.trans(k2), scores) * scale
            seen = key[None, :] <= (start + row)[:, None]
            if WINDOW > 0:
                seen = seen & ((key < SINKS)[None, :] | (key[None, :] > (start + row)[:, None] - WINDOW))
            scores = tl.where(seen, scores, NEVER)
            raised = tl.maximum(ceiling, tl.max(scores, 1))
            weights = tl.where(seen, tl.exp(scores - raised[:, None]), 0.0)
            fade = tl.exp(ceiling - raised)
            total = total * fade + tl.sum(weights, 1)
            mixed = multiply(weights.to(v.dtype), v, mixed * fade[:, None])
            ceiling = raised
            i += PROGRAMS
            block = i + skipped
            key = block * BLOCK_KEYS + tl.arange(0, BLOCK_KEYS)
            k1, k2, v = load_keys(cache, key, start, head, STRIDE, KV_HEADS * DIM, DIM)
        at = (head * PROGRAMS + program) * TILE + tile
        tl.store(partial_out + at[:, None] * DIM + whole[None, :], mixed, mask=used[:, None])
        tl.store(partial_max + at, ceiling)
        tl.store(partial_sum + at, total)
        tl.debug_barrier()
        there = tl.minimum(taken, PROGRAMS)
        if tl.atomic_add(arrivals + head, 1, sem="acq_rel") == there - 1:
            members = tl.arange(0, PROGRAMS)
            every = (head * PROGRAMS + members)[:, None] * TILE + tile[None, :]
            inside = (members < there)[:, None] & used[None, :]
            maxima = tl.load(partial_max + every, mask=inside, other=NEVER, cache_modifier=".cg")
            sums = tl.load(partial_sum + every, mask=inside, other=0.0, cache_modifier=".cg")
            highest = tl.max(maxima, 0)
            sums = tl.sum(sums * tl.exp(maxima - highest[None, :]), 0)
            out = tl.zeros((TILE, DIM), tl.float32)
            for j in range(there):
                cell = (head * PROGRAMS + j) * TILE + tile
                share = tl.exp(tl.load(partial_max + cell, mask=used, other=NEVER, cache_modifier=".cg") - highest)
                part = partial_out + cell[:, None] * DIM + whole[None, :]
                out += share[:, None] * tl.load(part, mask=used[:, None], other=0.0, cache_modifier=".cg")
            first = (head * GROUP + member) * DIM
            out = out / sums[:, None] * tl.load(factors + first[:, None] + whole[None, :])
            out = tl.where(used[:, None], out, 0.0)
            _store_quantised_tile(out, planes, scales, first, row, used, HEADS * DIM, TILE, DIM)
            tl.store(arrivals + head, 0)
