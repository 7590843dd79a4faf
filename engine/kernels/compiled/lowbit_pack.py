"""Writing the layout that `lowbit_dots` reads, and copying rows from one packed matrix to another."""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled.lowbit_layout import ENDS_BYTES, TILE


@njit(nogil=True)
def _put_half(target, at, value):
    target[at], target[at + 1] = value & 0xFF, value >> 8


@njit("void(uint8[:,::1], uint16[:,::1], uint16[:,::1], int64, int64, uint8[:,:,::1])", nogil=True, cache=True)
def pack_tiles(codes, scale, low, bits, group, out):
    """out [tiles, groups, bytes] from codes [N, K] and the bits of float16 scale and low [N, K / group].

    bits: 4, 8, 3 where 32 divides the group, or 2 where 16 does. out is zero before.
    """
    for n in range(codes.shape[0]):
        tile, lane = n // TILE, n % TILE
        for g in range(out.shape[1]):
            target = out[tile, g]
            for k in range(group):
                code = codes[n, g * group + k]
                byte = 4 * lane + k % 4
                if bits == 4:
                    target[k // 8 * 32 + byte] |= code << (4 * (k // 4 % 2))
                elif bits == 8:
                    target[k // 4 * 32 + byte] = code
                elif bits == 2:
                    target[k // 16 * 32 + byte] |= code << (2 * (k // 4 % 4))
                else:
                    planes, step = k // 32 * 96, k % 32 // 4
                    target[planes + step // 4 * 32 + byte] |= (code & 3) << (2 * (step % 4))
                    target[planes + 64 + byte] |= (code >> 2) << step
            _put_half(target, group * bits + 2 * lane, scale[n, g])
            _put_half(target, group * bits + ENDS_BYTES // 2 + 2 * lane, low[n, g])


@njit("void(Array(uint8, 3, 'C', readonly=True), uint8[:,:,::1], int32[::1], int32[::1])", nogil=True, cache=True)
def copy_rows(source, target, rows, places):
    """Row rows[i] of one packed matrix becomes row places[i] of another of the same columns, bits and group."""
    code_words = (source.shape[2] - ENDS_BYTES) // 32  # every 32 bytes of codes hold four of each row
    for i in range(len(rows)):
        for g in range(source.shape[1]):
            old, new = source[rows[i] // TILE, g], target[places[i] // TILE, g]
            a, b = rows[i] % TILE, places[i] % TILE
            for word in range(code_words):
                for j in range(4):
                    new[word * 32 + 4 * b + j] = old[word * 32 + 4 * a + j]
            for part in range(2):
                for j in range(2):
                    at = code_words * 32 + part * ENDS_BYTES // 2 + j
                    new[at + 2 * b] = old[at + 2 * a]
