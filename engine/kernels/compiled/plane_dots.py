"""Products of an MLP whose neurons are chosen by planes: rests of gate and up, and rows of down, neuron by neuron.

Rests of a neuron, group after group: for each 64 columns 16 bytes of gate and 16 of up, where bit pair j of byte o is
column 16 j + o; behind a group the float16 scales of gate and up. A row of down, group after group: for each 64 columns
eight words of 32 bits, four bits j of word l being column 8 j + l; behind a group float16 scale and low.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from engine.kernels.compiled import vector_bytes as by
from engine.kernels.compiled import vector_ir as v
from engine.kernels.compiled.lowbit_layout import EDGE_BYTES
from engine.kernels.compiled.plane_layout import PAIR_BYTES, UNIT, UNIT_BYTES
from engine.kernels.compiled.vector_literals import literals

HALF = ir.HalfType()
VECTORS = UNIT // v.LANES
FETCHED_AHEAD = 16  # neurons of a list


@intrinsic
def plane_scores(typing_context, gate, up, reach, out, count, gate_error, up_error):
    """out[i] = (silu(gate[i])^2 + gate_error) * (up[i]^2 + up_error) * reach[i], float32; count a multiple of eight."""
    signature = types.void(*[types.int64] * 5, types.float32, types.float32)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        gate_, up_, reach_, out_, count_ = (v.pointer(b, a) if i < 4 else a for i, a in enumerate(args[:5]))
        gate_noise, up_noise = (v.broadcast(b, error) for error in args[5:])
        loop = v.Loop(b, count_, [])
        g, u, r = (v.load_vector(b, v.offset(b, at, loop.index, 4), v.KIND_F32) for at in (gate_, up_, reach_))
        opened = b.fdiv(g, b.fadd(v.splat(1.0), v.exponential(b, b.fsub(v.splat(-0.0), g))))
        score = b.fmul(v.fma(b, opened, opened, gate_noise), v.fma(b, u, u, up_noise))
        v.store_vector(b, b.fmul(score, r), v.offset(b, out_, loop.index, 4), v.KIND_F32)
        loop.end([])
        return context.get_dummy_value()

    return signature, generate


@intrinsic(prefer_literal=True)
def add_rests(typing_context, native, rests, fetched, wanted, units, groups, x, k, gate, up, gate_out, up_out):
    """float32 gate_out = gate + rests of gate . x, up_out alike. native is a compile-time constant.

    rests: address of the neuron's; fetched, wanted: of rests and of a row of down that are needed soon, as many bytes;
    x: an int8 row of k columns as `quantise_columns` leaves it. The middle of the rests, already in gate and up, is
    taken off.
    """
    shape = literals(native)
    if shape is None:
        return None
    native_ = bool(shape[0])
    signature = types.void(native, *[types.int64] * 11)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        rests_, fetched_, wanted_, units_, groups_, x_, k_, gate_, up_, gate_out_, up_out_ = args[1:]
        base, row, soon = v.pointer(b, rests_), v.pointer(b, x_), [v.pointer(b, a) for a in (fetched_, wanted_)]
        ends = b.gep(row, [k_])
        group_columns = b.mul(units_, v.const(UNIT))
        group_bytes = b.add(b.mul(units_, v.const(UNIT_BYTES)), v.const(PAIR_BYTES))
        outer = v.Loop(b, groups_, [v.splat(0.0)], step=1)
        begin = b.mul(outer.index, group_bytes)
        group = b.gep(base, [begin])
        inner = v.Loop(b, units_, [by.WORDS_ZERO], step=1)
        unit_at = b.mul(inner.index, v.const(UNIT_BYTES))
        for ahead in soon:
            v.prefetch(b, b.gep(ahead, [b.add(begin, unit_at)]))
        codes = by.load_bytes(b, b.gep(group, [unit_at]), 0)
        column = b.add(b.mul(outer.index, group_columns), b.mul(inner.index, v.const(UNIT)))
        sums = by.SHORTS_ZERO
        for j in range(4):
            pair = by.masked(b, by.shift_right(b, codes, 2 * j), 3)
            values = by.sixteen_bytes(b, b.gep(row, [column]), 16 * j)
            sums = b.add(sums, by.pair_products(b, pair, values, native_))
        inner.end([b.add(inner.values[0], by.pairs_added(b, sums, native_))])
        scales = _two_halves(b, b.gep(group, [b.mul(units_, v.const(UNIT_BYTES))]))
        spread = b.shuffle_vector(scales, scales, ir.Constant(v.IVEC, [0] * 4 + [1] * 4))
        edge = v.offset(b, ends, outer.index, EDGE_BYTES)
        x_scale, x_sum = (v.broadcast(b, _float_at(b, edge, 4 * i)) for i in range(2))
        middle = b.fmul(x_sum, v.splat(-1.5 / 4))  # a quarter of it in each of four lanes
        value = v.fma(b, b.sitofp(inner.results[0], v.VEC), x_scale, middle)
        outer.end([v.fma(b, value, spread, outer.values[0])])
        for lanes, source, target in (([0, 1, 2, 3], gate_, gate_out_), ([4, 5, 6, 7], up_, up_out_)):
            total = _float_at(b, v.pointer(b, source), 0)
            for lane in lanes:
                total = b.fadd(total, b.extract_element(outer.results[0], ir.Constant(v.I32, lane)))
            b.store(total, b.inttoptr(target, v.F32.as_pointer()))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def weighted_codes(typing_context, lists, counts, chosen, values, stride, rows, row_bytes, unit, ends, out):
    """out[c] = sum over listed neurons of values[i] * (scale * code[c] + low), for the 64 columns of one unit.

    chosen int32 and values float32 lie in `lists` lists `stride` entries apart, counts (int64, above zero) say how
    many each has. rows: all neurons' rows of down; unit, ends: bytes from a row to the unit's codes and to its group's
    scale and low.
    """
    signature = types.void(*[types.int64] * 10)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        lists_, counts_, chosen_, values_, stride_, rows_, row_bytes_, unit_, ends_, out_ = args
        base, list_base, value_base = v.pointer(b, rows_), v.pointer(b, chosen_), v.pointer(b, values_)
        count_base = v.pointer(b, counts_)
        zero = ir.Constant(v.F32, 0.0)
        outer = v.Loop(b, lists_, [v.splat(0.0)] * VECTORS + [zero], step=1)
        at = b.bitcast(v.offset(b, count_base, outer.index, 8), v.I64.as_pointer())
        first = b.mul(outer.index, stride_)
        inner = v.Loop(b, b.load(at), outer.values, step=1)
        place = b.add(first, inner.index)
        row = _row_of(b, list_base, place, base, row_bytes_)
        ahead = _row_of(b, list_base, b.add(place, v.const(FETCHED_AHEAD)), base, row_bytes_)
        v.prefetch(b, b.gep(ahead, [unit_]))
        value = _float_at(b, v.offset(b, value_base, place, 4), 0)
        pair = _two_halves(b, b.gep(row, [ends_]))
        scale, low = (b.extract_element(pair, ir.Constant(v.I32, i)) for i in range(2))
        factor = v.broadcast(b, b.fmul(value, scale))
        words = b.load(b.bitcast(b.gep(row, [unit_]), v.IVEC.as_pointer()), align=1)
        sums = []
        for i in range(VECTORS):
            moved = b.lshr(words, ir.Constant(v.IVEC, [4 * i] * v.LANES)) if i else words
            code = b.and_(moved, ir.Constant(v.IVEC, [15] * v.LANES)) if i < VECTORS - 1 else moved
            sums.append(v.fma(b, factor, b.sitofp(code, v.VEC), inner.values[i]))
        inner.end([*sums, b.fadd(inner.values[VECTORS], b.fmul(value, low))])
        outer.end(inner.results)
        lows = v.broadcast(b, outer.results[VECTORS])
        for i in range(VECTORS):
            at = v.pointer(b, b.add(out_, v.const(4 * v.LANES * i)))
            v.store_vector(b, b.fadd(outer.results[i], lows), at, v.KIND_F32)
        return context.get_dummy_value()

    return signature, generate


def _row_of(b: ir.IRBuilder, chosen: Any, place: Any, rows: Any, row_bytes: Any) -> Any:
    neuron = b.load(b.bitcast(v.offset(b, chosen, place, 4), v.I32.as_pointer()))
    return b.gep(rows, [b.mul(b.sext(neuron, v.I64), row_bytes)])


def _float_at(b: ir.IRBuilder, base: Any, offset: int) -> Any:
    return b.load(b.bitcast(b.gep(base, [v.const(offset)]), v.F32.as_pointer()), align=4)


def _two_halves(b: ir.IRBuilder, at: Any) -> Any:
    """Two float16 as float32 lanes."""
    pair = ir.VectorType(HALF, 2)
    return b.fpext(b.load(b.bitcast(at, pair.as_pointer()), align=2), ir.VectorType(v.F32, 2))
