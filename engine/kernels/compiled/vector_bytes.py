"""Products of unsigned codes and signed activations, bytes in 32 lanes, on the processor's own instructions or not."""

from __future__ import annotations

import platform
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba.core import cgutils

from engine.kernels.compiled import vector_ir as v

BYTE_LANES = 32
BYTE_VEC = ir.VectorType(v.I8, BYTE_LANES)
SHORT_VEC = ir.VectorType(v.I16, BYTE_LANES // 2)
SHORTS_ZERO, WORDS_ZERO = ir.Constant(SHORT_VEC, [0] * 16), ir.Constant(v.IVEC, [0] * 8)


def has_byte_products() -> bool:
    """Whether this processor multiplies and adds bytes in 32 lanes (AVX2)."""
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        return False
    return bool(llvmlite.binding.get_host_cpu_features().get("avx2"))


def load_bytes(b: ir.IRBuilder, base: ir.Value, offset: int) -> ir.Value:
    """32 bytes at base + offset."""
    at = b.gep(base, [v.const(offset)])
    return b.load(b.bitcast(at, BYTE_VEC.as_pointer()), align=1)


def shift_right(b: ir.IRBuilder, lanes: ir.Value, count: int) -> ir.Value:
    """Every byte shifted right; the bits that come in from the neighbour must be masked away by the caller."""
    wide = b.bitcast(lanes, SHORT_VEC)
    return b.bitcast(b.lshr(wide, ir.Constant(SHORT_VEC, [count] * 16)), BYTE_VEC) if count else lanes


def shift_left(b: ir.IRBuilder, lanes: ir.Value, count: int) -> ir.Value:
    """As shift_right, to the left."""
    wide = b.bitcast(lanes, SHORT_VEC)
    return b.bitcast(b.shl(wide, ir.Constant(SHORT_VEC, [count] * 16)), BYTE_VEC) if count else lanes


def masked(b: ir.IRBuilder, lanes: ir.Value, mask: int) -> ir.Value:
    """The bits of `mask` of every byte."""
    return b.and_(lanes, ir.Constant(BYTE_VEC, [mask] * BYTE_LANES))


def four_bytes(b: ir.IRBuilder, base: ir.Value, offset: int) -> ir.Value:
    """The four bytes at base + offset, eight times over."""
    word = b.load(b.bitcast(b.gep(base, [v.const(offset)]), v.I32.as_pointer()), align=1)
    lane0 = b.insert_element(ir.Constant(v.IVEC, ir.Undefined), word, ir.Constant(v.I32, 0))
    return b.bitcast(b.shuffle_vector(lane0, lane0, ir.Constant(v.IVEC, [0] * 8)), BYTE_VEC)


def sixteen_bytes(b: ir.IRBuilder, base: ir.Value, offset: int) -> ir.Value:
    """The sixteen bytes at base + offset, twice over."""
    half = ir.VectorType(v.I8, BYTE_LANES // 2)
    once = b.load(b.bitcast(b.gep(base, [v.const(offset)]), half.as_pointer()), align=1)
    return b.shuffle_vector(once, once, ir.Constant(ir.VectorType(v.I32, BYTE_LANES), [*range(16), *range(16)]))


def pair_products(b: ir.IRBuilder, codes: ir.Value, signed: ir.Value, native: bool) -> ir.Value:
    """codes[2i] * signed[2i] + codes[2i + 1] * signed[2i + 1] as 16 int16; codes below 129, so that none overflows."""
    if native:
        kind = ir.FunctionType(SHORT_VEC, [BYTE_VEC, BYTE_VEC])
        return b.call(cgutils.get_or_insert_function(b.module, kind, "llvm.x86.avx2.pmadd.ub.sw"), [codes, signed])
    wide = ir.VectorType(v.I16, BYTE_LANES)
    return _neighbours_added(b, b.mul(b.zext(codes, wide), b.sext(signed, wide)))


def pairs_added(b: ir.IRBuilder, shorts: ir.Value, native: bool) -> ir.Value:
    """shorts[2i] + shorts[2i + 1] as eight int32."""
    if native:
        kind = ir.FunctionType(v.IVEC, [SHORT_VEC, SHORT_VEC])
        ones = ir.Constant(SHORT_VEC, [1] * 16)
        return b.call(cgutils.get_or_insert_function(b.module, kind, "llvm.x86.avx2.pmadd.wd"), [shorts, ones])
    return _neighbours_added(b, b.sext(shorts, ir.VectorType(v.I32, 16)))


def _neighbours_added(b: ir.IRBuilder, lanes: ir.Value) -> Any:
    count = lanes.type.count
    index = ir.VectorType(v.I32, count // 2)
    even = b.shuffle_vector(lanes, lanes, ir.Constant(index, list(range(0, count, 2))))
    odd = b.shuffle_vector(lanes, lanes, ir.Constant(index, list(range(1, count, 2))))
    return b.add(even, odd)
