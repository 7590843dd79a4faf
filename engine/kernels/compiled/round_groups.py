"""Rounding rows of a matrix to few bits, group after group: the method of engine/lowbit/rounding_rule.py."""

from __future__ import annotations

import numpy as np
from numba import njit

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


@njit(nogil=True, fastmath=SUMS_IN_ANY_ORDER)
def _add_products(wanted, errors, feedback, first, last, start, stop):
    """wanted[r, start:stop] += errors[r, j] * feedback[first + j, start:stop], j to last - first: four at a time."""
    for r in range(wanted.shape[0]):
        line = wanted[r, start:stop]
        for j in range(0, last - first, 4):
            a, b, c, d = errors[r, j], errors[r, j + 1], errors[r, j + 2], errors[r, j + 3]
            one, two = feedback[first + j, start:stop], feedback[first + j + 1, start:stop]
            three, four = feedback[first + j + 2, start:stop], feedback[first + j + 3, start:stop]
            for k in range(stop - start):
                line[k] += a * one[k] + b * two[k] + c * three[k] + d * four[k]


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
                for i in range(group):
                    code = _code_of(row[i], most, scale, low)
                    codes[begin + r, left + i] = code
                    if passes_on:
                        error = weight[begin + r, left + i] - (np.float32(code) * scale + low)
                        errors[r, i] = error
                        line = feedback[left + i]
                        for k in range(i + 1, group):
                            row[k] += error * line[left + k]
            if passes_on and right < columns:
                _add_products(wanted, errors[: end - begin], feedback, left, right, right, columns)
