"""The compiled form of a programme: a table of int64, one row an instruction, addresses and sizes bound.

Kept apart from `interpreter` so that building a table does not import the compiler.
"""

from __future__ import annotations

# Columns of an instruction.
# SYNC: what follows needs this and all before it. ON_TAIL: only the last `tail` rows of the pass.
OPERATION, SYNC, ON_TAIL = 0, 1, 2
SOURCE, SOURCE_STRIDE, TARGET, TARGET_STRIDE = 3, 4, 5, 6  # float32 buffers: addresses and bytes from row to row
WEIGHT, SCALE, BIAS, KIND = 7, 8, 9, 10
N, K = 11, 12
EXTRA_A, EXTRA_B, EXTRA_C, EXTRA_D, EXTRA_E = 13, 14, 15, 16, 17
# Where a result is wanted in int8 too: address and bytes from row to row, columns of a group, inverse factors.
QUANTISED, QUANTISED_STRIDE, GROUP, FACTORS = 18, 19, 20, 21
READS_NEXT = 22  # instructions from here to the next one that reads a matrix in stretches; 0 where there is none
COLUMNS = 23

# Operations.
EMBED, ADD_NORM, LINEAR, ROTATE_STORE, ATTEND, GATED_SILU, GATHERED_LINEAR, GATHERED_DOWN = range(8)
QUANTISE, LOWBIT_LINEAR, SCATTER, PLANE_MLP, PLANE_DOWN, ADD_POSITIONS, RELU = range(8, 15)

# Entries of the control array that one pass is started with.
ROWS, POSITION, TAIL, COUNTERS, THREADS = range(5)
CONTROL = 5

COUNTER_LINE = 64  # bytes: each counter of a pass has a cache line of its own


def counter_bytes(threads: int) -> int:
    """Bytes of one instruction's counters in a pass: blocks finished, then blocks taken of each thread's stretch."""
    return COUNTER_LINE * (threads + 1)
