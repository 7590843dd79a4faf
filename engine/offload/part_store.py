"""The parts of a model on a card: each at home on it, in pinned RAM, or in the model's files where RAM is short.

Those that are not on the card take turns in slots there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from engine.offload.pinned import PinnedBuffer, has_ram, require_ram
from engine.offload.plan import Residency
from engine.offload.weight_stream import HostPart, WeightStream

ALIGNMENT = 256  # bytes: matrices begin where kernels may read whole lines

Tensor = torch.Tensor
Blocks = tuple[Tensor, ...]  # the rows of one matrix, block after block
Moved = Callable[[int, tuple[Blocks, ...]], None]  # a part, and its matrices where they lie now
Files = Callable[[int], tuple[Blocks, ...]]  # a part's matrices as views of mapped files


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a part lies. matrices: of one block each, but for those in files. starts: of each in the part's bytes.

    residency: HOST for what only its files hold, since the CPU reads it there. buffer: the pinned memory, None where
    it lies elsewhere.
    """

    matrices: tuple[Blocks, ...]
    starts: tuple[int, ...]
    residency: Residency
    buffer: PinnedBuffer | None = None

    @property
    def streamed(self) -> bool:
        """Whether it takes turns in the slots."""
        return self.residency is Residency.STREAMED

    @property
    def nbytes(self) -> int:
        """Bytes of the part in a slot."""
        return self.starts[-1] + _padded(_size(self.matrices[-1]))

    @property
    def in_files(self) -> bool:
        """Whether it is read from files."""
        return self.streamed and self.buffer is None

    def whole(self) -> tuple[Tensor, ...]:
        """The matrices, of one block each."""
        return tuple(blocks[0] if len(blocks) == 1 else torch.cat(blocks) for blocks in self.matrices)

    def host_part(self, index: int) -> HostPart:
        """How it is brought in."""
        if self.buffer is not None:
            return HostPart(index, self.nbytes, ((0, self.buffer.data),), pinned=not self.buffer.note)
        pieces: list[tuple[int, Tensor]] = []
        for start, blocks in zip(self.starts, self.matrices, strict=True):
            for block in blocks:
                pieces.append((start, block.contiguous().view(torch.uint8).flatten()))
                start += block.nbytes
        return HostPart(index, self.nbytes, tuple(pieces), pinned=False)


class PartStore:
    """Homes of parts, by their numbers in the order of a pass. All calls come from the thread that owns the card."""

    def __init__(self, device: torch.device, files: Files | None = None) -> None:
        """files: where parts may stay that RAM is too short for; None where there are none."""
        self._device, self._files = device, files
        self._homes: dict[int, _Home] = {}
        self._brought = 0  # by streams that have ended
        self.stream: WeightStream | None = None

    def put(self, index: int, matrices: Sequence[Tensor], residency: Residency) -> tuple[Blocks, ...]:
        """Take a part's matrices, wherever they lie; where they lie from now on. Raises as PinnedBuffer."""
        starts, size = [], 0
        for matrix in matrices:
            starts.append(size)
            size += _padded(matrix.nbytes)
        buffer = None
        if residency is Residency.RESIDENT:
            kept: tuple[Blocks, ...] = tuple((matrix.to(self._device),) for matrix in matrices)
        elif self._files is not None and (residency is Residency.HOST or not has_ram(size)):
            kept = self._files(index)
        else:
            buffer = PinnedBuffer(size)
            kept = tuple((_view(buffer.data, start, matrix),) for start, matrix in zip(starts, matrices, strict=True))
            for target, matrix in zip(kept, matrices, strict=True):
                target[0].copy_(matrix)
        self._homes[index] = _Home(kept, tuple(starts), residency, buffer)
        return kept

    def home(self, index: int) -> tuple[Tensor, ...]:
        """A part's matrices, where they lie; those that are in files are read."""
        return self._homes[index].whole()

    def residency(self, index: int) -> Residency:
        """Where a part lies."""
        return self._homes[index].residency

    def start(self, slots: int) -> None:
        """Give the parts that are not on the card slots to take turns in; none where all are."""
        parts = [home.host_part(index) for index, home in sorted(self._homes.items()) if home.streamed]
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
        if home.residency is Residency.HOST:
            return tuple(blocks[0] for blocks in home.matrices)  # no kernel reads them
        if not home.streamed or self.stream is None:
            return home.whole()
        slot = self.stream.slot(index)
        return tuple(_view(slot, start, *blocks) for start, blocks in zip(home.starts, home.matrices, strict=True))

    def move(self, residency: Mapping[int, Residency], moved: Moved, progress: Callable[[int, int], None]) -> None:
        """Have parts lie elsewhere, on the card those that are not named; the slots must have been given back.

        moved: told of each part that lies elsewhere now: it must keep nothing of where it lay, or no memory is freed.
        progress: (done, total). Raises SpecularError where RAM is too short, and what the card raises for want of
        memory; all then lies as before.
        """
        before = {index: home.residency for index, home in self._homes.items()}
        wanted = {index: residency.get(index, Residency.RESIDENT) for index in before}
        changed = [index for index in before if wanted[index] is not before[index]]
        leaving = [index for index in changed if wanted[index] is not Residency.RESIDENT]
        coming = [index for index in changed if wanted[index] is Residency.RESIDENT]
        total = len(leaving) + len(coming)
        if self._files is None:
            require_ram(sum(self._homes[index].nbytes for index in leaving))
        left: list[int] = []
        fetched: dict[int, tuple[Tensor, ...]] = {}
        try:
            for index in leaving:
                progress(len(left), total)
                moved(index, self._resettle(index, self.home(index), wanted[index]))
                left.append(index)
            _free(self._device)
            for index in coming:  # host memory is kept until all are there, so that a failure can be undone
                progress(len(left) + len(fetched), total)
                fetched[index] = tuple(matrix.to(self._device) for matrix in self.home(index))
        except BaseException:
            fetched.clear()
            _free(self._device)
            for index in left:
                moved(index, self._resettle(index, self.home(index), before[index]))
            raise
        for index, matrices in fetched.items():
            moved(index, self._resettle(index, matrices, Residency.RESIDENT))
        progress(total, total)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people about what did not go as it should."""
        found = []
        buffers = [home.buffer for home in self._homes.values() if home.buffer is not None and home.buffer.note]
        if buffers:
            size = sum(len(buffer.data) for buffer in buffers)
            found.append(f"{buffers[0].note} It is {size / 1e9:.2f} GB.")
        size = sum(home.nbytes for home in self._homes.values() if home.in_files)
        if size:
            found.append(f"RAM is short: {size / 1e9:.2f} GB of the model are read from its files for every full pass.")
        return tuple(found)

    def close(self) -> None:
        """Give the host memory back, once nothing copies from it any more."""
        self.stop()
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        for home in self._homes.values():
            if home.buffer is not None:
                home.buffer.close()
        self._homes.clear()

    def _resettle(self, index: int, matrices: tuple[Tensor, ...], residency: Residency) -> tuple[Blocks, ...]:
        """A part lies elsewhere from now on; the host memory it had goes."""
        buffer = self._homes[index].buffer
        kept = self.put(index, matrices, residency)
        if buffer is not None:
            buffer.close()
        return kept


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


def _size(blocks: Blocks) -> int:
    return sum(block.nbytes for block in blocks)


def _view(data: Tensor, start: int, *like: Tensor) -> Tensor:
    """The bytes from `start` on as a matrix of the type and shape that blocks of rows have together."""
    matrix = data[start : start + _size(like)].view(like[0].dtype)
    return matrix.view(-1, *like[0].shape[1:])
