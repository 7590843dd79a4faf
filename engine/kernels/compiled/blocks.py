"""Sharing out the blocks of an instruction: whoever is free takes the next; nobody waits for a thread, only for work.

Two counters an instruction, both only growing during a pass: blocks taken and blocks finished. A thread that the
system has put to sleep holds up nothing but the one block it was computing; the others do the rest without it.
"""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled.vector_words import atomic_add, atomic_load, give_way, pause

COUNTER_BYTES = 128  # an instruction's two counters, each on a cache line of its own
SPINS_BEFORE_YIELD = 2000  # about 30 us: longer than a block takes, shorter than a scheduler's slice


@njit(nogil=True)
def take(counters):
    """The next block of this instruction nobody has taken; may be past the last."""
    return atomic_add(counters, 1)


@njit(nogil=True)
def finish(counters):
    """Say that one block is done, its results visible to whoever sees the count."""
    atomic_add(counters + COUNTER_BYTES // 2, 1)


@njit(nogil=True)
def wait_for(counters, blocks):
    """Return once all blocks of the instruction are done."""
    spins = 0
    while atomic_load(counters + COUNTER_BYTES // 2) < blocks:
        pause()
        spins += 1
        if spins > SPINS_BEFORE_YIELD:
            give_way()
