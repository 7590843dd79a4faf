"""How often the draft is right that far: acceptance by the place of a proposal in its chain, with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from engine.records import CycleRecord

Z95 = 1.959964  # standard errors to each side of a 95 % interval


@dataclass(frozen=True, slots=True)
class PlaceShare:
    """Of `cycles` cycles that drafted at least `place` (from 1) tokens, in `right` the first `place` were all accepted.

    low, high: the 95 % interval of the share (Wilson's).
    """

    place: int
    cycles: int
    right: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """right over cycles."""
        return self.right / self.cycles


def acceptance_by_place(records: Iterable[CycleRecord]) -> tuple[PlaceShare, ...]:
    """One entry for each place that any cycle drafted."""
    cycles: list[int] = []
    right: list[int] = []
    for record in records:
        drafted = len(record.drafted_ids)
        while len(cycles) < drafted:
            cycles.append(0)
            right.append(0)
        for place in range(drafted):
            cycles[place] += 1
            right[place] += record.agreed > place
    return tuple(
        PlaceShare(place, n, k, *interval(k, n)) for place, (n, k) in enumerate(zip(cycles, right, strict=True), 1)
    )


def interval(right: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    share, z2 = right / of, Z95 * Z95
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = Z95 * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of)) / (1 + z2 / of)
    return max(0.0, middle - half), min(1.0, middle + half)
