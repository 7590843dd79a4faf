"""Writing the layouts that `plane_dots` reads, and reading packed tiles back into codes."""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled.lowbit_layout import ENDS_BYTES, TILE
from engine.kernels.compiled.plane_layout import PAIR_BYTES, UNIT, UNIT_BYTES


@njit(
    "void(Array(uint8, 3, 'C', readonly=True), int64, uint8[:,::1], uint16[:,::1], uint16[:,::1])",
    nogil=True,
    cache=True,
)
def unpack_tiles(data, group, codes, scale, low):
    """The inverse of `pack_tiles` for four bits: codes [N, K] and the bits of float16 scale and low [N, K / group]."""
    for n in range(codes.shape[0]):
        tile, lane = n // TILE, n % TILE
        for g in range(data.shape[1]):
            source = data[tile, g]
            for k in range(group):
                byte = source[k // 8 * 32 + 4 * lane + k % 4]
                codes[n, g * group + k] = (byte >> (4 * (k // 4 % 2))) & 15
            at = group * 4 + 2 * lane
            scale[n, g] = source[at] | (source[at + 1] << 8)
            at += ENDS_BYTES // 2
            low[n, g] = source[at] | (source[at + 1] << 8)


@njit(nogil=True)
def _put_half(target, at, value):
    target[at], target[at + 1] = value & 0xFF, value >> 8


@njit("void(uint8[:,::1], uint8[:,::1], uint16[:,::1], uint16[:,::1], int64, uint8[:,::1])", nogil=True, cache=True)
def pack_rests(gate, up, gate_scale, up_scale, group, out):
    """out [N, row bytes] from codes [N, K] of gate and up, of which the lower two bits are kept; out is zero before."""
    group_bytes = group // UNIT * UNIT_BYTES + PAIR_BYTES
    for n in range(gate.shape[0]):
        for k in range(gate.shape[1]):
            g, column = k // group, k % group
            within = column % UNIT
            at = g * group_bytes + column // UNIT * UNIT_BYTES + within % 16
            out[n, at] |= (gate[n, k] & 3) << (2 * (within // 16))
            out[n, at + 16] |= (up[n, k] & 3) << (2 * (within // 16))
        for g in range(gate_scale.shape[1]):
            at = (g + 1) * group_bytes - PAIR_BYTES
            _put_half(out[n], at, gate_scale[n, g])
            _put_half(out[n], at + 2, up_scale[n, g])


@njit("void(uint8[:,::1], uint16[:,::1], uint16[:,::1], int64, uint8[:,::1])", nogil=True, cache=True)
def pack_neurons(codes, scale, low, group, out):
    """out [N, row bytes] from 4-bit codes [N, K] of a neuron-major matrix; out is zero before."""
    group_bytes = group // UNIT * UNIT_BYTES + PAIR_BYTES
    for n in range(codes.shape[0]):
        for k in range(codes.shape[1]):
            g, column = k // group, k % group
            within = column % UNIT
            at = g * group_bytes + column // UNIT * UNIT_BYTES + within % 8 * 4 + within // 16
            out[n, at] |= codes[n, k] << (4 * (within // 8 % 2))
        for g in range(scale.shape[1]):
            at = (g + 1) * group_bytes - PAIR_BYTES
            _put_half(out[n], at, scale[n, g])
            _put_half(out[n], at + 2, low[n, g])
