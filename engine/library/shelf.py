"""Which models the user has put on the list: one small file in the data folder, written in one step."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from engine.errors import ModelFileError, SpecularError
from engine.files.json_file import read_json
from engine.files.paths import data_dir, ensure_folder
from engine.files.replacing import replace_text

VERSION = 1


class Origin(str, Enum):
    """Where a model on the list comes from, and with that whether its files are ours to delete."""

    ADDED = "added"
    DOWNLOADED = "downloaded"
    STARTER = "starter"
    HUB_CACHE = "hub cache"
    UNFINISHED = "download, not complete"


@dataclass(frozen=True, slots=True)
class Entry:
    """A model by its path: a folder, a GGUF file, or "starter". repo: its name on the hub, where it has one."""

    path: str
    origin: Origin
    repo: str | None = None

    @property
    def name(self) -> str:
        """What to call it, and what `remove` takes."""
        if self.origin is Origin.STARTER:
            return "starter"
        return self.repo or Path(self.path).name or self.path


class Shelf:
    """The entries of the file, newest first. Reading never fails: `note` says in a sentence what was wrong with it.

    Only what the user has put there: downloads and the starter model are known by where they lie.
    """

    def __init__(self) -> None:
        self.note: str | None = None
        self.entries = self._read()

    @staticmethod
    def path() -> Path:
        """The file."""
        return data_dir() / "models.json"

    def put(self, entry: Entry) -> None:
        """Add an entry, in place of one of the same path. Raises SpecularError where the file cannot be written."""
        self.entries = (entry, *(other for other in self._read() if other.path != entry.path))
        self._write()

    def take(self, path: str) -> None:
        """Forget the entry of this path, if there is one. Raises SpecularError as `put`."""
        self.entries = tuple(other for other in self._read() if other.path != path)
        self._write()

    def _read(self) -> tuple[Entry, ...]:
        """What the file says now: another process may have written it since."""
        path = self.path()
        if not path.exists():
            return ()
        try:
            values = read_json(path)
            if values.get("version") != VERSION or not isinstance(values.get("models"), list):
                raise ModelFileError(f"{path.name} is of another version.")
            return tuple(_entry(value) for value in values["models"])
        except ModelFileError as error:
            self._set_aside(path, str(error))
            return ()

    def _set_aside(self, path: Path, cause: str) -> None:
        """Keep a file that cannot be used under another name, so that writing a new one loses nothing."""
        aside = path.with_name(f"{path.name}.unreadable")
        try:
            os.replace(path, aside)
            kept = f"it is kept as {aside.name}"
        except OSError as error:
            kept = f"it cannot be moved ({error.strerror or error})"
        self.note = f"The list of models could not be read, so it begins anew, and {kept}: {cause}"

    def _write(self) -> None:
        models = [{"path": entry.path} for entry in self.entries]
        path = self.path()
        ensure_folder(path.parent)
        try:
            replace_text(path, json.dumps({"version": VERSION, "models": models}, indent=2))
        except OSError as error:
            raise SpecularError(f"The list of models cannot be written: {error.strerror or error}.") from error


def _entry(value: Any) -> Entry:
    path = value.get("path") if isinstance(value, dict) else None
    if not isinstance(path, str) or not path:
        raise ModelFileError("one of its models has no path.")
    return Entry(path, Origin.ADDED)
