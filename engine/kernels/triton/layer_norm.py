"""Layer norm of the residual stream, a program a row. Oracle: `engine.kernels.reference.operations.layer_norm`."""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.hardware import launch_dependents, wait_for_predecessor


@triton.jit
def layer_norm_kernel(
    stream,  # [16, WIDTH] float32
    weight,  # [WIDTH] float32
    bias,  # [WIDTH] float32
    y,  # [16, WIDTH] of the type of the matrix that follows
    epsilon,
    WIDTH: tl.constexpr,
    WIDTH_PADDED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """y = (stream - mean) / sqrt(variance + epsilon) * weight + bias, in float32; one program for each row in use."""
    column = tl.arange(0, WIDTH_PADDED)
    inside = column < WIDTH
    scale = tl.load(weight + column, mask=inside, other=0.0)
    shift = tl.load(bias + column, mask=inside, other=0.0)
    if DEPENDENT:
        launch_dependents()
        wait_for_predecessor()
    at = tl.program_id(0) * WIDTH + column
    values = tl.load(stream + at, mask=inside, other=0.0)
    centred = tl.where(inside, values - tl.sum(values, 0) / WIDTH, 0.0)
    deviation = tl.sqrt(tl.sum(centred * centred, 0) / WIDTH + epsilon)
    tl.store(y + at, (centred / deviation * scale + shift).to(y.dtype.element_ty), mask=inside)
