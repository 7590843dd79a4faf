"""How many threads compute a pass on the CPU."""

from __future__ import annotations

import os

import psutil


def thread_count() -> int:
    """Threads of a pass: one a physical core, as far as this process may use them."""
    cores = psutil.cpu_count(logical=False) or 1
    return min(cores, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else cores
