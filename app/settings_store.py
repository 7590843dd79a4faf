"""Settings on disk: one JSON file in the platform's configuration folder, replaced in one step. No Qt."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app import settings as declared
from app.settings import AppSettings
from engine.files.paths import config_dir
from engine.files.replacing import replace_text, replacing

FILE_NAME = "settings.json"
VERSION_KEY, VERSION = "version", 1
"""Of the file. A later version may mean something else by a known key; keys that are merely new need none."""
MOST_VERSION = 10**6
PART_SECONDS = 60.0  # no save takes longer
SAFE = "Safe mode: all settings are the defaults, are not kept, and no model is loaded by itself."


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings as read, and one sentence for each thing that had to be put right."""

    settings: AppSettings
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class SettingsStore:
    """Reads and writes the settings file, keeping keys of other versions of the program. safe: and tells that it is not
    the user's."""

    folder: Path = field(default_factory=config_dir)
    safe: bool = False
    _unknown: dict[str, Any] = field(default_factory=dict)
    _told: bool = False
    _unread: bool = False

    @property
    def path(self) -> Path:
        """The settings file."""
        return self.folder / FILE_NAME

    def load(self) -> Loaded:
        """The stored settings. What is bad falls back to its default, value by value, with a note; a file that had to
        be put right, or that a newer version wrote, is kept beside the one that takes its place."""
        if self.safe:
            return Loaded(AppSettings(), (SAFE,))
        self._sweep()
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return Loaded(AppSettings())
        except OSError as error:
            self._unread = True
            return Loaded(AppSettings(), (f"{self.path} cannot be read ({_cause(error)}), so defaults are used.",))
        try:
            values = json.loads(data.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            return Loaded(AppSettings(), (self._set_aside(),))
        known = set(declared.names())
        self._unknown = {key: value for key, value in values.items() if key not in known and key != VERSION_KEY}
        loaded = _checked_one_by_one({key: value for key, value in values.items() if key in known})
        version = values.get(VERSION_KEY, VERSION)
        if isinstance(version, int) and version > VERSION:
            beside = self._keep(data, f"v{min(version, MOST_VERSION)}")
            note = f"{self.path.name} was written by a newer version of Specular (format {version}). {beside}"
            return Loaded(loaded.settings, (note, *loaded.notes))
        if loaded.notes:
            return Loaded(loaded.settings, (*loaded.notes, self._keep(data, "before")))
        return loaded

    def save(self, settings: AppSettings) -> str | None:
        """Write the settings; None, or (the first time only) a sentence that they cannot be kept."""
        values = {VERSION_KEY: VERSION, **self._unknown, **{name: getattr(settings, name) for name in declared.names()}}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self._unread:
                os.replace(self.path, self._beside("unread"))
                self._unread = False
            replace_text(self.path, json.dumps(values, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            first, self._told = not self._told, True
            return f"Settings will not be kept: {self.path} cannot be written ({_cause(error)})." if first else None
        return None

    def _set_aside(self) -> str:
        kept = self._beside("broken")
        try:
            os.replace(self.path, kept)
        except OSError as error:
            return f"{self.path} is not valid and cannot be moved ({_cause(error)}), so defaults are used."
        return f"{self.path} is not valid, so defaults are used; it was kept as {kept.name}."

    def _keep(self, data: bytes, word: str) -> str:
        """The file as it is, kept beside the one that will take its place; the sentence for that."""
        kept = self._beside(word)
        try:
            with replacing(kept) as file:
                file.write(data)
        except OSError as error:
            return f"It cannot be kept as it was ({_cause(error)})."
        return f"As it was, it is kept as {kept.name}."

    def _sweep(self) -> None:
        """Parts of files that a kill in the middle of a save left behind go."""
        with contextlib.suppress(OSError):
            for part in self.folder.glob(f"{FILE_NAME}*.part"):
                if time.time() - part.stat().st_mtime > PART_SECONDS:
                    part.unlink()

    def _beside(self, word: str) -> Path:
        return self.path.with_suffix(f".{word}.json")


def _checked_one_by_one(values: dict[str, Any]) -> Loaded:
    settings, notes = AppSettings(), []
    for name, value in values.items():
        try:
            settings = settings.with_value(name, value)
        except ValueError as error:
            notes.append(f"Setting {error} The default is used.")
    return Loaded(settings, tuple(notes))


def _cause(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).rstrip(".").lower()
