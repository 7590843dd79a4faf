"""The unit upper triangular factor of a symmetric positive definite matrix, in blocks from the last column on.

Compiled here rather than asked of the linear algebra library, whose threads wait for each other for most of the time
where other work keeps the processors busy, and which raises where rounding leaves a pivot that is not positive.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.kernels.compiled.vector_outer import add_outer

BLOCK = 64  # columns eliminated together


@njit(nogil=True)
def _eliminate_in_row(row, first, last, pivots, factor):
    """Replace row[first:last], of a row before the block, by its part of the factor."""
    for k in range(last - 1, first - 1, -1):
        value = row[k]
        line = factor[k - first]
        for c in range(k - first):
            row[first + c] -= value * line[c]
        row[k] = value / pivots[k - first] if pivots[k - first] > 0 else np.float32(0.0)


@njit(nogil=True)
def _factor_block(matrix, first, last, pivots, factor):
    """The block's own square: fills pivots [last - first] and factor, whose row k is column k of the block above k."""
    for k in range(last - 1, first - 1, -1):
        pivot = max(matrix[k, k], np.float32(0.0))
        pivots[k - first] = pivot
        for i in range(first, k):
            factor[k - first, i - first] = matrix[i, k] / pivot if pivot > 0 else np.float32(0.0)
        for i in range(first, k):
            for c in range(i, k):
                matrix[i, c] -= matrix[i, k] * factor[k - first, c - first]
        for i in range(first, k):
            matrix[i, k] = factor[k - first, i - first]


@njit(nogil=True)
def _subtract_products(matrix, above, across):
    """matrix[i, c] += above[i] . across[:, c] for rows i and columns c >= i before the block, tile by tile."""
    rows, width = above.shape[0], above.shape[1]
    stride, left = matrix.strides[0], above.strides[0]
    for c in range(0, rows, 16):
        right, whole = across.ctypes.data + c * 4, c + 16 <= rows
        for i in range(0, min(c + 16, rows) // 4 * 4, 4):
            y, a = matrix.ctypes.data + i * stride + c * 4, above.ctypes.data + i * left
            if whole:
                add_outer(4, 2, y, stride, a, left, right, across.strides[0], width)
            else:
                add_outer(4, 1, y, stride, a, left, right, across.strides[0], width)


@njit("void(float32[:, ::1])", nogil=True, cache=True)
def unit_factor(matrix):
    """Replace M [K, K], K a multiple of eight, by F, strictly upper triangular: M = (F + I) D (F + I)^T, D diagonal.

    Reads the upper triangle only. A column whose pivot is not positive passes nothing on: its column of F is zero.
    """
    columns = matrix.shape[0]
    pivots, factor = np.empty(BLOCK, np.float32), np.zeros((BLOCK, BLOCK), np.float32)
    for last in range(columns, 0, -BLOCK):
        first = max(last - BLOCK, 0)
        width = last - first
        _factor_block(matrix, first, last, pivots, factor)
        above, across = np.empty((first, width), np.float32), np.empty((width, first), np.float32)
        for i in range(first):
            row = matrix[i]
            _eliminate_in_row(row, first, last, pivots, factor)
            for k in range(width):
                above[i, k] = -row[first + k] * pivots[k]
                across[k, i] = row[first + k]
        if first:
            _subtract_products(matrix, above, across)
    for i in range(columns):
        matrix[i, : i + 1] = np.float32(0.0)
