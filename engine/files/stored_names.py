"""From the names that tensors have in a family's files to ours, which are LLaMA's; joined matrices are taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from engine.errors import ModelFileError
from engine.files.families import FAMILY_OF
from engine.files.families.family import Family
from engine.files.safetensors_header import TensorEntry
from engine.files.shape import ModelConfig
from engine.files.wording import shown

HEAD = "lm_head."
NUMBER = re.compile(r"(?<=^layers\.)\d+\.")


def our_entries(
    config: ModelConfig, found: Mapping[str, TensorEntry], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, TensorEntry]:
    """All tensors of a folder by our names. shapes: of those the model needs, by our names.

    Raises ModelFileError for a tensor of several matrices that has another shape than they have together.
    """
    family = FAMILY_OF[config.architecture]
    return {part.name: part for entry in found.values() for part in parts_of_entry(family, entry, shapes)}


def parts_of_entry(family: Family, entry: TensorEntry, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[TensorEntry]:
    """The tensors, by our names, that a stored one is; they lie in the same place of the file."""
    module, number, kind = _split(family, entry.name)
    if module is None:
        yield entry
        return
    below = "layers." if number else ""
    parts = family.fused.get(module.removeprefix("layers."))
    if parts is None:
        yield replace(entry, name=f"model.{_with(number, family.names.get(module, module))}.{kind}")
        return
    names = [f"model.{_with(number, below + part)}.{kind}" for part in parts]
    if any(name not in shapes for name in names):
        yield entry
        return
    yield from _apart(entry, names, [shapes[name] for name in names])


def stored_name(config: ModelConfig, name: str) -> str:
    """What the files of the family usually call one of our tensors, for messages."""
    family = FAMILY_OF[config.architecture]
    if not name.startswith("model."):
        return name
    module, number, kind = _split(family, name)
    theirs = {ours: stored for stored, ours in family.names.items()}
    theirs |= {f"layers.{part}": f"layers.{stored}" for stored, parts in family.fused.items() for part in parts}
    assert module is not None
    return f"{family.prefixes[0]}{_with(number, theirs.get(module, module))}.{kind}"


def _split(family: Family, name: str) -> tuple[str | None, str, str]:
    """(module without prefix and number, "3." of layer 3 or "", "weight"); module None for what keeps its name."""
    if name.startswith(HEAD) or "." not in name:
        return None, "", ""
    prefix = next((prefix for prefix in family.prefixes if name.startswith(prefix)), None)
    if prefix is None:
        return None, "", ""
    module, _, kind = name.removeprefix(prefix).rpartition(".")
    number = NUMBER.search(module)
    if number is None:
        return module, "", kind
    return NUMBER.sub("", module, count=1), number[0], kind


def _with(number: str, module: str) -> str:
    return module.replace("layers.", f"layers.{number}", 1) if number else module


def _apart(entry: TensorEntry, names: list[str], shapes: list[tuple[int, ...]]) -> Iterator[TensorEntry]:
    whole = (sum(shape[0] for shape in shapes), *shapes[0][1:])
    if entry.shape != whole:
        raise ModelFileError(
            f"{entry.file.name} holds {entry.name} as {shown(list(entry.shape))}, "
            f"but config.json calls for {list(whole)}."
        )
    at, row = entry.offset, entry.nbytes // whole[0]
    for name, shape in zip(names, shapes, strict=True):
        yield replace(entry, name=name, shape=shape, offset=at, nbytes=row * shape[0])
        at += row * shape[0]
