"""Weights that are no numbers (NaN or infinite), found where looking costs little: before a model's first pass.

Vectors and other small tensors are read whole, of a large one a few thousand bytes at places spread over it, so that a
damaged file shows (a 7B model takes some 10 MB of reading). A single bad value inside a large matrix does not: that is
found by the first pass that meets it, which then names the layer (engine.model.fault).
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from engine.files.disguise import unreadable
from engine.files.folder import ModelFolder, TensorEntry

WHOLE_BYTES = 65536
PLACES, PLACE_BYTES = 12, 4096
# Of each element type: the numpy type of its bits, and the exponent that only NaN and the infinities have.
EXPONENTS = {"F32": ("<u4", 0x7F800000), "F16": ("<u2", 0x7C00), "BF16": ("<u2", 0x7F80)}


def not_numbers(folder: ModelFolder) -> tuple[str, ...]:
    """A note naming the first tensor with such a value and how many more have one; empty where none was seen.

    Raises ModelFileError where a file cannot be read any more.
    """
    files: dict[Path, list[TensorEntry]] = {}
    for entry in folder.entries.values():
        files.setdefault(entry.file, []).append(entry)
    found: list[str] = []
    for path, entries in files.items():
        try:
            with path.open("rb") as file:
                for entry in entries:
                    if any(_is_bad(file, entry, begin, length) for begin, length in _places(entry)):
                        found.append(entry.name)
        except OSError as error:
            raise unreadable(path, error) from error
    if not found:
        return ()
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return (
        f"{folder.path.name} holds values that are no numbers in {found[0]}{more}: the file is damaged, or was saved "
        "from a model that is.",
    )


def _places(entry: TensorEntry) -> list[tuple[int, int]]:
    """(first byte, bytes) of what is looked at, in whole elements."""
    if entry.nbytes <= WHOLE_BYTES:
        return [(0, entry.nbytes)]
    last = entry.nbytes - PLACE_BYTES
    return [(last * place // (PLACES - 1) // 4 * 4, PLACE_BYTES) for place in range(PLACES)]


def _is_bad(file: BinaryIO, entry: TensorEntry, begin: int, length: int) -> bool:
    import numpy as np

    file.seek(entry.offset + begin)
    kind, exponent = EXPONENTS[entry.dtype]
    data = file.read(length)
    bits = np.frombuffer(data[: len(data) // np.dtype(kind).itemsize * np.dtype(kind).itemsize], kind)
    return bool(((bits & exponent) == exponent).any())
