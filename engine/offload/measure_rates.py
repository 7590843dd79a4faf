"""Measures what a machine's memory, bus and disk give, in a fraction of a second each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from engine.offload.rates import Rates

HOST_COPY, CARD_COPY = 64 << 20, 256 << 20  # bytes: more than any cache holds
PIECE = 8 << 20
MOST_READ, LEAST_READ = 256 << 20, 16 << 20
ROUNDS = 4
# Of the bytes that a copy reads and writes in a second, what a pass reads: 77 to 96 % were found on cards.
PASS_SHARE = 0.8


def measured_rates(rates: Rates, device: str) -> Rates:
    """`rates` with what memory and bus give here. device: "cuda", whose memory must have half a gigabyte free, or
    "cpu". Raises RuntimeError where a card has no room."""
    if device == "cuda":
        return rates.measured(device=PASS_SHARE * card_bandwidth(), link=link_bandwidth())
    return rates.measured(device=PASS_SHARE * host_bandwidth())


def host_bandwidth(threads: int | None = None) -> float:
    """Bytes a second that a copy in RAM reads and writes. threads: that share it, None for one a core."""
    count = threads or os.cpu_count() or 1
    source, target = np.ones(HOST_COPY, np.uint8), np.zeros(HOST_COPY, np.uint8)
    edges = [HOST_COPY * part // count for part in range(count + 1)]

    def copy(part: int) -> None:
        np.copyto(target[edges[part] : edges[part + 1]], source[edges[part] : edges[part + 1]])

    with ThreadPoolExecutor(count, "specular-bandwidth") as pool:

        def all_parts() -> None:
            for _ in pool.map(copy, range(count)):
                pass

        return 2 * HOST_COPY / _fastest(all_parts)


def disk_rate(files: Iterable[Path]) -> float | None:
    """Bytes a second that the files are read at, pages that the system holds in RAM put out first where it lets us.

    At most a quarter of a gigabyte is read, from the files' ends. None where the files are too small to tell it.
    Raises OSError.
    """
    seconds, done = 0.0, 0
    for path in files:
        with path.open("rb", buffering=0) as file:
            size = min(os.fstat(file.fileno()).st_size, MOST_READ - done)
            start = file.seek(-size, os.SEEK_END) if size else 0
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), start, size, os.POSIX_FADV_DONTNEED)
            began, left = time.perf_counter(), size
            while left and (piece := file.read(min(PIECE, left))):
                left -= len(piece)
            seconds += time.perf_counter() - began
            done += size - left
        if done >= MOST_READ:
            break
    return done / max(seconds, 1e-9) if done >= LEAST_READ else None


def card_bandwidth() -> float:
    """Bytes a second that a copy in the current card's memory reads and writes."""
    import torch

    source = torch.empty(CARD_COPY, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * CARD_COPY / _fastest(lambda: _synchronised(lambda: target.copy_(source)))


def link_bandwidth() -> float:
    """Bytes a second of a copy from pinned memory to the current card."""
    import torch

    source = torch.empty(CARD_COPY, dtype=torch.uint8).pin_memory()
    target = torch.empty_like(source, device="cuda")
    return CARD_COPY / _fastest(lambda: _synchronised(lambda: target.copy_(source, non_blocking=True)))


def _synchronised(work: Callable[[], object]) -> None:
    import torch

    work()
    torch.cuda.synchronize()


def _fastest(work: Callable[[], None]) -> float:
    """Seconds of the fastest round; the first only warms up."""
    times = []
    for _ in range(1 + ROUNDS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return max(min(times[1:]), 1e-9)
