"""RAM and processors of the computer, and what this process takes of them."""

from __future__ import annotations

from collections.abc import Callable

import psutil

from engine.probes.reading import HostReading, Measure

FIRST = "Measured between two readings; this is the first."


class HostProbe:
    """Shares are of the time since the reading before. One thread uses it."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._begun = False

    def read(self) -> HostReading:
        """How it stands."""
        memory = psutil.virtual_memory()
        reading = HostReading(
            total=Measure(float(memory.total)),
            available=Measure(float(memory.available)),
            own=_measure(lambda: float(self._process.memory_info().rss)),
            own_mapped=_measure(lambda: float(getattr(self._process.memory_info(), "shared", 0))),
            busy=self._since_last(lambda: psutil.cpu_percent(None) / 100),
            own_cores=self._since_last(lambda: self._process.cpu_percent(None) / 100),
        )
        self._begun = True
        return reading

    def rest(self) -> None:
        """The next reading is a first one again."""
        self._begun = False

    def _since_last(self, call: Callable[[], float]) -> Measure:
        found = _measure(call)
        return found if self._begun else Measure(None, FIRST)


def _measure(call: Callable[[], float]) -> Measure:
    try:
        return Measure(call())
    except psutil.Error as error:
        return Measure(None, f"The system does not tell it: {error}.")
