"""Building blocks of LLVM vector code: eight float32 lanes at a time, with a fixed order of every sum.

Why by hand: the exactness rule asks that a row's result never depends on how many rows share a pass. A compiler that
may reorder sums (fast-math) breaks it, and one that may not will not vectorise a dot product. Written out, each output
element is one chain of fused multiply-adds over K in steps of eight, then one fixed tree over the lanes.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

LANES = 8
F32 = ir.FloatType()
I8, I16, I32, I64 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64)
VEC = ir.VectorType(F32, LANES)
IVEC = ir.VectorType(I32, LANES)
BYTES = I8.as_pointer()

# Storage kinds of matrices and of the KV cache; the numbers are part of every compiled programme.
KIND_F32, KIND_F16, KIND_BF16, KIND_I8 = 0, 1, 2, 3
ITEM_SIZE = {KIND_F32: 4, KIND_F16: 2, KIND_BF16: 2, KIND_I8: 1}


def const(value: int) -> ir.Constant:
    """A 64-bit integer constant."""
    return ir.Constant(I64, value)


def splat(value: float) -> ir.Constant:
    """The same float32 in all lanes."""
    return ir.Constant(VEC, [value] * LANES)


def pointer(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    """A byte pointer from an integer address."""
    return builder.inttoptr(address, BYTES)


def offset(builder: ir.IRBuilder, base: ir.Value, count: ir.Value, size: int) -> ir.Value:
    """base + count * size, in bytes."""
    return builder.gep(base, [builder.mul(count, const(size))])


def _load_lanes(builder: ir.IRBuilder, at: ir.Value, item: ir.Type, align: int) -> ir.Value:
    return builder.load(builder.bitcast(at, ir.VectorType(item, LANES).as_pointer()), align=align)


def load_vector(builder: ir.IRBuilder, at: ir.Value, kind: int) -> ir.Value:
    """Eight stored values as float32 lanes. Exact for every kind: each widens without rounding."""
    if kind == KIND_F32:
        return _load_lanes(builder, at, F32, 4)
    if kind == KIND_F16:
        return builder.fpext(_load_lanes(builder, at, ir.HalfType(), 2), VEC)
    if kind == KIND_BF16:
        wide = builder.zext(_load_lanes(builder, at, I16, 2), IVEC)
        return builder.bitcast(builder.shl(wide, ir.Constant(IVEC, [16] * LANES)), VEC)
    return builder.sitofp(builder.sext(_load_lanes(builder, at, I8, 1), IVEC), VEC)


def prefetch(builder: ir.IRBuilder, at: ir.Value) -> None:
    """Start loading the cache line at an address; never faults."""
    signature = ir.FunctionType(ir.VoidType(), [BYTES, I32, I32, I32])
    function = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0")
    read, keep, data = ir.Constant(I32, 0), ir.Constant(I32, 3), ir.Constant(I32, 1)
    builder.call(function, [at, read, keep, data])


def store_vector(builder: ir.IRBuilder, lanes: ir.Value, at: ir.Value, kind: int) -> None:
    """Store eight float32 lanes as float32 or, rounded to nearest even, as float16."""
    if kind == KIND_F16:
        half = ir.VectorType(ir.HalfType(), LANES)
        builder.store(builder.fptrunc(lanes, half), builder.bitcast(at, half.as_pointer()), align=2)
    else:
        builder.store(lanes, builder.bitcast(at, VEC.as_pointer()), align=4)


def _intrinsic(builder: ir.IRBuilder, name: str, arity: int) -> ir.Function:
    signature = ir.FunctionType(VEC, [VEC] * arity)
    return cgutils.get_or_insert_function(builder.module, signature, f"llvm.{name}.v{LANES}f32")


def fma(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """a * b + c with one rounding."""
    return builder.call(_intrinsic(builder, "fma", 3), [a, b, c])


def maximum(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """Lane-wise maximum."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def magnitude(builder: ir.IRBuilder, a: ir.Value) -> ir.Value:
    """Lane-wise |a|."""
    return builder.call(_intrinsic(builder, "fabs", 1), [a])


def rounded(builder: ir.IRBuilder, a: ir.Value) -> ir.Value:
    """The nearest int32 of each lane, ties to even; 0 for NaN, the nearest int32 beyond the range."""
    nearest = builder.call(_intrinsic(builder, "rint", 1), [a])
    signature = ir.FunctionType(IVEC, [VEC])
    convert = cgutils.get_or_insert_function(builder.module, signature, f"llvm.fptosi.sat.v{LANES}i32.v{LANES}f32")
    return builder.call(convert, [nearest])


def fold(builder: ir.IRBuilder, lanes: ir.Value, combine: Any) -> ir.Value:
    """Reduce eight lanes to one by a fixed tree: (0..3 with 4..7), (0,1 with 2,3), (0 with 1)."""
    width = LANES
    while width > 1:
        width //= 2
        index = ir.VectorType(I32, width)
        low = builder.shuffle_vector(lanes, lanes, ir.Constant(index, list(range(width))))
        high = builder.shuffle_vector(lanes, lanes, ir.Constant(index, list(range(width, 2 * width))))
        lanes = combine(low, high)
    return builder.extract_element(lanes, ir.Constant(I32, 0))


def broadcast(builder: ir.IRBuilder, scalar: ir.Value) -> ir.Value:
    """One float32 in all lanes."""
    lane0 = builder.insert_element(ir.Constant(VEC, ir.Undefined), scalar, ir.Constant(I32, 0))
    return builder.shuffle_vector(lane0, lane0, ir.Constant(IVEC, [0] * LANES))


def exponential(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """exp of eight lanes, relative error below 2e-7; zero below -87.3, and NaN stays NaN, so that no fault is hidden.

    Cody-Waite reduction x = n ln 2 + r and the Cephes polynomial for exp(r) (S. L. Moshier, Cephes, expf).
    """
    low, high = splat(-87.33654), splat(88.37626)
    clamped = builder.select(builder.fcmp_ordered("<", x, high), x, high)
    clamped = builder.select(builder.fcmp_ordered(">", clamped, low), clamped, low)
    n = builder.call(_intrinsic(builder, "rint", 1), [builder.fmul(clamped, splat(1.4426950408889634))])
    r = fma(builder, n, splat(-0.693359375), clamped)
    r = fma(builder, n, splat(2.12194440e-4), r)
    p = splat(1.9875691500e-4)
    for coefficient in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1):
        p = fma(builder, p, r, splat(coefficient))
    p = fma(builder, p, builder.fmul(r, r), builder.fadd(r, splat(1.0)))
    biased = builder.add(builder.fptosi(n, IVEC), ir.Constant(IVEC, [127] * LANES))
    scale = builder.bitcast(builder.shl(biased, ir.Constant(IVEC, [23] * LANES)), VEC)
    result = builder.fmul(p, scale)
    result = builder.select(builder.fcmp_ordered("<", x, low), splat(0.0), result)
    return builder.select(builder.fcmp_unordered("uno", x, x), x, result)


class Loop:
    """A counted loop over `count` items in steps of eight, carrying vector accumulators in registers.

    Use: `loop = Loop(builder, count, initial_values)`, build the body from `loop.index` and `loop.values`,
    then `loop.end(new_values)`; afterwards `loop.results` are the final values. `count` must be above zero.
    """

    def __init__(self, builder: ir.IRBuilder, count: ir.Value, initial: list[ir.Value], step: int = LANES) -> None:
        self.builder, self.count, self.step = builder, count, step
        before = builder.block
        self.body = builder.append_basic_block("loop")
        self.after = builder.append_basic_block("done")
        builder.branch(self.body)
        builder.position_at_end(self.body)
        self.index = builder.phi(I64)
        self.index.add_incoming(const(0), before)
        self.values = [builder.phi(value.type) for value in initial]
        for phi, value in zip(self.values, initial, strict=True):
            phi.add_incoming(value, before)
        self.results: list[ir.Value] = []

    def end(self, new_values: list[ir.Value]) -> None:
        """Close the loop with the accumulators' next values."""
        builder = self.builder
        last = builder.block  # the body's end, another block than its start where a loop lies within
        following = builder.add(self.index, const(self.step))
        builder.cbranch(builder.icmp_signed("<", following, self.count), self.body, self.after)
        self.index.add_incoming(following, last)
        for phi, value in zip(self.values, new_values, strict=True):
            phi.add_incoming(value, last)
        builder.position_at_end(self.after)
        self.results = new_values
