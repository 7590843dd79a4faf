"""Matrix times rows: the bulk of a pass. Weights are read once, widened in registers, in a fixed K order."""

from __future__ import annotations

from typing import Any

from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.vector_dots import dot_gathered, dot_tile
from engine.kernels.compiled.vector_ir import ITEM_SIZE, KIND_BF16, KIND_F16, KIND_F32, KIND_I8
from engine.kernels.compiled.vector_words import field, index_at, load_f32, store_f32

TILE_ROWS = 24  # a multiple of every tile height below
GATHERED_ROWS = 64  # chosen rows of a block, a multiple of eight


def _rows_kernel(kind: int) -> Any:
    """A kernel for one storage kind: rows [n0, n1) of the matrix times `rows` rows of x.

    Tile shapes only change speed: each (row, column) is the same chain of operations in every one of them. Five rows
    at once are the most whose inputs stay in the first cache.
    """
    size = ITEM_SIZE[kind]

    @njit(nogil=True)
    def kernel(w, x, x_stride, y, y_stride, k, n0, n1, rows):
        stride, sx, sy = k * size, x_stride, y_stride
        n = n0
        while n < n1:
            end = min(n + TILE_ROWS, n1)
            whole = end - n == TILE_ROWS
            done = 0
            while done < rows:
                left = rows - done
                xm, ym = x + done * x_stride, y + done * y_stride
                if not whole:
                    for r in range(n, end):
                        dot_tile(kind, 1, 1, w + r * stride, stride, xm, sx, k, ym + r * 4, sy, 0)
                    done += 1
                elif left == 1:
                    for r in range(n, end, 8):
                        dot_tile(kind, 8, 1, w + r * stride, stride, xm, sx, k, ym + r * 4, sy, 0)
                    done += 1
                elif left == 2:
                    for r in range(n, end, 4):
                        dot_tile(kind, 4, 2, w + r * stride, stride, xm, sx, k, ym + r * 4, sy, 0)
                    done += 2
                elif left == 3:
                    for r in range(n, end, 3):
                        dot_tile(kind, 3, 3, w + r * stride, stride, xm, sx, k, ym + r * 4, sy, 0)
                    done += 3
                elif left == 5:
                    for r in range(n, end, 2):
                        dot_tile(kind, 2, 5, w + r * stride, stride, xm, sx, k, ym + r * 4, sy, 0)
                    done += 5
                else:
                    for r in range(n, end, 3):
                        dot_tile(kind, 3, 4, w + r * stride, stride, xm, sx, k, ym + r * 4, sy, 0)
                    done += 4
            n = end

    return kernel


def _gathered_kernel(kind: int) -> Any:
    """As above for chosen rows: y[i] = w[index[i]] . x, i in [n0, n1), both multiples of eight."""
    size = ITEM_SIZE[kind]

    @njit(nogil=True)
    def kernel(w, x, x_stride, y, y_stride, scale, k, index, n0, n1, rows):
        for row in range(rows):
            xm, ym = x + row * x_stride, y + row * y_stride
            for n in range(n0, n1, 8):
                dot_gathered(kind, 8, 1, w, k * size, xm, x_stride, k, ym + n * 4, y_stride, scale, index + n * 4)

    return kernel


rows_f32, rows_f16, rows_bf16 = (_rows_kernel(k) for k in (KIND_F32, KIND_F16, KIND_BF16))
gathered_f32, gathered_f16, gathered_bf16, gathered_i8 = (
    _gathered_kernel(k) for k in (KIND_F32, KIND_F16, KIND_BF16, KIND_I8)
)


@njit(nogil=True)
def block_rows(step):
    """Rows of the matrix in one block: a few microseconds of work, so that sharing out costs little beside it."""
    if field(step, t.N) < 2048:
        return 2 * TILE_ROWS
    return 4 * TILE_ROWS if field(step, t.N) < 8192 else 8 * TILE_ROWS


@njit(nogil=True)
def block_start(step, block):
    """Where the matrix's rows of a block begin."""
    size = 4 if field(step, t.KIND) == KIND_F32 else 2
    return field(step, t.WEIGHT) + block * block_rows(step) * field(step, t.K) * size


@njit(nogil=True)
def linear(step, first_row, rows, block):
    """One block of target[row] = weight [N, K] times source[row], plus bias where given, for rows from first_row."""
    n0 = block * block_rows(step)
    n1 = min(field(step, t.N), n0 + block_rows(step))
    xs, ys = field(step, t.SOURCE_STRIDE), field(step, t.TARGET_STRIDE)
    x, y = field(step, t.SOURCE) + first_row * xs, field(step, t.TARGET) + first_row * ys
    w, k = field(step, t.WEIGHT), field(step, t.K)
    count = rows - first_row
    if field(step, t.KIND) == KIND_F16:
        rows_f16(w, x, xs, y, ys, k, n0, n1, count)
    elif field(step, t.KIND) == KIND_BF16:
        rows_bf16(w, x, xs, y, ys, k, n0, n1, count)
    else:
        rows_f32(w, x, xs, y, ys, k, n0, n1, count)
    if field(step, t.BIAS) != 0:
        for row in range(count):
            for n in range(n0, n1):
                at = y + row * ys + n * 4
                store_f32(at, load_f32(at) + load_f32(field(step, t.BIAS) + n * 4))


@njit(nogil=True)
def gathered_linear(step, rows, block):
    """One block of target[row, i] = weight[index[i]] . source[row] for the N chosen rows. EXTRA_A: the int32 index.

    BIAS: float32 [rows of the matrix], or 0.
    """
    n0 = block * GATHERED_ROWS
    n1 = min(field(step, t.N), n0 + GATHERED_ROWS)
    x, y, w = field(step, t.SOURCE), field(step, t.TARGET), field(step, t.WEIGHT)
    xs, ys, scale = field(step, t.SOURCE_STRIDE), field(step, t.TARGET_STRIDE), field(step, t.SCALE)
    k, index = field(step, t.K), field(step, t.EXTRA_A)
    if field(step, t.KIND) == KIND_F16:
        gathered_f16(w, x, xs, y, ys, scale, k, index, n0, n1, rows)
    elif field(step, t.KIND) == KIND_I8:
        gathered_i8(w, x, xs, y, ys, scale, k, index, n0, n1, rows)
    elif field(step, t.KIND) == KIND_BF16:
        gathered_bf16(w, x, xs, y, ys, scale, k, index, n0, n1, rows)
    else:
        gathered_f32(w, x, xs, y, ys, scale, k, index, n0, n1, rows)
    if field(step, t.BIAS) != 0:
        for row in range(rows):
            for n in range(n0, n1):
                at = y + row * ys + n * 4
                store_f32(at, load_f32(at) + load_f32(field(step, t.BIAS) + index_at(index, n) * 4))
