"""Parts of a model that lie in its files and take turns in a few slots of RAM, one full pass after another.

A slot is a buffer of our own that a thread reads the file into, not a window of a mapped file: its size is the bound,
to the byte; its bytes can be counted; a pass can wait for it without a thread of kernels standing in a page fault; and
a file that has been cut short, or a disk that fails, is an error in a sentence where a mapping would end the process.
The price is one copy out of the system's file cache, made by the reading thread beside the kernels. Those pages of the
cache are the system's to take back at any time; where RAM could not hold all of the streamed parts anyway they are
given up at once, because they would be pushed out before their next use, and other pages with them.

The n-th streamed part of a pass lies in slot n mod slots, so that a table of addresses is right for good. When a part
is done with, its slot is read full with the next one that belongs there, and at the end of a pass with the first ones
of the next pass: they come in while the draft runs. What kernels read is what the file holds: not a bit changes.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import numpy as np

from engine.errors import ModelFileError, PassStopped
from engine.files.disguise import unreadable
from engine.files.safetensors_header import TensorEntry
from engine.offload.transfers import Transfers

ALIGNMENT = 64  # bytes: matrices begin where a cache line does
PIECE = 8 << 20  # bytes read at a time, so that closing never waits long
LOOK = 0.05  # seconds between two looks at whether a stop was asked for
NOTHING = -1  # in a slot


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part by its tensors in their files, in the order of a pass."""

    tensors: tuple[TensorEntry, ...]

    @property
    def nbytes(self) -> int:
        """Of its tensors."""
        return sum(tensor.nbytes for tensor in self.tensors)

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each tensor begins in a slot."""
        found, at = [], 0
        for tensor in self.tensors:
            found.append(at)
            at += _padded(tensor.nbytes)
        return tuple(found)

    @property
    def room(self) -> int:
        """Bytes of a slot it takes."""
        return sum(_padded(tensor.nbytes) for tensor in self.tensors)


class HostStream:
    """Brings parts in. One thread owns it and calls everything; a thread of its own reads.

    A pass calls `acquire` before and `release` after each part, in order; a pass that ends early just stops. `stopped`
    is asked while a pass waits.
    """

    def __init__(self, parts: Sequence[FilePart], slots: int, *, cached: bool = True) -> None:
        """cached: whether the system's file cache may keep what was read. Raises ModelFileError for a file that has
        gone, MemoryError where there is no room for the slots."""
        self._parts = tuple(parts)
        self._slots = np.empty((min(slots, len(parts)), max(part.room for part in parts)), np.uint8)
        self._cached = cached
        self._holds = [NOTHING] * len(self._slots)  # the part that lies there as a whole
        self._wants = [NOTHING] * len(self._slots)  # the part that should
        self._fresh = [False] * len(self._slots)  # read since it was last used
        self._queue: deque[int] = deque()  # slots to look at, in the order in which passes need them
        self._faults: dict[int, ModelFileError] = {}  # of parts that could not be read
        self._changed = threading.Condition()
        self._closing = False
        self._bytes, self._waited = 0, 0.0
        self.stopped: Callable[[], bool] = lambda: False
        self._files: dict[Path, FileIO] = {}
        self._open_files()
        self._thread = threading.Thread(target=self._read_on, name="specular-weights", daemon=True)
        self._thread.start()
        with self._changed:
            for slot in range(len(self._slots)):
                self._want(slot, slot)

    @property
    def slot_bytes(self) -> int:
        """Memory of all slots."""
        return int(self._slots.nbytes)

    @property
    def pass_bytes(self) -> int:
        """Of all parts."""
        return sum(part.nbytes for part in self._parts)

    @property
    def transfers(self) -> Transfers:
        """So far."""
        return Transfers(self._bytes, self._waited)

    def addresses(self, number: int) -> tuple[int, ...]:
        """Where kernels read each tensor of the n-th part."""
        first = self._slots[number % len(self._slots)].ctypes.data
        return tuple(first + start for start in self._parts[number].starts)

    def check_files(self) -> None:
        """Raise ModelFileError where a file has become shorter: kernels would end the process at a mapped page."""
        for path, file in self._files.items():
            self._check_length(path, os.fstat(file.fileno()).st_size)

    def acquire(self, number: int) -> None:
        """Return once the n-th part is in its slot, where it stays until `release`.

        Raises ModelFileError where it cannot be read (the next call tries again), PassStopped once `stopped`.
        """
        slot = number % len(self._slots)
        with self._changed:
            if self._wants[slot] != number or number in self._faults:
                self._want(slot, number)
            if self._holds[slot] != number:
                self._wait_for(slot, number)
            if self._fresh[slot]:
                self._fresh[slot] = False
                self._bytes += self._parts[number].nbytes

    def release(self, number: int) -> None:
        """The n-th part has been used: its slot goes to the next one that lies there."""
        slot = number % len(self._slots)
        following = number + len(self._slots)
        with self._changed:
            self._want(slot, following if following < len(self._parts) else slot)

    def close(self) -> None:
        """End the thread and give the slots back; nothing may read them any more."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        for file in self._files.values():
            file.close()
        self._slots = np.empty((1, 0), np.uint8)

    def _open_files(self) -> None:
        with ExitStack() as opened:
            for path in dict.fromkeys(tensor.file for part in self._parts for tensor in part.tensors):
                try:
                    file = opened.enter_context(FileIO(path, "rb"))
                except OSError as error:
                    raise unreadable(path, error) from error
                self._files[path] = file
                self._check_length(path, os.fstat(file.fileno()).st_size)
            opened.pop_all()

    def _check_length(self, path: Path, size: int) -> None:
        ends = (t.offset + t.nbytes for part in self._parts for t in part.tensors if t.file == path)
        if size < max(ends):
            raise ModelFileError(f"{path.name} has become shorter since the model was opened.")

    def _want(self, slot: int, number: int) -> None:
        """Have a part read into a slot. Under the lock."""
        self._wants[slot] = number
        self._faults.pop(number, None)
        if self._holds[slot] != number:
            self._queue.append(slot)
            self._changed.notify_all()

    def _wait_for(self, slot: int, number: int) -> None:
        """Under the lock."""
        began = time.perf_counter()
        try:
            while self._holds[slot] != number:
                if number in self._faults:
                    self._wants[slot] = NOTHING
                    raise self._faults.pop(number)
                if self.stopped():
                    raise PassStopped
                self._changed.wait(LOOK)
        finally:
            self._waited += time.perf_counter() - began

    def _read_on(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._closing:
                    self._changed.wait()
                if self._closing:
                    return
                slot = self._queue.popleft()
                number = self._wants[slot]
                if number in (NOTHING, self._holds[slot]):
                    continue
                self._holds[slot] = NOTHING
            fault = self._fill(slot, self._parts[number])
            with self._changed:
                if fault is not None:
                    self._faults[number] = fault
                else:
                    self._holds[slot], self._fresh[slot] = number, True
                    if self._wants[slot] not in (NOTHING, number):
                        self._queue.append(slot)  # another one was wanted meanwhile
                self._changed.notify_all()

    def _fill(self, slot: int, part: FilePart) -> ModelFileError | None:
        """Read a part into a slot; what was wrong, if anything."""
        try:
            self._read_part(part, self._slots[slot].data)
        except OSError as error:
            return unreadable(part.tensors[0].file, error)
        return None

    def _read_part(self, part: FilePart, memory: memoryview) -> None:
        """Raises OSError. On closing it ends early."""
        for tensor in part.tensors:
            self._advise(tensor, "POSIX_FADV_WILLNEED")  # all of it at once: fast disks want many requests
        for tensor, start in zip(part.tensors, part.starts, strict=True):
            self._read(tensor, memory[start : start + tensor.nbytes])
            if not self._cached:
                self._advise(tensor, "POSIX_FADV_DONTNEED")

    def _read(self, tensor: TensorEntry, target: memoryview) -> None:
        file = self._files[tensor.file]
        file.seek(tensor.offset)
        done = 0
        while done < len(target) and not self._closing:
            count = file.readinto(target[done : done + PIECE])
            if not count:
                raise OSError("it has become shorter since the model was opened")
            done += count

    def _advise(self, tensor: TensorEntry, advice: str) -> None:
        if hasattr(os, "posix_fadvise"):
            descriptor = self._files[tensor.file].fileno()
            os.posix_fadvise(descriptor, tensor.offset, tensor.nbytes, getattr(os, advice))


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
