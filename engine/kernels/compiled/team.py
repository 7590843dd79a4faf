"""The threads that share a pass. The caller is member 0; the others sleep between passes."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Team:
    """`size` threads that run one function together. Not itself thread-safe: one owner calls `run` and `close`.

    The functions must release the GIL (numba nogil) and meet only inside themselves.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._task: Callable[[int], None] | None = None
        self._starts = [threading.Semaphore(0) for _ in range(size - 1)]
        self._finished = threading.Semaphore(0)
        self._failure: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._work, args=(i + 1,), name=f"specular-kernel-{i + 1}", daemon=True)
            for i in range(size - 1)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, task: Callable[[int], None]) -> None:
        """Call task(member) on every member at once; returns when all have returned. Re-raises a member's failure."""
        self._task = task
        for start in self._starts:
            start.release()
        try:
            task(0)
        finally:
            for _ in self._threads:
                self._finished.acquire()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def close(self) -> None:
        """End the member threads and wait for them."""
        self._task = None
        for start in self._starts:
            start.release()
        for thread in self._threads:
            thread.join()
        self._threads, self._starts = [], []

    def _work(self, member: int) -> None:
        start = self._starts[member - 1]
        while True:
            start.acquire()
            task = self._task
            if task is None:
                return
            try:
                task(member)
            except BaseException as failure:  # reported by run() in the owner's thread
                self._failure = failure
            finally:
                self._finished.release()
