"""Draft settings per model: kept when another model is loaded, and back when the first one is."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.live_settings import LiveSettings
from app.profile_store import ProfileStore, profile_names, profile_of
from app.settings import default_of


class Profiles(QObject):
    """Follows the `model` setting, which changes once a model has been loaded. not_kept(sentence) where writing fails.

    The settings in force are those of the model that is set; a model that is loaded for the first time begins with
    the defaults.
    """

    not_kept = Signal(str)

    def __init__(self, settings: LiveSettings, store: ProfileStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._store = store
        self._model = settings.current.model
        settings.changed.connect(self._on_changed)

    @Slot(str, object)
    def _on_changed(self, name: str, value: object) -> None:
        if name != "model" or value == self._model:
            return
        left, self._model = self._model, str(value)
        sentence = self._store.put(left, profile_of(self._settings.current))
        profile = self._store.get(self._model)
        for setting in profile_names():
            self._settings.set(setting, profile.get(setting, default_of(setting)))
        if sentence is not None:
            self.not_kept.emit(sentence)
