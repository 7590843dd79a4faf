"""Parts of a model that lie in host memory and take turns in a few slots on the card, one pass after another.

The n-th streamed part of a pass lies in slot n mod slots. A pass finds its first parts in their slots already: they are
brought in as soon as the pass before has ended, while the draft runs. Each later one is copied on a side stream once
the part that had its slot is done with. The copies of a pass are captured into its graph like its kernels, so that a
replay needs no host. A copy never changes a bit: what kernels read is what they would have read from the card.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

Tensor = torch.Tensor


@dataclass(frozen=True, slots=True)
class HostPart:
    """A part by its number in the order of a pass. pieces: its bytes in host memory, uint8, and where each begins.

    pinned: whether all of them are in memory that the card copies from by itself.
    """

    index: int
    nbytes: int
    pieces: tuple[tuple[int, Tensor], ...]
    pinned: bool = True


class WeightStream:
    """Brings parts in. All calls come from the thread that owns the card; without a card copies are done at once.

    captures: whether passes can be captured with their copies. Memory that is not pinned needs the host for each copy.

    A pass calls `begin`, then `before` and `after` around every part, streamed or not, and `end`, eagerly or while it
    is captured. Outside of captures, `wait` comes before each pass or replay and `prefetch` after it.
    """

    def __init__(self, parts: Sequence[HostPart], slots: int, device: torch.device) -> None:
        """parts: in the order of a pass. slots: at least two, fewer than parts are resident parts."""
        self._parts = tuple(parts)
        self._place = {part.index: number for number, part in enumerate(parts)}
        self.captures = all(part.pinned for part in parts)
        size = max(part.nbytes for part in parts)
        self._slots = torch.zeros(min(slots, len(parts)), size, dtype=torch.uint8, device=device)
        self._side = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._ready = torch.cuda.Event() if device.type == "cuda" else None
        self._loaded: dict[int, torch.cuda.Event] = {}
        self._passes = -1  # the first prefetch ends none
        self._dry = False
        self.prefetch()

    @property
    def pass_bytes(self) -> int:
        """Bytes that a pass brings in."""
        return sum(part.nbytes for part in self._parts)

    @property
    def brought_bytes(self) -> int:
        """Bytes that passes have brought in so far."""
        return max(0, self._passes) * self.pass_bytes

    def slot(self, index: int) -> Tensor:
        """The bytes of a part where kernels read them, uint8."""
        number = self._place[index]
        return self._slots[number % len(self._slots)][: self._parts[number].nbytes]

    @contextmanager
    def dry(self) -> Iterator[None]:
        """Within, a pass runs over whatever lies in the slots: kernels are made ready by it, and nothing is copied."""
        self._dry = True
        try:
            yield
        finally:
            self._dry = False

    def begin(self) -> None:
        """A pass begins on the current stream."""
        if self._side is not None and not self._dry:
            self._side.wait_stream(torch.cuda.current_stream())
        self._loaded.clear()

    def before(self, index: int) -> bool:
        """Let the current stream wait for a part; whether it was told to, so that what follows must not begin early."""
        number = self._place.get(index)
        if number is None:
            return False
        if number in self._loaded and not self._dry:
            torch.cuda.current_stream().wait_event(self._loaded[number])
        return True

    def after(self, index: int) -> None:
        """What was queued on the current stream has been all that reads a part: its slot goes to another."""
        number = self._place.get(index)
        if number is None or number + len(self._slots) >= len(self._parts) or self._dry:
            return
        following = number + len(self._slots)
        if self._side is None:
            self._copy(following)
            return
        self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side):
            self._copy(following)
            event = torch.cuda.Event()
            event.record(self._side)
        self._loaded[following] = event

    def end(self) -> None:
        """The pass has ended; what was copied for it belongs to it."""
        if self._side is not None and not self._dry:
            torch.cuda.current_stream().wait_stream(self._side)

    def prefetch(self) -> None:
        """Bring the first parts of the next pass in, once what was queued on the current stream is done."""
        self._passes += 1
        if self._side is None or self._ready is None:
            for number in range(len(self._slots)):
                self._copy(number)
            return
        self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side):
            for number in range(len(self._slots)):
                self._copy(number)
            self._ready.record(self._side)

    def wait(self) -> None:
        """Let the current stream wait for the first parts."""
        if self._ready is not None:
            torch.cuda.current_stream().wait_event(self._ready)

    def _copy(self, number: int) -> None:
        slot = self._slots[number % len(self._slots)]
        for start, data in self._parts[number].pieces:
            slot[start : start + len(data)].copy_(data, non_blocking=True)
