"""Products of packed low-bit weights and int8 activations: integer sums inside a group, float32 across groups.

Weights lie in tiles of eight rows, one stretch a tile, group after group: the codes, then eight float16 scales, then
eight float16 lows. Four columns of eight rows are the 32 lanes of one instruction, so that each int32 lane of the
result belongs to one row and nothing is ever summed across lanes. With o = 4 * row + column of the four:
  4 bits: byte o of 32 holds columns 0-3 (low half) and 4-7 (high half) of every eight columns.
  8 bits: byte o of 32 holds columns 0-3 of every four.
  3 bits: per 32 columns two times 32 bytes of the codes' lower two bits (columns 0-15: bit pair j of byte o is column
    4 j + o % 4, then 16-31), then 32 bytes of their upper bits (bit j of byte o is column 4 j + o % 4).
  2 bits: bit pair j of byte o of 32 is column 4 j + o % 4 of every 16 columns.
An input row is K int8 values, then for each group two float32: the scale, and the scale times the sum of the values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from engine.kernels.compiled import vector_bytes as by
from engine.kernels.compiled import vector_ir as v
from engine.kernels.compiled.lowbit_layout import EDGE_BYTES, ENDS_BYTES
from engine.kernels.compiled.vector_literals import literals

LINE = 64  # bytes of a cache line
AHEAD = 2048  # bytes the prefetch runs ahead: the processor's own stops at page ends and starts late
FULLEST = 8  # products of 4-bit codes that int16 lanes hold: 8 * 2 * 15 * 127 < 2^15


@intrinsic(prefer_literal=True)
def lowbit_tile(typing_context, bits, unit, rows, native, w, units, groups, x, x_stride, k, y, y_stride, lanes):
    """y[m, r] = sum over groups of scale * x scale * (codes . x) + low * x sum, for a tile and `rows` input rows.

    bits, unit, rows and native are compile-time constants: a group is `units` times `unit` columns. w: the tile; x, y:
    addresses of input and float32 output rows; lanes: rows of the tile that exist, 1 to 8; k: columns.
    """
    shape = literals(bits, unit, rows, native)
    if shape is None:
        return None
    bits_, unit_, rows_, native_ = shape
    signature = types.void(bits, unit, rows, native, *[types.int64] * 9)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        w_, units_, groups_, x_, xs, k_, y_, ys, lanes_ = args[4:]
        x_rows = [v.pointer(b, b.add(x_, b.mul(xs, v.const(m)))) for m in range(rows_)]
        ends = [b.gep(row, [k_]) for row in x_rows]
        group_columns = b.mul(units_, v.const(unit_))
        group_bytes = b.add(b.mul(group_columns, v.const(bits_)), v.const(ENDS_BYTES))
        base = v.pointer(b, w_)
        outer = v.Loop(b, groups_, [v.splat(0.0)] * rows_, step=1)
        tile = b.gep(base, [b.mul(outer.index, group_bytes)])
        inner = v.Loop(b, units_, [by.WORDS_ZERO] * rows_, step=1)
        codes = b.gep(tile, [b.mul(inner.index, v.const(unit_ * bits_))])
        first = b.add(b.mul(outer.index, group_columns), b.mul(inner.index, v.const(unit_)))
        columns = [b.gep(row, [first]) for row in x_rows]
        for line in range(0, unit_ * bits_, LINE):
            v.prefetch(b, b.gep(codes, [v.const(AHEAD + line)]))
        sums = _unit_sums(b, bits_, unit_, codes, columns, bool(native_))
        inner.end([b.add(old, new) for old, new in zip(inner.values, sums, strict=True)])
        at = b.gep(tile, [b.sub(group_bytes, v.const(ENDS_BYTES))])
        scale = v.load_vector(b, at, v.KIND_F16)
        low = v.load_vector(b, b.gep(at, [v.const(ENDS_BYTES // 2)]), v.KIND_F16)
        totals = []
        for m in range(rows_):
            of_group = v.offset(b, ends[m], outer.index, EDGE_BYTES)
            x_scale, x_sum = (_spread_at(b, of_group, 4 * i) for i in range(2))
            total = v.fma(b, b.sitofp(inner.results[m], v.VEC), b.fmul(scale, x_scale), outer.values[m])
            totals.append(v.fma(b, low, x_sum, total))
        outer.end(totals)
        for m in range(rows_):
            _store_lanes(b, outer.results[m], b.add(y_, b.mul(ys, v.const(m))), lanes_)
        return context.get_dummy_value()

    return signature, generate


def _unit_sums(b: ir.IRBuilder, bits: int, unit: int, codes: Any, columns: list[Any], native: bool) -> list[Any]:
    """int32 [row of x][row of the tile]: sums of code * x over one unit of columns."""
    totals = [by.WORDS_ZERO for _ in columns]
    powers = 2 if bits == 8 else 1  # int16 sums kept beside each other
    pending: list[list[Any]] = [[by.SHORTS_ZERO] * powers for _ in columns]
    unpack = {4: _halves, 8: _whole_bytes, 3: _planes, 2: _pairs}[bits]
    for count, (weight, column, power) in enumerate(unpack(b, codes, unit), start=1):
        for row, sums in zip(columns, pending, strict=True):
            product = by.pair_products(b, weight, by.four_bytes(b, row, column), native)
            sums[power] = b.add(sums[power], product)
        if count % (FULLEST * powers) == 0 or (column + 4 == unit and power == powers - 1):
            for m, sums in enumerate(pending):
                words = [by.pairs_added(b, shorts, native) for shorts in sums]
                words[1:] = [b.shl(upper, ir.Constant(v.IVEC, [4] * v.LANES)) for upper in words[1:]]
                for part in words:
                    totals[m] = b.add(totals[m], part)
            pending = [[by.SHORTS_ZERO] * powers for _ in columns]
    return totals


# Each yields (codes of four columns, the first column, which half of an 8-bit code they are), one after the other, so
# that few of them are in registers at a time.


def _halves(b: ir.IRBuilder, codes: Any, unit: int) -> Iterator[tuple[Any, int, int]]:
    for column in range(0, unit, 8):
        both = by.load_bytes(b, codes, 4 * column)
        yield by.masked(b, both, 15), column, 0
        yield by.masked(b, by.shift_right(b, both, 4), 15), column + 4, 0


def _whole_bytes(b: ir.IRBuilder, codes: Any, unit: int) -> Iterator[tuple[Any, int, int]]:
    for column in range(0, unit, 4):  # in two halves, because products of whole bytes would overflow
        whole = by.load_bytes(b, codes, 8 * column)
        yield by.masked(b, whole, 15), column, 0
        yield by.masked(b, by.shift_right(b, whole, 4), 15), column, 1


def _planes(b: ir.IRBuilder, codes: Any, unit: int) -> Iterator[tuple[Any, int, int]]:
    for first in range(0, unit, 32):
        upper = by.load_bytes(b, codes, 3 * first + 64)
        for j in range(8):
            lower = by.load_bytes(b, codes, 3 * first + 32 * (j // 4))
            two = by.masked(b, by.shift_right(b, lower, 2 * (j % 4)), 3)
            moved = by.shift_left(b, upper, 2 - j) if j < 2 else by.shift_right(b, upper, j - 2)
            yield b.or_(two, by.masked(b, moved, 4)), first + 4 * j, 0


def _pairs(b: ir.IRBuilder, codes: Any, unit: int) -> Iterator[tuple[Any, int, int]]:
    for first in range(0, unit, 16):
        four = by.load_bytes(b, codes, 2 * first)
        for j in range(4):
            yield by.masked(b, by.shift_right(b, four, 2 * j), 3), first + 4 * j, 0


def _spread_at(b: ir.IRBuilder, base: Any, offset: int) -> Any:
    at = b.bitcast(b.gep(base, [v.const(offset)]), v.F32.as_pointer())
    return v.broadcast(b, b.load(at, align=4))


def _store_lanes(b: ir.IRBuilder, values: Any, address: Any, lanes: Any) -> None:
    """Write the first `lanes` of eight float32 values."""
    mask_type = ir.VectorType(ir.IntType(1), v.LANES)
    kind = ir.FunctionType(ir.VoidType(), [v.VEC, v.VEC.as_pointer(), v.I32, mask_type])
    store = cgutils.get_or_insert_function(b.module, kind, "llvm.masked.store.v8f32.p0")
    count = b.trunc(lanes, v.I32)
    lane0 = b.insert_element(ir.Constant(v.IVEC, ir.Undefined), count, ir.Constant(v.I32, 0))
    spread = b.shuffle_vector(lane0, lane0, ir.Constant(v.IVEC, [0] * 8))
    mask = b.icmp_signed("<", ir.Constant(v.IVEC, list(range(8))), spread)
    b.call(store, [values, b.inttoptr(address, v.VEC.as_pointer()), ir.Constant(v.I32, 4), mask])
