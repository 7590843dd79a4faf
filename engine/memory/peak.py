"""The most memory that the program has taken since a load began, as the system counts it."""

from __future__ import annotations

import sys

import psutil

from engine.probes.nvml import NvmlProbe
from engine.probes.reading import CardProbe, Measure

HIDDEN = "Something before this load took more memory, which hides its peak."
NOT_TOLD = "This system does not tell the peak of a program's memory."


class PeakMeter:
    """Begins with a load. On a card the peak is of the readings, in RAM the system keeps it."""

    def __init__(self, probe: CardProbe | None = None) -> None:
        self._probe = probe
        self._card: str | None = None
        self._most = 0.0
        self._resident = float(psutil.Process().memory_info().rss)
        self._before = _peak_of_ram()

    def of_card(self, card: str | None) -> None:
        """The model is on the card with this UUID; None where it is in RAM."""
        self._card = card

    def read(self) -> Measure:
        """Bytes, as far as they are known."""
        if self._card is not None:
            return self._read_card(self._card)
        now = _peak_of_ram()
        if now is None or self._before is None:
            return Measure(None, NOT_TOLD)
        return Measure(now - self._resident) if now > self._before else Measure(None, HIDDEN)

    def _read_card(self, card: str) -> Measure:
        self._probe = self._probe or NvmlProbe()
        try:
            own = self._probe.read(card, bus=False).own
        finally:
            self._probe.rest()
        if own.value is None:
            return own
        self._most = max(self._most, own.value)
        return Measure(self._most)


def _peak_of_ram() -> float | None:
    """Bytes of RAM that this process had at most; None where the system does not tell."""
    if sys.platform == "win32":
        return float(psutil.Process().memory_info().peak_wset)
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(most if sys.platform == "darwin" else most * 1024)
