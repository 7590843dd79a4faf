"""A short name for what a model folder holds, so that what was made from it is never used with another model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict

from engine.files.disguise import unreadable
from engine.files.folder import ModelFolder, TensorEntry

SAMPLE_BYTES = 256
SAMPLES = 4  # a tensor: two models of one shape differ in every matrix, so a few hundred bytes of each tell them apart


def fingerprint(folder: ModelFolder) -> str:
    """16 hexadecimal digits from the config, the tensors' names, shapes and types, and samples of their bytes.

    Where the folder lies does not count. Raises ModelFileError where a file cannot be read any more.
    """
    digest = hashlib.sha256(json.dumps(asdict(folder.config), sort_keys=True, default=str).encode())
    for name, entry in sorted(folder.entries.items()):
        digest.update(f"{name} {entry.dtype} {entry.shape} ".encode())
    for sample in _samples(folder):
        digest.update(sample)
    return digest.hexdigest()[:16]


def _samples(folder: ModelFolder) -> Iterator[bytes]:
    """Bytes from evenly spread places of every tensor, each file opened once."""
    files: dict[str, list[TensorEntry]] = {}
    for _, entry in sorted(folder.entries.items()):
        files.setdefault(str(entry.file), []).append(entry)
    for entries in files.values():
        path = entries[0].file
        try:
            with path.open("rb") as file:
                for entry in entries:
                    for place in range(SAMPLES):
                        inside = max(0, entry.nbytes - SAMPLE_BYTES) * place // (SAMPLES - 1)
                        file.seek(entry.offset + inside)
                        yield file.read(min(SAMPLE_BYTES, entry.nbytes))
        except OSError as error:
            raise unreadable(path, error) from error
