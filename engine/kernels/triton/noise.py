"""The exponential noise of `engine.sampling.noise` on the card: the same hash words, the same float32 steps.

Oracle: `engine.sampling.noise.Noise`: words bit for bit; E to the last bits of float32, as far as the card's logarithm
agrees with numpy's.
"""

from __future__ import annotations

import triton
import triton.language as tl

from engine.kernels.triton.hardware import exact_log

_GOLDEN = tl.constexpr(0x9E3779B97F4A7C15)
_MIX64_1, _MIX64_2 = tl.constexpr(0xBF58476D1CE4E5B9), tl.constexpr(0x94D049BB133111EB)
_MIX32_1, _MIX32_2, _MIX32_3 = tl.constexpr(0xED5AD4BB), tl.constexpr(0xAC4C1B51), tl.constexpr(0x31848BAB)
_REFINE_BELOW = tl.constexpr(2**24)


@triton.jit
def _mix64(z):
    z = (z ^ (z >> 30)) * _MIX64_1
    z = (z ^ (z >> 27)) * _MIX64_2
    return z ^ (z >> 31)


@triton.jit
def _mix32(x, first, second):
    x = x ^ first
    x = (x ^ (x >> 17)) * _MIX32_1
    x = (x ^ (x >> 11)) + second
    x = x * _MIX32_2
    x = (x ^ (x >> 15)) * _MIX32_3
    return x ^ (x >> 14)


@triton.jit
def hash_words(seed, position, ids):
    """The words (high, low), uint32 like `ids`, of int32 `ids` at a scalar int32 position under a scalar int64 seed."""
    seed_key = _mix64(seed.to(tl.uint64) + _GOLDEN)
    key = _mix64(seed_key + (position + 1).to(tl.uint64) * _GOLDEN)
    refining = _mix64(key + _GOLDEN)
    plain = ids.to(tl.uint32)
    zero = plain ^ plain
    spread = _mix32(plain, zero, zero)
    high = _mix32(spread, key.to(tl.uint32), (key >> 32).to(tl.uint32))
    low = _mix32(spread, refining.to(tl.uint32), (refining >> 32).to(tl.uint32))
    return high, low


@triton.jit
def exponentials(high, low):
    """E of each pair of hash words, float32, above zero."""
    # 1 - u from the complement's top 31 bits, which a signed conversion takes whole.
    complement = ((high ^ 0xFFFFFFFF) >> 1).to(tl.int32).to(tl.float32)
    coarse = -exact_log((complement + 0.5) * (2.0**-31))
    # Below 2^-8 the series of -log(1 - u) is exact to float32 after five terms, and u comes from all 64 bits.
    u = ((high.to(tl.uint64) << 32) | low.to(tl.uint64)).to(tl.float32)
    u = (u + 0.5) * (2.0**-64)
    fine = u + u * u * (0.5 + u * (1.0 / 3.0 + u * (0.25 + u * 0.2)))
    return tl.where(high < _REFINE_BELOW, fine, coarse)
