"""Compiles every kernel of a decode step for a card that need not be there: `python compile_for.py 86 bfloat16 SHAPE`.

Runs in a process of its own, without TRITON_INTERPRET. Prints a line a kernel: name, bytes of shared memory.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from engine.bench.shapes import SHAPES, random_weights
from engine.kernels.triton.step import StepKernels
from engine.kernels.triton.step_memory import StepBuffers
from engine.kernels.triton.tiles import default_tile
from engine.model.fused import fuse, shapes_of

TYPES = {torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.float32: "*fp32", torch.int32: "*i32"}
TYPES |= {torch.int64: "*i64", torch.float64: "*fp64"}
OPTIONS = ("num_warps", "num_stages", "launch_pdl")


def specialises(param: Any, value: Any) -> bool:
    """Whether a launch compiles another kernel for a one or a multiple of sixteen here."""
    return type(value) is int and not param.is_constexpr and not param.do_not_specialize


def main(capability: int, dtype: str, shape: str) -> None:
    compiled: set[str] = set()

    def compile_launch(kernel: Any, *values: Any, grid: Any, warmup: bool, **named: Any) -> None:
        """In place of a launch: compile what it would run."""
        options = {key: named.pop(key) for key in OPTIONS if key in named}
        given = dict(zip([param.name for param in kernel.params], values, strict=False)) | named
        signature, constants, facts = {}, {}, {}
        for index, param in enumerate(kernel.params):
            value = given.get(param.name, param.default)
            if param.is_constexpr or value is None or (specialises(param, value) and value == 1):
                signature[param.name], constants[(index,)] = "constexpr", value
            elif isinstance(value, torch.Tensor):
                signature[param.name] = TYPES[value.dtype]
            else:
                signature[param.name] = "fp32" if isinstance(value, float) else "i32"
            if isinstance(value, torch.Tensor) or (specialises(param, value) and value % 16 == 0):
                facts[(index,)] = [["tt.divisibility", 16]]
        key = f"{kernel.__name__} {signature} {constants} {options}"
        if key not in compiled:
            compiled.add(key)
            source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=facts)
            made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
            print(kernel.__name__, made.metadata.shared, flush=True)

    JITFunction.run = compile_launch  # type: ignore[method-assign]
    config, device, kind = SHAPES[shape].config, torch.device("meta"), getattr(torch, dtype)
    config = type(config)(**{name: getattr(config, name) for name in config.__slots__} | {"layers": 1})
    weights = random_weights(config, kind, device)
    cache = torch.empty(512, 2, config.kv_heads, config.head_dim, dtype=kind, device=device)
    angles = torch.empty(512, config.head_dim // 2, device=device)
    model = fuse(config, weights, [cache], angles, angles)
    tiles = {role: default_tile(role, n, k, divmod(capability, 10)) for role, (n, k) in shapes_of(config).items()}
    buffers = StepBuffers(config, tiles, 512, model)
    kernels = StepKernels(config, model, buffers, tiles, config.vocabulary)
    kernels._dependent = capability >= 90
    kernels.full(16)
    kernels.draft((), (), buffers.report)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
