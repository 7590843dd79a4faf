"""Settings on disk: one JSON file in the platform's configuration folder, replaced in one step. No Qt."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app import settings as declared
from app.settings import AppSettings
from engine.files.paths import config_dir
from engine.files.replacing import replace_text

FILE_NAME = "settings.json"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings as read, and one sentence for each thing that had to be put right."""

    settings: AppSettings
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class SettingsStore:
    """Reads and writes the settings file, keeping keys of other versions of the program."""

    folder: Path = field(default_factory=config_dir)
    _unknown: dict[str, Any] = field(default_factory=dict)
    _told: bool = False

    @property
    def path(self) -> Path:
        """The settings file."""
        return self.folder / FILE_NAME

    def load(self) -> Loaded:
        """The stored settings. A bad value falls back to its default, a broken file is set aside, both with a note."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return Loaded(AppSettings())
        except (OSError, UnicodeDecodeError) as error:
            return Loaded(AppSettings(), (f"{self.path} cannot be read ({_cause(error)}), so defaults are used.",))
        try:
            values = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            values = None
        if not isinstance(values, dict):
            return Loaded(AppSettings(), (self._set_aside(),))
        known = set(declared.names())
        self._unknown = {key: value for key, value in values.items() if key not in known}
        return _checked_one_by_one({key: value for key, value in values.items() if key in known})

    def save(self, settings: AppSettings) -> str | None:
        """Write the settings; None, or (the first time only) a sentence that they cannot be kept."""
        values = {**self._unknown, **{name: getattr(settings, name) for name in declared.names()}}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_text(self.path, json.dumps(values, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            first, self._told = not self._told, True
            return f"Settings will not be kept: {self.path} cannot be written ({_cause(error)})." if first else None
        return None

    def _set_aside(self) -> str:
        kept = self.path.with_suffix(".broken.json")
        try:
            os.replace(self.path, kept)
        except OSError as error:
            return f"{self.path} is not valid and cannot be moved ({_cause(error)}), so defaults are used."
        return f"{self.path} is not valid, so defaults are used; it was kept as {kept.name}."


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
