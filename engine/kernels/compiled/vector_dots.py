"""Products of stored matrices and float32 rows: addresses are integers, strides are bytes, sums have a fixed order."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from engine.kernels.compiled import vector_ir as v
from engine.kernels.compiled.vector_literals import literals

LINE = 64  # bytes of a cache line


@intrinsic(prefer_literal=True)
def dot_tile(typing_context, kind, rows, columns, w, w_stride, x, x_stride, k, y, y_stride, scale):
    """y[m, r] = sum over k of w[r, k] * x[m, k], for `rows` rows r of w and `columns` rows m of x.

    kind, rows, columns are compile-time constants. w: stored as `kind`, x and y float32, k a multiple of eight.
    For int8 the sum is multiplied by the float32 at scale[r]. Every (r, m) runs the same chain of operations
    whatever the tile's shape: this is what makes a row's bits independent of the batch.
    """
    shape = literals(kind, rows, columns)
    if shape is None:
        return None
    kind_, rows_, columns_ = shape
    signature = types.void(kind, rows, columns, *[types.int64] * 8)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        _, _, _, w_, ws, x_, xs, k_, y_, ys, scale_ = args
        w_rows = [v.pointer(b, b.add(w_, b.mul(ws, v.const(r)))) for r in range(rows_)]
        following = b.add(w_, b.mul(k_, v.const(rows_ * v.ITEM_SIZE[kind_])))
        _dot(b, kind_, w_rows, x_, xs, k_, y_, ys, scale_, [v.const(r) for r in range(rows_)], columns_, following)
        return context.get_dummy_value()

    return signature, generate


@intrinsic(prefer_literal=True)
def dot_gathered(typing_context, kind, rows, columns, w, w_stride, x, x_stride, k, y, y_stride, scale, index):
    """As dot_tile, for the rows of w named by the int32 values at `index`; y[m, r] is written densely."""
    shape = literals(kind, rows, columns)
    if shape is None:
        return None
    kind_, rows_, columns_ = shape
    signature = types.void(kind, rows, columns, *[types.int64] * 9)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        _, _, _, w_, ws, x_, xs, k_, y_, ys, scale_, index_ = args
        chosen = []
        for r in range(rows_):
            at = b.inttoptr(b.add(index_, v.const(4 * r)), v.I32.as_pointer())
            chosen.append(b.sext(b.load(at), v.I64))
        w_rows = [v.pointer(b, b.add(w_, b.mul(ws, row))) for row in chosen]
        _dot(b, kind_, w_rows, x_, xs, k_, y_, ys, scale_, chosen, columns_)
        return context.get_dummy_value()

    return signature, generate


def _dot(b, kind, w_rows, x, x_stride, k, y, y_stride, scale, scale_rows, columns, following=None) -> None:
    """The shared body of the dot kernels: one register accumulator per (row of w, row of x).

    following: address behind this tile in a contiguous matrix. Rows are short, so the processor's own prefetcher
    restarts at each of them and reaches half of the memory's bandwidth; asking for the next tile line by line does not.
    """
    rows = len(w_rows)
    x_rows = [v.pointer(b, b.add(x, b.mul(x_stride, v.const(m)))) for m in range(columns)]
    loop = v.Loop(b, k, [v.splat(0.0)] * (rows * columns))
    size = v.ITEM_SIZE[kind]
    weights = [v.load_vector(b, v.offset(b, row, loop.index, size), kind) for row in w_rows]
    if following is not None:
        taken = rows * v.LANES * size  # bytes of the matrix an iteration consumes, and so the pace of the prefetch
        for line in range(0, taken, LINE):
            at = b.add(b.mul(loop.index, v.const(rows * size)), v.const(line))
            v.prefetch(b, v.pointer(b, b.add(following, at)))
    sums = [None] * (rows * columns)
    for m in range(columns):
        lanes = v.load_vector(b, v.offset(b, x_rows[m], loop.index, 4), v.KIND_F32)
        for r in range(rows):
            sums[r * columns + m] = v.fma(b, weights[r], lanes, loop.values[r * columns + m])
    loop.end(sums)
    for r in range(rows):
        if kind == v.KIND_I8:
            factor = b.load(b.bitcast(v.offset(b, v.pointer(b, scale), scale_rows[r], 4), v.F32.as_pointer()))
        for m in range(columns):
            total = v.fold(b, loop.results[r * columns + m], b.fadd)
            if kind == v.KIND_I8:
                total = b.fmul(total, factor)
            at = b.add(b.add(y, b.mul(y_stride, v.const(m))), v.const(4 * r))
            b.store(total, b.inttoptr(at, v.F32.as_pointer()))


@intrinsic(prefer_literal=True)
def weighted_rows(typing_context, kind, vectors, count, factors, rows, row_stride, out, scale):
    """out[d] = scale * sum over j of factors[j] * rows[j, d], j ascending, for 8 * `vectors` values of d.

    kind, vectors are compile-time constants; factors and out float32, rows stored as `kind`; count above zero.
    """
    shape = literals(kind, vectors)
    if shape is None:
        return None
    kind_, vectors_ = shape
    signature = types.void(kind, vectors, *[types.int64] * 5, types.float32)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        _, _, count_, factors_, rows_, stride, out_, scale_ = args
        base, factor_base = v.pointer(b, rows_), v.pointer(b, factors_)
        loop = v.Loop(b, count_, [v.splat(0.0)] * vectors_, step=1)
        at = b.bitcast(v.offset(b, factor_base, loop.index, 4), v.F32.as_pointer())
        factor = v.broadcast(b, b.load(at))
        row = b.gep(base, [b.mul(loop.index, stride)])
        step = v.LANES * v.ITEM_SIZE[kind_]
        sums = []
        for i in range(vectors_):
            lanes = v.load_vector(b, b.gep(row, [v.const(i * step)]), kind_)
            sums.append(v.fma(b, factor, lanes, loop.values[i]))
        loop.end(sums)
        spread = v.broadcast(b, scale_)
        for i, total in enumerate(loop.results):
            at = v.pointer(b, b.add(out_, v.const(4 * v.LANES * i)))
            v.store_vector(b, b.fmul(total, spread), at, v.KIND_F32)
        return context.get_dummy_value()

    return signature, generate


@intrinsic(prefer_literal=True)
def weighted_gather(typing_context, kind, vectors, count, factors, rows, row_stride, out, scale, index):
    """As weighted_rows over the rows named by int32 `index`; int8 rows carry a float32 at scale[row]."""
    shape = literals(kind, vectors)
    if shape is None:
        return None
    kind_, vectors_ = shape
    signature = types.void(kind, vectors, *[types.int64] * 7)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        _, _, count_, factors_, rows_, stride, out_, scale_, index_ = args
        base, factor_base = v.pointer(b, rows_), v.pointer(b, factors_)
        index_base, scale_base = v.pointer(b, index_), v.pointer(b, scale_)
        loop = v.Loop(b, count_, [v.splat(0.0)] * vectors_, step=1)
        factor = b.load(b.bitcast(v.offset(b, factor_base, loop.index, 4), v.F32.as_pointer()))
        chosen = b.sext(b.load(b.bitcast(v.offset(b, index_base, loop.index, 4), v.I32.as_pointer())), v.I64)
        if kind_ == v.KIND_I8:
            own = b.load(b.bitcast(v.offset(b, scale_base, chosen, 4), v.F32.as_pointer()))
            factor = b.fmul(factor, own)
        spread = v.broadcast(b, factor)
        row = b.gep(base, [b.mul(chosen, stride)])
        step = v.LANES * v.ITEM_SIZE[kind_]
        sums = []
        for i in range(vectors_):
            lanes = v.load_vector(b, b.gep(row, [v.const(i * step)]), kind_)
            sums.append(v.fma(b, spread, lanes, loop.values[i]))
        loop.end(sums)
        for i, total in enumerate(loop.results):
            v.store_vector(b, total, v.pointer(b, b.add(out_, v.const(4 * v.LANES * i))), v.KIND_F32)
        return context.get_dummy_value()

    return signature, generate
