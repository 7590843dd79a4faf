"""Low-bit copies on disk, mapped when read: making them takes seconds, reading them none.

A file holds one copy of one model: safetensors, with a small JSON text as the tensor ABOUT that says what the rest is.
It can be made again at any time, so nothing that is wrong with it is an error: it is deleted and made anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from engine.errors import ModelFileError, SpecularError
from engine.files.paths import cache_dir, ensure_folder
from engine.files.replacing import replacing
from engine.files.safetensors_header import read_header
from engine.lowbit.packed import PackedMatrix, packed_shape

VERSION = 3  # raise it when the layout, the rounding or the sample text changes, so that older copies are made anew
ABOUT = "about"
ALIGNED = 64
PAGE = 4096


def copy_path(fingerprint: str, bits: int) -> Path:
    """Where the copy of a model at so many bits is kept, whether there is one or not."""
    return cache_dir() / "drafts" / f"{fingerprint}-cpu{bits}.safetensors"


def write_copies(path: Path, fingerprint: str, copies: Mapping[str, PackedMatrix]) -> None:
    """Write a copy; the file appears under its name only when it is whole. Raises OSError, or SpecularError where the
    folder cannot be made."""
    ensure_folder(path.parent)
    shapes = {name: [m.rows, m.columns, m.bits, m.group] for name, m in copies.items()}
    about = json.dumps({"version": VERSION, "fingerprint": fingerprint, "matrices": shapes}).encode()
    parts: list[tuple[str, str, np.ndarray]] = []
    for name, matrix in copies.items():
        parts += [(f"{name} data", "U8", matrix.data), (f"{name} inverse", "F32", matrix.inverse)]
    parts.append((ABOUT, "U8", np.frombuffer(about, np.uint8)))
    with replacing(path) as file:
        file.write(_header(parts))
        for _, _, array in parts:
            file.write(array.reshape(-1).view(np.uint8).data)


def read_copies(path: Path, fingerprint: str, wanted: Mapping[str, tuple[int, int]]) -> dict[str, PackedMatrix] | None:
    """The copy at `path`, mapped from the file, or None where there is none. wanted: rows and columns by name.

    A file that is damaged, of another version or of another model is deleted.
    """
    if not path.is_file():
        return None
    try:
        return _read(path, fingerprint, wanted)
    except (ModelFileError, OSError, ValueError, KeyError, TypeError):
        path.unlink(missing_ok=True)
        return None


def _read(path: Path, fingerprint: str, wanted: Mapping[str, tuple[int, int]]) -> dict[str, PackedMatrix]:
    """As read_copies; ValueError, KeyError, TypeError or ModelFileError for anything that does not fit."""
    entries = read_header(path)
    whole = np.memmap(path, np.uint8, "r")

    def tensor(name: str) -> np.ndarray:
        entry = entries[name]
        return np.asarray(whole[entry.offset : entry.offset + entry.nbytes])

    about = json.loads(tensor(ABOUT).tobytes())
    if (about["version"], about["fingerprint"]) != (VERSION, fingerprint):
        raise ValueError("of another model or version")
    copies: dict[str, PackedMatrix] = {}
    for name, size in wanted.items():
        rows, columns, bits, group = about["matrices"][name]
        if (rows, columns) != size or columns % group or bits not in (8, 4, 3):
            raise ValueError("of another shape")
        data = tensor(f"{name} data").reshape(packed_shape(rows, columns, bits, group))
        inverse = tensor(f"{name} inverse").view(np.float32)
        if inverse.shape != (columns,):
            raise ValueError("of another shape")
        data.reshape(-1)[::PAGE].max(initial=0)  # brings the pages in, so that no pass waits for the disk
        copies[name] = PackedMatrix(rows, columns, bits, group, data, inverse)
    return copies


def _header(parts: list[tuple[str, str, np.ndarray]]) -> bytes:
    header, offset = {}, 0
    for name, dtype, array in parts:
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % ALIGNED)
    return len(text).to_bytes(8, "little") + text


def keep_copies(path: Path, fingerprint: str, copies: Mapping[str, PackedMatrix]) -> str | None:
    """write_copies; a sentence for people where that fails, since the copy in memory is as good."""
    try:
        write_copies(path, fingerprint, copies)
    except (OSError, SpecularError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error).rstrip(".")
        return f"The draft's weights could not be kept in {path.parent} ({cause}); the next load makes them again."
    return None
