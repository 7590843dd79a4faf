"""The header of a safetensors file: which tensors it holds and where. Nothing is mapped, no tensor is read.

Format: 8 bytes little-endian header length, the header as JSON, then the data the header's offsets count from.
Source: https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelFileError
from engine.files.disguise import ONLY_READ, refuse_disguised, unreadable
from engine.files.json_file import parse_object
from engine.files.wording import shown

ITEM_BYTES = {"F32": 4, "F16": 2, "BF16": 2}  # the element types a model's own tensors may have
MAX_HEADER_BYTES = 100_000_000


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """Where one tensor lies: `nbytes` bytes from `offset` (counted from the file's start), row-major, little-endian.

    dtype: the file's name of the element type; a model's own tensors are "F32", "F16" or "BF16".
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: Path
    offset: int
    nbytes: int


def read_header(path: Path) -> dict[str, TensorEntry]:
    """All tensors of a safetensors file by name, checked to lie inside the file and not to overlap.

    Element types other than those of `ITEM_BYTES` are listed too: old files carry integer buffers nobody needs.
    Raises ModelFileError for a missing, empty, cut or damaged file, an LFS pointer, a pickle.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(64)
            _refuse_other_kinds(path, start)
            length = int.from_bytes(start[:8], "little")
            if 8 + length > size:
                raise ModelFileError(f"{path.name} is cut inside its header: the download is not complete.")
            file.seek(8)
            text = file.read(length)
    except OSError as error:
        raise unreadable(path, error) from error
    header = parse_object(text, f"The header of {path.name}")
    header.pop("__metadata__", None)
    return _entries(path, header, 8 + length, size)


def _refuse_other_kinds(path: Path, start: bytes) -> None:
    refuse_disguised(path, start)
    length = int.from_bytes(start[:8], "little")
    if start.startswith(b"GGUF"):
        raise ModelFileError(f"{path.name} is really a GGUF file: rename it to end in .gguf and open it directly.")
    if len(start) > 8 and (start[8:9] != b"{" or length > MAX_HEADER_BYTES):
        raise ModelFileError(f"{path.name} is not a safetensors file, whatever its name says: {ONLY_READ}.")
    if len(start) <= 8:
        raise ModelFileError(f"{path.name} is cut inside its header: the download is not complete.")


def _entries(path: Path, header: dict[str, Any], data_start: int, size: int) -> dict[str, TensorEntry]:
    entries: dict[str, TensorEntry] = {}
    spans: list[tuple[int, int]] = []
    for name, value in header.items():
        dtype, shape, begin, end = _fields(path, name, value)
        spans.append((begin, end))
        if dtype in ITEM_BYTES and end - begin != math.prod(shape) * ITEM_BYTES[dtype]:
            raise _damaged(path, name, f"{end - begin} bytes do not make a {shown(list(shape))} of {dtype}")
        entries[name] = TensorEntry(name, dtype, shape, path, data_start + begin, end - begin)
    _check_spans(path, sorted(spans), data_start, size)
    return entries


def _fields(path: Path, name: str, value: Any) -> tuple[str, tuple[int, ...], int, int]:
    try:
        dtype, shape, (begin, end) = value["dtype"], value["shape"], value["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise _damaged(path, name, "its entry lacks dtype, shape or data_offsets") from None
    numbers = [*shape, begin, end] if isinstance(shape, list) else [None]
    if not all(isinstance(number, int) and 0 <= number < 2**62 for number in numbers) or begin > end:
        raise _damaged(path, name, "its shape or offsets are no sizes")
    if not isinstance(dtype, str):
        raise _damaged(path, name, "its element type is no name")
    return dtype, tuple(shape), begin, end


def _check_spans(path: Path, spans: list[tuple[int, int]], data_start: int, size: int) -> None:
    reached = 0
    for begin, end in spans:
        if begin < reached:
            raise ModelFileError(f"{path.name} is damaged: two of its tensors overlap.")
        reached = end
    if data_start + reached > size:
        raise ModelFileError(
            f"{path.name} is cut short: it has {size:,} of {data_start + reached:,} bytes, "
            "so the download is not complete."
        )


def _damaged(path: Path, name: str, cause: str) -> ModelFileError:
    return ModelFileError(f"{path.name} is damaged at {shown(name)}: {cause}.")
