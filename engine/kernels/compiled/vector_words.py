"""Single values and atomics at integer addresses, and what a waiting thread says to the processor."""

from __future__ import annotations

import platform
import sys
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from engine.kernels.compiled import vector_ir as v


@intrinsic
def field(typing_context, base, index):
    """The int64 at base[index]: tables are read through addresses, since arrays would count references in the loop."""

    def generate(_context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        return b.load(b.inttoptr(b.add(args[0], b.mul(args[1], v.const(8))), v.I64.as_pointer()))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def index_at(typing_context, base, index):
    """The int32 at base[index], widened."""

    def generate(_context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        at = b.inttoptr(b.add(args[0], b.mul(args[1], v.const(4))), v.I32.as_pointer())
        return b.sext(b.load(at), v.I64)

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
def store_i32(typing_context, address, value):
    """Write the lower 32 bits of an integer to an address."""

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        b.store(b.trunc(args[1], v.I32), b.inttoptr(args[0], v.I32.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def store_i64(typing_context, address, value):
    """Write an int64 to an address."""

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        b.store(args[1], b.inttoptr(args[0], v.I64.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


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
def prefetch_line(typing_context, address):
    """Start loading the cache line at an address; never faults."""

    def generate(context: Any, b: ir.IRBuilder, _signature: Any, args: Any) -> Any:
        v.prefetch(b, v.pointer(b, args[0]))
        return context.get_dummy_value()

    return types.void(types.int64), generate


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
