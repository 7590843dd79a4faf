"""Ways to divide parts between the fast memory and the slots, counted by size: parts of one size are alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.offload.parts import MLP, Part
from engine.offload.plan import Residency

# Two slots let a copy run while a part is computed. A third would take the room that a part of its size could lie in
# for good, which saves that part's copy whether or not there is time before a pass.
SLOTS = 2
MOST_SIZES = 6  # of slots that are tried: models have two or three sizes of parts


@dataclass(frozen=True, slots=True)
class Layout:
    """resident: how many parts of each size, largest first, stay. others: where the rest lies.

    slots of slot_bytes each; none unless parts are streamed. ahead: bytes of parts that lie in them as a pass begins.
    resident_bytes, other_bytes: of the parts.
    """

    resident: tuple[int, ...]
    others: Residency
    slots: int
    slot_bytes: int
    ahead: int
    resident_bytes: int
    other_bytes: int


class Sizes:
    """The parts of a model, or of a device's share of one, by size."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        counts: dict[int, int] = {}
        for part in parts:
            counts[part.nbytes] = counts.get(part.nbytes, 0) + 1
        self._counts = sorted(counts.items(), reverse=True)
        self._smallest = min((size for size, count in self._counts if count > SLOTS), default=0)
        self.total = sum(part.nbytes for part in parts)
        # Attention needs the KV cache, and the output matrix the choice of tokens: both stay with the device.
        self._bound = Counter(part.nbytes for part in parts if part.kind != MLP)
        self._bound_bytes = sum(size * count for size, count in self._bound.items())

    def least(self, *, host: bool) -> int:
        """Bytes of the fast memory that no layout goes below. host: whether the CPU may compute MLPs."""
        least, larger = self._bound_bytes if host else self.total, 0
        for size, count in self._counts:
            least = min(least, larger + SLOTS * size)
            larger += size * count
        return least

    def layouts(self, room: int, *, host: bool) -> Iterator[Layout]:
        """Those that fit: everything resident, if that does; else for each size of slot the one that streams least.

        Slot by slot, more room never yields a layout that streams more, so that it is never slower.
        """
        if room >= self.total:
            yield Layout(tuple(count for _, count in self._counts), Residency.STREAMED, 0, 0, 0, self.total, 0)
            return
        if host and room >= self._bound_bytes:
            yield self._with_host(room)
        larger = 0
        for place, (size, count) in enumerate(self._counts[:MOST_SIZES]):
            if larger + SLOTS * size <= room:
                yield self._filled(room, place)
            larger += size * count

    def residency(self, layout: Layout) -> tuple[Residency, ...]:
        """Of every part. The first that do not stay lie in the slots as a pass begins, so they come at its beginning;
        the others are spread evenly up to its end, so that copies and computing take turns."""
        lies = [Residency.RESIDENT] * len(self.parts)
        for (size, count), stay in zip(self._counts, layout.resident, strict=True):
            alike = [place for place, part in enumerate(self.parts) if part.nbytes == size]
            leave = count - stay
            if layout.others is Residency.HOST:
                alike = [place for place in alike if self.parts[place].kind == MLP]
                count = len(alike)
            lead = min(leave, SLOTS if size == self._smallest == layout.slot_bytes else 1)
            rest, among = leave - lead, count - lead
            places = [*range(lead), *(lead + (turn + 1) * among // rest - 1 for turn in range(rest))]
            for place in places:
                lies[alike[place]] = layout.others
        return tuple(lies)

    def _filled(self, room: int, place: int) -> Layout:
        """Slots of the size at `place`; all larger parts stay, and as many others as there is room for, the largest
        first."""
        slot = self._counts[place][0]
        free, stay = room - SLOTS * slot, []
        for at, (size, count) in enumerate(self._counts):
            stay.append(count if at < place else min(count, free // size if size else count))
            free -= stay[-1] * size
        resident = room - SLOTS * slot - free
        return Layout(tuple(stay), Residency.STREAMED, SLOTS, slot, self._ahead(place), resident, self.total - resident)

    def _with_host(self, room: int) -> Layout:
        """As many MLPs as there is room for stay beside what is bound to the device; the CPU computes the others."""
        free, stay = room - self._bound_bytes, []
        for size, count in self._counts:
            bound = self._bound[size]
            stay.append(bound + min(count - bound, free // size if size else count))
            free -= (stay[-1] - bound) * size
        resident = room - free
        return Layout(tuple(stay), Residency.HOST, 0, 0, 0, resident, self.total - resident)

    def _ahead(self, place: int) -> int:
        """Bytes that the slots hold as a pass begins, at the least: with parts of two sizes, one of each."""
        slot, count = self._counts[place]
        if not 0 < self._smallest < slot:
            return SLOTS * slot
        return (slot if count > SLOTS else self._smallest) + self._smallest
