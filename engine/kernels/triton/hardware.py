"""What kernels ask of the hardware, and what stands in for it where they are interpreted on a CPU.

Programmatic dependent launch: start while the predecessor still runs, wait for it where its results are needed.
"""

from __future__ import annotations

import os

import torch
import triton
import triton.language as tl

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

if INTERPRETED:

    @triton.jit
    def launch_dependents():
        """Nothing: an interpreted kernel runs alone."""

    @triton.jit
    def wait_for_predecessor():
        """Nothing: an interpreted kernel runs alone."""

    @triton.jit
    def prefetch_line(pointers):
        """Nothing."""

    @triton.jit
    def multiply(a, b, sums):
        """sums + a b: widened first, because the interpreter multiplies the bits of bfloat16 as integers."""
        return tl.dot(a.to(tl.float32), b.to(tl.float32), sums)

    @triton.jit
    def dot4(codes, values, sums):
        """sums + the products of the four unsigned bytes of `codes` with the four signed bytes of `values`."""
        for byte in tl.static_range(4):
            code = (codes >> (8 * byte)) & 0xFF
            value = (values >> (8 * byte)) & 0xFF
            sums += code * tl.where(value > 127, value - 256, value)
        return sums

    @triton.jit
    def transpose_bytes(a, b, c, d):
        """Four words, of which word i holds byte i of a, b, c and d, lowest first."""
        t0 = (a & 0xFF) | ((b & 0xFF) << 8) | ((c & 0xFF) << 16) | ((d & 0xFF) << 24)
        t1 = ((a >> 8) & 0xFF) | (b & 0xFF00) | ((c & 0xFF00) << 8) | ((d & 0xFF00) << 16)
        t2 = ((a >> 16) & 0xFF) | ((b >> 8) & 0xFF00) | (c & 0xFF0000) | ((d & 0xFF0000) << 8)
        t3 = ((a >> 24) & 0xFF) | ((b >> 16) & 0xFF00) | ((c >> 8) & 0xFF0000) | (((d >> 24) & 0xFF) << 24)
        return t0, t1, t2, t3

    @triton.jit
    def exact_exp(x):
        """exp, as numpy computes it."""
        return tl.exp(x)

    @triton.jit
    def exact_log(x):
        """Natural logarithm, as numpy computes it."""
        return tl.log(x)

else:
    from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait, libdevice

    @triton.jit
    def launch_dependents():
        """Let the next kernel of the stream begin."""
        gdc_launch_dependents()

    @triton.jit
    def wait_for_predecessor():
        """Return once the kernel before has ended and its writes are visible."""
        gdc_wait()

    @triton.jit
    def prefetch_line(pointers):
        """Ask for the cache lines at `pointers` to be brought into L2."""
        tl.inline_asm_elementwise(
            "prefetch.global.L2 [$1]; mov.u32 $0, 0;",
            "=r,l",
            [pointers.to(tl.int64)],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )

    @triton.jit
    def multiply(a, b, sums):
        """sums + a b on the tensor cores, accumulated in float32."""
        return tl.dot(a, b, sums)

    @triton.jit
    def dot4(codes, values, sums):
        """sums + the products of the four unsigned bytes of `codes` with the four signed bytes of `values`."""
        return tl.inline_asm_elementwise(
            "dp4a.u32.s32 $0, $1, $2, $3;", "=r,r,r,r", [codes, values, sums], dtype=tl.int32, is_pure=True, pack=1
        )

    @triton.jit
    def transpose_bytes(a, b, c, d):
        """Four words, of which word i holds byte i of a, b, c and d, lowest first."""
        return tl.inline_asm_elementwise(
            """{
            .reg .b32 u0, u1, u2, u3;
            prmt.b32 u0, $4, $5, 0x5140;
            prmt.b32 u1, $6, $7, 0x5140;
            prmt.b32 u2, $4, $5, 0x7362;
            prmt.b32 u3, $6, $7, 0x7362;
            prmt.b32 $0, u0, u1, 0x5410;
            prmt.b32 $1, u0, u1, 0x7632;
            prmt.b32 $2, u2, u3, 0x5410;
            prmt.b32 $3, u2, u3, 0x7632;
            }""",
            "=r,=r,=r,=r,r,r,r,r",
            [a, b, c, d],
            dtype=(tl.int32, tl.int32, tl.int32, tl.int32),
            is_pure=True,
            pack=1,
        )

    @triton.jit
    def exact_exp(x):
        """exp to the last bit or two of float32; tl.exp is off by more, the further its argument from zero."""
        return libdevice.exp(x)

    @triton.jit
    def exact_log(x):
        """Natural logarithm to the last bit of float32, near 1 too, where tl.log may lose half of them."""
        return libdevice.log(x)


def supports_dependent_launch(device: torch.device) -> bool:
    """Compute capability 9.0 and above; elsewhere kernels run one after the other."""
    return not INTERPRETED and device.type == "cuda" and torch.cuda.get_device_capability(device)[0] >= 9
