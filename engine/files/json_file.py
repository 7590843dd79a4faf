"""Reading the small JSON files of a model folder, with one plain sentence for each way they can be bad."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.errors import ModelFileError
from engine.files.disguise import missing, refuse_disguised, unreadable
from engine.files.wording import shown

MAX_JSON_BYTES = 64 * 2**20


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; a name given twice is refused, as it could mean two things.

    Raises ModelFileError when the file is missing, empty, an LFS pointer, too large, or not a JSON object.
    """
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise ModelFileError(f"{path.name} is larger than {MAX_JSON_BYTES >> 20} MiB and was not read.")
        data = path.read_bytes()
    except FileNotFoundError:
        raise ModelFileError(f"{missing(path)}.") from None
    except OSError as error:
        raise unreadable(path, error) from error
    refuse_disguised(path, data[:64])
    return parse_object(data, path.name)


def parse_object(data: bytes, where: str) -> dict[str, Any]:
    """Parse UTF-8 JSON text that must be an object without repeated names; `where` names it in errors."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ModelFileError(f"{where} names {shown(twice)} twice.")
        return result

    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{where} is damaged: it is not valid JSON ({error}).") from error
    if not isinstance(value, dict):
        raise ModelFileError(f"{where} is damaged: it holds no JSON object.")
    return value
