"""The parts of a model on a card: each at home on it, or in pinned host memory, from where it takes turns in slots."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import torch

from engine.offload.pinned import PinnedBuffer, require_ram
from engine.offload.weight_stream import HostPart, WeightStream

ALIGNMENT = 256  # bytes: matrices begin where kernels may read whole lines

Tensor = torch.Tensor
Moved = Callable[[int, tuple[Tensor, ...]], None]  # a part and its matrices where they lie now


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a part lies. buffer: the host memory that the matrices are views of; None on the card.

    starts: where each matrix begins in the part's bytes.
    """

    matrices: tuple[Tensor, ...]
    buffer: PinnedBuffer | None
    starts: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the part in a slot."""
        return self.starts[-1] + _padded(self.matrices[-1].nbytes)


class PartStore:
    """Homes of parts, by their numbers in the order of a pass. All calls come from the thread that owns the card."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._homes: dict[int, _Home] = {}
        self._brought = 0  # by streams that have ended
        self.stream: WeightStream | None = None

    def put(self, index: int, matrices: Sequence[Tensor], *, streamed: bool) -> tuple[Tensor, ...]:
        """Take a part's matrices, wherever they lie; where they lie from now on. Raises as PinnedBuffer."""
        starts, size = [], 0
        for matrix in matrices:
            starts.append(size)
            size += _padded(matrix.nbytes)
        if streamed:
            buffer = PinnedBuffer(size)
            kept = tuple(_view(buffer.data, start, matrix) for start, matrix in zip(starts, matrices, strict=True))
            for target, matrix in zip(kept, matrices, strict=True):
                target.copy_(matrix)
            self._homes[index] = _Home(kept, buffer, tuple(starts))
        else:
            kept = tuple(matrix.to(self._device) for matrix in matrices)
            self._homes[index] = _Home(kept, None, tuple(starts))
        return kept

    def home(self, index: int) -> tuple[Tensor, ...]:
        """A part's matrices where they lie."""
        return self._homes[index].matrices

    def streams(self, index: int) -> bool:
        """Whether a part is brought in for each pass."""
        return self._homes[index].buffer is not None

    def start(self, slots: int) -> None:
        """Give the parts in host memory slots to take turns in; none where all lie on the card."""
        homes = sorted(self._homes.items())
        parts = [HostPart(index, home.buffer.data) for index, home in homes if home.buffer is not None]
        self.stream = WeightStream(parts, slots, self._device) if parts else None

    def stop(self) -> None:
        """Give the slots back. What reads them must have ended."""
        if self.stream is not None:
            self._brought += self.stream.brought_bytes
            self.stream = None

    @property
    def brought_bytes(self) -> int:
        """Bytes that passes have brought in so far."""
        return self._brought + (0 if self.stream is None else self.stream.brought_bytes)

    def ready(self, index: int) -> tuple[Tensor, ...]:
        """A part's matrices where kernels read them: on the card, or in its slot."""
        home = self._homes[index]
        if home.buffer is None or self.stream is None:
            return home.matrices
        slot = self.stream.slot(index)
        return tuple(_view(slot, start, like) for start, like in zip(home.starts, home.matrices, strict=True))

    def move(self, streamed: Collection[int], moved: Moved, progress: Callable[[int, int], None]) -> None:
        """Have the named parts in host memory and all others on the card; the slots must have been given back.

        moved: told of each part that lies elsewhere now: it must keep nothing of where it lay, or no memory is freed.
        progress: (done, total). Raises SpecularError where RAM is too short, and what the card raises for want of
        memory; all then lies as before.
        """
        leaving = [index for index in self._homes if index in streamed and not self.streams(index)]
        coming = [index for index in self._homes if index not in streamed and self.streams(index)]
        total = len(leaving) + len(coming)
        require_ram(sum(self._homes[index].nbytes for index in leaving))
        left: list[int] = []
        fetched: dict[int, tuple[Tensor, ...]] = {}
        try:
            for index in leaving:
                progress(len(left), total)
                moved(index, self.put(index, self.home(index), streamed=True))
                left.append(index)
            _free(self._device)
            for index in coming:  # host memory is kept until all are there, so that a failure can be undone
                progress(len(left) + len(fetched), total)
                fetched[index] = tuple(matrix.to(self._device) for matrix in self.home(index))
        except BaseException:
            fetched.clear()
            _free(self._device)
            for index in left:
                moved(index, self._come_home(index))
            raise
        for index, matrices in fetched.items():
            self._release(index, matrices)
            moved(index, matrices)
        progress(total, total)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people about what did not go as it should."""
        buffers = [home.buffer for home in self._homes.values() if home.buffer is not None and home.buffer.note]
        size = sum(len(buffer.data) for buffer in buffers)
        return (f"{buffers[0].note} It is {size / 1e9:.2f} GB.",) if buffers else ()

    def close(self) -> None:
        """Give the host memory back, once nothing copies from it any more."""
        self.stop()
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        for home in self._homes.values():
            if home.buffer is not None:
                home.buffer.close()
        self._homes.clear()

    def _come_home(self, index: int) -> tuple[Tensor, ...]:
        matrices = tuple(matrix.to(self._device) for matrix in self.home(index))
        self._release(index, matrices)
        return matrices

    def _release(self, index: int, matrices: tuple[Tensor, ...]) -> None:
        """A part lies on the card now; its host memory goes."""
        home = self._homes[index]
        self._homes[index] = _Home(matrices, None, home.starts)
        if home.buffer is not None:
            home.buffer.close()


def part_bytes(sizes: Sequence[int]) -> int:
    """Of a part in host memory or a slot, whose matrices take so many bytes each."""
    return sum(map(_padded, sizes))


def _free(device: torch.device) -> None:
    """Let the device have back what was let go of."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _view(data: Tensor, start: int, like: Tensor) -> Tensor:
    """The bytes from `start` on as a matrix of another's type and shape."""
    return data[start : start + like.nbytes].view(like.dtype).view(like.shape)
