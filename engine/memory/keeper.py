"""The thread beside a paged KV cache: creates pages ahead of need, gives them back when nobody needs them.

It computes nothing and maps nothing: pages get addresses only between cycles, in the thread that makes the reply.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol

from engine.memory.pages import PageError

IDLE_SECONDS = 0.9  # after which the pool goes back to the device
WATCH_SECONDS = 1.0  # between two looks at the device's free memory
LEAST_FREE = 256 << 20  # bytes: with less free, others need the memory more than idle conversations do


class Kept(Protocol):
    """The part of a KV cache that its keeper needs; see KvCache."""

    @property
    def resting(self) -> bool: ...
    def attach(self) -> None: ...
    def held(self) -> int: ...
    def free_bytes(self) -> int: ...
    def fill_pool(self) -> None: ...
    def drain_pool(self) -> None: ...
    def make_way(self, least: int) -> None: ...


class Keeper:
    """Sleeps until it is woken, and looks around every second only while there is memory to give back."""

    def __init__(self, cache: Kept) -> None:
        self._cache = cache
        self._condition = threading.Condition()
        self._woken = self._ended = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Something changed. The first time this starts the thread."""
        with self._condition:
            self._woken = True
            if self._thread is None and not self._ended:
                self._thread = threading.Thread(target=self._run, name="kv-keeper", daemon=True)
                self._thread.start()
            self._condition.notify()

    def close(self) -> None:
        """End the thread and wait for it."""
        with self._condition:
            self._ended = True
            self._condition.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        changed_at = time.monotonic()
        try:
            self._cache.attach()
            while self._wait():
                if self._woken:
                    self._woken, changed_at = False, time.monotonic()
                self._tend(time.monotonic() - changed_at)
        except PageError:
            return  # the device is gone; whoever computes on it next says so

    def _wait(self) -> bool:
        """Until something changes or it is time to look; False when the thread shall end."""
        with self._condition:
            if not self._woken and not self._ended:
                self._condition.wait(WATCH_SECONDS if self._cache.held() else None)
            return not self._ended

    def _tend(self, quiet_seconds: float) -> None:
        cache = self._cache
        cache.fill_pool()
        if cache.resting and quiet_seconds >= IDLE_SECONDS:
            cache.drain_pool()
        if cache.held() and cache.free_bytes() < LEAST_FREE:
            cache.make_way(LEAST_FREE)
