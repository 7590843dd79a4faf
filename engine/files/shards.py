"""Which safetensors files make up a model folder, and the tensors of all of them under one roof."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from engine.errors import ModelFileError
from engine.files.disguise import ONLY_READ, PICKLE_SUFFIXES, missing
from engine.files.json_file import read_json
from engine.files.safetensors_header import TensorEntry, read_header
from engine.files.wording import shown

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
SHARD_NAME = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.safetensors")


def read_all_headers(folder: Path) -> dict[str, TensorEntry]:
    """All tensors of the folder's safetensors files: the single file, the indexed shards, or all shards there are.

    Raises ModelFileError for a missing shard, an index that disagrees with the shards, a tensor in two shards,
    a folder with pickles only, and whatever `read_header` finds.
    """
    if (folder / SINGLE).is_file():
        return read_header(folder / SINGLE)
    if (folder / INDEX).is_file():
        weight_map = _weight_map(folder / INDEX)
        entries = _merge(folder, sorted(set(weight_map.values())))
        _check_index(weight_map, entries)
        return entries
    return _merge(folder, _complete_set(folder))


def _merge(folder: Path, names: Iterable[str]) -> dict[str, TensorEntry]:
    names = list(names)
    for name in names:
        if (folder / name).is_symlink() and not (folder / name).exists():
            raise ModelFileError(f"{missing(folder / name)}.")
        if not (folder / name).is_file():
            raise ModelFileError(f"{_describe(name)} missing: {name} is not in {folder}.")
    entries: dict[str, TensorEntry] = {}
    for name in names:
        for tensor, entry in read_header(folder / name).items():
            if tensor in entries:
                raise ModelFileError(f"{shown(tensor)} is in two shards, {entries[tensor].file.name} and {name}.")
            entries[tensor] = entry
    return entries


def _describe(name: str) -> str:
    match = SHARD_NAME.fullmatch(name)
    return f"Shard {int(match[2])} of {int(match[3])} is" if match else "A shard is"


def _weight_map(index: Path) -> dict[str, str]:
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ModelFileError(f"{index.name} is damaged: it has no weight_map.")
    for tensor, name in weight_map.items():
        inside = isinstance(name, str) and Path(name).name == name and "\\" not in name
        if not inside or not name.endswith(".safetensors"):
            raise ModelFileError(
                f"{index.name} places {shown(tensor)} in {shown(name)}, which is no safetensors file beside it."
            )
    return weight_map


def _check_index(weight_map: dict[str, str], entries: dict[str, TensorEntry]) -> None:
    for tensor, name in weight_map.items():
        if tensor not in entries:
            raise ModelFileError(f"{INDEX} places {shown(tensor)} in {name}, but no shard holds it.")
        if entries[tensor].file.name != name:
            raise ModelFileError(f"{INDEX} places {shown(tensor)} in {name}, but it is in {entries[tensor].file.name}.")


def _complete_set(folder: Path) -> list[str]:
    """Without an index: all safetensors files, checked for a gap in their numbering."""
    names = sorted(path.name for path in folder.glob("*.safetensors"))
    if not names:
        raise _no_weights(folder)
    for name in names:
        match = SHARD_NAME.fullmatch(name)
        if match:
            return [f"{match[1]}-{part:05d}-of-{match[3]}.safetensors" for part in range(1, int(match[3]) + 1)]
    return names


def _no_weights(folder: Path) -> ModelFileError:
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLE_SUFFIXES)
    if pickles:
        return ModelFileError(
            f"{folder} holds its weights only as a pickle ({pickles[0]}), which could run code: {ONLY_READ}."
        )
    return ModelFileError(f"{folder} holds no weights: {SINGLE} is missing.")
