"""Vector primitives that compiled kernels call: addresses are integers, strides are bytes, sums have a fixed order."""

from __future__ import annotations

import platform
import sys
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from engine.kernels.compiled import vector_ir as v

LINE = 64  # bytes of a cache line


def _literals(*arguments: types.Type) -> list[int] | None:
    if all(isinstance(argument, types.IntegerLiteral) for argument in arguments):
        return [argument.literal_value for argument in arguments]
    return None


@intrinsic(prefer_literal=True)
def dot_tile(typing_context, kind, rows, columns, w, w_stride, x, x_stride, k, y, y_stride, scale):
    """y[m, r] = sum over k of w[r, k] * x[m, k], for `rows` rows r of w and `columns` rows m of x.

    kind, rows, columns are compile-time constants. w: stored as `kind`, x and y float32, k a multiple of eight.
    For int8 the sum is multiplied by the float32 at scale[r]. Every (r, m) runs the same chain of operations
    whatever the tile's shape: this is what makes a row's bits independent of the batch.
    """
    shape = _literals(kind, rows, columns)
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
    shape = _literals(kind, rows, columns)
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
    shape = _literals(kind, vectors)
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
    shape = _literals(kind, vectors)
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


@intrinsic
def exp_and_sum(typing_context, values, count, ceiling):
    """values[i] = exp(values[i] - ceiling) in place; returns their sum. count is a multiple of eight, above zero."""
    signature = types.float32(types.int64, types.int64, types.float32)

    def generate(_context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        values_, count_, ceiling_ = args
        base, top = v.pointer(b, values_), v.broadcast(b, ceiling_)
        loop = v.Loop(b, count_, [v.splat(0.0)])
        at = v.offset(b, base, loop.index, 4)
        lanes = v.exponential(b, b.fsub(v.load_vector(b, at, v.KIND_F32), top))
        v.store_vector(b, lanes, at, v.KIND_F32)
        loop.end([b.fadd(loop.values[0], lanes)])
        return v.fold(b, loop.results[0], b.fadd)

    return signature, generate


@intrinsic
def maximum_of(typing_context, values, count):
    """The largest of `count` float32 values; count is a multiple of eight, above zero."""
    signature = types.float32(types.int64, types.int64)

    def generate(_context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        values_, count_ = args
        loop = v.Loop(b, count_, [v.splat(float("-inf"))])
        lanes = v.load_vector(b, v.offset(b, v.pointer(b, values_), loop.index, 4), v.KIND_F32)
        loop.end([v.maximum(b, lanes, loop.values[0])])
        return v.fold(b, loop.results[0], lambda low, high: b.select(b.fcmp_ordered(">", low, high), low, high))

    return signature, generate


@intrinsic
def silu_times(typing_context, gate, up, out, count):
    """out[i] = gate[i] / (1 + exp(-gate[i])) * up[i], float32; count is a multiple of eight, above zero."""
    signature = types.void(*[types.int64] * 4)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        gate_, up_, out_, count_ = args
        loop = v.Loop(b, count_, [])
        g = v.load_vector(b, v.offset(b, v.pointer(b, gate_), loop.index, 4), v.KIND_F32)
        u = v.load_vector(b, v.offset(b, v.pointer(b, up_), loop.index, 4), v.KIND_F32)
        e = v.exponential(b, b.fsub(v.splat(-0.0), g))
        result = b.fmul(b.fdiv(g, b.fadd(v.splat(1.0), e)), u)
        v.store_vector(b, result, v.offset(b, v.pointer(b, out_), loop.index, 4), v.KIND_F32)
        loop.end([])
        return context.get_dummy_value()

    return signature, generate


@intrinsic(prefer_literal=True)
def convert(typing_context, source_kind, target_kind, source, target, count):
    """Copy `count` (a multiple of eight) values between storage kinds; the target is float32 or float16."""
    kinds = _literals(source_kind, target_kind)
    if kinds is None:
        return None
    source_kind_, target_kind_ = kinds
    signature = types.void(source_kind, target_kind, *[types.int64] * 3)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        _, _, source_, target_, count_ = args
        loop = v.Loop(b, count_, [])
        at = v.offset(b, v.pointer(b, source_), loop.index, v.ITEM_SIZE[source_kind_])
        lanes = v.load_vector(b, at, source_kind_)
        to = v.offset(b, v.pointer(b, target_), loop.index, v.ITEM_SIZE[target_kind_])
        v.store_vector(b, lanes, to, target_kind_)
        loop.end([])
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def square_sum(typing_context, values, count):
    """Sum of squares of float32 values; count is a multiple of eight, above zero."""
    signature = types.float32(types.int64, types.int64)

    def generate(_context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        values_, count_ = args
        loop = v.Loop(b, count_, [v.splat(0.0)])
        lanes = v.load_vector(b, v.offset(b, v.pointer(b, values_), loop.index, 4), v.KIND_F32)
        loop.end([v.fma(b, lanes, lanes, loop.values[0])])
        return v.fold(b, loop.results[0], b.fadd)

    return signature, generate


@intrinsic
def add_in_place(typing_context, values, others, count):
    """values[i] += others[i], float32; count is a multiple of eight, above zero."""
    signature = types.void(*[types.int64] * 3)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        values_, others_, count_ = args
        loop = v.Loop(b, count_, [])
        at = v.offset(b, v.pointer(b, values_), loop.index, 4)
        other = v.load_vector(b, v.offset(b, v.pointer(b, others_), loop.index, 4), v.KIND_F32)
        v.store_vector(b, b.fadd(v.load_vector(b, at, v.KIND_F32), other), at, v.KIND_F32)
        loop.end([])
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def scale_to(typing_context, values, factor, weights, out, count):
    """out[i] = values[i] * factor * weights[i], float32; count is a multiple of eight, above zero."""
    signature = types.void(types.int64, types.float32, *[types.int64] * 3)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        values_, factor_, weights_, out_, count_ = args
        spread = v.broadcast(b, factor_)
        loop = v.Loop(b, count_, [])
        lanes = v.load_vector(b, v.offset(b, v.pointer(b, values_), loop.index, 4), v.KIND_F32)
        weight = v.load_vector(b, v.offset(b, v.pointer(b, weights_), loop.index, 4), v.KIND_F32)
        result = b.fmul(b.fmul(lanes, spread), weight)
        v.store_vector(b, result, v.offset(b, v.pointer(b, out_), loop.index, 4), v.KIND_F32)
        loop.end([])
        return context.get_dummy_value()

    return signature, generate


@intrinsic(prefer_literal=True)
def rotate(typing_context, kind, head, cosine, sine, half, factor, out):
    """Rotary embedding of one head, halves paired: (a, b) -> (a cos - b sin, b cos + a sin), times `factor`.

    head, cosine, sine float32; out stored as `kind` (float32 or float16, compile-time); half a multiple of eight.
    """
    kinds = _literals(kind)
    if kinds is None:
        return None
    kind_ = kinds[0]
    signature = types.void(kind, *[types.int64] * 4, types.float32, types.int64)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        _, head_, cosine_, sine_, half_, factor_, out_ = args
        spread, size = v.broadcast(b, factor_), v.ITEM_SIZE[kind_]
        loop = v.Loop(b, half_, [])
        upper = b.add(loop.index, half_)
        base, to = v.pointer(b, head_), v.pointer(b, out_)
        first = v.load_vector(b, v.offset(b, base, loop.index, 4), v.KIND_F32)
        second = v.load_vector(b, v.offset(b, base, upper, 4), v.KIND_F32)
        cos = v.load_vector(b, v.offset(b, v.pointer(b, cosine_), loop.index, 4), v.KIND_F32)
        sin = v.load_vector(b, v.offset(b, v.pointer(b, sine_), loop.index, 4), v.KIND_F32)
        turned_first = b.fsub(b.fmul(first, cos), b.fmul(second, sin))
        turned_second = b.fadd(b.fmul(second, cos), b.fmul(first, sin))
        v.store_vector(b, b.fmul(turned_first, spread), v.offset(b, to, loop.index, size), kind_)
        v.store_vector(b, b.fmul(turned_second, spread), v.offset(b, to, upper, size), kind_)
        loop.end([])
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def field(typing_context, base, index):
    """The int64 at base[index]: tables are read through addresses, since arrays would count references in the loop."""

    def generate(_context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        return b.load(b.inttoptr(b.add(args[0], b.mul(args[1], v.const(8))), v.I64.as_pointer()))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def load_f32(typing_context, address):
    """The float32 at an address."""

    def generate(_context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        return b.load(b.inttoptr(args[0], v.F32.as_pointer()))

    return types.float32(types.int64), generate


@intrinsic
def store_f32(typing_context, address, value):
    """Write a float32 to an address."""

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        b.store(args[1], b.inttoptr(args[0], v.F32.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.float32), generate


@intrinsic
def atomic_add(typing_context, address, amount):
    """Add to the int64 at an address, sequentially consistent; returns the value before."""

    def generate(_context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        return b.atomic_rmw("add", b.inttoptr(args[0], v.I64.as_pointer()), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def atomic_load(typing_context, address):
    """Read the int64 at an address with acquire order."""

    def generate(_context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        return b.load_atomic(b.inttoptr(args[0], v.I64.as_pointer()), "acquire", 8)

    return types.int64(types.int64), generate


@intrinsic
def pause(typing_context):
    """Tell the processor that this is a spin loop (x86 only; elsewhere nothing)."""

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, _args: Any) -> Any:
        if platform.machine().lower() in {"x86_64", "amd64"}:
            nothing = ir.FunctionType(ir.VoidType(), [])
            b.call(cgutils.get_or_insert_function(b.module, nothing, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def give_way(typing_context):
    """Let another thread run on this core (not on Windows, where the symbol is not visible to compiled code)."""

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, _args: Any) -> Any:
        if sys.platform != "win32":
            signature = ir.FunctionType(v.I32, [])
            b.call(cgutils.get_or_insert_function(b.module, signature, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate
