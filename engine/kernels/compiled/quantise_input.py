"""Activations as int8 in groups, for the integer products of low-bit weights."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import types
from numba.extending import intrinsic

from engine.kernels.compiled import table as t
from engine.kernels.compiled import vector_ir as v
from engine.kernels.compiled.lowbit_layout import EDGE_BYTES
from engine.kernels.compiled.vector_words import field

SMALLEST = 1e-30  # a group with nothing larger counts as zero: its scale would leave the normal numbers


@intrinsic
def quantise_group(typing_context, x, factors, count, codes, ends):
    """codes[i] = round(x[i] * factors[i] / scale), int8, scale = max |x * factors| / 127; float32 ends[0] = scale and
    ends[1] = scale * sum of the codes. Both are NaN where an x is NaN or infinite; all is zero for a group of zeros.

    x, factors float32; count a multiple of eight, above zero.
    """
    signature = types.void(*[types.int64] * 5)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        x_, factors_, count_, codes_, ends_ = args

        def scaled(index: Any) -> Any:
            value = v.load_vector(b, v.offset(b, v.pointer(b, x_), index, 4), v.KIND_F32)
            return b.fmul(value, v.load_vector(b, v.offset(b, v.pointer(b, factors_), index, 4), v.KIND_F32))

        first = v.Loop(b, count_, [v.splat(0.0), v.splat(0.0)])
        value = scaled(first.index)
        largest = v.maximum(b, v.magnitude(b, value), first.values[0])
        first.end([largest, b.fadd(first.values[1], b.fsub(value, value))])  # zero, or NaN for a value that is none
        top = v.fold(b, first.results[0], lambda low, high: b.select(b.fcmp_ordered(">", low, high), low, high))
        fault = v.fold(b, first.results[1], b.fadd)
        nothing = b.fcmp_unordered("<", top, ir.Constant(v.F32, SMALLEST))
        most, zero = ir.Constant(v.F32, 127.0), ir.Constant(v.F32, 0.0)
        inverse = v.broadcast(b, b.select(nothing, zero, b.fdiv(most, top)))
        scale = b.fadd(b.select(nothing, zero, b.fdiv(top, most)), fault)
        second = v.Loop(b, count_, [ir.Constant(v.IVEC, [0] * v.LANES)])
        whole = v.rounded(b, b.fmul(scaled(second.index), inverse))
        at = v.offset(b, v.pointer(b, codes_), second.index, 1)
        bytes_ = ir.VectorType(v.I8, v.LANES)
        b.store(b.trunc(whole, bytes_), b.bitcast(at, bytes_.as_pointer()), align=1)
        second.end([b.add(second.values[0], whole)])
        total = b.sitofp(v.fold(b, second.results[0], b.add), v.F32)
        at = v.pointer(b, ends_)
        b.store(scale, b.bitcast(at, v.F32.as_pointer()), align=4)
        after = b.bitcast(b.gep(at, [v.const(4)]), v.F32.as_pointer())
        b.store(b.fmul(scale, total), after, align=4)
        return context.get_dummy_value()

    return signature, generate


@njit(nogil=True)
def quantise_columns(step, x, row, width, first, last):
    """Quantise columns [first, last) of a row of `width` float32 at x, where the instruction wants that at all.

    Both are multiples of GROUP. Row `row` of QUANTISED gets int8 [width], then (scale, sum) of every group.
    """
    if field(step, t.QUANTISED) == 0:
        return
    group, target = field(step, t.GROUP), field(step, t.QUANTISED) + row * field(step, t.QUANTISED_STRIDE)
    for column in range(first, last, group):
        ends = target + width + column // group * EDGE_BYTES
        quantise_group(x + column * 4, field(step, t.FACTORS) + column * 4, group, target + column, ends)


@njit(nogil=True)
def quantise(step, row):
    """Block `row`: the whole row of SOURCE, K columns, as int8."""
    width = field(step, t.K)
    quantise_columns(step, field(step, t.SOURCE) + row * field(step, t.SOURCE_STRIDE), row, width, 0, width)
