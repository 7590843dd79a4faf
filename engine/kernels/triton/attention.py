"""Decode attention of up to sixteen rows: rotary embedding, KV write, and softmax over the cache in absolute splits.

Keys are split at absolute multiples of BLOCK_KEYS, each split summed by one program in one tile, and the splits are
combined in ascending order by whichever program of a head ends last. A split beyond a row's position adds exact zeros
to it, so neither the rows beside it nor the number of programs changes its bits (after Flash-Decoding, Dao et al.
2023). Queries that share a key head share its tile. Oracle: `engine.kernels.reference.operations` (rotate, attend).
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.hardware import launch_dependents, multiply, wait_for_predecessor
from engine.kernels.triton.judge import CHAIN, PLACES, range_of

ROWS = tl.constexpr(16)
CHUNK = tl.constexpr(8)  # splits combined at a time
NEVER = tl.constexpr(-1.0e30)  # a score that loses to all others; finite, so that empty splits make no NaN
_CHAIN, _PLACES = tl.constexpr(CHAIN), tl.constexpr(PLACES)


@triton.jit
def _over_split(
    q1,
    q2,
    k1,
    k2,
    v,
    key,
    last,
    scale,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
    BLOCK_KEYS: tl.constexpr,
    WINDOW: tl.constexpr,
):
    """Largest score, sum of weights and mixture of values over a split's keys up to `last`, for each row."""
    scores = multiply(q1, tl.trans(k1), tl.zeros((TILE, BLOCK_KEYS), tl.float32))
    scores = multiply(q2, tl.trans(k2), scores) * scale
    seen = key[None, :] <= last[:, None]
    if WINDOW > 0:
        seen = seen & (key[None, :] > last[:, None] - WINDOW)
    scores = tl.where(seen, scores, NEVER)
    largest = tl.max(scores, 1)
    weights = tl.where(seen, tl.exp(scores - largest[:, None]), 0.0)
    mixed = multiply(weights.to(v.dtype), v, tl.zeros((TILE, DIM), tl.float32))
    return largest, tl.sum(weights, 1), mixed


@triton.jit(do_not_specialize=["rows"])
def attention_kernel(
    qkv,  # [16, (HEADS + 2 KV_HEADS) DIM] of the model's type, not yet rotated
    cache,  # [positions, 2, KV_HEADS, DIM] of the first range (see judge.range_of)
    cosine,  # [positions, DIM / 2] float32
    sine,
    state,  # int32: position, cursor, … (see judge.py)
    partial_out,  # [row blocks, KV_HEADS, splits, TILE, DIM] float32
    partial_max,  # [row blocks, KV_HEADS, splits, TILE] float32
    partial_sum,
    arrivals,  # [row blocks, KV_HEADS] int32, zero between launches
    out,  # [16, HEADS DIM]
    rows,
    splits,  # splits that partial_out has room for
    scale,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,  # 16 * query heads of a key head, rounded up to a power of two
    BLOCK_KEYS: tl.constexpr,
    PROGRAMS: tl.constexpr,  # programs of a head; program i takes splits i, i + PROGRAMS, …
    ROTATES: tl.constexpr,
    AT_CURSOR: tl.constexpr,  # a draft step stands `cursor` positions ahead
    DEPENDENT: tl.constexpr,
    SIBLINGS: tl.constexpr = False,  # rows behind the chain stand at places of it: see siblings.py
    WINDOW: tl.constexpr = 0,  # positions a row sees, its own the last; 0 for all
):
    HALF: tl.constexpr = DIM // 2
    GROUP: tl.constexpr = HEADS // KV_HEADS
    WIDTH: tl.constexpr = (HEADS + 2 * KV_HEADS) * DIM
    STRIDE: tl.constexpr = 2 * KV_HEADS * DIM
    head = tl.program_id(0)
    first_split = tl.program_id(1)
    first_row = tl.program_id(2) * ROWS  # a prompt's rows come in blocks of sixteen, each a tile of its own
    block = tl.program_id(2) * KV_HEADS + head
    cache = range_of(cache, state)
    start = tl.load(state)
    if AT_CURSOR:
        start += tl.load(state + 1)
    reached = start + tl.minimum(rows, first_row + ROWS)
    used_splits = (reached + BLOCK_KEYS - 1) // BLOCK_KEYS
    tile = tl.arange(0, TILE)
    row, member = first_row + tl.minimum(tile // GROUP, ROWS - 1), tile % GROUP
    used = (row < rows) & (tile < ROWS * GROUP)
    half, whole = tl.arange(0, HALF), tl.arange(0, DIM)
    place = row
    if SIBLINGS:
        place = tl.load(state + _PLACES + row)
    angle = place + start
    cos = tl.load(cosine + angle[:, None] * HALF + half[None, :])
    sin = tl.load(sine + angle[:, None] * HALF + half[None, :])
    # Cache rows below `start` are of earlier steps: the first split's are on their way before the queries exist.
    split = first_split
    key = split * BLOCK_KEYS + tl.arange(0, BLOCK_KEYS)
    base = cache + key[:, None].to(tl.int64) * STRIDE + head * DIM
    old = (key < start)[:, None]
    k1 = tl.load(base + half[None, :], mask=old, other=0.0)
    k2 = tl.load(base + HALF + half[None, :], mask=old, other=0.0)
    v = tl.load(base + KV_HEADS * DIM + whole[None, :], mask=old, other=0.0)
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    query = qkv + row[:, None] * WIDTH + (head * GROUP + member)[:, None] * DIM + half[None, :]
    q1 = tl.load(query, mask=used[:, None], other=0.0)
    q2 = tl.load(query + HALF, mask=used[:, None], other=0.0)
    if ROTATES:
        f1, f2 = q1.to(tl.float32), q2.to(tl.float32)
        q1 = (f1 * cos - f2 * sin).to(qkv.dtype.element_ty)
        q2 = (f2 * cos + f1 * sin).to(qkv.dtype.element_ty)
    slot = block * splits
    while split < used_splits:
        if (split + 1) * BLOCK_KEYS > start:
            fresh = key - start
            new = ((fresh >= 0) & (fresh < rows))[:, None]
            source = qkv + fresh[:, None] * WIDTH + (HEADS + head) * DIM
            n1 = tl.load(source + half[None, :], mask=new, other=0.0)
            n2 = tl.load(source + HALF + half[None, :], mask=new, other=0.0)
            if ROTATES:
                turned = key
                if SIBLINGS:
                    turned = start + tl.load(state + _PLACES + fresh, mask=(fresh >= 0) & (fresh < rows), other=0)
                key_cos = tl.load(cosine + turned[:, None] * HALF + half[None, :], mask=new, other=0.0)
                key_sin = tl.load(sine + turned[:, None] * HALF + half[None, :], mask=new, other=0.0)
                g1, g2 = n1.to(tl.float32), n2.to(tl.float32)
                n1 = (g1 * key_cos - g2 * key_sin).to(qkv.dtype.element_ty)
                n2 = (g2 * key_cos + g1 * key_sin).to(qkv.dtype.element_ty)
            values = tl.load(source + KV_HEADS * DIM + whole[None, :], mask=new, other=0.0)
            tl.store(base + half[None, :], n1, mask=new)
            tl.store(base + HALF + half[None, :], n2, mask=new)
            tl.store(base + KV_HEADS * DIM + whole[None, :], values, mask=new)
            k1 = tl.where(new, n1, k1)
            k2 = tl.where(new, n2, k2)
            v = tl.where(new, values, v)
        largest, total, mixed = _over_split(q1, q2, k1, k2, v, key, start + place, scale, TILE, DIM, BLOCK_KEYS, WINDOW)
        if SIBLINGS:
            for sibling in range(tl.load(state + _CHAIN), rows):
                beside = start + tl.load(state + _PLACES + sibling)
                if beside // BLOCK_KEYS == split:
                    # The same split once more with the sibling's key and value in its place: its row is computed as if
                    # the token had stood in the chain.
                    other = qkv + sibling * WIDTH + (HEADS + head) * DIM
                    s1, s2 = tl.load(other + half), tl.load(other + HALF + half)
                    if ROTATES:
                        turn_cos, turn_sin = (
                            tl.load(cosine + beside * HALF + half),
                            tl.load(sine + beside * HALF + half),
                        )
                        h1, h2 = s1.to(tl.float32), s2.to(tl.float32)
                        s1 = (h1 * turn_cos - h2 * turn_sin).to(qkv.dtype.element_ty)
                        s2 = (h2 * turn_cos + h1 * turn_sin).to(qkv.dtype.element_ty)
                    in_place = (key == beside)[:, None]
                    j1, j2 = tl.where(in_place, s1[None, :], k1), tl.where(in_place, s2[None, :], k2)
                    vs = tl.where(in_place, tl.load(other + KV_HEADS * DIM + whole)[None, :], v)
                    largest_, total_, mixed_ = _over_split(
                        q1, q2, j1, j2, vs, key, start + place, scale, TILE, DIM, BLOCK_KEYS, WINDOW
                    )
                    own = row == sibling
                    largest, total = tl.where(own, largest_, largest), tl.where(own, total_, total)
                    mixed = tl.where(own[:, None], mixed_, mixed)
        at = (slot + split) * TILE + tile
        tl.store(partial_out + at[:, None].to(tl.int64) * DIM + whole[None, :], mixed)
        tl.store(partial_max + at, largest)
        tl.store(partial_sum + at, total)
        split += PROGRAMS
        key = split * BLOCK_KEYS + tl.arange(0, BLOCK_KEYS)
        base = cache + key[:, None].to(tl.int64) * STRIDE + head * DIM
        old = (key < start)[:, None]
        k1 = tl.load(base + half[None, :], mask=old, other=0.0)
        k2 = tl.load(base + HALF + half[None, :], mask=old, other=0.0)
        v = tl.load(base + KV_HEADS * DIM + whole[None, :], mask=old, other=0.0)
    tl.debug_barrier()
    if tl.atomic_add(arrivals + block, 1, sem="acq_rel") == PROGRAMS - 1:
        # Ascending over chunks of splits with a running maximum: a chunk that lies behind a row leaves it untouched.
        ceiling = tl.full((TILE,), NEVER, tl.float32)
        total = tl.zeros((TILE,), tl.float32)
        mixed = tl.zeros((TILE, DIM), tl.float32)
        for chunk in range(0, used_splits, CHUNK):
            member_split = chunk + tl.arange(0, CHUNK)
            every = (slot + member_split)[:, None] * TILE + tile[None, :]
            there = (member_split < used_splits)[:, None] & (tile < TILE)[None, :]
            maxima = tl.load(partial_max + every, mask=there, other=NEVER, cache_modifier=".cg")
            sums = tl.load(partial_sum + every, mask=there, other=0.0, cache_modifier=".cg")
            raised = tl.maximum(ceiling, tl.max(maxima, 0))
            fade = tl.exp(ceiling - raised)
            total = total * fade + tl.sum(sums * tl.exp(maxima - raised[None, :]), 0)
            mixed = mixed * fade[:, None]
            for i in tl.static_range(CHUNK):
                at = (slot + chunk + i) * TILE + tile
                inside = tile < tl.where(chunk + i < used_splits, TILE, 0)
                share = tl.exp(tl.load(partial_max + at, mask=inside, other=NEVER, cache_modifier=".cg") - raised)
                part = partial_out + at[:, None].to(tl.int64) * DIM + whole[None, :]
                mixed += share[:, None] * tl.load(part, mask=inside[:, None], other=0.0, cache_modifier=".cg")
            ceiling = raised
        target = out + row[:, None] * (HEADS * DIM) + (head * GROUP + member)[:, None] * DIM + whole[None, :]
        tl.store(target, (mixed / total[:, None]).to(out.dtype.element_ty), mask=used[:, None])
        tl.store(arrivals + block, 0)
