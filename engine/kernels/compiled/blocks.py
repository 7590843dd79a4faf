"""Sharing out the blocks of an instruction: a thread begins with its own stretch of them, then helps the others.

Stretches are contiguous, so that a thread walks through a matrix in order and knows early what it will read next. A
counter of blocks taken for each stretch and one of blocks finished, all only growing during a pass: nobody waits for a
thread, only for work. A thread that the system has put to sleep holds up nothing but the one block it was computing.
"""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled.table import COUNTER_LINE
from engine.kernels.compiled.vector_words import atomic_add, atomic_load


@njit(nogil=True)
def stretch_start(blocks, owner, threads):
    """The first block of a thread's stretch; the next thread's is where it ends."""
    return blocks * owner // threads


@njit(nogil=True)
def take(counters, blocks, thread, threads):
    """A block of this instruction that nobody has taken, from the thread's own stretch if there is one; -1 if none."""
    for turn in range(threads):
        owner = (thread + turn) % threads
        first, end = stretch_start(blocks, owner, threads), stretch_start(blocks, owner + 1, threads)
        taken = counters + COUNTER_LINE * (owner + 1)
        if atomic_load(taken) < end - first:
            block = first + atomic_add(taken, 1)
            if block < end:
                return block
    return -1


@njit(nogil=True)
def finish(counters):
    """Say that one block is done, its results visible to whoever sees the count."""
    atomic_add(counters, 1)


@njit(nogil=True)
def unfinished(counters, blocks):
    """Whether a block of the instruction is still being computed."""
    return atomic_load(counters) < blocks
