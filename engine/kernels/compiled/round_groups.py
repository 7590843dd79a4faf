"""Rounding rows of a matrix to few bits, group after group: the method of engine/lowbit/rounding_rule.py."""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.kernels.compiled.vector_outer import add_outer
from engine.lowbit.rounding_rule import ENDS, LARGEST, REFITS, SAME_CODES

SUMS_IN_ANY_ORDER = {"reassoc", "contract", "nsz"}
BLOCK_ROWS = 64  # rows that take up passed-on errors together, so that the feedback is read from the cache


@njit(nogil=True)
def _storable(value):
    """The float16 nearest to a float32 value, as float32. Not in any-order arithmetic, which would undo it."""
    value = min(max(value, np.float32(-LARGEST)), np.float32(LARGEST))
    if abs(value) < np.float32(2.0**-14):  # below the normal numbers: a multiple of 2^-24
        return (value + np.float32(0.75)) - np.float32(0.75)
    spread = value * np.float32(8193.0)
    return spread - (spread - value)


@njit(nogil=True, fastmath=SUMS_IN_ANY_ORDER)
def _error(values, importance, most, scale, low):
    """The weighted squared error of one group."""
    inverse = np.float32(1.0) / scale if scale > 0 else np.float32(0.0)
    error = np.float32(0.0)
    for i in range(values.shape[0]):
        position = min(max((values[i] - low) * inverse, np.float32(0.0)), most)
        away = np.float32(np.int32(position + np.float32(0.5))) * scale + low - values[i]
        error += away * away * importance[i]
    return error


@njit(nogil=True, fastmath=SUMS_IN_ANY_ORDER)
def _corrections(values, importance, most, scale, low):
    """What to add to scale and low so that they fit best the codes that they give: regression of the errors."""
    inverse = np.float32(1.0) / scale if scale > 0 else np.float32(0.0)
    total, codes, squares = np.float32(0.0), np.float32(0.0), np.float32(0.0)
    errors, products = np.float32(0.0), np.float32(0.0)
    for i in range(values.shape[0]):
        position = min(max((values[i] - low) * inverse, np.float32(0.0)), most)
        code = np.float32(np.int32(position + np.float32(0.5)))
        share = importance[i]
        wrong = (values[i] - (code * scale + low)) * share
        total += share
        codes += share * code
        squares += share * code * code
        errors += wrong
        products += wrong * code
    mean = codes / total
    spread = squares - codes * mean
    slope = (products - errors * mean) / spread if spread > np.float32(SAME_CODES) * squares else np.float32(0.0)
    return slope, errors / total - slope * mean


@njit(nogil=True)
def _refitted(values, importance, most, scale, low):
    slope, shift = _corrections(values, importance, most, scale, low)
    return _storable(max(scale + slope, np.float32(0.0))), _storable(low + shift)


@njit(nogil=True)
def _fit(values, importance, most):
    """The best scale and low found for one group."""
    least = greatest = values[0]
    for value in values:
        least, greatest = min(least, value), max(greatest, value)
    half = (greatest - least) * np.float32(0.5)
    middle = least + half
    low = _storable(least)
    scale = _storable((greatest - low) / most)
    error = _error(values, importance, most, scale, low)
    for below in ENDS:
        for above in ENDS:
            step = _storable(half * np.float32((below + above) / most))
            start = _storable(middle - half * np.float32(below))
            step, start = _refitted(values, importance, most, step, start)
            other = _error(values, importance, most, step, start)
            if other < error:
                scale, low, error = step, start, other
    for _ in range(REFITS):
        step, start = _refitted(values, importance, most, scale, low)
        other = _error(values, importance, most, step, start)
        if other < error:
            scale, low, error = step, start, other
    return scale, low


@njit(nogil=True)
def _code_of(value, most, scale, low):
    inverse = np.float32(1.0) / scale if scale > 0 else np.float32(0.0)
    return np.int32(min(max((value - low) * inverse, np.float32(0.0)), most) + np.float32(0.5))


@njit(nogil=True)
def _add_products(wanted, stride, errors, error_stride, feedback, rows, count, columns):
    """wanted[r, c] += sum over j of errors[r, j] * feedback[j, c]: `rows` rows, `count` j, `columns` a multiple of 8.

    Addresses and strides in bytes; a row of the feedback is as long as one of `wanted`.
    """
    for c in range(0, columns // 16 * 16, 16):
        for r in range(0, rows // 4 * 4, 4):
            target, source = wanted + r * stride + c * 4, errors + r * error_stride
            add_outer(4, 2, target, stride, source, error_stride, feedback + c * 4, stride, count)
        for r in range(rows // 4 * 4, rows):
            target, source = wanted + r * stride + c * 4, errors + r * error_stride
            add_outer(1, 2, target, stride, source, error_stride, feedback + c * 4, stride, count)
    if columns % 16:
        c = columns - 8
        for r in range(rows):
            target, source = wanted + r * stride + c * 4, errors + r * error_stride
            add_outer(1, 1, target, stride, source, error_stride, feedback + c * 4, stride, count)


@njit(nogil=True)
def _choose_codes(wanted, values, scale, low, most, feedback, codes, errors):
    """Codes of one group; each column's error changes what the columns after it are rounded to.

    wanted, values, codes, errors: of the group's columns, a multiple of eight; feedback: its rows and columns of the
    whole, zero up to its diagonal, so that eight columns at a time can take what the last one passes on.
    """
    width = wanted.shape[0]
    for first in range(0, width, 8):
        for i in range(first, first + 8):
            code = _code_of(wanted[i], most, scale, low)
            codes[i] = code
            error = values[i] - (np.float32(code) * scale + low)
            errors[i] = error
            for k in range(8):
                wanted[first + k] += error * feedback[i, first + k]
        source, stride = errors.ctypes.data + first * 4, feedback.strides[0]
        for c in range(first + 8, width, 8):
            passed = feedback.ctypes.data + first * stride + c * 4
            add_outer(1, 1, wanted.ctypes.data + c * 4, 0, source, 0, passed, stride, 8)


@njit(
    "void(float32[:, ::1], float32[::1], float32[:, ::1], boolean, int64, int64,"
    " uint8[:, ::1], float32[:, ::1], float32[:, ::1], int64, int64)",
    nogil=True,
    cache=True,
)
def round_rows(weight, importance, feedback, passes_on, bits, group, codes, scales, lows, first, last):
    """Rows first to last - 1, some at a time so that what they share stays in the cache."""
    columns = weight.shape[1]
    most = np.float32((1 << bits) - 1)
    errors = np.empty((BLOCK_ROWS, group), np.float32)
    for begin in range(first, last, BLOCK_ROWS):
        end = min(begin + BLOCK_ROWS, last)
        wanted = weight[begin:end].copy()  # the values plus what earlier columns passed on
        for place in range(columns // group):
            left, right = place * group, (place + 1) * group
            for r in range(end - begin):
                row, share = wanted[r, left:right], importance[left:right]
                scale, low = _fit(row, share, most)
                scales[begin + r, place], lows[begin + r, place] = scale, low
                line = codes[begin + r, left:right]
                if passes_on:
                    values, block = weight[begin + r, left:right], feedback[left:right, left:right]
                    _choose_codes(row, values, scale, low, most, block, line, errors[r])
                else:
                    for i in range(group):
                        line[i] = _code_of(row[i], most, scale, low)
            if passes_on and right < columns:
                target, source = wanted.ctypes.data + right * 4, feedback[left, right:].ctypes.data
                rows = end - begin
                _add_products(target, columns * 4, errors.ctypes.data, group * 4, source, rows, group, columns - right)
