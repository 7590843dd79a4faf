"""Models in several GGUF files: which files belong together, by their names and by what each says of itself.

Parts are named NAME-00001-of-00003.gguf; the first holds the metadata, every part its own tensors and three counts.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from engine.errors import ModelFileError

PART_NAME = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf", re.IGNORECASE)


def part_paths(path: Path) -> tuple[Path, ...]:
    """Every file of the model that `path` is a part of by its name, in order, there or not; `path` itself alone."""
    match = PART_NAME.fullmatch(path.name)
    if match is None or not 0 < int(match[2]) <= int(match[3]):
        return (path,)
    suffix = path.name[-len(".gguf") :]
    count = int(match[3])
    return tuple(path.with_name(f"{match[1]}-{part:05d}-of-{match[3]}{suffix}") for part in range(1, count + 1))


def model_stem(path: Path) -> str:
    """The file's name without its ending and, for a part, without its number."""
    match = PART_NAME.fullmatch(path.name)
    return match[1] if match else path.stem


def check_parts(path: Path, count: int) -> tuple[Path, ...]:
    """The files of a model of which `path` says that it is in `count` parts.

    Raises ModelFileError naming the first that is missing, or where the name does not tell where the others are.
    """
    paths = part_paths(path)
    if len(paths) != count:
        raise ModelFileError(
            f"{path.name} is one of {count} parts, but its name does not end in -00001-of-{count:05d}.gguf as theirs "
            "do, so the others cannot be found."
        )
    for number, part in enumerate(paths, 1):
        if not part.is_file():
            raise ModelFileError(f"Part {number} of {count} is missing: {part.name} is not in {part.parent}.")
    return paths


def part_count(metadata: dict[str, Any]) -> int:
    """In how many files the model is, as one of them says."""
    count = metadata.get("split.count", 1)
    return count if isinstance(count, int) and count > 1 else 1
