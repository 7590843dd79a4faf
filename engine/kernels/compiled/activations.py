"""What an MLP does between its matrices, and the running statistic that neuron selection reads."""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.kernels.compiled import table as t
from engine.kernels.compiled.quantise_input import quantise_columns
from engine.kernels.compiled.vector_lanes import relu_to, silu_times
from engine.kernels.compiled.vector_words import field, load_f32, store_f32

NEURONS_OF_BLOCK = 256
DECAY = np.float32(0.9)  # of the moving average, per pass: about the last ten verified tokens


@njit(nogil=True)
def gated_silu(step, rows, block):
    """One block of target[row, i] = silu(source[row, i]) * source[row, N + i] for N neurons (a multiple of eight):
    SwiGLU (Shazeer 2020).

    EXTRA_A: float32 moving average of |activation| per neuron, or 0. Only row 0 feeds it: the one row of a verify
    pass that is sure to be committed. It steers the draft and can therefore never change a token.
    """
    n0 = block * NEURONS_OF_BLOCK
    n1 = min(field(step, t.N), n0 + NEURONS_OF_BLOCK)
    for row in range(rows):
        gate = field(step, t.SOURCE) + row * field(step, t.SOURCE_STRIDE) + n0 * 4
        target = field(step, t.TARGET) + row * field(step, t.TARGET_STRIDE)
        silu_times(gate, gate + field(step, t.N) * 4, target + n0 * 4, n1 - n0)
        quantise_columns(step, target, row, field(step, t.N), n0, n1)
    observe(step, n0, n1)


@njit(nogil=True)
def relu(step, rows, block):
    """One block of target[row, i] = max(source[row, i], 0); a NaN stays one. EXTRA_A: as in gated_silu."""
    n0 = block * NEURONS_OF_BLOCK
    n1 = min(field(step, t.N), n0 + NEURONS_OF_BLOCK)
    for row in range(rows):
        source = field(step, t.SOURCE) + row * field(step, t.SOURCE_STRIDE) + n0 * 4
        target = field(step, t.TARGET) + row * field(step, t.TARGET_STRIDE)
        relu_to(source, target + n0 * 4, n1 - n0)
        quantise_columns(step, target, row, field(step, t.N), n0, n1)
    observe(step, n0, n1)


@njit(nogil=True)
def observe(step, n0, n1):
    """Let row 0 of the target feed the moving average, where there is one."""
    if field(step, t.EXTRA_A) != 0:
        for n in range(n0, n1):
            average = field(step, t.EXTRA_A) + n * 4
            now = abs(load_f32(field(step, t.TARGET) + n * 4))
            store_f32(average, DECAY * load_f32(average) + (np.float32(1.0) - DECAY) * now)
