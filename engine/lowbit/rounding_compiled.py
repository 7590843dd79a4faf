"""Rounding to few bits compiled for the CPU: the method of rounding.py, on several threads, without torch.

See rounding_rule.py for what is minimised and where the method is from.
"""

from __future__ import annotations

import threading

import numpy as np

from engine.kernels.compiled.round_groups import round_rows
from engine.kernels.compiled.unit_factor import unit_factor
from engine.lowbit.codes import LowBitCodes
from engine.lowbit.rounding_rule import FLOOR, RIDGE, shrinkage


def round_matrix_compiled(
    weight: np.ndarray,
    bits: int,
    group: int,
    mean_square: np.ndarray | None = None,
    feedback: np.ndarray | None = None,
    threads: int = 2,
) -> LowBitCodes:
    """Round to `bits` (1 to 8) in groups of `group` columns, which must divide K. See rounding.round_matrix.

    weight: float32 [N, K], finite. mean_square: float32 [K] or None. feedback: float32 [K, K] of
    `feedback_compiled` or None. Releases the GIL.
    """
    rows, columns = weight.shape
    weight = np.ascontiguousarray(weight, np.float32)
    importance = _importance(mean_square, columns)
    passes_on = feedback is not None
    passed = np.zeros((1, 1), np.float32) if feedback is None else np.ascontiguousarray(feedback, np.float32)
    codes = np.empty((rows, columns), np.uint8)
    scale, low = (np.empty((rows, columns // group), np.float32) for _ in range(2))

    def share(member: int) -> None:
        first, last = rows * member // threads, rows * (member + 1) // threads
        round_rows(weight, importance, passed, passes_on, bits, group, codes, scale, low, first, last)

    members = [threading.Thread(target=share, args=(i,)) for i in range(1, threads)]
    for member in members:
        member.start()
    share(0)
    for member in members:
        member.join()
    halves = scale.astype(np.float16), low.astype(np.float16)
    return LowBitCodes(codes, *halves, np.ones(columns, np.float32), bits, group)


def feedback_compiled(inputs: np.ndarray) -> np.ndarray:
    """As rounding.feedback_of: float32 [K, K] from inputs [tokens, K], without the first position of a text."""
    tokens, columns = inputs.shape
    values = inputs.astype(np.float32)
    moments = values.T @ values
    moments /= np.float32(max(tokens, 1))
    spread = moments.diagonal().copy()
    part = np.float32(shrinkage(tokens, columns))
    moments *= 1 - part
    moments[np.diag_indices(columns)] += part * spread + np.float32(RIDGE) * spread.mean() + np.float32(1e-30)
    unit_factor(moments)
    return moments


def _importance(mean_square: np.ndarray | None, columns: int) -> np.ndarray:
    """Weights of the columns' errors, about one on average; ones where nothing is known."""
    if mean_square is None:
        return np.ones(columns, np.float32)
    mean = mean_square.mean(dtype=np.float32)
    relative = mean_square / mean if mean > 0 else np.ones_like(mean_square)
    return (relative + np.float32(FLOOR)).astype(np.float32)
