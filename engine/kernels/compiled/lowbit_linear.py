"""Packed low-bit matrix times rows of int8 activations: the bulk of a draft step."""

from __future__ import annotations

from typing import Any

from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.lowbit_dots import lowbit_tile
from engine.kernels.compiled.lowbit_layout import ENDS_BYTES, TILE
from engine.kernels.compiled.vector_bytes import has_byte_products
from engine.kernels.compiled.vector_words import field, load_f32, store_f32

NATIVE = int(has_byte_products())
UNIT = 64  # columns that a kernel takes at once; where the groups are finer, the least that `bits` can have


def rows_kernel(bits: int, unit: int, native: int = NATIVE) -> Any:
    """A kernel for one width: rows [n0, n1) of the matrix, n0 a multiple of a tile, times `rows` rows of x.

    w: all tiles, `tile_bytes` each; a group is `units` times `unit` columns; `height`: rows of the whole matrix.
    """

    @njit(nogil=True)
    def kernel(w, tile_bytes, units, groups, x, xs, k, y, ys, n0, n1, height, rows):
        for n in range(n0, n1, TILE):
            tile, lanes = w + n // TILE * tile_bytes, min(TILE, height - n)
            done = 0
            while done < rows:
                left = rows - done
                xm, ym = x + done * xs, y + done * ys + n * 4
                if left == 1:
                    lowbit_tile(bits, unit, 1, native, tile, units, groups, xm, xs, k, ym, ys, lanes)
                    done += 1
                elif left == 2:
                    lowbit_tile(bits, unit, 2, native, tile, units, groups, xm, xs, k, ym, ys, lanes)
                    done += 2
                elif left == 3:
                    lowbit_tile(bits, unit, 3, native, tile, units, groups, xm, xs, k, ym, ys, lanes)
                    done += 3
                else:
                    lowbit_tile(bits, unit, 4, native, tile, units, groups, xm, xs, k, ym, ys, lanes)
                    done += 4

    return kernel


def fine_kernel(bits: int, unit: int, native: int = NATIVE) -> Any:
    """The same for groups that are no multiple of UNIT, row after row: few matrices are so."""

    @njit(nogil=True)
    def kernel(w, tile_bytes, units, groups, x, xs, k, y, ys, n0, n1, height, rows):
        for n in range(n0, n1, TILE):
            tile, lanes = w + n // TILE * tile_bytes, min(TILE, height - n)
            for m in range(rows):
                xm, ym = x + m * xs, y + m * ys + n * 4
                lowbit_tile(bits, unit, 1, native, tile, units, groups, xm, xs, k, ym, ys, lanes)

    return kernel


rows_4, rows_8, rows_3 = rows_kernel(4, UNIT), rows_kernel(8, UNIT), rows_kernel(3, UNIT)
fine_4, fine_8, fine_3 = fine_kernel(4, 8), fine_kernel(8, 8), fine_kernel(3, 32)


@njit(nogil=True)
def lowbit_block_rows(step):
    """Rows of the matrix in one block: a few microseconds of work, so that sharing out costs little beside it."""
    if field(step, t.N) < 2048:
        return 6 * TILE
    return 12 * TILE if field(step, t.N) < 8192 else 24 * TILE


@njit(nogil=True)
def tile_bytes_of(step):
    """Bytes of a tile of the packed matrix."""
    group = field(step, t.GROUP)
    return field(step, t.K) // group * (group * field(step, t.KIND) + ENDS_BYTES)


@njit(nogil=True)
def lowbit_block_start(step, block):
    """Where the tiles of a block begin."""
    return field(step, t.WEIGHT) + block * lowbit_block_rows(step) // TILE * tile_bytes_of(step)


@njit(nogil=True)
def lowbit_linear(step, first_row, rows, block):
    """One block of target[row] = weight [N, K] times source[row], plus bias where given, for rows from first_row.

    KIND: bits; GROUP: columns of a group. SOURCE: rows as `quantise_columns` leaves them; SOURCE_STRIDE in bytes.
    """
    n0 = block * lowbit_block_rows(step)
    n1 = min(field(step, t.N), n0 + lowbit_block_rows(step))
    xs, ys = field(step, t.SOURCE_STRIDE), field(step, t.TARGET_STRIDE)
    x, y = field(step, t.SOURCE) + first_row * xs, field(step, t.TARGET) + first_row * ys
    w, k, height, count = field(step, t.WEIGHT), field(step, t.K), field(step, t.N), rows - first_row
    bits, group = field(step, t.KIND), field(step, t.GROUP)
    groups, tile_bytes = k // group, tile_bytes_of(step)
    if group % UNIT == 0:
        units = group // UNIT
        if bits == 4:
            rows_4(w, tile_bytes, units, groups, x, xs, k, y, ys, n0, n1, height, count)
        elif bits == 8:
            rows_8(w, tile_bytes, units, groups, x, xs, k, y, ys, n0, n1, height, count)
        else:
            rows_3(w, tile_bytes, units, groups, x, xs, k, y, ys, n0, n1, height, count)
    elif bits == 4:
        fine_4(w, tile_bytes, group // 8, groups, x, xs, k, y, ys, n0, n1, height, count)
    elif bits == 8:
        fine_8(w, tile_bytes, group // 8, groups, x, xs, k, y, ys, n0, n1, height, count)
    else:
        fine_3(w, tile_bytes, group // 32, groups, x, xs, k, y, ys, n0, n1, height, count)
    if field(step, t.BIAS) != 0:
        for row in range(count):
            for n in range(n0, n1):
                at = y + row * ys + n * 4
                store_f32(at, load_f32(at) + load_f32(field(step, t.BIAS) + n * 4))
