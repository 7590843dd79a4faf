"""RMS norm of each query and key head before it is turned. Oracle: `engine.kernels.reference.operations.head_norm`."""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.hardware import launch_dependents, wait_for_predecessor


@triton.jit
def head_norm_kernel(
    qkv,  # [rows, (HEADS + 2 KV_HEADS) DIM] of the model's type, changed in place
    query_norm,  # [DIM] float32
    key_norm,  # [DIM] float32
    epsilon,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    DIM: tl.constexpr,  # a power of two
    DEPENDENT: tl.constexpr,
):
    """A head of a row each program; grid (rows, HEADS + KV_HEADS).

    What follows begins only once the heads are here: it reads the cache before it waits for this kernel.
    """
    row, head = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, DIM)
    weight = tl.load(tl.where(head < HEADS, query_norm, key_norm) + column)
    if DEPENDENT:
        wait_for_predecessor()
        launch_dependents()
    at = qkv + row * ((HEADS + 2 * KV_HEADS) * DIM) + head * DIM + column
    values = tl.load(at).to(tl.float32)
    inverse = tl.rsqrt(tl.sum(values * values, 0) / DIM + epsilon)
    tl.store(at, (values * inverse * weight).to(qkv.dtype.element_ty))
