"""Converting a GGUF file, once, into a model folder in the cache: safetensors, config, tokenizer and template.

Tensors are dequantised one after another straight into the file, so that the memory needed is one piece of a matrix.
The folder appears under its name only when it is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from engine.errors import LoadCancelled, ModelFileError, SpecularError
from engine.files.config import parse_config
from engine.files.disguise import missing, unreadable
from engine.files.folder import ORIGIN, open_folder
from engine.files.gguf_config import gguf_config, gguf_generation
from engine.files.gguf_parts import model_stem, part_paths
from engine.files.gguf_reader import GgufFile, read_gguf
from engine.files.gguf_tensors import PlannedTensor, converted_pieces, plan_tensors, safetensors_header
from engine.files.json_file import read_json
from engine.files.paths import cache_dir, ensure_folder
from engine.files.shards import SINGLE
from engine.records import LoadProgress

FORMAT = 3  # raise it when the converted folders change, so that older ones are made anew
HASHED_START = 2**20
ABANDONED_SECONDS = 3600.0

Progress = Callable[[LoadProgress], None]
Cancelled = Callable[[], bool]


def converted_path(source: Path) -> Path:
    """The folder that `source` is, or would be, converted into; another one when the file, or a part of it, changes.

    Raises ModelFileError when the file cannot be read.
    """
    digest = hashlib.sha256(f"{FORMAT} ".encode())
    for part in (path for path in part_paths(source) if path == source or path.exists()):
        if part.is_symlink() and not part.exists():
            raise ModelFileError(f"{missing(part)}.")
        try:
            stat = part.stat()
            with part.open("rb") as file:
                digest.update(f"{stat.st_size} {stat.st_mtime_ns} ".encode() + file.read(HASHED_START))
        except OSError as error:
            raise unreadable(part, error) from error
    stem = model_stem(source).encode("utf-8", "replace").decode().replace("?", "_")  # bytes that are no text
    return conversions() / f"{stem}-{digest.hexdigest()[:16]}"


def conversions() -> Path:
    """The folder of all converted models."""
    return cache_dir() / "models"


def convert(source: Path, progress: Progress, cancelled: Cancelled) -> Path:
    """The model folder of a GGUF file, converted now unless it was before.

    Raises LoadCancelled when `cancelled()` is true at a tensor (nothing is left behind), ModelFileError for a file
    that cannot be converted, SpecularError when the cache cannot be written or the disk is full.
    """
    target = converted_path(source)
    if _usable(target):
        return target
    file = read_gguf(source)
    config_json, generation_json = gguf_config(file), gguf_generation(file)
    config = parse_config(config_json, generation_json)
    plan = plan_tensors(file, config)
    models = ensure_folder(target.parent)
    _remove_abandoned(models)
    _check_space(models, sum(tensor.nbytes for tensor in plan))
    try:
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=models))
    except OSError as error:
        raise SpecularError(f"The folder {models} cannot be written: {error.strerror or error}.") from error
    try:
        notes = _write_tokenizer(file, part)
        _write_json(part / "config.json", config_json)
        _write_json(part / "generation_config.json", generation_json)
        _write_tensors(file, plan, part / SINGLE, progress, cancelled)
        origin = {
            "source": str(file.path.absolute()),
            "notes": list(notes),
            "types": _bytes_by_type(plan),
            "format": FORMAT,
        }
        _write_json(part / ORIGIN, origin)
        _publish(part, target)
    except OSError as error:
        raise SpecularError(f"{source.name} cannot be converted in {models}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    for stale in conversions_of(source):
        if stale != target and origin_of(stale).get("format") == FORMAT:  # another version may be using its own
            shutil.rmtree(stale, ignore_errors=True)
    return target


def conversions_of(source: Path) -> list[Path]:
    """The folders in the cache that were made from this file (by its first part), as it is or as it was once."""
    first = str(part_paths(source)[0].absolute())
    try:
        folders = [path for path in conversions().iterdir() if (path / ORIGIN).is_file()]
    except OSError:
        return []
    return sorted(folder for folder in folders if origin_of(folder).get("source") == first)


def origin_of(folder: Path) -> dict[str, Any]:
    """What a converted folder was made from: `source`, `notes`, and `types`, bytes by tensor type. {} where unknown."""
    try:
        return read_json(folder / ORIGIN)
    except ModelFileError:
        return {}


def _usable(target: Path) -> bool:
    """Whether the file was converted before; a folder that something has damaged since is removed."""
    if not target.is_dir():
        return False
    try:
        open_folder(target)
    except ModelFileError:
        shutil.rmtree(target, ignore_errors=True)
        return False
    return True


def _write_tensors(
    file: GgufFile,
    plan: list[PlannedTensor],
    path: Path,
    progress: Progress,
    cancelled: Cancelled,
) -> None:
    total, done = sum(tensor.nbytes for tensor in plan), 0
    with path.open("wb") as output:
        output.write(safetensors_header(plan))
        for index, tensor in enumerate(plan):
            if cancelled():
                raise LoadCancelled(f"Converting {file.path.name} was cancelled.")
            progress(LoadProgress("Converting tensors", index, len(plan), done, total))
            for piece in converted_pieces(tensor):
                output.write(piece.data)
            done += tensor.nbytes
        progress(LoadProgress("Converting tensors", len(plan), len(plan), done, total))
        _to_disk(output)


def _write_tokenizer(file: GgufFile, folder: Path) -> tuple[str, ...]:
    from engine.files.gguf_tokenizer import write_tokenizer

    return write_tokenizer(file, folder)


def _bytes_by_type(plan: list[PlannedTensor]) -> dict[str, int]:
    """How many bytes of the GGUF file were of each tensor type."""
    sizes: dict[str, int] = {}
    for tensor in plan:
        kind = tensor.source.kind.name
        sizes[kind] = sizes.get(kind, 0) + tensor.source.nbytes
    return sizes


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")  # escaped: paths may hold bytes that are no text


def _to_disk(output: BinaryIO) -> None:
    """Make sure that the bytes are on the disk before the folder gets its name."""
    output.flush()
    os.fsync(output.fileno())


def _publish(part: Path, target: Path) -> None:
    try:
        part.rename(target)
    except OSError:
        if not target.is_dir():  # else another process was faster, and its folder is as good
            raise


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise SpecularError(
            f"Converting needs {needed / 1e9:.1f} GB in {folder}, but only {free / 1e9:.1f} GB are free there."
        )


def _remove_abandoned(models: Path) -> None:
    """Delete what conversions left behind whose process was killed."""
    for part in models.glob(".part-*"):
        weights = part / SINGLE
        changed = (weights if weights.exists() else part).stat().st_mtime
        if time.time() - changed > ABANDONED_SECONDS:
            shutil.rmtree(part, ignore_errors=True)
