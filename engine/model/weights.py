"""The full model's tensors in host memory: mapped from the files, not copied, read ahead with progress and cancel."""

from __future__ import annotations

from collections.abc import Callable

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


class HostWeights:
    """All tensors of a folder by name: matrices as mapped, vectors (norms, biases) as small float32 copies."""

    def __init__(
        self, folder: ModelFolder, progress: Callable[[LoadProgress], None], cancelled: Callable[[], bool]
    ) -> None:
        self._matrices: dict[str, Matrix] = {}
        self._vectors: dict[str, np.ndarray] = {}
        entries = list(folder.entries.values())
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
        return frozenset(self._matrices) | frozenset(self._vectors)

    def matrix(self, name: str) -> Matrix:
        """A matrix as stored."""
        return self._matrices[name]

    def vector(self, name: str) -> np.ndarray:
        """A vector as float32."""
        return self._vectors[name]

    def _add(self, entry: TensorEntry) -> None:
        values = map_tensor(entry)
        if values.ndim == 1:
            self._vectors[entry.name] = np.ascontiguousarray(as_float32(values, entry.dtype))
        else:
            values.reshape(-1).view(np.uint8)[::4096].max()  # brings the pages in, so that no pass waits for the disk
            self._matrices[entry.name] = Matrix.of(values, KIND_OF_DTYPE[STORED_AS[entry.dtype][0]])
