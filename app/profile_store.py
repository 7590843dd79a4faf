"""What each model's draft was set to, on disk: one JSON file beside the settings. No Qt."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.declaration import RECIPE
from app.settings import AppSettings, checked, declaration, default_of, names
from engine.files.paths import config_dir
from engine.files.replacing import replace_text

FILE_NAME = "profiles.json"
VERSION = 1
MOST = 200  # models remembered; the one used longest ago goes first

Profile = dict[str, Any]


def profile_names() -> tuple[str, ...]:
    """The settings that belong to a model: those of how the draft is made and how far it goes."""
    return tuple(name for name in names() if declaration(name).group == RECIPE)


def profile_of(settings: AppSettings) -> Profile:
    """What differs from the defaults; the rest follows them, also those of later versions."""
    values = {name: getattr(settings, name) for name in profile_names()}
    return {name: value for name, value in values.items() if value != default_of(name)}


@dataclass(slots=True)
class ProfileStore:
    """Profiles by model, in the order of last use. Reads once; writes the whole file in one step."""

    folder: Path = field(default_factory=config_dir)
    _profiles: dict[str, Profile] | None = None

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / FILE_NAME

    def get(self, model: str) -> Profile:
        """A model's profile; empty for one that has none. Values that no longer fit are left out."""
        return dict(self._all().get(model, {}))

    def put(self, model: str, profile: Profile) -> str | None:
        """Keep a model's profile; None, or a sentence that it cannot be kept."""
        profiles = self._all()
        profiles.pop(model, None)
        if profile:
            profiles[model] = dict(profile)
        for oldest in list(profiles)[: max(0, len(profiles) - MOST)]:
            del profiles[oldest]
        text = json.dumps({"version": VERSION, "profiles": profiles}, indent=1, ensure_ascii=False) + "\n"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_text(self.path, text)
        except OSError as error:
            cause = error.strerror or error
            return f"The draft settings of this model will not be kept: {self.path} cannot be written ({cause})."
        return None

    def _all(self) -> dict[str, Profile]:
        if self._profiles is None:
            self._profiles = self._read()
        return self._profiles

    def _read(self) -> dict[str, Profile]:
        """A file that makes no sense counts as none, and is set aside rather than written over."""
        try:
            values = json.loads(self.path.read_text(encoding="utf-8"))
            if values["version"] != VERSION:
                raise ValueError
            return {str(model): _fitting(profile) for model, profile in values["profiles"].items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            with contextlib.suppress(OSError):  # saving will say what is wrong with the place
                os.replace(self.path, self.path.with_suffix(".broken.json"))
            return {}


def _fitting(profile: Any) -> Profile:
    kept: Profile = {}
    for name, value in profile.items():
        if name in profile_names():
            try:
                kept[name] = checked(name, value)
            except ValueError:
                continue  # a choice of another version
    return kept
