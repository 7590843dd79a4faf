"""What a thread does while others finish an instruction: it asks for the weights it will read next.

Between two matrices there are short instructions for few threads; memory would stand still meanwhile.
"""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled.blocks import unfinished
from engine.kernels.compiled.vector_words import give_way, pause, prefetch_line

SPINS_BEFORE_YIELD = 2000  # about 30 us: longer than a block takes, shorter than a scheduler's slice
LINE = 64  # bytes of a cache line
EARLY_BYTES = 16384  # most that is asked for of what comes next: more would drive out what the thread works with
SURE_BYTES = 2048  # asked for even by a thread that need not wait


@njit(nogil=True)
def wait_for(counters, blocks, awaited, early):
    """Return once all blocks of the instruction are done; meanwhile ask for bytes at `awaited`, from `early` on.

    Returns how many bytes have been asked for.
    """
    spins = 0
    while unfinished(counters, blocks):
        if awaited != 0 and early < EARLY_BYTES:
            prefetch_line(awaited + early)
            early += LINE
        else:
            pause()
        spins += 1
        if spins > SPINS_BEFORE_YIELD:
            give_way()
    return early


@njit(nogil=True)
def read_early(awaited, early):
    """Ask for what a thread that goes on at once should have asked for; returns as wait_for."""
    while awaited != 0 and early < SURE_BYTES:
        prefetch_line(awaited + early)
        early += LINE
    return early
