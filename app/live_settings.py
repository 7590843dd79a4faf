"""The settings in force: changed one at a time, told to whoever listens, and written a moment later."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.engine_words import in_user_words
from app.settings import AppSettings, default_of, names, preferences
from app.settings_store import SettingsStore

SAVE_AFTER_MS = 400  # a slider sends many values: write once it rests


class LiveSettings(QObject):
    """Owner of the current `AppSettings`. changed(name, value) for each change; not_kept(sentence) at most once;
    lent_changed() when the open chat lends others, or its values became the user's own.

    The open chat may lend its own values of some settings: they are in force, and changed in its stead, but the user's
    own values stay as they are and are the ones written.
    """

    changed = Signal(str, object)
    not_kept = Signal(str)
    lent_changed = Signal()

    def __init__(self, store: SettingsStore, settings: AppSettings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._current = self._own = settings
        self._lent: frozenset[str] = frozenset()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_AFTER_MS)
        self._timer.timeout.connect(self._save)

    @property
    def current(self) -> AppSettings:
        """What is in force now."""
        return self._current

    def set(self, name: str, value: Any) -> None:
        """Change one setting. Raises ValueError when the value does not fit; an equal value changes nothing."""
        settings = self._current.with_value(name, value)
        if getattr(settings, name) == getattr(self._current, name):
            return
        self._current = settings
        if name not in self._lent:
            self._own = self._own.with_value(name, value)
            self._timer.start()
        self.changed.emit(name, getattr(settings, name))

    @property
    def lent(self) -> frozenset[str]:
        """Settings whose values are the open chat's."""
        return self._lent

    def lend(self, values: Mapping[str, Any]) -> None:
        """Put these values in force, until others are lent, in place of the user's own. Raises ValueError as `set`."""
        before, settings = self._current, self._own
        for name, value in values.items():
            settings = settings.with_value(name, value)
        self._current, self._lent = settings, frozenset(values)
        for name in names():
            if getattr(before, name) != getattr(settings, name):
                self.changed.emit(name, getattr(settings, name))
        self.lent_changed.emit()

    @property
    def lends_otherwise(self) -> bool:
        """Whether the open chat has other values than new chats begin with."""
        return self._current != self._own

    @Slot()
    def keep_lent(self) -> None:
        """What is in force becomes the user's own: new chats begin with it."""
        self._own = self._current
        self._timer.start()
        self.lent_changed.emit()

    @Slot()
    def reset(self) -> None:
        """Every setting of the settings page back to its default, save the model, which is not a preference."""
        for name in preferences():
            self.set(name, default_of(name))

    def reset_group(self, group: str) -> None:
        """The settings of one group back to their defaults, save the model."""
        for name in preferences(group):
            self.set(name, default_of(name))

    def changed_names(self, group: str | None = None) -> tuple[str, ...]:
        """Settings of the page, or of one group of it, that differ from their defaults."""
        return tuple(name for name in preferences(group) if getattr(self._current, name) != default_of(name))

    @property
    def store_folder(self) -> Path:
        """Where settings are kept."""
        return self._store.folder

    def flush(self) -> None:
        """Write what has not been written yet."""
        if self._timer.isActive():
            self._timer.stop()
            self._save()

    @Slot()
    def _save(self) -> None:
        sentence = self._store.save(self._own)
        if sentence is not None:
            self.not_kept.emit(in_user_words(sentence))
