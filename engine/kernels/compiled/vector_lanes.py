"""Element-wise and reducing loops over float32 rows, eight lanes at a time; every sum has a fixed order."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from engine.kernels.compiled import vector_ir as v
from engine.kernels.compiled.vector_literals import literals


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


@intrinsic
def relu_to(typing_context, values, out, count):
    """out[i] = values[i] where it is above zero or no number, else 0; count is a multiple of eight, above zero."""
    signature = types.void(*[types.int64] * 3)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        values_, out_, count_ = args
        loop = v.Loop(b, count_, [])
        lanes = v.load_vector(b, v.offset(b, v.pointer(b, values_), loop.index, 4), v.KIND_F32)
        kept = b.select(b.fcmp_unordered(">", lanes, v.splat(0.0)), lanes, v.splat(0.0))
        v.store_vector(b, kept, v.offset(b, v.pointer(b, out_), loop.index, 4), v.KIND_F32)
        loop.end([])
        return context.get_dummy_value()

    return signature, generate


@intrinsic(prefer_literal=True)
def add_stored(typing_context, kind, values, others, count):
    """values[i] += others[i], float32 and stored as `kind` (compile-time); count is a multiple of eight, above zero."""
    kinds = literals(kind)
    if kinds is None:
        return None
    kind_ = kinds[0]
    signature = types.void(kind, *[types.int64] * 3)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        _, values_, others_, count_ = args
        loop = v.Loop(b, count_, [])
        at = v.offset(b, v.pointer(b, values_), loop.index, 4)
        other = v.load_vector(b, v.offset(b, v.pointer(b, others_), loop.index, v.ITEM_SIZE[kind_]), kind_)
        v.store_vector(b, b.fadd(v.load_vector(b, at, v.KIND_F32), other), at, v.KIND_F32)
        loop.end([])
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def value_sum(typing_context, values, count):
    """Sum of float32 values; count is a multiple of eight, above zero."""
    signature = types.float32(types.int64, types.int64)

    def generate(_context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        values_, count_ = args
        loop = v.Loop(b, count_, [v.splat(0.0)])
        lanes = v.load_vector(b, v.offset(b, v.pointer(b, values_), loop.index, 4), v.KIND_F32)
        loop.end([b.fadd(loop.values[0], lanes)])
        return v.fold(b, loop.results[0], b.fadd)

    return signature, generate


@intrinsic
def centred_square_sum(typing_context, values, mean, count):
    """Sum of (values[i] - mean) squared, float32; count is a multiple of eight, above zero."""
    signature = types.float32(types.int64, types.float32, types.int64)

    def generate(_context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        values_, mean_, count_ = args
        middle = v.broadcast(b, mean_)
        loop = v.Loop(b, count_, [v.splat(0.0)])
        lanes = v.load_vector(b, v.offset(b, v.pointer(b, values_), loop.index, 4), v.KIND_F32)
        centred = b.fsub(lanes, middle)
        loop.end([v.fma(b, centred, centred, loop.values[0])])
        return v.fold(b, loop.results[0], b.fadd)

    return signature, generate


@intrinsic
def centre_to(typing_context, values, mean, factor, weights, biases, out, count):
    """out[i] = (values[i] - mean) * factor * weights[i] + biases[i], float32; count a multiple of eight, above zero."""
    signature = types.void(types.int64, types.float32, types.float32, *[types.int64] * 4)

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        values_, mean_, factor_, weights_, biases_, out_, count_ = args
        middle, spread = v.broadcast(b, mean_), v.broadcast(b, factor_)
        loop = v.Loop(b, count_, [])

        def lanes(base: Any) -> Any:
            return v.load_vector(b, v.offset(b, v.pointer(b, base), loop.index, 4), v.KIND_F32)

        scaled = b.fmul(b.fmul(b.fsub(lanes(values_), middle), spread), lanes(weights_))
        result = b.fadd(scaled, lanes(biases_))
        v.store_vector(b, result, v.offset(b, v.pointer(b, out_), loop.index, 4), v.KIND_F32)
        loop.end([])
        return context.get_dummy_value()

    return signature, generate


@intrinsic(prefer_literal=True)
def convert(typing_context, source_kind, target_kind, source, target, count):
    """Copy `count` (a multiple of eight) values between storage kinds; the target is float32 or float16."""
    kinds = literals(source_kind, target_kind)
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
    kinds = literals(kind)
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
