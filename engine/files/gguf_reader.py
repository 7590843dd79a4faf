"""Reading a GGUF file's header, or those of all its parts: metadata, and where each tensor lies. No tensor is read.

Layout: magic, version, counts; metadata as (key, type, value); tensor infos; padding; tensor data.
Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelFileError
from engine.files.disguise import ONLY_READ, missing, refuse_disguised, unreadable
from engine.files.gguf_parts import check_parts, part_count
from engine.files.gguf_types import SUPPORTED, TYPES, GgufType, type_name
from engine.files.wording import shown

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
MAX_COUNT = 2**24  # no real file has more tensors, keys or array values; beyond it the file is damaged
MAX_DIMENSIONS = 4


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor: shape outermost first (matrices are (out, in)), `nbytes` bytes from `offset` in `file`."""

    name: str
    kind: GgufType
    shape: tuple[int, ...]
    offset: int
    nbytes: int
    file: Path


@dataclass(frozen=True, slots=True)
class GgufFile:
    """The header of a GGUF file; of a model in parts `path` is the first, and the tensors are those of all parts."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, GgufTensor]


class _Cursor:
    """Reads little-endian values one after another; running over the end means that the file is cut short."""

    def __init__(self, data: mmap.mmap, name: str) -> None:
        self.data = data
        self.name = name
        self.at = 0

    def scalar(self, layout: str) -> Any:
        try:
            (value,) = struct.unpack_from(layout, self.data, self.at)
        except struct.error:
            raise self.cut() from None
        self.at += struct.calcsize(layout)
        return value

    def count(self, what: str) -> int:
        value = self.scalar("<Q")
        if value > MAX_COUNT:
            raise self.damaged(f"it claims {value:,} {what}")
        return int(value)

    def string(self) -> str:
        length = self.scalar("<Q")
        end = self.at + length
        if end > len(self.data):
            raise self.cut()
        text = self.data[self.at : end].decode("utf-8", "replace")
        self.at = end
        return text

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            return self._array()
        if kind not in SCALARS:
            raise self.damaged(f"it has a metadata value of unknown type {kind}")
        return self.scalar(SCALARS[kind])

    def _array(self) -> list[Any]:
        kind, count = self.scalar("<I"), self.count("array values")
        if kind == STRING:
            return [self.string() for _ in range(count)]
        if kind not in SCALARS:
            raise self.damaged(f"it has an array of unknown type {kind}")
        layout = f"<{count}{SCALARS[kind][1]}"
        try:
            values = list(struct.unpack_from(layout, self.data, self.at))
        except struct.error:
            raise self.cut() from None
        self.at += struct.calcsize(layout)
        return values

    def cut(self) -> ModelFileError:
        return ModelFileError(f"{self.name} is cut inside its header: the download is not complete.")

    def damaged(self, cause: str) -> ModelFileError:
        return ModelFileError(f"{self.name} is damaged: {cause}.")


def read_gguf(path: Path) -> GgufFile:
    """Read and check a GGUF header; every tensor lies inside its file and has a type that can be read.

    Any part of a model in several files stands for the whole model.
    Raises ModelFileError for a missing, empty, cut or damaged file, an LFS pointer, an unsupported tensor type,
    a part that is missing or of another model.
    """
    file = _read(path)
    count = part_count(file.metadata)
    return file if count == 1 else _joined(check_parts(path, count))


def _joined(paths: tuple[Path, ...]) -> GgufFile:
    """All parts as one file. Raises ModelFileError for parts that do not belong together."""
    parts = [_read(path) for path in paths]
    tensors: dict[str, GgufTensor] = {}
    for number, part in enumerate(parts):
        if (part.metadata.get("split.no"), part_count(part.metadata)) != (number, len(paths)):
            raise ModelFileError(f"{part.path.name} is not part {number + 1} of {len(paths)}, whatever its name says.")
        for name, tensor in part.tensors.items():
            if name in tensors:
                raise ModelFileError(f"{shown(name)} is in two parts, {tensors[name].file.name} and {part.path.name}.")
            tensors[name] = tensor
    expected = parts[0].metadata.get("split.tensors.count", len(tensors))
    if expected != len(tensors):
        raise ModelFileError(
            f"The {len(paths)} parts of {paths[0].name} hold {len(tensors)} tensors in place of {shown(expected)}: "
            "they are not of one model."
        )
    return GgufFile(paths[0], parts[0].metadata, tensors)


def _read(path: Path) -> GgufFile:
    """One file, a part or all."""
    try:
        with path.open("rb") as file:
            start = file.read(64)
            _refuse_other_kinds(path, start)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _parse(path, _Cursor(data, path.name))
    except FileNotFoundError as error:
        raise (ModelFileError(f"{missing(path)}.") if path.is_symlink() else unreadable(path, error)) from error
    except OSError as error:
        raise unreadable(path, error) from error


def _refuse_other_kinds(path: Path, start: bytes) -> None:
    refuse_disguised(path, start)
    if not start.startswith(b"GGUF"):
        raise ModelFileError(f"{path.name} is not a GGUF file, whatever its name says: {ONLY_READ}.")


def _parse(path: Path, cursor: _Cursor) -> GgufFile:
    cursor.at = 4
    version = cursor.scalar("<I")
    if version not in (2, 3):
        raise ModelFileError(f"{path.name} is GGUF version {version}; versions 2 and 3 (little-endian) are read.")
    tensor_count, key_count = cursor.count("tensors"), cursor.count("metadata keys")
    metadata = {}
    for _ in range(key_count):
        key = cursor.string()
        metadata[key] = cursor.value(cursor.scalar("<I"))
    infos = [_tensor_info(cursor) for _ in range(tensor_count)]
    return GgufFile(path, metadata, _place(path, cursor, infos, metadata.get("general.alignment", 32)))


def _tensor_info(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    name = cursor.string()
    dimensions = cursor.scalar("<I")
    if dimensions > MAX_DIMENSIONS:
        raise cursor.damaged(f"{shown(name)} claims {dimensions} dimensions")
    shape = tuple(cursor.scalar("<Q") for _ in range(dimensions))
    return name, shape[::-1], cursor.scalar("<I"), cursor.scalar("<Q")


def _place(
    path: Path, cursor: _Cursor, infos: list[tuple[str, tuple[int, ...], int, int]], align: Any
) -> dict[str, GgufTensor]:
    if not isinstance(align, int) or not 0 < align <= 2**20:
        raise cursor.damaged(f"its alignment is {shown(align)}")
    start = -(-cursor.at // align) * align
    tensors: dict[str, GgufTensor] = {}
    for name, shape, code, offset in infos:
        if code not in TYPES:
            raise ModelFileError(
                f"{cursor.name} holds {shown(name)} as {type_name(code)}; supported tensor types are {SUPPORTED}."
            )
        if name in tensors:
            raise cursor.damaged(f"it names {shown(name)} twice")
        kind = TYPES[code]
        if not shape or shape[-1] % kind.block_values or offset % align:
            raise cursor.damaged(f"{shown(name)} of type {kind.name} has shape {shown(list(shape))} at offset {offset}")
        nbytes = math.prod(shape) // kind.block_values * kind.block_bytes
        tensors[name] = GgufTensor(name, kind, shape, start + offset, nbytes, path)
    needed = max((tensor.offset + tensor.nbytes for tensor in tensors.values()), default=start)
    if needed > len(cursor.data):
        raise ModelFileError(
            f"{cursor.name} is cut short: it has {len(cursor.data):,} of {needed:,} bytes, "
            "so the download is not complete."
        )
    return tensors
