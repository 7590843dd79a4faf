"""Products added to a tile in place, as in a matrix product whose right side is read row by row."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from engine.kernels.compiled import vector_ir as v
from engine.kernels.compiled.vector_literals import literals


@intrinsic(prefer_literal=True)
def add_outer(typing_context, rows, vectors, y, y_stride, a, a_stride, b, b_stride, count):
    """y[r, c] += sum over j of a[r, j] * b[j, c], for `rows` rows r, 8 * `vectors` columns c and `count` j.

    rows, vectors are compile-time constants. float32 at addresses; strides in bytes; count above zero.
    """
    shape = literals(rows, vectors)
    if shape is None:
        return None
    rows_, vectors_ = shape
    signature = types.void(rows, vectors, *[types.int64] * 7)

    def generate(context: Any, builder: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        _, _, y_, ys, a_, as_, b_, bs, count_ = args

        def row(base: ir.Value, stride: ir.Value, number: int) -> ir.Value:
            return v.pointer(builder, builder.add(base, builder.mul(stride, v.const(number))))

        def place(base: ir.Value, vector: int) -> ir.Value:
            return v.offset(builder, base, v.const(vector * v.LANES), 4)

        targets = [place(row(y_, ys, r), c) for r in range(rows_) for c in range(vectors_)]
        left, right = [row(a_, as_, r) for r in range(rows_)], v.pointer(builder, b_)
        loop = v.Loop(builder, count_, [v.load_vector(builder, at, v.KIND_F32) for at in targets], step=1)
        line = builder.gep(right, [builder.mul(loop.index, bs)])
        values = [v.load_vector(builder, place(line, c), v.KIND_F32) for c in range(vectors_)]
        sums = []
        for r in range(rows_):
            at = builder.bitcast(v.offset(builder, left[r], loop.index, 4), v.F32.as_pointer())
            factor = v.broadcast(builder, builder.load(at))
            sums += [v.fma(builder, factor, values[c], loop.values[r * vectors_ + c]) for c in range(vectors_)]
        loop.end(sums)
        for at, total in zip(targets, loop.results, strict=True):
            v.store_vector(builder, total, at, v.KIND_F32)
        return context.get_dummy_value()

    return signature, generate
