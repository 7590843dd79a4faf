"""The full model's tensors in host memory: mapped from the files, not copied, read ahead with progress and cancel."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping

import numpy as np

from engine.errors import LoadCancelled
from engine.files.disguise import unreadable
from engine.files.folder import ModelFolder, TensorEntry
from engine.model.matrix import KIND_OF_DTYPE, Matrix
from engine.records import LoadProgress

STORED_AS = {"F32": ("float32", np.float32), "F16": ("float16", np.float16), "BF16": ("bfloat16", np.uint16)}


def map_tensor(entry: TensorEntry) -> np.ndarray:
    """The tensor's bytes in place, read-only; bfloat16 comes as uint16. Shapes and bounds were checked on opening.

    Raises ModelFileError where the file has gone or become shorter since.
    """
    dtype = STORED_AS[entry.dtype][1]
    try:
        if entry.offset % np.dtype(dtype).itemsize:
            raw = np.fromfile(entry.file, np.uint8, entry.nbytes, offset=entry.offset)
            return raw.view(dtype).reshape(entry.shape)
        return np.memmap(entry.file, dtype, "r", entry.offset, entry.shape)
    except (OSError, ValueError) as error:  # ValueError: fewer bytes than the header promised
        cause = error if isinstance(error, OSError) else OSError("it has become shorter since it was opened")
        raise unreadable(entry.file, cause) from error


def as_float32(values: np.ndarray, dtype: str) -> np.ndarray:
    """A float32 copy; `dtype` is the file's name for the stored type."""
    if dtype == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32)


LENT = 4  # matrices that stay mapped for who asks for them again at once: as many as are rounded together, and one


class HostWeights:
    """All tensors of a folder by name: matrices as mapped, vectors (norms, biases) as small float32 copies.

    Those of `streamed` are not held: each is mapped anew when asked for, and only for as long as someone has it.
    """

    def __init__(
        self,
        folder: ModelFolder,
        progress: Callable[[LoadProgress], None],
        cancelled: Callable[[], bool],
        streamed: Collection[str] = (),
    ) -> None:
        self._matrices: dict[str, Matrix] = {}
        self._vectors: dict[str, np.ndarray] = {}
        self._entries = folder.entries
        self._lent: deque[tuple[str, Matrix]] = deque(maxlen=LENT)
        entries = [entry for entry in folder.entries.values() if entry.name not in streamed]
        total, done = sum(entry.nbytes for entry in entries), 0
        for number, entry in enumerate(entries):
            if cancelled():
                raise LoadCancelled("Loading was cancelled.")
            progress(LoadProgress("Reading tensors", number, len(entries), done, total))
            self._add(entry)
            done += entry.nbytes
        progress(LoadProgress("Reading tensors", len(entries), len(entries), total, total))

    @property
    def names(self) -> frozenset[str]:
        """Names of all tensors."""
        return frozenset(self._entries)

    def matrix(self, name: str) -> Matrix:
        """A matrix as stored."""
        held = self._matrices.get(name)
        if held is not None:
            return held
        lent = next((matrix for other, matrix in self._lent if other == name), None)
        if lent is None:
            lent = _matrix(self._entries[name])
            self._lent.append((name, lent))
        return lent

    def held(self, name: str) -> Matrix | None:
        """A matrix that is in memory for good, or None."""
        return self._matrices.get(name)

    def vector(self, name: str) -> np.ndarray:
        """A vector as float32."""
        return self._vectors[name]

    def bring_in(self, name: str) -> Matrix:
        """A matrix with all of it read, for `hold`. Raises ModelFileError as map_tensor does."""
        matrix = self._matrices.get(name) or _matrix(self._entries[name])
        # Touching each page brings it in, so that no pass waits for the disk.
        matrix.owner[0].reshape(-1).view(np.uint8)[::4096].max()
        return matrix

    def hold(self, matrices: Mapping[str, Matrix], without: Collection[str]) -> None:
        """Keep these from now on too, and those of `without` no longer."""
        self._matrices |= matrices
        for name in without:
            self._matrices.pop(name, None)
        self.take_back()

    def take_back(self) -> None:
        """Let go of what was lent."""
        self._lent.clear()

    def _add(self, entry: TensorEntry) -> None:
        if len(entry.shape) == 1:
            self._vectors[entry.name] = np.ascontiguousarray(as_float32(map_tensor(entry), entry.dtype))
        else:
            self._matrices[entry.name] = self.bring_in(entry.name)


def _matrix(entry: TensorEntry) -> Matrix:
    return Matrix.of(map_tensor(entry), KIND_OF_DTYPE[STORED_AS[entry.dtype][0]])
