"""Where the threads of one pass meet: a counter that only grows, so that no round can be mistaken for the next."""

from __future__ import annotations

from numba import njit

from engine.kernels.compiled.vector import atomic_add, atomic_load, give_way, pause

SPINS_BEFORE_YIELD = 2000  # about 30 us: longer than any imbalance, shorter than a scheduler's slice


@njit(nogil=True)
def meet(counter, expected):
    """Count this thread in, then wait until `expected` arrivals have been counted since the pass began."""
    atomic_add(counter, 1)
    spins = 0
    while atomic_load(counter) < expected:
        pause()
        spins += 1
        if spins > SPINS_BEFORE_YIELD:
            give_way()
