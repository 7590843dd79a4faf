"""What one look at the machine found. Every figure may be missing, and then says why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure, or None and the reason why there is none (a sentence for people)."""

    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CardReading:
    """One card.

    total, used, own: bytes of its memory, in use by anyone, in use by this process. busy: share of the time in which
    something ran on it, 0 to 1. received, sent: bytes a second over its bus, as the card sees it. celsius, watts.
    lost: nothing could be read at all; worth another try only after a while.
    """

    card: str
    name: str
    total: Measure
    used: Measure
    own: Measure
    busy: Measure
    received: Measure
    sent: Measure
    celsius: Measure
    watts: Measure
    lost: bool = False


@dataclass(frozen=True, slots=True)
class HostReading:
    """The computer. total, available, own: bytes of RAM, what can still be had, what this process has resident.

    own_mapped: of that, pages of files, which the system counts as available too.
    busy: share of all processors in use, 0 to 1. own_cores: processors that this process keeps busy (1.5 is one and a
    half).
    """

    total: Measure
    available: Measure
    own: Measure
    own_mapped: Measure
    busy: Measure
    own_cores: Measure


class CardProbe(Protocol):
    """Reads cards. One thread uses it."""

    def read(self, card: str, *, bus: bool) -> CardReading:
        """The card with this UUID; its bus only where asked for, because that takes 40 ms. Never raises."""
        ...

    def rest(self) -> None:
        """Let go of the driver, so that a card may sleep; the next `read` takes hold of it again."""
        ...


def nothing_known(card: str, reason: str, *, lost: bool = False) -> CardReading:
    """A reading without any figure."""
    none = Measure(None, reason)
    return CardReading(card, "", none, none, none, none, none, none, none, none, lost)


class NoProbe:
    """For computers without anything that could be asked: every figure is missing, for the same reason."""

    def __init__(self, reason: str = "This computer has no card that could be asked.") -> None:
        self._reason = reason

    def read(self, card: str, *, bus: bool) -> CardReading:
        """No figures."""
        return nothing_known(card, self._reason)

    def rest(self) -> None:
        """Nothing to let go of."""
