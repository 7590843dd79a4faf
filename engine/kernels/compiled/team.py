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
        self._passes = 0  # passes begun
        self._running = 0  # members other than the owner that have not finished the last one
        self._failure: BaseException | None = None
        lock = threading.Lock()
        self._begin, self._end = threading.Condition(lock), threading.Condition(lock)
        self._threads = [
            threading.Thread(target=self._work, args=(i + 1,), name=f"specular-kernel-{i + 1}", daemon=True)
            for i in range(size - 1)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, task: Callable[[int], None]) -> None:
        """Call task(member) on every member at once; returns when all have returned. Re-raises a member's failure."""
        self._wait_for_members()
        try:
            self._start(task)
            task(0)
        finally:
            self._wait_for_members()
            failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def close(self) -> None:
        """End the member threads and wait for them; `run` then runs the owner's part alone."""
        self._start(None)
        for thread in self._threads:
            thread.join()
        self._threads = []
        self._running = 0

    def _start(self, task: Callable[[int], None] | None) -> None:
        with self._begin:
            self._task, self._running = task, len(self._threads)
            self._passes += 1
            self._begin.notify_all()

    def _wait_for_members(self) -> None:
        """Returns only when no member runs, also if Ctrl+C strikes meanwhile: a pass resets what the last one used."""
        interrupt: KeyboardInterrupt | None = None
        while self._running:
            try:
                with self._end:
                    while self._running:
                        self._end.wait()
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def _work(self, member: int) -> None:
        done = 0
        while True:
            with self._begin:
                while self._passes == done:
                    self._begin.wait()
                task, done = self._task, self._passes
            if task is None:
                return
            try:
                task(member)
            except BaseException as failure:  # reported by run() in the owner's thread
                self._failure = failure
            with self._end:
                self._running -= 1
                if not self._running:
                    self._end.notify()
