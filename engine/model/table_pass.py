"""Starts tables, or parts of them, on the threads that compute a pass on the CPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.kernels.compiled import table as t
from engine.kernels.compiled.interpreter import run
from engine.kernels.compiled.team import Team


class TablePass:
    """One pass at a time: `begin` says over which tokens, `run` executes instructions, all at once or part by part."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self._control = np.zeros(t.CONTROL, np.int64)
        self._control[t.THREADS] = team.size
        self._counters = np.zeros(0, np.int64)
        self._counter_words = t.counter_bytes(team.size) // 8
        self._ids = np.zeros(0, np.int64)

    def begin(self, tokens: Sequence[int], position: int, wanted: int) -> None:
        """A pass over tokens at `position`, of which the last `wanted` rows make logits."""
        self._ids = np.asarray(tokens, np.int64)
        control = self._control
        control[t.ROWS], control[t.POSITION], control[t.TAIL] = len(self._ids), position, wanted

    def run(self, table: np.ndarray) -> None:
        """Execute these instructions of it; returns when all are done."""
        counters = len(table) * self._counter_words
        if len(self._counters) < counters:
            self._counters = np.zeros(counters, np.int64)
        self._counters[:] = 0
        self._control[t.COUNTERS] = self._counters.ctypes.data
        addresses = table.ctypes.data, len(table), self._control.ctypes.data, self._ids.ctypes.data
        self._team.run(lambda member: run(*addresses, member))
